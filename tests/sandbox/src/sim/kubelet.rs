//! The thin loop: watches fill the cache and the queue, workers do each next step.

use std::{collections::HashSet, pin::pin, sync::Arc, time::Duration};

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::{Node, Pod, PodStatus},
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    runtime::{WatchStreamExt, utils::Backoff, watcher, watcher::Event},
};
use serde_json::json;
use tokio::{sync::watch, time::Instant};

use super::{
    Options,
    annotations::Fault,
    cache::{Cache, NodeChange, PodKey},
    events::Events,
    node,
    pod::{self, Action, Timing},
    queue::Queue,
};

/// What a worker can be asked to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    Lease(Arc<str>),
    Node(Arc<str>),
    Pod(PodKey),
}

/// How long a key waits after a conflict, and after any other error.
const RETRY_CONFLICT: Duration = Duration::from_millis(50);
const RETRY_ERROR: Duration = Duration::from_secs(1);

/// Watches begin again at this pace: a kubelet is there as soon as its API server is back, however long that was away.
struct Steady;

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(RETRY_ERROR)
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {}
}

/// The kubelets of one cluster's nodes.
pub(super) struct Kubelet {
    client: Client,
    options: Options,
    cache: Cache,
    queue: Queue<Key>,
    events: Events,
    nodes_known: watch::Sender<bool>,
}

impl Kubelet {
    pub(super) fn new(client: Client, options: Options) -> Self {
        Self {
            events: Events::new(client.clone()),
            client,
            options,
            cache: Cache::default(),
            queue: Queue::new(),
            nodes_known: watch::Sender::new(false),
        }
    }

