//! The status of a service, from all that is known of it.

use std::io::{self, Write};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::conditions::{self, Word, plural};
use super::counters::{self, Share};
use super::diagnose::{self, Picked, Signal};
use super::observation::MemberObservation;
use super::placements;
use super::rank::is_about_pods;
use super::ready::{self, Verdict};
use super::text::Cleaner;
use crate::api::condition::{Condition, Truth, service};
use crate::api::odin::{Diagnostic, InferenceService, InferenceServiceStatus, WorkloadKind, WorkloadStatus};
use crate::api::reason::Reason;
use crate::placement::Plan;
use crate::render::{Refusal, Rendered};
use crate::workload::{Workload, hpa_pod_selector};

/// Bytes of the rendered spec from which on it is left out: an object of more than about 1.5 MiB can't be stored, and
/// the rendered spec is a second copy of what the service and its templates say.
const RENDERED_LIMIT: usize = 512 * 1024;
/// Rejections that are told one by one.
const REJECTIONS_LIMIT: usize = 20;

/// All that is known of a service.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The service with the status that it has: a condition's time, and the last known counts of a silent member,
    /// come from there.
    pub service: &'a InferenceService,
    /// Its rendered spec, or why there is none. What [`crate::workload::build`] refuses counts as a refusal too.
    pub rendered: Result<&'a Rendered, &'a Refusal>,
    /// Its workload, when it could be rendered and built.
    pub workload: Option<&'a Workload>,
    /// What was decided; without it the placements in the service's status hold.
    pub plan: Option<&'a Plan>,
    /// One observation for each placement. A placement without one counts as a member that can't be seen.
    pub members: &'a [MemberObservation],
    /// Members outside the plan that still hold something of the service.
    pub leaving: &'a [MemberObservation],
    /// Since when each report said [`Report::all_ready`]; nothing if the last one didn't.
    pub all_ready_since: Option<Timestamp>,
    /// The time now.
    pub now: Timestamp,
}

/// A status, and when to look again.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The whole status; what differs from the present one is for [`super::merge_patch`].
    pub status: InferenceServiceStatus,
    /// The status changes after this time even if nothing happens.
    pub recheck_after: Option<Duration>,
    /// All wanted groups are ready now; `Ready` becomes True when that has lasted.
    pub all_ready: bool,
}

/// Makes the status of a service. Equal facts make an equal status, and a status that is already the service's own
/// comes out unchanged.
///
/// While the service is refused what was decided and applied before holds: a plan or a workload beside a refusal is
/// left aside.
pub fn report(facts: &Facts<'_>) -> Report {
    let facts = &match facts.rendered {
        Ok(_) => *facts,
        Err(_) => Facts { plan: None, workload: None, ..*facts },
    };
    let before = facts.service.status.as_ref();
    let cleaner = Cleaner::new(match facts.rendered {
        Ok(rendered) => Some(&rendered.spec),
        Err(_) => before.and_then(|s| s.rendered_spec.as_ref()),
    });
    let shares = counters::shares(facts);
    let wanted = wanted(facts.service);
    let unplaced = unplaced(facts, &shares, wanted);
    let verdict = ready::verdict(facts, &shares, wanted, unplaced);
    let sum = counters::sum(&shares);

    let troubles: Vec<Vec<Signal<'_>>> = shares.iter().map(|share| diagnose::of_share(facts, share, &cleaner)).collect();
    let picked = cause(facts, &shares, &troubles, unplaced, &verdict, &cleaner);

    let mut status = InferenceServiceStatus {
        conditions: before.map(conditions_of).unwrap_or_default(),
        replicas: Some(count(sum.current)),
        ready_replicas: Some(count(sum.ready)),
        updated_replicas: Some(count(sum.updated)),
        observed_generation: observed_generation(facts, &shares),
        hpa_pod_selector: Some(selector(facts)),
        placements: placements::all(facts.now, &shares, &troubles, verdict.is_settling()),
        clusters: placements::clusters(&shares),
        unplaced_replicas: Some(count(unplaced)),
        ..InferenceServiceStatus::default()
    };
    let left_out = rendering(facts, &mut status);
    rejections(facts, &mut status);

    let generation = facts.service.metadata.generation;
    let mut set = |type_: &str, word: &Word| word.set(&mut status.conditions, second(facts.now), type_, generation);
    set(service::RENDERED, &conditions::rendered(facts, left_out.as_ref(), &cleaner));
    if facts.rendered.is_ok() {
        if let Some(word) = conditions::placed(facts, &shares, wanted, unplaced, &cleaner) {
            set(service::PLACED, &word);
        }
        let refusals: Vec<_> = refusals(&shares, &troubles).cloned().collect();
        set(service::APPLIED, &conditions::applied(facts, &shares, wanted, diagnose::pick(&refusals, None).as_ref()));
        set(service::PROGRESSING, &conditions::progressing(facts, &shares, sum, wanted, unplaced, &verdict, picked.as_ref()));
    }
    set(service::READY, &ready_word(facts, &shares, &verdict, sum.ready, wanted, picked.as_ref()));

    status.workload = workload(facts, &shares, picked);
    Report { status, recheck_after: verdict.recheck_after, all_ready: verdict.all_ready }
}

