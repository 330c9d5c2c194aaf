//! How many groups of a service fit in a member.

use std::sync::Arc;

use super::budget;
use super::fit::Verdicts;
use super::form::{Asked, Form};
use super::group;
use super::pod::ServiceKey;
use super::reservation::waiting;
use super::shape::{GroupRequest, PodShape};
use super::shortfall::{Rest, explain};
use super::snapshot::Snapshot;
use super::table::{Order, Table};
use super::topology::{self, Domains};
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;

/// What is special about a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The member's API server adds tolerations for requested extended resources.
    pub extended_resource_toleration: bool,
    /// Quotas of the member are no bound.
    pub ignore_quotas: bool,
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
    /// Groups that would fit beyond those that were wanted; where that takes long to find out, 0.
    pub spare: u32,
    /// Why the next group doesn't fit, or why not all that fit can be relied on; `None` when all that were wanted can.
    pub stopped_by: Option<Shortfall>,
    /// The count is exact. Otherwise it is a lower bound: pods that were promised room aren't assigned yet, and it is
    /// what is left if they take the worse of two ways; or leader and workers repel each other in a way that isn't known.
    pub exact: bool,
    /// The groups fit, but the member's scheduler, which takes pod by pod, could still place a leader where only a worker
    /// would have fitted.
    pub fragile: bool,
    /// Of the groups, those that also fit when all leaders go first, each to the emptiest node.
    pub robust: u32,
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

/// How many groups fit by one way of counting.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) total: u64,
    /// Of those that are wanted.
    pub(super) robust: u64,
    /// Pods of one shape that stay on nodes which take no new ones.
    pub(super) stay: u64,
    /// Leaders, and workers, that would fit without the other, where their shapes differ.
    pub(super) leaders_apart: u128,
    pub(super) workers_apart: u128,
    /// With an exclusive topology.
    pub(super) domains: Option<Domains>,
}

/// Whole groups of `service` that the member can hold, of `want`. Pods of the service itself that run already count as
/// room for it, also on nodes that take no new ones; what is promised to others and not assigned yet doesn't. A promise
/// to the service itself says that the member has its workload, though perhaps without pods.
pub fn room(snapshot: &Snapshot, request: &GroupRequest, service: &ServiceKey, promises: &[Promise], want: u32, options: &Options) -> Room {
    let form = match Form::of(request) {
        Ok(form) => form,
        Err(message) => return unknown(message),
    };
    let is_set = request.kind == WorkloadKind::LeaderWorkerSet;
    let topology = request.exclusive_topology.as_deref().filter(|_| is_set);
    let asked = Asked { service, form, kind: request.kind, topology, options: *options };
    let waiting = waiting(snapshot, service, promises);
    let table = Table::new(snapshot, &asked, &waiting);
    let mut least: Option<(Outcome, Table<'_>)> = None;
    let orders: &[Order] = if waiting.is_empty() { &[Order::Packed] } else { &[Order::Packed, Order::Spread] };
    let mut robust = u64::MAX;
    for order in orders {
        let mut table = table.clone();
        for waiting in &waiting {
            table.place(waiting, *order, *options);
        }
        let Some(outcome) = count(&mut table, &asked, want.into()) else {
            return unknown("there are too many ways to put leaders and workers on its nodes");
        };
        robust = robust.min(outcome.robust);
        if least.as_ref().is_none_or(|(least, _)| outcome.total < least.total) {
            least = Some((outcome, table));
        }
    }
    let Some((outcome, table)) = least else { return Room::default() };
    let bound = budget::tightest(snapshot, &asked, promises);
    let whole = |groups: u64| u32::try_from(groups).unwrap_or(u32::MAX);
    let admitted = bound.as_ref().map_or(u64::MAX, |bound| bound.groups);
    let total = whole(outcome.total.min(admitted));
    let groups = total.min(want);
    let robust = whole(robust).min(groups);
    let promised = waiting.iter().fold(0, |sum: u64, waiting| sum.saturating_add(waiting.pods()));
    let rest = Rest { table: &table, asked: &asked, outcome: &outcome, promised, groups, robust, want };
    let stopped_by = match bound {
        _ if robust < groups => Some(rest.fragile()),
        Some(bound) if groups < want && admitted < outcome.total => Some(rest.over(&bound)),
        _ => (groups < want).then(|| explain(snapshot, &rest)),
    };
    let repelled = matches!(form, Form::Two { leader, worker, .. } if leader.one_per_node || worker.one_per_node);
    let mut unsimulated: Vec<String> = form.shapes().flat_map(|shape| shape.unsimulated.iter().cloned()).collect();
    unsimulated.sort_unstable();
    unsimulated.dedup();
    Room {
        groups,
        spare: total - groups,
        stopped_by,
        exact: waiting.is_empty() && !repelled,
        fragile: robust < groups,
        robust,
        unsimulated,
    }
}

fn unknown(message: &str) -> Room {
    let shortfall = Shortfall { reason: Reason::CapacityUnknown, message: message.to_owned(), resource: None };
    Room { stopped_by: Some(shortfall), ..Room::default() }
}

/// Counts the groups that fit beside promised pods. What is left in the table of a single pod is what stops the next
/// one.
fn count(table: &mut Table<'_>, asked: &Asked<'_>, want: u64) -> Option<Outcome> {
    if asked.is_set() {
        table.close(asked.service);
    }
    if let Form::Alike { .. } = asked.form {
        table.give_back(asked);
    }
    match (asked.topology, asked.form) {
        (Some(key), _) => Some(topology::fit(table, asked, key, want)),
        (None, Form::Two { .. }) => group::fit(table, asked, want),
        (None, Form::Alike { shape, size }) => {
            let (new, stay) = fill(table, shape, asked, size == 1);
            let total = new.saturating_add(stay) / size;
            Some(Outcome { total, robust: total.min(want), stay, ..Outcome::default() })
        }
    }
}

/// Pods of one shape that fit, and that stay. They are put on nodes if `keep`, and nodes that take none are left out.
fn fill(table: &mut Table<'_>, shape: &PodShape, asked: &Asked<'_>, keep: bool) -> (u64, u64) {
    let row = table.row(shape);
    let mut verdicts = Verdicts::new(shape, asked.options);
    let (mut all_new, mut all_stay) = (0_u64, 0_u64);
    table.slots.retain_mut(|slot| {
        let verdict = verdicts.of(&slot.bucket.class, &slot.node.name);
        let (new, stay) = asked.pods_on(slot, &row, &verdict);
        all_new = all_new.saturating_add(new.saturating_mul(u64::from(slot.count)));
        all_stay = all_stay.saturating_add(stay.saturating_mul(u64::from(slot.count)));
        if keep {
            slot.filled = new > 0;
            let pods = i64::try_from(new).unwrap_or(i64::MAX);
            for (free, request) in slot.free.iter_mut().zip(&row) {
                *free = free.saturating_sub(request.saturating_mul(pods));
            }
        }
        verdict.is_usable() && !slot.closed
    });
    (all_new, all_stay)
}
