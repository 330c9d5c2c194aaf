//! Kubernetes Services of ours.

use serde::Deserialize;
use serde_json::Value;

use super::Plain;
use super::meta::Metadata;
use crate::api::nullable;
use crate::render::hash;

/// A Kubernetes Service of ours.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::member) struct Service {
    #[serde(deserialize_with = "nullable")]
    pub(in crate::member) metadata: Metadata,
    #[serde(rename = "spec", deserialize_with = "print")]
    pub(in crate::member) spec_print: String,
}

/// What tells whether the spec of a Service changed: it has no generation.
pub(in crate::member) fn spec_print(spec: &Value) -> String {
    hash::of(spec)
}

fn print<'de, D: serde::Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    Ok(spec_print(&Value::deserialize(input)?))
}

impl Plain for Service {
    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }
}
