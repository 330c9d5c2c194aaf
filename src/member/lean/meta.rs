//! Metadata that the objects of a member have in common.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::api::labels::{GENERATION, HUB, INFERENCE_SERVICE, RENDERED_HASH, SERVICE_UID, SOURCE};
use crate::api::lws::EXCLUSIVE_TOPOLOGY;
use crate::api::nullable;
use crate::capacity::ServiceKey;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::member) struct Metadata {
    #[serde(deserialize_with = "nullable")]
    pub(in crate::member) name: String,
    #[serde(deserialize_with = "nullable")]
    pub(in crate::member) namespace: String,
    #[serde(deserialize_with = "nullable")]
    pub(in crate::member) uid: String,
    #[serde(deserialize_with = "nullable")]
    pub(in crate::member) resource_version: String,
    #[serde(deserialize_with = "nullable")]
    pub(in crate::member) generation: i64,
    pub(in crate::member) creation_timestamp: Option<Timestamp>,
    pub(in crate::member) deletion_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "nullable")]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    pub(super) annotations: Annotations,
    #[serde(deserialize_with = "nullable")]
    owner_references: Vec<Owner>,
}

/// The annotations that matter; others may be large.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Annotations {
    #[serde(rename = "federation.odin.moreh.io/source")]
    source: Option<String>,
    #[serde(rename = "federation.odin.moreh.io/rendered-hash")]
    pub(super) rendered_hash: Option<String>,
    #[serde(rename = "federation.odin.moreh.io/generation")]
    generation: Option<String>,
    #[serde(rename = "leaderworkerset.sigs.k8s.io/exclusive-topology")]
    pub(super) exclusive_topology: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Owner {
    #[serde(deserialize_with = "nullable")]
    uid: String,
    #[serde(deserialize_with = "nullable")]
    controller: bool,
}

/// What an object says of whom it was made for, and what was applied last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::member) struct Marks<'a> {
    pub(in crate::member) hub: Option<&'a str>,
    pub(in crate::member) service_uid: Option<&'a str>,
    pub(in crate::member) rendered_hash: Option<&'a str>,
    pub(in crate::member) generation: Option<&'a str>,
}

impl<'a> Marks<'a> {
    /// Those of a whole object.
    pub(in crate::member) fn of(object: &'a Value) -> Self {
        let text = |map: &str, key: &str| object.pointer(map).and_then(|map| map.get(key)).and_then(Value::as_str);
        let (labels, annotations) = ("/metadata/labels", "/metadata/annotations");
        Self {
            hub: text(labels, HUB),
            service_uid: text(labels, SERVICE_UID),
            rendered_hash: text(annotations, RENDERED_HASH),
            generation: text(annotations, GENERATION),
        }
    }
}

impl Metadata {
    /// UID of the service that it says it belongs to.
    pub(in crate::member) fn service_uid(&self) -> Option<&str> {
        self.labels.get(SERVICE_UID).map(String::as_str)
    }

    /// What it says of itself.
    pub(in crate::member) fn marks(&self) -> Marks<'_> {
        Marks {
            hub: self.labels.get(HUB).map(String::as_str),
            service_uid: self.service_uid(),
            rendered_hash: self.annotations.rendered_hash.as_deref(),
            generation: self.annotations.generation.as_deref(),
        }
    }

    /// The generation of the service that was applied last.
    pub(super) fn service_generation(&self) -> Option<i64> {
        self.annotations.generation.as_deref().and_then(|text| text.parse().ok())
    }

    /// The service on the hub.
    pub(in crate::member) fn service(&self) -> ServiceKey {
        if let Some((namespace, name)) = self.annotations.source.as_deref().and_then(|source| source.split_once('/')) {
            return ServiceKey::new(namespace, name);
        }
        let name = self.labels.get(INFERENCE_SERVICE).unwrap_or(&self.name);
        ServiceKey::new(self.namespace.as_str(), name.as_str())
    }

    /// UID of what controls it.
    pub(in crate::member) fn controller(&self) -> Option<&str> {
        self.owner_references.iter().find(|owner| owner.controller).map(|owner| owner.uid.as_str())
    }
}

// The names of the fields above can't be constants; this keeps them in step with the constants.
const _: () = {
    assert!(same(SOURCE, "federation.odin.moreh.io/source"));
    assert!(same(RENDERED_HASH, "federation.odin.moreh.io/rendered-hash"));
    assert!(same(GENERATION, "federation.odin.moreh.io/generation"));
    assert!(same(EXCLUSIVE_TOPOLOGY, "leaderworkerset.sigs.k8s.io/exclusive-topology"));
};

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler, where an index out of bounds stops the build")]
pub(super) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
