//! The definitions of all kinds, as the API server gets them: what the Rust types say, with the pod templates put in
//! and with what a custom resource's schema can't hold taken out.

pub(crate) mod fields;
pub mod pod_template;

use kube::CustomResourceExt as _;
use serde_json::{Error, Map, Value, json};

use super::{federation, odin};

/// Schema of pod templates, made by [`pod_template::from_openapi`].
const POD_TEMPLATE: &str = include_str!("../odin/pod_template.schema.json");

/// The `CustomResourceDefinition`s of the four Odin kinds and of the kinds that the hub adds, in fixed order and with
/// sorted keys. Fails only if the types or the checked-in schema of pod templates were broken at build time.
pub fn crds() -> Result<Vec<Value>, Error> {
    let pod_template: Value = serde_json::from_str(POD_TEMPLATE)?;
    [
        serde_json::to_value(odin::InferenceService::crd()),
        serde_json::to_value(odin::InferenceServiceTemplate::crd()),
        serde_json::to_value(odin::ClusterInferenceServiceTemplate::crd()),
        serde_json::to_value(odin::RuntimeBase::crd()),
        serde_json::to_value(federation::MemberCluster::crd()),
    ]
    .into_iter()
    .map(|crd| crd.map(|crd| finish(crd, &pod_template)))
    .collect()
}

/// The name of a definition, which also names its file: `<plural>.<group>`.
pub fn name(crd: &Value) -> &str {
    crd.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn finish(mut crd: Value, pod_template: &Value) -> Value {
    if let Some(schema) = crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
        clean(schema);
        for field in ["template", "workerTemplate"] {
            if let Some(Value::Object(field)) = schema.pointer_mut(&format!("/properties/spec/properties/{field}")) {
                put_in(field, pod_template);
            }
        }
    }
    crd
}

/// Replaces the content of a field's schema; its own description stays.
fn put_in(field: &mut Map<String, Value>, content: &Value) {
    field.retain(|keyword, _| keyword == "description");
    if let Value::Object(content) = content {
        field.extend(content.clone());
    }
}

/// `nullable` goes: the API server then drops a null before it is stored, so that there is one way to leave a field
/// out. Titles only repeat the kind. Bounds are written as whole numbers. The two forms of an int-or-string are put
/// back, which kube's rewriter empties.
fn clean(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            keywords.retain(|keyword, value| !(keyword == "nullable" && value.is_boolean() || keyword == "title" && value.is_string()));
            if keywords.get("x-kubernetes-int-or-string").is_some_and(|is| is == true) {
                keywords.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
            }
            for bound in ["minimum", "maximum"] {
                if let Some(number) = keywords.get_mut(bound)
                    && let Some(value) = number.as_f64()
                {
                    *number = json!(value as i64);
                }
            }
            keywords.values_mut().for_each(clean);
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
