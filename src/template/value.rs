//! Values as templates see them: Go's values with their types, so that a record's unknown field differs from an unset
//! one, a pointer from what it points to, and an `int32` from an `int`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::types::{Shape, Type};

/// Text is bytes, as in Go: a function may cut a character in two on the way to a sound result.
pub type Text = Arc<[u8]>;

/// A value. Cloning is cheap.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value: nil, a missing key.
    Nil,
    /// A boolean.
    Bool(bool),
    /// A signed integer of the given type; made by [`Value::int`] and its like.
    Int(IntType, i64),
    /// An unsigned integer of the given type.
    Uint(UintType, u64),
    /// A `float64`.
    Float(f64),
    /// A `complex128`: real and imaginary part.
    Complex(f64, f64),
    /// A string.
    Str(Text),
    /// A list.
    List(Arc<List>),
    /// A map with text keys.
    Map(Arc<Map>),
    /// A struct.
    Record(Arc<Record>),
    /// A pointer, which may be nil.
    Pointer(Pointer),
}

/// The type of a signed integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntType {
    /// `int`
    Int,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
}

/// The type of an unsigned integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UintType {
    /// `uint8`
    Uint8,
    /// `uint64`
    Uint64,
}

/// A list whose elements have one type.
#[derive(Clone, Debug)]
pub struct List {
    element: Arc<Type>,
    /// None for a list that was never set, which Go keeps apart from an empty one.
    items: Option<Vec<Value>>,
}

impl List {
    /// A list of elements of a type.
    pub fn new(element: Arc<Type>, items: Vec<Value>) -> Self {
        Self { element, items: Some(items) }
    }

    /// A list that is not set.
    pub fn nil(element: Arc<Type>) -> Self {
        Self { element, items: None }
    }

    /// The type of the elements.
    pub fn element(&self) -> &Arc<Type> {
        &self.element
    }

    /// The elements.
    pub fn items(&self) -> &[Value] {
        self.items.as_deref().unwrap_or_default()
    }

    /// Whether the list was never set.
    pub fn is_nil(&self) -> bool {
        self.items.is_none()
    }
}

/// A map with text keys whose values have one type.
#[derive(Clone, Debug)]
pub struct Map {
    element: Arc<Type>,
    /// None for a map that was never set.
    entries: Option<BTreeMap<Text, Value>>,
}

impl Map {
    /// A map with values of a type.
    pub fn new(element: Arc<Type>, entries: BTreeMap<Text, Value>) -> Self {
        Self { element, entries: Some(entries) }
    }

    /// A map that is not set.
    pub fn nil(element: Arc<Type>) -> Self {
        Self { element, entries: None }
    }

    /// The type of the values.
    pub fn element(&self) -> &Arc<Type> {
        &self.element
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&Value> {
        self.entries.as_ref()?.get(key)
    }

    /// Keys and values, by the bytes of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Text, &Value)> {
        self.entries.iter().flatten()
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.entries.as_ref().map_or(0, BTreeMap::len)
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the map was never set.
    pub fn is_nil(&self) -> bool {
        self.entries.is_none()
    }
}

/// A struct value: one value for each field of its shape.
#[derive(Clone, Debug)]
pub struct Record {
    shape: Arc<Shape>,
    values: Vec<Value>,
}

impl Record {
    /// A record with the given values by field name; fields that aren't given hold the zero value of their type.
    /// Names that the shape lacks are ignored.
    pub fn new(shape: &Arc<Shape>, mut values: BTreeMap<&str, Value>) -> Self {
        let values = shape.fields().iter().map(|field| values.remove(&*field.name).unwrap_or_else(|| field.kind.zero())).collect();
        Self { shape: Arc::clone(shape), values }
    }

    /// A record with the values of all fields in the order of the shape; missing ones at the end are zero.
    pub(super) fn from_values(shape: &Arc<Shape>, mut values: Vec<Value>) -> Self {
        values.truncate(shape.fields().len());
        let missing = shape.fields().iter().skip(values.len()).map(|field| field.kind.zero());
        values.extend(missing);
        Self { shape: Arc::clone(shape), values }
    }

    /// A record none of whose fields is set.
    pub fn zero(shape: &Arc<Shape>) -> Self {
        Self::from_values(shape, Vec::new())
    }

    /// The type of the record.
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// The values in the order of the shape's fields.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The value of a field, own or embedded; None when the struct has no such field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.shape.find(&self.values, name)
    }
}

/// A pointer to a value of a type, or nil.
#[derive(Clone, Debug)]
pub struct Pointer {
    kind: Arc<Type>,
    target: Option<Arc<Value>>,
}

impl Pointer {
    /// A pointer to a value of a type.
    pub fn new(kind: Arc<Type>, target: Value) -> Self {
        Self { kind, target: Some(Arc::new(target)) }
    }

    /// A nil pointer to a type.
    pub fn nil(kind: Arc<Type>) -> Self {
        Self { kind, target: None }
    }

    /// The type that it points to.
    pub fn kind(&self) -> &Arc<Type> {
        &self.kind
    }

    /// The value that it points to; None for nil.
    pub fn target(&self) -> Option<&Value> {
        self.target.as_deref()
    }

    /// Whether two pointers point to the same thing.
    pub(super) fn same(&self, other: &Self) -> bool {
        match (&self.target, &other.target) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => self.kind == other.kind,
            _ => false,
        }
    }
}

