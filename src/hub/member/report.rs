//! The status of a `MemberCluster`, from all that is known of it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::condition::{self, Truth, member as types};
use crate::api::federation::{MemberCluster, MemberClusterStatus};
use crate::api::reason::Reason;
use crate::capacity::summary;
use crate::hub::placer::Held;
use crate::hub::roll::Listed;
use crate::member::Fact;

/// All that is known of a member.
pub(super) struct Facts<'a> {
    pub(super) cluster: &'a MemberCluster,
    pub(super) listed: &'a Listed,
    pub(super) held: &'a Held,
    pub(super) now: Timestamp,
}

/// Makes the status. Equal facts make an equal status; what can't be seen now keeps its last value.
pub(super) fn report(facts: &Facts<'_>) -> MemberClusterStatus {
    let mut status = facts.cluster.status.clone().unwrap_or_default();
    let count = |n: u32| Some(i32::try_from(n).unwrap_or(i32::MAX));
    status.services = count(facts.held.services);
    status.replicas = count(facts.held.groups);
    let generation = facts.cluster.metadata.generation;
    let mut set = |type_: &str, truth: Truth, reason: &str, message: &str| {
        condition::set(&mut status.conditions, facts.now, type_, truth, reason, message, generation);
    };
    set(types::READY, facts.listed.standing.truth, facts.listed.standing.reason.as_str(), &facts.listed.standing.message);
    let view = match &facts.listed.seen {
        Ok(seen) => seen.view.clone(),
        Err(none) => {
            set(types::CREDENTIAL_VALID, Truth::False, none.reason.as_str(), &none.message);
            let unknown = "there is no client for this member";
            for type_ in [types::REACHABLE, types::SYNCED, types::LEADER_WORKER_SET_AVAILABLE] {
                set(type_, Truth::Unknown, none.reason.as_str(), unknown);
            }
            status.credential = None;
            return status;
        }
    };
    let mut set_fact = |type_: &str, fact: &Fact| set(type_, fact.truth, fact.reason.as_str(), &fact.message);
    set_fact(types::CREDENTIAL_VALID, &view.credential_valid);
    set_fact(types::REACHABLE, &view.reachable);
    set_fact(types::SYNCED, &view.synced);
    set_fact(types::LEADER_WORKER_SET_AVAILABLE, &view.leader_worker_set);

    // Another cluster behind the same name is settled by a person: until then the UID stays the one that was accepted.
    if facts.listed.standing.reason != Reason::ClusterReplaced && view.cluster_uid.is_some() {
        status.cluster_uid = view.cluster_uid;
    }
    if view.kubernetes_version.is_some() {
        status.kubernetes_version = view.kubernetes_version;
    }
    if view.leader_worker_set.truth != Truth::Unknown {
        status.leader_worker_set_version = view.leader_worker_set_version;
    }
    status.credential = Some(view.credential);
    if let Some(snapshot) = &view.snapshot {
        status.accelerators = snapshot.accelerators(&facts.held.promises);
        status.accelerator_summary = Some(summary(&status.accelerators));
    }
    // Only while it can't be seen: a time that moved with each probe would be a write with each probe.
    status.last_seen = if view.reachable.holds() { None } else { view.last_seen.map(Time) };
    status
}

/// Whether a condition changed in anything but its times.
pub(super) fn conditions_differ(old: &MemberClusterStatus, new: &MemberClusterStatus) -> bool {
    old.conditions != new.conditions
}
