//! What is known of the nodes and pods of one member, kept up to date object by object.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use super::node::NodeView;
use super::pod::{PodView, ServiceKey};
use super::quota::QuotaView;
use super::resources::{Resources, Sums};
use super::snapshot::{Bucket, Class, Group, Held, Node, Quotas, Role, Roles, Snapshot, Tally};

/// Nodes and pods of one member. A change costs what it touches, and the next snapshot costs what was touched since the
/// last one. Of a pod it keeps its node, its service, its group and its request, the latter three shared by all pods
/// alike.
#[derive(Debug, Default)]
pub struct Store {
    nodes: HashMap<Arc<str>, NodeState>,
    pods: HashMap<Box<str>, Pod>,
    /// By UID.
    quotas: HashMap<String, Arc<QuotaView>>,
    classes: Pool<Arc<Class>>,
    requests: Pool<Resources>,
    services: Pool<Arc<ServiceKey>>,
    groups: Pool<Arc<Group>>,
    tallies: Arc<HashMap<Arc<ServiceKey>, Arc<Tally>>>,
    /// Nodes that changed since the last snapshot.
    changed: HashSet<Arc<str>>,
    /// Quotas, or pods without a node, did.
    others_changed: bool,
    buckets: HashMap<BucketKey, BucketState>,
    snapshot: Arc<Snapshot>,
    node_count: usize,
}

#[derive(Debug)]
struct Pod {
    /// `None` while it waits for one.
    node: Option<Arc<str>>,
    requests: Resources,
    service: Option<Arc<ServiceKey>>,
    group: Option<Arc<Group>>,
    role: Role,
    terminating: bool,
}

impl Pod {
    /// Whether nothing that counts has changed: most updates of a pod are about its containers.
    fn is_as(&self, pod: &PodView) -> bool {
        !pod.finished
            && pod.node.as_deref() == self.node.as_deref()
            && pod.terminating == self.terminating
            && pod.service.as_ref() == self.service.as_deref()
            && Role::of(pod) == self.role
            && pod.group.as_ref().map(|group| (&group.key, &group.exclusive_topology))
                == self.group.as_ref().map(|group| (&group.key, &group.exclusive_topology))
            && pod.requests == self.requests
    }
}

#[derive(Debug, Default)]
struct NodeState {
    /// `None` while only pods of the node are known.
    class: Option<Arc<Class>>,
    /// Pods on it, and what they ask for.
    pods: usize,
    used: Sums,
    services: BTreeMap<Arc<ServiceKey>, HeldState>,
    groups: BTreeMap<Arc<Group>, GroupState>,
    bucket: Option<BucketKey>,
}

#[derive(Debug, Default)]
struct HeldState {
    staying: Roles,
    leaving: u32,
    requests: Sums,
    leaving_requests: Sums,
}

/// Pods of one group on one node.
#[derive(Debug, Default)]
struct GroupState {
    pods: u32,
    leaders: u32,
}

type BucketKey = (Arc<Class>, Resources);

#[derive(Debug, Default)]
struct BucketState {
    nodes: BTreeMap<Arc<str>, Arc<Node>>,
    /// `None` when nodes came or went since it was made.
    built: Option<Arc<Bucket>>,
}

impl Store {
    /// Nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// A node is there, new or changed.
    pub fn upsert_node(&mut self, node: NodeView) {
        let name: Arc<str> = Arc::from(node.name);
        let (own, others): (Vec<_>, Vec<_>) = node.labels.into_iter().partition(|(_, value)| *value == *name);
        let class = self.classes.share(Arc::new(Class {
            labels: others.into_iter().map(|(key, value)| (Arc::from(key), Arc::from(value))).collect(),
            name_labels: own.into_iter().map(|(key, _)| Arc::from(key)).collect(),
            taints: node.taints,
            unschedulable: node.unschedulable,
            ready: node.ready,
            allocatable: node.allocatable,
        }));
        let state = self.nodes.entry(name.clone()).or_default();
        match &state.class {
            Some(same) if Arc::ptr_eq(same, &class) => return,
            Some(_) => {}
            None => self.node_count += 1,
        }
        state.class = Some(class);
        self.changed.insert(name);
    }

    /// A node is gone. Its pods count again if it comes back before they go.
    pub fn remove_node(&mut self, name: &str) {
        if let Some((name, state)) = self.nodes.get_key_value(name).map(|(name, _)| name.clone()).zip(self.nodes.get_mut(name))
            && state.class.take().is_some()
        {
            self.node_count -= 1;
            self.changed.insert(name);
        }
    }

