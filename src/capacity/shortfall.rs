//! Why no more pods fit, in words and numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::accelerators;
use super::fit::{Slot, Table, Verdict, Verdicts};
use super::pod::ServiceKey;
use super::resources::{display, display_free, is_extended};
use super::room::{Options, Shortfall};
use super::shape::PodShape;
use super::snapshot::{Class, Named, Snapshot};
use crate::api::labels::ACCELERATOR_MODEL;
use crate::api::reason::Reason;

/// Free blocks that are listed.
const BLOCKS: usize = 3;
/// Taints that are listed.
const TAINTS: usize = 3;

/// What is left after as many pods as fit have been placed.
pub(super) struct Rest<'a> {
    /// The usable nodes.
    pub(super) table: &'a Table<'a>,
    pub(super) service: &'a ServiceKey,
    /// Pods of other services that were placed first.
    pub(super) promised: u64,
    pub(super) groups: u32,
    pub(super) want: u32,
}

/// How many nodes there are of each kind.
#[derive(Default)]
struct Census {
    selected: usize,
    /// Selected, and missing this resource.
    without: BTreeMap<String, usize>,
    /// Selected and labelled as having an accelerator, but offering none at all.
    labelled: usize,
    label: Option<String>,
    usable: usize,
    tainted: usize,
    taints: BTreeSet<String>,
    cordoned: usize,
    not_ready: usize,
}

impl Census {
    fn take(snapshot: &Snapshot, shape: &PodShape, options: Options) -> Self {
        let mut census = Self::default();
        let mut verdicts = Verdicts::new(shape, options);
        for bucket in &snapshot.buckets {
            if verdicts.by_name(&bucket.class) {
                for node in &bucket.nodes {
                    census.count(&bucket.class, verdicts.of(&bucket.class, &node.name), 1);
                }
            } else {
                census.count(&bucket.class, verdicts.of(&bucket.class, bucket.first_name()), bucket.nodes.len());
            }
        }
        census
    }

    fn count(&mut self, class: &Class, verdict: Verdict, nodes: usize) {
        self.selected += nodes;
        match verdict {
            Verdict::NotSelected => self.selected -= nodes,
            Verdict::NoDevices(resource) => {
                if let Some((key, value)) = accelerators::label(class).filter(|_| !accelerators::offered(class)) {
                    self.labelled += nodes;
                    self.label.get_or_insert_with(|| format!("{key}={value}"));
                }
                *self.without.entry(resource).or_default() += nodes;
            }
            Verdict::Usable => self.usable += nodes,
            Verdict::NotReady => self.not_ready += nodes,
            Verdict::Cordoned => self.cordoned += nodes,
            Verdict::Tainted(taints) => {
                self.tainted += nodes;
                self.taints.extend(taints.iter().map(ToString::to_string));
            }
        }
    }

    fn without_devices(&self) -> usize {
        self.without.values().sum()
    }

    /// `gpu=reserved:NoSchedule, sku=gpu:NoSchedule`
    fn taints(&self) -> String {
        let mut listed = self.taints.iter().take(TAINTS).cloned().collect::<Vec<_>>().join(", ");
        if self.taints.len() > TAINTS {
            let _ = write!(listed, " and {} more", self.taints.len() - TAINTS);
        }
        listed
    }

    /// Nodes that would count if they were in order: `1 node is cordoned`.
    fn out_of_order(&self) -> Vec<String> {
        let mut parts = Vec::new();
        if self.tainted > 0 {
            parts.push(format!("{} tainted {}, which the pods don't tolerate", are(self.tainted), self.taints()));
        }
        if self.cordoned > 0 {
            parts.push(format!("{} cordoned", are(self.cordoned)));
        }
        if self.not_ready > 0 {
            parts.push(format!("{} not ready", are(self.not_ready)));
        }
        parts
    }
}

fn nodes(count: usize) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") }
}

fn are(count: usize) -> String {
    format!("{} {}", nodes(count), if count == 1 { "is" } else { "are" })
}

/// What stops the next pod.
pub(super) fn explain(snapshot: &Snapshot, shape: &PodShape, options: Options, rest: &Rest<'_>) -> Shortfall {
    let census = Census::take(snapshot, shape, options);
    let (reason, resource, mut message) = if census.selected == 0 {
        (Reason::NoSuchAccelerator, None, not_selected(snapshot, shape))
    } else if census.without_devices() == census.selected {
        let resource = census.without.keys().next().cloned().unwrap_or_default();
        match &census.label {
            Some(label) => {
                let message = format!("{} labelled {label}, but without {resource}: is the device plugin running?", are(census.labelled));
                (Reason::LabelWithoutDevices, Some(resource), message)
            }
            None => (Reason::NoSuchAccelerator, Some(resource.clone()), format!("no node{} offers {resource}", that_match(shape))),
        }
    } else if census.usable == 0 && census.tainted > 0 {
        (Reason::NodesTainted, None, census.out_of_order().join("; "))
    } else if census.usable == 0 {
        (Reason::NodesUnavailable, None, census.out_of_order().join("; "))
    } else {
        let (reason, resource, mut message) = no_room(shape, rest);
        for part in census.out_of_order() {
            let _ = write!(message, "; {part}");
        }
        (reason, resource, message)
    };
    let _ = write!(message, "; {} of {} replicas fit", rest.groups, rest.want);
    if rest.promised > 0 && census.usable > 0 {
        let (pods, wait) = if rest.promised == 1 { ("pod", "is") } else { ("pods", "are") };
        let _ = write!(message, "; {} {pods} of other services {wait} promised room and not assigned yet", rest.promised);
    }
    if !shape.unsimulated.is_empty() {
        let _ = write!(message, "; not simulated: {}", shape.unsimulated.join(", "));
    }
    Shortfall { reason, message, resource }
}

