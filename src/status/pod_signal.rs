//! From a pod's status to the one thing that is wrong with it.
//!
//! What is said must not change while nothing new happens: a container that crashes again and again runs in between,
//! and a signal that looked at the present state alone would flap. So an earlier end of a container that isn't ready
//! counts, and times are those of the member.

use jiff::{SignedDuration, Timestamp};

use super::pod::{ContainerStatus, PodCondition, PodStatusView, Terminated};
use super::rank::rank;
use crate::api::odin::ObjectRef;
use crate::api::reason::Reason;

/// A pod that failed (was evicted, for example) is replaced and stays behind; after this time it explains nothing.
const FAILED_IS_NEWS: SignedDuration = SignedDuration::from_mins(10);
/// Restarts from which on a container that isn't ready counts as crashing in a loop, whatever it does right now.
const RESTARTS_OF_A_LOOP: i32 = 2;

/// Trouble of one pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodSignal {
    /// What kind of trouble.
    pub reason: Reason,
    /// For people: the member's own text where there is one.
    pub message: String,
    /// When it happened, by the member's clock.
    pub at: Timestamp,
    /// The pod.
    pub object: ObjectRef,
    /// The container that showed it.
    pub container: Option<String>,
    /// The group of a `LeaderWorkerSet` that it is in; pods of one group are one group affected.
    pub group: Option<u32>,
}

/// A reason with its words, before it is tied to the pod.
struct Finding<'a> {
    reason: Reason,
    message: String,
    at: Option<Timestamp>,
    container: Option<&'a str>,
}

impl PodSignal {
    /// What is wrong with a pod; nothing for one that is ready or that has done its work. One that is being deleted only
    /// tells when it was taken away from the service, or can't go.
    ///
    /// `now` only decides whether a failed pod is old news: it stays behind for as long as nobody removes it.
    pub fn from_pod(pod: &PodStatusView, now: Timestamp) -> Option<Self> {
        if pod.is_ready() || pod.status.phase == "Succeeded" {
            return None;
        }
        let finding = if pod.metadata.deletion_timestamp.is_some() {
            going(pod)?
        } else if pod.status.phase == "Failed" {
            failed(pod, now)?
        } else if pod.spec.node_name.is_none() {
            unscheduled(pod)
        } else {
            on_node(pod)
        };
        Some(Self {
            reason: finding.reason,
            message: finding.message,
            at: finding.at.or_else(|| since(pod)).unwrap_or(Timestamp::UNIX_EPOCH),
            object: ObjectRef { kind: "Pod".to_owned(), namespace: Some(pod.metadata.namespace.clone()), name: pod.metadata.name.clone() },
            container: finding.container.map(str::to_owned),
            group: None,
        })
    }

    /// Whether the scheduler found taints in the way without naming them, as that of Kubernetes 1.36 does.
    pub fn hides_taints(&self) -> bool {
        self.reason == Reason::Unschedulable && self.message.contains("untolerated taint(s)")
    }
}

/// Since when the pod isn't ready, as well as it can be told.
fn since(pod: &PodStatusView) -> Option<Timestamp> {
    let changed = |type_| pod.condition(type_).and_then(|c| c.last_transition_time);
    changed("Ready").or_else(|| changed("PodScheduled")).or(pod.status.start_time).or(pod.metadata.creation_timestamp)
}

/// A pod that is being deleted. Where a `StatefulSet` made it no other takes its place before it is gone.
fn going(pod: &PodStatusView) -> Option<Finding<'_>> {
    if let Some(disruption) = preemption(pod) {
        let message = words("the pod made way for one of higher priority", &disruption.message);
        return Some(Finding { reason: Reason::Preempted, message, at: disruption.last_transition_time, container: None });
    }
    let ready = silent(pod)?;
    let node = pod.spec.node_name.as_deref()?;
    let message = format!("node {node} no longer reports; the pod is being deleted and stays until the node is back or is deleted");
    Some(Finding { reason: Reason::NodeLost, message, at: ready.last_transition_time, container: None })
}

/// What the scheduler leaves on a pod that it removes for another.
fn preemption(pod: &PodStatusView) -> Option<&PodCondition> {
    pod.condition("DisruptionTarget").filter(|c| c.status == "True" && c.reason == "PreemptionByScheduler")
}