    pub(super) async fn watch_nodes(self: Arc<Self>) {
        let mut stream = pin!(watcher(Api::<Node>::all(self.client.clone()), watcher::Config::default()).backoff(Steady));
        let mut listed = HashSet::new();
        while let Some(event) = stream.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(node)) => {
                    listed.insert(node.name_any());
                    self.node_changed(node);
                }
                Ok(Event::InitDone) => {
                    self.cache.retain_nodes(|name| listed.contains(name));
                    self.nodes_known.send_replace(true);
                }
                Ok(Event::Apply(node)) => self.node_changed(node),
                Ok(Event::Delete(node)) => self.cache.remove_node(&node.name_any()),
                Err(error) => tracing::debug!(%error, "watch of nodes"),
            }
        }
    }

    pub(super) async fn watch_pods(self: Arc<Self>) {
        // A pod is judged by its node, so nodes come first.
        let _ = self.nodes_known.subscribe().wait_for(|known| *known).await;
        let bound = watcher::Config::default().fields("spec.nodeName!=");
        let mut stream = pin!(watcher(Api::<Pod>::all(self.client.clone()), bound).backoff(Steady));
        let mut listed = HashSet::new();
        while let Some(event) = stream.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(pod)) => {
                    listed.insert(PodKey::of(&pod));
                    self.pod_changed(pod);
                }
                Ok(Event::InitDone) => {
                    for key in self.cache.pods_where(|key, _| !listed.contains(key)) {
                        self.pod_gone(&key);
                    }
                }
                Ok(Event::Apply(pod)) => self.pod_changed(pod),
                Ok(Event::Delete(pod)) => self.pod_gone(&PodKey::of(&pod)),
                Err(error) => tracing::debug!(%error, "watch of pods"),
            }
        }
    }

    /// Works off the queue for ever.
    pub(super) async fn work(self: Arc<Self>) {
        loop {
            let key = self.queue.take().await;
            let result = match &key {
                Key::Lease(name) => self.renew_lease(name).await,
                Key::Node(name) => self.report_node(name).await,
                Key::Pod(pod) => self.step_pod(pod).await,
            };
            let retry = match result {
                Ok(after) => after,
                Err(kube::Error::Api(status)) if status.code == 404 => None,
                Err(kube::Error::Api(status)) if status.code == 409 => Some(RETRY_CONFLICT),
                Err(error) => {
                    tracing::debug!(?key, %error, "will be tried again");
                    Some(RETRY_ERROR)
                }
            };
            if let Some(after) = retry {
                self.queue.add_after(&key, after);
            }
            self.queue.done(&key);
        }
    }

    fn node_changed(&self, node: Node) {
        let name: Arc<str> = node.name_any().into();
        let change = self.cache.put_node(node);
        self.queue.add(&Key::Node(name.clone()));
        if change == NodeChange::Arrived {
            self.queue.add(&Key::Lease(name.clone()));
            let on_node = |_: &PodKey, pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(&*name);
            for key in self.cache.pods_where(on_node) {
                self.queue.add(&Key::Pod(key));
            }
        }
    }

    fn pod_changed(&self, pod: Pod) {
        if let Err(error) = Fault::from_annotations(pod.metadata.annotations.as_ref()) {
            tracing::warn!(pod = pod.name_any(), "{error}");
        }
        self.queue.add(&Key::Pod(self.cache.put_pod(pod, Timestamp::now())));
    }

    fn pod_gone(&self, key: &PodKey) {
        if let Some(uid) = self.cache.remove_pod(key) {
            self.events.forget(&uid);
        }
    }

    async fn renew_lease(&self, name: &Arc<str>) -> kube::Result<Option<Duration>> {
        let Some(node) = self.cache.node(name).filter(|node| !node::is_silent(node)) else { return Ok(None) };
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-node-lease");
        let now = MicroTime(Timestamp::now());
        let renewal = Patch::Merge(json!({"spec": {"renewTime": now}}));
        match leases.patch(name, &PatchParams::default(), &renewal).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            result => return result.map(|_| Some(self.options.lease_period)),
        }
        let owner = OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: name.to_string(),
            uid: node.uid().unwrap_or_default(),
            ..Default::default()
        };
        let lease = Lease {
            metadata: ObjectMeta { name: Some(name.to_string()), owner_references: Some(vec![owner]), ..Default::default() },
            spec: Some(LeaseSpec {
                holder_identity: Some(name.to_string()),
                lease_duration_seconds: Some(40),
                renew_time: Some(now),
                ..Default::default()
            }),
        };
        match leases.create(&PostParams::default(), &lease).await {
            // A young cluster makes the namespace of leases a little later.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Some(RETRY_ERROR)),
            result => result.map(|_| Some(self.options.lease_period)),
        }
    }

    async fn report_node(&self, name: &Arc<str>) -> kube::Result<Option<Duration>> {
        let Some(node) = self.cache.node(name) else { return Ok(None) };
        let (patch, after) = node::next(&node, Timestamp::now(), &self.options.kubelet_version);
        if let Some(patch) = patch {
            let nodes: Api<Node> = Api::all(self.client.clone());
            nodes.patch_status(name, &PatchParams::default(), &Patch::Strategic(patch)).await?;
        }
        Ok(after)
    }

    async fn step_pod(&self, key: &PodKey) -> kube::Result<Option<Duration>> {
        let Some(known) = self.cache.pod(key) else { return Ok(None) };
        let old = &known.pod;
        // A dead or missing kubelet reports nothing and confirms no deletion; the node's return brings the pod back here.
        let node = old.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).and_then(|name| self.cache.node(name));
        if node.is_none_or(|node| node::is_silent(&node)) {
            return Ok(None);
        }
        // The watch echoes our own writes; what was dealt with waits for its time.
        if let Some(settled) = known.settled.filter(|settled| settled.version == old.metadata.resource_version) {
            let left = settled.due.map(|due| due.saturating_duration_since(Instant::now()));
            if left.is_none_or(|left| !left.is_zero()) {
                return Ok(left);
            }
        }
        let timing = Timing { ready_after: self.options.ready_after, back_off: self.options.back_off };
        let step = pod::next(old, known.seen, Timestamp::now(), &timing);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let written = match step.action {
            Action::Nothing => None,
            Action::Write(status) => {
                Some(pods.patch_status(&key.name, &PatchParams::default(), &Patch::Merge(status_patch(old, &status))).await?)
            }
            Action::Delete => {
                let preconditions = Some(Preconditions { uid: old.uid(), resource_version: None });
                pods.delete(&key.name, &DeleteParams { preconditions, ..DeleteParams::default().grace_period(0) }).await?;
                None
            }
        };
        self.cache.settle(key, old, written, step.after.map(|after| Instant::now() + after));
        for event in step.events {
            self.events.write(old, event).await;
        }
        Ok(step.after)
    }
}

/// A merge patch of what the simulator may change in a pod's status, for exactly the version it was decided on.
fn status_patch(pod: &Pod, status: &PodStatus) -> serde_json::Value {
    json!({
        "metadata": {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version},
        "status": status,
    })
}
