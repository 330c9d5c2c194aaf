//! Which nodes a pod may use: selectors, affinity, taints and tolerations.

use serde::Deserialize;

use crate::api::nullable;

/// Keeps pods off a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// Key that a toleration names.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    /// Value that a toleration may name.
    #[serde(deserialize_with = "nullable")]
    pub value: String,
    /// `NoSchedule`, `NoExecute` or `PreferNoSchedule`.
    #[serde(deserialize_with = "nullable")]
    pub effect: String,
}

impl std::fmt::Display for Taint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key, value, effect } = self;
        if value.is_empty() { write!(f, "{key}:{effect}") } else { write!(f, "{key}={value}:{effect}") }
    }
}

/// Lets a pod onto a node despite a taint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// Key of the taint; every key when it is empty and the operator is `Exists`.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    /// `Equal` (also when empty) or `Exists`.
    #[serde(deserialize_with = "nullable")]
    pub operator: String,
    /// Value of the taint, for `Equal`.
    #[serde(deserialize_with = "nullable")]
    pub value: String,
    /// Effect of the taint; every effect when it is empty.
    #[serde(deserialize_with = "nullable")]
    pub effect: String,
}

impl Toleration {
    /// Whether this toleration covers the taint.
    pub fn covers(&self, taint: &Taint) -> bool {
        (self.effect.is_empty() || self.effect == taint.effect)
            && match self.operator.as_str() {
                "Exists" => self.key.is_empty() || self.key == taint.key,
                // A toleration without a key must have the operator Exists.
                "" | "Equal" => self.key == taint.key && self.value == taint.value && !self.key.is_empty(),
                _ => false,
            }
    }
}

/// What the requirements of a pod are held against.
pub(super) trait Labelled {
    fn name(&self) -> &str;
    fn label(&self, key: &str) -> Option<&str>;
}

/// One condition on a label, or on a field, of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct Requirement {
    /// The label, or the field.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    #[serde(deserialize_with = "nullable")]
    pub operator: String,
    /// What the operator compares with.
    #[serde(deserialize_with = "nullable")]
    pub values: Vec<String>,
}

impl Requirement {
    /// Whether a scheduler could ask a node for it. A member would refuse a pod with one that isn't so; but since it
    /// matches no node, no member would ever see it.
    fn check(&self) -> Result<(), String> {
        let wanted = match (self.operator.as_str(), self.values.as_slice()) {
            ("In" | "NotIn", [_, ..]) | ("Exists" | "DoesNotExist", []) => return Ok(()),
            ("Gt" | "Lt", [bound]) if bound.parse::<i64>().is_ok() => return Ok(()),
            ("In" | "NotIn", []) => "at least one value",
            ("Exists" | "DoesNotExist", _) => "no values",
            ("Gt" | "Lt", _) => "exactly one value, an integer",
            (other, _) => return Err(format!("operator: {other:?} is none; use In, NotIn, Exists, DoesNotExist, Gt or Lt")),
        };
        Err(format!("values: operator {} takes {wanted}", self.operator))
    }

    pub(super) fn holds(&self, found: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|other| other == value);
        let compare = |holds: fn(i64, i64) -> bool| match (found.map(str::parse), self.values.as_slice()) {
            (Some(Ok(have)), [bound]) => bound.parse().is_ok_and(|bound| holds(have, bound)),
            _ => false,
        };
        match self.operator.as_str() {
            "In" => found.is_some_and(listed),
            "NotIn" => !found.is_some_and(listed),
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            "Gt" => compare(|have, bound| have > bound),
            "Lt" => compare(|have, bound| have < bound),
            _ => false,
        }
    }
}

/// An alternative of a required node affinity: all of its requirements hold, and it has at least one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Term {
    /// Conditions on labels.
    #[serde(deserialize_with = "nullable")]
    pub match_expressions: Vec<Requirement>,
    /// Conditions on fields; the only field is `metadata.name`.
    #[serde(deserialize_with = "nullable")]
    pub match_fields: Vec<Requirement>,
}

