//! What is to be written to a member, and what came of it.

use std::sync::Arc;

use jiff::Timestamp;

use crate::api::odin::{ObjectRef, WorkloadKind};
use crate::api::reason::Reason;
use crate::capacity::ServiceKey;
use crate::workload::Workload;

/// What a member shall hold of one service. The newest task of a service replaces the one before.
#[derive(Clone, Debug)]
pub enum Task {
    /// The workload with so many groups.
    Apply {
        /// The service.
        service: ServiceKey,
        /// UID of the service.
        uid: String,
        /// Generation of the service.
        generation: i64,
        /// The workload.
        workload: Arc<Workload>,
        /// Groups.
        replicas: u32,
    },
    /// Nothing.
    Delete {
        /// The service.
        service: ServiceKey,
        /// UID of the service.
        uid: String,
        /// Kind of the workload.
        kind: WorkloadKind,
        /// Name of the workload; its namespace is that of the service.
        name: String,
    },
}

impl Task {
    /// The service that it is about.
    pub fn service(&self) -> &ServiceKey {
        match self {
            Self::Apply { service, .. } | Self::Delete { service, .. } => service,
        }
    }

    /// UID of the service: tasks with the same one replace each other.
    pub fn uid(&self) -> &str {
        match self {
            Self::Apply { uid, .. } | Self::Delete { uid, .. } => uid,
        }
    }

    /// Whether carrying out either gives the same objects.
    pub fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Apply { uid, generation, workload, replicas, .. },
                Self::Apply { uid: uid2, generation: generation2, workload: workload2, replicas: replicas2, .. },
            ) => uid == uid2 && generation == generation2 && replicas == replicas2 && workload.hash == workload2.hash,
            (Self::Delete { uid, kind, name, .. }, Self::Delete { uid: uid2, kind: kind2, name: name2, .. }) => {
                uid == uid2 && kind == kind2 && name == name2
            }
            _ => false,
        }
    }
}

/// What came of the newest task of a service. Nothing yet while there is no outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The member holds what was asked for.
    Applied {
        /// Generation of the service that was applied.
        generation: i64,
        /// Generation of the object in the member after that.
        object_generation: i64,
        /// UID of the object in the member.
        object_uid: String,
        /// Hash of the workload that was applied.
        hash: String,
        /// Groups that were applied.
        replicas: u32,
    },
    /// The member accepted the deletion, or nothing of ours was there.
    Deleted,
    /// It failed and is tried again.
    Failed {
        /// One word of the API's list.
        reason: Reason,
        /// The member's own words where it answered.
        message: String,
        /// When this failure was first met.
        at: Timestamp,
        /// The object that could not be written.
        object: ObjectRef,
    },
}
