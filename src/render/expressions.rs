//! Rendering of the strings in pod templates.

use std::cell::OnceCell;

use serde_json::Value;

use super::cache::TemplateCache;
use super::provenance::Provenance;
use super::{Refusal, ServiceIdentity, values};
use crate::api::reason::Reason;
use crate::merge::{Path, Step};
use crate::template::{self, Budget, ErrorKind};

/// Renders every string value under `template` and `workerTemplate`, labels and annotations too; never a key. Each
/// string is a template of its own. Expressions see the spec as it was merged, before any string was rendered.
///
/// # Errors
/// `RenderFailed` for the first expression that fails, in the order of names, with the layer and the path of its string.
pub(super) fn render(
    spec: &mut Value,
    service: &ServiceIdentity<'_>,
    provenance: &Provenance<'_>,
    templates: &TemplateCache,
) -> Result<(), Refusal> {
    run(spec, service, provenance, templates).map_err(|(place, fault)| refusal(&place, fault, provenance))
}

/// [`render`] with the bare fault and its place.
pub(super) fn run(
    spec: &mut Value,
    service: &ServiceIdentity<'_>,
    provenance: &Provenance<'_>,
    templates: &TemplateCache,
) -> Result<(), (Path, Fault)> {
    let mut renderer = Renderer { service, provenance, templates, dot: OnceCell::new(), budget: Budget::default() };
    for name in ["template", "workerTemplate"] {
        let Some(template) = spec.get_mut(name) else { continue };
        renderer.walk(template).map_err(|(place, fault)| (place.inside(Step::field(name)), fault))?;
    }
    Ok(())
}

struct Renderer<'a> {
    service: &'a ServiceIdentity<'a>,
    provenance: &'a Provenance<'a>,
    templates: &'a TemplateCache,
    /// Made for the first string that has an expression; most services have few.
    dot: OnceCell<Result<template::Value, String>>,
    budget: Budget,
}

/// Why a string can't be rendered.
#[derive(Debug)]
pub(super) enum Fault {
    /// The string's own fault.
    Template(template::Error),
    /// The spec doesn't have the types that expressions rely on.
    Spec(String),
}

impl Renderer<'_> {
    fn walk(&mut self, value: &mut Value) -> Result<(), (Path, Fault)> {
        match value {
            Value::String(text) if text.contains("{{") => {
                *text = self.text(text).map_err(|fault| (Path::default(), fault))?;
                Ok(())
            }
            Value::Array(items) => items
                .iter_mut()
                .enumerate()
                .try_for_each(|(index, item)| self.walk(item).map_err(|(place, fault)| (place.inside(Step::Index(index)), fault))),
            Value::Object(fields) => fields
                .iter_mut()
                .try_for_each(|(name, value)| self.walk(value).map_err(|(place, fault)| (place.inside(Step::field(name)), fault))),
            _ => Ok(()),
        }
    }

    fn text(&mut self, text: &str) -> Result<String, Fault> {
        let parsed = self.templates.get(text).map_err(Fault::Template)?;
        let dot = self.dot.get_or_init(|| values::dot(self.service, self.provenance.merged()));
        let dot = dot.as_ref().map_err(|message| Fault::Spec(message.clone()))?;
        parsed.render(dot, &mut self.budget).map_err(Fault::Template)
    }
}

fn refusal(place: &Path, fault: Fault, provenance: &Provenance<'_>) -> Refusal {
    let place = provenance.locate(place);
    match fault {
        Fault::Template(error) => {
            let advice = advice(&error);
            Refusal::new(Reason::RenderFailed, format!("{place}, {error}{advice}"))
        }
        Fault::Spec(message) => {
            Refusal::new(Reason::RenderFailed, format!("{place} holds an expression, but the merged spec can't be read: {message}"))
        }
    }
}

/// How to mend what templates can't know: where values of a service come from.
fn advice(error: &template::Error) -> &'static str {
    match error.kind {
        ErrorKind::Nil if !error.message.contains("deref") => {
            "; no layer sets this object: set it, or read it with deref, as in {{ deref .Spec \"Parallelism\" \"Tensor\" | default 1 }}"
        }
        ErrorKind::NoValue => "; no layer sets it: the service or one of its templates can",
        _ => "",
    }
}
