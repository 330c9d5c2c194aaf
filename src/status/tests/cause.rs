//! The one cause.

use serde_json::json;

use super::*;
use crate::api::reason::Reason;
use crate::status::diagnose::rank;

#[test]
fn conditions_are_copied_and_only_true_causes_are_believed() {
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
    assert!(rank(Reason::RenderFailed) < rank(Reason::ObjectConflict));
    assert!(rank(Reason::ObjectConflict) < rank(Reason::FailedCreate));
}

#[test]
fn of_equal_rank_the_one_with_most_groups_then_the_newest_then_the_first_by_name() {
    let case = |a: Vec<PodSignal>, b: Vec<PodSignal>| {
        let mut world = World::healthy(&[("gpu-a", 3), ("gpu-b", 3)]);
        for (i, pods) in [a, b].into_iter().enumerate() {
            world.view(i).ready = 0;
            world.members[i].pods = pods;
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
    world.members[0].pods = vec![pull("p", Reason::ErrImagePull), pull("q", Reason::ErrImagePull)];
    let first = world.status();
    assert_eq!(diagnostic(&first).message, "gpu-a/p: ErrImagePull (2 groups affected)");
    for (p, q) in [
        (Reason::ImagePullBackOff, Reason::ErrImagePull),
        (Reason::ImagePullBackOff, Reason::ImagePullBackOff),
        (Reason::ErrImagePull, Reason::ImagePullBackOff),
    ] {
        world.members[0].pods = vec![pull("p", p), pull("q", q)];
        assert_eq!(world.status(), first, "{p} {q}");
    }
    world.members[0].pods = vec![pull("other", Reason::ImagePullBackOff)];
    let status = world.status();
    assert_eq!(diagnostic(&status).reason, "ImagePullBackOff");
    assert_eq!(placement(&status, "gpu-a").message.as_deref(), Some("other: ImagePullBackOff"));
}

#[test]
fn pods_of_a_share_that_is_done_explain_nothing() {
    let mut world = World::healthy(&[("gpu-a", 1), ("gpu-b", 1)]);
    world.members[0].pods = vec![pod("extra", Reason::CrashLoopBackOff, "surplus", -1)];
    world.view(1).ready = 0;
    world.members[1].pods = vec![pod("p", Reason::Starting, "loads", -1)];
    assert_eq!(diagnostic(&world.status()).reason, "Starting");
}

#[test]
fn messages_hold_no_secret_and_have_an_end() {
    let mut world = World::healthy(&[("gpu-a", 1)]);
    world.rendered.as_mut().unwrap().spec["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "HF_TOKEN", "value": "canary-value-1"}]);
    world.view(0).ready = 0;
    world.members[0].pods = vec![pod("p", Reason::Error, &format!("canary-value-1 {}", "x".repeat(5000)), -1)];
    let status = world.status();
    let mut shown = serde_json::to_value(&status).unwrap();
    shown.as_object_mut().unwrap().remove("renderedSpec");
    assert!(!shown.to_string().contains("canary-value-1"));
    assert_eq!(diagnostic(&status).message.chars().count(), 1024);
    assert!(diagnostic(&status).message.ends_with("… (1 group affected)"));
    assert!(placement(&status, "gpu-a").message.as_ref().unwrap().len() <= 256);
}
