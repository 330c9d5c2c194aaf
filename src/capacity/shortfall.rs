//! Why no more groups fit, in words and numbers.

use std::fmt::Write;

use super::budget::Bound;
use super::census::Census;
use super::fit::{Verdicts, units};
use super::form::{Asked, Form};
use super::resources::{PODS, display, display_free, is_extended};
use super::room::{Outcome, Shortfall};
use super::shape::PodShape;
use super::snapshot::Snapshot;
use super::table::{Load, Order, Slot, Table};
use super::topology::Domains;
use crate::api::labels::ACCELERATOR_MODEL;
use crate::api::reason::Reason;

/// Free blocks that are listed.
const BLOCKS: usize = 3;

/// What is left after as many groups as fit have been placed.
pub(super) struct Rest<'a> {
    /// The nodes; for a single pod only the usable ones, less what was placed.
    pub(super) table: &'a Table<'a>,
    pub(super) asked: &'a Asked<'a>,
    pub(super) outcome: &'a Outcome,
    /// Pods of other services that were placed first.
    pub(super) promised: u64,
    pub(super) groups: u32,
    /// Of the groups, those that can be relied on.
    pub(super) robust: u32,
    pub(super) want: u32,
}

impl Rest<'_> {
    /// `1 of 2 groups fit`, and what else belongs to every answer.
    fn finish(&self, shortfall: Shortfall, is_about_nodes: bool) -> Shortfall {
        let Shortfall { reason, mut message, resource } = shortfall;
        let noun = if self.asked.is_set() { "groups" } else { "replicas" };
        let _ = write!(message, "; {} of {} {noun} fit", self.groups, self.want);
        if self.promised > 0 && is_about_nodes {
            let (pods, wait) = if self.promised == 1 { ("pod", "is") } else { ("pods", "are") };
            let _ = write!(message, "; {} {pods} of other services {wait} promised room and not assigned yet", self.promised);
        }
        let mut unsimulated: Vec<&str> = self.asked.form.shapes().flat_map(|shape| &shape.unsimulated).map(String::as_str).collect();
        unsimulated.sort_unstable();
        unsimulated.dedup();
        if !unsimulated.is_empty() {
            let _ = write!(message, "; not simulated: {}", unsimulated.join(", "));
        }
        Shortfall { reason, message, resource }
    }

    /// A quota admits fewer groups than there is room for.
    pub(super) fn over(&self, bound: &Bound) -> Shortfall {
        let (message, resource) = (bound.message.clone(), Some(bound.resource.clone()));
        self.finish(Shortfall { reason: Reason::QuotaExceeded, message, resource }, false)
    }

    /// Groups fit, but not whichever way the scheduler goes.
    pub(super) fn fragile(&self) -> Shortfall {
        let message = match (self.asked.topology, self.outcome.domains) {
            (Some(key), Some(domains)) => format!(
                "{} of {key} {} room for a leader but not for its group, and the scheduler may choose it",
                values(domains.traps),
                if domains.traps == 1 { "has" } else { "have" }
            ),
            _ => format!(
                "needs {}; a leader may take the place that a worker needs: if leaders go to the emptiest nodes first, {} of {} groups fit",
                group_of(self.asked.form),
                self.robust,
                self.groups
            ),
        };
        self.finish(Shortfall { reason: Reason::Fragile, message, resource: None }, true)
    }
}

/// What stops the next group.
pub(super) fn explain(snapshot: &Snapshot, rest: &Rest<'_>) -> Shortfall {
    let mut usable = true;
    let mut out_of_order: Vec<String> = Vec::new();
    for (at, shape) in rest.asked.form.shapes().enumerate() {
        let census = Census::take(snapshot, shape, rest.asked.options);
        if let Some(mut blocked) = census.blocked(snapshot, shape) {
            if let Form::Two { .. } = rest.asked.form {
                blocked.message = format!("{}: {}", if at == 0 { "leader" } else { "workers" }, blocked.message);
            }
            return rest.finish(blocked, census.usable > 0);
        }
        usable &= census.usable > 0;
        out_of_order.extend(census.out_of_order());
    }
    out_of_order.dedup();
    let mut shortfall = match (rest.asked.topology, rest.outcome.domains, rest.asked.form) {
        (Some(key), Some(domains), form) => no_domain(key, domains, form),
        (_, _, Form::Alike { shape, size: 1 }) => no_node(shape, rest),
        (_, _, Form::Alike { shape, size }) => no_nodes(shape, size, rest),
        (_, _, form @ Form::Two { workers, .. }) => not_both(form, workers, rest),
    };
    for part in out_of_order {
        let _ = write!(shortfall.message, "; {part}");
    }
    rest.finish(shortfall, usable)
}

/// What a pod asks for: `8 amd.com/gpu (mi300x), 32 cpu`.
fn ask_of(shape: &PodShape) -> String {
    let amounts: Vec<String> = shape
        .requests
        .iter()
        .filter(|(name, _)| *name != PODS)
        .map(|(name, amount)| format!("{} {name}{}", display(name, amount), if is_extended(name) { model(shape) } else { String::new() }))
        .collect();
    if amounts.is_empty() { "nothing but a place".to_owned() } else { amounts.join(", ") }
}

