//! What each member holds, and the sums.

use jiff::Timestamp;

use super::observation::{ApplyState, MemberObservation, WorkloadView};
use super::report::Facts;
use crate::api::odin::{Phase, Placement};
use crate::api::reason::Reason;

/// Counts of one member, in groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Groups that exist.
    pub(super) current: u32,
    /// Groups that are ready, in any revision.
    pub(super) ready: u32,
    /// Groups of the current revision, in any state.
    pub(super) updated: u32,
}

/// One member's share of a service, as it stands.
#[derive(Clone, Debug)]
pub(super) struct Share<'a> {
    /// Name of the member.
    pub(super) cluster: &'a str,
    /// Groups that are wanted there.
    pub(super) wanted: u32,
    /// The plan doesn't name it any more.
    pub(super) leaving: bool,
    /// What is seen there; nothing when the member isn't known any more.
    pub(super) seen: Option<&'a MemberObservation>,
    /// Its placement in the present status.
    pub(super) before: Option<&'a Placement>,
    /// The member can be seen now: its counts are not just the last known ones.
    pub(super) fresh: bool,
    /// The current rendering, for the current generation, was accepted there.
    pub(super) applied: bool,
    /// The child has observed what was applied, so that its counters and conditions speak of it.
    pub(super) observed: bool,
    /// Counts, if any are known.
    pub(super) counts: Option<Counts>,
    /// Everything that is wanted there is there, ready, and of the current revision.
    pub(super) done: bool,
}

impl<'a> Share<'a> {
    fn new(facts: &Facts<'a>, cluster: &'a str, wanted: u32, leaving: bool, seen: Option<&'a MemberObservation>) -> Self {
        let before = placements(facts).iter().find(|p| p.cluster == cluster);
        let fresh = seen.is_some_and(|s| s.reachable && s.trouble.is_none());
        let view = seen.and_then(|s| s.workload.as_ref());
        let applied = facts.rendered.is_ok() && seen.is_some_and(|s| is_current(facts, s));
        let observed = seen.zip(view).is_some_and(|(s, v)| has_observed(&s.applied, v));
        let counts = counts(facts, seen, before, fresh, observed);
        let mut share = Self { cluster, wanted, leaving, seen, before, fresh, applied, observed, counts, done: false };
        share.done = share.is_done();
        share
    }

    /// Its workload, if there is one.
    pub(super) fn view(&self) -> Option<&'a WorkloadView> {
        self.seen.and_then(|s| s.workload.as_ref())
    }

    /// The counts, or zeros.
    pub(super) fn known(&self) -> Counts {
        self.counts.unwrap_or_default()
    }

    /// When the member was last seen. For one of which nobody knows it is the time at which that was first found,
    /// which then stands in the status.
    pub(super) fn last_seen(&self, now: Timestamp) -> Timestamp {
        let before = self.before.and_then(|p| p.last_seen.as_ref()).map(|t| t.0);
        self.seen.and_then(|s| s.last_seen).or(before).unwrap_or(now)
    }

    fn is_done(&self) -> bool {
        let Counts { current, ready, updated } = self.known();
        let old = current.saturating_sub(updated);
        let deleting = self.view().is_some_and(|v| v.deletion_timestamp.is_some());
        // Some of the ready ones may be of the old revision; at least the rest is of the current one.
        let enough = updated >= self.wanted && ready.saturating_sub(old) >= self.wanted;
        self.fresh && self.applied && self.observed && !deleting && enough && (self.wanted > 0 || current == 0)
    }
}

/// The shares of a service: those of the plan (or of the present status without one), then those that leave, each by
/// name.
pub(super) fn shares<'a>(facts: &Facts<'a>) -> Vec<Share<'a>> {
    let old = placements(facts);
    let mut wanted: Vec<(&'a str, u32, bool)> = match facts.plan {
        Some(plan) => plan.placements.iter().map(|(cluster, n)| (cluster.as_str(), *n, false)).collect(),
        None => old.iter().map(|p| (p.cluster.as_str(), u32::try_from(p.replicas).unwrap_or(0), is_leaving(p))).collect(),
    };
    for leaving in facts.leaving {
        if !wanted.iter().any(|(cluster, ..)| *cluster == leaving.cluster) {
            wanted.push((&leaving.cluster, 0, true));
        }
    }
    wanted.sort_unstable_by_key(|(cluster, _, leaving)| (*leaving, *cluster));
    wanted.dedup_by_key(|(cluster, ..)| *cluster);
    let find = |cluster: &str| facts.members.iter().chain(facts.leaving).find(|m| m.cluster == cluster);
    wanted.into_iter().map(|(cluster, n, leaving)| Share::new(facts, cluster, n, leaving, find(cluster))).collect()
}

