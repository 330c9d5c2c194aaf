//! What is known of a member, kept in step by its watches and read by everyone else without waiting.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};

use super::client::Failure;
use super::lean::{Deployment, Kind, Pod, ReplicaSet};
use super::notify::Notifier;
use super::sync::Sync;
use super::view::Fact;
use crate::capacity::{NodeView, ServiceKey, Snapshot, Store};
use crate::status::{PodSignal, PodStatusView, WorkloadView};

/// Nodes and pods as capacity sees them. The prints tell whether an event changed anything that capacity looks at:
/// most events of nodes and pods don't.
#[derive(Debug, Default)]
struct Capacity {
    store: Store,
    nodes: HashMap<String, u64>,
    pods: HashMap<String, u64>,
}

/// Our workloads and what belongs to them.
#[derive(Debug, Default)]
struct Objects {
    /// By UID.
    workloads: HashMap<String, Deployment>,
    /// UIDs of workloads by the UID of the service.
    by_service: HashMap<String, HashSet<String>>,
    /// UID of a `ReplicaSet` → UID of the Deployment that controls it.
    replica_sets: HashMap<String, String>,
    /// Pods of services that aren't ready, by UID.
    pods: HashMap<String, PodStatusView>,
}

/// What is known of a member.
#[derive(Debug, Default)]
pub(super) struct Cache {
    capacity: Mutex<Capacity>,
    objects: RwLock<Objects>,
    sync: RwLock<Sync>,
    snapshot: ArcSwapOption<Snapshot>,
    pub(super) notifier: Notifier,
}

/// What a watch found.
#[derive(Debug)]
pub(super) enum Change<T> {
    /// All objects there are.
    All(Vec<T>),
    /// An object is new or changed.
    Put(T),
    /// An object is gone.
    Gone(T),
}

/// Where a watch puts what it found.
pub(super) trait Sink<T> {
    fn apply(&self, change: Change<T>);
}

impl Cache {
    pub(super) fn listed(&self, kind: Kind) {
        if self.sync.write().listed(kind) {
            self.notifier.member();
        }
    }

    pub(super) fn watching(&self, kind: Kind) {
        if self.sync.write().watching(kind) {
            self.notifier.member();
        }
    }

    pub(super) fn failed(&self, kind: Kind, verb: &'static str, failure: &Failure) {
        self.sync.write().failed(kind, verb, failure, Timestamp::now());
        self.notifier.member();
    }

    /// The condition Synced.
    pub(super) fn synced(&self, now: Timestamp) -> Fact {
        self.sync.read().fact(now)
    }

    /// Why a kind can't be followed although the member answers, and since when.
    pub(super) fn refused(&self, kind: Kind, now: Timestamp) -> Option<(String, Timestamp)> {
        self.sync.read().refused(kind, now)
    }

    /// Whether the snapshot follows the member.
    pub(super) fn capacity_known(&self, now: Timestamp) -> bool {
        let sync = self.sync.read();
        self.snapshot.load().is_some() && sync.is_followed(Kind::Node, now) && sync.is_followed(Kind::Pod, now)
    }

    /// The last snapshot, once nodes and pods were listed.
    pub(super) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.snapshot.load_full()
    }

    /// Makes a new snapshot, if nodes and pods were listed.
    pub(super) fn renew_snapshot(&self) {
        let sync = self.sync.read();
        if !sync.is_listed(Kind::Node) || !sync.is_listed(Kind::Pod) {
            return;
        }
        drop(sync);
        let snapshot = self.capacity.lock().store.snapshot();
        self.snapshot.store(Some(snapshot));
    }

    /// Whether Deployments were ever listed: only then their absence means something.
    pub(super) fn knows_workloads(&self) -> bool {
        self.sync.read().is_listed(Kind::Deployment)
    }

    /// The workload of a service.
    pub(super) fn workload(&self, service_uid: &str, namespace: &str, name: &str) -> Option<Deployment> {
        self.objects.read().workload_of(service_uid, namespace, name).cloned()
    }

    /// The workload of a service and the trouble of its pods; `None` while Deployments were never listed.
    pub(super) fn observe(
        &self,
        service: &ServiceKey,
        service_uid: &str,
        now: Timestamp,
    ) -> Option<(Option<WorkloadView>, Vec<PodSignal>)> {
        if !self.knows_workloads() {
            return None;
        }
        let objects = self.objects.read();
        let Some(workload) = objects.workload_of(service_uid, &service.namespace, &service.name) else { return Some((None, Vec::new())) };
        let uid = workload.metadata.uid.as_str();
        let pods = objects.pods.values().filter(|pod| objects.workload_uid_of(pod) == Some(uid));
        // By name, so that equal state gives equal output.
        let by_name: BTreeMap<&str, PodSignal> =
            pods.filter_map(|pod| Some((pod.metadata.name.as_str(), PodSignal::from_pod(pod, now)?))).collect();
        Some((Some(workload.view()), by_name.into_values().collect()))
    }
}