/// The condition Ready of a pod on a node that is silent: only the control plane makes it False without a word of its
/// own.
fn silent(pod: &PodStatusView) -> Option<&PodCondition> {
    pod.condition("Ready").filter(|c| c.status == "False" && c.reason.is_empty())
}

fn failed(pod: &PodStatusView, now: Timestamp) -> Option<Finding<'_>> {
    let ends = pod.status.container_statuses.iter().filter_map(|c| c.state.terminated.as_ref()?.finished_at).max();
    let at = ends.or_else(|| since(pod));
    if at.is_some_and(|at| now.duration_since(at) > FAILED_IS_NEWS) {
        return None;
    }
    let status = &pod.status;
    let reason = match status.reason.as_str() {
        "Evicted" => Reason::Evicted,
        // The kubelet made room for a critical pod.
        "Preempting" => Reason::Preempted,
        _ if preemption(pod).is_some() => Reason::Preempted,
        _ => Reason::Error,
    };
    let word = if status.reason.is_empty() { "Failed" } else { status.reason.as_str() };
    Some(Finding { reason, message: words(&format!("the pod ended as {word}"), &status.message), at, container: None })
}

fn unscheduled(pod: &PodStatusView) -> Finding<'_> {
    let scheduled = pod.condition("PodScheduled");
    let at = scheduled.and_then(|c| c.last_transition_time).or(pod.metadata.creation_timestamp);
    let word = scheduled.map_or("", |c| c.reason.as_str());
    let (reason, message) = if word == "SchedulingGated" || !pod.spec.scheduling_gates.is_empty() {
        let gates: Vec<_> = pod.spec.scheduling_gates.iter().map(|g| g.name.as_str()).collect();
        (Reason::SchedulingGated, format!("the pod isn't scheduled before these gates are removed: {}", gates.join(", ")))
    } else if word == "Unschedulable" {
        (Reason::Unschedulable, scheduled.map(|c| c.message.clone()).unwrap_or_default())
    } else {
        (Reason::Starting, "the pod waits for the scheduler".to_owned())
    };
    Finding { reason, message, at, container: None }
}

/// The worst of the containers; of equals the first, init containers before the others, as they start.
fn on_node(pod: &PodStatusView) -> Finding<'_> {
    let init = pod.status.init_container_statuses.iter().map(|c| (c, true));
    let main = pod.status.container_statuses.iter().map(|c| (c, false));
    let worst = init.chain(main).filter_map(|(c, init)| container(pod, c, init)).min_by_key(|f| rank(f.reason));
    worst.unwrap_or_else(|| unready_for_other_reasons(pod))
}

/// Nothing is wrong with any container, yet the pod isn't ready.
fn unready_for_other_reasons(pod: &PodStatusView) -> Finding<'_> {
    let node = pod.spec.node_name.as_deref().unwrap_or_default();
    let ready = pod.condition("Ready");
    let at = ready.and_then(|c| c.last_transition_time);
    let (reason, message) = if pod.status.container_statuses.is_empty() {
        (Reason::Starting, format!("the pod is being set up on node {node}"))
    } else if silent(pod).is_some() {
        (Reason::NodeLost, format!("node {node} no longer reports what its containers do"))
    } else {
        (Reason::Starting, words("all containers are ready, the pod is not", ready.map_or("", |c| c.message.as_str())))
    };
    Finding { reason, message, at, container: None }
}

fn container<'a>(pod: &'a PodStatusView, status: &'a ContainerStatus, init: bool) -> Option<Finding<'a>> {
    let done = |end: &Terminated| init && end.exit_code == 0;
    if status.ready || status.state.terminated.as_ref().is_some_and(done) {
        return None;
    }
    let name = status.name.as_str();
    let finding = |reason, message, at| Some(Finding { reason, message, at, container: Some(name) });
    let end = status.state.terminated.as_ref().or(status.last_state.terminated.as_ref());
    if let Some(waiting) = &status.state.waiting {
        if let Some((reason, what)) = refused_start(&waiting.reason) {
            return finding(reason, words(&format!("container {name} {what}"), &waiting.message), None);
        }
        if end.is_none() && waiting.reason != "CrashLoopBackOff" {
            let what = if waiting.reason.is_empty() { "waits" } else { waiting.reason.as_str() };
            return finding(Reason::Starting, words(&format!("container {name}: {what}"), &waiting.message), None);
        }
    }
    if let Some(started) = status.state.running.as_ref().map(|r| r.started_at) {
        let was_ready = lost_ready_at(pod).zip(started).is_some_and(|(lost, started)| lost > started);
        if was_ready {
            let what = format!("container {name} was ready, runs, and fails its readiness probe");
            return finding(Reason::ProbeFailing, what, lost_ready_at(pod));
        }
        if end.is_none() {
            let probe = if status.started == Some(false) { "its startup probe hasn't passed" } else { "it isn't ready" };
            let what = format!("container {name} runs, {probe}: loading a large model takes minutes");
            return finding(Reason::Starting, what, started);
        }
    }
    let looping =
        status.restart_count >= RESTARTS_OF_A_LOOP || status.state.waiting.as_ref().is_some_and(|w| w.reason == "CrashLoopBackOff");
    let Some(end) = end else {
        return finding(Reason::CrashLoopBackOff, format!("container {name} ends again and again"), None);
    };
    let (reason, what) = words_for_end(name, end, looping, &format!("restarts {}", status.restart_count.max(0)));
    finding(reason, what, end.finished_at)
}

