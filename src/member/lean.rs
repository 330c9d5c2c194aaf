//! The parts of a member's objects that are kept, read straight from the bytes of a list or a watch.
//!
//! An object is read more than once where two modules want different parts of it: passing over JSON is cheap, keeping a
//! whole Pod isn't.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::labels::{GENERATION, HUB, INFERENCE_SERVICE, RENDERED_HASH, SERVICE_UID, SOURCE};
use crate::api::nullable;
use crate::api::odin::WorkloadKind;
use crate::capacity::{NodeView, PodView, ServiceKey};
use crate::status::{PodStatusView, WorkloadView};

/// Conditions of one object that are kept: a member may be hostile.
const MAX_CONDITIONS: usize = 64;

/// The kinds that are watched in a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Node,
    Pod,
    Deployment,
    ReplicaSet,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Node, Self::Pod, Self::Deployment, Self::ReplicaSet];

    /// As permissions name it.
    pub(super) const fn plural(self) -> &'static str {
        match self {
            Self::Node => "nodes",
            Self::Pod => "pods",
            Self::Deployment => "deployments",
            Self::ReplicaSet => "replicasets",
        }
    }

    /// Path of all objects of the kind in a member.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Node => "/api/v1/nodes",
            Self::Pod => "/api/v1/pods",
            Self::Deployment => "/apis/apps/v1/deployments",
            Self::ReplicaSet => "/apis/apps/v1/replicasets",
        }
    }
}

/// An object of which parts are kept.
pub(super) trait Lean: Sized + Send + 'static {
    /// The object in one line of a watch.
    fn of_event(line: &[u8]) -> serde_json::Result<Self>;
    /// The objects of one page of a list.
    fn of_list(page: &[u8]) -> serde_json::Result<Vec<Self>>;
    /// Where a watch goes on after it.
    fn resource_version(&self) -> &str;
}

#[derive(Deserialize)]
struct EventOf<T> {
    object: T,
}

#[derive(Deserialize)]
struct ListOf<T> {
    /// A list of nothing is null.
    items: Option<Vec<T>>,
}

fn event<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice::<EventOf<T>>(line).map(|event| event.object)
}

fn list<T: DeserializeOwned>(page: &[u8]) -> serde_json::Result<Vec<T>> {
    serde_json::from_slice::<ListOf<T>>(page).map(|list| list.items.unwrap_or_default())
}

impl Lean for NodeView {
    fn of_event(line: &[u8]) -> serde_json::Result<Self> {
        event(line)
    }

    fn of_list(page: &[u8]) -> serde_json::Result<Vec<Self>> {
        list(page)
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }
}

/// A pod: what it takes, and what is wrong with it if it is one of a service.
#[derive(Debug)]
pub(super) struct Pod {
    pub(super) view: PodView,
    pub(super) status: Option<PodStatusView>,
}

impl Lean for Pod {
    fn of_event(line: &[u8]) -> serde_json::Result<Self> {
        let view: PodView = event(line)?;
        let status = if view.service.is_some() { Some(event(line)?) } else { None };
        Ok(Self { view, status })
    }

    fn of_list(page: &[u8]) -> serde_json::Result<Vec<Self>> {
        let views: Vec<PodView> = list(page)?;
        let statuses: Vec<PodStatusView> = if views.iter().any(|view| view.service.is_some()) { list(page)? } else { Vec::new() };
        let mut statuses = statuses.into_iter();
        let pods = views.into_iter().map(|view| {
            let status = statuses.next().filter(|_| view.service.is_some());
            Self { view, status }
        });
        Ok(pods.collect())
    }

    fn resource_version(&self) -> &str {
        &self.view.resource_version
    }
}

/// A workload of ours.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Deployment {
    #[serde(deserialize_with = "nullable")]
    pub(super) metadata: Metadata,
    #[serde(deserialize_with = "nullable")]
    status: DeploymentStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) generation: i64,
    pub(super) deletion_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "nullable")]
    labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    annotations: Annotations,
    #[serde(deserialize_with = "nullable")]
    owner_references: Vec<Owner>,
}

