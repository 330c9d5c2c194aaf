//! A service, explained.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;

use super::state::{State, advice, fact, indented, paragraph, part};
use crate::api::condition::{self, service::READY, service::RENDERED};
use crate::api::odin::{InferenceService, ObjectRef, Phase, Placement, Rejection, Source};
use crate::api::reason::Reason;
use crate::cli::reasons::{Explained, explained};
use crate::cli::table::{Table, age};

/// All that the hub's API server knows of why a service is as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explanation {
    namespace: String,
    name: String,
    /// Nothing while the hub has not looked at it.
    ready: Option<State>,
    /// Why it is not ready.
    cause: Option<Cause>,
    /// Other conditions that don't hold.
    conditions: Vec<State>,
    wanted: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Counts>,
    generation: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
    placements: Vec<Placement>,
    rejections: Vec<ExplainedRejection>,
    rejection_summary: BTreeMap<String, i32>,
    sources: Vec<Source>,
    warnings: Vec<String>,
}

/// Groups over all members.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    replicas: i32,
    ready_replicas: i32,
    updated_replicas: i32,
    unplaced_replicas: i32,
}

/// The one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cause {
    reason: String,
    message: String,
    since: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<ObjectRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    #[serde(flatten)]
    explained: Option<Explained>,
}

/// Why a member doesn't hold it, or no more of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ExplainedRejection {
    #[serde(flatten)]
    rejection: Rejection,
    #[serde(flatten)]
    explained: Option<Explained>,
}

/// Gathers the explanation of a service.
pub(super) fn explain(service: &InferenceService) -> Explanation {
    let status = service.status.clone().unwrap_or_default();
    let ready = condition::find(&status.conditions, READY);
    let rendered = condition::find(&status.conditions, RENDERED);
    Explanation {
        namespace: service.metadata.namespace.clone().unwrap_or_default(),
        name: service.metadata.name.clone().unwrap_or_default(),
        ready: ready.map(State::of),
        cause: cause(service),
        conditions: status.conditions.iter().filter(|c| c.type_ != READY && is_trouble(c)).map(State::of).collect(),
        wanted: service.spec.replicas.unwrap_or(1),
        counts: status.replicas.map(|replicas| Counts {
            replicas,
            ready_replicas: status.ready_replicas.unwrap_or_default(),
            updated_replicas: status.updated_replicas.unwrap_or_default(),
            unplaced_replicas: status.unplaced_replicas.unwrap_or_default(),
        }),
        generation: service.metadata.generation.unwrap_or_default(),
        observed_generation: status.observed_generation,
        placements: status.placements,
        rejections: status
            .rejections
            .into_iter()
            .map(|rejection| ExplainedRejection { explained: explained(&rejection.reason), rejection })
            .collect(),
        rejection_summary: status.rejection_summary,
        sources: status.sources,
        warnings: rendered.map(warnings).unwrap_or_default(),
    }
}

/// `Progressing` is True while something is going on, and no trouble either way.
fn is_trouble(condition: &condition::Condition) -> bool {
    condition.status != "True" && condition.type_ != condition::service::PROGRESSING
}

/// The diagnostic; before there is a workload to have one, the reason of `Ready` is all there is.
fn cause(service: &InferenceService) -> Option<Cause> {
    let status = service.status.as_ref()?;
    let ready = condition::find(&status.conditions, READY).filter(|ready| ready.status != "True")?;
    Some(match status.workload.as_ref().and_then(|workload| workload.diagnostic.as_ref()) {
        Some(diagnostic) => Cause {
            reason: diagnostic.reason.clone(),
            message: diagnostic.message.clone(),
            since: diagnostic.observed_at.clone(),
            cluster: diagnostic.cluster.clone(),
            object: Some(diagnostic.involved_object.clone()),
            container: diagnostic.container.clone(),
            explained: explained(&diagnostic.reason),
        },
        None => Cause {
            reason: ready.reason.clone(),
            message: ready.message.clone(),
            since: ready.last_transition_time.clone(),
            cluster: None,
            object: None,
            container: None,
            explained: explained(&ready.reason),
        },
    })
}

/// What the hub adds to the good news of `Rendered`: each after a semicolon.
fn warnings(rendered: &condition::Condition) -> Vec<String> {
    if rendered.reason != Reason::Rendered.as_str() {
        return Vec::new();
    }
    rendered.message.split("; ").skip(1).map(ToOwned::to_owned).collect()
}

/// The explanation in words.
pub(super) fn text(told: &Explanation, now: Timestamp) -> String {
    let what = format!("InferenceService {}/{}", told.namespace, told.name);
    let mut text = match &told.ready {
        Some(ready) => ready.headline(&what, now),
        None => format!("{what}: the hub has not looked at it yet. Is the hub running?\n"),
    };
    facts(&mut text, told);
    if let Some(cause) = &told.cause {
        because(&mut text, cause, now);
    }
    let cause = told.cause.as_ref().map(|cause| cause.reason.as_str());
    for state in told.conditions.iter().filter(|state| Some(state.reason.as_str()) != cause) {
        part(&mut text, &format!("{} is {}: {}", state.type_, state.status, state.reason));
        paragraph(&mut text, "", &state.message);
        advice(&mut text, state.explained.as_ref());
    }
    where_it_is(&mut text, told, now);
    why_not_elsewhere(&mut text, told, cause);
    if !told.sources.is_empty() {
        part(&mut text, "Layers, the lowest first:");
        for source in &told.sources {
            paragraph(&mut text, "", &format!("{source}, generation {}", source.generation));
        }
    }
    if !told.warnings.is_empty() {
        part(&mut text, "Warnings:");
        for warning in &told.warnings {
            paragraph(&mut text, "", warning);
        }
    }
    text
}

