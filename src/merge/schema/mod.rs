//! What the merge has to know of the types it merges: the fields of each struct, and how each of its lists is merged.
//!
//! The tables follow Kubernetes 1.36 with the additions of 1.37; the patch strategies are those that the types of
//! `core/v1` and `meta/v1` carry. They also hold the Go names of the fields, which are what expressions write.

mod container;
mod meta;
mod odin;
mod pod;
mod scheduling;
mod volume;

/// A struct: its fields, and how their values are merged.
#[derive(Debug)]
pub struct Schema {
    /// Name of the Go type, as error messages give it.
    pub name: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
}

/// A field of a struct.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name in JSON.
    pub json: &'static str,
    /// Name in Go, which expressions use.
    pub go: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether Go holds it behind a pointer, so that unset differs from zero.
    pub pointer: bool,
    /// How a list is merged; `Replace` for everything that is no list.
    pub merge: ListMerge,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named like the Go types they stand for")]
pub enum Kind {
    String,
    Bool,
    Int32,
    Int64,
    Quantity,
    IntOrString,
    Time,
    /// A type whose inside nobody looks at.
    Opaque,
    Struct(&'static Schema),
    Strings,
    Int32s,
    Int64s,
    Structs(&'static Schema),
    StringMap,
    QuantityMap,
}

impl Kind {
    /// Whether Go's type is a slice.
    pub fn is_list(self) -> bool {
        matches!(self, Self::Strings | Self::Int32s | Self::Int64s | Self::Structs(_))
    }
}

/// How the items of two lists come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListMerge {
    /// The later list replaces the earlier one.
    Replace,
    /// The lists are united; items are scalars.
    Union,
    /// Items with the same value under this key are merged.
    Key(&'static str),
}

impl Schema {
    /// The field of this JSON name. Kubernetes falls back to a comparison without regard to case.
    pub fn field(&self, json: &str) -> Option<&'static Field> {
        self.fields.iter().find(|f| f.json == json).or_else(|| self.fields.iter().find(|f| f.json.eq_ignore_ascii_case(json)))
    }
}

/// A pod template, `PodTemplateSpec` of `core/v1`.
pub fn pod_template() -> &'static Schema {
    &pod::POD_TEMPLATE_SPEC
}

/// A whole layer: the spec of an `InferenceService`, which holds all that a template or a runtime base may hold.
pub fn service_spec() -> &'static Schema {
    &odin::INFERENCE_SERVICE_SPEC
}

const fn field(json: &'static str, go: &'static str, kind: Kind) -> Field {
    Field { json, go, kind, pointer: false, merge: ListMerge::Replace }
}

const fn pointer(json: &'static str, go: &'static str, kind: Kind) -> Field {
    Field { json, go, kind, pointer: true, merge: ListMerge::Replace }
}

impl Field {
    const fn merged(self) -> Self {
        Self { merge: ListMerge::Union, ..self }
    }

    const fn merged_by(self, key: &'static str) -> Self {
        Self { merge: ListMerge::Key(key), ..self }
    }
}
