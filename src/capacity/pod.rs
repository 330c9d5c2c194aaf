//! The part of a pod that decides what it takes.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;

use super::request::{self, Demands, Granted};
use super::resources::Resources;
use crate::api::labels::label_value;
use crate::api::nullable;
use crate::api::odin::InferenceService;

/// A service by namespace and name, the same on the hub and in members.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ServiceKey {
    /// A key of these two.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key under which pods know their service: their label holds a long name in a shorter form.
    pub(super) fn of_pods(&self) -> Cow<'_, Self> {
        let label = label_value(&self.name);
        if label == self.name { Cow::Borrowed(self) } else { Cow::Owned(Self::new(self.namespace.as_str(), label)) }
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl From<&InferenceService> for ServiceKey {
    fn from(service: &InferenceService) -> Self {
        Self::new(service.metadata.namespace.clone().unwrap_or_default(), service.metadata.name.clone().unwrap_or_default())
    }
}

/// A pod of a member. Reads the JSON of a Pod and keeps nothing else.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Pod")]
pub struct PodView {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Version of the object, to go on watching from.
    pub resource_version: String,
    /// The node that it takes room on: assigned, or nominated while it waits for others to go.
    pub node: Option<String>,
    /// It ended and takes nothing any more.
    pub finished: bool,
    /// It is being deleted; it takes its room until it is gone.
    pub terminating: bool,
    /// The service that it is a pod of, as its labels name it.
    pub service: Option<ServiceKey>,
    /// Its place in a group of a `LeaderWorkerSet`.
    pub group: Option<GroupPlace>,
    /// What it asks for.
    pub requests: Resources,
}

/// The place of a pod in a group of a `LeaderWorkerSet`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupPlace {
    /// The same for all pods of the group and for no others.
    pub key: String,
    /// It is the leader.
    pub leader: bool,
    /// Key of a node label by whose values the group keeps all other groups of its namespace away.
    pub exclusive_topology: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Pod {
    #[serde(deserialize_with = "nullable")]
    metadata: Metadata,
    #[serde(deserialize_with = "nullable")]
    spec: Demands,
    #[serde(deserialize_with = "nullable")]
    status: Granted,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    #[serde(deserialize_with = "nullable")]
    namespace: String,
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    uid: String,
    #[serde(deserialize_with = "nullable")]
    resource_version: String,
    deletion_timestamp: Option<serde::de::IgnoredAny>,
    #[serde(deserialize_with = "nullable")]
    labels: Labels,
    #[serde(deserialize_with = "nullable")]
    annotations: Annotations,
}

/// The labels that matter; all others are passed over without being copied.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Labels {
    #[serde(rename = "mif.moreh.io/inferenceservice")]
    service: Option<String>,
    #[serde(rename = "app.kubernetes.io/instance")]
    instance: Option<String>,
    #[serde(rename = "leaderworkerset.sigs.k8s.io/name")]
    set: Option<String>,
    #[serde(rename = "leaderworkerset.sigs.k8s.io/worker-index")]
    worker_index: Option<String>,
    #[serde(rename = "leaderworkerset.sigs.k8s.io/group-index")]
    group_index: Option<String>,
    #[serde(rename = "leaderworkerset.sigs.k8s.io/group-key")]
    group_key: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "leaderworkerset.sigs.k8s.io/exclusive-topology")]
    exclusive_topology: Option<String>,
}

impl Labels {
    /// Workers have no label of the service, since nothing may send them requests: their set is the service's when it
    /// says that it is an instance of that name.
    fn service(&self) -> Option<&str> {
        let service = self.service.as_deref().filter(|name| !name.is_empty());
        service.or_else(|| self.set.as_deref().filter(|set| !set.is_empty() && self.instance.as_deref() == Some(set)))
    }

    fn group(self, exclusive_topology: Option<String>) -> Option<GroupPlace> {
        let set = self.set?;
        // The key differs between all groups of a namespace; without it the index still tells those of one set apart.
        let key = self.group_key.unwrap_or_else(|| format!("{set}/{}", self.group_index.unwrap_or_default()));
        Some(GroupPlace { key, leader: self.worker_index.as_deref() == Some("0"), exclusive_topology })
    }
}

impl From<Pod> for PodView {
    fn from(pod: Pod) -> Self {
        let Pod { metadata, spec, status } = pod;
        let named = |name: Option<String>| name.filter(|name| !name.is_empty());
        let requests = request::of_pod(&spec, &status);
        let finished = matches!(status.phase.as_str(), "Succeeded" | "Failed");
        Self {
            node: named(spec.node_name).or(named(status.nominated_node_name)),
            finished,
            terminating: metadata.deletion_timestamp.is_some(),
            service: metadata.labels.service().map(|name| ServiceKey::new(metadata.namespace.clone(), name)),
            group: metadata.labels.group(named(metadata.annotations.exclusive_topology)),
            requests,
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::labels::{APP_INSTANCE, INFERENCE_SERVICE};
    use crate::api::lws;

    fn read(labels: &Value, annotations: &Value) -> PodView {
        serde_json::from_value(json!({"metadata": {"namespace": "team", "labels": labels, "annotations": annotations}})).unwrap()
    }

    #[test]
    fn the_service_of_a_pod() {
        let chat = Some(ServiceKey::new("team", "chat"));
        for (labels, service) in [
            (json!({}), None),
            (json!({INFERENCE_SERVICE: "chat"}), chat.clone()),
            (json!({lws::NAME: "chat", APP_INSTANCE: "chat"}), chat.clone()),
            (json!({INFERENCE_SERVICE: "", lws::NAME: "chat", APP_INSTANCE: "chat"}), chat.clone()),
            (json!({INFERENCE_SERVICE: "chat", lws::NAME: "other", APP_INSTANCE: "other"}), chat),
            (json!({lws::NAME: "chat"}), None),
            (json!({lws::NAME: "chat", APP_INSTANCE: "other"}), None),
            (json!({lws::NAME: "", APP_INSTANCE: ""}), None),
            (json!({APP_INSTANCE: "chat"}), None),
        ] {
            assert_eq!(read(&labels, &json!({})).service, service, "{labels}");
        }
    }

    #[test]
    fn the_place_of_a_pod_in_its_group() {
        let of = |key: &str, leader, topology: Option<&str>| {
            Some(GroupPlace { key: key.to_owned(), leader, exclusive_topology: topology.map(str::to_owned) })
        };
        let rack = json!({lws::EXCLUSIVE_TOPOLOGY: "rack"});
        for (labels, annotations, place) in [
            (json!({INFERENCE_SERVICE: "chat"}), &rack, None),
            (json!({lws::NAME: "chat", lws::WORKER_INDEX: "0", lws::GROUP_KEY: "k"}), &rack, of("k", true, Some("rack"))),
            (json!({lws::NAME: "chat", lws::WORKER_INDEX: "1", lws::GROUP_KEY: "k"}), &json!(null), of("k", false, None)),
            (json!({lws::NAME: "chat", lws::GROUP_INDEX: "3"}), &json!({}), of("chat/3", false, None)),
        ] {
            assert_eq!(read(&labels, annotations).group, place, "{labels}");
        }
    }
}
