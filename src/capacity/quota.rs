//! What a `ResourceQuota` of a member's namespace leaves.

use serde::Deserialize;
use serde_json::Value;

use super::resources::Amounts;
use crate::api::nullable;

/// A `ResourceQuota` of a member. Reads the JSON of one and keeps nothing else.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Quota")]
pub struct QuotaView {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Version of the object, to go on watching from.
    pub resource_version: String,
    /// `status.hard`: the bounds that the member keeps.
    pub hard: Amounts,
    /// `status.used`.
    pub used: Amounts,
    /// `spec.scopes`.
    pub scopes: Vec<String>,
    /// `spec.scopeSelector`.
    pub scope_selector: Option<Value>,
}

impl QuotaView {
    /// Whether it bounds and has used the same: most writes of a quota change nothing else.
    pub(super) fn bounds_as(&self, other: &Self) -> bool {
        let Self { namespace, name, hard, used, scopes, scope_selector, .. } = self;
        (namespace, name, hard, used, scopes, scope_selector)
            == (&other.namespace, &other.name, &other.hard, &other.used, &other.scopes, &other.scope_selector)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Quota {
    #[serde(deserialize_with = "nullable")]
    metadata: Metadata,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    #[serde(deserialize_with = "nullable")]
    namespace: String,
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    uid: String,
    #[serde(deserialize_with = "nullable")]
    resource_version: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "nullable")]
    scopes: Vec<String>,
    scope_selector: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "nullable")]
    hard: Amounts,
    #[serde(deserialize_with = "nullable")]
    used: Amounts,
}

impl From<Quota> for QuotaView {
    fn from(Quota { metadata, spec, status }: Quota) -> Self {
        Self {
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            hard: status.hard,
            used: status.used,
            scopes: spec.scopes,
            scope_selector: spec.scope_selector,
        }
    }
}