impl Term {
    /// The first requirement that no node could be asked for; the error begins with its field.
    pub(super) fn check(&self) -> Result<(), String> {
        let lists = [("matchExpressions", &self.match_expressions), ("matchFields", &self.match_fields)];
        for (list, requirements) in lists {
            for (index, requirement) in requirements.iter().enumerate() {
                requirement.check().map_err(|wrong| format!("{list}[{index}].{wrong}"))?;
            }
        }
        if let Some(index) = self.match_fields.iter().position(|field| field.key != "metadata.name") {
            return Err(format!("matchFields[{index}].key: the only field of a node is metadata.name"));
        }
        Ok(())
    }

    fn holds(&self, node: &dyn Labelled) -> bool {
        let labels = self.match_expressions.iter().all(|requirement| requirement.holds(node.label(&requirement.key)));
        let fields = self.match_fields.iter().all(|requirement| requirement.key == "metadata.name" && requirement.holds(Some(node.name())));
        labels && fields && !(self.match_expressions.is_empty() && self.match_fields.is_empty())
    }
}

/// The nodes that a pod selects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    /// Labels that a node must have, sorted.
    pub labels: Vec<(String, String)>,
    /// Alternatives, one of which must hold; `None` is no condition, an empty list matches nothing.
    pub terms: Option<Vec<Term>>,
}

impl Selection {
    pub(super) fn matches(&self, node: &dyn Labelled) -> bool {
        self.labels.iter().all(|(key, value)| node.label(key) == Some(value))
            && self.terms.as_ref().is_none_or(|terms| terms.iter().any(|term| term.holds(node)))
    }

    /// Whether one of these labels, or the name of the node, decides.
    pub(super) fn looks_at_name(&self, name_labels: &[std::sync::Arc<str>]) -> bool {
        let named = |key: &str| name_labels.iter().any(|label| label.as_ref() == key);
        self.labels.iter().any(|(key, _)| named(key))
            || self
                .terms
                .iter()
                .flatten()
                .any(|term| !term.match_fields.is_empty() || term.match_expressions.iter().any(|requirement| named(&requirement.key)))
    }

    /// The conditions for people.
    pub(super) fn describe(&self) -> String {
        let mut parts: Vec<String> = self.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if self.terms.is_some() {
            parts.push("its required node affinity".to_owned());
        }
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    struct Node;

    impl Labelled for Node {
        fn name(&self) -> &'static str {
            "n"
        }

        fn label(&self, key: &str) -> Option<&str> {
            match key {
                "zone" => Some("a"),
                "generation" => Some("5"),
                _ => None,
            }
        }
    }

    fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
        serde_json::from_value(value.clone()).unwrap()
    }

    #[test]
    fn requirements() {
        for (key, operator, values, holds) in [
            ("zone", "In", json!(["a", "b"]), true),
            ("zone", "In", json!(["b"]), false),
            ("rack", "In", json!(["a"]), false),
            ("zone", "NotIn", json!(["a"]), false),
            ("rack", "NotIn", json!(["a"]), true),
            ("zone", "Exists", json!(null), true),
            ("rack", "Exists", json!([]), false),
            ("zone", "DoesNotExist", json!([]), false),
            ("rack", "DoesNotExist", json!([]), true),
            ("generation", "Gt", json!(["4"]), true),
            ("generation", "Gt", json!(["5"]), false),
            ("generation", "Lt", json!(["6"]), true),
            ("generation", "Lt", json!(["5"]), false),
            ("generation", "Lt", json!(["6", "7"]), false),
            ("generation", "Gt", json!(["many"]), false),
            ("zone", "Gt", json!(["1"]), false),
            ("rack", "Lt", json!(["1"]), false),
            ("zone", "Like", json!(["a"]), false),
        ] {
            let term: Term = read(&json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}));
            assert_eq!(term.holds(&Node), holds, "{key} {operator} {values}");
        }
    }

    #[test]
    fn what_no_node_could_be_asked_for_is_refused_with_its_place() {
        let expression =
            |operator: &str, values: Value| json!({"matchExpressions": [{"key": "k", "operator": operator, "values": values}]});
        for (term, wrong) in [
            (json!({}), None),
            (expression("In", json!(["a"])), None),
            (expression("NotIn", json!(["a", "b"])), None),
            (expression("Exists", json!(null)), None),
            (expression("DoesNotExist", json!([])), None),
            (expression("Gt", json!(["-4"])), None),
            (json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}), None),
            (expression("In", json!([])), Some("matchExpressions[0].values: operator In takes at least one value")),
            (expression("Exists", json!(["a"])), Some("matchExpressions[0].values: operator Exists takes no values")),
            (expression("Lt", json!(["many"])), Some("matchExpressions[0].values: operator Lt takes exactly one value, an integer")),
            (expression("Gt", json!(["1", "2"])), Some("matchExpressions[0].values: operator Gt takes exactly one value, an integer")),
            (
                expression("Like", json!(["a"])),
                Some("matchExpressions[0].operator: \"Like\" is none; use In, NotIn, Exists, DoesNotExist, Gt or Lt"),
            ),
            (
                json!({"matchFields": [{"key": "spec.name", "operator": "In", "values": ["n"]}]}),
                Some("matchFields[0].key: the only field of a node is metadata.name"),
            ),
        ] {
            let checked = read::<Term>(&term).check();
            assert_eq!(checked.err().as_deref(), wrong, "{term}");
        }
    }

    #[test]
    fn terms_are_alternatives_and_empty_ones_match_nothing() {
        let yes = json!({"matchExpressions": [{"key": "zone", "operator": "Exists"}]});
        let no = json!({"matchExpressions": [{"key": "rack", "operator": "Exists"}]});
        let both = json!({"matchExpressions": [{"key": "zone", "operator": "Exists"}, {"key": "rack", "operator": "Exists"}]});
        let field = |name: &str| json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]});
        for (terms, matches) in [
            (json!([]), false),
            (json!([{}]), false),
            (json!([{}, yes]), true),
            (json!([no, yes]), true),
            (json!([no]), false),
            (json!([both]), false),
            (json!([field("n")]), true),
            (json!([field("m")]), false),
            (json!([{"matchFields": [{"key": "spec.name", "operator": "In", "values": ["n"]}]}]), false),
        ] {
            let selection = Selection { labels: Vec::new(), terms: Some(read(&terms)) };
            assert_eq!(selection.matches(&Node), matches, "{terms}");
        }
        assert!(Selection::default().matches(&Node));
        for (value, matches) in [("a", true), ("b", false)] {
            let selection = Selection { labels: vec![("zone".to_owned(), value.to_owned())], terms: None };
            assert_eq!(selection.matches(&Node), matches, "{value}");
        }
    }

    #[test]
    fn tolerations() {
        let taint = Taint { key: "gpu".to_owned(), value: "x".to_owned(), effect: "NoSchedule".to_owned() };
        for (toleration, covers) in [
            (json!({"operator": "Exists"}), true),
            (json!({"operator": "Exists", "effect": "NoExecute"}), false),
            (json!({"key": "gpu", "operator": "Exists"}), true),
            (json!({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}), true),
            (json!({"key": "cpu", "operator": "Exists"}), false),
            (json!({"key": "gpu", "value": "x"}), true),
            (json!({"key": "gpu", "operator": "Equal", "value": "x"}), true),
            (json!({"key": "gpu", "operator": "Equal", "value": "y"}), false),
            (json!({"key": "gpu"}), false),
            (json!({"value": "x"}), false),
            (json!({"key": "gpu", "operator": "Lt", "value": "9"}), false),
            (json!({}), false),
        ] {
            assert_eq!(read::<Toleration>(&toleration).covers(&taint), covers, "{toleration}");
        }
    }
}
