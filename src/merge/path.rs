//! Where something stands in a document.

use std::collections::VecDeque;
use std::fmt;

use serde_json::Value;

use super::schema::{Kind, ListMerge, Schema};

/// One step into a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A field of an object.
    Field(String),
    /// The item of a list whose field `key` has this value.
    Item {
        /// The merge key of the list.
        key: &'static str,
        /// The item's value under it.
        value: Value,
    },
    /// The item of a list at this index.
    Index(usize),
}

/// The place of a value in a document, as `spec.containers[main].args[0]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    steps: VecDeque<Step>,
}

impl Path {
    /// The same place, seen from one level further out.
    pub fn inside(mut self, step: Step) -> Self {
        self.steps.push_front(step);
        self
    }

    /// The place one level further in.
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push_back(step);
        self
    }

    /// The steps, outermost first.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter()
    }

    /// What `document` holds at this place.
    pub fn find<'v>(&self, document: &'v Value) -> Option<&'v Value> {
        self.steps.iter().try_fold(document, |value, step| match step {
            Step::Field(name) => value.get(name),
            Step::Item { key, value: wanted } => value.as_array()?.iter().find(|item| item.get(key) == Some(wanted)),
            Step::Index(index) => value.get(*index),
        })
    }
}

impl Step {
    /// The step to a field.
    pub fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }

    /// The step to an item of a list: by its merge key where the list has one and the item too, else by its index.
    pub fn item(merge: ListMerge, item: &Value, index: usize) -> Self {
        match merge {
            ListMerge::Key(key) => item.get(key).map_or(Self::Index(index), |value| Self::Item { key, value: value.clone() }),
            ListMerge::Replace | ListMerge::Union => Self::Index(index),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.steps.iter().enumerate() {
            match step {
                Step::Field(name) if is_plain(name) && position == 0 => f.write_str(name)?,
                Step::Field(name) if is_plain(name) => write!(f, ".{name}")?,
                Step::Field(name) => write!(f, "[{name:?}]")?,
                Step::Item { value: Value::String(text), .. } => write!(f, "[{text}]")?,
                Step::Item { value, .. } => write!(f, "[{value}]")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'$'))
}

/// The schema below a field, and how its list is merged; for what the schema doesn't know nothing below is known.
pub(crate) fn below(schema: Option<&Schema>, field: &str) -> (Option<&'static Schema>, ListMerge) {
    match schema.and_then(|s| s.field(field)) {
        Some(field) => match field.kind {
            Kind::Struct(inner) | Kind::Structs(inner) => (Some(inner), field.merge),
            _ => (None, field.merge),
        },
        None => (None, ListMerge::Replace),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_reads_like_the_field_it_names() {
        let path = Path::default()
            .then(Step::field("template"))
            .then(Step::field("containers"))
            .then(Step::Item { key: "name", value: json!("main") })
            .then(Step::field("ports"))
            .then(Step::Item { key: "containerPort", value: json!(80) })
            .then(Step::field("a.b/c"))
            .then(Step::Index(3));
        assert_eq!(path.to_string(), r#"template.containers[main].ports[80]["a.b/c"][3]"#);
        assert_eq!(path.inside(Step::field("spec")).to_string(), r#"spec.template.containers[main].ports[80]["a.b/c"][3]"#);
    }

    #[test]
    fn a_path_finds_items_by_key() {
        let document = json!({"c": [{"name": "a", "v": 1}, {"name": "b", "v": [2, 3]}]});
        let b = Path::default().then(Step::field("c")).then(Step::Item { key: "name", value: json!("b") });
        assert_eq!(b.clone().then(Step::field("v")).then(Step::Index(1)).find(&document), Some(&json!(3)));
        assert_eq!(b.then(Step::field("w")).find(&document), None);
        assert_eq!(Path::default().then(Step::Index(0)).find(&document), None);
    }
}
