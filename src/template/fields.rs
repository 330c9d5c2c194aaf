//! `.Name` on a value.

use super::error::{ErrorKind, Fault};
use super::types::{Shape, Type};
use super::value::Value;

/// Records with at most this many fields are listed in full when a field is unknown.
const LISTED_FIELDS: usize = 15;

/// The value of a field of a record or of a key of a map. `called` tells that arguments follow, which neither takes.
pub(super) fn field(receiver: &Value, name: &str, called: bool) -> Result<Value, Fault> {
    let (value, is_nil) = receiver.indirect();
    match value {
        // What is missing has missing fields.
        Value::Nil => Ok(Value::Nil),
        Value::Pointer(pointer) if is_nil => match &**pointer.kind() {
            Type::Record(shape) if !shape.has(name) => Err(unknown(shape, name)),
            Type::Any => Err(Fault::new(ErrorKind::Nil, format!("nil has no field {name}"))),
            kind => {
                let message =
                    format!("{name} can't be read: the {kind} that it belongs to is not set; use `deref`, which yields nothing then");
                Err(Fault::new(ErrorKind::Nil, message))
            }
        },
        Value::Record(record) => match record.get(name) {
            Some(_) if called => Err(no_function(name)),
            Some(value) => Ok(value.element()),
            None => Err(unknown(record.shape(), name)),
        },
        Value::Map(_) if called => Err(no_function(name)),
        Value::Map(map) => Ok(map.get(name.as_bytes()).map_or(Value::Nil, Value::element)),
        other => Err(Fault::new(ErrorKind::UnknownField, format!("{} has no field {name}", other.noun()))),
    }
}

fn no_function(name: &str) -> Fault {
    Fault::new(ErrorKind::Type, format!("{name} is no function and takes no arguments"))
}

/// The fault of a field that a record lacks, with the ones it has or the one that was meant.
pub(super) fn unknown(shape: &Shape, name: &str) -> Fault {
    let meant = shape
        .names()
        .find(|known| known.eq_ignore_ascii_case(name))
        .or_else(|| shape.fields().iter().find(|field| &*field.json == name).map(|field| &*field.name));
    let hint = match meant {
        Some(meant) => format!("; it is called {meant}"),
        None if shape.names().count() <= LISTED_FIELDS => format!("; it has {}", shape.names().collect::<Vec<_>>().join(", ")),
        None => String::new(),
    };
    Fault::new(ErrorKind::UnknownField, format!("{} has no field {name}{hint}", shape.name))
}
