//! Nodes and pods of a member at one moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::accelerators;
use super::pod::{PodView, ServiceKey};
use super::quota::QuotaView;
use super::resources::{Resources, Sums};
use super::room::Promise;
use super::selection::{Labelled, Taint};
use crate::api::federation::Accelerator;

/// Nodes and what is free on them at one moment. Immutable; shared, not copied.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(super) buckets: Vec<Arc<Bucket>>,
    pub(super) tallies: Arc<HashMap<Arc<ServiceKey>, Arc<Tally>>>,
    pub(super) quotas: Quotas,
}

/// Quotas by namespace, sorted by name.
pub(super) type Quotas = BTreeMap<String, Vec<Arc<QuotaView>>>;

/// What a pod is in its workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    /// It is no pod of a group.
    #[default]
    Single,
    Leader,
    Worker,
}

impl Role {
    pub(super) fn of(pod: &PodView) -> Self {
        match &pod.group {
            None => Self::Single,
            Some(group) if group.leader => Self::Leader,
            Some(_) => Self::Worker,
        }
    }
}

/// Pods by what they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Roles {
    pub(super) single: u32,
    pub(super) leaders: u32,
    pub(super) workers: u32,
}

impl Roles {
    pub(super) fn step(&mut self, role: Role, by: i8) {
        let count = match role {
            Role::Single => &mut self.single,
            Role::Leader => &mut self.leaders,
            Role::Worker => &mut self.workers,
        };
        *count = count.saturating_add_signed(by.into());
    }

    pub(super) fn total(self) -> u32 {
        self.single.saturating_add(self.of_groups())
    }

    /// Pods that are part of a group.
    pub(super) fn of_groups(self) -> u32 {
        self.leaders.saturating_add(self.workers)
    }
}

/// All pods of one service.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Those that have a node and stay.
    pub(super) assigned: Roles,
    /// Those that stay, with a node or without.
    pub(super) staying: Roles,
    /// Those that are being deleted.
    pub(super) leaving: Roles,
    /// What all of them asked for.
    pub(super) requests: Sums,
}

/// A group of a `LeaderWorkerSet`, whether of the hub or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Group {
    pub(super) namespace: String,
    pub(super) key: String,
    pub(super) service: Option<Arc<ServiceKey>>,
    /// It keeps other groups of its namespace off all nodes that have the value of its leader's node of this label.
    pub(super) exclusive_topology: Option<String>,
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
    /// Namespaces of the groups with pods on any of the nodes, sorted.
    pub(super) group_namespaces: Vec<String>,
}

impl Bucket {
    pub(super) fn holds(&self, service: &ServiceKey) -> bool {
        let service = service.of_pods();
        self.services.binary_search_by(|other| other.as_ref().cmp(&service)).is_ok()
    }

    /// Whether pods of groups of this namespace run on any of the nodes.
    pub(super) fn holds_groups(&self, namespace: &str) -> bool {
        self.group_namespaces.binary_search_by(|other| other.as_str().cmp(namespace)).is_ok()
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
    /// Groups with pods here, and whether it is their leader's node.
    pub(super) groups: Vec<(Arc<Group>, bool)>,
}

impl Node {
    pub(super) fn held_by(&self, service: &ServiceKey) -> Option<&Held> {
        if self.services.is_empty() {
            return None;
        }
        let service = service.of_pods();
        let found = self.services.binary_search_by(|(other, _)| other.as_ref().cmp(&service)).ok()?;
        self.services.get(found).map(|(_, held)| held)
    }
}

/// What one service holds on one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// Pods that stay.
    pub(super) staying: Roles,
    /// Pods that are being deleted.
    pub(super) leaving: u32,
    /// What the pods that stay asked for.
    pub(super) requests: Resources,
    /// What the others asked for.
    pub(super) leaving_requests: Resources,
}

impl Snapshot {
    /// Nodes of the member.
    pub fn node_count(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.nodes.len()).sum()
    }

    /// Pods of a service that have a node and stay.
    pub fn assigned_pods(&self, service: &ServiceKey) -> u32 {
        self.tally(service).map_or(0, |tally| tally.assigned.total())
    }

    pub(super) fn tally(&self, service: &ServiceKey) -> Option<&Tally> {
        self.tallies.get(&*service.of_pods()).map(Arc::as_ref)
    }

    /// Devices by resource, vendor and model, sorted; `promises` tells what is reserved.
    pub fn accelerators(&self, promises: &[Promise]) -> Vec<Accelerator> {
        accelerators::of(self, promises)
    }
}
