//! Go's static types, as far as templates can tell them apart.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::value::{List, Map, Pointer, Record, Value};

/// The type of a value, a field or an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// `interface {}`: anything, nil included.
    Any,
    /// `bool`
    Bool,
    /// `int`, the type of integer constants, of lengths and of indexes.
    Int,
    /// `int32`
    Int32,
    /// `int64`, the type of results of arithmetic.
    Int64,
    /// `uint8`, a byte of a string.
    Uint8,
    /// `uint64`
    Uint64,
    /// `float64`
    Float64,
    /// `complex128`
    Complex128,
    /// `string`
    String,
    /// A Go type that templates see as its text only, such as a quantity; with its name.
    Text(Arc<str>),
    /// `[]T`
    List(Arc<Type>),
    /// `map[string]T`
    Map(Arc<Type>),
    /// A struct.
    Record(Arc<Shape>),
    /// `*T`
    Pointer(Arc<Type>),
}

impl Type {
    /// `[]element`
    pub fn list(element: Type) -> Self {
        Self::List(Arc::new(element))
    }

    /// `map[string]element`
    pub fn map(element: Type) -> Self {
        Self::Map(Arc::new(element))
    }

    /// `*target`
    pub fn pointer(target: Type) -> Self {
        Self::Pointer(Arc::new(target))
    }

    /// The value of a field that is not set: nil for pointers, lists and maps, else 0, `""`, false or a record of
    /// such fields.
    pub fn zero(&self) -> Value {
        match self {
            Self::Any => Value::Nil,
            Self::Bool => Value::Bool(false),
            Self::Int | Self::Int32 | Self::Int64 => Value::integer(self, 0),
            Self::Uint8 | Self::Uint64 => Value::unsigned(self, 0),
            Self::Float64 => Value::Float(0.0),
            Self::Complex128 => Value::Complex(0.0, 0.0),
            Self::String | Self::Text(_) => Value::string(""),
            Self::List(element) => Value::List(Arc::new(List::nil(Arc::clone(element)))),
            Self::Map(element) => Value::Map(Arc::new(Map::nil(Arc::clone(element)))),
            Self::Record(shape) => Value::Record(Arc::new(Record::zero(shape))),
            Self::Pointer(target) => Value::Pointer(Pointer::nil(Arc::clone(target))),
        }
    }

    /// The word Go's reflection has for the sort of type: `slice`, `map`, `struct`, `ptr`, ...
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Any => "interface",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint8 => "uint8",
            Self::Uint64 => "uint64",
            Self::Float64 => "float64",
            Self::Complex128 => "complex128",
            Self::String | Self::Text(_) => "string",
            Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Record(_) => "struct",
            Self::Pointer(_) => "ptr",
        }
    }
}

/// The type as Go writes it: `map[string]interface {}`, `*Model`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("interface {}"),
            Self::Text(name) => f.write_str(name),
            Self::List(element) => write!(f, "[]{element}"),
            Self::Map(element) => write!(f, "map[string]{element}"),
            Self::Record(shape) => f.write_str(&shape.name),
            Self::Pointer(target) => write!(f, "*{target}"),
            plain => f.write_str(plain.kind()),
        }
    }
}

/// One field of a [`Shape`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name that templates write, `DataLocal`.
    pub name: Arc<str>,
    /// The name in JSON, `dataLocal`; empty for a record whose fields stand inline in JSON.
    pub json: Arc<str>,
    /// The type of its value.
    pub kind: Type,
    /// Whether the fields of this record can also be named as if they were the outer record's own.
    pub embedded: bool,
}

impl Field {
    /// An ordinary field: the name that templates write, the name in JSON, the type.
    pub fn new(name: &str, json: &str, kind: Type) -> Self {
        Self { name: name.into(), json: json.into(), kind, embedded: false }
    }

    /// An embedded record: its fields can be named directly. With an empty JSON name they also stand inline in JSON.
    pub fn embedded(name: &str, json: &str, shape: &Arc<Shape>) -> Self {
        Self { name: name.into(), json: json.into(), kind: Type::Record(Arc::clone(shape)), embedded: true }
    }
}

/// Where a field is: at an index, or within the embedded record at an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Own(usize),
    Promoted(usize, usize),
}

/// The fixed set of fields of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The name of the type for messages and `printf "%T"`, `Model`.
    pub name: Arc<str>,
    fields: Vec<Field>,
    places: BTreeMap<Arc<str>, Place>,
}

impl Shape {
    /// A struct type with these fields in this order. Own fields hide those of embedded records; of two embedded
    /// records the first one wins.
    pub fn new(name: &str, fields: Vec<Field>) -> Arc<Self> {
        let mut places = BTreeMap::new();
        for (index, field) in fields.iter().enumerate() {
            places.entry(Arc::clone(&field.name)).or_insert(Place::Own(index));
        }
        for (index, field) in fields.iter().enumerate() {
            let (true, Type::Record(inner)) = (field.embedded, &field.kind) else { continue };
            for (position, promoted) in inner.fields.iter().enumerate() {
                places.entry(Arc::clone(&promoted.name)).or_insert(Place::Promoted(index, position));
            }
        }
        Arc::new(Self { name: name.into(), fields, places })
    }

    /// The fields in their order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Whether the struct has the field, itself or through an embedded record.
    pub fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// The names that templates can write after a dot, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(AsRef::as_ref)
    }

    /// The value of a field among the values of a record of this shape.
    pub(super) fn find<'v>(&self, values: &'v [Value], name: &str) -> Option<&'v Value> {
        match *self.places.get(name)? {
            Place::Own(index) => values.get(index),
            Place::Promoted(index, position) => match values.get(index)? {
                Value::Record(inner) => inner.values().get(position),
                _ => None,
            },
        }
    }
}
