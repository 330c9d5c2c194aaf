//! Our workloads, and what belongs to them.

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::Value;

use super::owned::Owned;
use crate::api::lws::Release;
use crate::api::odin::WorkloadKind;
use crate::capacity::ServiceKey;
use crate::member::groups::{End, Groups};
use crate::member::lean::{Event, Kind, Marks, Metadata, Place, Service, StatefulSet, Workload, spec_print};
use crate::status::PodStatusView;

/// A pod that leads a group of a `LeaderWorkerSet`, ready or not; its owner is the `StatefulSet` of all leaders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leader {
    pub(super) group: u32,
    pub(super) revision: String,
    pub(super) ready: bool,
}

/// A pod that isn't ready; its owner is what controls it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unready {
    pub(super) status: PodStatusView,
    pub(super) group: Option<u32>,
}

/// Our workloads and what belongs to them, each by UID and by the UID of what it belongs to.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// Owner: the service on the hub.
    pub(super) workloads: Owned<Workload>,
    /// Owner: the service on the hub.
    pub(super) services: Owned<Service>,
    /// Owner: the Deployment.
    pub(super) replica_sets: Owned<()>,
    /// Owner: the `LeaderWorkerSet`, or the leader of a group.
    pub(super) stateful_sets: Owned<StatefulSet>,
    pub(super) leaders: Owned<Leader>,
    /// Pods of services.
    pub(super) pods: Owned<Unready>,
    /// Owner: what the event is about.
    pub(super) events: Owned<(Kind, Event)>,
    pub(super) groups: Groups,
    /// `LeaderWorkerSets` that haven't all that is wanted of them.
    pub(super) unsettled: HashSet<String>,
    pub(super) release: Option<Release>,
}

/// The state of an object, as far as it tells whether anyone changed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::member) struct Stamp {
    /// Its UID.
    pub(in crate::member) uid: String,
    /// Its generation; 0 for a kind without.
    pub(in crate::member) generation: i64,
    /// The same for a kind without generation; else empty.
    pub(in crate::member) spec: String,
    /// Its resourceVersion: which of two states of an object is the later one.
    pub(in crate::member) version: u64,
}

impl Stamp {
    /// Of a whole object; nothing if it is none.
    pub(in crate::member) fn of(kind: Kind, object: &Value) -> Option<Self> {
        let meta = object.get("metadata")?;
        Some(Self {
            uid: meta.get("uid")?.as_str()?.to_owned(),
            generation: meta.get("generation").and_then(Value::as_i64).unwrap_or_default(),
            spec: if kind == Kind::Service { object.get("spec").map(spec_print).unwrap_or_default() } else { String::new() },
            version: version(meta.get("resourceVersion")?.as_str()?),
        })
    }

    /// Whether nobody changed the object between the two.
    pub(in crate::member) fn is_same(&self, other: &Self) -> bool {
        self.uid == other.uid && self.generation == other.generation && self.spec == other.spec
    }
}

fn version(text: &str) -> u64 {
    text.parse().unwrap_or_default()
}

/// An object as its watch last saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::member) struct Live {
    pub(in crate::member) stamp: Stamp,
    /// It bears the marks that were asked for.
    pub(in crate::member) bears: bool,
    /// It is being deleted.
    pub(in crate::member) leaving: bool,
}

impl Objects {
    /// The workload of a service. The name counts too: someone may have copied our object, labels and all.
    pub(super) fn workload(&self, kind: WorkloadKind, service_uid: &str, namespace: &str, name: &str) -> Option<&Workload> {
        let mut of_service = self.workloads.of(service_uid).map(|(_, workload)| workload);
        of_service.find(|workload| workload.kind == kind && workload.metadata.namespace == namespace && workload.metadata.name == name)
    }

    /// Metadata of an object of a service, and the print of its spec for a kind without generation.
    pub(super) fn meta(&self, kind: Kind, service_uid: &str, namespace: &str, name: &str) -> Option<(&Metadata, &str)> {
        let workload = |kind| Some((&self.workload(kind, service_uid, namespace, name)?.metadata, ""));
        match kind {
            Kind::Deployment => workload(WorkloadKind::Deployment),
            Kind::LeaderWorkerSet => workload(WorkloadKind::LeaderWorkerSet),
            Kind::Service => {
                let mut of_service = self.services.of(service_uid).map(|(_, service)| service);
                let service = of_service.find(|service| service.metadata.namespace == namespace && service.metadata.name == name)?;
                Some((&service.metadata, service.spec_print.as_str()))
            }
            _ => None,
        }
    }

    pub(super) fn live(&self, kind: Kind, service_uid: &str, namespace: &str, name: &str, marks: &Marks<'_>) -> Option<Live> {
        let (meta, spec) = self.meta(kind, service_uid, namespace, name)?;
        Some(Live {
            stamp: Stamp {
                uid: meta.uid.clone(),
                generation: meta.generation,
                spec: spec.to_owned(),
                version: version(&meta.resource_version),
            },
            bears: meta.marks() == *marks,
            leaving: meta.deletion_timestamp.is_some(),
        })
    }