/// The annotations that matter; others may be large.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "federation.odin.moreh.io/source")]
    source: Option<String>,
    #[serde(rename = "federation.odin.moreh.io/rendered-hash")]
    rendered_hash: Option<String>,
    #[serde(rename = "federation.odin.moreh.io/generation")]
    generation: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Owner {
    uid: String,
    #[serde(deserialize_with = "nullable")]
    controller: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeploymentStatus {
    observed_generation: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    replicas: i64,
    #[serde(deserialize_with = "nullable")]
    ready_replicas: i64,
    #[serde(deserialize_with = "nullable")]
    updated_replicas: i64,
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<Value>,
}

impl Deployment {
    /// UID of the service that it says it belongs to.
    pub(super) fn service_uid(&self) -> Option<&str> {
        self.metadata.labels.get(SERVICE_UID).map(String::as_str)
    }

    /// Whether it bears the marks of an object that this hub made for this service, with what was applied last.
    pub(super) fn bears(&self, hub_id: &str, service_uid: &str, hash: &str, generation: i64) -> bool {
        self.metadata.labels.get(HUB).is_some_and(|id| id == hub_id)
            && self.service_uid() == Some(service_uid)
            && self.metadata.annotations.rendered_hash.as_deref() == Some(hash)
            && self.service_generation() == Some(generation)
    }

    fn service_generation(&self) -> Option<i64> {
        self.metadata.annotations.generation.as_deref().and_then(|text| text.parse().ok())
    }

    /// The service on the hub.
    pub(super) fn service(&self) -> ServiceKey {
        if let Some((namespace, name)) = self.metadata.annotations.source.as_deref().and_then(|source| source.split_once('/')) {
            return ServiceKey::new(namespace, name);
        }
        let name = self.metadata.labels.get(INFERENCE_SERVICE).unwrap_or(&self.metadata.name);
        ServiceKey::new(self.metadata.namespace.as_str(), name.as_str())
    }

    /// What the status of the service is made from.
    pub(super) fn view(&self) -> WorkloadView {
        let count = |n: i64| u32::try_from(n.max(0)).unwrap_or(u32::MAX);
        WorkloadView {
            kind: WorkloadKind::Deployment,
            name: self.metadata.name.clone(),
            namespace: self.metadata.namespace.clone(),
            uid: self.metadata.uid.clone(),
            generation: self.metadata.generation,
            observed_generation: self.status.observed_generation,
            replicas: count(self.status.replicas),
            ready: count(self.status.ready_replicas),
            updated: count(self.status.updated_replicas),
            conditions: self.status.conditions.clone(),
            deletion_timestamp: self.metadata.deletion_timestamp,
            rendered_hash: self.metadata.annotations.rendered_hash.clone(),
            service_generation: self.service_generation(),
        }
    }
}

impl Lean for Deployment {
    fn of_event(line: &[u8]) -> serde_json::Result<Self> {
        event(line).map(capped)
    }

    fn of_list(page: &[u8]) -> serde_json::Result<Vec<Self>> {
        Ok(list(page)?.into_iter().map(capped).collect())
    }

    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }
}

fn capped(mut deployment: Deployment) -> Deployment {
    deployment.status.conditions.truncate(MAX_CONDITIONS);
    deployment
}

/// What joins pods to a Deployment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReplicaSet {
    #[serde(deserialize_with = "nullable")]
    pub(super) metadata: Metadata,
}

impl ReplicaSet {
    /// UID of the Deployment that controls it.
    pub(super) fn owner(&self) -> Option<&str> {
        self.metadata.owner_references.iter().find(|owner| owner.controller).map(|owner| owner.uid.as_str())
    }
}

impl Lean for ReplicaSet {
    fn of_event(line: &[u8]) -> serde_json::Result<Self> {
        event(line)
    }

