//! What can be wrong with a template, and where.

use std::fmt;

/// The category of an [`Error`]. The names follow the conformance vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The text is no template: unclosed actions and blocks, malformed literals, misplaced words.
    Parse,
    /// A function that doesn't exist, is forbidden or isn't supported yet. Found when parsing.
    UnknownFunction,
    /// A variable that was not declared.
    UndefinedVariable,
    /// A `template` action names a template that is not defined.
    UnknownTemplate,
    /// A record has no such field, or the value has no fields at all.
    UnknownField,
    /// A value that is not there was used: a field of an unset object, the length of nil.
    Nil,
    /// A printing action has no value to print.
    NoValue,
    /// A value of the wrong type.
    Type,
    /// An index or a number out of bounds.
    Range,
    /// Too few or too many arguments.
    ArgCount,
    /// A function refused a value of the right type.
    Value,
    /// The template called `fail`.
    Fail,
    /// Templates or blocks are nested too deeply.
    Depth,
    /// The template does, or writes, more than a render may.
    Budget,
}

impl ErrorKind {
    /// The name of the kind in the conformance vectors.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::UnknownFunction => "unknown_function",
            Self::UndefinedVariable => "undefined_variable",
            Self::UnknownTemplate => "unknown_template",
            Self::UnknownField => "unknown_field",
            Self::Nil => "nil",
            Self::NoValue => "no_value",
            Self::Type => "type",
            Self::Range => "range",
            Self::ArgCount => "arg_count",
            Self::Value => "value",
            Self::Fail => "fail",
            Self::Depth => "depth",
            Self::Budget => "budget",
        }
    }
}

/// A template that can't be parsed or rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The category.
    pub kind: ErrorKind,
    /// Line in the template, from 1.
    pub line: usize,
    /// Column in that line in characters, from 1.
    pub column: usize,
    /// The action at fault as it is written, delimiters included; empty when no action is to blame.
    pub action: String,
    /// What is wrong and, where it isn't obvious, what to do.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)?;
        if !self.action.is_empty() {
            write!(f, ", in {}", self.action)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for Error {}

/// An error on its way out. It is boxed since the parser and the interpreter call themselves, and each call would hold
/// room for several errors on the stack.
#[derive(Debug)]
pub(super) struct Failure(Box<Error>);

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        *failure.0
    }
}

/// An error without its place. The parser and the interpreter know the place and add it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) kind: ErrorKind,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Places the fault at byte `offset` of `text`, in the action that starts at byte `action`.
    #[cold]
    pub(super) fn at(self, text: &str, offset: usize, action: Option<usize>) -> Failure {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let error = Error {
            kind: self.kind,
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            action: action.map(|start| action_text(text, start)).unwrap_or_default(),
            message: self.message,
        };
        Failure(Box::new(error))
    }
}

/// Actions are quoted in messages up to this many characters.
const ACTION_LIMIT: usize = 120;

/// The action that starts at byte `start`, shortened when it is long, up to the line's end when it isn't closed.
fn action_text(text: &str, start: usize) -> String {
    let rest = text.get(start..).unwrap_or_default();
    let end = super::lex::action_length(rest).unwrap_or_else(|| rest.find('\n').unwrap_or(rest.len()));
    let whole = rest.get(..end).unwrap_or(rest);
    match whole.char_indices().nth(ACTION_LIMIT) {
        Some((cut, _)) => format!("{}…", whole.get(..cut).unwrap_or(whole)),
        None => whole.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_placed_by_line_and_character() {
        let text = "a\né {{ .X }} b";
        let offset = text.find(".X").unwrap();
        let action = text.find("{{");
        let error = Error::from(Fault::new(ErrorKind::UnknownField, "no").at(text, offset, action));
        assert_eq!((error.line, error.column, error.action.as_str()), (2, 6, "{{ .X }}"));
        assert_eq!(error.to_string(), "line 2, column 6, in {{ .X }}: no");
    }

    #[test]
    fn an_unclosed_action_is_quoted_to_the_end_of_its_line() {
        let error = Error::from(Fault::new(ErrorKind::Parse, "no").at("x {{ .X\ny", 2, Some(2)));
        assert_eq!(error.action, "{{ .X");
    }

    #[test]
    fn a_long_action_is_shortened() {
        let text = format!("{{{{ \"{}\" }}}}", "ä".repeat(500));
        let error = Error::from(Fault::new(ErrorKind::Parse, "no").at(&text, 0, Some(0)));
        assert_eq!(error.action.chars().count(), ACTION_LIMIT + 1);
    }
}
