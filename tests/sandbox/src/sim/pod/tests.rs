use std::fmt::Write;

use super::*;
use serde_json::{Value, json};

const TIMING: Timing = Timing { ready_after: Duration::from_millis(200), back_off: Duration::from_secs(2) };

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_000_000_000 + millis).unwrap()
}

fn pod(annotations: &Value, spec: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "generation": 1, "annotations": annotations},
        "spec": spec,
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]},
    }))
    .unwrap()
}

fn one(annotations: &Value) -> Pod {
    pod(annotations, &json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}))
}

/// What a reader of the pod sees: phase, Ready, and each container as `state ready restarts`.
fn seen(pod: &Pod) -> String {
    let status = pod.status.as_ref().unwrap();
    let ready = status.conditions.iter().flatten().find(|c| c.type_ == "Ready").map_or("", |c| c.status.as_str());
    let mut out = format!("{} {ready}", status.phase.as_deref().unwrap());
    for c in status.init_container_statuses.iter().chain(&status.container_statuses).flatten() {
        let state = c.state.clone().unwrap_or_default();
        let state = state
            .waiting
            .and_then(|w| w.reason)
            .or(state.running.map(|_| "Running".to_owned()))
            .or(state.terminated.and_then(|t| t.reason));
        write!(out, " | {} {} {}", state.unwrap_or_default(), c.ready, c.restart_count).unwrap();
    }
    out
}

/// Lives through the first `until` milliseconds: does each step when it is due, and lists what changed and was told.
fn live(pod: &mut Pod, until: i64) -> Vec<String> {
    let mut out = vec![];
    let mut now = 0;
    loop {
        let step = next(pod, at(0), at(now), &TIMING);
        match step.action {
            Action::Write(status) => {
                // As the server does: whole seconds only.
                pod.status = Some(serde_json::from_value(serde_json::to_value(&status).unwrap()).unwrap());
                out.push(format!("{now} {}", seen(pod)));
            }
            Action::Delete => out.push(format!("{now} deleted")),
            Action::Nothing => {}
        }
        out.extend(step.events.iter().map(|e| format!("  {} {}", e.reason, e.message)));
        match step.after {
            Some(after) if now + i64::try_from(after.as_millis()).unwrap() <= until => now += i64::try_from(after.as_millis()).unwrap(),
            _ => return out,
        }
    }
}

#[test]
fn lives_of_pods() {
    let back_off = "  BackOff Back-off restarting failed container c in pod p_ns(u)";
    for (name, annotations, until, want) in [
        ("well", json!({}), 60_000, vec!["200 Running True | Running true 0"]),
        (
            "slow",
            json!({"sim.odin-hub/ready-after": "3s"}),
            60_000,
            vec!["0 Pending False | ContainerCreating false 0", "3000 Running True | Running true 0"],
        ),
        (
            "crash",
            json!({"sim.odin-hub/fail": "crash"}),
            9_000,
            vec![
                "200 Running False | Error false 0",
                "500 Running False | CrashLoopBackOff false 0",
                back_off,
                "2000 Running False | Running false 1",
                "3000 Running False | Error false 1",
                "3300 Running False | CrashLoopBackOff false 1",
                back_off,
                "7000 Running False | Running false 2",
                "8000 Running False | Error false 2",
                "8300 Running False | CrashLoopBackOff false 2",
                back_off,
            ],
        ),
        (
            "oom after a while",
            json!({"sim.odin-hub/fail": "oom", "sim.odin-hub/fail-after": "10s"}),
            10_000,
            vec!["200 Running True | Running true 0", "10000 Running False | OOMKilled false 0"],
        ),
        (
            "image",
            json!({"sim.odin-hub/fail": "image"}),
            60_000,
            vec![
                "200 Pending False | ErrImagePull false 0",
                "  Failed Failed to pull image \"i\": failed to pull and unpack image \"i\": not found",
                "  Failed Error: ErrImagePull",
                "2200 Pending False | ImagePullBackOff false 0",
                "  BackOff Back-off pulling image \"i\"",
            ],
        ),
        (
            "config",
            json!({"sim.odin-hub/fail": "config"}),
            60_000,
            vec!["200 Pending False | CreateContainerConfigError false 0", "  Failed Error: secret \"missing\" not found"],
        ),
        (
            "unready",
            json!({"sim.odin-hub/fail": "unready"}),
            60_000,
            vec!["200 Running False | Running false 0", "  Unhealthy Readiness probe failed: HTTP probe failed with statuscode: 503"],
        ),
        (
            "once",
            json!({"sim.odin-hub/fail": "once", "sim.odin-hub/fail-after": "5s"}),
            60_000,
            vec!["200 Running True | Running true 0", "5000 Running True | Running true 1"],
        ),
        (
            "evict",
            json!({"sim.odin-hub/fail": "evict", "sim.odin-hub/fail-after": "5s"}),
            60_000,
            vec![
                "200 Running True | Running true 0",
                "5000 Failed False | Error false 0",
                "  Evicted The node was low on resource: ephemeral-storage.",
            ],
        ),
        ("unknown fault", json!({"sim.odin-hub/fail": "explode"}), 60_000, vec!["200 Running True | Running true 0"]),
    ] {
        assert_eq!(live(&mut one(&annotations), until), want, "{name}");
    }
}

