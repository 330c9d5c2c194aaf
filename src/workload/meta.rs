//! Names, labels and annotations of what a member gets.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Owner, refuse};
use crate::api::labels;
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;
use crate::render::Refusal;

/// The selector that an autoscaler finds in the service's status: the pods of a Deployment, the leaders of a
/// `LeaderWorkerSet`. An HPA refuses a target without one, whatever metric it uses.
pub fn hpa_pod_selector(kind: WorkloadKind, service: &str) -> String {
    match kind {
        WorkloadKind::Deployment => format!("{}={}", labels::INFERENCE_SERVICE, labels::label_value(service)),
        WorkloadKind::LeaderWorkerSet => {
            format!("leaderworkerset.sigs.k8s.io/name={service},leaderworkerset.sigs.k8s.io/worker-index=0")
        }
    }
}

/// What a Deployment may be called.
///
/// # Errors
/// `NameNotAllowed` for what is no DNS-1123 subdomain.
pub(super) fn check_deployment_name(name: &str) -> Result<(), Refusal> {
    let part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    if name.len() <= 253 && name.split('.').all(part) {
        return Ok(());
    }
    Err(refuse(
        Reason::NameNotAllowed,
        format!(
            "a Deployment can't be called {name:?}: use at most 253 lowercase letters, digits, '-' and '.', with a letter or digit \
             first and last in each part"
        ),
    ))
}

/// Labels of the object itself, without the hub's own.
pub(super) fn object_labels(owner: &Owner<'_>, template: &Value) -> BTreeMap<String, String> {
    let service = labels::label_value(owner.name);
    let name = template_label(template, labels::APP_NAME).unwrap_or(&service).to_owned();
    BTreeMap::from([(labels::APP_INSTANCE.to_owned(), service), (labels::APP_NAME.to_owned(), name)])
}

/// Puts the labels of the pods behind the service into a pod template. Nothing that changes from revision to
/// revision, or when a service is made anew, may stand there: pods would roll for nothing.
///
/// # Errors
/// `InvalidRendered` when the template's metadata or labels are no objects.
pub(super) fn label_pods(owner: &Owner<'_>, template: &mut Value) -> Result<(), Refusal> {
    let service = labels::label_value(owner.name);
    let metadata = child(template, "metadata", "spec.template")?;
    let labels = child_of(metadata, "labels", "spec.template.metadata")?;
    labels.entry(labels::APP_NAME).or_insert_with(|| json!(service));
    labels.insert(labels::APP_INSTANCE.to_owned(), json!(service));
    labels.insert(labels::INFERENCE_SERVICE.to_owned(), json!(service));
    if let Some(gateway) = owner.labels.get(labels::AI_GATEWAY) {
        labels.insert(labels::AI_GATEWAY.to_owned(), json!(gateway));
    }
    Ok(())
}

/// The hub's own labels: whose object it is.
pub(super) fn hub_labels(owner: &Owner<'_>) -> [(String, String); 2] {
    [(labels::HUB.to_owned(), labels::label_value(owner.hub_id)), (labels::SERVICE_UID.to_owned(), labels::label_value(owner.uid))]
}

/// The hub's own annotations: what was applied.
pub(super) fn hub_annotations(owner: &Owner<'_>, hash: &str) -> [(String, String); 3] {
    [
        (labels::SOURCE.to_owned(), format!("{}/{}", owner.namespace, owner.name)),
        (labels::RENDERED_HASH.to_owned(), hash.to_owned()),
        (labels::GENERATION.to_owned(), owner.generation.to_string()),
    ]
}

fn template_label<'a>(template: &'a Value, key: &str) -> Option<&'a str> {
    template.get("metadata")?.get("labels")?.get(key)?.as_str()
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
