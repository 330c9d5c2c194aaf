//! The one cause.

use serde_json::json;

use super::*;
use crate::api::reason::Reason;
use crate::status::rank::rank;

#[test]
fn i6_conditions_are_copied_and_only_true_causes_are_believed() {
    let condition = |type_: &str, status: &str, reason: &str, message: &str| json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-02-25T06:13:00Z"});
    for (conditions, want) in [
        (vec![condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota: gpu")], Some(("FailedCreate", "exceeded quota: gpu"))),
        (vec![condition("ReplicaFailure", "False", "FailedCreate", "exceeded quota: gpu")], None),
        (vec![condition("Progressing", "False", "ProgressDeadlineExceeded", "timed out")], Some(("ProgressDeadlineExceeded", "timed out"))),
        (vec![condition("Progressing", "True", "ProgressDeadlineExceeded", "timed out")], None),
        (vec![condition("Available", "False", "AllGroupsReady", "All replicas are ready")], None),
        (vec![condition("Available", "False", "MinimumReplicasUnavailable", "no minimum")], None),
        (vec![json!("nonsense"), json!({"type": 7})], None),
    ] {
        let mut world = World::healthy(&[("gpu-a", 2)]);
        world.view(0).ready = 0;
        world.view(0).conditions.clone_from(&conditions);
        let status = world.status();
        assert_eq!(status.workload.as_ref().unwrap().conditions, conditions, "verbatim");
        let Some((reason, message)) = want else {
            assert_eq!(status.workload.as_ref().unwrap().diagnostic, None, "{conditions:?}");
            assert_eq!(word(&status, "Ready"), words("False", "Reconciling"));
            continue;
        };
        let cause = diagnostic(&status);
        assert_eq!(cause.reason, reason);
        assert!(cause.message.contains(message), "{}", cause.message);
        assert_eq!(cause.observed_at.0.to_string(), "2026-02-25T06:13:00Z");
        assert_eq!(cause.involved_object.kind, "Deployment");
    }
}

#[test]
fn causes_are_ranked_from_the_root() {
    let ranked = [
        Reason::FailedCreate,
        Reason::ErrImagePull,
        Reason::CrashLoopBackOff,
        Reason::Unschedulable,
        Reason::Unplaced,
        Reason::MemberUnreachable,
        Reason::ProgressDeadlineExceeded,
        Reason::Starting,
    ];
    for pair in ranked.windows(2) {
        assert!(rank(pair[0]) < rank(pair[1]), "{pair:?}");
    }
    for (want, reasons) in [
        (
            1,
            &[
                Reason::TemplateNotFound,
                Reason::RenderFailed,
                Reason::RolloutNotSupported,
                Reason::NameNotAllowed,
                Reason::ExclusiveTopologyImmutable,
            ][..],
        ),
        (2, &[Reason::ApplyDenied, Reason::ObjectConflict, Reason::NamespaceNotAllowed, Reason::PodNotAllowed, Reason::WaitingForDeletion]),
        (3, &[Reason::FailedCreate]),
        (4, &[Reason::ImagePullBackOff, Reason::InvalidImageName, Reason::CreateContainerConfigError, Reason::RunContainerError]),
        (5, &[Reason::OomKilled, Reason::CrashLoopBackOff, Reason::Error]),
        (6, &[Reason::Unschedulable, Reason::SchedulingGated, Reason::Evicted, Reason::Preempted, Reason::NodeLost]),
        (7, &[Reason::Unplaced]),
        (8, &[Reason::MemberUnreachable, Reason::CredentialInvalid]),
        (9, &[Reason::ProgressDeadlineExceeded]),
        (10, &[Reason::ProbeFailing, Reason::Starting]),
        (11, &[Reason::RolloutNeedsSpare]),
    ] {
        for reason in reasons {
            assert_eq!(rank(*reason), want, "{reason}");
        }
    }
}

/// An event of a `StatefulSet` is the only sign of a quota that stops a group; a Deployment has a condition beside it.
#[test]
fn what_makes_pods_tells_for_all_that_is_missing() {
    let event = |kind: &str, name: &str, group| PodSignal {
        object: ObjectRef { kind: kind.into(), namespace: Some("demo".into()), name: name.into() },
        container: None,
        group,
        ..pod("", Reason::FailedCreate, "exceeded quota: gpu, requested: requests.amd.com/gpu=2", -4)
    };
    for (name, mut world, replicas, signals, want) in [
        ("a worker StatefulSet", World::lws(&[("gpu-a", 3)]), 3, vec![event("StatefulSet", "chat-0", Some(0))], 1),
        ("the leaders'", World::lws(&[("gpu-a", 3)]), 1, vec![event("StatefulSet", "chat", None)], 2),
        ("both", World::lws(&[("gpu-a", 3)]), 2, vec![event("StatefulSet", "chat", None), event("StatefulSet", "chat-1", Some(1))], 2),
        ("the LWS itself", World::lws(&[("gpu-a", 3)]), 0, vec![event("LeaderWorkerSet", "chat", None)], 3),
        ("a ReplicaSet", World::healthy(&[("gpu-a", 3)]), 1, vec![event("ReplicaSet", "chat-5d", None)], 2),
    ] {
        let view = world.view(0);
        (view.replicas, view.ready) = (replicas, 0);
        if view.kind == WorkloadKind::Deployment {
            let message = "pods \"chat-5d-x\" is forbidden: exceeded quota: gpu";
            view.conditions = vec![json!({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message})];
        }
        world.members[0].signals = signals;
        world.members[0].signals.push(pod("chat-0", Reason::Unschedulable, "0/4 nodes are available", -1));
        let cause = diagnostic(&world.status()).clone();
        assert_eq!(cause.reason, "FailedCreate", "{name}");
        assert!(cause.message.contains("exceeded quota: gpu") && cause.message.starts_with("gpu-a/chat"), "{name}: {}", cause.message);
        let tail = format!("({want} {} affected)", if want == 1 { "group" } else { "groups" });
        assert!(cause.message.ends_with(&tail), "{name}: {}", cause.message);
    }
}

#[test]
fn of_equal_signals_the_one_that_is_told_stays() {
    let mut world = World::healthy(&[("gpu-a", 2)]);
    world.view(0).ready = 0;
    let crash = |name: &str, seconds| pod(name, Reason::CrashLoopBackOff, "ends again and again", seconds);
    world.members[0].signals = vec![crash("p", -5), crash("q", -9)];
    assert_eq!(diagnostic(&world.status()).involved_object.name, "p", "the newest");
    world.members[0].signals = vec![crash("p", -5), crash("q", -1)];
    let status = world.status();
    assert_eq!(diagnostic(&status).involved_object.name, "p", "it stays");
    assert_eq!(placement(&status, "gpu-a").message.as_deref(), Some("p: ends again and again"));
    world.members[0].signals = vec![crash("q", -1)];
    assert_eq!(diagnostic(&world.status()).involved_object.name, "q", "until it is over");
    world.members[0].signals = vec![crash("q", -1), pod("r", Reason::ErrImagePull, "not found", -100)];
    assert_eq!(diagnostic(&world.status()).involved_object.name, "r", "or something nearer to the root comes up");
}

#[test]
fn of_equal_rank_the_one_with_most_groups_then_the_newest_then_the_first_by_name() {
    let case = |a: Vec<PodSignal>, b: Vec<PodSignal>| {
        let mut world = World::healthy(&[("gpu-a", 3), ("gpu-b", 3)]);
        for (i, pods) in [a, b].into_iter().enumerate() {
            world.view(i).ready = 0;
            world.members[i].signals = pods;
        }
        diagnostic(&world.status()).message.clone()
    };
    let image = |name: &str, seconds| pod(name, Reason::ErrImagePull, "not found", seconds);
    let config = |name: &str, seconds| pod(name, Reason::CreateContainerConfigError, "no key", seconds);
    for (a, b, want) in [
        (vec![image("p", -1)], vec![config("q", -9), config("r", -8)], "gpu-b/r: no key (2 groups affected)"),
        (vec![image("p", -5)], vec![image("q", -2), config("r", -1)], "gpu-b/q: not found (2 groups affected)"),
        (vec![image("p", -5)], vec![image("q", -5)], "gpu-a/p: not found (2 groups affected)"),
        (vec![pod("s", Reason::Starting, "loads", -1), image("z", -50)], vec![], "gpu-a/z: not found (1 group affected)"),
    ] {
        assert_eq!(case(a, b), want);
    }
}

#[test]
fn trying_and_waiting_to_pull_an_image_is_one_state() {
    let mut world = World::healthy(&[("gpu-a", 2)]);
    world.view(0).ready = 0;
    let pull = |name: &str, reason: Reason| pod(name, reason, reason.as_str(), -5);
    world.members[0].signals = vec![pull("p", Reason::ErrImagePull), pull("q", Reason::ErrImagePull)];
    let first = world.status();
    assert_eq!(diagnostic(&first).message, "gpu-a/p: ErrImagePull (2 groups affected)");
    for (p, q) in [
        (Reason::ImagePullBackOff, Reason::ErrImagePull),
        (Reason::ImagePullBackOff, Reason::ImagePullBackOff),
        (Reason::ErrImagePull, Reason::ImagePullBackOff),
    ] {
        world.members[0].signals = vec![pull("p", p), pull("q", q)];
        assert_eq!(world.status(), first, "{p} {q}");
    }
    world.members[0].signals = vec![pull("other", Reason::ImagePullBackOff)];
    let status = world.status();
    assert_eq!(diagnostic(&status).reason, "ImagePullBackOff");
    assert_eq!(placement(&status, "gpu-a").message.as_deref(), Some("other: ImagePullBackOff"));
}

#[test]
fn pods_of_a_share_that_is_done_explain_nothing() {
    let mut world = World::healthy(&[("gpu-a", 1), ("gpu-b", 1)]);
    world.members[0].signals = vec![pod("extra", Reason::CrashLoopBackOff, "surplus", -1)];
    world.view(1).ready = 0;
    world.members[1].signals = vec![pod("p", Reason::Starting, "loads", -1)];
    assert_eq!(diagnostic(&world.status()).reason, "Starting");
}

#[test]
fn messages_hold_no_secret_and_have_an_end() {
    let mut world = World::healthy(&[("gpu-a", 1)]);
    world.rendered.as_mut().unwrap().spec["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "HF_TOKEN", "value": "canary-value-1"}]);
    world.view(0).ready = 0;
    world.members[0].signals = vec![pod("p", Reason::Error, &format!("canary-value-1 {}", "x".repeat(5000)), -1)];
    let status = world.status();
    let mut shown = serde_json::to_value(&status).unwrap();
    shown.as_object_mut().unwrap().remove("renderedSpec");
    assert!(!shown.to_string().contains("canary-value-1"));
    assert_eq!(diagnostic(&status).message.chars().count(), 1024);
    assert!(diagnostic(&status).message.ends_with("… (1 group affected)"));
    assert!(placement(&status, "gpu-a").message.as_ref().unwrap().len() <= 256);
}