#[test]
fn a_fault_strikes_one_container() {
    let spec = json!({"nodeName": "n", "containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]});
    let mut pod = pod(&json!({"sim.odin-hub/fail": "unready", "sim.odin-hub/container": "b"}), &spec);
    live(&mut pod, 1000);
    assert_eq!(seen(&pod), "Running False | Running true 0 | Running false 0");
    let ready = pod.status.unwrap().conditions.unwrap().into_iter().find(|c| c.type_ == "Ready").unwrap();
    assert_eq!(ready.message.as_deref(), Some("containers with unready status: [b]"));
}

#[test]
fn a_missing_image_needs_no_annotation_and_is_mended_by_another_image() {
    let image = |image: &str| json!({"nodeName": "n", "containers": [{"name": "c", "image": image}]});
    let mut pod = pod(&json!({}), &image("sim.invalid/missing:1"));
    live(&mut pod, 10_000);
    assert_eq!(seen(&pod), "Pending False | ImagePullBackOff false 0");
    pod.spec = serde_json::from_value(image("sim.invalid/missing:2")).unwrap();
    let step = next(&pod, at(0), at(20_000), &TIMING);
    let Action::Write(status) = step.action else { panic!("nothing done") };
    pod.status = Some(*status);
    assert_eq!(seen(&pod), "Pending False | ErrImagePull false 0", "another missing image is pulled anew");
    pod.spec = serde_json::from_value(image("i")).unwrap();
    live(&mut pod, 30_000);
    assert_eq!(seen(&pod), "Running True | Running true 0");
}

#[test]
fn init_containers_come_first() {
    let spec = json!({
        "nodeName": "n",
        "initContainers": [{"name": "side", "image": "i", "restartPolicy": "Always"}, {"name": "get", "image": "sim.invalid/missing"}, {"name": "late", "image": "i"}],
        "containers": [{"name": "c", "image": "i"}],
    });
    let mut pod = pod(&json!({}), &spec);
    live(&mut pod, 60_000);
    assert_eq!(seen(&pod), "Pending False | Running true 0 | ImagePullBackOff false 0 | PodInitializing false 0 | PodInitializing false 0");
    pod.spec.as_mut().unwrap().init_containers.as_mut().unwrap()[1].image = Some("i".to_owned());
    live(&mut pod, 60_000);
    assert_eq!(seen(&pod), "Running True | Running true 0 | Completed true 0 | Completed true 0 | Running true 0");
}

#[test]
fn a_fault_that_is_taken_away_leaves_a_pod_that_is_well() {
    for kind in ["crash", "oom", "image", "config", "unready"] {
        let mut pod = one(&json!({"sim.odin-hub/fail": kind}));
        live(&mut pod, 1000);
        assert!(seen(&pod).contains(" False "), "{kind}: {}", seen(&pod));
        pod.metadata.annotations = None;
        live(&mut pod, 1000);
        assert!(seen(&pod).starts_with("Running True"), "{kind}: {}", seen(&pod));
    }
}

#[test]
fn nothing_is_written_when_nothing_changed() {
    for annotations in
        [json!({}), json!({"sim.odin-hub/fail": "image"}), json!({"sim.odin-hub/fail": "config"}), json!({"sim.odin-hub/fail": "once"})]
    {
        let mut pod = one(&annotations);
        live(&mut pod, 60_000);
        let step = next(&pod, at(0), at(3_600_123), &TIMING);
        assert_eq!(step, Step::default(), "{annotations}");
    }
}

#[test]
fn conditions_of_others_stay_and_transitions_keep_their_time() {
    let mut pod = one(&json!({"sim.odin-hub/fail": "unready", "sim.odin-hub/fail-after": "90s"}));
    live(&mut pod, 90_000);
    let times: Vec<_> =
        pod.status.unwrap().conditions.unwrap().into_iter().map(|c| (c.type_, c.status, c.last_transition_time.map(|t| t.0))).collect();
    let condition = |type_: &str, status: &str, time: Option<i64>| (type_.to_owned(), status.to_owned(), time.map(at));
    assert_eq!(
        times,
        [
            condition("PodScheduled", "True", None),
            condition("PodReadyToStartContainers", "True", Some(0)),
            condition("Initialized", "True", Some(0)),
            condition("Ready", "False", Some(90_000)),
            condition("ContainersReady", "False", Some(90_000)),
        ]
    );
}

#[test]
fn deletions() {
    let deleted = |grace: i64, annotations: &Value| {
        let mut pod = one(annotations);
        pod.metadata.deletion_timestamp = Some(Time(at(grace * 1000)));
        pod.metadata.deletion_grace_period_seconds = Some(grace);
        pod
    };
    let wait = |millis| Step { after: Some(Duration::from_millis(millis)), ..Step::default() };
    let gone = || Step { action: Action::Delete, ..Step::default() };
    for (name, grace, annotations, now, want) in [
        ("at once", 30, json!({}), 0, gone()),
        ("lingers", 30, json!({"sim.odin-hub/linger": "5s"}), 1000, wait(4000)),
        ("has lingered", 30, json!({"sim.odin-hub/linger": "5s"}), 5000, gone()),
        ("not beyond the grace period", 3, json!({"sim.odin-hub/linger": "1h"}), 1000, wait(2000)),
        ("grace is over", 3, json!({"sim.odin-hub/linger": "1h"}), 3000, gone()),
        ("confirmed already", 0, json!({}), 0, Step::default()),
    ] {
        assert_eq!(next(&deleted(grace, &annotations), at(0), at(now), &TIMING), want, "{name}");
    }
}

#[test]
fn an_ended_pod_is_left_alone() {
    for phase in ["Succeeded", "Failed"] {
        let mut pod = one(&json!({}));
        pod.status.as_mut().unwrap().phase = Some(phase.to_owned());
        assert_eq!(next(&pod, at(0), at(5000), &TIMING), Step::default(), "{phase}");
    }
}

#[test]
fn addresses_are_stable_and_inside_their_network() {
    assert_eq!(address(250, "gpu-0"), address(250, "gpu-0"));
    assert_ne!(address(250, "gpu-0"), address(250, "gpu-1"));
    assert!(address(200, "").parse::<std::net::Ipv4Addr>().is_ok());
}