/// What a group asks for.
fn group_of(form: Form<'_>) -> String {
    let pods = |count: u64, noun: &str| if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") };
    match form {
        Form::Alike { shape, size } => format!("{} with {}", pods(size, "pod"), ask_of(shape)),
        Form::Two { leader, worker, workers } => {
            format!("a leader with {} and {} with {}", ask_of(leader), pods(workers, "worker"), ask_of(worker))
        }
    }
}

/// The model of accelerator that a pod selects, in brackets.
fn model(shape: &PodShape) -> String {
    let selected = shape.selection.labels.iter().find(|(key, _)| key == ACCELERATOR_MODEL);
    selected.map(|(_, model)| format!(" ({model})")).unwrap_or_default()
}

fn values(count: u64) -> String {
    if count == 1 { "1 value".to_owned() } else { format!("{count} values") }
}

fn no_domain(key: &str, domains: Domains, form: Form<'_>) -> Shortfall {
    let mut message = if domains.all == 0 {
        format!("no node that can take the pods has the label {key}")
    } else {
        format!("needs one more value of {key} that no other group holds, with room for {}; {} in all", group_of(form), values(domains.all))
    };
    if domains.taken > 0 {
        let _ = write!(message, ", {} held by other groups", domains.taken);
    }
    if domains.traps > 0 {
        let _ = write!(message, ", {} with room for a leader only", domains.traps);
    }
    Shortfall { reason: Reason::InsufficientRoom, message, resource: None }
}

/// Leaders and workers fit apart, or not even that.
fn not_both(form: Form<'_>, workers: u64, rest: &Rest<'_>) -> Shortfall {
    let (leader, worker) = (form.leader(), form.worker());
    let rows = [rest.table.row(leader), rest.table.row(worker)];
    let mut verdicts = [leader, worker].map(|shape| Verdicts::new(shape, rest.asked.options));
    let mut usable = |slot: &&Slot<'_>| verdicts.iter_mut().any(|of| of.of(&slot.bucket.class, &slot.node.name).is_usable());
    let open = rest.table.slots.iter().filter(|slot| !slot.closed && usable(slot));
    let mut sums = vec![0_i128; rest.table.columns().len()];
    for slot in open {
        for (sum, free) in sums.iter_mut().zip(rest.table.given_back(slot, rest.asked.service, true)) {
            *sum += i128::from(free) * i128::from(slot.count);
        }
    }
    let next = i128::from(rest.groups) + 1;
    let [of_leader, of_worker] = rows;
    let needs =
        of_leader.into_iter().zip(of_worker).map(|(leader, worker)| (i128::from(leader) + i128::from(worker) * i128::from(workers)) * next);
    // Of the resources that don't suffice taken together a device is what people plan by.
    let short = rest.table.columns().iter().zip(sums.into_iter().zip(needs)).filter(|(_, (sum, need))| sum < need).map(|(name, _)| name);
    let short = short.max_by_key(|name| is_extended(name));
    Shortfall {
        reason: if short.is_some() { Reason::InsufficientRoom } else { Reason::Fragmented },
        message: format!(
            "needs {}; apart there is room for {} leaders or {} workers",
            group_of(form),
            rest.outcome.leaders_apart,
            rest.outcome.workers_apart
        ),
        resource: short.map(ToString::to_string),
    }
}

/// What stops the next single pod. The table is without all that fit.
fn no_node(shape: &PodShape, rest: &Rest<'_>) -> Shortfall {
    let more = if rest.groups > 0 { "1 more node" } else { "1 node" };
    // A node that holds one already has no place for another that repels it.
    let open = |slot: &&Slot<'_>| !(shape.one_per_node && (slot.filled || slot.is_left_by(rest.asked.service)));
    let open: Vec<&Slot<'_>> = rest.table.slots.iter().filter(open).collect();
    let Some(stopper) = Stopper::find(rest.table, &open, shape) else { return at_most_one(more) };
    let reason = if stopper.total(rest.table) < i128::from(stopper.request) { Reason::InsufficientRoom } else { Reason::Fragmented };
    let mut message = format!("needs {more} with {}", stopper.ask(rest.table, shape));
    let _ = write!(message, "; largest free: {}", stopper.largest(rest.table, &open, shape));
    Shortfall { reason, message, resource: Some(stopper.name.to_owned()) }
}