/// What is said of a container that ended: why, how, how often, and its last words.
pub(crate) fn words_for_end(name: &str, end: &Terminated, looping: bool, often: &str) -> (Reason, String) {
    let (reason, what) = match end.reason.as_str() {
        "OOMKilled" => (Reason::OomKilled, format!("container {name} used more memory than its limit and was killed")),
        "ContainerCannotRun" | "StartError" => (Reason::RunContainerError, format!("container {name} could not be started")),
        _ if looping => (Reason::CrashLoopBackOff, format!("container {name} ends again and again")),
        _ => (Reason::Error, format!("container {name} ended")),
    };
    let killed = end.signal.filter(|signal| *signal != 0).map(|signal| format!(", signal {signal}")).unwrap_or_default();
    (reason, words(&format!("{what} (exit code {}{killed}, {often})", end.exit_code), &end.message))
}

/// When a pod that was ready stopped to be.
fn lost_ready_at(pod: &PodStatusView) -> Option<Timestamp> {
    pod.condition("Ready").filter(|c| c.status == "False").and_then(|c| c.last_transition_time)
}

/// What a container waits for that won't come by itself. The kubelet has more words than the API of the hub: those
/// without a reason of their own stand in the message.
fn refused_start(word: &str) -> Option<(Reason, String)> {
    let reason = match word {
        "ImagePullBackOff" => Reason::ImagePullBackOff,
        "ErrImagePull" | "ErrImageNeverPull" | "ImageInspectError" | "RegistryUnavailable" | "SignatureValidationFailed" => {
            Reason::ErrImagePull
        }
        "InvalidImageName" => Reason::InvalidImageName,
        "CreateContainerConfigError" => Reason::CreateContainerConfigError,
        "CreateContainerError" | "RunContainerError" | "PreStartHookError" | "PostStartHookError" => Reason::RunContainerError,
        _ => return None,
    };
    let what = match reason {
        Reason::CreateContainerConfigError => "can't be configured",
        Reason::RunContainerError => "can't be started",
        _ => "can't get its image",
    };
    Some(if reason.as_str() == word { (reason, what.to_owned()) } else { (reason, format!("{what} ({word})")) })
}