/// Counts over all members. `current` keeps the last known value of a silent member, since an autoscaler must not see
/// a drop that isn't one; what is ready or updated there can't be told and doesn't count.
pub(super) fn sum(shares: &[Share<'_>]) -> Counts {
    let mut sum = Counts::default();
    for share in shares {
        let counts = share.known();
        if share.fresh || !share.leaving {
            sum.current = sum.current.saturating_add(counts.current);
        }
        if share.fresh {
            sum.ready = sum.ready.saturating_add(counts.ready);
            if !share.leaving {
                sum.updated = sum.updated.saturating_add(counts.updated);
            }
        }
    }
    sum
}

fn placements<'a>(facts: &Facts<'a>) -> &'a [Placement] {
    facts.service.status.as_ref().map_or(&[], |s| s.placements.as_slice())
}

fn is_leaving(placement: &Placement) -> bool {
    placement.phase == Phase::Leaving
}

/// Whether what was accepted is the current rendering, for the current generation. While no answer is known (after a
/// start of the hub), or the last one was no verdict (a timeout), the object itself says what was applied to it.
fn is_current(facts: &Facts<'_>, seen: &MemberObservation) -> bool {
    let is_wanted = |generation: i64, hash: &str| {
        generation >= facts.service.metadata.generation.unwrap_or(0) && facts.workload.is_none_or(|w| w.hash == hash)
    };
    match (&seen.applied, &seen.workload) {
        (ApplyState::Applied { generation, hash, .. }, _) => is_wanted(*generation, hash),
        (ApplyState::Pending | ApplyState::Failed { reason: Reason::ApplyFailed, .. }, Some(view)) => {
            view.service_generation.zip(view.rendered_hash.as_deref()).is_some_and(|(generation, hash)| is_wanted(generation, hash))
        }
        (ApplyState::Pending | ApplyState::Failed { .. }, _) => false,
    }
}

/// Whether the child's controller has seen what was applied last, by whomever if it isn't known.
fn has_observed(applied: &ApplyState, view: &WorkloadView) -> bool {
    let generation = match applied {
        ApplyState::Applied { object_generation, .. } => *object_generation,
        ApplyState::Pending | ApplyState::Failed { .. } => view.generation,
    };
    view.observed_generation.is_some_and(|observed| observed > 0 && observed >= generation)
}

fn counts(facts: &Facts<'_>, seen: Option<&MemberObservation>, before: Option<&Placement>, fresh: bool, observed: bool) -> Option<Counts> {
    let before = before.and_then(|p| {
        let count = |n: Option<i32>| n.map(|n| u32::try_from(n).unwrap_or(0));
        let current = count(p.current_replicas)?;
        Some(Counts { current, ready: count(p.ready_replicas).unwrap_or(0), updated: count(p.updated_replicas).unwrap_or(0) })
    });
    let view = seen.and_then(|s| s.workload.as_ref());
    match view {
        Some(view) if observed => {
            let updated = if of_current_revision(facts, seen, view) { view.updated } else { 0 };
            Some(Counts { current: view.replicas, ready: view.ready, updated })
        }
        // The child still speaks of what was there before: its groups go on, none is known to be of the new revision.
        Some(_) if fresh => Some(Counts { updated: 0, ..before.unwrap_or_default() }),
        None if fresh => Some(Counts::default()),
        _ => before,
    }
}

/// Whether the child's updated groups are those of the current rendering. Without a rendering what runs is all there
/// is to compare with.
fn of_current_revision(facts: &Facts<'_>, seen: Option<&MemberObservation>, view: &WorkloadView) -> bool {
    let Some(workload) = facts.workload else { return true };
    match seen.map(|s| &s.applied) {
        Some(ApplyState::Applied { hash, .. }) => *hash == workload.hash,
        _ => view.rendered_hash.as_ref().is_none_or(|hash| *hash == workload.hash),
    }
}