    /// UID of the workload that what has this UID, a `ReplicaSet` or `StatefulSet`, makes pods for.
    pub(super) fn workload_above(&self, set: &str) -> Option<&str> {
        if let Some(deployment) = self.replica_sets.owner(set) {
            return Some(deployment);
        }
        let owner = self.stateful_sets.owner(set)?;
        match self.leaders.owner(owner) {
            None => Some(owner),
            Some(leaders) => self.stateful_sets.owner(leaders),
        }
    }

    /// The service on the hub that the pods of a `ReplicaSet` or `StatefulSet` belong to.
    pub(super) fn service_above(&self, set: &str) -> Option<ServiceKey> {
        self.service_of(self.workload_above(set)?)
    }

    pub(super) fn service_of(&self, workload: &str) -> Option<ServiceKey> {
        self.workloads.get(workload).map(|workload| workload.metadata.service())
    }

    /// The `StatefulSets` that make the pods of a `LeaderWorkerSet`: of all leaders, then of the workers of each.
    pub(super) fn sets_of<'a>(&'a self, workload: &'a str) -> impl Iterator<Item = (&'a str, &'a StatefulSet)> + 'a {
        let of_leaders = self.stateful_sets.of(workload);
        let leaders = self.leaders_of(workload);
        of_leaders.chain(leaders.flat_map(|(leader, _)| self.stateful_sets.of(leader)))
    }

    pub(super) fn leaders_of<'a>(&'a self, workload: &'a str) -> impl Iterator<Item = (&'a str, &'a Leader)> + 'a {
        self.stateful_sets.of(workload).flat_map(|(set, _)| self.leaders.of(set))
    }

    /// Whether all pods of the group that this pod leads are ready, by the rule of `LeaderWorkerSet` 0.9.
    pub(super) fn is_ready(&self, workload: &Workload, leader: &str) -> bool {
        self.leaders.get(leader).is_some_and(|leader| leader.ready)
            && (workload.size() <= 1 || self.stateful_sets.of(leader).any(|(_, set)| set.is_ready()))
    }

    /// Takes what a pod of a `LeaderWorkerSet` tells of its group. Returns the services of which something changed.
    pub(super) fn put_placed(&mut self, pod: &PodStatusView, place: &Place, now: Timestamp) -> Option<ServiceKey> {
        let controller = controller(pod)?.to_owned();
        let uid = &pod.metadata.uid;
        let group = place.group?;
        let mut changed = false;
        if place.leads {
            let leader = Leader { group, revision: place.revision.clone(), ready: pod.is_ready() };
            changed = self.leaders.get(uid) != Some(&leader);
            self.leaders.put(uid, Some(&controller), leader);
        }
        let workload = self.workload_above(&controller)?.to_owned();
        let leader = if place.leads { uid.clone() } else { self.stateful_sets.owner(&controller)?.to_owned() };
        if place.leads {
            self.groups.led(&workload, group, uid, &place.revision);
        }
        if let Some(end) = End::of(pod) {
            changed |= self.groups.ended(&workload, group, &leader, &place.revision, end, now);
        }
        self.note_readiness(&workload, group, now);
        self.service_of(&workload).filter(|_| changed)
    }

    /// Notes for how long a group that is remembered has been ready.
    pub(super) fn note_readiness(&mut self, workload: &str, group: u32, now: Timestamp) {
        let Some(leader) = self.groups.leader(workload, group) else { return };
        let ready = self.workloads.get(workload).is_some_and(|workload| self.is_ready(workload, leader));
        self.groups.set_ready(workload, group, ready, now);
    }

    pub(super) fn put_workload(&mut self, workload: Workload) {
        let uid = workload.metadata.uid.clone();
        if workload.kind == WorkloadKind::LeaderWorkerSet && !workload.is_settled() {
            self.unsettled.insert(uid.clone());
        } else {
            self.unsettled.remove(&uid);
        }
        let service = workload.metadata.service_uid().map(str::to_owned);
        self.workloads.put(&uid, service.as_deref(), workload);
    }

    pub(super) fn drop_workload(&mut self, uid: &str) {
        self.workloads.remove(uid);
        self.unsettled.remove(uid);
        self.groups.forget(uid);
    }

    /// Returns the services whose numbers may look different now.
    pub(super) fn set_release(&mut self, release: Option<Release>) -> Vec<ServiceKey> {
        if std::mem::replace(&mut self.release, release) == release {
            return Vec::new();
        }
        let sets = self.workloads.iter().filter(|(_, workload)| workload.kind == WorkloadKind::LeaderWorkerSet);
        sets.map(|(_, workload)| workload.metadata.service()).collect()
    }

    pub(super) fn age(&mut self, now: Timestamp) -> Vec<ServiceKey> {
        let quiet = self.groups.age(now);
        quiet.iter().filter_map(|workload| self.service_of(workload)).collect()
    }
}

/// UID of what controls a pod.
pub(super) fn controller(pod: &PodStatusView) -> Option<&str> {
    pod.metadata.owner_references.iter().find(|owner| owner.controller).map(|owner| owner.uid.as_str())
}