    /// A pod is there, new or changed. One that counts nowhere is not kept: it has ended, or it has no node and no service
    /// of the hub.
    pub fn upsert_pod(&mut self, pod: PodView) {
        if self.pods.get(pod.uid.as_str()).is_some_and(|kept| kept.is_as(&pod)) {
            return;
        }
        self.remove_pod(&pod.uid);
        if pod.finished || (pod.node.is_none() && pod.service.is_none()) {
            return;
        }
        let role = Role::of(&pod);
        let node = pod.node.map(|node| self.nodes.get_key_value(node.as_str()).map_or_else(|| Arc::from(node), |(name, _)| name.clone()));
        let service = pod.service.map(|service| self.services.share(Arc::new(service)));
        let group = pod.group.map(|group| {
            let (namespace, service) = (pod.namespace, service.clone());
            self.groups.share(Arc::new(Group { namespace, key: group.key, service, exclusive_topology: group.exclusive_topology }))
        });
        let kept = Pod { node, requests: self.requests.share(pod.requests), service, group, role, terminating: pod.terminating };
        self.count(&kept, 1);
        self.pods.insert(pod.uid.into_boxed_str(), kept);
    }

    /// A pod is gone.
    pub fn remove_pod(&mut self, uid: &str) {
        if let Some(pod) = self.pods.remove(uid) {
            self.count(&pod, -1);
        }
    }

    /// Adds (1) or takes off (-1) what a pod holds.
    fn count(&mut self, pod: &Pod, sign: i8) {
        if let Some(service) = &pod.service {
            self.others_changed |= pod.node.is_none();
            let tallies = Arc::make_mut(&mut self.tallies);
            let tally = Arc::make_mut(tallies.entry(service.clone()).or_default());
            tally.requests.add_all(&pod.requests, sign.into());
            if pod.terminating {
                tally.leaving.step(pod.role, sign);
            } else {
                tally.staying.step(pod.role, sign);
                if pod.node.is_some() {
                    tally.assigned.step(pod.role, sign);
                }
            }
            if tally.staying.total() == 0 && tally.leaving.total() == 0 {
                tallies.remove(service);
            }
        }
        let Some(node) = &pod.node else { return };
        let state = self.nodes.entry(node.clone()).or_default();
        state.pods = state.pods.saturating_add_signed(sign.into());
        state.used.add_all(&pod.requests, sign.into());
        if let Some(service) = &pod.service {
            let held = state.services.entry(service.clone()).or_default();
            if pod.terminating {
                held.leaving = held.leaving.saturating_add_signed(sign.into());
                held.leaving_requests.add_all(&pod.requests, sign.into());
            } else {
                held.staying.step(pod.role, sign);
                held.requests.add_all(&pod.requests, sign.into());
            }
            if held.staying.total() == 0 && held.leaving == 0 {
                state.services.remove(service);
            }
        }
        if let Some(group) = &pod.group {
            let here = state.groups.entry(group.clone()).or_default();
            here.pods = here.pods.saturating_add_signed(sign.into());
            if pod.role == Role::Leader {
                here.leaders = here.leaders.saturating_add_signed(sign.into());
            }
            if here.pods == 0 {
                state.groups.remove(group);
            }
        }
        self.changed.insert(node.clone());
    }

    /// Forgets all nodes, before they are listed anew.
    pub fn clear_nodes(&mut self) {
        let names: Vec<Arc<str>> = self.nodes.keys().cloned().collect();
        for name in names {
            self.remove_node(&name);
        }
    }

    /// Forgets all pods, before they are listed anew.
    pub fn clear_pods(&mut self) {
        for pod in std::mem::take(&mut self.pods).into_values() {
            self.count(&pod, -1);
        }
    }

    /// A quota is there, new or changed.
    pub fn upsert_quota(&mut self, quota: QuotaView) {
        let same = self.quotas.get(&quota.uid).is_some_and(|known| known.bounds_as(&quota));
        self.others_changed |= !same;
        self.quotas.insert(quota.uid.clone(), Arc::new(quota));
    }

    /// A quota is gone.
    pub fn remove_quota(&mut self, uid: &str) {
        self.others_changed |= self.quotas.remove(uid).is_some();
    }

    /// Forgets all quotas, before they are listed anew.
    pub fn clear_quotas(&mut self) {
        self.others_changed |= !self.quotas.is_empty();
        self.quotas.clear();
    }

    fn quotas(&self) -> Quotas {
        let mut quotas = Quotas::new();
        for quota in self.quotas.values() {
            quotas.entry(quota.namespace.clone()).or_default().push(quota.clone());
        }
        for list in quotas.values_mut() {
            list.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        }
        quotas
    }

    /// Nodes that are known.
    pub fn node_count(&self) -> usize {
        self.node_count
    }

    /// Pods that are kept: those that take room, and those of services that wait for a node.
    pub fn pod_count(&self) -> usize {
        self.pods.len()
    }

