//! Counting how many pods fit on nodes, also after others have been placed.

use std::collections::HashMap;
use std::sync::Arc;

use super::pod::ServiceKey;
use super::resources::{Resources, is_extended};
use super::room::{Options, Promise};
use super::selection::Taint;
use super::shape::PodShape;
use super::snapshot::{Bucket, Class, Named, Node, Snapshot};

/// Set on a node while it is cordoned.
const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// What keeps a pod off a node, whatever is free there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Usable,
    /// Selector or affinity asks for other nodes.
    NotSelected,
    /// It offers none of this extended resource.
    NoDevices(String),
    NotReady,
    Cordoned,
    /// These are not tolerated.
    Tainted(Vec<Taint>),
}

/// Whether a pod may use a node of this class and name.
pub(super) fn verdict(class: &Class, name: &str, shape: &PodShape, options: Options) -> Verdict {
    if let Some(bound) = &shape.node_name {
        // Past the scheduler no other rule applies.
        return match (bound == name, class.ready) {
            (false, _) => Verdict::NotSelected,
            (true, false) => Verdict::NotReady,
            (true, true) => Verdict::Usable,
        };
    }
    if !shape.selection.matches(&Named { class, name }) {
        return Verdict::NotSelected;
    }
    if let Some((missing, _)) = shape.requests.iter().find(|(name, _)| is_extended(name) && class.allocatable.get(name) == 0) {
        return Verdict::NoDevices(missing.to_owned());
    }
    if !class.ready {
        return Verdict::NotReady;
    }
    let tolerated = |taint: &Taint| {
        shape.tolerations.iter().any(|toleration| toleration.covers(taint))
            || (options.extended_resource_toleration && taint.effect == "NoSchedule" && shape.tolerated_resources.contains(&taint.key))
    };
    let cordon = Taint { key: CORDONED.to_owned(), value: String::new(), effect: "NoSchedule".to_owned() };
    if class.unschedulable && !tolerated(&cordon) {
        return Verdict::Cordoned;
    }
    let hard = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    let (conditions, taints): (Vec<&Taint>, Vec<&Taint>) =
        class.taints.iter().filter(hard).filter(|taint| !tolerated(taint)).partition(|taint| taint.key.starts_with("node.kubernetes.io/"));
    if conditions.iter().any(|taint| taint.key == CORDONED) {
        Verdict::Cordoned
    } else if !conditions.is_empty() {
        Verdict::NotReady
    } else if !taints.is_empty() {
        Verdict::Tainted(taints.into_iter().cloned().collect())
    } else {
        Verdict::Usable
    }
}

/// Verdicts, asked for once per class of nodes.
pub(super) struct Verdicts<'a> {
    shape: &'a PodShape,
    options: Options,
    known: HashMap<*const Class, Verdict>,
}

impl<'a> Verdicts<'a> {
    pub(super) fn new(shape: &'a PodShape, options: Options) -> Self {
        Self { shape, options, known: HashMap::new() }
    }

    /// Whether nodes of one class differ for this shape.
    pub(super) fn by_name(&self, class: &Class) -> bool {
        self.shape.node_name.is_some() || self.shape.selection.looks_at_name(&class.name_labels)
    }

    pub(super) fn of(&mut self, class: &Arc<Class>, name: &str) -> Verdict {
        if self.by_name(class) {
            return verdict(class, name, self.shape, self.options);
        }
        self.known.entry(Arc::as_ptr(class)).or_insert_with(|| verdict(class, name, self.shape, self.options)).clone()
    }
}

/// Equal nodes with what is free on each of them.
#[derive(Clone, Debug)]
pub(super) struct Slot<'a> {
    pub(super) bucket: &'a Bucket,
    /// One of them; the others are alike for the shapes at hand.
    pub(super) node: &'a Node,
    pub(super) count: u32,
    /// Free amounts in the order of the table's columns.
    pub(super) free: Vec<i64>,
    /// What is free for the service itself besides: its own running pods. Empty without any.
    own: Vec<i64>,
    /// At least one pod of the shape was counted here.
    pub(super) filled: bool,
}

impl Slot<'_> {
    /// Whether a pod of the service is on its way out here.
    pub(super) fn is_left_by(&self, service: &ServiceKey) -> bool {
        self.node.held_by(service).is_some_and(|held| held.leaving > 0)
    }
}

/// The nodes that matter for some shapes, and what is free on them.
#[derive(Clone, Debug)]
pub(super) struct Table<'a> {
    columns: Vec<Arc<str>>,
    pub(super) slots: Vec<Slot<'a>>,
}

/// Pods that are promised room and have no node yet.
pub(super) struct Waiting<'a> {
    service: &'a ServiceKey,
    shape: &'a PodShape,
    pods: u64,
}

/// The part of promises that isn't assigned yet, in their order.
pub(super) fn waiting<'a>(snapshot: &Snapshot, service: &ServiceKey, promises: &'a [Promise]) -> Vec<Waiting<'a>> {
    let mut waiting = Vec::new();
    for promise in promises.iter().filter(|promise| promise.service != *service) {
        let mut assigned = u64::from(snapshot.assigned_pods(&promise.service));
        for set in &promise.request.pods {
            let pods = u64::from(promise.groups) * u64::from(set.count);
            let left = pods.saturating_sub(assigned);
            assigned = assigned.saturating_sub(pods);
            if left > 0 {
                waiting.push(Waiting { service: &promise.service, shape: &set.shape, pods: left });
            }
        }
    }
    waiting
}

impl Waiting<'_> {
    pub(super) fn pods(&self) -> u64 {
        self.pods
    }
}

