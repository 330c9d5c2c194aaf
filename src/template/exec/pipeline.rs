//! Pipelines, commands and operands.

use std::sync::Arc;

use super::super::ast::{Command, Name, Number, Operand, OperandKind, Pipe, Span};
use super::super::error::{ErrorKind, Failure};
use super::super::fields;
use super::super::value::Value;
use super::Exec;

impl<'t> Exec<'t> {
    pub(super) fn pipeline(&mut self, dot: &Value, pipe: &'t Pipe) -> Result<Value, Failure> {
        self.enter()?;
        let mut value = None;
        for command in &pipe.commands {
            value = Some(self.command(dot, command, value)?.settled());
        }
        let value = value.unwrap_or(Value::Nil);
        for variable in &pipe.variables {
            if pipe.assigns {
                self.assign(*variable, value.clone(), pipe.span)?;
            } else {
                self.variables.push((*variable, value.clone()));
            }
        }
        self.budget.leave();
        Ok(value)
    }

    pub(super) fn assign(&mut self, variable: Name, value: Value, span: Span) -> Result<(), Failure> {
        if let Some(slot) = self.variables.iter_mut().rev().find(|(name, _)| *name == variable) {
            slot.1 = value;
            return Ok(());
        }
        let message = format!("`{}` assigns to a variable that was not declared; declare it with :=", self.written(span));
        Err(self.error(span.start, ErrorKind::UndefinedVariable, message))
    }

    /// Runs a command; `piped` is the value of the command before it, which becomes the last argument.
    fn command(&mut self, dot: &Value, command: &'t Command, piped: Option<Value>) -> Result<Value, Failure> {
        self.step()?;
        let first = &command.first;
        let has_arguments = !command.arguments.is_empty() || piped.is_some();
        match &first.kind {
            OperandKind::Function(function) => self.call(dot, function, first.span, &command.arguments, piped),
            OperandKind::Field(path) => self.fields(dot, path, first.span, has_arguments),
            OperandKind::Chain(inner, path) => {
                let value = self.operand(dot, inner)?;
                self.fields(&value, path, first.span, has_arguments)
            }
            OperandKind::Variable(name, path) if !path.is_empty() => {
                let value = self.variable(*name, first.span)?;
                self.fields(&value, path, first.span, has_arguments)
            }
            _ if has_arguments => Err(self.no_function(first.span)),
            OperandKind::Nil => Err(self.error(first.span.start, ErrorKind::Nil, "nil is not a command")),
            _ => self.operand(dot, first),
        }
    }

    #[cold]
    fn no_function(&self, span: Span) -> Failure {
        let message = format!("`{}` is no function and takes no arguments", self.written(span));
        self.error(span.start, ErrorKind::Type, message)
    }

    /// The value of an operand on its own.
    pub(super) fn operand(&mut self, dot: &Value, operand: &'t Operand) -> Result<Value, Failure> {
        match &operand.kind {
            OperandKind::Dot => Ok(dot.clone()),
            OperandKind::Nil => Ok(Value::Nil),
            OperandKind::Bool(value) => Ok(Value::Bool(*value)),
            OperandKind::Number(number) => self.constant(number, operand.span),
            OperandKind::Str(text) => Ok(Value::Str(text.clone())),
            OperandKind::Field(path) => self.fields(dot, path, operand.span, false),
            OperandKind::Variable(name, path) => {
                let value = self.variable(*name, operand.span)?;
                self.fields(&value, path, operand.span, false)
            }
            OperandKind::Function(function) => self.call(dot, function, operand.span, &[], None),
            OperandKind::Pipe(pipe) => self.pipeline(dot, pipe),
            OperandKind::Chain(inner, path) => {
                let value = self.operand(dot, inner)?;
                self.fields(&value, path, operand.span, false)
            }
        }
    }

    fn variable(&mut self, variable: Name, span: Span) -> Result<Value, Failure> {
        if let Some((_, value)) = self.variables.iter().rev().find(|(name, _)| *name == variable) {
            return Ok(value.clone());
        }
        let message = format!("`{}` is declared in a branch that was not taken", self.written(span));
        Err(self.error(span.start, ErrorKind::UndefinedVariable, message))
    }

    fn fields(&mut self, receiver: &Value, path: &[Arc<str>], span: Span, has_arguments: bool) -> Result<Value, Failure> {
        let mut value = receiver.clone();
        for (index, name) in path.iter().enumerate() {
            let called = has_arguments && index + 1 == path.len();
            value = fields::field(&value, name, called).map_err(|fault| self.at(span.start, fault))?;
        }
        Ok(value)
    }

    /// A numeric constant where no type is asked for.
    pub(super) fn constant(&self, number: &Number, span: Span) -> Result<Value, Failure> {
        if let Some((real, imaginary)) = number.complex {
            return Ok(Value::Complex(real, imaginary));
        }
        match (number.float, number.int) {
            (Some(float), _) if number.looks_float => Ok(Value::Float(float)),
            (_, Some(int)) => Ok(Value::int(int)),
            _ => {
                let message = format!("{} does not fit into an int", self.written(span));
                Err(self.error(span.start, ErrorKind::Range, message))
            }
        }
    }
}
