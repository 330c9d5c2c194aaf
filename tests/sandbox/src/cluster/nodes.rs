//! A member's simulated nodes.

use anyhow::{Context, Result};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::Cluster;
use crate::sim::NodeSpec;

impl Cluster {
    /// Adds nodes; the simulator makes them Ready.
    pub async fn add_nodes(&self, nodes: &[NodeSpec]) -> Result<()> {
        let api: Api<Node> = Api::all(self.client().await?);
        let params = PostParams::default();
        let create = async |node: &NodeSpec| api.create(&params, &node.to_node()).await.map(drop);
        try_join_all(nodes.iter().map(create)).await.with_context(|| format!("nodes of {}", self.name()))?;
        Ok(())
    }

    /// Deletes a node's object, as an autoscaler does: its pods are removed by the controller-manager.
    pub async fn remove_node(&self, name: &str) -> Result<()> {
        let api: Api<Node> = Api::all(self.client().await?);
        api.delete(name, &DeleteParams::default()).await.with_context(|| format!("node {name}"))?;
        Ok(())
    }

    /// Makes a node unschedulable (`true`) or schedulable again.
    pub async fn cordon_node(&self, name: &str, cordoned: bool) -> Result<()> {
        self.patch_node(name, json!({"spec": {"unschedulable": cordoned}})).await
    }

    /// Sets a label of a node, or removes it (`None`).
    pub async fn label_node(&self, name: &str, label: &str, value: Option<&str>) -> Result<()> {
        self.patch_node(name, json!({"metadata": {"labels": {label: value}}})).await
    }

    /// Sets an annotation of a node, such as those that the simulator reads, or removes it (`None`).
    pub async fn annotate_node(&self, name: &str, annotation: &str, value: Option<&str>) -> Result<()> {
        self.patch_node(name, json!({"metadata": {"annotations": {annotation: value}}})).await
    }

    async fn patch_node(&self, name: &str, patch: serde_json::Value) -> Result<()> {
        let api: Api<Node> = Api::all(self.client().await?);
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.with_context(|| format!("node {name}"))?;
        Ok(())
    }
}
