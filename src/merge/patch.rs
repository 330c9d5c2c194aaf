//! The exact merge.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::error::{Fault, MergeError, MergeErrorKind};
use super::list::{Items, arrange, identities, identity, item_type, same_type, type_of, unite};
use super::path::Step;
use super::schema::{Field, Kind, ListMerge, Schema};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";

type Object = Map<String, Value>;

/// Whether a key of an object is one of the patch's own words.
pub fn is_directive(key: &str) -> bool {
    key == PATCH || key == RETAIN_KEYS || key.starts_with(SET_ELEMENT_ORDER) || key.starts_with(DELETE_FROM_PRIMITIVE_LIST)
}

/// Merges `patch` into `base` as Kubernetes' strategic merge patch does, directives and nulls included.
///
/// # Errors
/// What the two hold doesn't fit together, a list item lacks its merge key, or a directive is malformed. One case is
/// refused here that Kubernetes decides by chance: a list given both to merge and to delete from.
pub fn strategic_merge(base: Value, patch: &Value, schema: &Schema) -> Result<Value, MergeError> {
    let base = match base {
        Value::Object(base) => base,
        Value::Null => Object::new(),
        other => return Err(not_an_object("the base", &other)),
    };
    match patch {
        Value::Object(patch) => Ok(Value::Object(merge_objects(base, patch, Shape::Struct(schema))?)),
        Value::Null => Ok(Value::Object(base)),
        other => Err(not_an_object("the patch", other)),
    }
}

fn not_an_object(side: &str, found: &Value) -> MergeError {
    Fault::new(MergeErrorKind::Type, format!("{side} must be an object, not {}", type_of(found))).into()
}

/// What is known of the object that is being merged.
#[derive(Clone, Copy)]
enum Shape<'s> {
    Struct(&'s Schema),
    /// Any other type: its keys have no types of their own.
    Plain,
}

impl Shape<'_> {
    fn of(kind: Kind) -> Shape<'static> {
        match kind {
            Kind::Struct(schema) | Kind::Structs(schema) => Shape::Struct(schema),
            _ => Shape::Plain,
        }
    }

    fn field(self, name: &str) -> Result<&'static Field, Fault> {
        match self {
            Shape::Struct(schema) => schema.field(name).ok_or_else(|| {
                let message =
                    format!("{} has no field {name:?} that this version knows, so the values of two layers can't be merged", schema.name);
                Fault::new(MergeErrorKind::UnknownField, message)
            }),
            Shape::Plain => Err(Fault::new(MergeErrorKind::Type, "an object or a list has no place here, so two of them can't be merged")),
        }
    }

    /// The field of a list that both sides hold.
    fn list_field(self, name: &str) -> Result<&'static Field, Fault> {
        let field = self.field(name)?;
        // Kubernetes looks through a pointer without asking what is behind it.
        if field.kind.is_list() || field.pointer { Ok(field) } else { Err(Fault::new(MergeErrorKind::Type, "this field is no list")) }
    }
}

fn merge_objects(mut merged: Object, patch: &Object, shape: Shape<'_>) -> Result<Object, Fault> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => Ok(patch.iter().filter(|(key, _)| *key != PATCH).map(|(k, v)| (k.clone(), v.clone())).collect()),
            Some("delete") => Ok(Object::new()),
            _ => Err(bad_patch_directive(directive)),
        };
    }
    retain_keys(&mut merged, patch)?;
    let done = merge_ordered_lists(&mut merged, patch, shape)?;
    for (key, value) in patch {
        if key == RETAIN_KEYS || key.starts_with(SET_ELEMENT_ORDER) || done.contains(key.as_str()) {
            continue;
        }
        let (name, deletion) = match key.strip_prefix(DELETE_FROM_PRIMITIVE_LIST) {
            Some(rest) => (list_name(rest, DELETE_FROM_PRIMITIVE_LIST)?, true),
            None => (key.as_str(), false),
        };
        if deletion && patch.contains_key(name) && !done.contains(name) {
            let message = format!("a patch may give a list or {key:?} for it, not both: their order isn't defined");
            return Err(Fault::new(MergeErrorKind::Directive, message));
        }
        if value.is_null() {
            merged.remove(name);
            continue;
        }
        match merged.remove(name) {
            Some(old) if same_type(&old, value) => {
                let new = merge_values(old, value, shape, name, deletion).map_err(|fault| fault.inside(Step::field(name)))?;
                merged.insert(name.to_owned(), new);
            }
            Some(old) if deletion => {
                merged.insert(name.to_owned(), old);
            }
            Some(_) | None if !deletion => {
                if let Some(new) = new_value(value) {
                    merged.insert(name.to_owned(), new);
                }
            }
            Some(_) | None => {}
        }
    }
    Ok(merged)
}

