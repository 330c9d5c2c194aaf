//! A service that is being deleted: its objects in members go first, then the hub's finalizer.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::runtime::controller::Action;

use super::{Error, observe, write};
use crate::api::labels::FINALIZER;
use crate::api::odin::InferenceService;
use crate::capacity::ServiceKey;
use crate::hub::context::Context;
use crate::hub::roll::{Connected, Listed, Roll};
use crate::member::{Outcome, Task};

/// How long a deletion waits for a member that doesn't answer, or that the hub may not write in. What it holds is left
/// there, since a namespace on the hub must not hang on a dead member.
const LOST_AFTER: Duration = Duration::from_secs(300);
/// How often a deletion that waits looks again; an answer of the member starts a pass sooner.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

pub(super) async fn remove(service: &InferenceService, context: &Context, key: &ServiceKey) -> Result<Action, Error> {
    let uid = service.uid().unwrap_or_default();
    if service.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
        let roll = context.fleet.roll();
        let mut waiting = Vec::new();
        // Decisions are written before they are acted on, so the status names every member that may hold something.
        for placement in service.status.iter().flat_map(|status| &status.placements) {
            if !is_gone(service, context, &roll, key, &placement.cluster) {
                waiting.push(placement.cluster.as_str());
            }
        }
        if !waiting.is_empty() {
            tracing::debug!(service = %key, members = ?waiting, "waiting for members to accept the deletion");
            return Ok(Action::requeue(LOOK_AGAIN));
        }
        write::remove_finalizer(&context.client, service).await?;
    }
    context.forget(key, &uid).await?;
    let members = service.status.iter().flat_map(|status| &status.placements).map(|placement| placement.cluster.clone());
    context.member_trigger.extend(members);
    // An object that is gone is not looked at again; an API server that has just started says so of one that is there.
    Ok(Action::requeue(LOOK_AGAIN))
}

/// Whether nothing of the service is left in the member, as far as the hub can do anything about it.
fn is_gone(service: &InferenceService, context: &Context, roll: &Roll, key: &ServiceKey, cluster: &str) -> bool {
    let uid = service.uid().unwrap_or_default();
    let Some(Listed { entry, seen, standing }) = roll.get(cluster) else {
        // Not registered: detached with what it holds. Before its first reconcile it is only not known yet.
        return !context.is_registered(cluster);
    };
    let Ok(Connected { member, view }) = seen else {
        return entry.since.elapsed() > LOST_AFTER;
    };
    let now = Timestamp::now();
    let waited = if standing.writable {
        member.submit(Task::Delete { service: key.clone(), uid: uid.clone() });
        if member.outcome(&uid) == Some(Outcome::Deleted) {
            return true;
        }
        observe::lost_for(view, entry, now)
    } else {
        let since = service.metadata.deletion_timestamp.as_ref();
        since.and_then(|since| Duration::try_from(now.duration_since(since.0)).ok())
    };
    let lost = waited.is_some_and(|waited| waited > LOST_AFTER);
    if lost {
        tracing::warn!(service = %key, member = cluster, "deleted on the hub while the member can't be written to; what it holds is left there");
    }
    lost
}