impl Objects {
    /// The name counts too: someone may have copied our object, labels and all.
    fn workload_of(&self, service_uid: &str, namespace: &str, name: &str) -> Option<&Deployment> {
        let uids = self.by_service.get(service_uid)?;
        let mut workloads = uids.iter().filter_map(|uid| self.workloads.get(uid));
        workloads.find(|workload| workload.metadata.namespace == namespace && workload.metadata.name == name)
    }

    fn workload_uid_of(&self, pod: &PodStatusView) -> Option<&str> {
        let owner = pod.metadata.owner_references.iter().find(|owner| owner.controller)?;
        self.replica_sets.get(&owner.uid).map(String::as_str)
    }

    /// The service on the hub that a pod belongs to.
    fn service_of(&self, pod: &PodStatusView) -> Option<ServiceKey> {
        self.workloads.get(self.workload_uid_of(pod)?).map(Deployment::service)
    }

    fn put_workload(&mut self, workload: Deployment) {
        let uid = workload.metadata.uid.clone();
        self.drop_workload(&uid);
        if let Some(service) = workload.service_uid() {
            self.by_service.entry(service.to_owned()).or_default().insert(uid.clone());
        }
        self.workloads.insert(uid, workload);
    }

    fn drop_workload(&mut self, uid: &str) -> Option<Deployment> {
        let old = self.workloads.remove(uid)?;
        if let Some(service) = old.service_uid()
            && let Some(uids) = self.by_service.get_mut(service)
        {
            uids.remove(uid);
            if uids.is_empty() {
                self.by_service.remove(service);
            }
        }
        Some(old)
    }
}