/// Merges two values of one type.
fn merge_values(old: Value, patch: &Value, shape: Shape<'_>, name: &str, deletion: bool) -> Result<Value, Fault> {
    match (old, patch) {
        (Value::Object(old), Value::Object(patch)) => {
            let field = shape.field(name)?;
            let below = if field.kind.is_list() { Shape::Plain } else { Shape::of(field.kind) };
            Ok(Value::Object(merge_objects(old, patch, below)?))
        }
        (Value::Array(old), Value::Array(patch)) => {
            let field = shape.list_field(name)?;
            if field.merge == ListMerge::Replace && !deletion {
                return Ok(Value::Array(patch.clone()));
            }
            Ok(Value::Array(merge_lists(old, patch, field, deletion)?))
        }
        (_, patch) => Ok(patch.clone()),
    }
}

fn merge_lists(base: Vec<Value>, patch: &[Value], field: &Field, deletion: bool) -> Result<Vec<Value>, Fault> {
    let Some(items) = item_type(&base, patch)? else { return Ok(base) };
    let key = match field.merge {
        ListMerge::Key(key) => Some(key),
        ListMerge::Replace | ListMerge::Union => None,
    };
    match (items, key) {
        (Items::Scalars, _) if deletion => Ok(base.into_iter().filter(|item| !patch.contains(item)).collect()),
        (Items::Scalars, _) => {
            let (merged, order) = unite(base, patch);
            // Under a key this finds that the items are no objects.
            arrange(merged, patch, &order, key)
        }
        (Items::Objects, None) => {
            Err(Fault::new(MergeErrorKind::Type, "items of this list are objects without a merge key, so lists of them can't be merged"))
        }
        (Items::Objects, Some(key)) => merge_keyed(base, patch, key, Shape::of(field.kind)),
    }
}

fn merge_keyed(base: Vec<Value>, patch: &[Value], key: &'static str, shape: Shape<'_>) -> Result<Vec<Value>, Fault> {
    let (base, patch) = apply_item_directives(base, patch, key)?;
    let order = identities(&base, Some(key))?;
    let leading: Vec<Value> = patch.iter().map(|(index, item)| identity(item, Some(key), *index).cloned()).collect::<Result<_, Fault>>()?;
    let mut merged = base;
    for ((_, item), id) in patch.iter().zip(&leading) {
        match merged.iter_mut().find(|old| old.get(key) == Some(id)) {
            Some(slot) => {
                if let (Value::Object(old), Value::Object(new)) = (slot.take(), item) {
                    let step = Step::Item { key, value: id.clone() };
                    *slot = Value::Object(merge_objects(old, new, shape).map_err(|fault| fault.inside(step))?);
                }
            }
            None => merged.push((*item).clone()),
        }
    }
    arrange(merged, &leading, &order, Some(key))
}

/// Items of a patch, each with its index.
type Indexed<'v> = Vec<(usize, &'v Value)>;

/// Carries out the directives among the items of a patch, and returns what is left of the base and of the patch.
fn apply_item_directives<'v>(mut base: Vec<Value>, patch: &'v [Value], key: &str) -> Result<(Vec<Value>, Indexed<'v>), Fault> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut replace = false;
    for (index, item) in patch.iter().enumerate() {
        let Some(directive) = item.get(PATCH) else {
            plain.push((index, item));
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let id = identity(item, Some(key), index)?;
                base.retain(|old| old.get(key) != Some(id));
            }
            Some("replace") => replace = true,
            _ => return Err(bad_patch_directive(directive).inside(Step::Index(index))),
        }
    }
    if replace {
        return Ok((plain.into_iter().map(|(_, item)| item.clone()).collect(), Vec::new()));
    }
    Ok((base, plain))
}

