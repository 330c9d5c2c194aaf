//! Equality and order as `eq` and `lt` see them.

use std::cmp::Ordering;

use super::error::{ErrorKind, Fault};
use super::value::Value;

/// What can be compared: values of the same sort only, but integers of any width.
enum Basic<'v> {
    Bool(bool),
    Int(i128),
    Float(f64),
    Complex(f64, f64),
    Str(&'v [u8]),
}

fn basic(value: &Value) -> Option<Basic<'_>> {
    Some(match value {
        Value::Bool(value) => Basic::Bool(*value),
        Value::Int(_, value) => Basic::Int(i128::from(*value)),
        Value::Uint(_, value) => Basic::Int(i128::from(*value)),
        Value::Float(value) => Basic::Float(*value),
        Value::Complex(real, imaginary) => Basic::Complex(*real, *imaginary),
        Value::Str(text) => Basic::Str(text),
        Value::Nil | Value::List(_) | Value::Map(_) | Value::Record(_) | Value::Pointer(_) => return None,
    })
}

fn incompatible(a: &Value, b: &Value) -> Fault {
    let hint = match (a, b) {
        (Value::Pointer(_), _) | (_, Value::Pointer(_)) => "; read optional fields with `deref`",
        _ => "",
    };
    Fault::new(ErrorKind::Type, format!("{} can't be compared with {}{hint}", a.noun(), b.noun()))
}

/// Whether two values are equal.
pub(super) fn equal(a: &Value, b: &Value) -> Result<bool, Fault> {
    match (basic(a), basic(b)) {
        (Some(Basic::Bool(a)), Some(Basic::Bool(b))) => Ok(a == b),
        (Some(Basic::Int(a)), Some(Basic::Int(b))) => Ok(a == b),
        #[allow(clippy::float_cmp, reason = "Go compares floats exactly")]
        (Some(Basic::Float(a)), Some(Basic::Float(b))) => Ok(a == b),
        #[allow(clippy::float_cmp, reason = "Go compares floats exactly")]
        (Some(Basic::Complex(a, i)), Some(Basic::Complex(b, j))) => Ok(a == b && i == j),
        (Some(Basic::Str(a)), Some(Basic::Str(b))) => Ok(a == b),
        (None, None) => composite_equal(a, b),
        // Nothing but nil equals nil.
        (Some(_), None) if matches!(b, Value::Nil) => Ok(false),
        (None, Some(_)) if matches!(a, Value::Nil) => Ok(false),
        _ => Err(incompatible(a, b)),
    }
}

/// Equality of what is no basic value: nil, pointers, records; lists and maps can only be compared with nil.
fn composite_equal(a: &Value, b: &Value) -> Result<bool, Fault> {
    let is_untyped = |value: &Value| matches!(value, Value::Nil);
    if a.kind().kind() != b.kind().kind() && !is_untyped(a) && !is_untyped(b) {
        return Err(incompatible(a, b));
    }
    if a.is_nil() || b.is_nil() {
        return Ok(a.is_nil() == b.is_nil());
    }
    if comparable(b) {
        return Ok(same(a, b));
    }
    Err(Fault::new(ErrorKind::Type, format!("{} can't be compared; compare its elements", b.noun())))
}

/// Whether Go can compare values of this type: lists and maps never, records when all their fields can.
fn comparable(value: &Value) -> bool {
    match value {
        Value::List(_) | Value::Map(_) => false,
        Value::Record(record) => record.values().iter().all(comparable),
        _ => true,
    }
}

/// Go's `==` on values of any type: the same type, then the same value; pointers must point to the same thing.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Pointer(a), Value::Pointer(b)) => a.same(b),
        (Value::Record(a), Value::Record(b)) => {
            a.shape().name == b.shape().name && a.values().iter().zip(b.values()).all(|(a, b)| same(a, b))
        }
        _ => a.kind() == b.kind() && equal(a, b).unwrap_or(false),
    }
}

/// The order of two values; None when a float is no number.
pub(super) fn order(a: &Value, b: &Value) -> Result<Option<Ordering>, Fault> {
    let unordered = |value: &Value| {
        let hint = if matches!(value, Value::Pointer(_)) { "; read optional fields with `deref`" } else { "" };
        Err(Fault::new(ErrorKind::Type, format!("{} has no order{hint}", value.noun())))
    };
    match (basic(a), basic(b)) {
        (None | Some(Basic::Bool(_) | Basic::Complex(..)), _) => unordered(a),
        (_, None | Some(Basic::Bool(_) | Basic::Complex(..))) => unordered(b),
        (Some(Basic::Int(a)), Some(Basic::Int(b))) => Ok(Some(a.cmp(&b))),
        (Some(Basic::Float(a)), Some(Basic::Float(b))) => Ok(a.partial_cmp(&b)),
        (Some(Basic::Str(a)), Some(Basic::Str(b))) => Ok(Some(a.cmp(b))),
        _ => Err(incompatible(a, b)),
    }
}
