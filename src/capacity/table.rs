//! What is free on the nodes that matter for some pods, also after others have been placed.

use std::sync::Arc;

use super::fit::{Verdicts, units};
use super::form::Asked;
use super::pod::ServiceKey;
use super::reservation::Waiting;
use super::resources::Resources;
use super::room::Options;
use super::shape::PodShape;
use super::snapshot::{Bucket, Group, Node, Snapshot};

/// Equal nodes with what is free on each of them.
#[derive(Clone, Debug)]
pub(super) struct Slot<'a> {
    pub(super) bucket: &'a Bucket,
    /// One of them; the others are alike for the shapes at hand.
    pub(super) node: &'a Node,
    pub(super) count: u32,
    /// Free amounts in the order of the table's columns.
    pub(super) free: Vec<i64>,
    /// At least one pod of the shape was counted here.
    pub(super) filled: bool,
    /// A group that keeps others away has its leader in the same domain.
    pub(super) closed: bool,
    /// Services of whose groups promised pods were put here, and the key by which they keep others away.
    guests: Vec<(&'a ServiceKey, Option<&'a str>)>,
}

impl<'a> Slot<'a> {
    /// Whether a pod of the service is on its way out here.
    pub(super) fn is_left_by(&self, service: &ServiceKey) -> bool {
        self.node.held_by(service).is_some_and(|held| held.leaving > 0)
    }

    /// The value of a label, which names the domain of the nodes.
    pub(super) fn domain(&self, key: &str) -> Option<&'a str> {
        let class = &self.bucket.class;
        class.label(key).or_else(|| self.is_by_name(key).then_some(&*self.node.name))
    }

    /// Whether each node of the slot has a value of its own.
    pub(super) fn is_by_name(&self, key: &str) -> bool {
        self.bucket.class.name_labels.iter().any(|label| **label == *key)
    }

    /// Whether pods of groups of other services of the namespace are here, or are promised to come.
    pub(super) fn holds_others(&self, service: &ServiceKey) -> bool {
        self.node.groups.iter().any(|(group, _)| is_other(group, service))
            || self.guests.iter().any(|(guest, _)| guest.namespace == service.namespace)
    }
}

/// Whether it is a group of the same namespace and not of this service.
fn is_other(group: &Group, service: &ServiceKey) -> bool {
    group.namespace == service.namespace && group.service.as_deref() != Some(&*service.of_pods())
}

/// The nodes that matter for some shapes, and what is free on them.
#[derive(Clone, Debug)]
pub(super) struct Table<'a> {
    columns: Vec<Arc<str>>,
    pub(super) slots: Vec<Slot<'a>>,
}

/// How the pods of others are put on nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The fullest node first.
    Packed,
    /// The emptiest node first.
    Spread,
}

/// Pods that are put on nodes.
pub(super) struct Load<'a, 'r> {
    pub(super) row: &'r [i64],
    pub(super) pods: u64,
    /// A node takes one of them at most.
    pub(super) once: bool,
    /// The service and its topology, if they are pods of groups.
    pub(super) guest: Option<(&'a ServiceKey, Option<&'a str>)>,
}