fn not_selected(snapshot: &Snapshot, shape: &PodShape) -> String {
    if let Some(name) = &shape.node_name {
        return format!("there is no node {name}");
    }
    if snapshot.buckets.is_empty() {
        return "the member has no nodes".to_owned();
    }
    // The labels that no node has at all say more than the whole selector.
    let nowhere = |key: &str, value: &str| {
        !snapshot.buckets.iter().any(|bucket| {
            let has = |name: &str| super::selection::Labelled::label(&Named { class: &bucket.class, name }, key) == Some(value);
            has(bucket.first_name())
                || (bucket.class.name_labels.iter().any(|label| **label == *key) && bucket.nodes.iter().any(|node| has(&node.name)))
        })
    };
    let absent: Vec<String> =
        shape.selection.labels.iter().filter(|(key, value)| nowhere(key, value)).map(|(key, value)| format!("{key}={value}")).collect();
    if absent.is_empty() { format!("no node matches {}", shape.selection.describe()) } else { format!("no node has {}", absent.join(", ")) }
}

fn that_match(shape: &PodShape) -> String {
    let selection = shape.selection.describe();
    if selection.is_empty() { selection } else { format!(" that matches {selection}") }
}

fn no_room(shape: &PodShape, rest: &Rest<'_>) -> (Reason, Option<String>, String) {
    let row = rest.table.row(shape);
    let columns = || rest.table.columns().iter().zip(&row).enumerate().filter(|(_, (_, request))| **request > 0);
    let more = if rest.groups > 0 { "1 more node" } else { "1 node" };
    // A node that holds one already has no place for another that repels it.
    let open: Vec<&Slot<'_>> =
        rest.table.slots.iter().filter(|slot| !(shape.one_per_node && (slot.filled || slot.is_left_by(rest.service)))).collect();
    let weigh = |slots: &mut dyn Iterator<Item = &&Slot<'_>>| slots.map(|slot| u64::from(slot.count)).sum::<u64>();
    let lacks = |slot: &Slot<'_>, at: usize, request: i64| slot.free.get(at).is_some_and(|free| *free < request);
    let blocked = |at: usize, request: i64| weigh(&mut open.iter().filter(|slot| lacks(slot, at, request)));

    // The resource that keeps most nodes from taking one more; of equals a device, since it is what people plan by.
    let stopper = columns()
        .map(|(at, (name, request))| (blocked(at, *request), is_extended(name), at, name, *request))
        .filter(|(blocked, ..)| *blocked > 0)
        .max_by_key(|(blocked, extended, at, ..)| (*blocked, *extended, std::cmp::Reverse(*at)));
    let Some((_, _, at, name, request)) = stopper else {
        let message = format!("needs {more}, since a node takes one of these pods at most");
        return (Reason::InsufficientRoom, None, message);
    };
    let total: i64 = rest
        .table
        .slots
        .iter()
        .fold(0, |sum, slot| sum.saturating_add(slot.free.get(at).copied().unwrap_or_default().saturating_mul(i64::from(slot.count))));
    let reason = if total < request { Reason::InsufficientRoom } else { Reason::Fragmented };

    let mut beside: Vec<String> = columns()
        .filter(|(other, (name, _))| *other != at && is_extended(name))
        .map(|(_, (name, request))| format!("{request} {name}"))
        .collect();
    // Nodes that have enough of all else show best how near it is.
    let others_suffice = |slot: &&&Slot<'_>| columns().all(|(other, (_, request))| other == at || !lacks(slot, other, *request));
    let mut near: Vec<&&Slot<'_>> = open.iter().filter(others_suffice).collect();
    if near.is_empty() {
        near = open.iter().collect();
    }
    let mut blocks: Vec<(i64, u32)> = near.iter().map(|slot| (slot.free.get(at).copied().unwrap_or_default(), slot.count)).collect();
    blocks.sort_unstable_by_key(|(free, _)| std::cmp::Reverse(*free));
    let largest: Vec<String> = blocks
        .into_iter()
        .flat_map(|(free, count)| std::iter::repeat_n(free, (count as usize).min(BLOCKS)))
        .take(BLOCKS)
        .map(|free| display_free(name, free))
        .collect();

    let model = shape.selection.labels.iter().find(|(key, _)| key == ACCELERATOR_MODEL).map(|(_, model)| format!(" ({model})"));
    let mut message = format!("needs {more} with {} free {name}{}", display(name, request), model.unwrap_or_default());
    if !beside.is_empty() {
        beside.sort_unstable();
        let _ = write!(message, " beside {}", beside.join(" and "));
    }
    let _ = write!(message, "; largest free: {}", largest.join(","));
    (reason, Some(name.to_string()), message)
}