/// What stops the next group of several pods of one shape. The table is without its own pods.
fn no_nodes(shape: &PodShape, size: u64, rest: &Rest<'_>) -> Shortfall {
    let row = rest.table.row(shape);
    let placed = |pods: u64| {
        let mut table = rest.table.clone();
        let load = Load { row: &row, pods, once: shape.one_per_node, guest: None };
        table.put(&load, Order::Packed, |_| true);
        table
    };
    let whole = u64::from(rest.groups).saturating_mul(size).saturating_sub(rest.outcome.stay);
    let (left, full) = (placed(whole), placed(u64::MAX));
    let all = |table: &Table<'_>| table.slots.iter().map(|slot| u128::from(units(&slot.free, &row)) * u128::from(slot.count)).sum::<u128>();
    let more = if rest.groups > 0 { "more " } else { "" };
    if shape.one_per_node {
        return at_most_one(&format!("{size} {more}nodes"));
    }
    let Some(stopper) = Stopper::find(&full, &full.slots.iter().collect::<Vec<_>>(), shape) else { return at_most_one("more nodes") };
    let needed = i128::from(stopper.request) * i128::from(size);
    let reason = if stopper.total(&left) < needed { Reason::InsufficientRoom } else { Reason::Fragmented };
    // Where no node could ever take two of them, people count nodes.
    let two = |slot: &Slot<'_>| slot.bucket.class.allocatable.get(stopper.name) / 2 >= stopper.request;
    let noun = if left.slots.iter().any(two) { "places" } else { "nodes" };
    let mut message = format!("needs {size} {more}{noun} with {}, has {}", stopper.ask(&left, shape), all(&left));
    let _ = write!(message, "; largest free: {}", stopper.largest(&left, &left.slots.iter().collect::<Vec<_>>(), shape));
    Shortfall { reason, message, resource: Some(stopper.name.to_owned()) }
}

fn at_most_one(more: &str) -> Shortfall {
    let message = format!("needs {more}, since a node takes one of these pods at most");
    Shortfall { reason: Reason::InsufficientRoom, message, resource: None }
}

/// The resource that keeps most nodes from taking one more pod.
struct Stopper<'a> {
    at: usize,
    name: &'a str,
    request: i64,
    row: Vec<i64>,
}

impl<'a> Stopper<'a> {
    /// Of equals a device, since it is what people plan by.
    fn find(table: &'a Table<'_>, open: &[&Slot<'_>], shape: &PodShape) -> Option<Self> {
        let row = table.row(shape);
        let blocked =
            |at: usize, request: i64| open.iter().filter(|slot| lacks(slot, at, request)).map(|slot| u64::from(slot.count)).sum::<u64>();
        let columns = table.columns().iter().zip(&row).enumerate().filter(|(_, (_, request))| **request > 0);
        let (_, _, std::cmp::Reverse(at), name, request) = columns
            .map(|(at, (name, request))| (blocked(at, *request), is_extended(name), std::cmp::Reverse(at), &**name, *request))
            .filter(|(blocked, ..)| *blocked > 0)
            .max_by_key(|(blocked, extended, at, ..)| (*blocked, *extended, *at))?;
        Some(Self { at, name, request, row })
    }

    /// What is free of it on all nodes.
    fn total(&self, table: &Table<'_>) -> i128 {
        let free = |slot: &Slot<'_>| i128::from(slot.free.get(self.at).copied().unwrap_or_default()) * i128::from(slot.count);
        table.slots.iter().map(free).sum()
    }

    /// `8 free amd.com/gpu (mi300x) beside 1 mellanox/hca`
    fn ask(&self, table: &Table<'_>, shape: &PodShape) -> String {
        let mut ask = format!("{} free {}{}", display(self.name, self.request), self.name, model(shape));
        let others = table.columns().iter().zip(&self.row).enumerate();
        let beside: Vec<String> = others
            .filter(|(at, (name, request))| *at != self.at && **request > 0 && is_extended(name))
            .map(|(_, (name, request))| format!("{request} {name}"))
            .collect();
        if !beside.is_empty() {
            let _ = write!(ask, " beside {}", beside.join(" and "));
        }
        ask
    }

    /// The largest free blocks of it: `8,4,4`.
    fn largest(&self, table: &Table<'_>, open: &[&Slot<'_>], shape: &PodShape) -> String {
        let row = table.row(shape);
        // Nodes that have enough of all else show best how near it is.
        let others_suffice = |slot: &&&Slot<'_>| row.iter().enumerate().all(|(at, request)| at == self.at || !lacks(slot, at, *request));
        let mut near: Vec<&&Slot<'_>> = open.iter().filter(others_suffice).collect();
        if near.is_empty() {
            near = open.iter().collect();
        }
        let mut blocks: Vec<(i64, u32)> =
            near.iter().map(|slot| (slot.free.get(self.at).copied().unwrap_or_default(), slot.count)).collect();
        blocks.sort_unstable_by_key(|(free, _)| std::cmp::Reverse(*free));
        let blocks = blocks.into_iter().flat_map(|(free, count)| std::iter::repeat_n(free, (count as usize).min(BLOCKS)));
        let largest: Vec<String> = blocks.take(BLOCKS).map(|free| display_free(self.name, free)).collect();
        largest.join(",")
    }
}

fn lacks(slot: &Slot<'_>, at: usize, request: i64) -> bool {
    slot.free.get(at).is_some_and(|free| *free < request)
}
