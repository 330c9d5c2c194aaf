//! What is known of the cluster's nodes and pods, without what the simulator has no use for.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Node, NodeSpec, NodeStatus, Pod, PodSpec};
use kube::ResourceExt;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::node::is_silent;

/// A pod by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PodKey {
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
}

impl PodKey {
    pub(super) fn of(pod: &Pod) -> Self {
        let meta = &pod.metadata;
        Self { namespace: meta.namespace.as_deref().unwrap_or_default().into(), name: meta.name.as_deref().unwrap_or_default().into() }
    }
}

/// A pod with the simulator's own memory of it.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) pod: Arc<Pod>,
    /// When it was first seen on its node, or when a kubelet had started it before that.
    pub(super) seen: Timestamp,
    /// The version that was dealt with last, and when it is to be looked at again.
    pub(super) settled: Option<Settled>,
}

#[derive(Clone)]
pub(super) struct Settled {
    pub(super) version: Option<String>,
    pub(super) due: Option<Instant>,
}

/// How a node changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeChange {
    /// It appeared, or its kubelet came back: its pods need a look.
    Arrived,
    Other,
}

#[derive(Default)]
pub(super) struct Cache {
    nodes: Mutex<HashMap<Arc<str>, Arc<Node>>>,
    pods: Mutex<HashMap<PodKey, Known>>,
}

impl Cache {
    pub(super) fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes.lock().get(name).cloned()
    }

    pub(super) fn put_node(&self, node: Node) -> NodeChange {
        let node = lean_node(node);
        let silent = is_silent(&node);
        let old = self.nodes.lock().insert(node.name_any().into(), Arc::new(node));
        if silent || old.is_some_and(|old| !is_silent(&old)) { NodeChange::Other } else { NodeChange::Arrived }
    }

    pub(super) fn remove_node(&self, name: &str) {
        self.nodes.lock().remove(name);
    }

    pub(super) fn retain_nodes(&self, keep: impl Fn(&str) -> bool) {
        self.nodes.lock().retain(|name, _| keep(name));
    }

    pub(super) fn pod(&self, key: &PodKey) -> Option<Known> {
        self.pods.lock().get(key).cloned()
    }

    /// Keeps a pod as the server sent it.
    pub(super) fn put_pod(&self, pod: Pod, now: Timestamp) -> PodKey {
        let key = PodKey::of(&pod);
        let pod = Arc::new(lean_pod(pod));
        let mut pods = self.pods.lock();
        if let Some(known) = pods.get_mut(&key).filter(|known| known.pod.metadata.uid == pod.metadata.uid) {
            known.pod = pod;
        } else {
            let seen = pod.status.as_ref().and_then(|status| status.start_time.as_ref()).map_or(now, |start| start.0);
            pods.insert(key.clone(), Known { pod, seen, settled: None });
        }
        key
    }

    /// Notes that version `dealt` of a pod was dealt with, which made it `written` if that is given.
    pub(super) fn settle(&self, key: &PodKey, dealt: &Pod, written: Option<Pod>, due: Option<Instant>) {
        let mut pods = self.pods.lock();
        let Some(known) = pods.get_mut(key).filter(|known| known.pod.metadata.uid == dealt.metadata.uid) else { return };
        let version = written.as_ref().unwrap_or(dealt).metadata.resource_version.clone();
        known.settled = Some(Settled { version, due });
        // The watch may have brought something newer meanwhile; that stays.
        if let Some(written) = written.filter(|_| known.pod.metadata.resource_version == dealt.metadata.resource_version) {
            known.pod = Arc::new(lean_pod(written));
        }
    }

    /// Removes a pod; gives its uid.
    pub(super) fn remove_pod(&self, key: &PodKey) -> Option<String> {
        self.pods.lock().remove(key)?.pod.metadata.uid.clone()
    }

    pub(super) fn pods_where(&self, wanted: impl Fn(&PodKey, &Pod) -> bool) -> Vec<PodKey> {
        self.pods.lock().iter().filter(|(key, known)| wanted(key, &known.pod)).map(|(key, _)| key.clone()).collect()
    }
}

