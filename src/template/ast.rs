//! The parsed template.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::functions::Function;
use super::value::Text;

/// A piece of the template's text: first byte and the byte after the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Everything that one text defines.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    pub(super) main: Vec<Node>,
    pub(super) named: BTreeMap<Text, Vec<Node>>,
}

/// A node and the byte where its action starts.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) action: usize,
    pub(super) kind: NodeKind,
}

#[derive(Debug)]
pub(super) enum NodeKind {
    Text(Span),
    /// A pipeline whose value is printed, unless it declares or assigns.
    Pipeline(Pipe),
    If(Branches),
    With(Branches),
    Range {
        pipe: Pipe,
        body: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Template {
        name: Text,
        argument: Option<Pipe>,
        position: usize,
    },
    Break,
    Continue,
}

/// `if` or `with` and the `else if` or `else with` that follow it, in order. They are no nested nodes, so that a long
/// chain takes no stack.
#[derive(Debug)]
pub(super) struct Branches {
    pub(super) arms: Vec<Arm>,
    pub(super) otherwise: Vec<Node>,
}

#[derive(Debug)]
pub(super) struct Arm {
    pub(super) action: usize,
    pub(super) condition: Pipe,
    pub(super) body: Vec<Node>,
}

/// A variable's name, by its number in the template.
pub(super) type Name = u32;

/// `$`, which is in scope everywhere.
pub(super) const ROOT: Name = 0;

#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) span: Span,
    pub(super) variables: Vec<Name>,
    /// `=` rather than `:=`.
    pub(super) assigns: bool,
    pub(super) commands: Vec<Command>,
}

#[derive(Debug)]
pub(super) struct Command {
    pub(super) span: Span,
    pub(super) first: Operand,
    pub(super) arguments: Vec<Operand>,
}

#[derive(Debug)]
pub(super) struct Operand {
    pub(super) span: Span,
    pub(super) kind: OperandKind,
}

#[derive(Debug)]
pub(super) enum OperandKind {
    Dot,
    Nil,
    Bool(bool),
    Number(Number),
    Str(Text),
    /// `.A.B`
    Field(Vec<Arc<str>>),
    /// `$x.A.B`
    Variable(Name, Vec<Arc<str>>),
    Function(&'static Function),
    /// `(...)`
    Pipe(Box<Pipe>),
    /// `(...).A.B` or `function.A.B`
    Chain(Box<Operand>, Vec<Arc<str>>),
}

/// A numeric constant. It has no type of its own: the parameter that it is given to decides.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Number {
    pub(super) int: Option<i64>,
    pub(super) uint: Option<u64>,
    pub(super) float: Option<f64>,
    pub(super) complex: Option<(f64, f64)>,
    /// Written with a point or an exponent: a float where nothing else is asked for.
    pub(super) looks_float: bool,
}
