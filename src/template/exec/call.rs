//! Calls of functions: the number and the types of their arguments.

use super::super::ast::{Number, Operand, OperandKind, Span};
use super::super::error::{ErrorKind, Failure, Fault};
use super::super::functions::{Body, Call, Function, Param};
use super::super::types::Type;
use super::super::value::{IntType, Value};
use super::Exec;

impl<'t> Exec<'t> {
    pub(super) fn call(
        &mut self,
        dot: &Value,
        function: &'static Function,
        span: Span,
        arguments: &'t [Operand],
        piped: Option<Value>,
    ) -> Result<Value, Failure> {
        self.step()?;
        let given = arguments.len() + usize::from(piped.is_some());
        let wanted = function.fixed.len();
        if given < wanted || given > wanted && function.rest.is_none() {
            return Err(self.wrong_count(function, given, span));
        }
        let body = match function.body {
            Body::And => return self.decide(dot, false, arguments, piped),
            Body::Or => return self.decide(dot, true, arguments, piped),
            Body::Plain(body) => body,
        };
        let param = |index: usize| function.fixed.get(index).copied().or(function.rest).unwrap_or(Param::Any);
        let mut values = Vec::with_capacity(given);
        for (index, argument) in arguments.iter().enumerate() {
            values.push(self.argument(dot, argument, param(index))?);
        }
        if let Some(value) = piped {
            values.push(self.fit(value, param(arguments.len()), span)?);
        }
        let first = arguments.first().map_or("the value", |argument| self.written(argument.span));
        let mut call = Call { arguments: values, budget: self.budget, first };
        body(&mut call).map_err(|fault| self.at(span.start, named(function.name, fault)))
    }

    #[cold]
    fn wrong_count(&self, function: &Function, given: usize, span: Span) -> Failure {
        let wanted = function.fixed.len();
        let least = if function.rest.is_some() { "at least " } else { "" };
        let plural = if wanted == 1 { "" } else { "s" };
        let message = format!("{} takes {least}{wanted} argument{plural}, not {given}", function.name);
        self.error(span.start, ErrorKind::ArgCount, message)
    }

    /// The first argument whose truth is `decisive`, else the last one. Those behind it are not evaluated.
    fn decide(&mut self, dot: &Value, decisive: bool, arguments: &'t [Operand], piped: Option<Value>) -> Result<Value, Failure> {
        let mut value = Value::Nil;
        for argument in arguments {
            value = self.argument(dot, argument, Param::Any)?;
            if value.truth() == decisive {
                return Ok(value);
            }
        }
        Ok(piped.unwrap_or(value))
    }

    /// The value of an argument for a parameter. Constants take the type of the parameter.
    fn argument(&mut self, dot: &Value, argument: &'t Operand, param: Param) -> Result<Value, Failure> {
        if param == Param::Any {
            return Ok(self.operand(dot, argument)?.settled());
        }
        let value = match &argument.kind {
            OperandKind::Str(text) if param == Param::Str => return Ok(Value::Str(text.clone())),
            OperandKind::Number(Number { int: Some(int), .. }) if param == Param::Int => return Ok(Value::int(*int)),
            OperandKind::Bool(value) if param == Param::Bool => return Ok(Value::Bool(*value)),
            OperandKind::Nil | OperandKind::Bool(_) | OperandKind::Number(_) | OperandKind::Str(_) => {
                return Err(self.wrong_constant(param, argument.span));
            }
            _ => self.operand(dot, argument)?,
        };
        self.fit(value, param, argument.span)
    }

    #[cold]
    fn wrong_constant(&self, param: Param, span: Span) -> Failure {
        let message = format!("expected {}, found {}", param.wanted(), self.written(span));
        self.error(span.start, ErrorKind::Type, message)
    }

    /// Checks a value against the type of a parameter; one pointer is followed when that helps.
    fn fit(&self, value: Value, param: Param, span: Span) -> Result<Value, Failure> {
        let fits = |value: &Value| match param {
            Param::Any => true,
            Param::Str => matches!(value, Value::Str(_)),
            Param::Int => matches!(value, Value::Int(IntType::Int, _)),
            Param::Bool => matches!(value, Value::Bool(_)),
        };
        if fits(&value) {
            return Ok(value.settled());
        }
        let missing = || {
            let message = format!("`{}` has no value, but {} is needed", self.written(span), param.wanted());
            self.error(span.start, ErrorKind::Nil, message)
        };
        match &value {
            Value::Nil => Err(missing()),
            Value::Pointer(pointer) if **pointer.kind() == param.kind() => pointer.target().cloned().ok_or_else(missing),
            other => {
                let message = format!("expected {}, but `{}` is {}", param.wanted(), self.written(span), other.noun());
                Err(self.error(span.start, ErrorKind::Type, message))
            }
        }
    }
}

impl Param {
    /// The type that is asked for.
    fn kind(self) -> Type {
        match self {
            Self::Any => Type::Any,
            Self::Str => Type::String,
            Self::Int => Type::Int,
            Self::Bool => Type::Bool,
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Self::Any => "a value",
            Self::Str => "a string",
            Self::Int => "an int",
            Self::Bool => "a bool",
        }
    }
}

/// Says which function complains; a limit is no function's.
fn named(name: &str, fault: Fault) -> Fault {
    match fault.kind {
        ErrorKind::Budget | ErrorKind::Depth => fault,
        kind => Fault::new(kind, format!("{name}: {}", fault.message)),
    }
}