/// Groups that a service wants over all members.
pub(super) fn wanted(service: &InferenceService) -> u32 {
    u32::try_from(service.spec.replicas.unwrap_or(1)).unwrap_or(0)
}

/// A time as the API stores it.
pub(super) fn second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// The conditions of a status in the order that the hub keeps them in, each once.
fn conditions_of(status: &InferenceServiceStatus) -> Vec<Condition> {
    let mut conditions = status.conditions.clone();
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    conditions.dedup_by(|a, b| a.type_ == b.type_);
    conditions
}

/// Whether there is a decision to speak of: a plan, or the placements that an earlier one left in the status.
pub(super) fn decided(facts: &Facts<'_>, shares: &[Share<'_>]) -> bool {
    facts.plan.is_some() || shares.iter().any(|s| !s.leaving)
}

/// Groups without a place. A plan that was made for fewer replicas than are wanted now leaves the rest unplaced.
fn unplaced(facts: &Facts<'_>, shares: &[Share<'_>], wanted: u32) -> u32 {
    if facts.rendered.is_err() || !decided(facts, shares) {
        let before = facts.service.status.as_ref().and_then(|s| s.unplaced_replicas);
        return before.map_or(0, |n| u32::try_from(n).unwrap_or(0));
    }
    let placed = shares.iter().filter(|s| !s.leaving).fold(0_u32, |sum, s| sum.saturating_add(s.wanted));
    wanted.saturating_sub(placed)
}

/// The cause that the status names: none while all is well.
fn cause<'a>(
    facts: &Facts<'a>,
    shares: &[Share<'a>],
    troubles: &[Vec<Signal<'a>>],
    unplaced: u32,
    verdict: &Verdict,
    cleaner: &Cleaner,
) -> Option<Picked<'a>> {
    if verdict.status == Truth::True {
        return None;
    }
    let before = facts.service.status.as_ref().and_then(|s| s.workload.as_ref()?.diagnostic.as_ref());
    if verdict.is_settling() {
        // All is well, but not for long enough: the cause of before stands until it is, or it would come and go with
        // each moment of readiness.
        return before.and_then(|d| kept(d, shares));
    }
    let planned = shares.iter().zip(troubles).filter(|(s, _)| !s.leaving).flat_map(|(_, signals)| signals);
    let signals: Vec<_> = planned.cloned().chain(diagnose::of_hub(facts, unplaced, cleaner)).collect();
    let mut picked = diagnose::pick(&signals, before)?;
    diagnose::steady(&mut picked, before);
    Some(picked)
}

/// A diagnostic of before, if it was about something that runs.
fn kept<'a>(before: &Diagnostic, shares: &[Share<'a>]) -> Option<Picked<'a>> {
    let reason = Reason::ALL.iter().copied().find(|r| r.as_str() == before.reason && is_about_pods(*r))?;
    let cluster = shares.iter().map(|s| s.cluster).find(|c| before.cluster.as_deref() == Some(*c))?;
    Some(Picked { reason, cluster: Some(cluster), diagnostic: before.clone() })
}

/// The refusals of members among all trouble.
fn refusals<'s, 'a>(shares: &'s [Share<'a>], troubles: &'s [Vec<Signal<'a>>]) -> impl Iterator<Item = &'s Signal<'a>> {
    let planned = shares.iter().zip(troubles).filter(|(s, _)| !s.leaving && !s.applied);
    planned.flat_map(|(_, signals)| signals.iter().filter(|s| s.is_refusal()))
}

fn ready_word(facts: &Facts<'_>, shares: &[Share<'_>], verdict: &Verdict, ready: u32, wanted: u32, picked: Option<&Picked<'_>>) -> Word {
    let clusters = shares.iter().filter(|s| !s.leaving && s.wanted > 0).count();
    let counts = format!("{ready} of {wanted} {} ready", plural(wanted as usize, "group"));
    let place = format!("in {clusters} {}", plural(clusters, "cluster"));
    match (verdict.status, picked) {
        (Truth::True, _) => Word::new(Truth::True, Reason::AllReplicasReady, format!("{counts} {place}")),
        (status, Some(picked)) => Word::new(status, picked.reason, picked.diagnostic.message.clone()),
        (status, None) if verdict.all_ready => Word::new(status, Reason::Reconciling, format!("{counts} {place}, not yet for long enough")),
        (status, None) => {
            let generation = facts.service.metadata.generation.unwrap_or(0);
            let applied = shares.iter().filter(|s| !s.leaving).all(|s| s.applied && s.observed);
            let old = shares.iter().filter(|s| !s.leaving).find_map(|s| Some((s.cluster, s.previous?)));
            let rest = match old {
                _ if !applied => format!("; generation {generation} isn't at work everywhere yet"),
                Some((cluster, old)) => format!("; the {} of before is still in {cluster}", old.kind.as_str()),
                None => String::new(),
            };
            Word::new(status, Reason::Reconciling, format!("{counts}{rest}"))
        }
    }
}

