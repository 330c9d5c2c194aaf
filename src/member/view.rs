//! What the hub knows of a member as a whole.

use std::sync::Arc;

use jiff::Timestamp;

use crate::api::condition::Truth;
use crate::api::federation::CredentialStatus;
use crate::api::lws::Release;
use crate::api::reason::Reason;
use crate::capacity::Snapshot;

/// Something that holds or not, and why: what a condition is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Whether it holds.
    pub truth: Truth,
    /// One word of the API's list.
    pub reason: Reason,
    /// For people.
    pub message: String,
}

impl Fact {
    /// It holds.
    pub fn yes(reason: Reason, message: impl Into<String>) -> Self {
        Self { truth: Truth::True, reason, message: message.into() }
    }

    /// It does not hold.
    pub fn no(reason: Reason, message: impl Into<String>) -> Self {
        Self { truth: Truth::False, reason, message: message.into() }
    }

    /// It can't be told now.
    pub fn unknown(reason: Reason, message: impl Into<String>) -> Self {
        Self { truth: Truth::Unknown, reason, message: message.into() }
    }

    /// Whether it surely holds.
    pub fn holds(&self) -> bool {
        self.truth == Truth::True
    }
}

/// What the hub knows of a member as a whole, at one moment.
#[derive(Clone, Debug)]
pub struct MemberView {
    /// Whether the member can take services: reachable, credential accepted and permitted, and capacity known.
    pub ready: Fact,
    /// Whether its API server answers; damped both ways.
    pub reachable: Fact,
    /// Whether its API server accepts the credential.
    pub credential_valid: Fact,
    /// Whether every kind that the hub watches there has been listed; a kind that can't be is named with the verb.
    pub synced: Fact,
    /// Whether the `LeaderWorkerSet` kind is served there.
    pub leader_worker_set: Fact,
    /// UID of its namespace kube-system.
    pub cluster_uid: Option<String>,
    /// Version of its API server, as `v1.36.3`.
    pub kubernetes_version: Option<String>,
    /// API versions of `LeaderWorkerSet` that it serves, with its release, as `v1 (0.9+)`.
    pub leader_worker_set_version: Option<String>,
    /// The release of `LeaderWorkerSet` there, once it is known; `None` also while it isn't installed.
    pub leader_worker_set_release: Option<Release>,
    /// About the credential.
    pub credential: CredentialStatus,
    /// Last known capacity; `None` until nodes and pods were listed once.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Whether `snapshot` follows the member now: nodes and pods are listed and their watches don't fail.
    pub capacity_known: bool,
    /// Why our own Deployments there aren't followed although it answers, and since when.
    pub workloads_refused: Option<(String, Timestamp)>,
    /// The same for our `LeaderWorkerSets`.
    pub leader_worker_sets_refused: Option<(String, Timestamp)>,
    /// When it last answered.
    pub last_seen: Option<Timestamp>,
    /// Since when it has refused the credential on end.
    pub refused_since: Option<Timestamp>,
}
