//! Quantities in the form in which the API server would store them.
//!
//! A Deployment's are made canonical by the server itself, a custom resource's are stored as they come: written in
//! canonical form, an equal object is equal everywhere and has one hash.

use serde_json::{Map, Value, json};

use super::refuse;
use crate::api::reason::Reason;
use crate::capacity::quantity;
use crate::render::Refusal;

/// Rewrites every quantity of a pod template, and fills in the one default that is part of a list key (the protocol
/// of a port), without which equal ports of two layers would look unlike.
///
/// # Errors
/// `InvalidRendered` with the path of what is no quantity.
pub(super) fn canonicalise(template: &mut Value, path: &str) -> Result<(), Refusal> {
    let Some(spec) = object(template, "spec") else { return Ok(()) };
    let path = format!("{path}.spec");
    for list in ["initContainers", "containers"] {
        for (i, container) in items(spec, list) {
            let path = format!("{path}.{list}[{i}]");
            resources(container, &path)?;
            for (_, port) in items(container, "ports") {
                port.entry("protocol").or_insert_with(|| json!("TCP"));
            }
            for (i, env) in items(container, "env") {
                let Some(source) = child(env, "valueFrom").and_then(|v| child(v, "resourceFieldRef")) else { continue };
                one(source, "divisor", &format!("{path}.env[{i}].valueFrom.resourceFieldRef"))?;
            }
        }
    }
    resources(spec, &path)?;
    if let Some(overhead) = child(spec, "overhead") {
        all(overhead, &format!("{path}.overhead"))?;
    }
    for (i, volume) in items(spec, "volumes") {
        volume_quantities(volume, &format!("{path}.volumes[{i}]"))?;
    }
    Ok(())
}

fn volume_quantities(volume: &mut Map<String, Value>, path: &str) -> Result<(), Refusal> {
    if let Some(directory) = child(volume, "emptyDir") {
        one(directory, "sizeLimit", &format!("{path}.emptyDir"))?;
    }
    if let Some(claim) = child(volume, "ephemeral").and_then(|v| child(v, "volumeClaimTemplate")).and_then(|v| child(v, "spec")) {
        resources(claim, &format!("{path}.ephemeral.volumeClaimTemplate.spec"))?;
    }
    if let Some(downward) = child(volume, "downwardAPI") {
        divisors(downward, &format!("{path}.downwardAPI"))?;
    }
    if let Some(projected) = child(volume, "projected") {
        for (i, source) in items(projected, "sources") {
            if let Some(downward) = child(source, "downwardAPI") {
                divisors(downward, &format!("{path}.projected.sources[{i}].downwardAPI"))?;
            }
        }
    }
    Ok(())
}

fn divisors(downward: &mut Map<String, Value>, path: &str) -> Result<(), Refusal> {
    for (i, item) in items(downward, "items") {
        if let Some(source) = child(item, "resourceFieldRef") {
            one(source, "divisor", &format!("{path}.items[{i}].resourceFieldRef"))?;
        }
    }
    Ok(())
}

fn resources(holder: &mut Map<String, Value>, path: &str) -> Result<(), Refusal> {
    let Some(resources) = child(holder, "resources") else { return Ok(()) };
    for side in ["limits", "requests"] {
        if let Some(amounts) = child(resources, side) {
            all(amounts, &format!("{path}.resources.{side}"))?;
        }
    }
    Ok(())
}

fn all(amounts: &mut Map<String, Value>, path: &str) -> Result<(), Refusal> {
    for (name, amount) in amounts.iter_mut() {
        rewrite(amount, || format!("{path}[{name}]"))?;
    }
    Ok(())
}

fn one(holder: &mut Map<String, Value>, key: &str, path: &str) -> Result<(), Refusal> {
    match holder.get_mut(key) {
        Some(amount) if !amount.is_null() => rewrite(amount, || format!("{path}.{key}")),
        _ => Ok(()),
    }
}

fn rewrite(amount: &mut Value, path: impl Fn() -> String) -> Result<(), Refusal> {
    let text = match &*amount {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err(refuse(Reason::InvalidRendered, format!("{} must be a quantity such as 8, 500m or 64Gi", path()))),
    };
    let canonical =
        quantity::canonical(&text).map_err(|e| refuse(Reason::InvalidRendered, format!("{}: {text:?} is no quantity: {e}", path())))?;
    *amount = Value::String(canonical);
    Ok(())
}

fn object<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Map<String, Value>> {
    value.get_mut(key).and_then(Value::as_object_mut)
}

/// The objects of a list, with their index.
fn items<'a>(map: &'a mut Map<String, Value>, key: &str) -> impl Iterator<Item = (usize, &'a mut Map<String, Value>)> {
    let list = map.get_mut(key).and_then(Value::as_array_mut);
    list.into_iter().flatten().enumerate().filter_map(|(i, item)| Some((i, item.as_object_mut()?)))
}

fn child<'a>(map: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    map.get_mut(key).and_then(Value::as_object_mut)
}
