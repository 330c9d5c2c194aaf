//! The parts of a member's objects that are kept, read straight from the bytes of a list or a watch.
//!
//! An object is read more than once where two modules want different parts of it: passing over JSON is cheap, keeping a
//! whole Pod isn't.

mod event;
mod meta;
mod pod;
mod service;
mod set;
#[cfg(test)]
mod tests;
mod workload;

use serde::Deserialize;
use serde::de::DeserializeOwned;

pub(super) use self::event::{Event, LwsEvent, SetEvent};
pub(super) use self::meta::{Marks, Metadata};
pub(super) use self::pod::{Place, Pod};
pub(super) use self::service::{Service, spec_print};
pub(super) use self::set::{ReplicaSet, StatefulSet};
pub(super) use self::workload::{Deployment, LeaderWorkerSet, Workload};
use crate::api::odin::WorkloadKind;
use crate::capacity::{NodeView, QuotaView};

/// The kinds that are watched in a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Node,
    Pod,
    Deployment,
    ReplicaSet,
    LeaderWorkerSet,
    StatefulSet,
    Service,
    ResourceQuota,
    /// Events about `StatefulSets`.
    SetEvent,
    /// Events about `LeaderWorkerSets`.
    LwsEvent,
}

impl Kind {
    pub(super) const ALL: [Self; 10] = [
        Self::Node,
        Self::Pod,
        Self::Deployment,
        Self::ReplicaSet,
        Self::LeaderWorkerSet,
        Self::StatefulSet,
        Self::Service,
        Self::ResourceQuota,
        Self::SetEvent,
        Self::LwsEvent,
    ];

    /// As people name one object of it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::Pod => "Pod",
            Self::Deployment => "Deployment",
            Self::ReplicaSet => "ReplicaSet",
            Self::LeaderWorkerSet => "LeaderWorkerSet",
            Self::StatefulSet => "StatefulSet",
            Self::Service => "Service",
            Self::ResourceQuota => "ResourceQuota",
            Self::SetEvent | Self::LwsEvent => "Event",
        }
    }

    /// As permissions name it.
    pub(super) const fn plural(self) -> &'static str {
        match self {
            Self::Node => "nodes",
            Self::Pod => "pods",
            Self::Deployment => "deployments",
            Self::ReplicaSet => "replicasets",
            Self::LeaderWorkerSet => "leaderworkersets",
            Self::StatefulSet => "statefulsets",
            Self::Service => "services",
            Self::ResourceQuota => "resourcequotas",
            Self::SetEvent | Self::LwsEvent => "events",
        }
    }

    /// Path of its API in a member.
    pub(super) const fn api(self) -> &'static str {
        match self {
            Self::Deployment | Self::ReplicaSet | Self::StatefulSet => "/apis/apps/v1",
            Self::LeaderWorkerSet => "/apis/leaderworkerset.x-k8s.io/v1",
            _ => "/api/v1",
        }
    }

    /// Objects of the kind that are kept at most. Those that a member makes for each mistake of anybody have a bound.
    pub(super) const fn bound(self) -> usize {
        match self {
            Self::SetEvent | Self::LwsEvent => 1000,
            _ => usize::MAX,
        }
    }
}

impl From<WorkloadKind> for Kind {
    fn from(kind: WorkloadKind) -> Self {
        match kind {
            WorkloadKind::Deployment => Self::Deployment,
            WorkloadKind::LeaderWorkerSet => Self::LeaderWorkerSet,
        }
    }
}

/// An object of which parts are kept.
pub(super) trait Lean: Sized + Send + 'static {
    /// The object in one line of a watch.
    fn of_event(line: &[u8]) -> serde_json::Result<Self>;
    /// The objects of one page of a list.
    fn of_list(page: &[u8]) -> serde_json::Result<Vec<Self>>;
    /// Where a watch goes on after it.
    fn resource_version(&self) -> &str;
}

/// An object whose parts are read in one go.
pub(super) trait Plain: DeserializeOwned + Send + 'static {
    fn resource_version(&self) -> &str;

    /// The object without what is too much of it: a member may be hostile.
    fn capped(self) -> Self {
        self
    }
}

impl<T: Plain> Lean for T {
    fn of_event(line: &[u8]) -> serde_json::Result<Self> {
        event(line).map(Self::capped)
    }

    fn of_list(page: &[u8]) -> serde_json::Result<Vec<Self>> {
        Ok(list(page)?.into_iter().map(Self::capped).collect())
    }

    fn resource_version(&self) -> &str {
        Plain::resource_version(self)
    }
}

impl Plain for NodeView {
    fn resource_version(&self) -> &str {
        &self.resource_version
    }
}

impl Plain for QuotaView {
    fn resource_version(&self) -> &str {
        &self.resource_version
    }
}

#[derive(Deserialize)]
struct EventOf<T> {
    object: T,
}

#[derive(Deserialize)]
struct ListOf<T> {
    /// A list of nothing is null.
    items: Option<Vec<T>>,
}

fn event<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice::<EventOf<T>>(line).map(|event| event.object)
}

fn list<T: DeserializeOwned>(page: &[u8]) -> serde_json::Result<Vec<T>> {
    serde_json::from_slice::<ListOf<T>>(page).map(|list| list.items.unwrap_or_default())
}
