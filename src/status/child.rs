//! What the status of a child workload proves, and what it doesn't.
//!
//! A `LeaderWorkerSet` needs care. Before 0.9 its status names no generation, and its groups count as ready when the
//! pods of their workers merely exist. In all releases its conditions prove nothing: the loser of a pair keeps the words
//! of when it held, its time and generation are written anew while nothing happens, and none is there before it first
//! held.

use serde_json::Value;

use super::counters::Counts;
use super::observation::{ApplyState, WorkloadView};
use crate::api::lws::Release;
use crate::api::odin::WorkloadKind;

/// Whether the child's controller has seen what was applied last, by whomever if it isn't known.
///
/// A child that names no generation counts as having seen it once it reports at all. Between the write and the next
/// pass of its controller it still shows the counters of before, which is why `Ready` waits.
pub(super) fn has_observed(applied: &ApplyState, view: &WorkloadView) -> bool {
    let generation = match applied {
        ApplyState::Applied { object_generation, .. } => *object_generation,
        ApplyState::Pending | ApplyState::Failed { .. } => view.generation,
    };
    match named_generation(view) {
        Some(observed) => observed >= generation,
        None => !names_generation(view) && has_reported(view) && view.generation >= generation,
    }
}

/// Whether its controller has ever written its status.
pub(super) fn has_reported(view: &WorkloadView) -> bool {
    named_generation(view).is_some() || (!names_generation(view) && (view.replicas > 0 || !view.conditions.is_empty()))
}

/// What it holds. `updated` is that of its own newest revision, whichever that is.
pub(super) fn counts(view: &WorkloadView) -> Counts {
    Counts { current: view.replicas, ready: ready(view), updated: view.updated }
}

/// Whether it says that it replaces groups, where that is all there is to ask. The opposite proves nothing.
pub(super) fn is_updating(view: &WorkloadView) -> bool {
    let is = |condition: &Value, key: &str, word: &str| condition.get(key).and_then(Value::as_str) == Some(word);
    named_generation(view).is_none() && view.conditions.iter().any(|c| is(c, "type", "UpdateInProgress") && is(c, "status", "True"))
}

fn ready(view: &WorkloadView) -> u32 {
    match view.counted_ready {
        Some(counted) => view.ready.min(counted),
        None if names_generation(view) || named_generation(view).is_some() => view.ready,
        // Not counted by anybody who looked at the workers.
        None => 0,
    }
}

/// 0 and absent both mean that nothing was reported.
fn named_generation(view: &WorkloadView) -> Option<i64> {
    view.observed_generation.filter(|generation| *generation > 0)
}

/// Whether it surely is of a kind and release that names the generation it has seen.
fn names_generation(view: &WorkloadView) -> bool {
    view.kind == WorkloadKind::Deployment || view.release.is_some_and(|release| release >= Release::V0_9)
}
