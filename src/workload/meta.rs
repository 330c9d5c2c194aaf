//! Labels and annotations of what a member gets.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::pools::Pools;
use super::{Owner, refuse};
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;
use crate::api::{labels, lws};
use crate::render::Refusal;

/// The selector that an autoscaler finds in the service's status: the pods of a Deployment, the leaders of a
/// `LeaderWorkerSet`. An HPA refuses a target without one, whatever metric it uses.
pub fn hpa_pod_selector(kind: WorkloadKind, service: &str) -> String {
    match kind {
        WorkloadKind::Deployment => format!("{}={}", labels::INFERENCE_SERVICE, labels::label_value(service)),
        WorkloadKind::LeaderWorkerSet => {
            format!("{}={service},{}=0", lws::NAME, lws::WORKER_INDEX)
        }
    }
}

/// Labels of an object in a member, without the hub's own. The first template that names the application does so for all.
pub(super) fn object_labels(owner: &Owner<'_>, spec: &Value) -> BTreeMap<String, String> {
    let service = labels::label_value(owner.name);
    let template_label = |template: &str| spec.get(template)?.get("metadata")?.get("labels")?.get(labels::APP_NAME)?.as_str();
    let name = template_label("template").or_else(|| template_label("workerTemplate")).unwrap_or(&service).to_owned();
    BTreeMap::from([(labels::APP_INSTANCE.to_owned(), service), (labels::APP_NAME.to_owned(), name)])
}

/// Completes the labels of a pod template; `path` is its place. Pods behind the service come with the `pools` that they
/// join. Nothing that changes from revision to revision, or when a service is made anew, may stand there: pods would
/// roll for nothing.
///
/// # Errors
/// `InvalidRendered` when the template's metadata or labels are no objects, or disagree with a pool.
pub(super) fn label_pods(owner: &Owner<'_>, template: &mut Value, path: &str, pools: Option<&Pools<'_>>) -> Result<(), Refusal> {
    let service = labels::label_value(owner.name);
    let metadata = child(template, "metadata", path)?;
    let labels = child_of(metadata, "labels", &format!("{path}.metadata"))?;
    if let Some(gateway) = owner.labels.get(labels::AI_GATEWAY) {
        labels.insert(labels::AI_GATEWAY.to_owned(), json!(gateway));
    }
    if let Some(pools) = pools {
        pools.label(owner, labels, path)?;
        labels.insert(labels::INFERENCE_SERVICE.to_owned(), json!(service));
    }
    labels.entry(labels::APP_NAME).or_insert_with(|| json!(service));
    labels.insert(labels::APP_INSTANCE.to_owned(), json!(service));
    Ok(())
}

/// Puts the hub's own labels and annotations onto an object: whose it is, and what was applied.
pub(super) fn mark(object: &mut Value, owner: &Owner<'_>, hash: &str) {
    let marks = [
        ("labels", vec![(labels::HUB, labels::label_value(owner.hub_id)), (labels::SERVICE_UID, labels::label_value(owner.uid))]),
        (
            "annotations",
            vec![
                (labels::SOURCE, format!("{}/{}", owner.namespace, owner.name)),
                (labels::RENDERED_HASH, hash.to_owned()),
                (labels::GENERATION, owner.generation.to_string()),
            ],
        ),
    ];
    for (field, entries) in marks {
        if let Some(Value::Object(map)) = object.get_mut("metadata").and_then(|metadata| metadata.get_mut(field)) {
            map.extend(entries.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))));
        }
    }
}

fn child<'a>(value: &'a mut Value, key: &str, path: &str) -> Result<&'a mut Map<String, Value>, Refusal> {
    let Value::Object(map) = value else {
        return Err(refuse(Reason::InvalidRendered, format!("{path} must be an object")));
    };
    child_of(map, key, path)
}

/// The object under a key, made when it isn't there.
fn child_of<'a>(map: &'a mut Map<String, Value>, key: &str, path: &str) -> Result<&'a mut Map<String, Value>, Refusal> {
    let value = map.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(refuse(Reason::InvalidRendered, format!("{path}.{key} must be an object"))),
    }
}
