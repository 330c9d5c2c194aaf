//! What the API server would say of an object in a file: the structural part of the schema in its definition.
//!
//! Rules in CEL aren't evaluated; those that matter for rendering are checked again by the rendering itself.

use regex::Regex;
use serde_json::{Map, Value};

use crate::merge::{Path, Step};

/// What is wrong with a value, each with its place below `at`. An empty list: the API server would take it.
pub(super) fn faults(schema: &Value, value: &Value, at: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    check(schema, value, at, &mut faults);
    faults
}

/// Writes the defaults of the schema where an object leaves a field out, as the API server does when it stores one.
pub(super) fn set_defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in properties(schema) {
                if let Some(default) = field.get("default").filter(|_| !fields.contains_key(name)) {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                if let Some(field) = field_schema(schema, name) {
                    set_defaults(field, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    set_defaults(schema, item);
                }
            }
        }
        _ => {}
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Schema of a field: of its own, or of all entries of a map.
fn field_schema<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties").and_then(|all| all.get(name)).or_else(|| schema.get("additionalProperties").filter(|all| all.is_object()))
}

fn is_set(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword).is_some_and(|value| value == true)
}

fn check(schema: &Value, value: &Value, at: &Path, faults: &mut Vec<String>) {
    if value.is_null() {
        faults.push(format!("{at} is null: a layer can only set values, remove it"));
        return;
    }
    if let Some(wanted) = wrong_type(schema, value) {
        faults.push(format!("{at} must be {wanted}, not {}", short(value)));
        return;
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array).filter(|allowed| !allowed.contains(value)) {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        faults.push(format!("{at} must be one of {}, not {}", allowed.join(", "), short(value)));
    }
    match value {
        Value::Object(fields) => object(schema, fields, at, faults),
        Value::Array(items) => {
            bounds(schema, ["minItems", "maxItems"], items.len() as f64, "items", at, faults);
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    check(schema, item, &at.clone().then(Step::Index(index)), faults);
                }
            }
        }
        Value::String(text) => {
            bounds(schema, ["minLength", "maxLength"], text.chars().count() as f64, "characters", at, faults);
            // A pattern of the definition that this program can't read is the API server's to check.
            let pattern = schema.get("pattern").and_then(Value::as_str).filter(|_| !is_set(schema, "x-kubernetes-int-or-string"));
            if let Some(pattern) = pattern
                && Regex::new(pattern).is_ok_and(|pattern| !pattern.is_match(text))
            {
                faults.push(format!("{at} must match {pattern}, which {} doesn't", short(value)));
            }
        }
        Value::Number(number) => bounds(schema, ["minimum", "maximum"], number.as_f64().unwrap_or_default(), "", at, faults),
        Value::Bool(_) | Value::Null => {}
    }
}

fn object(schema: &Value, fields: &Map<String, Value>, at: &Path, faults: &mut Vec<String>) {
    let open = is_set(schema, "x-kubernetes-preserve-unknown-fields")
        || (schema.get("properties").is_none() && schema.get("additionalProperties").is_none_or(|all| all == true));
    for (name, value) in fields {
        let at = at.clone().then(Step::field(name));
        match field_schema(schema, name) {
            Some(schema) => check(schema, value, &at, faults),
            None if open => nulls(value, &at, faults),
            None => faults.push(format!("{at} is unknown: remove it, or correct the name of the field")),
        }
    }
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            faults.push(format!("{} is missing", at.clone().then(Step::field(name))));
        }
    }
}

/// Nulls below what the schema says nothing of.
fn nulls(value: &Value, at: &Path, faults: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                nulls(item, &at.clone().then(Step::Index(index)), faults);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                nulls(value, &at.clone().then(Step::field(name)), faults);
            }
        }
        value => check(&Value::Null, value, at, faults),
    }
}

