//! Parts of a spec that all four kinds share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The model that is served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Name of the model, as the engine knows it.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// How the model is spread over accelerators.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!(has(self.pipeline) && has(self.data))",
        "message": "pipeline and data exclude each other: set pipeline to split the model into stages, or data to run copies of it",
    },
    {
        "rule": "!has(self.data) || !has(self.dataLocal) || self.dataLocal < 1 || self.data % self.dataLocal == 0",
        "message": "data must be a multiple of dataLocal, the ranks of one pod: change one of them so that it divides without remainder",
    },
]))]
pub struct Parallelism {
    /// Accelerators that one rank uses inside a pod. Only expressions read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tensor: Option<i32>,
    /// Pipeline stages, which is pods per group. Excludes `data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4096))]
    pub pipeline: Option<i32>,
    /// Data-parallel ranks of one group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4096))]
    pub data: Option<i32>,
    /// Data-parallel ranks in one pod. Equal to `data` when only that is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub data_local: Option<i32>,
    /// Port on which data-parallel ranks coordinate.
    #[serde(rename = "dataRPCPort", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub data_rpc_port: Option<i32>,
    /// Whether expert parallelism is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expert: Option<bool>,
}

/// Which pods of a group stand behind the service's Kubernetes Service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceExposure {
    /// `leader`, `workers`, `all`, or `auto`: leader when there is a leader template, else all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["leader", "workers", "all", "auto"]))]
    pub target: Option<String>,
}

/// A reference to an object by its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NameRef {
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// An `InferencePool` that the service's pods join.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct PoolRef {
    /// Name of the `InferencePool`, in the service's namespace.
    #[serde(default)]
    pub name: String,
}
