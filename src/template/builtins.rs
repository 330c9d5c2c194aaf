//! Go's own functions, Odin's `deref`, and Sprig's `slice`, which hides Go's.
#![allow(clippy::unnecessary_wraps, reason = "the functions of the table have one signature")]

use std::cmp::Ordering;
use std::fmt::Write;
use std::sync::Arc;

use super::compare;
use super::error::{ErrorKind, Fault};
use super::fields;
use super::format;
use super::functions::Call;
use super::types::Type;
use super::value::{List, UintType, Value};

type Outcome = Result<Value, Fault>;

// Logic and comparison.

pub(super) fn not(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Bool(!call.argument(0).truth()))
}

/// Whether the first argument equals one of the others. Those behind the first match are not looked at.
pub(super) fn eq(call: &mut Call<'_>) -> Outcome {
    if call.arguments.len() < 2 {
        return Err(Fault::new(ErrorKind::ArgCount, "there is nothing to compare with"));
    }
    for other in call.arguments_from(1) {
        if compare::equal(call.argument(0), other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

pub(super) fn ne(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Bool(!compare::equal(call.argument(0), call.argument(1))?))
}

fn order(call: &Call<'_>) -> Result<Option<Ordering>, Fault> {
    compare::order(call.argument(0), call.argument(1))
}

pub(super) fn lt(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Bool(order(call)? == Some(Ordering::Less)))
}

pub(super) fn le(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Bool(matches!(order(call)?, Some(Ordering::Less | Ordering::Equal))))
}

/// Not `le`, also for what is no number.
pub(super) fn gt(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Bool(!matches!(order(call)?, Some(Ordering::Less | Ordering::Equal))))
}

/// Not `lt`, also for what is no number.
pub(super) fn ge(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Bool(order(call)? != Some(Ordering::Less)))
}

// Values that may be missing.

/// Odin's `deref`: walks fields and keys; nil as soon as one is unset, else what the last pointer leads to.
pub(super) fn deref(call: &mut Call<'_>) -> Outcome {
    let mut value = call.argument(0).clone();
    for step in call.arguments_from(1) {
        let Value::Str(name) = step else { continue };
        let (target, _) = value.indirect();
        let next = match target {
            Value::Nil | Value::Pointer(_) => return Ok(Value::Nil),
            Value::Map(map) => map.get(name).cloned().unwrap_or(Value::Nil),
            Value::Record(record) => {
                let name = String::from_utf8_lossy(name);
                record.get(&name).cloned().ok_or_else(|| fields::unknown(record.shape(), &name))?
            }
            other => {
                let message = format!("{:?} can't be looked up in {}", String::from_utf8_lossy(name), other.noun());
                return Err(Fault::new(ErrorKind::Type, message));
            }
        };
        value = next;
    }
    Ok(match value.indirect() {
        (_, true) => Value::Nil,
        (target, false) => target.clone(),
    })
}

// Containers.

pub(super) fn len(call: &mut Call<'_>) -> Outcome {
    let value = call.argument(0);
    let length = match value.indirect() {
        (_, true) | (Value::Nil, _) => return Err(Fault::new(ErrorKind::Nil, format!("`{}` has no value and no length", call.first))),
        (Value::Str(text), _) => text.len(),
        (Value::List(list), _) => list.items().len(),
        (Value::Map(map), _) => map.len(),
        (other, _) => return Err(Fault::new(ErrorKind::Type, format!("{} has no length", other.noun()))),
    };
    Ok(Value::int(length as i64))
}

/// Walks into lists by number, into maps by key.
pub(super) fn index(call: &mut Call<'_>) -> Outcome {
    let mut value = call.argument(0).clone();
    if matches!(value, Value::Nil) {
        return Err(Fault::new(ErrorKind::Nil, format!("`{}` has no value to look into", call.first)));
    }
    for key in call.arguments_from(1) {
        let next = match value.indirect() {
            (_, true) | (Value::Nil, _) => {
                return Err(Fault::new(ErrorKind::Nil, format!("`{}` has no value to look into", call.first)));
            }
            (Value::List(list), _) => {
                let position = position(key, list.items().len(), &format!("`{}`", call.first))?;
                list.items().get(position).cloned()
            }
            (Value::Str(text), _) => {
                let position = position(key, text.len(), "the string")?;
                text.get(position).map(|byte| Value::Uint(UintType::Uint8, u64::from(*byte)))
            }
            (Value::Map(map), _) => match key {
                Value::Str(key) => Some(map.get(key).cloned().unwrap_or_else(|| map.element().zero())),
                other => return Err(Fault::new(ErrorKind::Type, format!("the key of a map is a string, not {}", other.noun()))),
            },
            (other, _) => return Err(Fault::new(ErrorKind::Type, format!("{} can't be indexed", other.noun()))),
        };
        value = next.unwrap_or(Value::Nil);
    }
    Ok(value)
}