/// The generation that everything has arrived at: it moves when each placement has accepted it and its child has
/// observed what was applied, and stays where it is otherwise.
fn observed_generation(facts: &Facts<'_>, shares: &[Share<'_>]) -> Option<i64> {
    let before = facts.service.status.as_ref().and_then(|s| s.observed_generation);
    let arrived = facts.rendered.is_ok()
        && decided(facts, shares)
        && shares.iter().filter(|s| !s.leaving).all(|s| s.fresh && s.applied && s.observed);
    if arrived { facts.service.metadata.generation.or(before) } else { before }
}

fn selector(facts: &Facts<'_>) -> String {
    let name = facts.service.metadata.name.as_deref().unwrap_or_default();
    let before = facts.service.status.as_ref().and_then(|s| s.hpa_pod_selector.clone());
    match (facts.workload, before) {
        (Some(workload), _) => hpa_pod_selector(workload.kind, name),
        (None, Some(before)) => before,
        (None, None) if facts.service.spec.worker_template.is_some() => hpa_pod_selector(WorkloadKind::LeaderWorkerSet, name),
        (None, None) => hpa_pod_selector(WorkloadKind::Deployment, name),
    }
}

/// Puts the rendering into the status; a refusal leaves the last good one. Returns why the spec isn't there.
fn rendering(facts: &Facts<'_>, status: &mut InferenceServiceStatus) -> Option<String> {
    match facts.rendered {
        Ok(rendered) => {
            status.rendered_hash = Some(rendered.hash.clone());
            status.sources.clone_from(&rendered.sources);
            let size = size(&rendered.spec);
            if size > RENDERED_LIMIT {
                let (size, limit) = (size.div_ceil(1024), RENDERED_LIMIT / 1024);
                return Some(format!("status.renderedSpec is left out: it has {size} KiB, more than {limit} KiB"));
            }
            status.rendered_spec = Some(rendered.spec.clone());
        }
        Err(_) => {
            if let Some(before) = &facts.service.status {
                status.rendered_spec.clone_from(&before.rendered_spec);
                status.rendered_hash.clone_from(&before.rendered_hash);
                status.sources.clone_from(&before.sources);
            }
        }
    }
    None
}

fn rejections(facts: &Facts<'_>, status: &mut InferenceServiceStatus) {
    match (facts.plan, &facts.service.status) {
        (Some(plan), _) => {
            status.rejections = plan.rejections.iter().take(REJECTIONS_LIMIT).cloned().collect();
            status.rejection_summary.clone_from(&plan.rejection_summary);
        }
        (None, Some(before)) => {
            status.rejections.clone_from(&before.rejections);
            status.rejection_summary.clone_from(&before.rejection_summary);
        }
        (None, None) => {}
    }
}

/// The child that explains the state: the one that the diagnostic speaks of, else the least ready one.
fn workload(facts: &Facts<'_>, shares: &[Share<'_>], picked: Option<Picked<'_>>) -> Option<WorkloadStatus> {
    let missing = |s: &&Share<'_>| s.wanted.saturating_sub(s.known().ready);
    let seen = || shares.iter().filter(|s| s.view.is_some());
    let named = picked.as_ref().and_then(|p| p.cluster).filter(|cluster| shares.iter().any(|s| s.cluster == *cluster));
    let share = match named {
        Some(cluster) => shares.iter().find(|s| s.cluster == cluster),
        // Of equals max_by_key would take the last one.
        None => seen().filter(|s| !s.leaving).rev().max_by_key(missing).or_else(|| seen().next()),
    };
    let before = facts.service.status.as_ref().and_then(|s| s.workload.as_ref());
    let diagnostic = picked.map(|p| p.diagnostic);
    if let Some((share, view)) = share.and_then(|s| Some((s, s.view?))) {
        return Some(WorkloadStatus {
            kind: view.kind,
            name: view.name.clone(),
            cluster: Some(share.cluster.to_owned()),
            observed_generation: view.observed_generation.filter(|g| *g > 0),
            conditions: view.conditions.clone(),
            diagnostic,
        });
    }
    let (kind, name) = match (facts.workload, before) {
        (Some(workload), _) => (workload.kind, workload.name.clone()),
        (None, Some(before)) => (before.kind, before.name.clone()),
        (None, None) => return None,
    };
    Some(WorkloadStatus { kind, name, cluster: share.map(|s| s.cluster.to_owned()), diagnostic, ..WorkloadStatus::default() })
}

/// A count as the API has it.
pub(super) fn count(n: u32) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// Bytes of a value as JSON.
fn size(value: &Value) -> usize {
    struct Counter(usize);
    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}
