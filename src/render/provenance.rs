//! Which layer a value comes from.
//!
//! The answer is found when it is asked for: the latest layer whose own document has that place. Places are given by
//! index in the merged spec and are found in layers by merge keys.

use serde_json::Value;

use super::Layer;
use crate::merge::{ListMerge, Path, Schema, Step, below, service_spec};

/// The merged spec, before rendering, and the layers that it was merged from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Provenance<'a> {
    merged: &'a Value,
    layers: &'a [Layer],
}

impl<'a> Provenance<'a> {
    /// The merged spec.
    pub(super) fn merged(&self) -> &'a Value {
        self.merged
    }

    pub(super) fn new(merged: &'a Value, layers: &'a [Layer]) -> Self {
        Self { merged, layers }
    }

    /// The same place, with merge keys instead of indexes where the list has them.
    pub(super) fn named(&self, place: &Path) -> Path {
        let mut schema: Option<&Schema> = Some(service_spec());
        let mut merge = ListMerge::Replace;
        let mut value = Some(self.merged);
        let mut named = Path::default();
        for step in place.steps() {
            let step = match step {
                Step::Field(name) => {
                    (schema, merge) = below(schema, name);
                    value = value.and_then(|value| value.get(name));
                    step.clone()
                }
                Step::Index(index) => {
                    value = value.and_then(|value| value.get(*index));
                    value.map_or_else(|| step.clone(), |item| Step::item(merge, item, *index))
                }
                Step::Item { .. } => step.clone(),
            };
            named = named.then(step);
        }
        named
    }

    /// A place in words, as `spec.template.spec.containers[main].args[0]`.
    pub(super) fn describe(&self, place: &Path) -> String {
        self.named(place).inside(Step::field("spec")).to_string()
    }

    /// All layers whose own document has the place, lowest first.
    pub(super) fn layers_with(&self, place: &Path) -> Vec<&'a Layer> {
        let named = self.named(place);
        self.layers.iter().filter(|layer| named.find(&layer.spec).is_some_and(|value| !value.is_null())).collect()
    }

    /// The layer that set the value at a place; none for a value that no layer has, such as a default.
    pub(super) fn layer(&self, place: &Path) -> Option<&'a Layer> {
        self.layers_with(place).pop()
    }

    /// The place with the layer that set it: `spec.x of RuntimeBase engine`.
    pub(super) fn locate(&self, place: &Path) -> String {
        match self.layer(place) {
            Some(layer) => format!("{} of {}", self.describe(place), layer.source),
            None => self.describe(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::layer;
    use super::*;

    #[test]
    fn a_value_belongs_to_the_latest_layer_that_has_its_place() {
        let layers = [
            layer(
                "RuntimeBase",
                "engine",
                json!({"template": {"spec": {"containers": [
                {"name": "side", "image": "s"}, {"name": "main", "image": "a", "args": ["x", "y"], "env": [{"name": "A", "value": "1"}]}]}}}),
            ),
            layer(
                "InferenceService",
                "chat",
                json!({"template": {"spec": {"containers": [
                {"name": "main", "args": ["z"], "env": [{"name": "B", "value": "2"}]}]}}}),
            ),
        ];
        let merged = super::super::layers::merge(&layers).unwrap();
        let provenance = Provenance::new(&merged, &layers);
        let place = |container: usize, rest: &[Step]| {
            let path = Path::default().then(Step::field("template")).then(Step::field("spec")).then(Step::field("containers"));
            rest.iter().cloned().fold(path.then(Step::Index(container)), Path::then)
        };
        let env = |index| [Step::field("env"), Step::Index(index), Step::field("value")];
        let cases: [(Path, &str); 5] = [
            (place(1, &[Step::field("image")]), "spec.template.spec.containers[main].image of RuntimeBase engine"),
            (place(1, &[Step::field("args"), Step::Index(0)]), "spec.template.spec.containers[main].args[0] of InferenceService demo/chat"),
            (place(1, &env(0)), "spec.template.spec.containers[main].env[B].value of InferenceService demo/chat"),
            (place(1, &env(1)), "spec.template.spec.containers[main].env[A].value of RuntimeBase engine"),
            (place(0, &[Step::field("stdin")]), "spec.template.spec.containers[side].stdin"),
        ];
        for (path, expected) in cases {
            assert_eq!(provenance.locate(&path), expected);
        }
    }
}
