//! What keeps pods off the nodes of a member, in numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::accelerators;
use super::fit::{Verdict, Verdicts};
use super::room::{Options, Shortfall};
use super::selection::Labelled;
use super::shape::{GroupRequest, PodShape};
use super::snapshot::{Class, Named, Snapshot};
use crate::api::reason::Reason;

/// Taints that are listed.
const TAINTS: usize = 3;

/// The taints that keep pods off nodes which fit them otherwise: `2 nodes are tainted sku=gpu:NoSchedule, which the pods
/// don't tolerate`. A scheduler may say no more than that there are some.
pub fn taints_in_the_way(snapshot: &Snapshot, request: &GroupRequest, options: Options) -> Option<String> {
    let of_shape = |shape| Census::take(snapshot, shape, options).tainted();
    request.pods.iter().find_map(|set| of_shape(&set.shape))
}

/// How many nodes there are of each kind.
#[derive(Default)]
pub(super) struct Census {
    selected: usize,
    /// Selected, and missing this resource.
    without: BTreeMap<String, usize>,
    /// Selected and labelled as having an accelerator, but offering none at all.
    labelled: usize,
    label: Option<String>,
    pub(super) usable: usize,
    tainted: usize,
    taints: BTreeSet<String>,
    cordoned: usize,
    not_ready: usize,
}

impl Census {
    pub(super) fn take(snapshot: &Snapshot, shape: &PodShape, options: Options) -> Self {
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

    /// Why no node at all can take such a pod, whatever is free; `None` when some can.
    pub(super) fn blocked(&self, snapshot: &Snapshot, shape: &PodShape) -> Option<Shortfall> {
        let shortfall = |reason, resource, message| Some(Shortfall { reason, message, resource });
        if self.selected == 0 {
            return shortfall(Reason::NoSuchAccelerator, None, not_selected(snapshot, shape));
        }
        if self.without_devices() == self.selected {
            let resource = self.without.keys().next().cloned().unwrap_or_default();
            if let Some(label) = &self.label {
                let labelled = are(self.labelled);
                let message = format!("{labelled} labelled {label}, but without {resource}: is the device plugin running?");
                return shortfall(Reason::LabelWithoutDevices, Some(resource), message);
            }
            let message = format!("no node{} offers {resource}", that_match(shape));
            return shortfall(Reason::NoSuchAccelerator, Some(resource), message);
        }
        let reason = if self.tainted > 0 { Reason::NodesTainted } else { Reason::NodesUnavailable };
        if self.usable == 0 { shortfall(reason, None, self.out_of_order().join("; ")) } else { None }
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

    fn tainted(&self) -> Option<String> {
        (self.tainted > 0).then(|| format!("{} tainted {}, which the pods don't tolerate", are(self.tainted), self.taints()))
    }

    /// Nodes that would count if they were in order: `1 node is cordoned`.
    pub(super) fn out_of_order(&self) -> Vec<String> {
        let mut parts: Vec<String> = self.tainted().into_iter().collect();
        if self.cordoned > 0 {
            parts.push(format!("{} cordoned", are(self.cordoned)));
        }
        if self.not_ready > 0 {
            parts.push(format!("{} not ready", are(self.not_ready)));
        }
        parts
    }
}

pub(super) fn nodes(count: usize) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") }
}

fn are(count: usize) -> String {
    format!("{} {}", nodes(count), if count == 1 { "is" } else { "are" })
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
            let has = |name: &str| Named { class: &bucket.class, name }.label(key) == Some(value);
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
