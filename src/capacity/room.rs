//! How many groups of a service fit in a member.

use std::sync::Arc;

use super::fit::{Order, Slot, Table, Verdict, Verdicts, units, waiting};
use super::pod::ServiceKey;
use super::shape::{GroupRequest, PodSet, PodShape};
use super::shortfall::{Rest, explain};
use super::snapshot::Snapshot;
use crate::api::reason::Reason;

/// What is special about a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The member's API server adds tolerations for requested extended resources.
    pub extended_resource_toleration: bool,
}

/// Groups of a service that a member is to hold. Those whose pods aren't assigned to nodes yet are kept free for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    /// The service.
    pub service: ServiceKey,
    /// What each group needs.
    pub request: Arc<GroupRequest>,
    /// Groups promised to this member in total, running ones included.
    pub groups: u32,
}

/// How many groups fit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Room {
    /// Groups that fit, those that run already included; at most as many as were wanted.
    pub groups: u32,
    /// Groups that would fit beyond those that were wanted.
    pub spare: u32,
    /// Why the next group doesn't fit; `None` when all that were wanted do.
    pub stopped_by: Option<Shortfall>,
    /// The count is exact. Otherwise pods that were promised room aren't assigned yet, and it is what is left if they
    /// take the worse of two ways.
    pub exact: bool,
    /// Constraints of the pods that were not simulated.
    pub unsimulated: Vec<String>,
}

/// Why no more groups fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// The kind of shortage.
    pub reason: Reason,
    /// What was needed and what was there.
    pub message: String,
    /// The resource that is short, if it is one.
    pub resource: Option<String>,
}

/// Whole groups of `service` that the member can hold, of `want`. Pods of the service itself that run already count as
/// room for it, also on nodes that take no new ones; what is promised to others and not assigned yet doesn't.
pub fn room(snapshot: &Snapshot, request: &GroupRequest, service: &ServiceKey, promises: &[Promise], want: u32, options: &Options) -> Room {
    let shape = match request.pods.as_slice() {
        [PodSet { shape, count: 1 }] if !shape.claims_devices => shape,
        [PodSet { count: 1, .. }] => return unknown("devices that pods claim by resourceClaims are not counted"),
        _ => return unknown("groups of several pods are not placed yet"),
    };
    let waiting = waiting(snapshot, service, promises);
    let table = Table::new(snapshot, service, shape, &waiting);
    let mut least: Option<(u64, Table<'_>)> = None;
    let orders: &[Order] = if waiting.is_empty() { &[Order::Packed] } else { &[Order::Packed, Order::Spread] };
    for order in orders {
        let mut table = table.clone();
        for waiting in &waiting {
            table.place(waiting, *order, *options);
        }
        table.give_back();
        let total = fill(&mut table, shape, service, *options);
        if least.as_ref().is_none_or(|(least, _)| total < *least) {
            least = Some((total, table));
        }
    }
    let Some((total, table)) = least else { return Room::default() };
    let total = u32::try_from(total).unwrap_or(u32::MAX);
    let groups = total.min(want);
    let stopped_by = (groups < want).then(|| {
        let promised = waiting.iter().map(super::fit::Waiting::pods).sum();
        explain(snapshot, shape, *options, &Rest { table: &table, service, promised, groups, want })
    });
    Room { groups, spare: total - groups, stopped_by, exact: waiting.is_empty(), unsimulated: shape.unsimulated.clone() }
}

fn unknown(message: &str) -> Room {
    let shortfall = Shortfall { reason: Reason::CapacityUnknown, message: message.to_owned(), resource: None };
    Room { stopped_by: Some(shortfall), ..Room::default() }
}

/// Puts as many pods as fit on nodes; what is left in the table is what stops the next one.
fn fill(table: &mut Table<'_>, shape: &PodShape, service: &ServiceKey, options: Options) -> u64 {
    let row = table.row(shape);
    let mut verdicts = Verdicts::new(shape, options);
    let mut total: u64 = 0;
    table.slots.retain_mut(|slot| {
        let pods = match verdicts.of(&slot.bucket.class, &slot.node.name) {
            Verdict::Usable => pods_on(slot, &row, shape, service),
            // What runs there stays, unless a taint drives it away.
            Verdict::Cordoned => return keep(slot, service, &mut total),
            Verdict::Tainted(taints) if taints.iter().all(|taint| taint.effect == "NoSchedule") => {
                return keep(slot, service, &mut total);
            }
            _ => return false,
        };
        total = total.saturating_add(pods.saturating_mul(u64::from(slot.count)));
        slot.filled = pods > 0;
        let pods = i64::try_from(pods).unwrap_or(i64::MAX);
        for (free, request) in slot.free.iter_mut().zip(&row) {
            *free = free.saturating_sub(request.saturating_mul(pods));
        }
        true
    });
    total
}

/// Pods of the shape that fit on each node of the slot.
fn pods_on(slot: &Slot<'_>, row: &[i64], shape: &PodShape, service: &ServiceKey) -> u64 {
    let fit = units(&slot.free, row);
    if !shape.one_per_node {
        return fit;
    }
    // One that is being deleted still keeps the next one away.
    if slot.is_left_by(service) { 0 } else { fit.min(1) }
}

/// Counts the pods that run on a node which takes no new ones; the node itself offers nothing.
fn keep(slot: &Slot<'_>, service: &ServiceKey, total: &mut u64) -> bool {
    *total = total.saturating_add(slot.node.held_by(service).map_or(0, |held| u64::from(held.pods)));
    false
}