/// How the pods of others are put on nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The fullest node first.
    Packed,
    /// The emptiest node first.
    Spread,
}

impl<'a> Table<'a> {
    /// The nodes of a snapshot. The pods of `service` hold their room until [`Table::give_back`].
    pub(super) fn new(snapshot: &'a Snapshot, service: &ServiceKey, shape: &'a PodShape, waiting: &[Waiting<'_>]) -> Self {
        let shapes: Vec<&PodShape> = std::iter::once(shape).chain(waiting.iter().map(|waiting| waiting.shape)).collect();
        let mut columns: Vec<Arc<str>> = shapes.iter().flat_map(|shape| shape.requests.names()).cloned().collect();
        columns.sort_unstable();
        columns.dedup();
        let by_name: Vec<Verdicts<'_>> = shapes.iter().map(|shape| Verdicts::new(shape, Options::default())).collect();
        // Nodes where pods of these services run differ from those of the same bucket where none does.
        let apart: Vec<&ServiceKey> =
            waiting.iter().filter(|waiting| waiting.shape.one_per_node).map(|waiting| waiting.service).chain([service]).collect();

        let mut slots = Vec::with_capacity(snapshot.buckets.len());
        for bucket in &snapshot.buckets {
            let free = |given_back: &Resources| -> Vec<i64> {
                let free = |name: &Arc<str>| {
                    let used = bucket.used.get(name).saturating_sub(given_back.get(name));
                    bucket.class.allocatable.get(name).saturating_sub(used).max(0)
                };
                columns.iter().map(free).collect()
            };
            let all_apart = by_name.iter().any(|verdicts| verdicts.by_name(&bucket.class));
            let some_apart = apart.iter().any(|service| bucket.holds(service));
            // Most buckets are taken as a whole, so that counting costs the same for one node and for a thousand.
            let is_apart = |node: &Node| all_apart || (some_apart && apart.iter().any(|service| node.held_by(service).is_some()));
            let searched = if all_apart || some_apart { bucket.nodes.as_slice() } else { &[] };
            let mut alike = bucket.nodes.len();
            for node in searched.iter().filter(|node| is_apart(node)) {
                alike -= 1;
                let now = free(&Resources::default());
                let own = node.held_by(service).map(|held| free(&held.requests).iter().zip(&now).map(|(with, now)| with - now).collect());
                slots.push(Slot { bucket, node, count: 1, free: now, own: own.unwrap_or_default(), filled: false });
            }
            if alike > 0
                && let Some(node) = bucket.nodes.iter().find(|node| !is_apart(node))
            {
                let count = u32::try_from(alike).unwrap_or(u32::MAX);
                slots.push(Slot { bucket, node, count, free: free(&Resources::default()), own: Vec::new(), filled: false });
            }
        }
        Self { columns, slots }
    }

    /// Lets the service have the room that its own pods hold, which nobody else could be put into.
    pub(super) fn give_back(&mut self) {
        for slot in &mut self.slots {
            for (free, own) in slot.free.iter_mut().zip(std::mem::take(&mut slot.own)) {
                *free = free.saturating_add(own);
            }
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

    /// Puts waiting pods on nodes, as many as there is room for.
    pub(super) fn place(&mut self, waiting: &Waiting<'_>, order: Order, options: Options) {
        let row = self.row(waiting.shape);
        let once = waiting.shape.one_per_node;
        let mut verdicts = Verdicts::new(waiting.shape, options);
        // Candidates with the number of pods that each of their nodes has room for.
        let mut open: Vec<(u64, usize)> = Vec::new();
        for (at, slot) in self.slots.iter().enumerate() {
            let room = units(&slot.free, &row);
            let taken = once && slot.node.held_by(waiting.service).is_some();
            if room > 0 && !taken && verdicts.of(&slot.bucket.class, &slot.node.name) == Verdict::Usable {
                open.push((room, at));
            }
        }
        let mut left = waiting.pods;
        while left > 0 {
            let best = match order {
                Order::Packed => open.iter().enumerate().min_by_key(|(_, (room, at))| (*room, *at)),
                Order::Spread => open.iter().enumerate().min_by_key(|(_, (room, at))| (std::cmp::Reverse(*room), *at)),
            };
            let Some((chosen, (room, at))) = best.map(|(chosen, entry)| (chosen, *entry)) else { return };
            let Some(slot) = self.slots.get_mut(at) else { return };
            // Pods for each node, and nodes that get that many.
            let each = if once || order == Order::Spread { 1 } else { room.min(left) };
            let nodes = u32::try_from(left / each).unwrap_or(u32::MAX).min(slot.count);
            left -= each * u64::from(nodes);
            let mut filled = slot.clone();
            filled.count = nodes;
            for (free, request) in filled.free.iter_mut().zip(&row) {
                *free = free.saturating_sub(request.saturating_mul(each.try_into().unwrap_or(i64::MAX)));
            }
            slot.count -= nodes;
            let emptied = slot.count == 0;
            let at_filled = if emptied {
                *slot = filled;
                at
            } else {
                self.slots.push(filled);
                self.slots.len() - 1
            };
            if emptied {
                open.swap_remove(chosen);
            }
            if room > each && !once {
                open.push((room - each, at_filled));
            }
        }
    }
}

/// How many pods with this request fit into what is free.
pub(super) fn units(free: &[i64], request: &[i64]) -> u64 {
    let rooms = free.iter().zip(request).filter(|(_, request)| **request > 0).map(|(free, request)| free / request);
    rooms.min().map_or(0, |room| u64::try_from(room).unwrap_or(0))
}
