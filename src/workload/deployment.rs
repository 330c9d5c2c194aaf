//! The Deployment of a service whose group is one pod.

use serde_json::{Map, Value, json};

use super::group::Group;
use super::{Owner, present};
use crate::api::labels;

/// Its `spec`, without what differs between members.
///
/// Left to the member: `progressDeadlineSeconds`, `minReadySeconds` and `paused`; and what the service doesn't set.
pub(super) fn spec(owner: &Owner<'_>, rendered: &Value, group: Group) -> Map<String, Value> {
    let mut spec = Map::new();
    spec.insert("selector".to_owned(), json!({"matchLabels": {labels::INFERENCE_SERVICE: labels::label_value(owner.name)}}));
    if let Some(limit) = present(rendered, "revisionHistoryLimit") {
        spec.insert("revisionHistoryLimit".to_owned(), limit.clone());
    }
    spec.insert("template".to_owned(), group.first.value);
    spec
}
