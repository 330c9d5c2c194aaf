//! Conditions as Kubernetes writes them, and the types that the hub uses.

use jiff::Timestamp;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Condition types of an `InferenceService`.
pub mod service {
    /// All wanted groups are ready, in the wanted revision, and seen lately.
    pub const READY: &str = "Ready";
    /// Layers were found, merged, rendered and are valid.
    pub const RENDERED: &str = "Rendered";
    /// Every wanted replica has a member.
    pub const PLACED: &str = "Placed";
    /// Every member holds what was decided for it.
    pub const APPLIED: &str = "Applied";
    /// Replicas are being created, updated or removed.
    pub const PROGRESSING: &str = "Progressing";
}

/// Condition types of a `MemberCluster`.
pub mod member {
    /// The member can take and run services.
    pub const READY: &str = "Ready";
    /// The kubeconfig is there, well formed, and accepted by the member's API server.
    pub const CREDENTIAL_VALID: &str = "CredentialValid";
    /// The member's API server answers.
    pub const REACHABLE: &str = "Reachable";
    /// The member serves the `LeaderWorkerSet` kind.
    pub const LEADER_WORKER_SET_AVAILABLE: &str = "LeaderWorkerSetAvailable";
    /// Every kind that the hub watches in the member has been listed.
    pub const SYNCED: &str = "Synced";
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It can't be told now.
    Unknown,
}

impl Truth {
    /// As the API spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// Status of the condition `type_`, if it is in the list.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}

/// Whether the condition `type_` is in the list with status True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|c| c.status == "True")
}

/// Sets one condition in a list that stays sorted by type. The transition time moves only when the status does.
/// Returns whether anything changed.
pub fn set(
    conditions: &mut Vec<Condition>,
    now: Timestamp,
    type_: &str,
    status: Truth,
    reason: &str,
    message: &str,
    observed_generation: Option<i64>,
) -> bool {
    let at = conditions.binary_search_by(|c| c.type_.as_str().cmp(type_));
    let mut next = Condition {
        type_: type_.to_owned(),
        status: status.as_str().to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation,
        last_transition_time: Time(now),
    };
    match at {
        Ok(i) => match conditions.get_mut(i) {
            Some(old) => {
                if old.status == next.status {
                    next.last_transition_time = old.last_transition_time.clone();
                }
                let changed = *old != next;
                *old = next;
                changed
            }
            None => false,
        },
        Err(i) => {
            conditions.insert(i, next);
            true
        }
    }
}
