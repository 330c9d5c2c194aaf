//! Whose an object of a member is, and what it shows of itself. Pure.

use serde_json::Value;

use crate::api::labels::{HUB, SERVICE_UID, SOURCE};
use crate::api::lws::EXCLUSIVE_TOPOLOGY;

/// It is being deleted.
pub(super) fn is_leaving(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null())
}

/// What an object that is being deleted waits for.
pub(super) fn holders(object: &Value) -> String {
    let finalizers: Vec<&str> =
        object.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if finalizers.is_empty() { String::new() } else { format!(" and waits for {}", finalizers.join(", ")) }
}

/// Whether the labels and annotations of the manifest are all on the object: they don't count in its generation.
pub(super) fn has_marks_of(object: &Value, manifest: &Value) -> bool {
    ["/metadata/labels", "/metadata/annotations"].iter().all(|path| {
        let there = object.pointer(path);
        manifest
            .pointer(path)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .all(|(key, value)| there.and_then(|there| there.get(key)) == Some(value))
    })
}

/// The exclusive topology of a `LeaderWorkerSet`.
pub(super) fn exclusive_topology(object: &Value) -> Option<&str> {
    object.pointer("/metadata/annotations")?.get(EXCLUSIVE_TOPOLOGY)?.as_str()
}

/// Whether an object was made by the object of that kind and name.
pub(super) fn is_made_by(object: &Value, kind: &str, name: &str) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let is = |owner: &Value, key: &str, text: &str| owner.get(key).and_then(Value::as_str) == Some(text);
    owners.into_iter().flatten().any(|owner| is(owner, "kind", kind) && is(owner, "name", name))
}

/// Whose an object is, if it isn't this service's.
pub(super) fn foreign_owner(object: &Value, hub_id: &str, service_uid: &str) -> Option<String> {
    let text = |path: &str, key: &str| object.pointer(path).and_then(|map| map.get(key)).and_then(Value::as_str);
    let hub = text("/metadata/labels", HUB);
    let service = text("/metadata/labels", SERVICE_UID);
    if hub == Some(hub_id) && service == Some(service_uid) {
        return None;
    }
    if let Some(other) = hub.filter(|hub| *hub != hub_id) {
        return Some(format!("it belongs to the hub {other}"));
    }
    if let (Some(_), Some(other)) = (hub, service) {
        let source = text("/metadata/annotations", SOURCE).map(|source| format!(" ({source})")).unwrap_or_default();
        return Some(format!("it belongs to the service with UID {other}{source}"));
    }
    let owner = object.pointer("/metadata/ownerReferences/0");
    if let (Some(kind), Some(name)) = (owner.and_then(|o| o.get("kind")?.as_str()), owner.and_then(|o| o.get("name")?.as_str())) {
        return Some(format!("it belongs to {kind} {name}"));
    }
    if let Some(manager) = text("/metadata/labels", "app.kubernetes.io/managed-by") {
        return Some(format!("it is managed by {manager}"));
    }
    let managers = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let manager = managers.filter_map(|entry| entry.get("manager")?.as_str()).find(|manager| *manager != "kube-controller-manager");
    Some(manager.map_or_else(
        || "it bears no mark of this hub".to_owned(),
        |manager| format!("it bears no mark of this hub and was written by {manager}"),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::labels::{GENERATION, RENDERED_HASH};

    fn object(labels: &Value, more: &Value) -> Value {
        let mut object = json!({"metadata": {"labels": labels}});
        for (key, value) in more.as_object().unwrap() {
            object["metadata"][key] = value.clone();
        }
        object
    }

    #[test]
    fn an_object_that_is_not_ours_names_its_owner() {
        let cases = [
            (object(&json!({HUB: "h", SERVICE_UID: "s"}), &json!({})), None),
            (object(&json!({HUB: "other", SERVICE_UID: "s"}), &json!({})), Some("the hub other")),
            (object(&json!({HUB: "h", SERVICE_UID: "t"}), &json!({"annotations": {SOURCE: "team/old"}})), Some("UID t (team/old)")),
            (object(&json!({SERVICE_UID: "s"}), &json!({})), Some("no mark of this hub")),
            (object(&json!({}), &json!({"ownerReferences": [{"kind": "Rollout", "name": "chat"}]})), Some("Rollout chat")),
            (object(&json!({"app.kubernetes.io/managed-by": "Helm"}), &json!({})), Some("managed by Helm")),
            (
                object(&json!({}), &json!({"managedFields": [{"manager": "kube-controller-manager"}, {"manager": "kubectl"}]})),
                Some("written by kubectl"),
            ),
            (json!({}), Some("no mark of this hub")),
        ];
        for (object, want) in cases {
            let got = foreign_owner(&object, "h", "s");
            match want {
                None => assert_eq!(got, None),
                Some(part) => assert!(got.as_ref().is_some_and(|got| got.contains(part)), "{got:?} for {object}"),
            }
        }
    }

    #[test]
    fn marks_are_compared_apart_from_the_generation() {
        let manifest = json!({"metadata": {"labels": {HUB: "h"}, "annotations": {RENDERED_HASH: "a", GENERATION: "2"}}});
        let cases = [
            (
                json!({"metadata": {"labels": {HUB: "h", "more": "x"}, "annotations": {RENDERED_HASH: "a", GENERATION: "2", "more": "x"}}}),
                true,
            ),
            (json!({"metadata": {"labels": {HUB: "h"}, "annotations": {RENDERED_HASH: "a", GENERATION: "1"}}}), false),
            (json!({"metadata": {"annotations": {RENDERED_HASH: "a", GENERATION: "2"}}}), false),
        ];
        for (object, want) in cases {
            assert_eq!(has_marks_of(&object, &manifest), want, "{object}");
        }
    }

    #[test]
    fn what_holds_a_deletion_is_named() {
        assert_eq!(holders(&json!({"metadata": {"finalizers": ["foregroundDeletion", "x/y"]}})), " and waits for foregroundDeletion, x/y");
        assert_eq!(holders(&json!({"metadata": {}})), "");
    }

    #[test]
    fn what_an_object_made_names_it() {
        let made = json!({"metadata": {"ownerReferences": [{"kind": "LeaderWorkerSet", "name": "chat"}]}});
        for (kind, name, want) in [("LeaderWorkerSet", "chat", true), ("LeaderWorkerSet", "other", false), ("Pod", "chat", false)] {
            assert_eq!(is_made_by(&made, kind, name), want, "{kind} {name}");
        }
        assert!(!is_made_by(&json!({}), "LeaderWorkerSet", "chat"));
    }
}
