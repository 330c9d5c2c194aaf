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
    /// The service that it is a pod of, as its label names it.
    pub service: Option<ServiceKey>,
    /// What it asks for.
    pub requests: Resources,
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
}

/// The one label that matters; all others are passed over without being copied.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Labels {
    #[serde(rename = "mif.moreh.io/inferenceservice")]
    service: Option<String>,
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
            service: named(metadata.labels.service).map(|name| ServiceKey::new(metadata.namespace.clone(), name)),
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
    use super::*;
    use crate::api::labels::INFERENCE_SERVICE;

    #[test]
    fn reads_the_label_of_the_service() {
        let pod: PodView =
            serde_json::from_value(serde_json::json!({"metadata": {"namespace": "team", "labels": {INFERENCE_SERVICE: "chat"}}})).unwrap();
        assert_eq!(pod.service, Some(ServiceKey::new("team", "chat")));
    }
}
