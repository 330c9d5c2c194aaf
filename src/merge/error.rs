//! Why two documents can't be merged.

use std::fmt;

use super::path::{Path, Step};

/// Two documents can't be merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeError {
    /// What kind of fault it is.
    pub kind: MergeErrorKind,
    /// Where it is, as `template.spec.containers[main].env`; empty for the document itself.
    pub path: String,
    /// What is wrong and how to mend it.
    pub message: String,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeErrorKind {
    /// Both sides hold an object or a list under a name that the type doesn't have.
    UnknownField,
    /// Values that can't be merged with each other.
    Type,
    /// An item of a list lacks the key that items are merged by.
    MergeKey,
    /// A directive (`$patch` and the like) that is malformed or unknown.
    Directive,
}

impl MergeErrorKind {
    /// A stable word for the kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownField => "unknown_field",
            Self::Type => "type",
            Self::MergeKey => "merge_key",
            Self::Directive => "directive",
        }
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

impl std::error::Error for MergeError {}

/// A fault on its way out: each level that it passes adds its step, so that a merge without faults builds no paths.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: MergeErrorKind,
    pub(super) path: Path,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(kind: MergeErrorKind, message: impl Into<String>) -> Self {
        Self { kind, path: Path::default(), message: message.into() }
    }

    pub(super) fn inside(self, step: Step) -> Self {
        Self { path: self.path.inside(step), ..self }
    }
}

impl From<Fault> for MergeError {
    fn from(fault: Fault) -> Self {
        Self { kind: fault.kind, path: fault.path.to_string(), message: fault.message }
    }
}
