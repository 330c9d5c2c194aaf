//! What is to be written to a member, and what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::api::odin::ObjectRef;
use crate::api::reason::Reason;
use crate::capacity::ServiceKey;
use crate::workload::Workload;

/// What a member shall hold of one service. The newest task of a service replaces the one before.
#[derive(Clone, Debug)]
pub enum Task {
    /// The workload with so many groups, and its Kubernetes Service.
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
        /// Labels of the service's namespace, should the hub have to make it.
        namespace_labels: Arc<BTreeMap<String, String>>,
    },
    /// Nothing: its workload of either kind, and its Kubernetes Service, go.
    Delete {
        /// The service.
        service: ServiceKey,
        /// UID of the service.
        uid: String,
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
                Self::Apply { uid, generation, workload, replicas, namespace_labels, .. },
                Self::Apply {
                    uid: uid2,
                    generation: generation2,
                    workload: workload2,
                    replicas: replicas2,
                    namespace_labels: namespace_labels2,
                    ..
                },
            ) => {
                uid == uid2
                    && generation == generation2
                    && replicas == replicas2
                    && workload.hash == workload2.hash
                    && namespace_labels == namespace_labels2
            }
            (Self::Delete { uid, .. }, Self::Delete { uid: uid2, .. }) => uid == uid2,
            _ => false,
        }
    }
}

/// What a member accepted of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Generation of the service that was applied.
    pub generation: i64,
    /// Generation of the workload in the member after that.
    pub object_generation: i64,
    /// UID of the workload in the member.
    pub object_uid: String,
    /// Hash of the workload that was applied.
    pub hash: String,
    /// Groups that were applied.
    pub replicas: u32,
}

/// What came of the newest task of a service. Nothing yet while there is no outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The member holds what was asked for: the workload and its Service.
    Applied(Applied),
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
        /// The workload, where that was accepted, and something beside it was not.
        applied: Option<Applied>,
    },
}
