//! From layers to one document.

use serde_json::Value;

use super::{Layer, Refusal};
use crate::api::reason::Reason;
use crate::merge::{Path, Step, is_directive, resolve_one_of, service_spec, strategic_merge};

/// The fields that a template or a runtime base contributes. All others are the service's alone; a template's
/// `runtimeBaseRef` has done its work in the lookup.
const SHARED: [&str; 6] = ["framework", "model", "parallelism", "service", "template", "workerTemplate"];

/// A layer can set values and nothing else: nulls and the merge's directives never pass the API server, and in files they
/// would mean something that a service can't do.
///
/// # Errors
/// `MergeFailed` for the first of them.
pub(super) fn check(layers: &[Layer]) -> Result<(), Refusal> {
    for layer in layers {
        if let Some((path, what)) = not_a_value(&layer.spec) {
            let path = path.inside(Step::field("spec"));
            return Err(Refusal::new(
                Reason::MergeFailed,
                format!("{}: {path} is {what}: a layer can only set values, remove it", layer.source),
            ));
        }
    }
    Ok(())
}

fn not_a_value(value: &Value) -> Option<(Path, &'static str)> {
    match value {
        Value::Null => Some((Path::default(), "null")),
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let found =
                if is_directive(name) { Some((Path::default(), "a directive of strategic merge patch")) } else { not_a_value(value) };
            found.map(|(path, what)| (path.inside(Step::field(name)), what))
        }),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| not_a_value(item).map(|(path, what)| (path.inside(Step::Index(index)), what)))
        }
        _ => None,
    }
}

/// Merges the layers, lowest first; the last one is the service.
///
/// # Errors
/// `MergeFailed`, naming the layer that doesn't fit on those below it.
pub(super) fn merge(layers: &[Layer]) -> Result<Value, Refusal> {
    let Some((service, below)) = layers.split_last() else {
        return Err(Refusal::new(Reason::MergeFailed, "a service has at least one layer, its own spec"));
    };
    let mut merged = Value::Null;
    for layer in below {
        merged = add(merged, layer, &shared(&layer.spec))?;
    }
    add(merged, service, &service.spec)
}

fn add(merged: Value, layer: &Layer, spec: &Value) -> Result<Value, Refusal> {
    if merged.is_null() && spec.is_object() {
        return Ok(spec.clone());
    }
    strategic_merge(merged, spec, service_spec()).map_err(|error| {
        let place = if error.path.is_empty() { "spec".to_owned() } else { format!("spec.{}", error.path) };
        Refusal::new(Reason::MergeFailed, format!("{} can't be merged: {place}: {}", layer.source, error.message))
    })
}

/// What a layer below the service contributes.
fn shared(spec: &Value) -> Value {
    match spec {
        Value::Object(fields) => {
            Value::Object(fields.iter().filter(|(name, _)| SHARED.contains(&name.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect())
        }
        other => other.clone(),
    }
}

/// Leaves the latest choice in each one-of group.
///
/// # Errors
/// `InvalidRendered` for a layer that makes two choices by itself.
pub(super) fn keep_latest_choices(merged: &mut Value, layers: &[Layer]) -> Result<(), Refusal> {
    let documents: Vec<&Value> = layers.iter().map(|layer| &layer.spec).collect();
    match resolve_one_of(merged, &documents) {
        Ok(_) => Ok(()),
        Err(conflict) => {
            let source = layers.get(conflict.layer).map(|layer| layer.source.to_string()).unwrap_or_default();
            let path = conflict.path.inside(Step::field("spec"));
            let choices = conflict.choices.join(" and ");
            Err(Refusal::new(
                Reason::InvalidRendered,
                format!("{source}: {path} sets {choices}, of which only one may be set: remove the others"),
            ))
        }
    }
}
