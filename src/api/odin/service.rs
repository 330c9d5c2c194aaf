//! `InferenceService`.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::spec::{Model, NameRef, Parallelism, PoolRef, ServiceExposure};
use super::status::InferenceServiceStatus;
use crate::api::schema::fields;

/// A model that is to be served: how many replicas of what.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "odin.moreh.io",
    version = "v1alpha1",
    kind = "InferenceService",
    namespaced,
    plural = "inferenceservices",
    shortname = "is",
    shortname = "isvc",
    category = "odin",
    doc = "A model that is to be served: how many replicas of what, over all member clusters.",
    status = "InferenceServiceStatus",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.hpaPodSelector"
    ),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Up-to-date", type_ = "integer", json_path = ".status.updatedReplicas"),
    printcolumn(name = "Serving", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "Clusters", type_ = "string", json_path = ".status.clusters"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Workload", type_ = "string", priority = 1, json_path = ".status.workload.kind"),
    printcolumn(name = "Model", type_ = "string", priority = 1, json_path = ".status.renderedSpec.model.name"),
    printcolumn(name = "Unplaced", type_ = "integer", priority = 1, json_path = ".status.unplacedReplicas"),
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::duplicated_attributes, reason = "printer columns of one type")]
pub struct InferenceServiceSpec {
    /// Serving engine, for example `vllm` or `sglang`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?$"))]
    pub framework: Option<String>,
    /// The model that is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// How the model is spread over accelerators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<Parallelism>,
    /// Groups that are wanted, over all members.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000), extend("default" = 1))]
    pub replicas: Option<i32>,
    /// Old revisions that a Deployment keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub revision_history_limit: Option<i32>,
    /// How a new revision replaces the old one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_strategy: Option<RolloutStrategy>,
    /// The `RuntimeBase` that lies below all other layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_base_ref: Option<NameRef>,
    /// Which pods of a group stand behind the service's Kubernetes Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceExposure>,
    // Carried as it was written, never re-typed.
    /// Pod template of a replica, or of the leader of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub template: Option<Value>,
    /// Pod template of the workers of a group. Its presence makes the workload a `LeaderWorkerSet`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub worker_template: Option<Value>,
    /// Templates that lie below this spec, lowest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub template_refs: Option<Vec<TemplateRef>>,
    /// The `InferencePool` that the pods join.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1), extend("x-kubernetes-list-type" = "atomic"))]
    pub inference_pool_refs: Option<Vec<PoolRef>>,
}

/// A reference to a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateRef {
    /// Name of the template.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// `InferenceServiceTemplate` or `ClusterInferenceServiceTemplate`. Without it a cluster template of that name
    /// wins over a namespaced one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"),
        extend("x-kubernetes-validations" = [{
            "rule": "self in ['InferenceServiceTemplate', 'ClusterInferenceServiceTemplate']",
            "message": "kind must be InferenceServiceTemplate or ClusterInferenceServiceTemplate; leave it out to mean whichever exists",
        }])
    )]
    pub kind: Option<String>,
    /// `odin.moreh.io`, which is also meant when it is empty or left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 253),
        regex(pattern = "^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
        extend("x-kubernetes-validations" = [{
            "rule": "self in ['', 'odin.moreh.io']",
            "message": "group must be odin.moreh.io; leave it out, the group of the templates is meant",
        }])
    )]
    pub group: Option<String>,
}

/// How a new revision replaces the old one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!(has(self.type) && self.type == 'Recreate' && has(self.rollingUpdate))",
    "message": "rollingUpdate has no meaning with type Recreate: remove rollingUpdate, or set type to RollingUpdate",
}]))]
pub struct RolloutStrategy {
    /// `RollingUpdate`, or `Recreate` for a Deployment.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["RollingUpdate", "Recreate"]))]
    pub type_: Option<String>,
    /// Bounds of a rolling update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
}

/// Bounds of a rolling update, as a number of groups or a percentage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    /// Groups that may be missing meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fields::number_or_percent_to_100")]
    pub max_unavailable: Option<IntOrString>,
    /// Groups that may exist in addition meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "fields::number_or_percent")]
    pub max_surge: Option<IntOrString>,
    /// Groups with a lower index keep the old revision. `LeaderWorkerSet` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub partition: Option<i32>,
}
