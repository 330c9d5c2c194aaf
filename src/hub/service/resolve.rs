//! Layers of a service, and what comes of rendering them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube::ResourceExt as _;

use super::memo::Rendering;
use crate::api::odin::InferenceService;
use crate::api::reason::Reason;
use crate::capacity::ServiceKey;
use crate::hub::context::Context;
use crate::render::{Layer, Refusal, Rendered, ServiceIdentity, layer_names, lookup};
use crate::workload::{Owner, Workload, build};

/// The rendering of a service; made anew only when its spec, its labels or one of its layers changed.
pub(super) fn rendering(service: &InferenceService, context: &Context, key: &ServiceKey) -> Arc<Rendering> {
    let layers = lookup(&context.layers, &context.settings.system_namespace, service);
    context.users.record(key, layer_names(&context.layers, &context.settings.system_namespace, service));
    let (layers, refusal) = match layers {
        Ok(layers) => (layers, None),
        Err(refusal) => (Vec::new(), Some(refusal)),
    };
    let uid = service.uid().unwrap_or_default();
    let generation = service.metadata.generation.unwrap_or_default();
    if let Some(last) = context.memos.get(key).rendering
        && refusal.is_none()
        && last.uid == uid
        && last.generation == generation
        && last.labels == *service.labels()
        && last.layers == layers
    {
        return last;
    }
    let outcome = match refusal {
        Some(refusal) => Err(refusal),
        // What a person wrote must not end the pass, whatever it is: a condition tells of it.
        None => catch_unwind(AssertUnwindSafe(|| make(service, context, &uid, generation, &layers))).unwrap_or_else(|_| {
            let message = "rendering this service fails by a mistake in odin-hub; its log has the place".to_owned();
            Err(Refusal { reason: Reason::RenderFailed, message })
        }),
    };
    let rendering = Arc::new(Rendering { uid, generation, labels: service.labels().clone(), layers, outcome });
    context.memos.update(key, |memo| memo.rendering = Some(rendering.clone()));
    rendering
}

fn make(
    service: &InferenceService,
    context: &Context,
    uid: &str,
    generation: i64,
    layers: &[Layer],
) -> Result<(Arc<Rendered>, Arc<Workload>), Refusal> {
    let name = service.name_any();
    let namespace = service.namespace().unwrap_or_default();
    let rendered = context.renderer.render(&ServiceIdentity { name: &name, namespace: &namespace, labels: service.labels() }, layers)?;
    let owner = Owner { name: &name, namespace: &namespace, uid, generation, labels: service.labels(), hub_id: &context.hub_id };
    let workload = build(&owner, &rendered)?;
    Ok((Arc::new(rendered), Arc::new(workload)))
}
