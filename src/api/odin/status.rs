//! Status of an `InferenceService`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::schema::fields;

/// What the hub knows of a service over all members. Counts are groups: pods of a Deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InferenceServiceStatus {
    /// Conditions, sorted by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "fields::conditions")]
    pub conditions: Vec<Condition>,
    /// Groups that exist, in any revision and state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Groups that are ready, in any revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Groups of the current revision, in any state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_replicas: Option<i32>,
    /// Generation that this status was made for. It moves at the end of a successful pass only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Label selector for an autoscaler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hpa_pod_selector: Option<String>,
    /// The merged, defaulted and rendered spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object", "x-kubernetes-preserve-unknown-fields" = true))]
    pub rendered_spec: Option<Value>,
    /// Hash of the rendered spec, also when that was too large to store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rendered_hash: Option<String>,
    /// The child workload that explains the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadStatus>,
    /// What each member holds, sorted by cluster. It is written before it is acted on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub placements: Vec<Placement>,
    /// Short form of placements for people: `gpu-a:2,gpu-b:1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<String>,
    /// Groups that are wanted and that no member can hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unplaced_replicas: Option<i32>,
    /// Why members were passed over, most informative first, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub rejections: Vec<Rejection>,
    /// How many members were passed over for each reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rejection_summary: BTreeMap<String, i32>,
    /// Layers that were used, lowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub sources: Vec<Source>,
}

/// What one member holds of a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// Name of the `MemberCluster`.
    pub cluster: String,
    /// The variant of the policy that this member takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Groups that are wanted there.
    pub replicas: i32,
    /// How far the member is.
    pub phase: Phase,
    /// Groups that exist there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_replicas: Option<i32>,
    /// Groups that are ready there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Groups of the current revision there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_replicas: Option<i32>,
    /// Hash of what was rendered for this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rendered_hash: Option<String>,
    /// Generation of the service that was applied there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The workload there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<PlacementWorkload>,
    /// Name of the Kubernetes Service there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it is not ready, for people; at most 256 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the member was last seen. Only set while it can't be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Time>,
    /// The counts are the last known ones: the member can't be seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
}

/// How far a member is with what was decided for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Decided, not applied yet.
    #[default]
    Planned,
    /// Applied, not all ready.
    Applied,
    /// All wanted groups are ready in the wanted revision.
    Ready,
    /// Being removed.
    Leaving,
    /// Held back on purpose.
    Suspended,
    /// The member can't be seen.
    Unknown,
}

/// Kind of the workload that serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum WorkloadKind {
    /// apps/v1 Deployment.
    #[default]
    Deployment,
    /// leaderworkerset.x-k8s.io/v1 `LeaderWorkerSet`.
    LeaderWorkerSet,
}

impl WorkloadKind {
    /// As the API spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::LeaderWorkerSet => "LeaderWorkerSet",
        }
    }
}

/// The workload of one placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementWorkload {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Generation that its controller has observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The child workload that explains the state of the service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The member that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Generation that its controller has observed; absent until it has reported one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Its conditions, verbatim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "fields::open_objects")]
    pub conditions: Vec<Value>,
    /// The one cause of trouble. Absent while the service is ready, or while nothing points at a cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostic: Option<Diagnostic>,
}

/// One picked signal of trouble.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// The kind of trouble, one of a fixed list.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// What happened, at most 1,024 characters.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// When it happened.
    pub observed_at: Time,
    /// The object that showed it.
    pub involved_object: ObjectRef,
    /// The member that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The container that showed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

/// An object in a member or on the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Its kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Its namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Why a member was passed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    /// Name of the `MemberCluster`.
    pub cluster: String,
    /// The rule that it failed, one of a fixed list.
    pub reason: String,
    /// What was needed and what was there.
    pub message: String,
}

/// A layer that was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// Its kind.
    pub kind: String,
    /// Its namespace, if its kind has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// The generation that was used.
    pub generation: i64,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}
