//! The forms that a group can have.

use super::fit::units;
use super::room::Options;
use super::shape::{GroupRequest, PodSet, PodShape};
use super::snapshot::{Node, Roles};
use super::table::Slot;
use super::{ServiceKey, fit::Verdict};
use crate::api::odin::WorkloadKind;

/// The pods of a group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form<'a> {
    /// This many pods of one shape.
    Alike { shape: &'a PodShape, size: u64 },
    /// A leader, and this many workers of another shape.
    Two { leader: &'a PodShape, worker: &'a PodShape, workers: u64 },
}

impl<'a> Form<'a> {
    /// The form of a request; the error says why its room can't be told.
    pub(super) fn of(request: &'a GroupRequest) -> Result<Self, &'static str> {
        let sets: Vec<&PodSet> = request.pods.iter().filter(|set| set.count > 0).collect();
        if sets.iter().any(|set| set.shape.claims_devices) {
            return Err("devices that pods claim by resourceClaims are not counted");
        }
        match sets.as_slice() {
            [set] => Ok(Self::Alike { shape: &set.shape, size: u64::from(set.count) }),
            [first, second] if first.count == 1 => {
                Ok(Self::Two { leader: &first.shape, worker: &second.shape, workers: u64::from(second.count) })
            }
            _ => Err("only groups of a leader and workers are counted"),
        }
    }

    /// Shape of the leader, or of the only pod.
    pub(super) fn leader(self) -> &'a PodShape {
        match self {
            Self::Alike { shape, .. } => shape,
            Self::Two { leader, .. } => leader,
        }
    }

    /// Shape of the workers.
    pub(super) fn worker(self) -> &'a PodShape {
        match self {
            Self::Alike { shape, .. } => shape,
            Self::Two { worker, .. } => worker,
        }
    }

    /// Pods of a group beside its leader.
    pub(super) fn workers(self) -> u64 {
        match self {
            Self::Alike { size, .. } => size.saturating_sub(1),
            Self::Two { workers, .. } => workers,
        }
    }

    /// The shapes, each once.
    pub(super) fn shapes(self) -> impl Iterator<Item = &'a PodShape> {
        let second = match self {
            Self::Alike { .. } => None,
            Self::Two { worker, .. } => Some(worker),
        };
        std::iter::once(self.leader()).chain(second)
    }
}

/// What is asked of a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) service: &'a ServiceKey,
    pub(super) form: Form<'a>,
    pub(super) kind: WorkloadKind,
    /// Key of the label of which each value holds one group at most.
    pub(super) topology: Option<&'a str>,
    pub(super) options: Options,
}

impl Asked<'_> {
    pub(super) fn is_set(&self) -> bool {
        self.kind == WorkloadKind::LeaderWorkerSet
    }

    /// Pods of the service that stay on a node, as far as they are of the kind of workload that it has now.
    pub(super) fn held(&self, node: &Node) -> Roles {
        let Some(held) = node.held_by(self.service) else { return Roles::default() };
        let Roles { single, leaders, workers } = held.staying;
        if self.is_set() { Roles { single: 0, leaders, workers } } else { Roles { single, leaders: 0, workers: 0 } }
    }

    /// Pods of one shape that each node of the slot has room for, given back what the service's own pods hold there,
    /// and those that merely stay.
    pub(super) fn pods_on(&self, slot: &Slot<'_>, row: &[i64], verdict: &Verdict) -> (u64, u64) {
        if *verdict != Verdict::Usable || slot.closed {
            let stay = if verdict.keeps() { self.held(slot.node).total() } else { 0 };
            return (0, u64::from(stay));
        }
        let fit = units(&slot.free, row);
        if !self.form.leader().one_per_node {
            return (fit, 0);
        }
        // One that is being deleted still keeps the next one away; in a StatefulSet the next one has to wait for it.
        let is_left = !self.is_set() && slot.is_left_by(self.service);
        (if is_left { 0 } else { fit.min(1) }, 0)
    }
}
