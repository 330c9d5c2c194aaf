//! Labels, annotations and finalizers of pod templates.

use serde_json::{Map, Value};

use super::{Faults, Pod, items};
use crate::api::labels;
use crate::api::names::{is_label_key, is_label_value};
use crate::api::reason::Reason;
use crate::merge::Step;

/// Annotations of one object may have this many bytes in all.
const ANNOTATIONS: usize = 256 * 1024;

pub(super) fn check(pod: &Pod<'_>, faults: &mut Faults) {
    let Some(metadata) = pod.template.get("metadata") else { return };
    if !items(metadata, "finalizers").is_empty() {
        let place = pod.place([Step::field("metadata"), Step::field("finalizers")]);
        faults.add(
            Reason::InvalidRendered,
            format!(
                "{} would keep pods from ever going away: pod templates can't have finalizers, remove them",
                pod.provenance.locate(&place)
            ),
        );
    }
    for kind in ["labels", "annotations"] {
        let Some(Value::Object(entries)) = metadata.get(kind) else { continue };
        for (key, value) in entries {
            if let Err(wrong) = entry(kind, key, value) {
                let place = pod.place([Step::field("metadata"), Step::field(kind), Step::field(key)]);
                faults.add(Reason::InvalidRendered, format!("{}: {wrong}", pod.provenance.locate(&place)));
            }
        }
        if kind == "annotations" && size(entries) > ANNOTATIONS {
            let place = pod.place([Step::field("metadata"), Step::field(kind)]);
            faults.add(Reason::InvalidRendered, format!("{} has more than 256 KiB in all: shorten it", pod.provenance.describe(&place)));
        }
    }
}

fn size(entries: &Map<String, Value>) -> usize {
    entries.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
}

/// Checks one label or annotation (`kind`, as the field is called) of a pod.
///
/// # Errors
/// What is wrong with it, without its place.
pub(crate) fn entry(kind: &str, key: &str, value: &Value) -> Result<(), String> {
    if labels::is_reserved(key) {
        return Err("this key is set by controllers alone: remove it".to_owned());
    }
    let valid = if kind == "labels" { is_label_key(key) } else { is_label_key(&key.to_ascii_lowercase()) };
    if !valid {
        return Err(format!(
            "{key:?} is no valid key: use up to 63 letters, digits, '-', '_' and '.', if need be after a domain and a slash"
        ));
    }
    match value {
        Value::String(text) if kind == "labels" && !is_label_value(text) => Err(format!(
            "{text:?} is no valid label value: use up to 63 letters, digits, '-', '_' and '.', with a letter or digit first and last; \
             longer text can be an annotation"
        )),
        Value::String(_) => Ok(()),
        _ => Err("the value must be a string: put it in quotes".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_and_values_follow_kubernetes() {
        let long = "a".repeat(63);
        let too_long = "a".repeat(64);
        let cases = [
            ("labels", "team", json!("search"), true),
            ("labels", "team", json!(""), true),
            ("labels", "example.com/Team_1.x", json!("A-b_c.9"), true),
            ("labels", &long, json!(long), true),
            ("labels", &too_long, json!("x"), false),
            ("labels", "team", json!(too_long), false),
            ("labels", "team", json!("a b"), false),
            ("labels", "team", json!("-a"), false),
            ("labels", "team", json!("a."), false),
            ("labels", "team", json!(1), false),
            ("labels", "", json!("x"), false),
            ("labels", "/x", json!("x"), false),
            ("labels", "example.com/", json!("x"), false),
            ("labels", "Example.com/x", json!("x"), false),
            ("labels", "a/b/c", json!("x"), false),
            ("annotations", "Example.com/x", json!("any text: \n {}"), true),
            ("annotations", "a b", json!("x"), false),
            ("annotations", "x", json!(true), false),
            ("labels", "app.kubernetes.io/name", json!("other"), true),
            ("labels", "mif.moreh.io/role", json!("decode"), true),
            ("labels", "mif.moreh.io/inferenceservice", json!("x"), false),
            ("labels", "app.kubernetes.io/instance", json!("x"), false),
            ("annotations", "leaderworkerset.sigs.k8s.io/exclusive-topology", json!("x"), false),
            ("annotations", "federation.odin.moreh.io/anything", json!("x"), false),
            ("labels", "pod-template-hash", json!("x"), false),
            ("labels", "controller-revision-hash", json!("x"), false),
        ];
        for (kind, key, value, valid) in cases {
            assert_eq!(entry(kind, key, &value).is_ok(), valid, "{kind} {key:?}: {value}");
        }
    }
}
