//! What stands between a workload and its pods.

use serde::Deserialize;

use super::Plain;
use super::meta::Metadata;
use crate::api::lws;
use crate::api::nullable;

/// What joins pods to a Deployment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::member) struct ReplicaSet {
    #[serde(deserialize_with = "nullable")]
    pub(in crate::member) metadata: Metadata,
}

impl Plain for ReplicaSet {
    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }
}

/// What joins pods to a `LeaderWorkerSet`: the one of all leaders, which it controls, or the one of a group's workers,
/// which the leader pod controls.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::member) struct StatefulSet {
    #[serde(deserialize_with = "nullable")]
    pub(in crate::member) metadata: Metadata,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    replicas: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    #[serde(deserialize_with = "nullable")]
    replicas: i64,
    #[serde(deserialize_with = "nullable")]
    available_replicas: i64,
    #[serde(deserialize_with = "nullable")]
    current_revision: String,
    #[serde(deserialize_with = "nullable")]
    update_revision: String,
}

impl StatefulSet {
    /// The group whose workers these are; none for the one of all leaders.
    pub(in crate::member) fn group(&self) -> Option<u32> {
        self.metadata.labels.get(lws::GROUP_INDEX)?.parse().ok()
    }

    fn wanted(&self) -> i64 {
        self.spec.replicas.unwrap_or(1)
    }

    /// Fewer pods exist than are wanted.
    pub(in crate::member) fn is_short(&self) -> bool {
        self.status.replicas < self.wanted()
    }

    /// All of its pods are available and of its newest revision: what `LeaderWorkerSet` 0.9 asks of a ready group.
    pub(in crate::member) fn is_ready(&self) -> bool {
        self.status.available_replicas == self.wanted() && self.status.current_revision == self.status.update_revision
    }
}

impl Plain for StatefulSet {
    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }
}
