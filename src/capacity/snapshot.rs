//! Nodes and pods of a member at one moment.

use std::collections::HashMap;
use std::sync::Arc;

use super::accelerators;
use super::pod::ServiceKey;
use super::resources::Resources;
use super::room::Promise;
use super::selection::{Labelled, Taint};
use crate::api::federation::Accelerator;

/// Nodes and what is free on them at one moment. Immutable; shared, not copied.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(super) buckets: Vec<Arc<Bucket>>,
    pub(super) assigned: Arc<HashMap<Arc<ServiceKey>, u32>>,
}

/// What nodes of one kind have in common; most members have few of these.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Class {
    /// Labels, sorted by key, without those whose value is the node's name.
    pub(super) labels: Vec<(Arc<str>, Arc<str>)>,
    /// Keys of labels whose value is the node's name, such as its host name.
    pub(super) name_labels: Vec<Arc<str>>,
    pub(super) taints: Vec<Taint>,
    pub(super) unschedulable: bool,
    pub(super) ready: bool,
    pub(super) allocatable: Resources,
}

impl Class {
    /// The value of a label that doesn't depend on the node's name.
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        let found = self.labels.binary_search_by(|(other, _)| other.as_ref().cmp(key)).ok()?;
        self.labels.get(found).map(|(_, value)| value.as_ref())
    }
}

/// A node of a class by its name.
pub(super) struct Named<'a> {
    pub(super) class: &'a Class,
    pub(super) name: &'a str,
}

impl Labelled for Named<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.class.label(key).or_else(|| self.class.name_labels.iter().any(|label| label.as_ref() == key).then_some(self.name))
    }
}

/// Nodes of one class on which equally much is used: they are alike for every pod but by name.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) class: Arc<Class>,
    pub(super) used: Resources,
    /// Sorted by name, never empty.
    pub(super) nodes: Vec<Arc<Node>>,
    /// Services with pods on any of the nodes, sorted.
    pub(super) services: Vec<Arc<ServiceKey>>,
}

impl Bucket {
    pub(super) fn holds(&self, service: &ServiceKey) -> bool {
        let service = service.of_pods();
        self.services.binary_search_by(|other| other.as_ref().cmp(&service)).is_ok()
    }

    pub(super) fn first_name(&self) -> &str {
        self.nodes.first().map_or("", |node| &node.name)
    }
}

/// One node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: Arc<str>,
    /// What services of the hub hold here, sorted by service.
    pub(super) services: Vec<(Arc<ServiceKey>, Held)>,
}

impl Node {
    pub(super) fn held_by(&self, service: &ServiceKey) -> Option<&Held> {
        let service = service.of_pods();
        let found = self.services.binary_search_by(|(other, _)| other.as_ref().cmp(&service)).ok()?;
        self.services.get(found).map(|(_, held)| held)
    }
}

/// What one service holds on one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// Pods that stay.
    pub(super) pods: u32,
    /// Pods that are being deleted.
    pub(super) leaving: u32,
    /// What the pods that stay asked for.
    pub(super) requests: Resources,
}

impl Snapshot {
    /// Nodes of the member.
    pub fn node_count(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.nodes.len()).sum()
    }

    /// Pods of a service that have a node and stay.
    pub fn assigned_pods(&self, service: &ServiceKey) -> u32 {
        self.assigned.get(&*service.of_pods()).copied().unwrap_or_default()
    }

    /// Devices by resource, vendor and model, sorted; `promises` tells what is reserved.
    pub fn accelerators(&self, promises: &[Promise]) -> Vec<Accelerator> {
        accelerators::of(self, promises)
    }
}