/// Carries out `$retainKeys`: fields that it doesn't name go.
fn retain_keys(merged: &mut Object, patch: &Object) -> Result<(), Fault> {
    let Some(directive) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(retained) = directive else {
        return Err(Fault::new(
            MergeErrorKind::Directive,
            format!("{RETAIN_KEYS} must be a list of field names, not {}", type_of(directive)),
        ));
    };
    let retained: BTreeSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let missing = patch.iter().find(|(key, value)| !value.is_null() && !is_directive(key) && !retained.contains(key.as_str()));
    if let Some((key, _)) = missing {
        return Err(Fault::new(MergeErrorKind::Directive, format!("{RETAIN_KEYS} must name {key:?}, since the patch sets it")));
    }
    merged.retain(|key, _| retained.contains(key.as_str()));
    Ok(())
}

/// Merges the lists for which the patch prescribes an order, and returns their names.
fn merge_ordered_lists<'v>(merged: &mut Object, patch: &'v Object, shape: Shape<'_>) -> Result<BTreeSet<&'v str>, Fault> {
    let mut done = BTreeSet::new();
    for (directive, order) in patch {
        let Some(rest) = directive.strip_prefix(SET_ELEMENT_ORDER) else { continue };
        let Value::Array(order) = order else {
            let message = format!("must be a list of the items in their order, not {}", type_of(order));
            return Err(Fault::new(MergeErrorKind::Type, message).inside(Step::field(directive)));
        };
        let name = list_name(rest, SET_ELEMENT_ORDER)?;
        let fault = |fault: Fault| fault.inside(Step::field(name));
        let base = merged.get(name).map(|value| as_list(value).cloned()).transpose().map_err(fault)?;
        let items = patch.get(name).map(as_list).transpose().map_err(fault)?;
        let field = shape.list_field(name).map_err(fault)?;
        if base.is_none() && items.is_none() {
            continue;
        }
        merged.insert(name.to_owned(), Value::Array(merge_in_order(base, items, order, field).map_err(fault)?));
        done.insert(name);
    }
    Ok(done)
}

fn merge_in_order(base: Option<Vec<Value>>, items: Option<&Vec<Value>>, order: &[Value], field: &Field) -> Result<Vec<Value>, Fault> {
    let key = match field.merge {
        ListMerge::Key(key) => Some(key),
        ListMerge::Replace | ListMerge::Union => None,
    };
    let leading = identities(order, key)?;
    if let Some(items) = items {
        check_order(items, &leading, key)?;
    }
    if item_type(base.as_deref().unwrap_or_default(), items.map_or(&[], Vec::as_slice))?.is_none() {
        return Err(Fault::new(MergeErrorKind::Type, "an order was given for a list without items"));
    }
    let before = base.as_deref().map_or(Ok(Vec::new()), |base| identities(base, key))?;
    let merged = match (base, items) {
        (Some(base), Some(items)) if field.merge != ListMerge::Replace => merge_lists(base, items, field, false)?,
        (Some(_), Some(items)) => items.clone(),
        (Some(base), None) => base,
        (None, items) => items.into_iter().flatten().filter_map(without_directives).collect(),
    };
    arrange(merged, &leading, &before, key)
}

/// The items of a patch, those that it deletes aside, must stand in the order that it prescribes.
fn check_order(items: &[Value], leading: &[Value], key: Option<&str>) -> Result<(), Fault> {
    let mut order = leading.iter();
    for (index, item) in items.iter().enumerate() {
        if key.is_some() && item.get(PATCH).is_some_and(|directive| directive == "delete") {
            continue;
        }
        let id = identity(item, key, index)?;
        if !order.any(|other| other == id) {
            let message = format!("item {id} isn't in {SET_ELEMENT_ORDER}, or stands elsewhere there");
            return Err(Fault::new(MergeErrorKind::Directive, message));
        }
    }
    Ok(())
}

fn as_list(value: &Value) -> Result<&Vec<Value>, Fault> {
    value.as_array().ok_or_else(|| Fault::new(MergeErrorKind::Type, format!("expected a list, found {}", type_of(value))))
}

fn list_name<'k>(rest: &'k str, directive: &str) -> Result<&'k str, Fault> {
    rest.strip_prefix('/')
        .ok_or_else(|| Fault::new(MergeErrorKind::Directive, format!("{directive} must be followed by a slash and the name of a list")))
}

