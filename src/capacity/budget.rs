//! How many groups of a service the quotas of its namespace admit.

use std::fmt::Write;

use serde_json::Value;

use super::form::{Asked, Form};
use super::quota::QuotaView;
use super::reservation::unassigned;
use super::resources::{CPU, MEMORY, PODS, bounded, display, display_free};
use super::room::Promise;
use super::shape::{PodShape, QuotaFacts};
use super::snapshot::{Roles, Snapshot, Tally};
use crate::api::odin::WorkloadKind;

/// Counts pods that have ended too.
const COUNT_PODS: &str = "count/pods";

/// A bound of a quota, and how far it goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// Groups that it admits, those that run already included.
    pub(super) groups: u64,
    /// The bounded resource as the quota spells it.
    pub(super) resource: String,
    /// The quota with its numbers.
    pub(super) message: String,
}

/// The bound that is reached first; `None` when none is about the service.
pub(super) fn tightest(snapshot: &Snapshot, asked: &Asked<'_>, promises: &[Promise]) -> Option<Bound> {
    let quotas = snapshot.quotas.get(&asked.service.namespace).filter(|_| !asked.options.ignore_quotas)?;
    let limits = quotas.iter().flat_map(|quota| {
        let read = |key: &str| Some((quota.hard.get(key)?.ok()?, quota.used.get(key).and_then(Result::ok).unwrap_or_default()));
        quota.hard.names().filter_map(move |key| read(key).map(|(hard, used)| Limit { quota, key, hard, used }))
    });
    limits.filter_map(|limit| limit.bound(snapshot, asked, promises)).min_by_key(|bound| bound.groups)
}

/// One resource that a quota bounds.
struct Limit<'a> {
    quota: &'a QuotaView,
    key: &'a str,
    hard: i64,
    used: i64,
}

impl Limit<'_> {
    fn bound(&self, snapshot: &Snapshot, asked: &Asked<'_>, promises: &[Promise]) -> Option<Bound> {
        let (leader, worker, workers) = (asked.form.leader(), asked.form.worker(), asked.form.workers());
        let bound = |groups, message| Some(Bound { groups, resource: self.key.to_owned(), message });
        let name = format!("quota {} in {}", self.quota.name, asked.service.namespace);
        if let Some(container) = asked.form.shapes().filter(|shape| self.counts(shape)).find_map(|shape| self.unset_in(shape)) {
            return bound(
                0,
                format!(
                    "{name} bounds {}, so each container must set it, and {container} doesn't; defaults of a LimitRange are not seen",
                    self.key
                ),
            );
        }

        let tally = snapshot.tally(asked.service);
        let here = tally.map(Tally::all).unwrap_or_default();
        let (once, each, back) = if let Some(of_leader) = self.of_pod(leader) {
            let of_worker = self.of_pod(worker).unwrap_or_default();
            // What its pods ask for is known. What they are limited to is taken to be as in those to come.
            let known = tally.filter(|_| !self.key.starts_with("limits.") && asked.form.shapes().all(|shape| self.counts(shape)));
            let alike = || of_leader * i128::from(here.single.saturating_add(here.leaders)) + of_worker * i128::from(here.workers);
            let resource = if self.key == COUNT_PODS { PODS } else { bounded(self.key) };
            let back = known.map_or_else(alike, |tally| tally.requests.get(resource).into());
            (0, of_leader + of_worker * i128::from(workers), back)
        } else {
            let (once, each) = objects(self.key, asked.kind, workers)?;
            // A workload that the member was told to hold is there also without pods.
            let is_there = here.total() > 0 || promises.iter().any(|promise| promise.service == *asked.service);
            (if is_there { 0 } else { once }, each, each * i128::from(here.leaders))
        };
        let others = promises.iter().filter(|promise| promise.service != *asked.service);
        let promised: i128 = others.map(|promise| self.promised(snapshot, promise, &asked.service.namespace)).sum();
        let left = i128::from(self.hard) - i128::from(self.used) - promised;
        let groups = if once + each <= 0 {
            return None;
        } else if left + back < once {
            0
        } else if each > 0 {
            u64::try_from((left + back - once) / each).unwrap_or(u64::MAX)
        } else {
            return None;
        };

        let resource = bounded(self.key);
        let show = |amount: i128| display(resource, i64::try_from(amount).unwrap_or(i64::MAX));
        let mut message = format!(
            "{name} leaves {} of {} {}, and a group needs {}",
            display_free(resource, i64::try_from(left.max(0)).unwrap_or(i64::MAX)),
            show(self.hard.into()),
            self.key,
            show(once + each)
        );
        if promised > 0 {
            let _ = write!(message, "; {} are promised to other services", show(promised));
        }
        if let Some(scope) = asked.form.shapes().find_map(|shape| self.judge(&shape.quota).err()) {
            let _ = write!(message, "; it can't be told whether its scope {scope} selects the pods");
        }
        bound(groups, message)
    }

    /// What promised pods and objects of another service will take that aren't there yet.
    fn promised(&self, snapshot: &Snapshot, promise: &Promise, namespace: &str) -> i128 {
        if promise.service.namespace != *namespace {
            return 0;
        }
        let tally = snapshot.tally(&promise.service);
        let pods: i128 = unassigned(promise, tally.map(|tally| tally.staying).unwrap_or_default())
            .map(|(shape, pods)| self.of_pod(shape).unwrap_or_default().saturating_mul(pods.into()))
            .sum();
        let workers = Form::of(&promise.request).map_or(0, Form::workers);
        let (once, each) = objects(self.key, promise.request.kind, workers).unwrap_or_default();
        let leaders = tally.map_or(0, |tally| tally.all().leaders);
        let groups = i128::from(promise.groups.saturating_sub(leaders));
        pods + each * groups + if tally.is_none() { once } else { 0 }
    }

    /// What one pod takes of it: 0 if the quota doesn't select it, `None` if it isn't about pods.
    fn of_pod(&self, shape: &PodShape) -> Option<i128> {
        let amount = match self.key {
            PODS | COUNT_PODS => 1,
            key => match (key.strip_prefix("requests."), key.strip_prefix("limits.")) {
                (Some(name), _) => shape.requests.get(name),
                (_, Some(name)) => shape.quota.limits.get(name),
                // Extended resources are bounded with a prefix only.
                _ if is_native(key) => shape.requests.get(key),
                _ => return None,
            },
        };
        Some(if self.counts(shape) { amount.into() } else { 0 })
    }

    /// The first container that doesn't set what it has to, since the quota bounds it.
    fn unset_in<'s>(&self, shape: &'s PodShape) -> Option<&'s str> {
        let name = bounded(self.key);
        if name != CPU && name != MEMORY {
            return None;
        }
        let key = if self.key == name { format!("requests.{name}") } else { self.key.to_owned() };
        shape.quota.unset.get(&key).map(String::as_str)
    }

    /// Whether the quota counts such pods; when that can't be told it does.
    fn counts(&self, shape: &PodShape) -> bool {
        self.judge(&shape.quota).unwrap_or(true)
    }

    /// Whether all scopes of the quota select such pods; the error names one that can't be judged.
    fn judge(&self, facts: &QuotaFacts) -> Result<bool, String> {
        let plain = self.quota.scopes.iter().map(|scope| (scope.clone(), "Exists".to_owned(), Vec::new()));
        let requirements =
            self.quota.scope_selector.as_ref().and_then(|selector| selector.get("matchExpressions")).and_then(Value::as_array);
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let selected = requirements.into_iter().flatten().map(|requirement| {
            let values = requirement.get("values").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            (text(requirement, "scopeName"), text(requirement, "operator"), values.map(str::to_owned).collect())
        });
        let mut unclear = None;
        for (scope, operator, values) in plain.chain(selected) {
            match judge(&scope, &operator, &values, facts) {
                // One that surely doesn't select them is enough.
                Some(false) => return Ok(false),
                Some(true) => {}
                None => unclear = unclear.or(Some(scope)),
            }
        }
        unclear.map_or(Ok(true), Err)
    }
}

