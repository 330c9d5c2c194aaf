//! `InferencePools` that a service's pods join: their labels go onto the pods behind the service.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Owner, items, refuse};
use crate::api::labels;
use crate::api::reason::Reason;
use crate::render::{Refusal, metadata_entry};

/// The pools that a service names.
pub(super) struct Pools<'a> {
    /// By key of the label: the value, and the pool that asks for it.
    labels: BTreeMap<&'a str, (&'a str, &'a str)>,
    missing: Vec<String>,
    namespace: &'a str,
}

impl<'a> Pools<'a> {
    /// Looks up what a rendered spec names.
    ///
    /// # Errors
    /// `InvalidRendered` for a label that pods can't have, or of which two pools want different values.
    pub(super) fn of(owner: &Owner<'a>, spec: &Value) -> Result<Self, Refusal> {
        let mut pools = Self { labels: BTreeMap::new(), missing: Vec::new(), namespace: owner.namespace };
        for reference in items(spec, "inferencePoolRefs") {
            let name = reference.get("name").and_then(Value::as_str).unwrap_or_default();
            let Some(pool) = owner.pools.iter().find(|pool| pool.name == name) else {
                pools.missing.push(name.to_owned());
                continue;
            };
            for (key, value) in &pool.labels {
                if let Err(wrong) = metadata_entry("labels", key, &json!(value)) {
                    return Err(refuse(Reason::InvalidRendered, format!("InferencePool {name} selects pods by the label {key}: {wrong}")));
                }
                if let Some((other, pool)) = pools.labels.insert(key, (value, &pool.name)).filter(|(other, _)| other != value) {
                    return Err(refuse(
                        Reason::InvalidRendered,
                        format!(
                            "InferencePool {pool} selects pods whose label {key} is {other:?}, InferencePool {name} those where it is \
                             {value:?}: no pod can be in both, leave one in spec.inferencePoolRefs"
                        ),
                    ));
                }
            }
        }
        Ok(pools)
    }

    /// Puts the labels onto pods that already have those of their template and of the service.
    ///
    /// # Errors
    /// `InvalidRendered` for a label that has another value there.
    pub(super) fn label(&self, owner: &Owner<'_>, pods: &mut Map<String, Value>, path: &str) -> Result<(), Refusal> {
        for (key, (value, pool)) in &self.labels {
            if let Some(other) = pods.get(*key).filter(|other| *other != *value) {
                let place = match owner.labels.get(*key).filter(|_| *key == labels::AI_GATEWAY) {
                    Some(_) => "the label of the service that its pods copy".to_owned(),
                    None => format!("{path}.metadata.labels"),
                };
                return Err(refuse(
                    Reason::InvalidRendered,
                    format!(
                        "InferencePool {pool} selects pods whose label {key} is {value:?}, but {place} says {other}: make them alike, or \
                         remove the pool from spec.inferencePoolRefs"
                    ),
                ));
            }
            pods.insert((*key).to_owned(), json!(value));
        }
        Ok(())
    }

    /// One sentence for each pool that isn't there.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        self.missing.iter().map(|name| {
            format!(
                "spec.inferencePoolRefs names InferencePool {name:?}, which the hub doesn't have in namespace {}: pods get no labels for it",
                self.namespace
            )
        })
    }
}
