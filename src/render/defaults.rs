//! Effective defaults of the merged spec. Nothing is defaulted inside pod templates: a member's API server does that.

use serde_json::{Map, Value, json};

/// Adds what no layer set. The API server writes no defaults into layers, where they would look like a choice of that
/// layer.
pub(super) fn apply(spec: &mut Value) {
    let Value::Object(spec) = spec else { return };
    set(spec, "replicas", json!(1));
    if let Some(Value::Object(parallelism)) = spec.get_mut("parallelism")
        && let Some(data) = parallelism.get("data").filter(|data| !data.is_null()).cloned()
    {
        set(parallelism, "dataLocal", data);
    }
    set(spec, "service", json!({}));
    if let Some(Value::Object(service)) = spec.get_mut("service") {
        set(service, "target", json!("auto"));
    }
    if let Some(Value::Object(strategy)) = spec.get_mut("rolloutStrategy") {
        set(strategy, "type", json!("RollingUpdate"));
    }
}

fn set(fields: &mut Map<String, Value>, name: &str, value: Value) {
    let slot = fields.entry(name).or_insert(Value::Null);
    if slot.is_null() {
        *slot = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_layer_set_is_added() {
        let cases = [
            (json!({}), json!({"replicas": 1, "service": {"target": "auto"}})),
            (
                json!({"replicas": 0, "service": {"target": "all"}, "rolloutStrategy": {"type": "Recreate"}}),
                json!({"replicas": 0, "service": {"target": "all"}, "rolloutStrategy": {"type": "Recreate"}}),
            ),
            (
                json!({"parallelism": {"data": 4}, "service": {}, "rolloutStrategy": {"rollingUpdate": {"maxSurge": 0}}}),
                json!({
                    "parallelism": {"data": 4, "dataLocal": 4}, "replicas": 1, "service": {"target": "auto"},
                    "rolloutStrategy": {"rollingUpdate": {"maxSurge": 0}, "type": "RollingUpdate"},
                }),
            ),
            (
                json!({"parallelism": {"data": 4, "dataLocal": 2}}),
                json!({"parallelism": {"data": 4, "dataLocal": 2}, "replicas": 1, "service": {"target": "auto"}}),
            ),
            (json!({"parallelism": {"tensor": 2}}), json!({"parallelism": {"tensor": 2}, "replicas": 1, "service": {"target": "auto"}})),
        ];
        for (mut spec, expected) in cases {
            apply(&mut spec);
            assert_eq!(spec, expected);
        }
    }
}
