//! Writes to the service on the hub: its finalizer and its status. Each carries the resourceVersion that it was
//! computed from, so that a decision made from stale input is never stored.

use std::collections::BTreeMap;

use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::api::labels::FINALIZER;
use crate::api::odin::{InferenceService, InferenceServiceStatus};
use crate::status::merge_patch;

fn api(client: &Client, service: &InferenceService) -> Api<InferenceService> {
    Api::namespaced(client.clone(), &service.namespace().unwrap_or_default())
}

/// Puts the hub's finalizer on the service, before anything is made for it in a member.
pub(super) async fn add_finalizer(client: &Client, service: &InferenceService) -> kube::Result<InferenceService> {
    let finalizers: Vec<&str> = service.finalizers().iter().map(String::as_str).chain([FINALIZER]).collect();
    set_finalizers(client, service, &finalizers).await
}

/// Takes the hub's finalizer off: nothing is left of the service in members.
pub(super) async fn remove_finalizer(client: &Client, service: &InferenceService) -> kube::Result<()> {
    let finalizers: Vec<&str> = service.finalizers().iter().map(String::as_str).filter(|f| *f != FINALIZER).collect();
    match set_finalizers(client, service, &finalizers).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

async fn set_finalizers(client: &Client, service: &InferenceService, finalizers: &[&str]) -> kube::Result<InferenceService> {
    let patch = json!({"metadata": {"resourceVersion": service.resource_version(), "finalizers": finalizers}});
    api(client, service).patch(&service.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await
}

/// Writes what changed in the status, if anything did.
///
/// # Errors
/// A conflict when the service was changed meanwhile: compute again from fresh input.
pub(super) async fn status(
    client: &Client,
    service: &InferenceService,
    status: &InferenceServiceStatus,
) -> Result<Option<InferenceService>, super::Error> {
    let old = match &service.status {
        Some(status) => serde_json::to_value(status)?,
        None => Value::Object(serde_json::Map::new()),
    };
    let Some(patch) = merge_patch(&old, &serde_json::to_value(status)?) else {
        return Ok(None);
    };
    let patch = json!({"metadata": {"resourceVersion": service.resource_version()}, "status": patch});
    let written = api(client, service).patch_status(&service.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(Some(written))
}

/// Replicas by member as a status holds them.
pub(crate) fn placements(status: Option<&InferenceServiceStatus>) -> BTreeMap<String, u32> {
    status
        .into_iter()
        .flat_map(|status| &status.placements)
        .filter(|placement| placement.phase != crate::api::odin::Phase::Leaving)
        .map(|placement| (placement.cluster.clone(), u32::try_from(placement.replicas).unwrap_or(0)))
        .collect()
}