/// Our words, and those of the member where it has some.
fn words(ours: &str, theirs: &str) -> String {
    if theirs.trim().is_empty() { ours.to_owned() } else { format!("{ours}: {theirs}") }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-03-01T10:00:00Z";

    fn pod(status: &Value) -> PodStatusView {
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "chat-5d-x", "namespace": "demo", "creationTimestamp": "2026-03-01T09:00:00Z"},
            "spec": {"nodeName": "node-1"},
            "status": status,
        });
        if pod["status"]["phase"] == "Pending" && pod["status"].get("containerStatuses").is_none() {
            pod["spec"] = json!({});
        }
        serde_json::from_value(pod).unwrap()
    }

    fn signal(status: &Value) -> Option<PodSignal> {
        PodSignal::from_pod(&pod(status), NOW.parse().unwrap())
    }

    fn running(container: Value) -> Value {
        let mut container = container;
        container["name"] = json!("main");
        json!({
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": "2026-03-01T09:10:00Z"}],
            "containerStatuses": [container],
        })
    }

    fn crashed(code: i32, word: &str, words: &str) -> Value {
        json!({"terminated": {"exitCode": code, "reason": word, "message": words, "finishedAt": "2026-03-01T09:55:00Z"}})
    }

    #[test]
    fn each_trouble_has_its_reason_text_and_time() {
        let waiting = |word: &str, words: &str| running(json!({"state": {"waiting": {"reason": word, "message": words}}}));
        let back_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}});
        for (name, status, reason, part, at) in [
            (
                "back-off of an image",
                waiting("ImagePullBackOff", "Back-off pulling image \"x\""),
                Reason::ImagePullBackOff,
                "pulling image \"x\"",
                "09:10",
            ),
            ("failed pull", waiting("ErrImagePull", "not found"), Reason::ErrImagePull, "not found", "09:10"),
            ("image that may not be pulled", waiting("ErrImageNeverPull", ""), Reason::ErrImagePull, "ErrImageNeverPull", "09:10"),
            ("bad image name", waiting("InvalidImageName", "couldn't parse"), Reason::InvalidImageName, "couldn't parse", "09:10"),
            (
                "missing key",
                waiting("CreateContainerConfigError", "secret \"hf\" not found"),
                Reason::CreateContainerConfigError,
                "\"hf\" not found",
                "09:10",
            ),
            ("no such program", waiting("RunContainerError", "exec: no such file"), Reason::RunContainerError, "no such file", "09:10"),
            (
                "creation refused",
                waiting("CreateContainerError", "name is taken"),
                Reason::RunContainerError,
                "CreateContainerError",
                "09:10",
            ),
            ("setting up", waiting("ContainerCreating", ""), Reason::Starting, "ContainerCreating", "09:10"),
            (
                "first crash",
                running(json!({"state": crashed(1, "Error", "no devices")})),
                Reason::Error,
                "exit code 1, restarts 0): no devices",
                "09:55",
            ),
            ("clean end", running(json!({"state": crashed(0, "Completed", "")})), Reason::Error, "exit code 0", "09:55"),
            (
                "crash, waiting",
                running(json!({"restartCount": 1, "state": back_off, "lastState": crashed(1, "Error", "")})),
                Reason::CrashLoopBackOff,
                "exit code 1",
                "09:55",
            ),
            (
                "crash, runs again",
                running(
                    json!({"restartCount": 4, "started": true, "state": {"running": {"startedAt": "2026-03-01T09:56:00Z"}}, "lastState": crashed(1, "Error", "")}),
                ),
                Reason::CrashLoopBackOff,
                "restarts 4",
                "09:55",
            ),
            (
                "back-off of which nothing is known",
                running(json!({"state": back_off})),
                Reason::CrashLoopBackOff,
                "again and again",
                "09:10",
            ),
            (
                "memory, waiting",
                running(json!({"restartCount": 3, "state": back_off, "lastState": crashed(137, "OOMKilled", "")})),
                Reason::OomKilled,
                "exit code 137",
                "09:55",
            ),
            (
                "a worker of a group that runs anew after each end",
                running(
                    json!({"state": {"terminated": {"exitCode": 139, "signal": 11, "reason": "Error", "message": "no peer", "finishedAt": "2026-03-01T09:55:00Z"}}}),
                ),
                Reason::Error,
                "exit code 139, signal 11, restarts 0): no peer",
                "09:55",
            ),
            (
                "a worker that waits for its leader in an init container",
                running(json!({"state": {"waiting": {"reason": "PodInitializing"}}})),
                Reason::Starting,
                "PodInitializing",
                "09:10",
            ),
            ("killed, but not for memory", running(json!({"state": crashed(137, "Error", "")})), Reason::Error, "exit code 137", "09:55"),
            (
                "program can't run",
                running(json!({"state": crashed(128, "StartError", "no such file")})),
                Reason::RunContainerError,
                "no such file",
                "09:55",
            ),
            (
                "loads",
                running(json!({"started": true, "state": {"running": {"startedAt": "2026-03-01T09:20:00Z"}}})),
                Reason::Starting,
                "loading a large model",
                "09:20",
            ),
            (
                "startup probe",
                running(json!({"started": false, "state": {"running": {"startedAt": "2026-03-01T09:20:00Z"}}})),
                Reason::Starting,
                "startup probe",
                "09:20",
            ),
            (
                "was ready",
                running(json!({"started": true, "state": {"running": {"startedAt": "2026-03-01T09:05:00Z"}}})),
                Reason::ProbeFailing,
                "readiness probe",
                "09:10",
            ),
            (
                "was ready after an old crash",
                running(
                    json!({"restartCount": 1, "state": {"running": {"startedAt": "2026-03-01T09:05:00Z"}}, "lastState": crashed(1, "Error", "")}),
                ),
                Reason::ProbeFailing,
                "readiness probe",
                "09:10",
            ),
        ] {
            let signal = signal(&status).unwrap_or_else(|| panic!("{name}: no signal"));
            assert_eq!(signal.reason, reason, "{name}: {signal:?}");
            assert!(signal.message.contains(part), "{name}: {}", signal.message);
            assert_eq!(signal.at.to_string(), format!("2026-03-01T{at}:00Z"), "{name}");
            assert_eq!(signal.container.as_deref(), Some("main"), "{name}");
            assert_eq!(signal.object, ObjectRef { kind: "Pod".into(), namespace: Some("demo".into()), name: "chat-5d-x".into() });
        }
    }

    #[test]
    fn pods_without_a_node_tell_why() {
        let pending = |condition: Value| json!({"phase": "Pending", "conditions": [condition]});
        let scheduler = "0/4 nodes are available: 4 Insufficient amd.com/gpu.";
        let unschedulable = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": scheduler, "lastTransitionTime": "2026-03-01T09:01:00Z"});
        let found = signal(&pending(unschedulable)).unwrap();
        assert_eq!((found.reason, found.message.as_str()), (Reason::Unschedulable, scheduler));
        assert_eq!(found.at.to_string(), "2026-03-01T09:01:00Z");

        assert!(!found.hides_taints());
        for (text, hides) in
            [("0/2 nodes are available: 2 node(s) had untolerated taint(s).", true), ("1 node(s) had untolerated taint {a: b}.", false)]
        {
            let tainted = signal(&pending(json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text})));
            assert_eq!(tainted.map(|found| found.hides_taints()), Some(hides), "{text}");
        }

        let mut gated = pod(&pending(json!({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"})));
        gated.spec.scheduling_gates = vec![super::super::pod::SchedulingGate { name: "example.com/quota".to_owned() }];
        let found = PodSignal::from_pod(&gated, NOW.parse().unwrap()).unwrap();
        assert_eq!(found.reason, Reason::SchedulingGated);
        assert!(found.message.ends_with("example.com/quota"), "{}", found.message);

        let fresh = signal(&json!({"phase": "Pending"})).unwrap();
        assert_eq!((fresh.reason, fresh.at.to_string().as_str()), (Reason::Starting, "2026-03-01T09:00:00Z"));
    }

    #[test]
    fn an_eviction_is_told_while_it_is_news() {
        let evicted = |at: &str| {
            json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
                   "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": at}]})
        };
        let found = signal(&evicted("2026-03-01T09:55:00Z")).unwrap();
        assert_eq!(found.reason, Reason::Evicted);
        assert!(found.message.contains("low on resource"), "{}", found.message);
        assert_eq!(signal(&evicted("2026-03-01T09:40:00Z")), None);
        let other = signal(&json!({"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no devices left",
                                  "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-03-01T09:59:00Z"}]}));
        assert!(other.is_some_and(|s| s.reason == Reason::Error && s.message.contains("UnexpectedAdmissionError: no devices left")));
    }

    #[test]
    fn a_pod_that_made_way_for_another_tells_so_also_on_its_way_out() {
        let target = |word: &str| {
            json!({"type": "DisruptionTarget", "status": "True", "reason": word, "message": "a-scheduler: preempting to accommodate a higher priority pod",
                   "lastTransitionTime": "2026-03-01T09:58:00Z"})
        };
        let not_ready = json!({"type": "Ready", "status": "False", "reason": "PodFailed", "lastTransitionTime": "2026-03-01T09:59:00Z"});
        let mut going = pod(&json!({"phase": "Running", "conditions": [target("PreemptionByScheduler"), not_ready]}));
        going.metadata.deletion_timestamp = NOW.parse().ok();
        let found = PodSignal::from_pod(&going, NOW.parse().unwrap()).unwrap();
        assert_eq!((found.reason, found.at.to_string().as_str()), (Reason::Preempted, "2026-03-01T09:58:00Z"));
        assert!(found.message.ends_with("preempting to accommodate a higher priority pod"), "{}", found.message);

        let mut drained = pod(&json!({"phase": "Running", "conditions": [target("EvictionByEvictionAPI"), not_ready]}));
        drained.metadata.deletion_timestamp = NOW.parse().ok();
        assert_eq!(PodSignal::from_pod(&drained, NOW.parse().unwrap()), None);

        for status in [
            json!({"phase": "Failed", "reason": "Preempting", "message": "Preempted in order to admit critical pod", "conditions": [not_ready]}),
            json!({"phase": "Failed", "conditions": [target("PreemptionByScheduler"), not_ready]}),
        ] {
            assert_eq!(signal(&status).map(|s| s.reason), Some(Reason::Preempted), "{status}");
        }
    }

    #[test]
    fn a_pod_that_can_not_leave_a_silent_node_tells_of_the_node() {
        let on = |reason: &str| {
            let mut pod = pod(&json!({
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "False", "reason": reason, "lastTransitionTime": "2026-03-01T09:30:00Z"}],
                "containerStatuses": [{"name": "main", "ready": true, "state": {"running": {}}}],
            }));
            pod.metadata.deletion_timestamp = NOW.parse().ok();
            PodSignal::from_pod(&pod, NOW.parse().unwrap())
        };
        let lost = on("").unwrap();
        assert_eq!((lost.reason, lost.at.to_string().as_str()), (Reason::NodeLost, "2026-03-01T09:30:00Z"));
        assert!(lost.message.contains("node-1"), "{}", lost.message);
        assert_eq!(on("ContainersNotReady"), None, "its kubelet ends it");
    }

    #[test]
    fn a_silent_node_is_told_from_a_pod_that_waits_for_a_gate() {
        let ready_containers = json!([{"name": "main", "ready": true, "state": {"running": {"startedAt": "2026-03-01T09:05:00Z"}}}]);
        let with = |condition: Value| json!({"phase": "Running", "conditions": [condition], "containerStatuses": ready_containers});
        let lost = signal(&with(json!({"type": "Ready", "status": "False", "lastTransitionTime": "2026-03-01T09:30:00Z"}))).unwrap();
        assert_eq!(lost.reason, Reason::NodeLost);
        assert!(lost.message.contains("node-1"));
        let gate =
            signal(&with(json!({"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady", "message": "gate x"}))).unwrap();
        assert_eq!(gate.reason, Reason::Starting);
    }

    #[test]
    fn the_worst_container_speaks_and_of_equals_the_first() {
        let broken = |name: &str| json!({"name": name, "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}});
        let waits = |name: &str| json!({"name": name, "state": {"waiting": {"reason": "PodInitializing"}}});
        let done = json!({"name": "fetch", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}});
        for (init, main, want) in [
            (json!([done, broken("proxy")]), json!([waits("main")]), "proxy"),
            (json!([done]), json!([waits("side"), broken("main")]), "main"),
            (json!([broken("a"), broken("b")]), json!([waits("main")]), "a"),
            (json!([waits("a")]), json!([waits("main")]), "a"),
        ] {
            let found = signal(&json!({"phase": "Pending", "initContainerStatuses": init, "containerStatuses": main})).unwrap();
            assert_eq!(found.container.as_deref(), Some(want));
        }
    }

    #[test]
    fn pods_that_are_well_or_going_say_nothing() {
        assert_eq!(signal(&json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})), None);
        assert_eq!(signal(&json!({"phase": "Succeeded"})), None);
        let mut going = pod(&running(json!({"state": crashed(1, "Error", "")})));
        going.metadata.deletion_timestamp = NOW.parse().ok();
        assert_eq!(PodSignal::from_pod(&going, NOW.parse().unwrap()), None);
    }

    #[test]
    fn odd_pods_are_read_as_far_as_they_go() {
        let pod: PodStatusView = serde_json::from_value(json!({
            "metadata": {"name": "x", "creationTimestamp": "yesterday", "ownerReferences": null},
            "spec": null,
            "status": {"phase": null, "conditions": null, "containerStatuses": [{"name": "main", "state": null}]},
        }))
        .unwrap();
        let signal = PodSignal::from_pod(&pod, NOW.parse().unwrap()).unwrap();
        assert_eq!(signal.reason, Reason::Starting);
        let long: PodStatusView = serde_json::from_value(json!({"status": {"message": "x".repeat(100_000)}})).unwrap();
        assert_eq!(long.status.message.chars().count(), 1024);
    }
}
