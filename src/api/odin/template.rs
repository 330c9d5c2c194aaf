//! Templates and runtime bases: the layers below a service.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::spec::{Model, NameRef, Parallelism, ServiceExposure};

/// A template for services of its own namespace, or of all when it is in the system namespace.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "odin.moreh.io",
    version = "v1alpha1",
    kind = "InferenceServiceTemplate",
    namespaced,
    plural = "inferenceservicetemplates",
    shortname = "ist",
    shortname = "isvctmpl",
    category = "odin",
    doc = "A template for services of its own namespace, or of all namespaces when it is in the system namespace.",
    printcolumn(name = "Framework", type_ = "string", json_path = ".spec.framework"),
    printcolumn(name = "Model", type_ = "string", json_path = ".spec.model.name"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::duplicated_attributes, reason = "printer columns of one type")]
pub struct InferenceServiceTemplateSpec {
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
    /// The `RuntimeBase` that lies below all layers of a service that uses this template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_base_ref: Option<NameRef>,
    /// Which pods of a group stand behind the service's Kubernetes Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceExposure>,
    /// Pod template of a replica, or of the leader of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub template: Option<Value>,
    /// Pod template of the workers of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub worker_template: Option<Value>,
}

/// A template for services of every namespace.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "odin.moreh.io",
    version = "v1alpha1",
    kind = "ClusterInferenceServiceTemplate",
    plural = "clusterinferenceservicetemplates",
    shortname = "cist",
    shortname = "cisvctmpl",
    category = "odin",
    doc = "A template for services of every namespace.",
    printcolumn(name = "Framework", type_ = "string", json_path = ".spec.framework"),
    printcolumn(name = "Model", type_ = "string", json_path = ".spec.model.name"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::duplicated_attributes, reason = "printer columns of one type")]
pub struct ClusterInferenceServiceTemplateSpec {
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
    /// The `RuntimeBase` that lies below all layers of a service that uses this template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_base_ref: Option<NameRef>,
    /// Which pods of a group stand behind the service's Kubernetes Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceExposure>,
    /// Pod template of a replica, or of the leader of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub template: Option<Value>,
    /// Pod template of the workers of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub worker_template: Option<Value>,
}

/// Defaults of an engine: the lowest layer of a service.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "odin.moreh.io",
    version = "v1alpha1",
    kind = "RuntimeBase",
    plural = "runtimebases",
    shortname = "rb",
    category = "odin",
    doc = "Defaults of an engine: the lowest layer of the services that name it.",
    printcolumn(name = "Framework", type_ = "string", json_path = ".spec.framework"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeBaseSpec {
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
    /// Which pods of a group stand behind the service's Kubernetes Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceExposure>,
    /// Pod template of a replica, or of the leader of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub template: Option<Value>,
    /// Pod template of the workers of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub worker_template: Option<Value>,
}
