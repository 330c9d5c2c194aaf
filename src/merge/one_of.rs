//! One-of groups: of several choices, the latest layer's stays.
//!
//! Kubernetes' merge works key by key, so an `emptyDir` of one layer and a `persistentVolumeClaim` of another end up
//! side by side, and no API server accepts the pod. Since a layer can't erase what lies below it, a user could never get
//! rid of the first one. So this step, after the exact merge, keeps the choice of the latest layer that made one. It
//! touches only results that would be refused anyway.

use serde_json::{Map, Value};

use super::path::{Path, Step, below};
use super::schema::{Schema, pod_template};

/// A one-of group in which choices were dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The object that holds the group.
    pub path: Path,
    /// Index of the layer whose choice stays.
    pub layer: usize,
    /// That choice.
    pub kept: String,
    /// The choices that went.
    pub dropped: Vec<String>,
}

/// One layer makes two choices in one group by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The object that holds the group.
    pub path: Path,
    /// Index of the layer.
    pub layer: usize,
    /// Its choices.
    pub choices: Vec<String>,
}

/// The choices that an object of this type makes in its one-of group, sorted; empty for a type without such a group.
fn choices<'v>(schema: &Schema, object: &'v Map<String, Value>) -> Vec<&'v str> {
    let members: &[&str] = match schema.name {
        // All but the name is a source, those of later versions too.
        "Volume" => return object.keys().map(String::as_str).filter(|key| *key != "name").collect(),
        "VolumeProjection" | "EnvVarSource" => return object.keys().map(String::as_str).collect(),
        "EnvVar" => &["value", "valueFrom"],
        "EnvFromSource" => &["configMapRef", "secretRef"],
        "Probe" | "LifecycleHandler" => &["exec", "grpc", "httpGet", "sleep", "tcpSocket"],
        "PodResourceClaim" => &["resourceClaimName", "resourceClaimTemplateName"],
        _ => return Vec::new(),
    };
    // An empty value beside a source is how Kubernetes itself writes "no value".
    let empty_value = |key: &str| key == "value" && object.contains_key("valueFrom") && object.get(key).is_some_and(|v| v == "");
    members.iter().filter_map(|name| object.get_key_value(*name)).map(|(key, _)| key.as_str()).filter(|key| !empty_value(key)).collect()
}

/// Leaves one choice in each one-of group of the two pod templates of a merged spec. `layers` are the documents that it
/// was merged from, lowest first.
///
/// # Errors
/// A layer that makes two choices in one group by itself.
pub fn resolve_one_of(merged: &mut Value, layers: &[&Value]) -> Result<Vec<Resolved>, Conflict> {
    let mut resolved = Vec::new();
    for name in ["template", "workerTemplate"] {
        if let Some(template) = merged.get_mut(name) {
            walk(template, pod_template(), &Path::default().then(Step::field(name)), layers, &mut resolved)?;
        }
    }
    Ok(resolved)
}

fn walk(value: &mut Value, schema: &Schema, path: &Path, layers: &[&Value], resolved: &mut Vec<Resolved>) -> Result<(), Conflict> {
    let Value::Object(object) = value else { return Ok(()) };
    if choices(schema, object).len() > 1 {
        let step = resolve(object, schema, path, layers)?;
        resolved.extend(step);
    }
    for (name, value) in object {
        let (Some(inner), merge) = below(Some(schema), name) else { continue };
        let path = path.clone().then(Step::field(name));
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let path = path.clone().then(Step::item(merge, item, index));
                    walk(item, inner, &path, layers, resolved)?;
                }
            }
            value => walk(value, inner, &path, layers, resolved)?,
        }
    }
    Ok(())
}

