//! Lists of strings: splitting, joining, sorting.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::error::Fault;
use super::super::format;
use super::super::functions::{Call, Function, Param, plain};
use super::super::types::Type;
use super::super::value::{Map, Text, Value};
use super::strings;

type Outcome = Result<Value, Fault>;

pub(super) static FUNCTIONS: &[Function] = &[
    plain("join", &[Param::Str, Param::Any], None, join),
    plain("sortAlpha", &[Param::Any], None, sort_alpha),
    plain("split", &[Param::Str, Param::Str], None, split),
    plain("splitList", &[Param::Str, Param::Str], None, split_list),
    plain("splitn", &[Param::Str, Param::Int, Param::Str], None, splitn),
    plain("toStrings", &[Param::Any], None, to_strings),
];

/// The texts of a list's elements without nil; of anything else its own text.
fn texts(call: &mut Call<'_>, value: &Value) -> Result<Vec<Vec<u8>>, Fault> {
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::List(list) => {
            call.budget.spend(list.items().len())?;
            let mut texts = Vec::with_capacity(list.items().len());
            for item in list.items().iter().filter(|item| !matches!(item, Value::Nil)) {
                texts.push(strings::text_of(call, item)?);
            }
            Ok(texts)
        }
        other => Ok(vec![strings::text_of(call, other)?]),
    }
}

fn strings_value(texts: Vec<Vec<u8>>) -> Value {
    Value::list_of(Type::String, texts.into_iter().map(Value::string).collect())
}

fn to_strings(call: &mut Call<'_>) -> Outcome {
    let value = call.argument(0).clone();
    texts(call, &value).map(strings_value)
}

fn join(call: &mut Call<'_>) -> Outcome {
    let value = call.argument(1).clone();
    let texts = texts(call, &value)?;
    let Value::Str(separator) = call.argument(0).clone() else { return Ok(Value::string("")) };
    let size = texts.iter().map(Vec::len).sum::<usize>().saturating_add(separator.len().saturating_mul(texts.len()));
    call.budget.build(size)?;
    Ok(Value::string(texts.join(&*separator)))
}

fn sort_alpha(call: &mut Call<'_>) -> Outcome {
    let value = call.argument(0).clone();
    let mut texts = match value.indirect().0 {
        list @ Value::List(_) => texts(call, list)?,
        _ => vec![strings::text_of(call, &value)?],
    };
    texts.sort();
    Ok(strings_value(texts))
}

/// The parts of `whole` between separators, the last one with what is left when there are `limit` of them. An empty
/// separator stands between all characters.
fn parts(call: &mut Call<'_>, separator: &[u8], whole: &[u8], limit: usize) -> Result<Vec<Vec<u8>>, Fault> {
    let mut parts = Vec::new();
    let mut rest = whole;
    if limit == 0 {
        return Ok(parts);
    }
    if separator.is_empty() {
        while parts.len() + 1 < limit {
            let Some((_, bytes)) = format::characters(rest).next() else { return Ok(parts) };
            call.budget.step()?;
            parts.push(bytes.to_vec());
            rest = rest.get(bytes.len()..).unwrap_or_default();
        }
        if !rest.is_empty() {
            parts.push(rest.to_vec());
        }
        return Ok(parts);
    }
    while parts.len() + 1 < limit {
        let Some(at) = strings::find(rest, separator) else { break };
        call.budget.step()?;
        parts.push(rest.get(..at).unwrap_or_default().to_vec());
        rest = rest.get(at + separator.len()..).unwrap_or_default();
    }
    parts.push(rest.to_vec());
    Ok(parts)
}

fn text(call: &Call<'_>, index: usize) -> Text {
    match call.argument(index) {
        Value::Str(text) => Arc::clone(text),
        _ => Text::from([]),
    }
}

fn split_list(call: &mut Call<'_>) -> Outcome {
    let (separator, whole) = (text(call, 0), text(call, 1));
    parts(call, &separator, &whole, usize::MAX).map(strings_value)
}

/// The parts as a map with the keys `_0`, `_1` and so on.
fn numbered(parts: Vec<Vec<u8>>) -> Value {
    let entries: BTreeMap<Text, Value> =
        parts.into_iter().enumerate().map(|(index, part)| (Text::from(format!("_{index}").into_bytes()), Value::string(part))).collect();
    Value::Map(Arc::new(Map::new(Arc::new(Type::String), entries)))
}

fn split(call: &mut Call<'_>) -> Outcome {
    let (separator, whole) = (text(call, 0), text(call, 1));
    parts(call, &separator, &whole, usize::MAX).map(numbered)
}

fn splitn(call: &mut Call<'_>) -> Outcome {
    let (separator, whole) = (text(call, 0), text(call, 2));
    let limit = match call.argument(1) {
        Value::Int(_, limit) => usize::try_from(*limit).unwrap_or(usize::MAX),
        _ => 0,
    };
    parts(call, &separator, &whole, limit).map(numbered)
}
