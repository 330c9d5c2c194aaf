//! Who owns which field: turning the entry that a POST leaves in `managedFields` into one of server-side apply. Pure.
//!
//! An object made by POST has an `Update` entry of its maker that owns each field. Server-side apply never removes a
//! field that such an entry owns, so a field that was there at the creation could never be removed again. Once the
//! entry is one of `Apply`, the next apply takes over from it.

use serde_json::{Map, Value, json};

use crate::api::labels::FIELD_MANAGER;

/// The JSON patch that mends an object, if there is anything to mend. It holds for the version of the object that was
/// read only: the API server answers a conflict when it has changed.
pub(super) fn mend(object: &Value) -> Option<Value> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let version = object.pointer("/metadata/resourceVersion")?.as_str()?;
    let mended = mended(entries)?;
    Some(json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": mended},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
    ]))
}

/// The entries with all of the hub's `Update` entries gone into one `Apply` entry; `None` when there are none.
fn mended(entries: &[Value]) -> Option<Vec<Value>> {
    let (leftover, mut kept): (Vec<&Value>, Vec<&Value>) = entries.iter().partition(|entry| is_ours(entry, "Update"));
    let (first, more) = leftover.split_first()?;
    let applied = kept.iter().position(|entry| is_ours(entry, "Apply")).map(|at| kept.remove(at));
    let mut ours = applied.unwrap_or(first).clone();
    let mut fields = ours.get("fieldsV1").cloned().unwrap_or_else(|| json!({}));
    for entry in std::iter::once(first).chain(more) {
        if let Some(more) = entry.get("fieldsV1") {
            unite(&mut fields, more);
        }
    }
    if let Some(entry) = ours.as_object_mut() {
        entry.insert("operation".to_owned(), "Apply".into());
        entry.insert("fieldsV1".to_owned(), fields);
    }
    Some(kept.into_iter().cloned().chain([ours]).collect())
}

/// Whether an entry is the hub's, for the object itself and not for its status or scale.
fn is_ours(entry: &Value, operation: &str) -> bool {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    text("manager") == FIELD_MANAGER && text("operation") == operation && text("subresource").is_empty()
}

/// The union of two sets of fields: sets are maps, a field is a key.
fn unite(fields: &mut Value, more: &Value) {
    let (Some(fields), Some(more)) = (fields.as_object_mut(), more.as_object()) else { return };
    for (key, inner) in more {
        unite(fields.entry(key.clone()).or_insert_with(|| Value::Object(Map::new())), inner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, subresource: &str, fields: &Value) -> Value {
        let mut entry =
            json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields});
        if !subresource.is_empty() {
            entry["subresource"] = subresource.into();
        }
        entry
    }

    #[test]
    fn the_entry_of_a_post_becomes_one_of_apply() {
        let fields = json!({"f:spec": {"f:replicas": {}}});
        let other = entry("kube-controller-manager", "Update", "status", &json!({"f:status": {}}));
        let got = mended(&[entry("odin-hub", "Update", "", &fields), other.clone()]).unwrap();
        assert_eq!(got, [other, entry("odin-hub", "Apply", "", &fields)]);
    }

    #[test]
    fn a_leftover_goes_into_the_apply_entry() {
        let got = mended(&[
            entry("odin-hub", "Apply", "", &json!({"f:spec": {"f:replicas": {}, "f:a": {".": {}, "f:b": {}}}})),
            entry("odin-hub", "Update", "", &json!({"f:spec": {"f:a": {"f:c": {}}}, "f:metadata": {"f:labels": {".": {}}}})),
        ])
        .unwrap();
        let want = json!({"f:spec": {"f:replicas": {}, "f:a": {".": {}, "f:b": {}, "f:c": {}}}, "f:metadata": {"f:labels": {".": {}}}});
        assert_eq!(got, [entry("odin-hub", "Apply", "", &want)]);
    }

    #[test]
    fn nothing_to_mend_is_nothing_to_write() {
        let applied = entry("odin-hub", "Apply", "", &json!({}));
        for entries in [
            vec![],
            vec![applied.clone()],
            vec![applied, entry("kubectl", "Update", "", &json!({})), entry("odin-hub", "Update", "scale", &json!({}))],
        ] {
            assert_eq!(mended(&entries), None, "{entries:?}");
        }
        assert_eq!(mend(&json!({"metadata": {}})), None);
    }

    #[test]
    fn the_patch_holds_for_one_version_only() {
        let object = json!({"metadata": {"resourceVersion": "17", "managedFields": [entry("odin-hub", "Update", "", &json!({}))]}});
        let patch = mend(&object).unwrap();
        assert_eq!(patch[1], json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "17"}));
        assert_eq!(patch[0]["value"][0]["operation"], "Apply");
    }
}