fn resolve(object: &mut Map<String, Value>, schema: &Schema, path: &Path, layers: &[&Value]) -> Result<Option<Resolved>, Conflict> {
    let mut latest = None;
    for (layer, document) in layers.iter().enumerate() {
        let Some(Value::Object(own)) = path.find(document) else { continue };
        let own: Vec<String> = choices(schema, own).into_iter().map(str::to_owned).collect();
        match own.as_slice() {
            [] => {}
            [choice] => latest = Some((layer, choice.clone())),
            _ => return Err(Conflict { path: path.clone(), layer, choices: own }),
        }
    }
    let Some((layer, kept)) = latest else { return Ok(None) };
    let dropped: Vec<String> = choices(schema, object).into_iter().filter(|choice| *choice != kept).map(str::to_owned).collect();
    for choice in &dropped {
        object.remove(choice);
    }
    Ok(Some(Resolved { path: path.clone(), layer, kept, dropped }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::merge::{service_spec, strategic_merge};

    fn merge(layers: &[&Value]) -> Value {
        layers.iter().fold(json!({}), |base, layer| strategic_merge(base, layer, service_spec()).expect("layers merge"))
    }

    fn volumes(volumes: &Value) -> Value {
        json!({"template": {"spec": {"volumes": volumes}}})
    }

    fn main(field: &str, value: &Value) -> Value {
        json!({"workerTemplate": {"spec": {"containers": [{"name": "main", field: value}]}}})
    }

    #[test]
    fn the_latest_choice_stays() {
        let cases = [
            (
                "a volume's source is swapped",
                vec![
                    volumes(&json!([{"name": "v", "emptyDir": {}}])),
                    volumes(&json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])),
                ],
                volumes(&json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])),
                vec!["template.spec.volumes[v]: persistentVolumeClaim of layer 1"],
            ),
            (
                "a layer between has no say",
                vec![
                    volumes(&json!([{"name": "v", "emptyDir": {}}])),
                    volumes(&json!([{"name": "v", "hostPath": {"path": "/a"}}])),
                    volumes(&json!([{"name": "v", "nfs": {"server": "s"}}, {"name": "w", "emptyDir": {}}])),
                ],
                volumes(&json!([{"name": "v", "nfs": {"server": "s"}}, {"name": "w", "emptyDir": {}}])),
                vec!["template.spec.volumes[v]: nfs of layer 2"],
            ),
            (
                "a source that this version doesn't know",
                vec![volumes(&json!([{"name": "v", "emptyDir": {}}])), volumes(&json!([{"name": "v", "future": {}}]))],
                volumes(&json!([{"name": "v", "future": {}}])),
                vec!["template.spec.volumes[v]: future of layer 1"],
            ),
            (
                "one source in two layers is one choice",
                vec![
                    volumes(&json!([{"name": "v", "emptyDir": {"medium": "Memory"}}])),
                    volumes(&json!([{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}])),
                ],
                volumes(&json!([{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}])),
                vec![],
            ),
            (
                "a value becomes a source",
                vec![
                    main("env", &json!([{"name": "A", "value": "1"}])),
                    main("env", &json!([{"name": "A", "valueFrom": {"fieldRef": {}}}])),
                ],
                main("env", &json!([{"name": "A", "valueFrom": {"fieldRef": {}}}])),
                vec!["workerTemplate.spec.containers[main].env[A]: valueFrom of layer 1"],
            ),
            (
                "a source becomes a value",
                vec![
                    main("env", &json!([{"name": "A", "valueFrom": {"fieldRef": {}}}])),
                    main("env", &json!([{"name": "A", "value": "1"}])),
                ],
                main("env", &json!([{"name": "A", "value": "1"}])),
                vec!["workerTemplate.spec.containers[main].env[A]: value of layer 1"],
            ),
            (
                "an empty value beside a source is no choice",
                vec![
                    main("env", &json!([{"name": "A", "valueFrom": {"fieldRef": {}}}])),
                    main("env", &json!([{"name": "A", "value": ""}])),
                ],
                main("env", &json!([{"name": "A", "value": "", "valueFrom": {"fieldRef": {}}}])),
                vec![],
            ),
            (
                "the source inside valueFrom",
                vec![
                    main("env", &json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "p"}}}])),
                    main("env", &json!([{"name": "A", "valueFrom": {"secretKeyRef": {"key": "k"}}}])),
                ],
                main("env", &json!([{"name": "A", "valueFrom": {"secretKeyRef": {"key": "k"}}}])),
                vec!["workerTemplate.spec.containers[main].env[A].valueFrom: secretKeyRef of layer 1"],
            ),
            (
                "a probe's handler",
                vec![
                    main("readinessProbe", &json!({"httpGet": {"port": 1}, "periodSeconds": 5})),
                    main("readinessProbe", &json!({"exec": {"command": ["x"]}})),
                ],
                main("readinessProbe", &json!({"exec": {"command": ["x"]}, "periodSeconds": 5})),
                vec!["workerTemplate.spec.containers[main].readinessProbe: exec of layer 1"],
            ),
            (
                "a lifecycle handler",
                vec![
                    main("lifecycle", &json!({"preStop": {"exec": {}}})),
                    main("lifecycle", &json!({"preStop": {"sleep": {"seconds": 1}}})),
                ],
                main("lifecycle", &json!({"preStop": {"sleep": {"seconds": 1}}})),
                vec!["workerTemplate.spec.containers[main].lifecycle.preStop: sleep of layer 1"],
            ),
            (
                "nothing outside the pod templates",
                vec![json!({"model": {"name": "m"}}), json!({"model": {"volumes": 1}})],
                json!({"model": {"name": "m", "volumes": 1}}),
                vec![],
            ),
        ];
        for (about, layers, expected, steps) in cases {
            let layers: Vec<&Value> = layers.iter().collect();
            let mut merged = merge(&layers);
            let resolved = resolve_one_of(&mut merged, &layers).unwrap_or_else(|conflict| panic!("{about}: {conflict:?}"));
            assert_eq!(merged, expected, "{about}");
            let said: Vec<String> = resolved.iter().map(|r| format!("{}: {} of layer {}", r.path, r.kept, r.layer)).collect();
            assert_eq!(said, steps, "{about}");
        }
    }

    #[test]
    fn one_layer_with_two_choices_is_refused() {
        let cases = [
            (vec![volumes(&json!([{"name": "v", "emptyDir": {}, "hostPath": {}}]))], 0, "template.spec.volumes[v]"),
            (
                vec![main("livenessProbe", &json!({"exec": {}})), main("livenessProbe", &json!({"exec": {}, "grpc": {}}))],
                1,
                "workerTemplate.spec.containers[main].livenessProbe",
            ),
            (
                vec![volumes(&json!([{"name": "v", "projected": {"sources": [{"secret": {}}, {"secret": {}, "configMap": {}}]}}]))],
                0,
                "template.spec.volumes[v].projected.sources[1]",
            ),
            (vec![main("envFrom", &json!([{"secretRef": {}, "configMapRef": {}}]))], 0, "workerTemplate.spec.containers[main].envFrom[0]"),
        ];
        for (layers, layer, path) in cases {
            let layers: Vec<&Value> = layers.iter().collect();
            let conflict = resolve_one_of(&mut merge(&layers), &layers).expect_err(path);
            assert_eq!((conflict.layer, conflict.path.to_string().as_str(), conflict.choices.len()), (layer, path, 2));
        }
    }
}