    fn of_list(page: &[u8]) -> serde_json::Result<Vec<Self>> {
        list(page)
    }

    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }
}

// The names of the fields above can't be constants; this keeps them in step with the constants.
const _: () = {
    assert!(same(SOURCE, "federation.odin.moreh.io/source"));
    assert!(same(RENDERED_HASH, "federation.odin.moreh.io/rendered-hash"));
    assert!(same(GENERATION, "federation.odin.moreh.io/generation"));
};

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler, where an index out of bounds stops the build")]
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(object: &Value) -> Vec<u8> {
        serde_json::to_vec(&json!({"type": "ADDED", "object": object})).unwrap()
    }

    fn pod(name: &str, service: Option<&str>) -> Value {
        let labels = service.map_or(json!({}), |s| json!({INFERENCE_SERVICE: s}));
        json!({
            "metadata": {"namespace": "team", "name": name, "uid": format!("uid-{name}"), "resourceVersion": "7", "labels": labels},
            "spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Pending"},
        })
    }

    #[test]
    fn the_status_of_a_pod_is_kept_only_for_services() {
        let ours = Pod::of_event(&line(&pod("a", Some("chat")))).unwrap();
        assert_eq!((ours.status.unwrap().metadata.name.as_str(), ours.view.resource_version.as_str()), ("a", "7"));
        assert!(Pod::of_event(&line(&pod("b", None))).unwrap().status.is_none());

        let page = serde_json::to_vec(&json!({"metadata": {}, "items": [pod("a", None), pod("b", Some("chat")), pod("c", None)]})).unwrap();
        let kept: Vec<_> = Pod::of_list(&page).unwrap().into_iter().map(|p| (p.view.name, p.status.map(|s| s.metadata.name))).collect();
        assert_eq!(kept, [("a".into(), None), ("b".into(), Some("b".into())), ("c".into(), None)]);
        assert!(Pod::of_list(br#"{"metadata": {}, "items": null}"#).unwrap().is_empty());
    }

    #[test]
    fn a_deployment_gives_the_view_of_the_workload() {
        let object = json!({
            "metadata": {
                "namespace": "team", "name": "chat", "uid": "u", "resourceVersion": "8", "generation": 3,
                "labels": {HUB: "h", SERVICE_UID: "s"},
                "annotations": {SOURCE: "team/chat-with-a-longer-name", RENDERED_HASH: "abc", GENERATION: "5", "large": "x"},
            },
            "spec": {"replicas": 2},
            "status": {"observedGeneration": 3, "replicas": 2, "readyReplicas": 1, "conditions": [{"type": "Available", "odd": 1}]},
        });
        let deployment = Deployment::of_event(&line(&object)).unwrap();
        let view = deployment.view();
        assert_eq!((view.generation, view.observed_generation, view.replicas, view.ready, view.updated), (3, Some(3), 2, 1, 0));
        assert_eq!(view.conditions, [json!({"type": "Available", "odd": 1})]);
        assert_eq!((view.rendered_hash.as_deref(), view.service_generation), (Some("abc"), Some(5)));
        assert_eq!(deployment.service(), ServiceKey::new("team", "chat-with-a-longer-name"));
        for (hub, service, hash, generation, want) in [
            ("h", "s", "abc", 5, true),
            ("x", "s", "abc", 5, false),
            ("h", "x", "abc", 5, false),
            ("h", "s", "x", 5, false),
            ("h", "s", "abc", 4, false),
        ] {
            assert_eq!(deployment.bears(hub, service, hash, generation), want, "{hub} {service} {hash} {generation}");
        }
    }

    #[test]
    fn a_replica_set_names_the_deployment_that_controls_it() {
        let object = json!({"metadata": {"uid": "r", "ownerReferences": [{"uid": "x"}, {"uid": "d", "controller": true}]}});
        assert_eq!(ReplicaSet::of_event(&line(&object)).unwrap().owner(), Some("d"));
    }
}
