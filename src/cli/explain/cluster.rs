//! A member, explained.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;

use super::state::{State, advice, fact, indented, paragraph, part};
use crate::api::condition::member::{LEADER_WORKER_SET_AVAILABLE, READY};
use crate::api::federation::{Accelerator, CredentialStatus, MemberCluster, Taint};
use crate::api::odin::InferenceService;
use crate::cli::table::{Table, age};
use crate::cli::unjoin::placed_in;

/// All that the hub's API server knows of a member.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explanation {
    name: String,
    /// Nothing while the hub has not looked at it.
    ready: Option<State>,
    /// Other conditions that don't hold.
    conditions: Vec<State>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kubernetes_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leader_worker_set_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<CredentialStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen: Option<Time>,
    suspended: bool,
    taints: Vec<Taint>,
    accelerators: Vec<Accelerator>,
    services: Vec<Held>,
}

/// A service with a placement in the member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Held {
    service: String,
    replicas: i32,
}

/// Gathers the explanation of a member.
pub(super) fn explain(member: &MemberCluster, services: &[InferenceService]) -> Explanation {
    let name = member.metadata.name.clone().unwrap_or_default();
    let status = member.status.clone().unwrap_or_default();
    let (ready, others): (Vec<_>, Vec<_>) = status.conditions.iter().partition(|condition| condition.type_ == READY);
    Explanation {
        ready: ready.first().map(|ready| State::of(ready)),
        conditions: others.into_iter().filter(|c| c.status != "True" && c.type_ != LEADER_WORKER_SET_AVAILABLE).map(State::of).collect(),
        kubernetes_version: status.kubernetes_version,
        leader_worker_set_version: status.leader_worker_set_version,
        credential: status.credential,
        last_seen: status.last_seen,
        suspended: member.spec.suspend,
        taints: member.spec.taints.clone(),
        accelerators: status.accelerators,
        services: placed_in(services, &name).into_iter().map(|(service, replicas)| Held { service, replicas }).collect(),
        name,
    }
}

/// The explanation in words.
pub(super) fn text(told: &Explanation, now: Timestamp) -> String {
    let what = format!("MemberCluster {}", told.name);
    let mut text = match &told.ready {
        Some(ready) => ready.headline(&what, now),
        None => format!("{what}: the hub has not looked at it yet. Is the hub running?\n"),
    };
    facts(&mut text, told, now);
    let ready = told.ready.as_ref().filter(|ready| ready.status != "True");
    if let Some(ready) = ready {
        part(&mut text, &format!("Because: {}", ready.reason));
        paragraph(&mut text, "", &ready.message);
        advice(&mut text, ready.explained.as_ref());
    }
    for state in told.conditions.iter().filter(|state| ready.is_none_or(|ready| ready.reason != state.reason)) {
        part(&mut text, &format!("{} is {}: {}", state.type_, state.status, state.reason));
        paragraph(&mut text, "", &state.message);
        advice(&mut text, state.explained.as_ref());
    }
    if !told.accelerators.is_empty() {
        part(&mut text, "Accelerators:");
        indented(&mut text, &accelerators(&told.accelerators).to_string());
    }
    if !told.services.is_empty() {
        part(&mut text, "Services:");
        let mut table = Table::new(["SERVICE", "REPLICAS"]);
        for held in &told.services {
            table.push([Some(held.service.clone()), Some(held.replicas.to_string())]);
        }
        indented(&mut text, &table.to_string());
    }
    text
}

fn facts(text: &mut String, told: &Explanation, now: Timestamp) {
    if let Some(version) = &told.kubernetes_version {
        fact(text, "Kubernetes", version);
    }
    if told.ready.is_some() {
        fact(text, "LWS", told.leader_worker_set_version.as_deref().unwrap_or("not installed"));
    }
    if let Some(credential) = &told.credential {
        let end = credential.expires_in.as_ref().map_or_else(|| "without an end".to_owned(), |days| format!("ends in {days}"));
        fact(text, "Credential", &format!("{}, {end}", credential.type_));
    }
    if let Some(seen) = &told.last_seen {
        fact(text, "Last seen", &format!("{} ago", age(Some(seen), now)));
    }
    if told.suspended {
        fact(text, "Suspended", "the hub reads there and writes nothing");
    }
    for taint in &told.taints {
        let value = taint.value.as_ref().map(|value| format!("={value}")).unwrap_or_default();
        fact(text, "Taint", &format!("{}{value}:{:?}", taint.key, taint.effect));
    }
}

