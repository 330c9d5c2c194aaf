//! Lists: identity of items, and the order of a merged list.

use serde_json::Value;

use super::error::{Fault, MergeErrorKind};
use super::path::Step;

/// What the items of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Items {
    Objects,
    Scalars,
}

/// The common type of all items of both lists; `None` when there are none.
pub(super) fn item_type(base: &[Value], patch: &[Value]) -> Result<Option<Items>, Fault> {
    let mut first: Option<&Value> = None;
    for item in base.iter().chain(patch) {
        let fault = |message: &str| Fault::new(MergeErrorKind::Type, message);
        if item.is_array() {
            return Err(fault("a list of lists can't be merged"));
        }
        if item.is_null() {
            return Err(fault("null is no item of a list"));
        }
        match first {
            None => first = Some(item),
            Some(first) if same_type(first, item) => {}
            Some(first) => {
                let message = format!("items of one list must be of one type, but there are {} and {}", type_of(first), type_of(item));
                return Err(Fault::new(MergeErrorKind::Type, message));
            }
        }
    }
    Ok(first.map(|item| if item.is_object() { Items::Objects } else { Items::Scalars }))
}

/// Whether both values are of one type; whole numbers and fractions are two.
pub(super) fn same_type(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.is_f64() == b.is_f64(),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

/// The type of a value, in words.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// What tells an item from the others of its list: its value under the merge key, or the item itself where the list has
/// no key.
pub(super) fn identity<'v>(item: &'v Value, key: Option<&str>, index: usize) -> Result<&'v Value, Fault> {
    let id = match key {
        None => item,
        Some(key) => {
            let Value::Object(fields) = item else {
                let message = format!("expected an object with the key {key:?}, found {}", type_of(item));
                return Err(Fault::new(MergeErrorKind::Type, message).inside(Step::Index(index)));
            };
            fields.get(key).ok_or_else(|| {
                let message = format!("this item has no {key:?}, by which items of this list are merged; add it");
                Fault::new(MergeErrorKind::MergeKey, message).inside(Step::Index(index))
            })?
        }
    };
    if id.is_object() || id.is_array() {
        let message = format!("items can't be told apart by {}; use a string or a number", type_of(id));
        return Err(Fault::new(MergeErrorKind::Type, message).inside(Step::Index(index)));
    }
    Ok(id)
}

/// The identities of all items, in order.
pub(super) fn identities(items: &[Value], key: Option<&str>) -> Result<Vec<Value>, Fault> {
    items.iter().enumerate().map(|(index, item)| identity(item, key, index).cloned()).collect()
}

/// Unites two lists of scalars. Returns the union and the base's order.
///
/// Kubernetes fills the place of a repeated item with the last item, and does so in the memory of the base when that has
/// room; the base's order is then the new one. It matters only for a base that repeats an item.
pub(super) fn unite(base: Vec<Value>, patch: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let length = base.len();
    let in_place = length + patch.len() <= length.next_power_of_two();
    let before = base.clone();
    let mut union = base;
    union.extend_from_slice(patch);
    let mut memory = union.clone();
    let mut i = 0;
    while i < union.len() {
        let mut j = i + 1;
        while j < union.len() {
            if union.get(i) == union.get(j) {
                union.swap_remove(j);
                if let (Some(cell), Some(filled)) = (memory.get_mut(j), union.get(j)) {
                    cell.clone_from(filled);
                }
            } else {
                j += 1;
            }
        }
        i += 1;
    }
    memory.truncate(length);
    (union, if in_place { memory } else { before })
}

/// Puts a merged list in order. `leading` are the identities of the patch (or of its order list), `base` those of the
/// base.
///
/// Items that `leading` names stand in its order, the others in that of the base. The two rows are then drawn together:
/// an item of the base goes next only if the patch item in front of it also occurs in the base, and further back there.
pub(super) fn arrange(merged: Vec<Value>, leading: &[Value], base: &[Value], key: Option<&str>) -> Result<Vec<Value>, Fault> {
    let position = |order: &[Value], id: &Value| order.iter().position(|other| other == id);
    let mut led = Vec::new();
    let mut rest = Vec::new();
    for (index, item) in merged.into_iter().enumerate() {
        let id = identity(&item, key, index)?;
        let in_base = position(base, id);
        match position(leading, id) {
            Some(place) => led.push((place, in_base, item)),
            None => rest.push((in_base, item)),
        }
    }
    led.sort_by_key(|(place, _, _)| *place);
    rest.sort_by_key(|(place, _)| *place);

    let mut ordered = Vec::with_capacity(led.len() + rest.len());
    let mut rest = rest.into_iter().peekable();
    for (_, led_in_base, item) in led {
        while let Some((_, waiting)) = rest.next_if(|(place, _)| matches!((place, led_in_base), (Some(r), Some(l)) if *r < l)) {
            ordered.push(waiting);
        }
        ordered.push(item);
    }
    ordered.extend(rest.map(|(_, item)| item));
    Ok(ordered)
}