/// Whether one scope selects a pod; `None` when that can't be told.
fn judge(scope: &str, operator: &str, values: &[String], facts: &QuotaFacts) -> Option<bool> {
    let exists = |holds: bool| (operator == "Exists").then_some(holds);
    match scope {
        "BestEffort" => exists(facts.best_effort),
        "NotBestEffort" => exists(!facts.best_effort),
        // Pods of a workload that goes on have no deadline.
        "Terminating" => exists(false),
        "NotTerminating" => exists(true),
        "CrossNamespacePodAffinity" => exists(facts.other_namespaces),
        "PriorityClass" => {
            let listed = facts.priority_class.as_ref().is_some_and(|class| values.contains(class));
            match operator {
                "Exists" => Some(facts.priority_class.is_some()),
                "DoesNotExist" => Some(facts.priority_class.is_none()),
                "In" => Some(listed),
                "NotIn" => Some(!listed),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether a quota bounds it by what pods ask for, without a prefix.
fn is_native(key: &str) -> bool {
    key == CPU || key == MEMORY || key == "ephemeral-storage" || key.starts_with("hugepages-")
}

/// Objects of a kind that a service adds to a member once, and for each group; `None` for kinds that it doesn't add.
/// Each service has one Service of its own, and a `LeaderWorkerSet` one by which its pods find each other, a
/// `StatefulSet` of leaders, and one of workers for each group.
fn objects(key: &str, kind: WorkloadKind, workers: u64) -> Option<(i128, i128)> {
    let of_workers = i128::from(workers > 0);
    match (kind, key) {
        (WorkloadKind::Deployment, "count/deployments.apps" | "count/replicasets.apps" | "count/services" | "services")
        | (WorkloadKind::LeaderWorkerSet, "count/leaderworkersets.leaderworkerset.x-k8s.io") => Some((1, 0)),
        (WorkloadKind::LeaderWorkerSet, "count/statefulsets.apps") => Some((1, of_workers)),
        (WorkloadKind::LeaderWorkerSet, "count/services" | "services") => Some((2, 0)),
        _ => None,
    }
}

impl Tally {
    /// All pods that quotas count, those on their way out included.
    fn all(&self) -> Roles {
        let add = |a: u32, b: u32| a.saturating_add(b);
        let (staying, leaving) = (self.staying, self.leaving);
        Roles {
            single: add(staying.single, leaving.single),
            leaders: add(staying.leaders, leaving.leaders),
            workers: add(staying.workers, leaving.workers),
        }
    }
}
