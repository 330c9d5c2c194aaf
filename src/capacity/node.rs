//! The part of a node that decides what fits on it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::resources::{Amounts, Resources};
use super::selection::Taint;
use crate::api::nullable;

/// A node of a member. Reads the JSON of a Node and keeps nothing else.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Node")]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Version of the object, to go on watching from.
    pub resource_version: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its taints, sorted.
    pub taints: Vec<Taint>,
    /// It is cordoned.
    pub unschedulable: bool,
    /// Its condition Ready is True.
    pub ready: bool,
    /// What pods may ask for.
    pub allocatable: Resources,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Node {
    #[serde(deserialize_with = "nullable")]
    metadata: Metadata,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    uid: String,
    #[serde(deserialize_with = "nullable")]
    resource_version: String,
    #[serde(deserialize_with = "nullable")]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Spec {
    #[serde(deserialize_with = "nullable")]
    unschedulable: bool,
    #[serde(deserialize_with = "nullable")]
    taints: Vec<Taint>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "nullable")]
    allocatable: Amounts,
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<Condition>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type", deserialize_with = "nullable")]
    type_: String,
    #[serde(deserialize_with = "nullable")]
    status: String,
}

impl From<Node> for NodeView {
    fn from(node: Node) -> Self {
        let mut taints = node.spec.taints;
        taints.sort_unstable();
        Self {
            name: node.metadata.name,
            uid: node.metadata.uid,
            resource_version: node.metadata.resource_version,
            labels: node.metadata.labels,
            taints,
            unschedulable: node.spec.unschedulable,
            ready: node.status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"),
            allocatable: node.status.allocatable.offered(),
        }
    }
}
