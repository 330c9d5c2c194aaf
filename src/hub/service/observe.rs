//! What the members show of a service.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt as _;

use crate::api::condition::Truth;
use crate::api::odin::InferenceService;
use crate::api::reason::Reason;
use crate::capacity::ServiceKey;
use crate::hub::context::Context;
use crate::hub::members::Entry;
use crate::hub::roll::{Connected, Listed, Roll};
use crate::member::{Member, MemberView, Outcome};
use crate::status::{ApplyState, MemberObservation, MemberTrouble};

/// What the members show of a service.
pub(super) struct Seen {
    /// One for each placement.
    pub(super) members: Vec<MemberObservation>,
    /// Members outside the placements that still hold something of it.
    pub(super) leaving: Vec<MemberObservation>,
    /// Each placement can be looked at now. While one can't, what is found elsewhere may be all that is left of the
    /// service, or the very copy that was placed, behind a registration of another name.
    pub(super) whole: bool,
}

/// Looks at all members. `None` while one that matters has been neither listed nor found out of reach.
pub(super) fn all(
    service: &InferenceService,
    context: &Context,
    roll: &Roll,
    key: &ServiceKey,
    wanted: &BTreeMap<String, u32>,
) -> Option<Seen> {
    let uid = service.uid().unwrap_or_default();
    let mut seen = Seen { members: Vec::new(), leaving: Vec::new(), whole: true };
    for (cluster, replicas) in wanted {
        let member = one(context, roll, cluster, *replicas, key, &uid)?;
        let counts = roll.get(cluster).is_some_and(|listed| listed.standing.counts);
        seen.whole &= counts && member.reachable && member.trouble.is_none();
        seen.members.push(member);
    }
    for (cluster, listed) in roll.iter() {
        if wanted.contains_key(cluster) || !listed.standing.counts {
            continue;
        }
        let Ok(Connected { member, .. }) = &listed.seen else { continue };
        if member.observe(key, &uid).is_some_and(|(workload, _)| workload.is_some()) {
            seen.leaving.push(one(context, roll, cluster, 0, key, &uid)?);
        }
    }
    Some(seen)
}

fn one(context: &Context, roll: &Roll, cluster: &str, wanted: u32, key: &ServiceKey, uid: &str) -> Option<MemberObservation> {
    let observation = MemberObservation { cluster: cluster.to_owned(), wanted, ..MemberObservation::default() };
    let Some(Listed { entry, seen, standing }) = roll.get(cluster) else {
        if context.is_registered(cluster) {
            // Not reconciled yet since the hub started.
            return None;
        }
        let trouble = MemberTrouble {
            reason: Reason::CredentialMissing,
            message: format!("no MemberCluster {cluster} is registered any more"),
            since: context.started,
        };
        return Some(MemberObservation { trouble: Some(trouble), ..observation });
    };
    match seen {
        Err(none) => {
            let trouble = MemberTrouble { reason: none.reason, message: none.message.clone(), since: entry.since_time };
            Some(MemberObservation { trouble: Some(trouble), ..observation })
        }
        Ok(Connected { member, view }) => {
            if !standing.counts {
                // What is to be seen there is not what was put there.
                let trouble = MemberTrouble { reason: standing.reason, message: standing.message.clone(), since: entry.since_time };
                return Some(MemberObservation { trouble: Some(trouble), ..observation });
            }
            connected(member, entry, view, observation, key, uid)
        }
    }
}

fn connected(
    member: &Arc<Member>,
    entry: &Entry,
    view: &MemberView,
    observation: MemberObservation,
    key: &ServiceKey,
    uid: &str,
) -> Option<MemberObservation> {
    let since = view.last_seen.unwrap_or(entry.since_time);
    let trouble = if view.credential_valid.truth == Truth::False {
        let fact = &view.credential_valid;
        Some(MemberTrouble { reason: fact.reason, message: fact.message.clone(), since: view.refused_since.unwrap_or(since) })
    } else if view.reachable.truth == Truth::False {
        Some(MemberTrouble { reason: Reason::MemberUnreachable, message: view.reachable.message.clone(), since })
    } else {
        view.workloads_refused.clone().map(|(message, since)| MemberTrouble { reason: Reason::NotSynced, message, since })
    };
    let seen = member.observe(key, uid);
    if seen.is_none() && trouble.is_none() && !entry.is_overdue() {
        return None;
    }
    let is_listed = seen.is_some();
    let (workload, pods) = seen.unwrap_or_default();
    Some(MemberObservation {
        reachable: view.reachable.holds() && is_listed,
        // While it answers and yet can't be looked at, the time would move with each probe: what is stale keeps its own.
        last_seen: view.last_seen.filter(|_| trouble.is_none() || !view.reachable.holds()),
        trouble,
        applied: state(member.outcome(uid)),
        workload,
        pods,
        ..observation
    })
}

fn state(outcome: Option<Outcome>) -> ApplyState {
    match outcome {
        Some(Outcome::Applied { generation, object_generation, hash, .. }) => ApplyState::Applied { generation, object_generation, hash },
        Some(Outcome::Failed { reason, message, at, object }) => ApplyState::Failed { reason, message, at, object },
        Some(Outcome::Deleted) | None => ApplyState::Pending,
    }
}

/// How long a member has not answered, or not accepted the hub's credential; nothing while it does both.
pub(super) fn lost_for(view: &MemberView, entry: &Entry, now: Timestamp) -> Option<std::time::Duration> {
    let since = match (view.refused_since, view.reachable.holds()) {
        (Some(refused), _) => refused,
        (None, true) => return None,
        (None, false) => view.last_seen.unwrap_or(entry.since_time),
    };
    std::time::Duration::try_from(now.duration_since(since)).ok()
}
