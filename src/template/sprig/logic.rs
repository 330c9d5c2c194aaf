//! Emptiness, choice, and questions about types.
#![allow(clippy::unnecessary_wraps, reason = "the functions of the table have one signature")]

use super::super::error::{ErrorKind, Fault};
use super::super::functions::{Call, Function, Param, plain};
use super::super::value::Value;

type Outcome = Result<Value, Fault>;

const ANY: &[Param] = &[Param::Any];
const MANY: Option<Param> = Some(Param::Any);

pub(super) static FUNCTIONS: &[Function] = &[
    plain("all", &[], MANY, all),
    plain("any", &[], MANY, any),
    plain("coalesce", &[], MANY, coalesce),
    plain("default", ANY, MANY, default),
    plain("empty", ANY, None, empty),
    plain("fail", &[Param::Str], None, fail),
    plain("kindIs", &[Param::Str, Param::Any], None, kind_is),
    plain("kindOf", ANY, None, kind_of),
    plain("ternary", &[Param::Any, Param::Any, Param::Bool], None, ternary),
    plain("typeIs", &[Param::Str, Param::Any], None, type_is),
    plain("typeIsLike", &[Param::Str, Param::Any], None, type_is_like),
    plain("typeOf", ANY, None, type_of),
];

/// The first argument when the second is nil, 0, false or empty, or isn't there.
fn default(call: &mut Call<'_>) -> Outcome {
    let given = call.argument(1);
    Ok(if given.truth() { given.clone() } else { call.argument(0).clone() })
}

fn empty(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Bool(!call.argument(0).truth()))
}

/// The first argument that isn't empty.
fn coalesce(call: &mut Call<'_>) -> Outcome {
    Ok(call.arguments.iter().find(|value| value.truth()).cloned().unwrap_or(Value::Nil))
}

fn all(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Bool(call.arguments.iter().all(Value::truth)))
}

fn any(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Bool(call.arguments.iter().any(Value::truth)))
}

fn ternary(call: &mut Call<'_>) -> Outcome {
    let chosen = if call.argument(2).indirect().0.truth() { call.argument(0) } else { call.argument(1) };
    Ok(chosen.clone())
}

/// Ends the render with a message of the template's author.
fn fail(call: &mut Call<'_>) -> Outcome {
    let message = call.argument(0).as_str().unwrap_or_default().into_owned();
    Err(Fault::new(ErrorKind::Fail, message))
}

fn type_name(value: &Value) -> String {
    match value {
        Value::Nil => "<nil>".to_owned(),
        value => value.kind().to_string(),
    }
}

fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "invalid",
        value => value.kind().kind(),
    }
}

fn wanted(call: &Call<'_>, name: &str) -> bool {
    call.argument(0).as_str().is_some_and(|wanted| wanted == name)
}

fn type_of(call: &mut Call<'_>) -> Outcome {
    Ok(Value::string(type_name(call.argument(0))))
}

fn type_is(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Bool(wanted(call, &type_name(call.argument(1)))))
}

/// Whether the value is of the type, or a pointer to it.
fn type_is_like(call: &mut Call<'_>) -> Outcome {
    let name = type_name(call.argument(1));
    let like = wanted(call, &name) || name.strip_prefix('*').is_some_and(|target| wanted(call, target));
    Ok(Value::Bool(like))
}

fn kind_of(call: &mut Call<'_>) -> Outcome {
    Ok(Value::string(kind_name(call.argument(0))))
}

fn kind_is(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Bool(wanted(call, kind_name(call.argument(1)))))
}
