//! What each member holds, one by one and in short.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::counters::{Counts, Share};
use super::diagnose::{self, Signal};
use super::observation::ApplyState;
use super::report::{count, second};
use crate::api::odin::{Phase, Placement, PlacementWorkload};

/// Placements from which on healthy ones are told in short.
const SHORT_ABOVE: usize = 200;
/// Characters of the short form of placements.
const CLUSTERS_LIMIT: usize = 120;

/// The placements of a status, sorted by cluster. `settling` tells that all is well, but hasn't been for long enough.
pub(super) fn all(now: Timestamp, shares: &[Share<'_>], troubles: &[Vec<Signal<'_>>], settling: bool) -> Vec<Placement> {
    let short = shares.len() > SHORT_ABOVE;
    let mut placements: Vec<_> =
        shares.iter().zip(troubles).map(|(share, signals)| placement(now, share, signals, settling, short)).collect();
    placements.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    placements
}

fn placement(now: Timestamp, share: &Share<'_>, troubles: &[Signal<'_>], settling: bool, short: bool) -> Placement {
    let phase = phase(share, settling);
    let counted = |n: fn(&Counts) -> u32| share.counts.as_ref().map(|c| count(n(c)));
    let mut placement = Placement {
        cluster: share.cluster.to_owned(),
        replicas: count(share.wanted),
        phase,
        current_replicas: counted(|c| c.current),
        ready_replicas: counted(|c| c.ready),
        updated_replicas: counted(|c| c.updated),
        ..Placement::default()
    };
    if short && phase == Phase::Ready {
        return placement;
    }
    let view = share.view.or(share.previous);
    let accepted = share.seen.and_then(|s| match &s.applied {
        ApplyState::Applied { generation, hash, .. } => Some((Some(hash.clone()), Some(*generation))),
        ApplyState::Pending | ApplyState::Failed { .. } => None,
    });
    let (hash, generation) = accepted
        .or_else(|| view.map(|v| (v.rendered_hash.clone(), v.service_generation)))
        .or_else(|| share.before.filter(|_| !share.fresh).map(|p| (p.rendered_hash.clone(), p.observed_generation)))
        .unwrap_or_default();
    placement.rendered_hash = hash;
    placement.observed_generation = generation;
    placement.workload = match view {
        Some(view) => Some(PlacementWorkload {
            kind: view.kind,
            name: view.name.clone(),
            observed_generation: view.observed_generation.filter(|g| *g > 0),
        }),
        None if share.fresh => None,
        None => share.before.and_then(|p| p.workload.clone()),
    };
    placement.service = match share.seen {
        Some(seen) if share.fresh => seen.service.clone(),
        _ => share.before.and_then(|p| p.service.clone()),
    };
    if share.done && phase != Phase::Ready {
        // As with the diagnostic: a moment of readiness takes nothing back.
        let before = share.before.filter(|p| p.phase == Phase::Applied);
        (placement.reason, placement.message) = before.map(|p| (p.reason.clone(), p.message.clone())).unwrap_or_default();
    } else if phase != Phase::Ready {
        (placement.reason, placement.message) = diagnose::for_placement(troubles, share.before).unzip();
    }
    placement.stale = !share.fresh;
    placement.last_seen = (!share.fresh).then(|| Time(second(share.last_seen(now))));
    placement
}

/// How far a share is. While the service settles a share that wasn't ready before isn't yet.
fn phase(share: &Share<'_>, settling: bool) -> Phase {
    let was_ready = share.before.is_some_and(|p| p.phase == Phase::Ready);
    if share.leaving {
        Phase::Leaving
    } else if !share.fresh {
        Phase::Unknown
    } else if share.done && (was_ready || !settling) {
        Phase::Ready
    } else if share.applied {
        Phase::Applied
    } else {
        Phase::Planned
    }
}

/// The short form of the placements for people, with `+N more` for those that don't fit.
pub(super) fn clusters(shares: &[Share<'_>]) -> Option<String> {
    let items: Vec<_> = shares.iter().filter(|s| !s.leaving && s.wanted > 0).map(|s| format!("{}:{}", s.cluster, s.wanted)).collect();
    let mut text = String::new();
    for (i, item) in items.iter().enumerate() {
        let rest = items.len() - i - 1;
        let tail = if rest == 0 { 0 } else { format!(",+{rest} more").len() };
        let comma = usize::from(!text.is_empty());
        if text.len() + comma + item.len() + tail > CLUSTERS_LIMIT {
            let more = format!("+{} more", rest + 1);
            return Some(if text.is_empty() { more } else { format!("{text},{more}") });
        }
        if comma == 1 {
            text.push(',');
        }
        text.push_str(item);
    }
    (!text.is_empty()).then_some(text)
}
