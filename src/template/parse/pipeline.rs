//! What stands in an action: pipelines, commands, operands and constants.

use std::sync::Arc;

use super::super::ast::{Command, Name, Operand, OperandKind, Pipe, Span};
use super::super::error::{ErrorKind, Failure};
use super::super::functions::{self, Lookup};
use super::super::lex::{Kind, Token};
use super::super::literal;
use super::super::value::Text;
use super::Parser;

impl<'t> Parser<'t> {
    pub(super) fn pipeline(&mut self, context: &str, closing: Kind) -> Result<Pipe, Failure> {
        let start = self.peek_word()?.start;
        let (variables, assigns) = self.declarations(context)?;
        let mut commands: Vec<Command> = Vec::new();
        let end = loop {
            let token = self.peek_word()?;
            match token.kind {
                kind if kind == closing => {
                    self.take()?;
                    break commands.last().map_or(token.start, |command| command.span.end);
                }
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::Raw
                | Kind::Quoted
                | Kind::Variable
                | Kind::LeftParen => {
                    let command = self.command()?;
                    let constant = matches!(
                        command.first.kind,
                        OperandKind::Bool(_) | OperandKind::Dot | OperandKind::Nil | OperandKind::Number(_) | OperandKind::Str(_)
                    );
                    if constant && !commands.is_empty() {
                        let message = "only a function can stand behind |";
                        return Err(self.error(command.span.start, ErrorKind::Parse, message));
                    }
                    commands.push(command);
                }
                _ => return Err(self.unexpected(token, context)),
            }
        };
        if commands.is_empty() {
            return Err(self.error(start, ErrorKind::Parse, format!("{context} has no value")));
        }
        Ok(Pipe { span: Span { start, end }, variables, assigns, commands })
    }

    /// `$x :=`, `$x =` or, for range, `$i, $x :=`.
    fn declarations(&mut self, context: &str) -> Result<(Vec<Name>, bool), Failure> {
        let mut variables = Vec::new();
        loop {
            let variable = self.peek_word()?;
            if variable.kind != Kind::Variable {
                return Ok((variables, false));
            }
            let start = self.next;
            self.take()?;
            let name = self.written(variable);
            // What can't be read behind the variable is met again when the variable is read as an operand, which may be
            // at fault before.
            let Ok(follower) = self.peek_word() else {
                self.next = start;
                return Ok((variables, false));
            };
            match follower.kind {
                Kind::Assign | Kind::Declare => {
                    self.take()?;
                    variables.push(self.declare(name));
                    return Ok((variables, follower.kind == Kind::Assign));
                }
                Kind::Char if self.written(follower) == "," => {
                    self.take()?;
                    variables.push(self.declare(name));
                    if context != "range" || variables.len() > 1 {
                        let message = format!("too many variables in {context}");
                        return Err(self.error(follower.start, ErrorKind::Parse, message));
                    }
                    if !matches!(self.peek_word()?.kind, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
                        return Err(self.error(follower.start, ErrorKind::Parse, "only a variable can follow the comma in range"));
                    }
                }
                _ => {
                    self.next = start;
                    return Ok((variables, false));
                }
            }
        }
    }

    fn declare(&mut self, name: &'t str) -> Name {
        let next = self.names.len() as Name;
        let name = *self.names.entry(name).or_insert(next);
        self.scope.push(name);
        name
    }

    fn command(&mut self) -> Result<Command, Failure> {
        let start = self.peek_word()?.start;
        let mut operands = Vec::new();
        loop {
            self.skip_space()?;
            if let Some(operand) = self.operand()? {
                operands.push(operand);
            }
            let token = self.peek()?;
            match token.kind {
                Kind::Space => {
                    self.take()?;
                }
                Kind::RightDelim | Kind::RightParen => break,
                Kind::Pipe => {
                    self.take()?;
                    break;
                }
                _ => return Err(self.unexpected(token, "an operand")),
            }
        }
        let mut operands = operands.into_iter();
        let Some(first) = operands.next() else {
            return Err(self.error(start, ErrorKind::Parse, "empty command"));
        };
        let arguments: Vec<_> = operands.collect();
        let end = arguments.last().unwrap_or(&first).span.end;
        Ok(Command { span: Span { start, end }, first, arguments })
    }

