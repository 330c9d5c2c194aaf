//! What is promised to other services and has no node yet.

use std::collections::BTreeMap;

use super::form::Form;
use super::pod::ServiceKey;
use super::room::Promise;
use super::selection::Labelled;
use super::shape::PodShape;
use super::snapshot::{Named, Roles, Snapshot};
use crate::api::odin::WorkloadKind;

/// Pods that are promised room and have no node yet.
pub(super) enum Waiting<'a> {
    Pods(WaitingPods<'a>),
    Groups(WaitingGroups<'a>),
}

/// Pods of one shape, each of which may go anywhere.
pub(super) struct WaitingPods<'a> {
    pub(super) service: &'a ServiceKey,
    pub(super) shape: &'a PodShape,
    pub(super) count: u64,
    /// They are pods of groups of a `LeaderWorkerSet`.
    pub(super) in_groups: bool,
}

/// Groups each of which is to have a domain for itself.
pub(super) struct WaitingGroups<'a> {
    pub(super) service: &'a ServiceKey,
    pub(super) form: Form<'a>,
    pub(super) topology: &'a str,
    /// Groups whose leaders have no node. Until one has, its workers don't exist, and all of it needs room.
    pub(super) whole: u64,
    /// Workers that have no node, by the domain of their leader.
    pub(super) workers: BTreeMap<String, u64>,
}

/// The part of promises that isn't assigned yet, in their order.
pub(super) fn waiting<'a>(snapshot: &Snapshot, service: &ServiceKey, promises: &'a [Promise]) -> Vec<Waiting<'a>> {
    promises.iter().filter(|promise| promise.service != *service).flat_map(|promise| of(snapshot, promise)).collect()
}

/// The part of one promise that isn't assigned yet.
fn of<'a>(snapshot: &Snapshot, promise: &'a Promise) -> Vec<Waiting<'a>> {
    let in_groups = promise.request.kind == WorkloadKind::LeaderWorkerSet;
    if in_groups
        && let Some(topology) = &promise.request.exclusive_topology
        && let Ok(form) = Form::of(&promise.request)
    {
        let groups = by_domain(snapshot, promise, form, topology);
        return if groups.pods() > 0 { vec![Waiting::Groups(groups)] } else { Vec::new() };
    }
    let assigned = snapshot.tally(&promise.service).map(|tally| tally.assigned).unwrap_or_default();
    unassigned(promise, assigned)
        .map(|(shape, count)| Waiting::Pods(WaitingPods { service: &promise.service, shape, count, in_groups }))
        .collect()
}

/// Pods of a promise by shape that are still missing when these are there. Leaders and workers don't stand for each
/// other.
pub(super) fn unassigned(promise: &Promise, there: Roles) -> impl Iterator<Item = (&PodShape, u64)> {
    let groups = u64::from(promise.groups);
    let missing = |pods: u64, there: u32| pods.saturating_sub(u64::from(there));
    let sets = promise.request.pods.iter().filter(|set| set.count > 0);
    sets.enumerate()
        .map(move |(at, set)| {
            let pods = groups.saturating_mul(u64::from(set.count));
            let count = match promise.request.kind {
                WorkloadKind::Deployment => missing(pods, there.single),
                // The first pod of all is the leader.
                WorkloadKind::LeaderWorkerSet if at == 0 => {
                    missing(groups, there.leaders).saturating_add(missing(pods.saturating_sub(groups), there.workers))
                }
                WorkloadKind::LeaderWorkerSet => missing(pods, there.workers),
            };
            (&set.shape, count)
        })
        .filter(|(_, count)| *count > 0)
}

fn by_domain<'a>(snapshot: &Snapshot, promise: &'a Promise, form: Form<'a>, topology: &'a str) -> WaitingGroups<'a> {
    let mut domains: BTreeMap<String, Roles> = BTreeMap::new();
    for bucket in snapshot.buckets.iter().filter(|bucket| bucket.holds(&promise.service)) {
        for node in &bucket.nodes {
            let Some(held) = node.held_by(&promise.service) else { continue };
            let domain = Named { class: &bucket.class, name: &node.name };
            let here = domains.entry(domain.label(topology).unwrap_or_default().to_owned()).or_default();
            here.leaders = here.leaders.saturating_add(held.staying.leaders);
            here.workers = here.workers.saturating_add(held.staying.workers);
        }
    }
    let led: u64 = domains.values().map(|here| u64::from(here.leaders)).sum();
    let missing = |here: &Roles| form.workers().saturating_mul(u64::from(here.leaders)).saturating_sub(u64::from(here.workers));
    WaitingGroups {
        service: &promise.service,
        form,
        topology,
        whole: u64::from(promise.groups).saturating_sub(led),
        workers: domains.iter().map(|(domain, here)| (domain.clone(), missing(here))).filter(|(_, workers)| *workers > 0).collect(),
    }
}

impl WaitingGroups<'_> {
    fn pods(&self) -> u64 {
        let whole = self.whole.saturating_mul(self.form.workers().saturating_add(1));
        self.workers.values().fold(whole, |sum, workers| sum.saturating_add(*workers))
    }
}

impl<'a> Waiting<'a> {
    pub(super) fn service(&self) -> &'a ServiceKey {
        match self {
            Self::Pods(pods) => pods.service,
            Self::Groups(groups) => groups.service,
        }
    }

    pub(super) fn pods(&self) -> u64 {
        match self {
            Self::Pods(pods) => pods.count,
            Self::Groups(groups) => groups.pods(),
        }
    }

    pub(super) fn shapes(&self) -> impl Iterator<Item = &'a PodShape> {
        let (pods, groups) = match self {
            Self::Pods(pods) => (Some(pods.shape), None),
            Self::Groups(groups) => (None, Some(groups.form.shapes())),
        };
        pods.into_iter().chain(groups.into_iter().flatten())
    }

    /// Whether they are pods of groups of a `LeaderWorkerSet`.
    pub(super) fn is_set(&self) -> bool {
        match self {
            Self::Pods(pods) => pods.in_groups,
            Self::Groups(_) => true,
        }
    }

    pub(super) fn topology(&self) -> Option<&'a str> {
        match self {
            Self::Pods(_) => None,
            Self::Groups(groups) => Some(groups.topology),
        }
    }

    /// Whether it matters where other pods of the service run.
    pub(super) fn looks_at_own(&self) -> bool {
        match self {
            Self::Pods(pods) => pods.shape.one_per_node,
            Self::Groups(_) => true,
        }
    }
}
