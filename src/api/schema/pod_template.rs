//! From Kubernetes' `OpenAPI` document of core/v1 to the schema of a pod template in our kinds.
//!
//! The result is checked in as `src/api/odin/pod_template.schema.json`. To renew it for a newer Kubernetes, take
//! `api/openapi-spec/v3/api__v1_openapi.json` of its source and run
//! `cargo run --example pod-template-schema -- FILE > src/api/odin/pod_template.schema.json`,
//! then `cargo run -- crds --dir crds`.

use serde_json::{Map, Value, json};

const ROOT: &str = "io.k8s.api.core.v1.PodTemplateSpec";
const POD_SPEC: &str = "io.k8s.api.core.v1.PodSpec";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// What Kubernetes takes as a quantity, as a pattern on its text.
const QUANTITY_PATTERN: &str = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))?$";

/// The fields of metadata that mean something in a template.
pub(super) const META_FIELDS: [&str; 5] = ["annotations", "finalizers", "labels", "name", "namespace"];

/// Keywords that are carried over as they are.
const KEPT: [&str; 7] =
    ["enum", "format", "required", "type", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type"];

/// Keywords that are left out. Descriptions and defaults: see [`from_openapi`]. The others are unknown to the schema of
/// a custom resource.
const DROPPED: [&str; 5] = ["default", "description", "x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy", "x-kubernetes-unions"];

/// No type of core/v1 nests deeper; a document that does holds a cycle.
const MAX_DEPTH: usize = 64;

/// Why a document is no source for the schema.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OpenApiError {
    /// A type that the pod template refers to is missing.
    #[error("the document has no schema {0}: it must be the OpenAPI v3 document of Kubernetes' core/v1")]
    Missing(String),
    /// Types refer to each other in a circle, which can't be written inline.
    #[error("{0}: types refer to each other in a circle")]
    Cycle(String),
    /// Something that these rules don't know; dropping it silently could make the schema wrong.
    #[error("{path}: keyword {keyword} is new; decide in src/api/schema/pod_template.rs what becomes of it")]
    Keyword {
        /// Where.
        path: String,
        /// The keyword.
        keyword: String,
    },
}

/// The schema of `PodTemplateSpec`, made from the `OpenAPI` v3 document of core/v1:
///
/// * References are written inline; list types, map keys and map types stay, so that server-side apply and the check
///   for duplicates work as for a pod.
/// * No defaults, since a default that is written into a layer overrides the layers below. The one exception is what
///   a map key needs (the protocol of a port). A name whose default is empty becomes required instead.
/// * `containers` isn't required, since a layer may be a fragment; `ephemeralContainers` is left out, since Kubernetes
///   forbids it in pod templates.
/// * Descriptions only point to the field of a pod: Kubernetes' own would make the definition too large for
///   client-side `kubectl apply`.
pub fn from_openapi(document: &Value) -> Result<Value, OpenApiError> {
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    let source = Source { schemas: schemas.ok_or_else(|| OpenApiError::Missing(ROOT.to_owned()))? };
    source.named(ROOT, &Path::root()).map(Value::Object)
}

/// Where in a pod a schema stands.
struct Path {
    text: String,
    depth: usize,
}

impl Path {
    fn root() -> Self {
        Self { text: "pod".to_owned(), depth: 0 }
    }

    fn field(&self, name: &str) -> Self {
        Self { text: format!("{}.{name}", self.text), depth: self.depth + 1 }
    }

    fn item(&self) -> Self {
        Self { text: self.text.clone(), depth: self.depth + 1 }
    }
}

struct Source<'a> {
    schemas: &'a Map<String, Value>,
}