impl Value {
    /// A string.
    pub fn string(text: impl AsRef<[u8]>) -> Self {
        Self::Str(Arc::from(text.as_ref()))
    }

    /// An `int`.
    pub const fn int(value: i64) -> Self {
        Self::Int(IntType::Int, value)
    }

    /// An `int32`, the type of most numbers of the API.
    pub const fn int32(value: i32) -> Self {
        Self::Int(IntType::Int32, value as i64)
    }

    /// An `int64`.
    pub const fn int64(value: i64) -> Self {
        Self::Int(IntType::Int64, value)
    }

    /// A signed integer of a type; `int` for types that are no signed integers.
    pub(super) fn integer(kind: &Type, value: i64) -> Self {
        match kind {
            Type::Int32 => Self::Int(IntType::Int32, value),
            Type::Int64 => Self::Int(IntType::Int64, value),
            _ => Self::int(value),
        }
    }

    /// An unsigned integer of a type; `uint64` for types that are no unsigned integers.
    pub(super) fn unsigned(kind: &Type, value: u64) -> Self {
        match kind {
            Type::Uint8 => Self::Uint(UintType::Uint8, value),
            _ => Self::Uint(UintType::Uint64, value),
        }
    }

    /// A list of anything, `[]interface {}`.
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(Arc::new(List::new(Arc::new(Type::Any), items)))
    }

    /// A list of elements of a type.
    pub fn list_of(element: Type, items: Vec<Value>) -> Self {
        Self::List(Arc::new(List::new(Arc::new(element), items)))
    }

    /// A map of strings such as labels, `map[string]string`.
    pub fn string_map<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (Text::from(key.as_bytes()), Value::string(value))).collect();
        Self::Map(Arc::new(Map::new(Arc::new(Type::String), entries)))
    }

    /// A record with the given values by field name; the others are zero.
    pub fn record(shape: &Arc<Shape>, values: BTreeMap<&str, Value>) -> Self {
        Self::Record(Arc::new(Record::new(shape, values)))
    }

    /// The text of a string, unsound bytes replaced; None for other values.
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Str(text) => Some(String::from_utf8_lossy(text)),
            _ => None,
        }
    }

    /// Nil, a nil pointer, or a list or map that was never set.
    pub fn is_nil(&self) -> bool {
        match self {
            Self::Nil => true,
            Self::List(list) => list.is_nil(),
            Self::Map(map) => map.is_nil(),
            Self::Pointer(pointer) => pointer.target.is_none(),
            _ => false,
        }
    }

    /// Whether `if` takes the value for true: not nil, 0, false or empty. Pointers are true unless they are nil, and
    /// records always.
    pub fn truth(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(_, value) => *value != 0,
            Self::Uint(_, value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::List(list) => !list.items().is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Record(_) => true,
            Self::Pointer(pointer) => pointer.target.is_some(),
        }
    }

    /// The type; [`Type::Any`] for nil.
    pub fn kind(&self) -> Type {
        match self {
            Self::Nil => Type::Any,
            Self::Bool(_) => Type::Bool,
            Self::Int(IntType::Int, _) => Type::Int,
            Self::Int(IntType::Int32, _) => Type::Int32,
            Self::Int(IntType::Int64, _) => Type::Int64,
            Self::Uint(UintType::Uint8, _) => Type::Uint8,
            Self::Uint(UintType::Uint64, _) => Type::Uint64,
            Self::Float(_) => Type::Float64,
            Self::Complex(..) => Type::Complex128,
            Self::Str(_) => Type::String,
            Self::List(list) => Type::List(Arc::clone(&list.element)),
            Self::Map(map) => Type::Map(Arc::clone(&map.element)),
            Self::Record(record) => Type::Record(Arc::clone(&record.shape)),
            Self::Pointer(pointer) => Type::Pointer(Arc::clone(&pointer.kind)),
        }
    }

    /// The value by its type, for messages: `nil`, `an int`, `a string`.
    pub(super) fn noun(&self) -> String {
        match self {
            Self::Nil => "nil".to_owned(),
            value => {
                let kind = value.kind().to_string();
                format!("{} {kind}", if kind.starts_with('i') { "an" } else { "a" })
            }
        }
    }

    /// The value that pointers lead to, and whether a nil pointer ended the way.
    pub(super) fn indirect(&self) -> (&Value, bool) {
        let mut value = self;
        while let Self::Pointer(pointer) = value {
            match pointer.target() {
                Some(target) => value = target,
                None => return (value, true),
            }
        }
        (value, false)
    }

    /// A nil that is the element of a list or map of anything. Unlike a missing value it has no fields, not even
    /// missing ones.
    pub(super) fn nil_element() -> Self {
        Self::Pointer(Pointer::nil(Arc::new(Type::Any)))
    }

    /// An element as it comes out of its container.
    pub(super) fn element(&self) -> Self {
        match self {
            Self::Nil => Self::nil_element(),
            value => value.clone(),
        }
    }

    /// A pipeline's result: the element of a container is as good as any other value.
    pub(super) fn settled(self) -> Self {
        match self {
            Self::Pointer(pointer) if pointer.target.is_none() && *pointer.kind == Type::Any => Self::Nil,
            value => value,
        }
    }
}
