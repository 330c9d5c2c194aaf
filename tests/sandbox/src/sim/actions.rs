//! What tests do to nodes and pods.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{EvictParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    annotations::{CONTAINER, FAIL, FAIL_AFTER, Fault, NOT_READY, SILENT},
    spec::NodeSpec,
};

/// What goes wrong with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeFault {
    /// As dead: no lease and no status, so it turns Unknown after the grace period; its pods are left as they are.
    Silent,
    /// Its kubelet lives and reports that it is not ready.
    NotReady,
}

impl NodeFault {
    fn annotation(self) -> &'static str {
        match self {
            Self::Silent => SILENT,
            Self::NotReady => NOT_READY,
        }
    }
}

/// Creates a node. It is Ready as soon as the cluster's simulator has seen it.
pub async fn create_node(client: &Client, spec: &NodeSpec) -> kube::Result<Node> {
    Api::all(client.clone()).create(&PostParams::default(), &spec.to_node()).await
}

/// Lets the live pods that match a label selector fail; gives how many there are.
///
/// Their successors are well: a fault that is to stay belongs in the pod template, see [`Fault::annotations`].
pub async fn set_fault(client: &Client, namespace: &str, selector: &str, fault: &Fault) -> kube::Result<usize> {
    let mut annotations = json!({FAIL_AFTER: null, CONTAINER: null});
    if let Some(object) = annotations.as_object_mut() {
        object.extend(fault.annotations().into_iter().map(|(key, value)| (key, Value::String(value))));
    }
    annotate_pods(client, namespace, selector, &annotations).await
}

/// Ends the fault of the live pods that match a label selector; gives how many there are.
pub async fn clear_fault(client: &Client, namespace: &str, selector: &str) -> kube::Result<usize> {
    annotate_pods(client, namespace, selector, &json!({FAIL: null, FAIL_AFTER: null, CONTAINER: null})).await
}

async fn annotate_pods(client: &Client, namespace: &str, selector: &str, annotations: &Value) -> kube::Result<usize> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    let mut count = 0;
    for pod in pods.list_metadata(&ListParams::default().labels(selector)).await? {
        if found(pods.patch_metadata(&pod.name_any(), &PatchParams::default(), &patch).await)?.is_some() {
            count += 1;
        }
    }
    Ok(count)
}

/// Lets a node fail.
pub async fn set_node_fault(client: &Client, node: &str, fault: NodeFault) -> kube::Result<()> {
    patch_node(client, node, &json!({"metadata": {"annotations": {fault.annotation(): "true"}}})).await
}

/// Ends all faults of a node.
pub async fn clear_node_fault(client: &Client, node: &str) -> kube::Result<()> {
    patch_node(client, node, &json!({"metadata": {"annotations": {SILENT: null, NOT_READY: null}}})).await
}

/// Closes a node to new pods and evicts those that run on it, except those of a `DaemonSet`; gives how many it evicted.
///
/// An eviction that a `PodDisruptionBudget` refuses is tried again every second until it passes. It does not wait
/// until the pods are gone.
pub async fn drain(client: &Client, node: &str) -> kube::Result<usize> {
    patch_node(client, node, &json!({"spec": {"unschedulable": true}})).await?;
    let all: Api<Pod> = Api::all(client.clone());
    let mut count = 0;
    for pod in all.list_metadata(&ListParams::default().fields(&format!("spec.nodeName={node}"))).await? {
        if pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet") {
            continue;
        }
        let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        loop {
            match found(pods.evict(&pod.name_any(), &EvictParams::default()).await) {
                Err(kube::Error::Api(status)) if status.code == 429 => tokio::time::sleep(Duration::from_secs(1)).await,
                result => {
                    count += usize::from(result?.is_some());
                    break;
                }
            }
        }
    }
    Ok(count)
}

/// Opens a drained node to new pods again.
pub async fn uncordon(client: &Client, node: &str) -> kube::Result<()> {
    patch_node(client, node, &json!({"spec": {"unschedulable": null}})).await
}

async fn patch_node(client: &Client, node: &str, patch: &Value) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.patch_metadata(node, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
}

/// A pod that is gone meanwhile is no error.
fn found<T>(result: kube::Result<T>) -> kube::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}