fn accelerators(accelerators: &[Accelerator]) -> Table {
    let mut table = Table::new(["RESOURCE", "MODEL", "NODES", "ALLOCATABLE", "USED", "RESERVED", "FREE", "FREE ON ONE NODE"]);
    for one in accelerators {
        let counts = [one.nodes, one.allocatable, one.used, one.reserved, one.free, one.largest_free_node];
        let cells = [Some(one.resource.clone()), one.model.clone()];
        table.push(cells.into_iter().chain(counts.map(|count| Some(count.to_string()))));
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn member(status: &serde_json::Value) -> MemberCluster {
        serde_json::from_value(json!({
            "metadata": {"name": "gpu-a"},
            "spec": {"secretRef": {"name": "gpu-a"}, "taints": [{"key": "gpu", "value": "old", "effect": "NoSchedule"}]},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_member_that_is_well() {
        let member = member(&json!({
            "conditions": [
                {"type": "LeaderWorkerSetAvailable", "status": "False", "reason": "NotInstalled", "message": "none", "lastTransitionTime": "2029-12-31T20:00:00Z"},
                {"type": "Ready", "status": "True", "reason": "Connected", "message": "answers", "lastTransitionTime": "2029-12-31T20:00:00Z"},
            ],
            "kubernetesVersion": "v1.36.3", "credential": {"type": "token", "expiresIn": "364 days"},
            "accelerators": [{"resource": "amd.com/gpu", "model": "mi300x", "nodes": 3, "allocatable": 24, "used": 8, "reserved": 0, "free": 16, "largestFreeNode": 8}],
        }));
        let services: Vec<InferenceService> = serde_json::from_value(json!([{
            "metadata": {"namespace": "demo", "name": "chat"}, "spec": {},
            "status": {"placements": [{"cluster": "gpu-a", "replicas": 2, "phase": "Ready"}]},
        }]))
        .unwrap();
        let told = explain(&member, &services);
        assert_eq!(
            text(&told, "2030-01-01T00:00:00Z".parse().unwrap()),
            "\
MemberCluster gpu-a is ready (Connected), since 4h
Kubernetes  v1.36.3
LWS         not installed
Credential  token, ends in 364 days
Taint       gpu=old:NoSchedule

Accelerators:
  RESOURCE      MODEL    NODES   ALLOCATABLE   USED   RESERVED   FREE   FREE ON ONE NODE
  amd.com/gpu   mi300x   3       24            8      0          16     8

Services:
  SERVICE     REPLICAS
  demo/chat   2
"
        );
    }

    #[test]
    fn one_that_is_not_says_what_to_do_once() {
        let conditions = |reason: &str| {
            json!({"conditions": [
                {"type": "Reachable", "status": "False", "reason": "Unreachable", "message": "refused", "lastTransitionTime": "2029-12-31T23:59:00Z"},
                {"type": "Ready", "status": "False", "reason": reason, "message": "because", "lastTransitionTime": "2029-12-31T23:59:00Z"},
            ], "lastSeen": "2029-12-31T23:58:00Z"})
        };
        let now = "2030-01-01T00:00:00Z".parse().unwrap();
        let told = text(&explain(&member(&conditions("Unreachable")), &[]), now);
        assert!(told.contains("is not ready (Unreachable), since 60s") && told.contains("Last seen   2m ago"), "{told}");
        assert_eq!(told.matches("What to do: Look at the network and the member.").count(), 1, "{told}");
        let told = text(&explain(&member(&conditions("Duplicate")), &[]), now);
        assert!(told.contains("Because: Duplicate") && told.contains("Reachable is False: Unreachable\n  refused\n"), "{told}");

        let fresh: MemberCluster =
            serde_json::from_value(json!({"metadata": {"name": "new"}, "spec": {"secretRef": {"name": "new"}}})).unwrap();
        assert!(text(&explain(&fresh, &[]), now).starts_with("MemberCluster new: the hub has not looked at it yet"), "{told}");
    }
}
