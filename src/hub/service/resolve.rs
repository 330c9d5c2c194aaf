//! Layers of a service, and what comes of rendering them.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube::ResourceExt as _;
use kube::runtime::reflector::ObjectRef;

use super::memo::{Inputs, Rendering};
use crate::api::labels::{POD_POLICY, POD_SECURITY_PREFIX};
use crate::api::lws::EXCLUSIVE_TOPOLOGY;
use crate::api::odin::InferenceService;
use crate::api::reason::Reason;
use crate::capacity::ServiceKey;
use crate::hub::context::Context;
use crate::hub::pools::user_key;
use crate::render::{Refusal, Rendered, ServiceIdentity, layer_names, lookup};
use crate::workload::{Owner, Workload, build, policy};

/// The rendering of a service; made anew only when its spec, its labels, one of its layers or what else it is made from
/// changed. Nothing while it isn't known which `InferencePools` there are.
pub(super) fn rendering(service: &InferenceService, context: &Context, key: &ServiceKey) -> Option<Arc<Rendering>> {
    let layers = lookup(&context.layers, &context.settings.system_namespace, service);
    let pools: Vec<String> =
        service.spec.inference_pool_refs.iter().flatten().map(|pool| pool.name.clone()).filter(|name| !name.is_empty()).collect();
    let names = layer_names(&context.layers, &context.settings.system_namespace, service);
    context.users.record(key, names.into_iter().chain(pools.iter().map(|pool| user_key(&key.namespace, pool))));
    let pools = context.pools.get(&key.namespace, &pools)?;
    let (layers, refusal) = match layers {
        Ok(layers) => (layers, None),
        Err(refusal) => (Vec::new(), Some(refusal)),
    };
    let copied = service.annotations().iter().filter(|(key, _)| *key == EXCLUSIVE_TOPOLOGY);
    let inputs = Inputs {
        uid: service.uid().unwrap_or_default(),
        generation: service.metadata.generation.unwrap_or_default(),
        labels: service.labels().clone(),
        annotations: copied.map(|(key, value)| (key.clone(), value.clone())).collect(),
        layers,
        pools,
        exempt: namespace_labels(context, key).get(POD_POLICY).is_some_and(|policy| policy == "privileged"),
    };
    if let Some(last) = context.memos.get(key).rendering
        && refusal.is_none()
        && last.inputs == inputs
    {
        return Some(last);
    }
    let outcome = match refusal {
        Some(refusal) => Err(refusal),
        // What a person wrote must not end the pass, whatever it is: a condition tells of it.
        None => catch_unwind(AssertUnwindSafe(|| make(key, context, &inputs))).unwrap_or_else(|_| {
            let message = "rendering this service fails by a mistake in odin-hub; its log has the place".to_owned();
            Err(Refusal { reason: Reason::RenderFailed, message })
        }),
    };
    let rendering = Arc::new(Rendering { inputs, outcome });
    context.memos.update(key, |memo| memo.rendering = Some(rendering.clone()));
    Some(rendering)
}

fn make(key: &ServiceKey, context: &Context, inputs: &Inputs) -> Result<(Arc<Rendered>, Arc<Workload>), Refusal> {
    let (name, namespace) = (key.name.as_str(), key.namespace.as_str());
    let rendered = context.renderer.render(&ServiceIdentity { name, namespace, labels: &inputs.labels }, &inputs.layers)?;
    if !inputs.exempt {
        policy::check(&rendered.spec)?;
    }
    let owner = Owner {
        name,
        namespace,
        uid: &inputs.uid,
        generation: inputs.generation,
        labels: &inputs.labels,
        annotations: &inputs.annotations,
        pools: &inputs.pools,
        hub_id: &context.hub_id,
    };
    let workload = build(&owner, &rendered)?;
    Ok((Arc::new(rendered), Arc::new(workload)))
}

/// Labels of the service's namespace on the hub.
fn namespace_labels(context: &Context, key: &ServiceKey) -> BTreeMap<String, String> {
    let namespace = context.fleet.namespaces.get(&ObjectRef::new(&key.namespace));
    namespace.map(|namespace| namespace.labels().clone()).unwrap_or_default()
}

/// The labels that a namespace gets in a member when the hub makes it: what the hub's own namespace demands of pods.
pub(super) fn pod_security(context: &Context, key: &ServiceKey) -> Arc<BTreeMap<String, String>> {
    let mut labels = namespace_labels(context, key);
    labels.retain(|key, _| key.starts_with(POD_SECURITY_PREFIX));
    Arc::new(labels)
}