/// The type that a value should have, if it has another.
fn wrong_type(schema: &Value, value: &Value) -> Option<&'static str> {
    let whole = || value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0);
    if is_set(schema, "x-kubernetes-int-or-string") {
        return (!(value.is_string() || whole())).then_some("a whole number or a string");
    }
    match schema.get("type").and_then(Value::as_str)? {
        "object" if !value.is_object() => Some("an object"),
        "array" if !value.is_array() => Some("a list"),
        "string" if !value.is_string() => Some("a string: put it in quotes"),
        "integer" if !whole() => Some("a whole number"),
        "number" if !value.is_number() => Some("a number"),
        "boolean" if !value.is_boolean() => Some("true or false"),
        _ => None,
    }
}

fn bounds(schema: &Value, [least, most]: [&str; 2], number: f64, unit: &str, at: &Path, faults: &mut Vec<String>) {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    if let Some(least) = bound(least).filter(|least| number < *least) {
        faults.push(format!("{at} must be at least {least}{unit}, not {number}"));
    }
    if let Some(most) = bound(most).filter(|most| number > *most) {
        faults.push(format!("{at} must be at most {most}{unit}, not {number}"));
    }
}

/// A value for a message.
fn short(value: &Value) -> String {
    const LONGEST: usize = 60;
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        value => {
            let text = value.to_string();
            if text.chars().count() > LONGEST { text.chars().take(LONGEST).chain(['…']).collect() } else { text }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::schema as definitions;

    fn service() -> Value {
        let crds = definitions::crds().unwrap();
        let crd = crds.iter().find(|crd| definitions::name(crd) == "inferenceservices.odin.moreh.io").unwrap();
        crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec").unwrap().clone()
    }

    #[test]
    fn what_the_api_server_would_refuse() {
        let at = Path::default().then(Step::field("spec"));
        let template = |pod: Value| json!({"template": {"spec": pod}});
        for (spec, wanted) in [
            (json!({"replicas": 2, "model": {"name": "m"}}), None),
            (template(json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}]})), None),
            (json!({"rolloutStrategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}}), None),
            (json!({"replcas": 2}), Some("spec.replcas is unknown")),
            (json!({"replicas": "2"}), Some("spec.replicas must be a whole number, not \"2\"")),
            (json!({"replicas": 1.5}), Some("spec.replicas must be a whole number, not 1.5")),
            (json!({"replicas": -1}), Some("spec.replicas must be at least 0, not -1")),
            (json!({"model": {}}), Some("spec.model.name is missing")),
            (json!({"model": {"name": ""}}), Some("spec.model.name must be at least 1 characters, not 0")),
            (json!({"model": null}), Some("spec.model is null: a layer can only set values")),
            (json!({"framework": "a b"}), Some("spec.framework must match")),
            (json!({"service": {"target": "some"}}), Some("spec.service.target must be one of \"leader\"")),
            (json!({"templateRefs": {}}), Some("spec.templateRefs must be a list, not an object")),
            (
                template(json!({"nodeSelector": {"a": true}})),
                Some("spec.template.spec.nodeSelector.a must be a string: put it in quotes, not true"),
            ),
            (template(json!({"containers": [{"name": "a", "imag": "b"}]})), Some("spec.template.spec.containers[0].imag is unknown")),
            (template(json!({"nodeSelector": {"a": null}})), Some("spec.template.spec.nodeSelector.a is null")),
        ] {
            let told = faults(&service(), &spec, &at);
            match wanted {
                None => assert!(told.is_empty(), "{spec}: {told:?}"),
                Some(wanted) => assert!(told.len() == 1 && told[0].starts_with(wanted), "{spec}: {told:?}"),
            }
        }
    }

    #[test]
    fn nulls_are_found_where_anything_goes() {
        let told = faults(&json!({"type": "object"}), &json!({"a": [{"b": null}], "c": 1}), &Path::default());
        assert_eq!(told, ["a[0].b is null: a layer can only set values, remove it"]);
    }

    #[test]
    fn defaults_are_those_of_the_definition() {
        let mut spec = json!({"template": {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 1}, {"containerPort": 2, "protocol": "UDP"}]}]}}});
        set_defaults(&service(), &mut spec);
        assert_eq!(
            spec,
            json!({"replicas": 1, "template": {"spec": {"containers": [{"name": "a", "ports": [
                {"containerPort": 1, "protocol": "TCP"}, {"containerPort": 2, "protocol": "UDP"}]}]}}})
        );
    }
}
