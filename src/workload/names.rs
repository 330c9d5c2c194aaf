//! What a service may be called, by what its name becomes in a member.

use super::refuse;
use crate::api::names::{is_dns_1035_label, is_subdomain};
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;
use crate::render::Refusal;

/// Longest name of a `LeaderWorkerSet` of single pods: with `-` and a hash of 10 it is a label of the leader.
const ALONE: usize = 52;
/// Longest name and group index of a larger one: with two `-` and a hash of 10 they are a label of the workers.
const WITH_INDEX: usize = 51;
/// Digits of a group index that a service may come to have when it is scaled.
const SOON: usize = 3;

/// Checks the name and returns warnings. `highest_index` is that of any group of the service, in a rollout too.
///
/// # Errors
/// `NameNotAllowed` with the rule. Such a workload would be accepted by a member, and only its pods refused.
pub(super) fn check(name: &str, kind: WorkloadKind, size: u32, highest_index: u32) -> Result<Vec<String>, Refusal> {
    let refusal = |message| Err(refuse(Reason::NameNotAllowed, message));
    if kind == WorkloadKind::Deployment {
        return if is_subdomain(name) {
            Ok(Vec::new())
        } else {
            refusal(format!(
                "a Deployment can't be called {name:?}: use at most 253 lowercase letters, digits, '-' and '.', with a letter or digit \
                 first and last in each part"
            ))
        };
    }
    let limit = |digits: usize| if size > 1 { WITH_INDEX.saturating_sub(digits) } else { ALONE };
    let digits = highest_index.to_string().len();
    if !is_dns_1035_label(name) {
        return refusal(format!(
            "a LeaderWorkerSet can't be called {name:?}: use at most {} lowercase letters, digits and '-', with a letter first and no '-' last",
            limit(digits)
        ));
    }
    if name.len() > limit(digits) {
        let groups = if size > 1 { format!(" with groups numbered up to {highest_index}") } else { String::new() };
        return refusal(format!(
            "{name:?} has {} characters, which are too many for a LeaderWorkerSet{groups}: its pods bear the name in a label, use at most {}",
            name.len(),
            limit(digits)
        ));
    }
    if name.len() > limit(digits.max(SOON)) {
        return Ok(vec![format!(
            "the service can't be scaled beyond {} groups, those of a rollout included, under a name of {} characters: use at most {}",
            if name.len() > limit(2) { 10 } else { 100 },
            name.len(),
            limit(SOON)
        )]);
    }
    Ok(Vec::new())
}
