//! What each member holds, and the sums.

use jiff::Timestamp;

use super::child;
use super::observation::{ApplyState, MemberObservation, WorkloadView};
use super::report::Facts;
use crate::api::odin::{Phase, Placement, WorkloadKind};
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

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self {
            current: self.current.saturating_add(other.current),
            ready: self.ready.saturating_add(other.ready),
            updated: self.updated.saturating_add(other.updated),
        }
    }
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
    /// Its workload, if there is one of the kind that the service has now.
    pub(super) view: Option<&'a WorkloadView>,
    /// Its workload of the kind that the service had before, which serves until its successor was accepted.
    pub(super) previous: Option<&'a WorkloadView>,
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
        let kind = facts.workload.map(|w| w.kind);
        let (view, left) = match seen.and_then(|s| s.workload.as_ref()) {
            Some(view) if kind.is_some_and(|kind| kind != view.kind) => (None, Some(view)),
            view => (view, None),
        };
        let previous = seen.and_then(|s| s.previous.as_ref()).or(left);
        let applied = facts.rendered.is_ok() && seen.is_some_and(|s| is_current(facts, s, view));
        let observed = seen.zip(view).is_some_and(|(s, v)| child::has_observed(&s.applied, v));
        let mut share =
            Self { cluster, wanted, leaving, seen, view, previous, before, fresh, applied, observed, counts: None, done: false };
        share.counts = share.count(facts);
        share.done = share.is_done(facts.workload.map_or(0, |w| w.partition));
        share
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

    /// A group of several pods was made anew because a container of it ended, whatever its pods do now.
    pub(super) fn remembers_a_crash(&self) -> bool {
        let is_end = |reason| matches!(reason, Reason::CrashLoopBackOff | Reason::OomKilled | Reason::RunContainerError | Reason::Error);
        self.seen.is_some_and(|seen| seen.signals.iter().any(|signal| signal.group.is_some() && is_end(signal.reason)))
    }

    /// What it holds, as far as that is known. What is left of another kind still serves, and counts like groups of an
    /// old revision.
    fn count(&self, facts: &Facts<'_>) -> Option<Counts> {
        let old = self.previous.map(child::counts).map(|counts| Counts { updated: 0, ..counts }).unwrap_or_default();
        match self.view {
            Some(view) if self.observed => {
                let counts = child::counts(view);
                let updated = if of_current_revision(facts, self.seen, view) { counts.updated } else { 0 };
                Some(old.plus(Counts { updated, ..counts }))
            }
            // The child still speaks of what was there before: its groups go on, none is known to be of the new revision.
            Some(view) if self.fresh && child::has_reported(view) => Some(old.plus(Counts { updated: 0, ..child::counts(view) })),
            _ if self.fresh => Some(old),
            _ => self.before.and_then(counts_of),
        }
    }

    fn is_done(&self, partition: u32) -> bool {
        let Some(view) = self.view else { return false };
        let settled = view.deletion_timestamp.is_none() && self.previous.is_none() && !child::is_updating(view);
        let Counts { current, ready, updated } = self.known();
        let enough = match view.kind {
            WorkloadKind::Deployment => {
                // Some of the ready ones may be of the old revision; at least the rest is of the current one.
                let old = current.saturating_sub(updated);
                updated >= self.wanted && ready.saturating_sub(old) >= self.wanted
            }
            WorkloadKind::LeaderWorkerSet => {
                // Surge groups end with the rollout, but stay while a partition holds it; they are always updated.
                let surge = current.saturating_sub(self.wanted);
                let wanted = self.wanted;
                (surge == 0 || partition > 0)
                    && updated.saturating_sub(surge) >= wanted.saturating_sub(partition)
                    && ready.saturating_sub(surge) >= wanted
            }
        };
        self.fresh && self.applied && self.observed && settled && enough && (self.wanted > 0 || current == 0)
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
fn is_current(facts: &Facts<'_>, seen: &MemberObservation, view: Option<&WorkloadView>) -> bool {
    let is_wanted = |generation: i64, hash: &str| {
        generation >= facts.service.metadata.generation.unwrap_or(0) && facts.workload.is_none_or(|w| w.hash == hash)
    };
    match (&seen.applied, view) {
        (ApplyState::Applied { generation, hash, .. }, _) => is_wanted(*generation, hash),
        (ApplyState::Pending | ApplyState::Failed { reason: Reason::ApplyFailed, .. }, Some(view)) => {
            view.service_generation.zip(view.rendered_hash.as_deref()).is_some_and(|(generation, hash)| is_wanted(generation, hash))
        }
        (ApplyState::Pending | ApplyState::Failed { .. }, _) => false,
    }
}

/// The counts that a placement told last.
fn counts_of(placement: &Placement) -> Option<Counts> {
    let count = |n: Option<i32>| n.map(|n| u32::try_from(n).unwrap_or(0));
    let current = count(placement.current_replicas)?;
    Some(Counts { current, ready: count(placement.ready_replicas).unwrap_or(0), updated: count(placement.updated_replicas).unwrap_or(0) })
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