fn lean_node(mut node: Node) -> Node {
    node.metadata.managed_fields = None;
    node.metadata.labels = None;
    node.spec = None::<NodeSpec>;
    node.status = node.status.map(|status| NodeStatus {
        addresses: status.addresses,
        allocatable: status.allocatable,
        capacity: status.capacity,
        conditions: status.conditions,
        ..Default::default()
    });
    node
}

fn lean_pod(mut pod: Pod) -> Pod {
    pod.metadata.managed_fields = None;
    pod.metadata.labels = None;
    let lean = |c: Container| Container { name: c.name, image: c.image, restart_policy: c.restart_policy, ..Default::default() };
    pod.spec = pod.spec.map(|spec| PodSpec {
        node_name: spec.node_name,
        containers: spec.containers.into_iter().map(lean).collect(),
        init_containers: spec.init_containers.map(|list| list.into_iter().map(lean).collect()),
        ..Default::default()
    });
    pod
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn pod(uid: &str, version: &str, started: Option<&str>) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": uid, "resourceVersion": version, "labels": {"a": "b"}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i", "restartPolicy": "Always", "args": ["long"]}]},
            "status": {"startTime": started},
        }))
        .unwrap()
    }

    fn version(cache: &Cache, key: &PodKey) -> String {
        cache.pod(key).unwrap().pod.metadata.resource_version.clone().unwrap()
    }

    #[test]
    fn a_pod_is_as_old_as_its_first_sight_or_its_start() {
        let cache = Cache::default();
        let key = cache.put_pod(pod("u1", "1", None), NOW);
        cache.put_pod(pod("u1", "2", Some("1970-01-01T00:00:30Z")), NOW);
        assert_eq!(cache.pod(&key).unwrap().seen, NOW, "a later start does not change it");
        let later = NOW + jiff::SignedDuration::from_secs(60);
        cache.put_pod(pod("u2", "3", None), later);
        assert_eq!(cache.pod(&key).unwrap().seen, later, "another pod of the same name");
        cache.put_pod(pod("u3", "4", Some("1970-01-01T00:00:30Z")), later);
        assert_eq!(cache.pod(&key).unwrap().seen.as_second(), 30, "a kubelet had started it before the simulator did");
    }

    #[test]
    fn what_the_watch_brought_meanwhile_stays() {
        let cache = Cache::default();
        let dealt = pod("u", "1", None);
        let key = cache.put_pod(dealt.clone(), NOW);
        cache.settle(&key, &dealt, Some(pod("u", "2", None)), None);
        assert_eq!(version(&cache, &key), "2", "the answer to a write is known before the watch brings it");
        let dealt = pod("u", "2", None);
        cache.put_pod(pod("u", "9", None), NOW);
        cache.settle(&key, &dealt, Some(pod("u", "3", None)), None);
        assert_eq!(version(&cache, &key), "9");
        assert_eq!(cache.pod(&key).unwrap().settled.unwrap().version.as_deref(), Some("3"), "so the newer one is looked at");
        cache.put_pod(pod("other", "10", None), NOW);
        cache.settle(&key, &dealt, None, None);
        assert!(cache.pod(&key).unwrap().settled.is_none(), "settled for another pod of the same name");
    }

    #[test]
    fn what_nobody_needs_is_not_kept() {
        let cache = Cache::default();
        let key = cache.put_pod(pod("u", "1", None), NOW);
        let kept = serde_json::to_value(&*cache.pod(&key).unwrap().pod).unwrap();
        assert_eq!(kept["spec"], json!({"nodeName": "n", "containers": [{"name": "c", "image": "i", "restartPolicy": "Always"}]}));
        assert!(kept["metadata"].get("labels").is_none());
    }

    #[test]
    fn a_node_arrives_when_its_kubelet_begins_to_live() {
        let node = |silent: bool| -> Node {
            serde_json::from_value(json!({"metadata": {"name": "n", "annotations": {"sim.odin-hub/silent": silent.to_string()}}})).unwrap()
        };
        let cache = Cache::default();
        let changes = [false, false, true, true, false].map(|silent| cache.put_node(node(silent)));
        assert_eq!(changes, [NodeChange::Arrived, NodeChange::Other, NodeChange::Other, NodeChange::Other, NodeChange::Arrived]);
    }
}
