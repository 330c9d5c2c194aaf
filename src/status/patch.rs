//! What differs between two statuses.

use serde_json::{Map, Value};

use crate::api::condition;
use crate::api::odin::InferenceServiceStatus;

/// The JSON merge patch (RFC 7386) that turns `old` into `new`; nothing when they are equal.
///
/// Equal means equal once stored: a null is no value, and 1.0 is 1. A difference that the API server doesn't keep
/// would be written again and again.
pub fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return (!is_same(old, new)).then(|| new.clone());
    };
    let mut patch = Map::new();
    for (key, value) in after {
        if let Some(change) = merge_patch(before.get(key).unwrap_or(&Value::Null), value) {
            patch.insert(key.clone(), change);
        }
    }
    for (key, value) in before {
        if !value.is_null() && !after.contains_key(key) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Whether a change of status is what people and autoscalers wait for: counts and readiness, rather than how it comes
/// about.
pub fn is_pressing(before: Option<&InferenceServiceStatus>, after: &InferenceServiceStatus) -> bool {
    let counts =
        |status: &InferenceServiceStatus| [status.replicas, status.ready_replicas, status.updated_replicas].map(Option::unwrap_or_default);
    let ready = |status: &InferenceServiceStatus| condition::is_true(&status.conditions, condition::service::READY);
    let (counts_before, ready_before) = before.map_or(([0; 3], false), |status| (counts(status), ready(status)));
    counts_before != counts(after) || ready_before != ready(after)
}

fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.iter().all(|(key, a)| is_same(a, b.get(key).unwrap_or(&Value::Null)))
                && b.iter().all(|(key, b)| b.is_null() || a.contains_key(key))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_holds_what_changed_and_leads_from_one_to_the_other() {
        for (old, new, want) in [
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": 1}), json!({"a": 2}), Some(json!({"a": 2}))),
            (json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"b": null}))),
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1, "c": 3}}), Some(json!({"a": {"c": 3}}))),
            (json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]}))),
            (json!({}), json!({"a": {}}), Some(json!({"a": {}}))),
            (json!({"a": 1}), json!({"a": {"b": 1}}), Some(json!({"a": {"b": 1}}))),
            (json!({}), json!({"a": null}), None),
            (Value::Null, json!({"a": 1}), Some(json!({"a": 1}))),
            (json!({"a": null}), json!({}), None),
            (json!({"a": 1}), json!({"a": null}), Some(json!({"a": null}))),
            (json!({"a": [{"b": 1, "d": 2}]}), json!({"a": [{"b": 1.0, "c": null, "d": 2}]}), None),
            (json!({"a": [{"b": 1}]}), json!({"a": [{"b": 1.5}]}), Some(json!({"a": [{"b": 1.5}]}))),
            (json!({"a": [{"b": 1}]}), json!({"a": [{"c": 1}]}), Some(json!({"a": [{"c": 1}]}))),
            (json!({"a": 9_007_199_254_740_993_i64}), json!({"a": 9_007_199_254_740_993_i64}), None),
        ] {
            assert_eq!(merge_patch(&old, &new), want, "{old} -> {new}");
        }
    }
}