fn bad_patch_directive(directive: &Value) -> Fault {
    Fault::new(MergeErrorKind::Directive, format!("{PATCH} knows \"replace\" and \"delete\", not {directive}"))
}

/// A value that the base doesn't have: taken as it is, without nulls and without what a directive removes.
fn new_value(value: &Value) -> Option<Value> {
    without_directives(&without_nulls(value))
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), without_nulls(v))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        scalar => scalar.clone(),
    }
}

fn without_directives(value: &Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(PATCH) => None,
        Value::Object(fields) => {
            Some(Value::Object(fields.iter().filter_map(|(k, v)| Some((k.clone(), without_directives(v)?))).collect()))
        }
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(without_directives).collect())),
        scalar => Some(scalar.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::pod_template;
    use super::*;

    fn containers(containers: &Value) -> Value {
        json!({"spec": {"containers": containers}})
    }

    #[test]
    fn a_fault_names_its_place() {
        let main = |field: &str, value: &Value| containers(&json!([{"name": "main", field: value}]));
        let cases = [
            (containers(&json!([{"name": "a"}])), containers(&json!([{"name": "a"}, {"image": "x"}])), "spec.containers[1]", "\"name\""),
            (containers(&json!([{"image": "a"}])), containers(&json!([])), "spec.containers[0]", "\"name\""),
            (
                main("ports", &json!([{"containerPort": 1}])),
                main("ports", &json!([{"name": "http"}])),
                "spec.containers[main].ports[0]",
                "\"containerPort\"",
            ),
            (main("gpu", &json!({"a": 1})), main("gpu", &json!({"b": 1})), "spec.containers[main].gpu", "Container has no field \"gpu\""),
            (main("env", &json!([{"name": "A"}])), main("env", &json!(["A"])), "spec.containers[main].env", "an object and a string"),
            (
                json!({"metadata": {"labels": {"a.b/c": {}}}}),
                json!({"metadata": {"labels": {"a.b/c": {}}}}),
                "metadata.labels[\"a.b/c\"]",
                "no place here",
            ),
            (main("resources", &json!({})), main("resources", &json!({"$patch": "x"})), "spec.containers[main].resources", "\"replace\""),
            (json!([]), json!({}), "", "the base must be an object, not a list"),
            (json!({}), json!("x"), "", "the patch must be an object, not a string"),
        ];
        for (base, patch, path, message) in cases {
            let error = strategic_merge(base, &patch, pod_template()).expect_err(message);
            assert_eq!(error.path, path, "{error}");
            assert!(error.message.contains(message), "{error}");
            assert!(error.to_string().starts_with(path), "{error}");
        }
    }

    #[test]
    fn a_list_to_merge_and_to_delete_from_needs_an_order() {
        let base = json!({"metadata": {"finalizers": ["a", "b"]}});
        let mut patch = json!({"metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}});
        let error = strategic_merge(base.clone(), &patch, pod_template()).unwrap_err();
        assert_eq!((error.kind, error.path.as_str()), (MergeErrorKind::Directive, "metadata"));

        patch["metadata"]["$setElementOrder/finalizers"] = json!(["b", "c"]);
        let merged = strategic_merge(base, &patch, pod_template()).unwrap();
        assert_eq!(merged, json!({"metadata": {"finalizers": ["b", "c"]}}));
    }

    #[test]
    fn a_null_document_is_an_empty_one() {
        let document = json!({"spec": {"nodeName": "n"}});
        assert_eq!(strategic_merge(Value::Null, &document, pod_template()).unwrap(), document);
        assert_eq!(strategic_merge(document.clone(), &Value::Null, pod_template()).unwrap(), document);
    }

    #[test]
    fn eviction_responders_of_1_37_merge_by_name() {
        let list = |items: Value| json!({"spec": {"evictionResponders": items}});
        let merged = strategic_merge(
            list(json!([{"name": "a", "priority": 1}])),
            &list(json!([{"name": "a", "priority": 2}, {"name": "b"}])),
            pod_template(),
        );
        assert_eq!(merged.unwrap(), list(json!([{"name": "a", "priority": 2}, {"name": "b"}])));
    }
}
