//! The ledger after a start: what the status of each service promises.

use std::sync::Arc;

use kube::ResourceExt as _;

use super::context::Context;
use super::placer::Ended;
use super::service;
use crate::api::odin::InferenceService;
use crate::capacity::{GroupRequest, ServiceKey};
use crate::workload::{Owner, request_of};

/// Fills the ledger from status, before anything is decided.
pub(crate) async fn ledger(context: &Context) -> Result<(), Ended> {
    for promised in context.services.state() {
        let placements = service::placements(promised.status.as_ref());
        if placements.is_empty() {
            continue;
        }
        let key = ServiceKey::from(&*promised);
        match request(&promised, &context.hub_id) {
            Some(request) => context.placer.observe(&promised.uid().unwrap_or_default(), &key, request, placements).await?,
            None => {
                tracing::warn!(service = %key, "its status has placements but no rendered spec: what it is promised counts from its next pass on");
            }
        }
    }
    Ok(())
}

/// What one group was promised: the rendered spec in the status is what the decision was made for, even when a
/// template has changed since.
fn request(service: &InferenceService, hub_id: &str) -> Option<Arc<GroupRequest>> {
    let spec = service.status.as_ref()?.rendered_spec.as_ref()?;
    request_of(&Owner::of(service, &[], hub_id), spec).ok().map(Arc::new)
}
