//! The member controller: registration by Secret, one client for each credential, and the status of `MemberCluster`.

mod connect;
mod register;
mod report;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};

pub(crate) use self::register::register;
use super::context::Context;
use super::pass::{Error, alone};
use crate::api::federation::{MemberCluster, MemberClusterStatus};
use crate::status::merge_patch;

/// Least time between two status writes of one member, unless a condition changes.
const WRITE_INTERVAL: Duration = Duration::from_secs(10);
/// Pause after a pass that failed.
const RETRY: Duration = Duration::from_secs(1);

/// When the status of each member was last written.
#[derive(Default)]
pub(crate) struct Written(Mutex<HashMap<String, Instant>>);

/// One pass for one member.
pub(crate) async fn reconcile(cluster: Arc<MemberCluster>, context: Arc<Context>) -> Result<Action, Arc<Error>> {
    context.member_trigger.begun(&cluster.name_any());
    let metrics = context.metrics.clone();
    alone("member", &metrics, async move { pass(&cluster, &context).await }).await.map_err(Arc::new)
}

/// When a pass that failed is tried again.
#[expect(clippy::needless_pass_by_value, reason = "the signature is the controller's")]
pub(crate) fn retry(cluster: Arc<MemberCluster>, error: &Arc<Error>, _context: Arc<Context>) -> Action {
    if !error.is_conflict() && !error.is_not_found() {
        tracing::warn!(member = %cluster.name_any(), %error, "a pass failed and is tried again");
    }
    Action::requeue(RETRY)
}

async fn pass(cluster: &Arc<MemberCluster>, context: &Arc<Context>) -> Result<Action, Error> {
    let name = cluster.name_any();
    if connect::ensure(&name, cluster, context) {
        // What runs there can be seen now, or no longer.
        context.touch_services_in(&name);
        context.retry_waiting();
    }
    let roll = context.fleet.roll();
    let Some(listed) = roll.get(&name) else {
        return Ok(Action::requeue(RETRY));
    };
    let held = context.placer.held(&name).await?;
    let status = report::report(&report::Facts { cluster, listed, held: &held, now: Timestamp::now() });

    let old = cluster.status.clone().unwrap_or_default();
    let Some(patch) = merge_patch(&value(&old)?, &value(&status)?) else {
        return Ok(Action::await_change());
    };
    if !report::conditions_differ(&old, &status)
        && let Some(pause) = context.written.0.lock().get(&name).and_then(|at| WRITE_INTERVAL.checked_sub(at.elapsed()))
    {
        return Ok(Action::requeue(pause));
    }
    let patch = json!({"metadata": {"resourceVersion": cluster.resource_version()}, "status": patch});
    let api: Api<MemberCluster> = Api::all(context.client.clone());
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    context.metrics.status_written("MemberCluster");
    context.written.0.lock().insert(name, Instant::now());
    Ok(Action::await_change())
}

fn value(status: &MemberClusterStatus) -> Result<Value, serde_json::Error> {
    serde_json::to_value(status)
}

/// Ends what runs for a member that is no longer registered, unless it has been registered anew. What it holds stays
/// there.
pub(crate) fn detach(name: &str, uid: &str, context: &Context) {
    if context.members.get(name).is_some_and(|entry| entry.cluster.uid().as_deref() != Some(uid)) {
        return;
    }
    if let Some(entry) = context.members.remove(name) {
        tracing::info!(member = name, "detached");
        if let Ok(member) = entry.runtime.clone() {
            tokio::spawn(async move { member.stop().await });
        }
    }
    context.metrics.forget(name);
    context.written.0.lock().remove(name);
    context.touch_services_in(name);
    // Another registration of the same cluster counts from here on.
    context.member_trigger.extend(context.members.all().into_iter().map(|(name, _)| name));
    context.retry_waiting();
}
