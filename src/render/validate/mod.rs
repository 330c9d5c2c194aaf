//! Rules for the merged and rendered spec.

mod metadata;
mod pods;
mod shape;

use serde_json::Value;

pub(crate) use self::metadata::entry as metadata_entry;
use super::Refusal;
use super::provenance::Provenance;
use crate::api::reason::Reason;
use crate::merge::{Path, Step};

/// Checks a spec against all rules and returns the warnings.
///
/// # Errors
/// All faults in one message; its reason is that of the first, in the order in which the rules build on each other.
pub(super) fn check(spec: &Value, provenance: &Provenance<'_>) -> Result<Vec<String>, Refusal> {
    let mut faults = Faults::default();
    shape::check(spec, provenance, &mut faults);
    for name in ["template", "workerTemplate"] {
        if let Some(template) = present(spec, name) {
            let pod = Pod { name, template, spec, provenance };
            pods::check(&pod, &mut faults);
            metadata::check(&pod, &mut faults);
        }
    }
    match faults.all.first() {
        None => Ok(pods::warnings(spec)),
        Some((reason, _)) => {
            let messages: Vec<&str> = faults.all.iter().map(|(_, message)| message.as_str()).collect();
            Err(Refusal::new(*reason, messages.join("; ")))
        }
    }
}

/// What is wrong, in the order of the rules.
#[derive(Default)]
struct Faults {
    all: Vec<(Reason, String)>,
}

impl Faults {
    fn add(&mut self, reason: Reason, message: String) {
        self.all.push((reason, message));
    }
}

/// One of the two pod templates of a spec.
#[derive(Clone, Copy)]
struct Pod<'a> {
    /// Its field, `template` or `workerTemplate`.
    name: &'static str,
    template: &'a Value,
    spec: &'a Value,
    provenance: &'a Provenance<'a>,
}

impl Pod<'_> {
    /// A place in the pod template.
    fn place<const N: usize>(&self, steps: [Step; N]) -> Path {
        steps.into_iter().fold(Path::default().then(Step::field(self.name)), Path::then)
    }
}

/// A field that is there and isn't null.
fn present<'v>(value: &'v Value, field: &str) -> Option<&'v Value> {
    value.get(field).filter(|value| !value.is_null())
}

/// A list's items; none for everything else.
fn items<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