impl Source<'_> {
    fn named(&self, name: &str, path: &Path) -> Result<Map<String, Value>, OpenApiError> {
        if path.depth > MAX_DEPTH {
            return Err(OpenApiError::Cycle(path.text.clone()));
        }
        match name {
            QUANTITY => return Ok(int_or_string(Some(QUANTITY_PATTERN))),
            INT_OR_STRING => return Ok(int_or_string(None)),
            _ => {}
        }
        let mut schema = self.schemas.get(name).and_then(Value::as_object).ok_or_else(|| OpenApiError::Missing(name.to_owned()))?.clone();
        match name {
            OBJECT_META => retain_properties(&mut schema, |field| META_FIELDS.contains(&field)),
            POD_SPEC => {
                retain_properties(&mut schema, |field| field != "ephemeralContainers");
                if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
                    required.retain(|field| field != "containers");
                }
            }
            _ => {}
        }
        self.inline(&schema, path)
    }

    /// A schema with all its references written inline.
    fn inline(&self, schema: &Map<String, Value>, path: &Path) -> Result<Map<String, Value>, OpenApiError> {
        if let Some(name) = reference(schema) {
            return self.named(name, path);
        }
        let mut out = Map::new();
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(fields)) => {
                    let fields: Result<Map<_, _>, _> =
                        fields.iter().map(|(name, field)| Ok((name.clone(), self.field(field, &path.field(name))?))).collect();
                    out.insert(keyword.clone(), Value::Object(fields?));
                }
                ("items" | "additionalProperties", Value::Object(inner)) => {
                    out.insert(keyword.clone(), Value::Object(self.inline(inner, &path.item())?));
                }
                (kept, value) if KEPT.contains(&kept) => {
                    out.insert(keyword.clone(), value.clone());
                }
                (dropped, _) if DROPPED.contains(&dropped) => {}
                _ => return Err(OpenApiError::Keyword { path: path.text.clone(), keyword: keyword.clone() }),
            }
        }
        if schema.get("properties").and_then(|fields| fields.pointer("/name/default")).is_some_and(|default| default == "") {
            require(&mut out, "name");
        }
        if out.get("required").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            out.remove("required");
        }
        self.complete_map_keys(schema, &mut out);
        Ok(out)
    }

    fn field(&self, schema: &Value, path: &Path) -> Result<Value, OpenApiError> {
        let mut out = match schema.as_object() {
            Some(schema) => self.inline(schema, path)?,
            None => Map::new(),
        };
        if out.contains_key("properties") || out.get("items").is_some_and(|items| items.get("properties").is_some()) {
            out.insert("description".to_owned(), json!(format!("See {}.", path.text)));
        }
        Ok(Value::Object(out))
    }

    /// A key of a list must be required or have a default. Kubernetes' default is kept if it is a value, else the key
    /// becomes required.
    fn complete_map_keys(&self, schema: &Map<String, Value>, out: &mut Map<String, Value>) {
        let keys: Vec<String> = match out.get("x-kubernetes-list-map-keys").and_then(Value::as_array) {
            Some(keys) => keys.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
            None => return,
        };
        let item = schema.get("items").and_then(Value::as_object).and_then(reference).and_then(|name| self.schemas.get(name));
        let Some(items) = out.get_mut("items").and_then(Value::as_object_mut) else { return };
        for key in keys {
            if items.get("required").and_then(Value::as_array).is_some_and(|required| required.iter().any(|field| *field == key)) {
                continue;
            }
            let default = item.and_then(|item| item.get("properties")?.get(&key)?.get("default"));
            match (default, items.get_mut("properties").and_then(|fields| fields.get_mut(&key)).and_then(Value::as_object_mut)) {
                (Some(default), Some(field)) if default != "" => {
                    field.insert("default".to_owned(), default.clone());
                }
                _ => require(items, &key),
            }
        }
    }
}

/// The name that a schema refers to, either itself or by its only `allOf`.
fn reference(schema: &Map<String, Value>) -> Option<&str> {
    let target = match schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([only]) => only.get("$ref"),
        _ => schema.get("$ref"),
    };
    target?.as_str()?.strip_prefix("#/components/schemas/")
}

fn int_or_string(pattern: Option<&str>) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
    out.insert("x-kubernetes-int-or-string".to_owned(), json!(true));
    if let Some(pattern) = pattern {
        out.insert("pattern".to_owned(), json!(pattern));
    }
    out
}

fn retain_properties(schema: &mut Map<String, Value>, keep: impl Fn(&str) -> bool) {
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        fields.retain(|name, _| keep(name));
    }
}