    /// What is known now, as a value that doesn't change any more.
    pub fn snapshot(&mut self) -> Arc<Snapshot> {
        if self.changed.is_empty() && !self.others_changed {
            return self.snapshot.clone();
        }
        self.others_changed = false;
        for name in std::mem::take(&mut self.changed) {
            let Some(state) = self.nodes.get_mut(&name) else { continue };
            if let Some(old) = state.bucket.take()
                && let Some(bucket) = self.buckets.get_mut(&old)
            {
                bucket.nodes.remove(&name);
                bucket.built = None;
                if bucket.nodes.is_empty() {
                    self.buckets.remove(&old);
                }
            }
            if let Some(class) = &state.class {
                let key = (class.clone(), state.used.resources());
                let services = state.services.iter().map(|(service, held)| (service.clone(), held.view())).collect();
                let groups = state.groups.iter().map(|(group, here)| (group.clone(), here.leaders > 0)).collect();
                let bucket = self.buckets.entry(key.clone()).or_default();
                bucket.nodes.insert(name.clone(), Arc::new(Node { name, services, groups }));
                bucket.built = None;
                state.bucket = Some(key);
            } else if state.pods == 0 {
                self.nodes.remove(&name);
            }
        }
        let mut buckets: Vec<Arc<Bucket>> = self.buckets.iter_mut().map(|(key, state)| state.build(key)).collect();
        buckets.sort_unstable_by(|a, b| a.first_name().cmp(b.first_name()));
        self.snapshot = Arc::new(Snapshot { buckets, tallies: self.tallies.clone(), quotas: self.quotas() });
        self.classes.tidy(|class| Arc::strong_count(class) == 1);
        self.requests.tidy(Resources::is_unshared);
        self.groups.tidy(|group| Arc::strong_count(group) == 1);
        self.services.tidy(|service| Arc::strong_count(service) == 1);
        self.snapshot.clone()
    }
}

impl HeldState {
    fn view(&self) -> Held {
        let (requests, leaving_requests) = (self.requests.resources(), self.leaving_requests.resources());
        Held { staying: self.staying, leaving: self.leaving, requests, leaving_requests }
    }
}

impl BucketState {
    fn build(&mut self, (class, used): &BucketKey) -> Arc<Bucket> {
        self.built
            .get_or_insert_with(|| {
                let nodes: Vec<Arc<Node>> = self.nodes.values().cloned().collect();
                let mut services: Vec<_> = nodes.iter().flat_map(|node| &node.services).map(|(service, _)| service.clone()).collect();
                services.sort_unstable();
                services.dedup();
                let mut namespaces: Vec<_> = nodes.iter().flat_map(|node| &node.groups).map(|(group, _)| group.namespace.clone()).collect();
                namespaces.sort_unstable();
                namespaces.dedup();
                Arc::new(Bucket { class: class.clone(), used: used.clone(), nodes, services, group_namespaces: namespaces })
            })
            .clone()
    }
}

/// Equal values, kept once.
#[derive(Debug)]
struct Pool<T> {
    values: HashSet<T>,
    /// Size at which values that nobody holds any more are looked for.
    limit: usize,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { values: HashSet::new(), limit: 64 }
    }
}

impl<T: Clone + Eq + Hash> Pool<T> {
    fn share(&mut self, value: T) -> T {
        if let Some(same) = self.values.get(&value) {
            return same.clone();
        }
        self.values.insert(value.clone());
        value
    }

    fn tidy(&mut self, unused: impl Fn(&T) -> bool) {
        if self.values.len() > self.limit {
            self.values.retain(|value| !unused(value));
            self.limit = (self.values.len() * 2).max(64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_takes_little_memory() {
        // The text of its UID, and a share of the table's free places and control bytes.
        let entry = size_of::<(Box<str>, Pod)>();
        assert!(entry * 2 + 48 <= 256, "{entry} bytes in the table");
    }

    #[test]
    fn an_update_that_changes_nothing_costs_no_snapshot() {
        let mut store = Store::new();
        store.upsert_node(NodeView { name: "n".to_owned(), ..NodeView::default() });
        let pod = PodView { uid: "1".to_owned(), node: Some("n".to_owned()), ..PodView::default() };
        store.upsert_pod(pod.clone());
        let before = store.snapshot();
        store.upsert_pod(pod.clone());
        store.upsert_node(NodeView { name: "n".to_owned(), resource_version: "2".to_owned(), ..NodeView::default() });
        assert!(Arc::ptr_eq(&before, &store.snapshot()));
        store.upsert_pod(PodView { terminating: true, ..pod });
        assert!(!Arc::ptr_eq(&before, &store.snapshot()));
    }

    #[test]
    fn values_that_nobody_holds_are_let_go() {
        let mut store = Store::new();
        store.upsert_node(NodeView { name: "n".to_owned(), ..NodeView::default() });
        for amount in 1..1000 {
            let requests = [(Arc::from("cpu"), amount)].into_iter().collect();
            store.upsert_pod(PodView { uid: "1".to_owned(), node: Some("n".to_owned()), requests, ..PodView::default() });
            store.snapshot();
        }
        assert!(store.requests.values.len() <= 65, "{}", store.requests.values.len());
        assert_eq!(store.buckets.len(), 1);
    }
}
