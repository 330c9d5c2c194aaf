//! Values from JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::types::{Shape, Type};
use super::value::{List, Map, Pointer, Record, Text, Value};

impl Value {
    /// JSON as Go decodes it without a type: objects become maps, arrays lists, numbers `float64`.
    pub fn from_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::Nil,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => Self::Float(number.as_f64().unwrap_or_default()),
            Json::String(text) => Self::string(text),
            Json::Array(items) => Self::list(items.iter().map(Self::from_json).collect()),
            Json::Object(entries) => {
                let entries = entries.iter().map(|(key, value)| (Text::from(key.as_bytes()), Self::from_json(value))).collect();
                Self::Map(Arc::new(Map::new(Arc::new(Type::Any), entries)))
            }
        }
    }

    /// JSON as Go decodes it into a type: null and missing fields are the type's zero value, pointers point to what
    /// is there, fields that a record lacks are dropped.
    ///
    /// # Errors
    /// A message that names the path when the JSON doesn't fit the type.
    pub fn from_json_as(json: &Json, kind: &Type) -> Result<Self, String> {
        convert(json, kind).map_err(|(path, message)| {
            if path.is_empty() { message } else { format!("{}: {message}", path.into_iter().rev().collect::<Vec<_>>().join(".")) }
        })
    }
}

/// A mismatch: the path from the inside out, and what is wrong there.
type Mismatch = (Vec<String>, String);

fn convert(json: &Json, kind: &Type) -> Result<Value, Mismatch> {
    if json.is_null() {
        return Ok(kind.zero());
    }
    let value = match (kind, json) {
        (Type::Any, _) => Value::from_json(json),
        (Type::Bool, Json::Bool(value)) => Value::Bool(*value),
        (Type::Int | Type::Int32 | Type::Int64, Json::Number(number)) => {
            let fits = |value: &i64| *kind != Type::Int32 || i32::try_from(*value).is_ok();
            let value = whole(number).filter(fits).ok_or_else(|| (Vec::new(), format!("{number} is no {kind}")))?;
            Value::integer(kind, value)
        }
        (Type::Uint8 | Type::Uint64, Json::Number(number)) => {
            let value = number.as_u64().ok_or_else(|| (Vec::new(), format!("{number} is no {kind}")))?;
            Value::unsigned(kind, value)
        }
        (Type::Float64, Json::Number(number)) => Value::Float(number.as_f64().unwrap_or_default()),
        (Type::String | Type::Text(_), Json::String(text)) => Value::string(text),
        (Type::Text(_), other) => Value::string(other.to_string()),
        (Type::List(element), Json::Array(items)) => {
            let mut values = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                values.push(convert(item, element).map_err(|error| inside(error, &index.to_string()))?);
            }
            Value::List(Arc::new(List::new(Arc::clone(element), values)))
        }
        (Type::Map(element), Json::Object(entries)) => {
            let mut values = BTreeMap::new();
            for (key, entry) in entries {
                let value = convert(entry, element).map_err(|error| inside(error, key))?;
                values.insert(Text::from(key.as_bytes()), value);
            }
            Value::Map(Arc::new(Map::new(Arc::clone(element), values)))
        }
        (Type::Record(shape), Json::Object(_)) => Value::Record(Arc::new(record(json, shape)?)),
        (Type::Pointer(target), _) => Value::Pointer(Pointer::new(Arc::clone(target), convert(json, target)?)),
        _ => return Err((Vec::new(), format!("expected {kind}, found {}", sort(json)))),
    };
    Ok(value)
}

fn record(json: &Json, shape: &Arc<Shape>) -> Result<Record, Mismatch> {
    let mut values = Vec::with_capacity(shape.fields().len());
    for field in shape.fields() {
        let value = match &field.kind {
            Type::Record(inner) if field.json.is_empty() => Value::Record(Arc::new(record(json, inner)?)),
            kind => match json.get(&*field.json) {
                Some(value) => convert(value, kind).map_err(|error| inside(error, &field.json))?,
                None => kind.zero(),
            },
        };
        values.push(value);
    }
    Ok(Record::from_values(shape, values))
}

fn inside((mut path, message): Mismatch, step: &str) -> Mismatch {
    path.push(step.to_owned());
    (path, message)
}

/// An integer, also one that is written as `2.0`.
fn whole(number: &serde_json::Number) -> Option<i64> {
    number.as_i64().or_else(|| number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e15).map(|float| float as i64))
}

fn sort(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::super::types::Field;
    use super::*;
    use serde_json::json;

    fn shape() -> Type {
        let inner = Shape::new("Inner", vec![Field::new("On", "on", Type::pointer(Type::Bool))]);
        let fields = vec![
            Field::new("Name", "name", Type::String),
            Field::new("Size", "size", Type::pointer(Type::Int32)),
            Field::new("Parts", "parts", Type::list(Type::Record(Arc::clone(&inner)))),
            Field::new("Amount", "amount", Type::Text("Quantity".into())),
            Field::embedded("Inner", "", &inner),
        ];
        Type::Record(Shape::new("Outer", fields))
    }

    #[test]
    fn missing_fields_are_zero_and_inline_ones_are_found() {
        let Value::Record(record) = Value::from_json_as(&json!({"name": "a", "on": true, "other": 1}), &shape()).unwrap() else {
            panic!("no record")
        };
        assert_eq!(record.get("Name").and_then(Value::as_str).as_deref(), Some("a"));
        assert!(record.get("Size").is_some_and(Value::is_nil));
        assert!(record.get("Parts").is_some_and(Value::is_nil));
        assert!(record.get("On").is_some_and(|on| matches!(on.indirect(), (Value::Bool(true), false))));
        assert!(record.get("other").is_none());
    }

    #[test]
    fn numbers_are_text_where_the_type_is_text() {
        let value = Value::from_json_as(&json!(2), &Type::Text("Quantity".into())).unwrap();
        assert_eq!(value.as_str().as_deref(), Some("2"));
    }

    #[test]
    fn a_mismatch_names_its_path() {
        for (json, message) in [
            (json!({"size": "2"}), "size: expected int32, found a string"),
            (json!({"size": 3_000_000_000_i64}), "size: 3000000000 is no int32"),
            (json!({"parts": [{}, {"on": 1}]}), "parts.1.on: expected bool, found a number"),
            (json!([]), "expected Outer, found a list"),
        ] {
            assert_eq!(Value::from_json_as(&json, &shape()).unwrap_err(), message);
        }
    }
}