/// A hash of all that Debug prints, without making the text.
fn print_of(value: &impl fmt::Debug) -> u64 {
    struct Print(DefaultHasher);
    impl fmt::Write for Print {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut print = Print(DefaultHasher::new());
    // Writing into a hasher can't fail.
    let _ = write!(print, "{value:?}");
    print.0.finish()
}

impl Sink<NodeView> for Cache {
    fn apply(&self, change: Change<NodeView>) {
        let mut capacity = self.capacity.lock();
        let changed = match change {
            Change::All(nodes) => {
                capacity.store.clear_nodes();
                capacity.nodes.clear();
                for node in nodes {
                    capacity.put_node(node);
                }
                true
            }
            Change::Put(node) => capacity.put_node(node),
            Change::Gone(node) => {
                capacity.nodes.remove(&node.name);
                capacity.store.remove_node(&node.name);
                true
            }
        };
        drop(capacity);
        if changed {
            self.notifier.capacity(true);
        }
    }
}

impl Sink<Pod> for Cache {
    fn apply(&self, change: Change<Pod>) {
        match change {
            Change::All(pods) => {
                let (views, statuses): (Vec<_>, Vec<_>) = pods.into_iter().map(|pod| (pod.view, pod.status)).unzip();
                let mut capacity = self.capacity.lock();
                capacity.store.clear_pods();
                capacity.pods.clear();
                for mut view in views {
                    view.resource_version.clear();
                    capacity.pods.insert(view.uid.clone(), print_of(&view));
                    capacity.store.upsert_pod(view);
                }
                drop(capacity);
                self.notifier.capacity(true);
                self.replace_pods(statuses.into_iter().flatten().collect());
            }
            Change::Put(Pod { mut view, status }) => {
                view.resource_version.clear();
                let print = print_of(&view);
                let mut capacity = self.capacity.lock();
                let changed = capacity.pods.insert(view.uid.clone(), print) != Some(print);
                let ended = view.finished;
                if changed {
                    capacity.store.upsert_pod(view);
                }
                drop(capacity);
                if changed {
                    self.notifier.capacity(ended);
                }
                if let Some(status) = status {
                    self.put_pod(status);
                }
            }
            Change::Gone(Pod { view, .. }) => {
                let mut capacity = self.capacity.lock();
                capacity.pods.remove(&view.uid);
                capacity.store.remove_pod(&view.uid);
                drop(capacity);
                self.notifier.capacity(view.node.is_some());
                self.drop_pod(&view.uid);
            }
        }
    }
}

impl Capacity {
    fn put_node(&mut self, mut node: NodeView) -> bool {
        node.resource_version.clear();
        let print = print_of(&node);
        if self.nodes.insert(node.name.clone(), print) == Some(print) {
            return false;
        }
        self.store.upsert_node(node);
        true
    }
}

impl Cache {
    fn replace_pods(&self, pods: Vec<PodStatusView>) {
        let mut objects = self.objects.write();
        let before = std::mem::take(&mut objects.pods);
        let now: HashMap<String, PodStatusView> =
            pods.into_iter().filter(|pod| !pod.is_ready()).map(|pod| (pod.metadata.uid.clone(), pod)).collect();
        let changed = before
            .values()
            .filter(|pod| now.get(&pod.metadata.uid) != Some(*pod))
            .chain(now.values().filter(|pod| !before.contains_key(&pod.metadata.uid)));
        let services: HashSet<ServiceKey> = changed.filter_map(|pod| objects.service_of(pod)).collect();
        objects.pods = now;
        drop(objects);
        self.notifier.services(services);
    }

    fn put_pod(&self, pod: PodStatusView) {
        if pod.is_ready() {
            return self.drop_pod(&pod.metadata.uid);
        }
        let mut objects = self.objects.write();
        if objects.pods.get(&pod.metadata.uid) == Some(&pod) {
            return;
        }
        let service = objects.service_of(&pod);
        objects.pods.insert(pod.metadata.uid.clone(), pod);
        drop(objects);
        self.notifier.services(service);
    }

    fn drop_pod(&self, uid: &str) {
        let mut objects = self.objects.write();
        let service = objects.pods.remove(uid).and_then(|pod| objects.service_of(&pod));
        drop(objects);
        self.notifier.services(service);
    }
}

impl Sink<Deployment> for Cache {
    fn apply(&self, change: Change<Deployment>) {
        let mut objects = self.objects.write();
        let mut services = HashSet::new();
        match change {
            Change::All(workloads) => {
                services.extend(objects.workloads.values().map(Deployment::service));
                objects.workloads.clear();
                objects.by_service.clear();
                for workload in workloads {
                    services.insert(workload.service());
                    objects.put_workload(workload);
                }
            }
            Change::Put(workload) => {
                services.insert(workload.service());
                objects.put_workload(workload);
            }
            Change::Gone(workload) => {
                services.insert(workload.service());
                objects.drop_workload(&workload.metadata.uid);
                self.notifier.gone(workload.service());
            }
        }
        drop(objects);
        self.notifier.services(services);
    }
}

impl Sink<ReplicaSet> for Cache {
    fn apply(&self, change: Change<ReplicaSet>) {
        let mut objects = self.objects.write();
        let mut services = HashSet::new();
        let mut put = |objects: &mut Objects, set: &ReplicaSet| {
            let Some(owner) = set.owner() else { return };
            if objects.replica_sets.insert(set.metadata.uid.clone(), owner.to_owned()).as_deref() != Some(owner) {
                // Its pods may have come first.
                services.extend(objects.workloads.get(owner).map(Deployment::service));
            }
        };
        match change {
            Change::All(sets) => {
                objects.replica_sets.clear();
                for set in &sets {
                    put(&mut objects, set);
                }
            }
            Change::Put(set) => put(&mut objects, &set),
            Change::Gone(set) => {
                objects.replica_sets.remove(&set.metadata.uid);
            }
        }
        drop(objects);
        self.notifier.services(services);
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
