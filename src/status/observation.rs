//! What the hub sees of a service in one member.

use jiff::Timestamp;
use serde_json::Value;

use super::pod_signal::PodSignal;
use crate::api::lws::Release;
use crate::api::odin::{ObjectRef, WorkloadKind};
use crate::api::reason::Reason;

/// What the hub sees of a service in one member.
///
/// After a start of the hub there is none for a member that was neither listed nor found unreachable yet; a service
/// is reported on when all members of its placements have one, so that a restart doesn't look like a loss.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberObservation {
    /// Name of the `MemberCluster`.
    pub cluster: String,
    /// The member's API server answers.
    pub reachable: bool,
    /// When it last answered.
    pub last_seen: Option<Timestamp>,
    /// Why the member can't be seen, if it is more than silence; counts of such a member are the last known ones.
    pub trouble: Option<MemberTrouble>,
    /// Groups that the plan wants here; 0 for a member that the service leaves.
    pub wanted: u32,
    /// How far applying is.
    pub applied: ApplyState,
    /// The workload as it is there, if it is: the one of the kind that the service has now, else what is left of the
    /// other kind.
    pub workload: Option<WorkloadView>,
    /// The workload of the other kind that serves until its successor was accepted.
    pub previous: Option<WorkloadView>,
    /// Trouble of the service's pods, and of what makes them, there: one signal an object at most.
    pub signals: Vec<PodSignal>,
    /// Name of the Kubernetes Service there, if it is there.
    pub service: Option<String>,
}

/// Why a member can't be seen.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberTrouble {
    /// `MemberUnreachable`, `CredentialInvalid`, `CredentialMissing` and the like.
    pub reason: Reason,
    /// For people; nothing of the credential itself.
    pub message: String,
    /// When it began.
    pub since: Timestamp,
}

/// How far applying to one member is.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ApplyState {
    /// Nothing has been applied yet that is known of.
    #[default]
    Pending,
    /// The member accepted it.
    Applied {
        /// Generation of the service that was applied.
        generation: i64,
        /// Generation that the object had after it.
        object_generation: i64,
        /// [`crate::workload::Workload::hash`] of what was applied.
        hash: String,
    },
    /// The member refused it, or the hub didn't try for a reason that lies in the member.
    Failed {
        /// What kind of refusal.
        reason: Reason,
        /// The member's answer.
        message: String,
        /// When it answered.
        at: Timestamp,
        /// The object that was refused, or that stands in the way.
        object: ObjectRef,
    },
}

/// The workload of a service as it is in a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkloadView {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its UID.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// `status.observedGeneration`; 0 and absent both mean that nothing was reported.
    pub observed_generation: Option<i64>,
    /// `status.replicas`, 0 when absent.
    pub replicas: u32,
    /// `status.readyReplicas`, 0 when absent.
    pub ready: u32,
    /// `status.updatedReplicas`, 0 when absent.
    pub updated: u32,
    /// `status.conditions`, untouched.
    pub conditions: Vec<Value>,
    /// `metadata.deletionTimestamp`.
    pub deletion_timestamp: Option<Timestamp>,
    /// Annotation `rendered-hash`.
    pub rendered_hash: Option<String>,
    /// Annotation `generation`: generation of the service that was applied last.
    pub service_generation: Option<i64>,
    /// Groups that are ready by the hub's own count of leader pods and worker `StatefulSets`, for a `LeaderWorkerSet` of a
    /// release that counts workers as ready when they merely exist.
    pub counted_ready: Option<u32>,
    /// The release of `LeaderWorkerSet` that reports, for one.
    pub release: Option<Release>,
    /// Annotation `exclusive-topology` of a `LeaderWorkerSet`.
    pub exclusive_topology: Option<String>,
}