/// An index into something of a length.
fn position(index: &Value, length: usize, what: &str) -> Result<usize, Fault> {
    let number = match index {
        Value::Int(_, number) => i128::from(*number),
        Value::Uint(_, number) => i128::from(*number),
        other => return Err(Fault::new(ErrorKind::Type, format!("an index is an integer, not {}", other.noun()))),
    };
    usize::try_from(number).ok().filter(|position| *position < length).ok_or_else(|| {
        let elements = if length == 1 { "1 element".to_owned() } else { format!("{length} elements") };
        Fault::new(ErrorKind::Range, format!("index {number} is out of range: {what} has {elements}"))
    })
}

/// Sprig's `slice`, which hides Go's: part of a list, from an index up to another one.
pub(super) fn slice(call: &mut Call<'_>) -> Outcome {
    let list = match call.argument(0).indirect().0 {
        Value::List(list) => Arc::clone(list),
        Value::Nil => return Err(Fault::new(ErrorKind::Nil, format!("`{}` has no value to take a part of", call.first))),
        other => return Err(Fault::new(ErrorKind::Type, format!("slice takes a list, not {}", other.noun()))),
    };
    let length = list.items().len();
    if length == 0 {
        return Ok(Value::Nil);
    }
    let bound = |index: usize, otherwise: usize| match call.arguments.get(index) {
        None => Ok(otherwise),
        Some(value) => position(value, length + 1, "the list"),
    };
    let start = bound(1, 0)?;
    let end = bound(2, length)?;
    let Some(items) = list.items().get(start..end) else {
        return Err(Fault::new(ErrorKind::Range, format!("a part can't start at {start} and end at {end}")));
    };
    Ok(Value::List(Arc::new(List::new(Arc::new(Type::Any), items.to_vec()))))
}

/// Calls a function that is a value. No value is a function, so that this always fails, as in Go.
pub(super) fn call(call: &mut Call<'_>) -> Outcome {
    Err(match call.argument(0) {
        Value::Nil => Fault::new(ErrorKind::Nil, "nil can't be called"),
        other => Fault::new(ErrorKind::Type, format!("`{}` is no function but {}", call.first, other.noun())),
    })
}

// Printing.

pub(super) fn print(call: &mut Call<'_>) -> Outcome {
    format::print(&call.arguments, call.budget).map(Value::string)
}

pub(super) fn println(call: &mut Call<'_>) -> Outcome {
    format::println(&call.arguments, call.budget).map(Value::string)
}

pub(super) fn printf(call: &mut Call<'_>) -> Outcome {
    match call.arguments.split_first() {
        Some((Value::Str(format), values)) => format::printf(format, values, call.budget).map(Value::string),
        _ => Err(Fault::new(ErrorKind::Type, "the format is a string")),
    }
}

/// The text that is to be escaped: like `print`, but a missing value has a text of its own.
fn text_of(call: &mut Call<'_>) -> Result<Vec<u8>, Fault> {
    if let [Value::Str(text)] = call.arguments.as_slice() {
        return Ok(text.to_vec());
    }
    let values: Vec<Value> = call
        .arguments
        .iter()
        .map(|value| match value {
            Value::Nil => Value::string("<no value>"),
            other => other.indirect().0.clone(),
        })
        .collect();
    format::print(&values, call.budget)
}

pub(super) fn html(call: &mut Call<'_>) -> Outcome {
    let text = text_of(call)?;
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            plain => out.push(plain),
        }
    }
    call.budget.build(out.len())?;
    Ok(Value::string(out))
}

pub(super) fn js(call: &mut Call<'_>) -> Outcome {
    let text = text_of(call)?;
    let mut out = String::with_capacity(text.len());
    for character in format::replace_unsound(&text).chars() {
        match character {
            '\\' | '\'' | '"' => {
                out.push('\\');
                out.push(character);
            }
            '<' | '>' | '&' | '=' | '\0'..='\u{1f}' => {
                // Writing to a string never fails.
                let _ = write!(out, "\\u{:04X}", u32::from(character));
            }
            _ if character.is_ascii() || format::is_printable(character) => out.push(character),
            _ => {
                let _ = write!(out, "\\u{:04X}", u32::from(character));
            }
        }
    }
    call.budget.build(out.len())?;
    Ok(Value::string(out))
}

pub(super) fn urlquery(call: &mut Call<'_>) -> Outcome {
    let text = text_of(call)?;
    let mut out = String::with_capacity(text.len());
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    call.budget.build(out.len())?;
    Ok(Value::string(out))
}
