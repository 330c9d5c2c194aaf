//! What decides the kind and size of the workload, and how it rolls out.

use serde_json::Value;

use super::super::provenance::Provenance;
use super::{Faults, present};
use crate::api::reason::Reason;
use crate::merge::{Path, Step};

pub(super) fn check(spec: &Value, provenance: &Provenance<'_>, faults: &mut Faults) {
    let workers = present(spec, "workerTemplate").is_some();
    if !workers && present(spec, "template").is_none() {
        faults.add(
            Reason::NoPodTemplate,
            "no layer sets spec.template or spec.workerTemplate: write one, or name a template or a runtime base that has one".to_owned(),
        );
    }
    parallelism(spec, workers, provenance, faults);
    rollout(spec, workers, provenance, faults);
}

fn parallelism(spec: &Value, workers: bool, provenance: &Provenance<'_>, faults: &mut Faults) {
    let place = |name: &str| Path::default().then(Step::field("parallelism")).then(Step::field(name));
    let number = |name: &str| spec.get("parallelism").and_then(|p| p.get(name)).and_then(Value::as_i64);
    let (data, local, pipeline) = (number("data"), number("dataLocal"), number("pipeline"));
    if workers && data.is_none() && pipeline.is_none() {
        let worker = provenance.locate(&Path::default().then(Step::field("workerTemplate")));
        faults.add(
            Reason::WorkerNeedsParallelism,
            format!(
                "{worker} makes this service a group of pods: set spec.parallelism.data or spec.parallelism.pipeline, which give its size"
            ),
        );
    }
    if data.is_some() && pipeline.is_some() {
        faults.add(
            Reason::ParallelismConflict,
            format!(
                "{} and {} exclude each other: a group is spread by data or by pipeline stages; use other layers or remove one",
                provenance.locate(&place("pipeline")),
                provenance.locate(&place("data")),
            ),
        );
    }
    match (data, local) {
        (None, Some(_)) => faults.add(
            Reason::ParallelismConflict,
            format!(
                "{} counts ranks in one pod, but no layer sets spec.parallelism.data, the ranks of a group: set it",
                provenance.locate(&place("dataLocal"))
            ),
        ),
        (Some(data), Some(local)) if local < 1 || data % local != 0 => faults.add(
            Reason::ParallelismRemainder,
            format!(
                "{} is {data}, which {} = {local} doesn't divide: each pod of a group takes the same number of ranks",
                provenance.locate(&place("data")),
                provenance.locate(&place("dataLocal")),
            ),
        ),
        _ => {}
    }
}

fn rollout(spec: &Value, workers: bool, provenance: &Provenance<'_>, faults: &mut Faults) {
    let Some(strategy) = present(spec, "rolloutStrategy") else { return };
    let place = Path::default().then(Step::field("rolloutStrategy"));
    let update = present(strategy, "rollingUpdate");
    let update_place = place.clone().then(Step::field("rollingUpdate"));
    let field = |name: &str| update.and_then(|update| present(update, name));
    match strategy.get("type").and_then(Value::as_str).unwrap_or("RollingUpdate") {
        "RollingUpdate" => {}
        "Recreate" if workers => faults.add(
            Reason::RolloutNotSupported,
            format!(
                "{} is Recreate, which only a Deployment has: with workerTemplate use RollingUpdate",
                provenance.locate(&place.then(Step::field("type")))
            ),
        ),
        "Recreate" => {
            if update.is_some() {
                faults.add(
                    Reason::RolloutNotSupported,
                    format!("{} has no meaning with type Recreate: remove one of the two", provenance.locate(&update_place)),
                );
            }
        }
        other => faults.add(
            Reason::RolloutNotSupported,
            format!("{} is {other:?}: use RollingUpdate or Recreate", provenance.locate(&place.then(Step::field("type")))),
        ),
    }
    if !workers && field("partition").is_some() {
        let partition = update_place.clone().then(Step::field("partition"));
        faults.add(
            Reason::RolloutNotSupported,
            format!("{} is for a group of pods: a Deployment has no partition, remove it", provenance.locate(&partition)),
        );
    }
    // Without a value a Deployment allows a quarter of both; a LeaderWorkerSet one missing group and none in addition.
    let surge_is_zero = field("maxSurge").map_or(workers, is_zero);
    let unavailable_is_zero = field("maxUnavailable").is_some_and(is_zero);
    if surge_is_zero && unavailable_is_zero {
        faults.add(
            Reason::RolloutStuck,
            format!("{} allows neither a missing nor an additional group, so nothing could ever be replaced: set maxSurge or maxUnavailable above 0", provenance.locate(&update_place)),
        );
    }
}

/// Zero as a number or as a percentage. A percentage that comes to zero only because there are few replicas isn't: for
/// each member's share it is raised to one group.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim_end_matches('%').parse::<u32>() == Ok(0),
        value => value.as_i64() == Some(0),
    }
}
