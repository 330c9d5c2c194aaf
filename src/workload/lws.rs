//! The `LeaderWorkerSet` of a service whose groups have workers.

use serde_json::{Map, Value, json};

use super::group::Group;

/// Its `spec`, without what differs between members.
///
/// `startupPolicy` and `restartPolicy` are written although they are defaults, so that a member's own can't differ: a
/// group starts as a whole, and ranks that lost a peer would hang. Left to the member: `networkConfig`,
/// `subGroupPolicy` and `volumeClaimTemplates`.
pub(super) fn spec(group: Group) -> Map<String, Value> {
    let mut template = Map::new();
    template.insert("size".to_owned(), json!(group.size));
    template.insert("restartPolicy".to_owned(), json!("RecreateGroupOnPodRestart"));
    // Without a template of its own the leader takes that of the workers.
    let workers = match group.workers {
        Some(workers) => {
            template.insert("leaderTemplate".to_owned(), group.first.value);
            workers
        }
        None => group.first,
    };
    template.insert("workerTemplate".to_owned(), workers.value);
    let mut spec = Map::new();
    spec.insert("startupPolicy".to_owned(), json!("LeaderCreated"));
    spec.insert("leaderWorkerTemplate".to_owned(), Value::Object(template));
    spec
}