impl<'a> Table<'a> {
    /// The nodes of a snapshot. The pods of the asking service hold their room until [`Table::give_back`].
    pub(super) fn new(snapshot: &'a Snapshot, asked: &Asked<'_>, waiting: &[Waiting<'_>]) -> Self {
        let shapes: Vec<&PodShape> = asked.form.shapes().chain(waiting.iter().flat_map(Waiting::shapes)).collect();
        let mut columns: Vec<Arc<str>> = shapes.iter().flat_map(|shape| shape.requests.names()).cloned().collect();
        columns.sort_unstable();
        columns.dedup();
        let by_name: Vec<Verdicts<'_>> = shapes.iter().map(|shape| Verdicts::new(shape, Options::default())).collect();
        // Nodes where pods of these services run differ from those of the same bucket where none does.
        let mut apart: Vec<&ServiceKey> = waiting.iter().filter(|waiting| waiting.looks_at_own()).map(Waiting::service).collect();
        apart.push(asked.service);
        // So do those with groups that keep others away, or that are kept away.
        let mut groups: Vec<(&ServiceKey, bool)> =
            waiting.iter().filter(|waiting| waiting.is_set()).map(|waiting| (waiting.service(), waiting.topology().is_some())).collect();
        if asked.is_set() {
            groups.push((asked.service, asked.topology.is_some()));
        }

        let mut slots = Vec::with_capacity(snapshot.buckets.len());
        for bucket in &snapshot.buckets {
            let slot = |node, count| {
                let free = columns.iter().map(|name| free(bucket, name, &[])).collect();
                Slot { bucket, node, count, free, filled: false, closed: false, guests: Vec::new() }
            };
            let all_apart = by_name.iter().any(|verdicts| verdicts.by_name(&bucket.class));
            let some_apart = apart.iter().any(|service| bucket.holds(service));
            let some_groups = groups.iter().any(|(service, _)| bucket.holds_groups(&service.namespace));
            // Most buckets are taken as a whole, so that counting costs the same for one node and for a thousand.
            let has_groups = |node: &Node| {
                let matters = |group: &Group| {
                    groups.iter().any(|(service, exclusive)| is_other(group, service) && (*exclusive || group.exclusive_topology.is_some()))
                };
                node.groups.iter().any(|(group, _)| matters(group))
            };
            let is_apart = |node: &Node| {
                all_apart
                    || (some_apart && apart.iter().any(|service| node.held_by(service).is_some()))
                    || (some_groups && has_groups(node))
            };
            let searched = if all_apart || some_apart || some_groups { bucket.nodes.as_slice() } else { &[] };
            let mut alike = bucket.nodes.len();
            for node in searched.iter().filter(|node| is_apart(node)) {
                alike -= 1;
                slots.push(slot(node, 1));
            }
            if alike > 0
                && let Some(node) = bucket.nodes.iter().find(|node| !is_apart(node))
            {
                slots.push(slot(node, u32::try_from(alike).unwrap_or(u32::MAX)));
            }
        }
        Self { columns, slots }
    }

    /// Lets the service have the room that its own pods hold, which nobody else could be put into.
    pub(super) fn give_back(&mut self, asked: &Asked<'_>) {
        let Self { columns, slots } = self;
        for slot in slots {
            if let Some(held) = slot.node.held_by(asked.service) {
                // The pods of a StatefulSet come again only when those before them are gone.
                let leaving = asked.is_set().then_some(&held.leaving_requests);
                let given: Vec<&Resources> = leaving.into_iter().chain([&held.requests]).collect();
                give(&mut slot.free, columns, slot.bucket, &given);
            }
        }
    }

    /// What is free on a node of the slot if the service's pods that leave are gone, and those that stay as well if
    /// `all`.
    pub(super) fn given_back(&self, slot: &Slot<'_>, service: &ServiceKey, all: bool) -> Vec<i64> {
        let mut free = slot.free.clone();
        if let Some(held) = slot.node.held_by(service) {
            let given: Vec<&Resources> = std::iter::once(&held.leaving_requests).chain(all.then_some(&held.requests)).collect();
            give(&mut free, &self.columns, slot.bucket, &given);
        }
        free
    }

    /// Closes nodes to the service where groups of others of its namespace, running or promised, keep it away. Its own
    /// leaders stay where they are.
    pub(super) fn close(&mut self, service: &ServiceKey) {
        let mut closed: Vec<(&str, &str)> = Vec::new();
        for slot in &self.slots {
            let running = slot.node.groups.iter().filter(|(group, leads)| *leads && is_other(group, service));
            let promised = slot.guests.iter().filter(|(guest, _)| guest.namespace == service.namespace);
            let keys = running.filter_map(|(group, _)| group.exclusive_topology.as_deref()).chain(promised.filter_map(|(_, key)| *key));
            closed.extend(keys.filter_map(|key| Some((key, slot.domain(key)?))));
        }
        closed.sort_unstable();
        closed.dedup();
        for slot in &mut self.slots {
            slot.closed = closed.iter().any(|(key, domain)| slot.domain(key) == Some(domain));
        }
    }

    /// The request of a shape in the order of the columns.
    pub(super) fn row(&self, shape: &PodShape) -> Vec<i64> {
        self.columns.iter().map(|name| shape.requests.get(name)).collect()
    }

    /// The columns.
    pub(super) fn columns(&self) -> &[Arc<str>] {
        &self.columns
    }

    /// Puts pods on the nodes that may take them, as many as there is room for, and tells how many found none.
    pub(super) fn put(&mut self, load: &Load<'a, '_>, order: Order, mut may: impl FnMut(&Slot<'_>) -> bool) -> u64 {
        // Candidates with the number of pods that each of their nodes has room for.
        let mut open: Vec<(u64, usize)> = Vec::new();
        for (at, slot) in self.slots.iter().enumerate() {
            let room = units(&slot.free, load.row);
            if room > 0 && may(slot) {
                open.push((room, at));
            }
        }
        let mut left = load.pods;
        match order {
            Order::Spread if load.once => open.sort_unstable_by_key(|(room, at)| (std::cmp::Reverse(*room), *at)),
            Order::Spread => {
                left = self.level(load, &open, left);
                open.clear();
            }
            Order::Packed => open.sort_unstable(),
        }
        for (room, at) in open {
            let Some(count) = self.slots.get(at).map(|slot| slot.count).filter(|_| left > 0) else { break };
            let each = if load.once { 1 } else { room };
            let nodes = u32::try_from(left / each).unwrap_or(u32::MAX).min(count);
            self.take(at, nodes, each, load);
            left -= each * u64::from(nodes);
            if nodes < count && left > 0 {
                self.take(at, 1, left, load);
                left = 0;
            }
        }
        left
    }

    /// Puts pods one by one on the node with most room left, and tells how many found none.
    fn level(&mut self, load: &Load<'a, '_>, open: &[(u64, usize)], pods: u64) -> u64 {
        let count = |at: usize| self.slots.get(at).map_or(0, |slot| u128::from(slot.count));
        let above = |level: u64| open.iter().map(|(room, at)| count(*at) * u128::from(room.saturating_sub(level))).sum::<u128>();
        // In the end no node has more room than this, but for those that the last pods don't suffice for.
        let (mut low, mut high) = (0, open.iter().map(|(room, _)| *room).max().unwrap_or_default());
        while low < high {
            let middle = low + (high - low) / 2;
            if above(middle) <= u128::from(pods) { high = middle } else { low = middle + 1 }
        }
        let mut left = pods.saturating_sub(u64::try_from(above(low)).unwrap_or(u64::MAX));
        for (room, at) in open.iter().filter(|(room, _)| *room >= low) {
            let Some(count) = self.slots.get(*at).map(|slot| slot.count) else { continue };
            let more = if low > 0 { u32::try_from(left).unwrap_or(u32::MAX).min(count) } else { 0 };
            left -= u64::from(more);
            self.take(*at, more, room - low + 1, load);
            if more < count {
                self.take(*at, count - more, room - low, load);
            }
        }
        left
    }

    /// Takes the room of `each` pods off so many nodes of a slot, and tells the slot where they are.
    pub(super) fn take(&mut self, at: usize, nodes: u32, each: u64, load: &Load<'a, '_>) -> usize {
        let Some(slot) = self.slots.get_mut(at).filter(|_| nodes > 0 && each > 0) else { return at };
        let mut taken = slot.clone();
        taken.count = nodes;
        let each = i64::try_from(each).unwrap_or(i64::MAX);
        for (free, request) in taken.free.iter_mut().zip(load.row) {
            *free = free.saturating_sub(request.saturating_mul(each));
        }
        taken.guests.extend(load.guest);
        slot.count -= nodes;
        if slot.count == 0 {
            *slot = taken;
            at
        } else {
            self.slots.push(taken);
            self.slots.len() - 1
        }
    }

    /// Puts promised pods on nodes, as many as there is room for.
    pub(super) fn place(&mut self, waiting: &Waiting<'a>, order: Order, options: Options) {
        if waiting.is_set() {
            self.close(waiting.service());
        }
        match waiting {
            Waiting::Pods(pods) => {
                let mut verdicts = Verdicts::new(pods.shape, options);
                let once = pods.shape.one_per_node;
                let load =
                    Load { row: &self.row(pods.shape), pods: pods.count, once, guest: pods.in_groups.then_some((pods.service, None)) };
                self.put(&load, order, |slot| {
                    let taken = once && slot.node.held_by(pods.service).is_some();
                    !taken && !slot.closed && verdicts.of(&slot.bucket.class, &slot.node.name).is_usable()
                });
            }
            Waiting::Groups(groups) => super::topology::place(self, groups, order, options),
        }
    }
}

/// What is free of a resource on each node of a bucket without what is given back.
fn free(bucket: &Bucket, name: &Arc<str>, given: &[&Resources]) -> i64 {
    let given = given.iter().fold(0_i64, |sum, given| sum.saturating_add(given.get(name)));
    let used = bucket.used.get(name).saturating_sub(given);
    bucket.class.allocatable.get(name).saturating_sub(used).max(0)
}

/// Adds what is given back on a node to what is free there. Where more is used than there is, less comes back.
fn give(free_now: &mut [i64], columns: &[Arc<str>], bucket: &Bucket, given: &[&Resources]) {
    for (now, name) in free_now.iter_mut().zip(columns) {
        *now = now.saturating_add(free(bucket, name, given).saturating_sub(free(bucket, name, &[])));
    }
}
