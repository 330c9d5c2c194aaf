//! The service controller: one pass for one service, from its layers to its status.
//!
//! A pass renders, decides, reports and only then hands tasks to the queues of members: the decision stands in the
//! status before it is acted on. It never waits for a member; what comes of a task starts the next pass.

mod memo;
mod observe;
mod remove;
mod resolve;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;

pub(crate) use self::memo::Memos;
use self::observe::Seen;
pub(crate) use self::write::placements;
use super::context::Context;
use super::pass::{Error, alone};
use super::placer::Want;
use super::roll::Roll;
use crate::api::labels::FINALIZER;
use crate::api::odin::{InferenceService, WorkloadKind};
use crate::capacity::ServiceKey;
use crate::member::Task;
use crate::placement::Plan;
use crate::status::{Facts, Report, is_pressing, late_refusal, notices, report};
use crate::workload::Workload;

/// Least time between two status writes of one service, unless a decision has to be stored: a burst of events in a
/// member is one write. What people and autoscalers wait for doesn't wait for the particulars before it.
const WRITE_INTERVAL: Duration = Duration::from_millis(200);
/// Pause before looking again at members that have not been listed yet; their first event comes sooner as a rule.
const SETTLE: Duration = Duration::from_millis(500);
/// Least and most pause after a pass that failed.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// One pass for one service.
pub(crate) async fn reconcile(service: Arc<InferenceService>, context: Arc<Context>) -> Result<Action, Arc<Error>> {
    let key = ServiceKey::from(&*service);
    let wanted_since = context.service_trigger.begun(&key);
    let (context, of_pass) = (context.clone(), key.clone());
    let result = alone("service", &context.metrics, {
        let context = context.clone();
        async move { pass(service, &context, &of_pass, wanted_since).await }
    })
    .await;
    context.memos.note_result(&key, result.is_ok());
    result.map_err(Arc::new)
}

/// When a pass that failed is tried again.
#[expect(clippy::needless_pass_by_value, reason = "the signature is the controller's")]
pub(crate) fn retry(service: Arc<InferenceService>, error: &Arc<Error>, context: Arc<Context>) -> Action {
    let key = ServiceKey::from(&*service);
    // An API server that has just started answers like that too, for objects that are there.
    if error.is_not_found() && context.services.get(&ObjectRef::from_obj(&*service)).is_none() {
        context.memos.forget(&key);
        return Action::await_change();
    }
    let failures = context.memos.get(&key).failures;
    if error.is_conflict() {
        // The newer object is on its way and starts the next pass by itself; this is for the case that it came before.
        tracing::debug!(service = %key, "the service changed meanwhile, once more");
    } else {
        tracing::warn!(service = %key, %error, failures, "a pass failed and is tried again");
    }
    Action::requeue(RETRY.0.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(RETRY.1))
}

async fn pass(service: Arc<InferenceService>, context: &Context, key: &ServiceKey, wanted_since: Instant) -> Result<Action, Error> {
    if context.memos.get(key).written.is_some_and(|written| is_older(&service, written)) {
        return Ok(Action::await_change());
    }
    if service.metadata.deletion_timestamp.is_some() {
        return remove::remove(&service, context, key).await;
    }
    context.memos.update(key, |memo| memo.wanted_since = memo.wanted_since.or(Some(wanted_since)));
    let service = if service.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
        service
    } else {
        let written = write::add_finalizer(&context.client, &service).await?;
        context.memos.update(key, |memo| memo.written = version(&written));
        Arc::new(written)
    };

    let Some(rendering) = resolve::rendering(&service, context, key) else {
        return Ok(Action::requeue(SETTLE));
    };
    let (rendered, workload) = match &rendering.outcome {
        Ok((rendered, workload)) => (Ok(&**rendered), Some(workload)),
        Err(refusal) => (Err(refusal), None),
    };
    let existing = write::placements(service.status.as_ref());
    let plan = match workload {
        Some(workload) => decide(&service, context, key, workload, &existing).await?,
        None => None,
    };
    let wanted = plan.as_ref().map_or(&existing, |plan| &plan.placements);
    let roll = context.fleet.roll();
    let kind = kind(&service, workload.map(|workload| &**workload));
    let request = workload.map(|workload| &*workload.request);
    let Some(seen) = observe::all(&service, context, &roll, key, kind, wanted, request) else {
        // Reporting now would look like a loss: some member has not been listed since the hub started.
        context.forget_decision(&service, plan.as_ref(), wanted != &existing).await?;
        return Ok(Action::requeue(SETTLE));
    };
    // Some rules need the decision and what runs to be judged; what runs is left alone then, as with any refusal.
    let late = workload.zip(plan.as_ref()).and_then(|(workload, plan)| late_refusal(workload, plan, &seen.members));
    let (rendered, workload, plan, wanted, seen) = match &late {
        None => (rendered, workload, plan.as_ref(), wanted, seen),
        Some(refusal) => {
            context.forget_decision(&service, plan.as_ref(), wanted != &existing).await?;
            let Some(seen) = observe::all(&service, context, &roll, key, kind, &existing, request) else {
                return Ok(Action::requeue(SETTLE));
            };
            (Err(refusal), None, None, &existing, seen)
        }
    };
    let memo = context.memos.get(key);
    let report = report(&Facts {
        service: &service,
        rendered,
        workload: workload.map(|workload| &**workload),
        plan,
        members: &seen.members,
        leaving: &seen.leaving,
        all_ready_since: memo.all_ready_since,
        now: Timestamp::now(),
    });
    let decided = wanted != &existing;
    let pressing = is_pressing(service.status.as_ref(), &report.status);
    let last = if pressing { memo.pressed_at } else { memo.written_at };
    if !decided
        && let Some(pause) = last.and_then(|at| WRITE_INTERVAL.checked_sub(at.elapsed()))
        && service.status.as_ref() != Some(&report.status)
    {
        note_readiness(context, key, &report);
        submit(&service, context, &roll, key, workload, wanted, &seen);
        return Ok(Action::requeue(pause));
    }
    let written = match write::status(&context.client, &service, &report.status).await {
        Ok(written) => written,
        Err(error) => {
            context.forget_decision(&service, plan, true).await?;
            return Err(error);
        }
    };
    if let Some(written) = written {
        context.memos.update(key, |memo| {
            memo.written = version(&written);
            memo.written_at = Some(Instant::now());
            if pressing {
                memo.pressed_at = memo.written_at;
            }
        });
        context.recorder.tell(&service, None, notices(service.status.as_ref(), &report.status));
        context.metrics.status_written("InferenceService");
    }
    note_readiness(context, key, &report);
    if let Some(workload) = workload {
        context.placer.observe(&service.uid().unwrap_or_default(), key, workload.request.clone(), wanted.clone()).await?;
    }
    if decided {
        // Their status counts what is placed there.
        context.member_trigger.extend(existing.keys().chain(wanted.keys()).cloned());
    }
    submit(&service, context, &roll, key, workload, wanted, &seen);
    // What was refused for where it would run may do elsewhere.
    context.note_waiting(key, late.is_some() || plan.is_some_and(|plan| plan.unplaced > 0));
    if decided && existing.iter().any(|(cluster, groups)| wanted.get(cluster).is_none_or(|left| left < groups)) {
        // What was promised and never taken is free from here on, and no event of a member tells.
        context.retry_waiting();
    }
    let undecided = workload.is_some() && plan.is_none();
    let again = if undecided { Some(SETTLE) } else { report.recheck_after };
    Ok(again.map_or_else(Action::await_change, Action::requeue))
}