fn facts(text: &mut String, told: &Explanation) {
    let replicas = |count: i32| if count == 1 { "1 replica".to_owned() } else { format!("{count} replicas") };
    fact(text, "Wanted", &replicas(told.wanted));
    if let Some(counts) = &told.counts {
        let Counts { replicas, ready_replicas, updated_replicas, unplaced_replicas } = counts;
        fact(
            text,
            "There are",
            &format!("{replicas}: {ready_replicas} ready, {updated_replicas} up to date, {unplaced_replicas} without a place"),
        );
    }
    if told.observed_generation != Some(told.generation) {
        let arrived = told.observed_generation.map_or_else(|| "none is at work everywhere yet".to_owned(), |g| format!("{g} is at work"));
        fact(text, "Generation", &format!("{}; {arrived}", told.generation));
    }
}

fn because(text: &mut String, cause: &Cause, now: Timestamp) {
    part(text, &format!("Because: {}", cause.reason));
    paragraph(text, "", &cause.message);
    let mut place = Vec::new();
    if let Some(object) = &cause.object {
        let namespace = object.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        place.push(format!("{} {namespace}{}", object.kind, object.name));
    }
    place.extend(cause.container.as_ref().map(|container| format!("container {container}")));
    // A cause that the hub found by itself names the service, also when it speaks of a member.
    let on_hub = cause.object.as_ref().is_none_or(|object| object.kind == "InferenceService");
    let cluster = cause.cluster.as_ref().filter(|_| !on_hub);
    place.push(cluster.map_or_else(|| "on the hub".to_owned(), |cluster| format!("in {cluster}")));
    place.push(format!("since {}", age(Some(&cause.since), now)));
    paragraph(text, "Seen at:", &place.join(", "));
    advice(text, cause.explained.as_ref());
}

fn where_it_is(text: &mut String, told: &Explanation, now: Timestamp) {
    if told.placements.is_empty() {
        return;
    }
    part(text, "Where it is:");
    let mut table = Table::new(["CLUSTER", "PHASE", "WANTED", "THERE", "READY", "UP-TO-DATE", "REASON"]);
    let count = |count: Option<i32>| count.map(|count| count.to_string());
    for placement in &told.placements {
        table.push([
            Some(placement.cluster.clone()),
            Some(phase(placement.phase).to_owned()),
            Some(placement.replicas.to_string()),
            count(placement.current_replicas),
            count(placement.ready_replicas),
            count(placement.updated_replicas),
            placement.reason.clone(),
        ]);
    }
    indented(text, &table.to_string());
    for placement in &told.placements {
        if let Some(message) = &placement.message {
            paragraph(text, &format!("{}:", placement.cluster), message);
        }
        if placement.stale {
            let seen = placement.last_seen.as_ref().map_or_else(|| "never".to_owned(), |at| format!("{} ago", age(Some(at), now)));
            paragraph(
                text,
                &format!("{}:", placement.cluster),
                &format!("can't be seen; the counts are the last known ones, last seen {seen}"),
            );
        }
    }
}

/// As the API spells it.
fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Planned => "Planned",
        Phase::Applied => "Applied",
        Phase::Ready => "Ready",
        Phase::Leaving => "Leaving",
        Phase::Suspended => "Suspended",
        Phase::Unknown => "Unknown",
    }
}

fn why_not_elsewhere(text: &mut String, told: &Explanation, cause: Option<&str>) {
    if told.rejections.is_empty() {
        return;
    }
    part(text, "Why not elsewhere:");
    let mut table = Table::new(["CLUSTER", "REASON", "MESSAGE"]);
    for ExplainedRejection { rejection, .. } in &told.rejections {
        table.push([&rejection.cluster, &rejection.reason, &rejection.message].map(|cell| Some(cell.clone())));
    }
    indented(text, &table.to_string());
    let all: i64 = told.rejection_summary.values().map(|count| i64::from(*count)).sum();
    if all > told.rejections.len() as i64 {
        let counts: Vec<String> = told.rejection_summary.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        paragraph(text, "", &format!("{} of {all} members are shown; all by reason: {}", told.rejections.len(), counts.join(", ")));
    }
    let mut told_already: BTreeSet<&str> = cause.into_iter().collect();
    for ExplainedRejection { rejection, explained } in &told.rejections {
        if let Some(explained) = explained.as_ref().filter(|_| told_already.insert(&rejection.reason)) {
            let _ = writeln!(text, "\n  {}", rejection.reason);
            advice(text, Some(explained));
        }
    }
}

#[cfg(test)]
mod tests;
