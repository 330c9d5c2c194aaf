//! The objects that a member gets, and the request of one group.
//!
//! [`build`] turns a rendered spec into a [`Workload`] once; [`Workload::manifest`] gives the object for one member's
//! share of the replicas. What a member gets differs between members in nothing but that share.

mod deployment;
mod meta;
mod quantities;
mod rollout;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub use self::meta::hpa_pod_selector;
use self::rollout::Rollout;
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;
use crate::capacity::GroupRequest;
use crate::render::{Refusal, Rendered};

/// The service that an object is made for.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// Its name, which is also the name of the workload.
    pub name: &'a str,
    /// Its namespace, on the hub and in every member.
    pub namespace: &'a str,
    /// Its UID: ownership of what is in members.
    pub uid: &'a str,
    /// Its generation.
    pub generation: i64,
    /// Its labels; only those that Odin copies are used.
    pub labels: &'a BTreeMap<String, String>,
    /// Id of this hub.
    pub hub_id: &'a str,
}

/// The workload of one service, ready to be written to any member.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its namespace in every member.
    pub namespace: String,
    /// Its name in every member.
    pub name: String,
    /// What one group asks of a member.
    pub request: Arc<GroupRequest>,
    /// Hash of what is rendered: the same for every share, generation, hub, and UID of the service. It stands in the
    /// annotation `rendered-hash` of the object.
    pub hash: String,
    object: Value,
    rollout: Option<Rollout>,
}

/// Makes the workload of a service.
///
/// # Errors
/// A [`Refusal`] for what can't be built: a kind of workload that the hub doesn't build, a name that the kind can't
/// have, a quantity or percentage that is none, a pod template that capacity can't read.
pub fn build(owner: &Owner<'_>, rendered: &Rendered) -> Result<Workload, Refusal> {
    if rendered.spec.get("workerTemplate").is_some_and(|t| !t.is_null()) {
        return Err(refuse(
            Reason::WorkloadNotSupported,
            "workerTemplate makes this service a LeaderWorkerSet, which this version of the hub doesn't build: \
             use template alone, which makes it a Deployment",
        ));
    }
    deployment::build(owner, rendered)
}

impl Workload {
    /// The complete object for a member that shall hold so many groups.
    pub fn manifest(&self, replicas: u32) -> Value {
        deployment::manifest(&self.object, self.rollout.as_ref(), replicas)
    }
}

fn refuse(reason: Reason, message: impl Into<String>) -> Refusal {
    Refusal { reason, message: message.into() }
}