    /// A term and the fields behind it.
    fn operand(&mut self) -> Result<Option<Operand>, Failure> {
        let Some(term) = self.term()? else { return Ok(None) };
        let mut fields = Vec::new();
        let mut end = term.span.end;
        while self.peek()?.kind == Kind::Field {
            let token = self.take()?;
            fields.push(Arc::from(self.written(token).trim_start_matches('.')));
            end = token.end;
        }
        if fields.is_empty() {
            return Ok(Some(term));
        }
        let span = Span { start: term.span.start, end };
        let kind = match term.kind {
            OperandKind::Field(mut path) => {
                path.append(&mut fields);
                OperandKind::Field(path)
            }
            OperandKind::Variable(name, mut path) => {
                path.append(&mut fields);
                OperandKind::Variable(name, path)
            }
            OperandKind::Bool(_) | OperandKind::Str(_) | OperandKind::Number(_) | OperandKind::Nil | OperandKind::Dot => {
                let term = self.text.get(term.span.start..term.span.end).unwrap_or_default();
                return Err(self.error(span.start, ErrorKind::Parse, format!("{term} has no fields")));
            }
            _ => OperandKind::Chain(Box::new(term), fields),
        };
        Ok(Some(Operand { span, kind }))
    }

    fn term(&mut self) -> Result<Option<Operand>, Failure> {
        let token = self.peek_word()?;
        let mut end = token.end;
        let written = self.written(token);
        let number = |result: Result<_, String>| match result {
            Ok(number) => Ok(OperandKind::Number(number)),
            Err(message) => Err(self.error(token.start, ErrorKind::Parse, message)),
        };
        let kind = match token.kind {
            Kind::Dot => OperandKind::Dot,
            Kind::Nil => OperandKind::Nil,
            Kind::Bool => OperandKind::Bool(written == "true"),
            Kind::CharConstant => number(literal::character(written))?,
            Kind::Complex => number(literal::complex(written))?,
            Kind::Number => number(literal::number(written))?,
            Kind::Quoted | Kind::Raw => OperandKind::Str(self.string(token)?),
            Kind::Field => OperandKind::Field(vec![Arc::from(written.trim_start_matches('.'))]),
            Kind::Identifier => OperandKind::Function(self.function(token)?),
            Kind::Variable => match self.names.get(written) {
                Some(name) if self.scope.contains(name) => OperandKind::Variable(*name, Vec::new()),
                _ => {
                    let message =
                        format!("undefined variable {written}; declare it with {{{{ {written} := ... }}}} in this or an outer block");
                    return Err(self.error(token.start, ErrorKind::UndefinedVariable, message));
                }
            },
            Kind::LeftParen => {
                self.take()?;
                let pipe = self.nested(|parser| parser.pipeline("parentheses", Kind::RightParen))?;
                end = self.next.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(pipe.span.end, |token| token.end);
                let kind = OperandKind::Pipe(Box::new(pipe));
                return Ok(Some(Operand { span: Span { start: token.start, end }, kind }));
            }
            _ => return Ok(None),
        };
        self.take()?;
        Ok(Some(Operand { span: Span { start: token.start, end }, kind }))
    }

    pub(super) fn string(&self, token: Token) -> Result<Text, Failure> {
        match literal::unquote(self.written(token)) {
            Some(bytes) => Ok(Text::from(bytes)),
            None => {
                Err(self.error(token.start, ErrorKind::Parse, "the string has a malformed escape; use `...` for text with backslashes"))
            }
        }
    }

    fn function(&self, token: Token) -> Result<&'static functions::Function, Failure> {
        let name = self.written(token);
        let message = match functions::find(name) {
            Lookup::Ready(function) => return Ok(function),
            Lookup::Missing => format!("function {name:?} is not supported yet"),
            Lookup::Forbidden(reason) => format!("function {name:?} is forbidden: {reason}"),
            // Mostly a template of another language, such as a model's chat template.
            Lookup::Unknown => format!(
                "function {name:?} does not exist; if these braces are text for another template language, escape them: write \
                 {{{{ \"{{{{\" }}}} in place of {{{{"
            ),
        };
        Err(self.error(token.start, ErrorKind::UnknownFunction, message))
    }
}
