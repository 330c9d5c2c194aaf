//! The Deployment of a service whose group is one pod.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::rollout::Rollout;
use super::{Owner, Workload, meta, quantities, refuse};
use crate::api::labels;
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;
use crate::capacity::{GroupRequest, PodSet, PodShape};
use crate::render::{Refusal, Rendered, hash};

/// A message about the pod template, which begins with a field of it or with a verb, under the service's own path.
fn place(message: &str) -> String {
    let between = if message.starts_with("spec.") { "." } else { " " };
    format!("spec.template{between}{message}")
}

/// Builds everything but what differs between members.
///
/// Left to the member: `progressDeadlineSeconds`, `minReadySeconds` and `paused`; and what the service doesn't set.
pub(super) fn build(owner: &Owner<'_>, rendered: &Rendered) -> Result<Workload, Refusal> {
    meta::check_deployment_name(owner.name)?;
    let mut template = rendered
        .spec
        .get("template")
        .filter(|t| !t.is_null())
        .cloned()
        .ok_or_else(|| refuse(Reason::NoPodTemplate, "no layer sets template: set it in the service or in a template that it names"))?;
    quantities::canonicalise(&mut template, "spec.template")?;
    let labels_of_object = meta::object_labels(owner, &template);
    meta::label_pods(owner, &mut template)?;
    let shape = PodShape::from_template(&template).map_err(|message| refuse(Reason::InvalidRendered, place(&message)))?;
    let rollout = Rollout::from_spec(&rendered.spec)?;

    let mut spec = Map::new();
    spec.insert("selector".to_owned(), json!({"matchLabels": {labels::INFERENCE_SERVICE: labels::label_value(owner.name)}}));
    if let Some(limit) = rendered.spec.get("revisionHistoryLimit").filter(|l| !l.is_null()) {
        spec.insert("revisionHistoryLimit".to_owned(), limit.clone());
    }
    if let Some(rollout) = &rollout {
        spec.insert("strategy".to_owned(), rollout.as_written());
    }
    spec.insert("template".to_owned(), template);
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": WorkloadKind::Deployment.as_str(),
        "metadata": {"name": owner.name, "namespace": owner.namespace, "labels": labels_of_object},
        "spec": spec,
    });
    let hash = hash::of(&object);

    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
            labels.extend(meta::hub_labels(owner).map(|(key, value)| (key, Value::from(value))));
        }
        let annotations: Map<_, _> =
            meta::hub_annotations(owner, &hash).map(|(key, value)| (key, Value::from(value))).into_iter().collect();
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
    }
    Ok(Workload {
        kind: WorkloadKind::Deployment,
        namespace: owner.namespace.to_owned(),
        name: owner.name.to_owned(),
        request: Arc::new(GroupRequest { pods: vec![PodSet { shape, count: 1 }] }),
        hash,
        object,
        rollout,
    })
}

/// The object for one member's share.
pub(super) fn manifest(object: &Value, rollout: Option<&Rollout>, replicas: u32) -> Value {
    let mut object = object.clone();
    if let Some(Value::Object(spec)) = object.get_mut("spec") {
        spec.insert("replicas".to_owned(), json!(replicas));
        if let Some(rollout) = rollout {
            spec.insert("strategy".to_owned(), rollout.for_share(replicas));
        }
    }
    object
}
