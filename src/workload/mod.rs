//! The objects that a member gets, and the request of one group.
//!
//! [`build`] turns a rendered spec into a [`Workload`] once; [`Workload::manifest`] gives the object for one member's
//! share of the replicas. What a member gets differs between members in nothing but that share. The steps of it:
//! 1. the pods of a group, with the labels that all of them, or only those behind the service, bear (`group`, `pools`);
//! 2. the workload around them (`deployment`, `lws`, `rollout`), and the Service before them (`service`);
//! 3. the hub's own marks on both (`meta`).

mod deployment;
mod group;
mod lws;
mod meta;
mod names;
pub mod policy;
mod pools;
mod quantities;
mod rollout;
mod service;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use self::group::Group;
pub use self::meta::hpa_pod_selector;
use self::pools::Pools;
use self::rollout::Rollout;
pub use self::service::{KubeService, service_name};
use crate::api::lws::EXCLUSIVE_TOPOLOGY;
use crate::api::odin::{InferenceService, WorkloadKind};
use crate::api::reason::Reason;
use crate::capacity::GroupRequest;
use crate::render::{Refusal, Rendered, hash};

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
    /// Its annotations; only the exclusive topology is used.
    pub annotations: &'a BTreeMap<String, String>,
    /// The `InferencePools` that it names, as far as they exist in its namespace on the hub.
    pub pools: &'a [Pool],
    /// Id of this hub.
    pub hub_id: &'a str,
}

impl<'a> Owner<'a> {
    /// A service as it stands on the hub with this id.
    pub fn of(service: &'a InferenceService, pools: &'a [Pool], hub_id: &'a str) -> Self {
        Self {
            name: service.metadata.name.as_deref().unwrap_or_default(),
            namespace: service.metadata.namespace.as_deref().unwrap_or_default(),
            uid: service.metadata.uid.as_deref().unwrap_or_default(),
            generation: service.metadata.generation.unwrap_or_default(),
            labels: service.labels(),
            annotations: service.annotations(),
            pools,
            hub_id,
        }
    }
}

/// An `InferencePool` of which a service's pods become part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Its `spec.selector.matchLabels`.
    pub labels: BTreeMap<String, String>,
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
    /// Hash of what is rendered, the Service included: the same for every share, generation, hub, and UID of the
    /// service. It stands in the annotation `rendered-hash` of both objects.
    pub hash: String,
    /// Groups with a lower index keep the old revision; 0 for a Deployment.
    pub partition: u32,
    /// Key of the node label of which each value holds one group at most, from the annotation of the service.
    pub exclusive_topology: Option<String>,
    /// What is allowed but hardly meant, in sentences for the service's author, besides the warnings of the rendering.
    pub warnings: Vec<String>,
    object: Value,
    service: KubeService,
    rollout: Rollout,
}

/// Makes the workload of a service.
///
/// # Errors
/// A [`Refusal`] for what can't be built: a name that the kind can't have, a quantity or percentage that is none, a pod
/// template that capacity can't read, labels on which template, service and pools disagree.
pub fn build(owner: &Owner<'_>, rendered: &Rendered) -> Result<Workload, Refusal> {
    let spec = &rendered.spec;
    let pools = Pools::of(owner, spec)?;
    let group = Group::of(owner, spec, &pools)?;
    let rollout = Rollout::of(spec, group.kind)?;
    let highest_index = rollout.highest_index(replicas(spec));
    let exclusive_topology = group::exclusive_topology(owner, group.kind)?;
    let mut warnings = names::check(owner.name, group.kind, group.size, highest_index)?;
    warnings.extend(group.warnings(owner));
    warnings.extend(pools.warnings());

    let kind = group.kind;
    let request = group.request(exclusive_topology)?;
    let labels = meta::object_labels(owner, spec);
    let mut service = KubeService { name: service_name(owner.name), object: service::object(owner, &group, &labels) };
    let (version, mut workload_spec) = match kind {
        WorkloadKind::Deployment => ("apps/v1", deployment::spec(owner, spec, group)),
        WorkloadKind::LeaderWorkerSet => ("leaderworkerset.x-k8s.io/v1", lws::spec(group)),
    };
    if let Some(written) = rollout.as_written() {
        workload_spec.insert(rollout.field().to_owned(), written);
    }
    let annotations: Map<_, _> = exclusive_topology.iter().map(|key| (EXCLUSIVE_TOPOLOGY.to_owned(), json!(key))).collect();
    let mut object = json!({
        "apiVersion": version,
        "kind": kind.as_str(),
        "metadata": {"name": owner.name, "namespace": owner.namespace, "labels": labels, "annotations": annotations},
        "spec": workload_spec,
    });
    let hash = hash::of(&json!([object, service.object]));
    meta::mark(&mut object, owner, &hash);
    meta::mark(&mut service.object, owner, &hash);
    Ok(Workload {
        kind,
        namespace: owner.namespace.to_owned(),
        name: owner.name.to_owned(),
        request: Arc::new(request),
        hash,
        partition: rollout.partition(),
        exclusive_topology: exclusive_topology.map(ToOwned::to_owned),
        warnings,
        object,
        service,
        rollout,
    })
}

/// What one group of a service asks of a member, from its rendered spec alone.
///
/// # Errors
/// As [`build`], for what concerns the pods.
pub fn request_of(owner: &Owner<'_>, spec: &Value) -> Result<GroupRequest, Refusal> {
    let group = Group::of(owner, spec, &Pools::of(owner, spec)?)?;
    group.request(group::exclusive_topology(owner, group.kind)?)
}

/// Groups that the service wants over all members.
fn replicas(spec: &Value) -> u32 {
    let written = spec.get("replicas").and_then(Value::as_i64).unwrap_or(1);
    u32::try_from(written.max(0)).unwrap_or(u32::MAX)
}

impl Workload {
    /// The complete object for a member that shall hold so many groups.
    pub fn manifest(&self, replicas: u32) -> Value {
        let mut object = self.object.clone();
        if let Some(Value::Object(spec)) = object.get_mut("spec") {
            spec.insert("replicas".to_owned(), json!(replicas));
            if let Some(strategy) = self.rollout.for_share(replicas) {
                spec.insert(self.rollout.field().to_owned(), strategy);
            }
        }
        object
    }

    /// The Kubernetes Service before the pods, the same in every member that holds groups.
    pub fn service(&self) -> &KubeService {
        &self.service
    }

    /// Groups that must find room beside the running ones before a rollout of that share can start. 0 if the rollout may
    /// begin with taking a running group away.
    pub fn rollout_spare(&self, replicas: u32) -> u32 {
        self.rollout.spare(replicas)
    }
}

fn refuse(reason: Reason, message: impl Into<String>) -> Refusal {
    Refusal { reason, message: message.into() }
}

/// A field that is there and isn't null.
fn present<'v>(value: &'v Value, field: &str) -> Option<&'v Value> {
    value.get(field).filter(|value| !value.is_null())
}

/// A list's items; none for everything else.
fn items<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
