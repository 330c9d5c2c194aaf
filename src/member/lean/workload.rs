//! Workloads of ours, of either kind.

use serde::Deserialize;
use serde_json::Value;

use super::Plain;
use super::meta::Metadata;
use crate::api::nullable;
use crate::api::odin::WorkloadKind;
use crate::status::WorkloadView;

/// Conditions of one object that are kept: a member may be hostile.
const MAX_CONDITIONS: usize = 64;

/// A workload of ours.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::member) struct Workload {
    #[serde(skip)]
    pub(in crate::member) kind: WorkloadKind,
    #[serde(deserialize_with = "nullable")]
    pub(in crate::member) metadata: Metadata,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    replicas: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    leader_worker_template: LeaderWorkerTemplate,
    #[serde(deserialize_with = "nullable")]
    rollout_strategy: RolloutStrategy,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct LeaderWorkerTemplate {
    size: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RolloutStrategy {
    #[serde(deserialize_with = "nullable")]
    rolling_update_configuration: RollingUpdate,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RollingUpdate {
    #[serde(deserialize_with = "nullable")]
    partition: i64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    observed_generation: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    replicas: i64,
    #[serde(deserialize_with = "nullable")]
    ready_replicas: i64,
    #[serde(deserialize_with = "nullable")]
    updated_replicas: i64,
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<Value>,
}

impl Workload {
    /// Pods of one group.
    pub(in crate::member) fn size(&self) -> i64 {
        self.spec.leader_worker_template.size.unwrap_or(1)
    }

    /// It has reported on all that is wanted of it, and all of that is there and ready.
    pub(in crate::member) fn is_settled(&self) -> bool {
        let wanted = self.spec.replicas.unwrap_or(1);
        let status = &self.status;
        status.observed_generation.is_none_or(|observed| observed >= self.metadata.generation)
            && status.ready_replicas >= wanted
            && status.updated_replicas >= wanted - self.spec.rollout_strategy.rolling_update_configuration.partition
    }

    /// What the status of the service is made from.
    pub(in crate::member) fn view(&self) -> WorkloadView {
        let count = |n: i64| u32::try_from(n.max(0)).unwrap_or(u32::MAX);
        let meta = &self.metadata;
        WorkloadView {
            kind: self.kind,
            name: meta.name.clone(),
            namespace: meta.namespace.clone(),
            uid: meta.uid.clone(),
            generation: meta.generation,
            observed_generation: self.status.observed_generation,
            replicas: count(self.status.replicas),
            ready: count(self.status.ready_replicas),
            updated: count(self.status.updated_replicas),
            conditions: self.status.conditions.clone(),
            deletion_timestamp: meta.deletion_timestamp,
            rendered_hash: meta.annotations.rendered_hash.clone(),
            service_generation: meta.service_generation(),
            exclusive_topology: meta.annotations.exclusive_topology.clone(),
            ..WorkloadView::default()
        }
    }

    fn of(mut self, kind: WorkloadKind) -> Self {
        self.kind = kind;
        self.status.conditions.truncate(MAX_CONDITIONS);
        self
    }
}

/// A Deployment of ours.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(in crate::member) struct Deployment(pub(in crate::member) Workload);

impl Plain for Deployment {
    fn resource_version(&self) -> &str {
        &self.0.metadata.resource_version
    }

    fn capped(self) -> Self {
        Self(self.0.of(WorkloadKind::Deployment))
    }
}

/// A `LeaderWorkerSet` of ours.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(in crate::member) struct LeaderWorkerSet(pub(in crate::member) Workload);

impl Plain for LeaderWorkerSet {
    fn resource_version(&self) -> &str {
        &self.0.metadata.resource_version
    }

    fn capped(self) -> Self {
        Self(self.0.of(WorkloadKind::LeaderWorkerSet))
    }
}
