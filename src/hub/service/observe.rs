//! What the members show of a service.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt as _;

use crate::api::condition::Truth;
use crate::api::odin::{InferenceService, WorkloadKind};
use crate::api::reason::Reason;
use crate::capacity::{GroupRequest, Options, ServiceKey, taints_in_the_way};
use crate::hub::context::Context;
use crate::hub::members::Entry;
use crate::hub::roll::{Connected, Listed, Roll};
use crate::member::{Applied, Member, MemberView, Observed, Outcome};
use crate::status::{ApplyState, MemberObservation, MemberTrouble, PodSignal};

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

/// Looks at all members. `None` while one that matters has been neither listed nor found out of reach. `request` is what
/// a group asks for, if that is known.
pub(super) fn all(
    service: &InferenceService,
    context: &Context,
    roll: &Roll,
    key: &ServiceKey,
    kind: WorkloadKind,
    wanted: &BTreeMap<String, u32>,
    request: Option<&GroupRequest>,
) -> Option<Seen> {
    let uid = service.uid().unwrap_or_default();
    let of = Of { key, uid: &uid, kind, request };
    let mut seen = Seen { members: Vec::new(), leaving: Vec::new(), whole: true };
    for (cluster, replicas) in wanted {
        let member = one(context, roll, cluster, *replicas, &of)?;
        let counts = roll.get(cluster).is_some_and(|listed| listed.standing.counts);
        seen.whole &= counts && member.reachable && member.trouble.is_none();
        seen.members.push(member);
    }
    for (cluster, listed) in roll.iter() {
        if wanted.contains_key(cluster) || !listed.standing.counts {
            continue;
        }
        let Ok(Connected { member, view }) = &listed.seen else { continue };
        // Before a member has said which cluster it is, it may be a second registration of one that holds a placement.
        if view.cluster_uid.is_some() && member.observe(key, &uid, kind).is_some_and(|observed| !observed.is_empty()) {
            seen.leaving.push(one(context, roll, cluster, 0, &of)?);
        }
    }
    Some(seen)
}

/// Which service is looked at.
struct Of<'a> {
    key: &'a ServiceKey,
    uid: &'a str,
    /// Kind of its workload.
    kind: WorkloadKind,
    /// What a group asks for.
    request: Option<&'a GroupRequest>,
}

fn one(context: &Context, roll: &Roll, cluster: &str, wanted: u32, of: &Of<'_>) -> Option<MemberObservation> {
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
            connected(member, entry, view, observation, of)
        }
    }
}

fn connected(
    member: &Arc<Member>,
    entry: &Entry,
    view: &MemberView,
    observation: MemberObservation,
    of: &Of<'_>,
) -> Option<MemberObservation> {
    let since = view.last_seen.unwrap_or(entry.since_time);
    let trouble = if view.credential_valid.truth == Truth::False {
        let fact = &view.credential_valid;
        Some(MemberTrouble { reason: fact.reason, message: fact.message.clone(), since: view.refused_since.unwrap_or(since) })
    } else if view.reachable.truth == Truth::False {
        Some(MemberTrouble { reason: Reason::MemberUnreachable, message: view.reachable.message.clone(), since })
    } else {
        let refused = match of.kind {
            WorkloadKind::Deployment => &view.workloads_refused,
            WorkloadKind::LeaderWorkerSet => &view.leader_worker_sets_refused,
        };
        refused.clone().map(|(message, since)| MemberTrouble { reason: Reason::NotSynced, message, since })
    };
    let seen = member.observe(of.key, of.uid, of.kind);
    if seen.is_none() && trouble.is_none() && !entry.is_overdue() {
        return None;
    }
    let is_listed = seen.is_some();
    let Observed { workload, previous, mut signals, service } = seen.unwrap_or_default();
    name_taints(&mut signals, entry, view, of.request);
    Some(MemberObservation {
        reachable: view.reachable.holds() && is_listed,
        // While it answers and yet can't be looked at, the time would move with each probe: what is stale keeps its own.
        last_seen: view.last_seen.filter(|_| trouble.is_none() || !view.reachable.holds()),
        trouble,
        applied: state(member.outcome(of.uid)),
        workload,
        previous,
        signals,
        service,
        ..observation
    })
}

/// Names the taints that a scheduler only says to be there.
fn name_taints(signals: &mut [PodSignal], entry: &Entry, view: &MemberView, request: Option<&GroupRequest>) {
    let mut hidden = signals.iter_mut().filter(|signal| signal.hides_taints()).peekable();
    let (Some(_), Some(snapshot), Some(request)) = (hidden.peek(), &view.snapshot, request) else { return };
    let spec = &entry.cluster.spec;
    let options = Options { extended_resource_toleration: spec.extended_resource_toleration, ignore_quotas: spec.ignore_resource_quota };
    let Some(taints) = taints_in_the_way(snapshot, request, options) else { return };
    for signal in hidden {
        signal.message = format!("{taints}; {}", signal.message);
    }
}

fn state(outcome: Option<Outcome>) -> ApplyState {
    match outcome {
        Some(Outcome::Applied(Applied { generation, object_generation, hash, .. })) => {
            ApplyState::Applied { generation, object_generation, hash }
        }
        Some(Outcome::Failed { reason, message, at, object, .. }) => ApplyState::Failed { reason, message, at, object },
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
