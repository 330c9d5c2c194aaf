//! Layers of a service, merged, rendered and validated.
//!
//! [`lookup`] finds the layers that a service names; [`render`] makes one spec of them:
//! 1. merge, the service's own spec last (`layers`), and one choice in each one-of group;
//! 2. effective defaults (`defaults`), so that expressions see them;
//! 3. each string of the two pod templates is rendered (`expressions`, with the values of `values`);
//! 4. validation (`validate`).
//!
//! All of it is a pure function of the layers and of the service's name, namespace and labels.

mod cache;
mod defaults;
mod expressions;
pub(crate) mod hash;
mod layers;
mod lookup;
mod provenance;
mod validate;
mod values;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use self::cache::TemplateCache;
use self::provenance::Provenance;
use crate::api::odin::Source;
use crate::api::reason::Reason;

pub use self::lookup::{Catalog, layer_names, lookup};
pub(crate) use self::validate::metadata_entry;

/// One layer: the spec of a runtime base, of a template, or of the service itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// The object that the spec comes from.
    pub source: Source,
    /// Its spec.
    pub spec: Value,
}

/// What expressions can know of a service besides its spec.
#[derive(Clone, Copy, Debug)]
pub struct ServiceIdentity<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}

/// What comes of a service's layers.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The merged, defaulted and rendered spec. `templateRefs` and `runtimeBaseRef` are as the service wrote them.
    pub spec: Value,
    /// The layers, lowest first, the service last.
    pub sources: Vec<Source>,
    /// Hash of the spec: the same for equal specs, 16 hexadecimal digits.
    pub hash: String,
    /// What is allowed but hardly meant, in sentences for the service's author.
    pub warnings: Vec<String>,
}

/// Why a service can't be rendered or built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The kind of fault.
    pub reason: Reason,
    /// What is wrong, where, and how to mend it.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

impl std::error::Error for Refusal {}

/// Renders services and remembers the templates that it parsed: bases and presets are shared by many services.
#[derive(Debug, Default)]
pub struct Renderer {
    templates: TemplateCache,
}

impl Renderer {
    /// Makes one spec of the layers of a service, lowest first, the service's own last.
    ///
    /// # Errors
    /// The layers don't merge, an expression fails, or the result breaks a rule. The message names layer and path.
    pub fn render(&self, service: &ServiceIdentity<'_>, layers: &[Layer]) -> Result<Rendered, Refusal> {
        layers::check(layers)?;
        let mut merged = layers::merge(layers)?;
        layers::keep_latest_choices(&mut merged, layers)?;
        defaults::apply(&mut merged);
        let provenance = Provenance::new(&merged, layers);
        let mut spec = merged.clone();
        expressions::render(&mut spec, service, &provenance, &self.templates)?;
        let warnings = validate::check(&spec, &provenance)?;
        let sources = layers.iter().map(|layer| layer.source.clone()).collect();
        Ok(Rendered { hash: hash::of(&spec), spec, sources, warnings })
    }
}

/// [`Renderer::render`] for once.
///
/// # Errors
/// As there.
pub fn render(service: &ServiceIdentity<'_>, layers: &[Layer]) -> Result<Rendered, Refusal> {
    Renderer::default().render(service, layers)
}