fn require(schema: &mut Map<String, Value>, field: &str) {
    if let Value::Array(required) = schema.entry("required").or_insert_with(|| json!([]))
        && !required.iter().any(|present| present == field)
    {
        required.push(json!(field));
        required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document with little in it; `spec` is the schema of `PodSpec`, `more` has further types.
    fn document(spec: &Value, more: &Value) -> Value {
        let mut schemas = json!({
            ROOT: {"type": "object", "properties": {
                "metadata": {"allOf": [{"$ref": format!("#/components/schemas/{OBJECT_META}")}], "default": {}, "description": "text"},
                "spec": {"allOf": [{"$ref": format!("#/components/schemas/{POD_SPEC}")}], "default": {}},
            }},
            OBJECT_META: {"type": "object", "properties": {"name": {"type": "string"}, "uid": {"type": "string"}}},
            QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
            INT_OR_STRING: {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        });
        schemas[POD_SPEC] = spec.clone();
        for (name, schema) in more.as_object().unwrap() {
            schemas[name] = schema.clone();
        }
        json!({"components": {"schemas": schemas}})
    }

    fn spec(properties: &Value, more: &Value) -> Result<Value, OpenApiError> {
        let spec = json!({"type": "object", "properties": properties});
        Ok(from_openapi(&document(&spec, more))?["properties"]["spec"]["properties"].clone())
    }

    #[test]
    fn what_becomes_of_each_keyword() {
        let refers = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let cases = [
            ("text and default go", json!({"type": "string", "description": "d", "default": "x"}), json!({}), json!({"type": "string"})),
            (
                "form and values stay",
                json!({"type": "string", "format": "f", "enum": ["A"]}),
                json!({}),
                json!({"type": "string", "format": "f", "enum": ["A"]}),
            ),
            (
                "patch keywords go",
                json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set",
              "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "k"}),
                json!({}),
                json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            ),
            (
                "quantity",
                json!({"type": "object", "additionalProperties": refers(QUANTITY)}),
                json!({}),
                json!({"type": "object", "additionalProperties": Value::Object(int_or_string(Some(QUANTITY_PATTERN)))}),
            ),
            ("int or string", json!({"allOf": [refers(INT_OR_STRING)]}), json!({}), Value::Object(int_or_string(None))),
            (
                "an object points to its field, inside and out",
                json!({"allOf": [refers("A")], "default": {}}),
                json!({"A": {"type": "object", "x-kubernetes-unions": [], "x-kubernetes-map-type": "atomic", "required": ["b"],
                          "properties": {"b": {"type": "array", "items": refers("B")}}},
                    "B": {"type": "object", "properties": {"c": {"type": "boolean"}}}}),
                json!({"type": "object", "x-kubernetes-map-type": "atomic", "required": ["b"], "description": "See pod.spec.f.",
                    "properties": {"b": {"type": "array", "description": "See pod.spec.f.b.",
                                         "items": {"type": "object", "properties": {"c": {"type": "boolean"}}}}}}),
            ),
            (
                "a name with an empty default becomes required",
                json!(refers("A")),
                json!({"A": {"type": "object", "properties": {"name": {"type": "string", "default": ""}, "service": {"type": "string", "default": ""}}}}),
                json!({"type": "object", "description": "See pod.spec.f.", "required": ["name"],
                    "properties": {"name": {"type": "string"}, "service": {"type": "string"}}}),
            ),
            (
                "a map key keeps its default, or becomes required",
                json!({"type": "array", "items": refers("A"),
              "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b", "c"]}),
                json!({"A": {"type": "object", "required": ["a"], "properties": {
                "a": {"type": "string", "default": ""}, "b": {"type": "string", "default": "TCP"}, "c": {"type": "string"}}}}),
                json!({"type": "array", "description": "See pod.spec.f.", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b", "c"],
                    "items": {"type": "object", "required": ["a", "c"], "properties": {
                        "a": {"type": "string"}, "b": {"type": "string", "default": "TCP"}, "c": {"type": "string"}}}}),
            ),
        ];
        for (about, field, more, wanted) in cases {
            assert_eq!(spec(&json!({"f": field}), &more).unwrap()["f"], wanted, "{about}");
        }
    }

    #[test]
    fn what_a_layer_may_leave_out() {
        let spec = json!({"type": "object", "required": ["containers"], "properties": {
            "containers": {"type": "array", "items": {"type": "string"}},
            "ephemeralContainers": {"type": "array", "items": {"type": "string"}},
        }});
        let schema = from_openapi(&document(&spec, &json!({}))).unwrap();
        assert_eq!(
            schema,
            json!({"type": "object", "properties": {
                "metadata": {"type": "object", "description": "See pod.metadata.", "properties": {"name": {"type": "string"}}},
                "spec": {"type": "object", "description": "See pod.spec.",
                         "properties": {"containers": {"type": "array", "items": {"type": "string"}}}},
            }})
        );
    }

    #[test]
    fn documents_that_are_no_source() {
        let keyword = OpenApiError::Keyword { path: "pod.spec.f".to_owned(), keyword: "not".to_owned() };
        assert_eq!(spec(&json!({"f": {"type": "string", "not": {}}}), &json!({})), Err(keyword));
        let refers = json!({"$ref": "#/components/schemas/A"});
        assert_eq!(spec(&json!({"f": refers}), &json!({})), Err(OpenApiError::Missing("A".to_owned())));
        let circle = json!({"A": {"type": "object", "properties": {"a": refers}}});
        assert!(matches!(spec(&json!({"f": refers}), &circle), Err(OpenApiError::Cycle(_))));
        assert_eq!(from_openapi(&json!([])), Err(OpenApiError::Missing(ROOT.to_owned())));
    }
}
