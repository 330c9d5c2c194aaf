//! What was decided, and why members were passed over.

use std::collections::BTreeMap;

use super::filter::Exclusion;
use crate::api::odin::Rejection;
use crate::api::reason::Reason;

/// Rejections that are told one by one; the summary counts all.
const REJECTIONS: usize = 20;

/// What was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Groups by member, none of them 0. A service of no replicas has one member with 0: the workload is kept there.
    pub placements: BTreeMap<String, u32>,
    /// Groups that no member can take.
    pub unplaced: u32,
    /// Why members didn't take what is unplaced, most informative first, at most 20.
    pub rejections: Vec<Rejection>,
    /// How many members didn't for each reason, all of them.
    pub rejection_summary: BTreeMap<String, i32>,
    /// Groups that fit besides those placed, by member, as far as they were counted: what a rollout may use.
    pub spare: BTreeMap<String, u32>,
}

impl Plan {
    /// Keeps why members, in the order of their names, didn't take more.
    pub(super) fn reject(&mut self, mut members: Vec<(&str, Exclusion)>) {
        for (_, exclusion) in &members {
            *self.rejection_summary.entry(exclusion.reason.to_string()).or_default() += 1;
        }
        members.sort_by_key(|(_, exclusion)| distance(exclusion.reason));
        self.rejections = members
            .into_iter()
            .take(REJECTIONS)
            .map(|(cluster, Exclusion { reason, message })| Rejection { cluster: cluster.to_owned(), reason: reason.to_string(), message })
            .collect();
    }
}

/// How far a member is from taking the service; what is nearest tells people most.
fn distance(reason: Reason) -> u8 {
    match reason {
        Reason::Fragmented => 0,
        Reason::InsufficientRoom => 1,
        Reason::Fragile => 2,
        Reason::QuotaExceeded => 3,
        Reason::NodesTainted => 4,
        Reason::NodesUnavailable => 5,
        Reason::LabelWithoutDevices => 6,
        Reason::CapacityUnknown => 7,
        Reason::NamespaceNotAllowed => 8,
        Reason::TaintNotTolerated => 9,
        Reason::Suspended => 10,
        Reason::NotReady => 11,
        Reason::NoLeaderWorkerSet => 12,
        Reason::VersionTooOld => 13,
        Reason::NoSuchAccelerator => 14,
        _ => 15,
    }
}
