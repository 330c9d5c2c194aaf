//! `MemberCluster`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::schema::fields;

/// A cluster in which the hub may run services.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "federation.odin.moreh.io",
    version = "v1alpha1",
    kind = "MemberCluster",
    plural = "memberclusters",
    shortname = "mcl",
    category = "odin",
    doc = "A cluster in which the hub may run services.",
    status = "MemberClusterStatus",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.kubernetesVersion"),
    printcolumn(name = "Accelerators", type_ = "string", json_path = ".status.acceleratorSummary"),
    printcolumn(name = "Services", type_ = "integer", json_path = ".status.services"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "LWS", type_ = "string", priority = 1, json_path = ".status.leaderWorkerSetVersion"),
    printcolumn(name = "Reason", type_ = "string", priority = 1, json_path = ".status.conditions[?(@.type==\"Ready\")].reason"),
    printcolumn(name = "Credential", type_ = "string", priority = 1, json_path = ".status.credential.expiresIn"),
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::duplicated_attributes, reason = "printer columns of one type")]
pub struct MemberClusterSpec {
    /// The Secret with the member's kubeconfig.
    pub secret_ref: SecretRef,
    /// Namespaces of the hub whose services may come here; all without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fields::label_selector")]
    pub namespace_selector: Option<LabelSelector>,
    /// Keep services away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Vec<Taint>,
    /// The hub reads here but writes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
    /// Don't count a `ResourceQuota` of the member as a bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_resource_quota: bool,
    /// The member's API server adds tolerations for the extended resources that a pod asks for (admission plugin
    /// `ExtendedResourceToleration`), which the hub can't see by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub extended_resource_toleration: bool,
    /// Bounds of the hub's requests to this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_limits: Option<RequestLimits>,
}

/// The Secret with a kubeconfig, in the hub's own namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in the Secret; `kubeconfig` without it, else `value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = "^[-._a-zA-Z0-9]+$"))]
    pub key: Option<String>,
}

/// Keeps services away from a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Key that a toleration names.
    #[schemars(
        length(min = 1, max = 316),
        regex(pattern = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?$")
    )]
    pub key: String,
    /// Value that a toleration may name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = "^([a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?)?$"))]
    pub value: Option<String>,
    /// What it does to services that don't tolerate it.
    pub effect: TaintEffect,
}

/// What a taint does to services that don't tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// Nothing new comes here.
    NoSchedule,
    /// What is here leaves.
    NoExecute,
    /// Last choice.
    PreferNoSchedule,
}

/// Bounds of the hub's requests to a member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestLimits {
    /// Requests per second; 500 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub qps: Option<i32>,
    /// Requests at once before the rate applies; 1000 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub burst: Option<i32>,
    /// Requests in flight; 64 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_in_flight: Option<i32>,
}

/// What the hub knows of a member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberClusterStatus {
    /// Conditions, sorted by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "fields::conditions")]
    pub conditions: Vec<Condition>,
    /// UID of the member's namespace kube-system, which tells clusters apart.
    #[serde(rename = "clusterUID", skip_serializing_if = "Option::is_none")]
    pub cluster_uid: Option<String>,
    /// Version of the member's API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// API versions of `LeaderWorkerSet` that the member serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader_worker_set_version: Option<String>,
    /// About the credential, never the credential itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<CredentialStatus>,
    /// Devices by resource and model, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub accelerators: Vec<Accelerator>,
    /// Short form of accelerators for people, free/allocatable: `24/64 mi300x`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator_summary: Option<String>,
    /// Services with a placement here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub services: Option<i32>,
    /// Groups placed here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// When the member last answered; written when it stops to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Time>,
}

/// About a credential.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialStatus {
    /// `token` or `clientCertificate`.
    #[serde(rename = "type")]
    pub type_: String,
    /// When it ends, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// Days until it ends, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<String>,
    /// Who renews it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewed_by: Option<String>,
}

/// Devices of one resource and model in a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Accelerator {
    /// Extended resource, for example `amd.com/gpu`.
    pub resource: String,
    /// Vendor, for example `amd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// Model, for example `mi300x`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Nodes that have some.
    pub nodes: i64,
    /// Devices that pods may ask for, over all nodes.
    pub allocatable: i64,
    /// Devices that assigned pods asked for.
    pub used: i64,
    /// Devices promised to services whose pods aren't assigned yet.
    pub reserved: i64,
    /// Devices that are free, on nodes that take pods.
    pub free: i64,
    /// Most devices that are free on one node.
    pub largest_free_node: i64,
    /// How many nodes have how many free: shows fragmentation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub free_by_node: Vec<FreeNodes>,
}

/// Nodes with equally many free devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FreeNodes {
    /// Free devices of each of these nodes.
    pub free: i64,
    /// How many nodes.
    pub nodes: i64,
}