/// Kind of the workload: of what is rendered, else of what runs.
fn kind(service: &InferenceService, workload: Option<&Workload>) -> WorkloadKind {
    let running = || service.status.as_ref()?.workload.as_ref().map(|workload| workload.kind);
    workload.map(|workload| workload.kind).or_else(running).unwrap_or_default()
}

fn note_readiness(context: &Context, key: &ServiceKey, report: &Report) {
    context.memos.update(key, |memo| {
        memo.all_ready_since = report.all_ready.then(|| memo.all_ready_since.unwrap_or_else(Timestamp::now));
    });
}

/// Asks where the replicas go. `None` while new replicas would go to whichever member happened to answer first.
async fn decide(
    service: &InferenceService,
    context: &Context,
    key: &ServiceKey,
    workload: &Arc<Workload>,
    existing: &BTreeMap<String, u32>,
) -> Result<Option<Plan>, Error> {
    let replicas = u32::try_from(service.spec.replicas.unwrap_or(1)).unwrap_or(0);
    let held = existing.values().fold(0_u32, |sum, groups| sum.saturating_add(*groups));
    if replicas > held && !context.are_members_settled() {
        return Ok(None);
    }
    let want = Want {
        service: key.clone(),
        uid: service.uid().unwrap_or_default(),
        created: service.creation_timestamp().map(|time| time.0),
        replicas,
        request: workload.request.clone(),
        existing: existing.clone(),
    };
    Ok(Some(context.placer.decide(want).await?))
}

/// Hands each member what it shall hold. A task that changes nothing costs nothing.
fn submit(
    service: &InferenceService,
    context: &Context,
    roll: &Roll,
    key: &ServiceKey,
    workload: Option<&Arc<Workload>>,
    wanted: &BTreeMap<String, u32>,
    seen: &Seen,
) {
    let uid = service.uid().unwrap_or_default();
    // Without a rendering what runs stays as it is: nothing is applied, and nothing is removed.
    let Some(workload) = workload else { return };
    let seen_at = context.memos.update(key, |memo| memo.wanted_since.take()).unwrap_or_else(Instant::now);
    for (cluster, replicas) in wanted {
        if let Some(member) = roll.writable(cluster) {
            let task = Task::Apply {
                service: key.clone(),
                uid: uid.clone(),
                generation: service.metadata.generation.unwrap_or_default(),
                workload: workload.clone(),
                replicas: *replicas,
                namespace_labels: resolve::pod_security(context, key),
            };
            member.submit_since(task, seen_at);
        }
    }
    for member in seen.leaving.iter().filter(|_| seen.whole) {
        if let Some(runtime) = roll.writable(&member.cluster) {
            runtime.submit(Task::Delete { service: key.clone(), uid: uid.clone() });
        }
    }
}

/// resourceVersion as a number; Kubernetes compares those of one kind like that.
fn version(service: &InferenceService) -> Option<u64> {
    service.resource_version()?.parse().ok()
}

fn is_older(service: &InferenceService, written: u64) -> bool {
    version(service).is_some_and(|version| version < written)
}
