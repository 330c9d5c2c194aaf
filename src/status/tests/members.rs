//! Placements: what members hold, refuse, and hide.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::api::odin::{ObjectRef, Phase};
use crate::api::reason::Reason;
use crate::placement::Plan;
use crate::status::MemberTrouble;

#[test]
fn a_silent_member_leaves_the_sums_and_is_marked() {
    let mut world = World::healthy(&[("gpu-a", 2), ("gpu-b", 1)]);
    world.pass();
    world.members[0].reachable = false;
    let status = world.status();
    assert_eq!((status.replicas, status.ready_replicas, status.updated_replicas), (Some(3), Some(1), Some(1)));
    assert_eq!(word(&status, "Ready"), words("Unknown", "MemberUnreachable"));
    assert_eq!(status.observed_generation, Some(1));
    let silent = placement(&status, "gpu-a");
    assert_eq!((silent.phase, silent.stale, silent.ready_replicas), (Phase::Unknown, true, Some(2)));
    assert_eq!(silent.last_seen, Some(Time(at(-5))));
    assert_eq!(silent.reason.as_deref(), Some("MemberUnreachable"));
    let other = placement(&status, "gpu-b");
    assert_eq!((other.phase, other.stale, &other.last_seen), (Phase::Ready, false, &None));
    let cause = diagnostic(&status);
    assert_eq!((cause.involved_object.kind.as_str(), cause.observed_at.0), ("MemberCluster", at(-5)));

    // Short anyway: that is certain, and the silent member's own pods don't speak.
    world.members[0].signals = vec![pod("chat-a", Reason::ErrImagePull, "old news", -100)];
    world.view(1).ready = 0;
    world.members[1].signals = vec![pod("chat-b", Reason::CrashLoopBackOff, "ends", -1)];
    let status = world.status();
    assert_eq!(word(&status, "Ready"), words("False", "CrashLoopBackOff"));
    assert_eq!(status.workload.unwrap().cluster.as_deref(), Some("gpu-b"));
}

#[test]
fn a_member_that_is_gone_or_locked_out_counts_like_a_silent_one() {
    let mut world = World::healthy(&[("gpu-a", 2), ("gpu-b", 1)]);
    world.pass();
    let trouble = MemberTrouble { reason: Reason::CredentialInvalid, message: "401".into(), since: at(-3) };
    world.members[0].trouble = Some(trouble);
    let status = world.status();
    assert_eq!((word(&status, "Ready"), status.ready_replicas), (words("Unknown", "CredentialInvalid"), Some(1)));

    world.members.remove(0);
    let status = world.status();
    assert_eq!((status.replicas, status.ready_replicas, status.updated_replicas), (Some(3), Some(1), Some(1)));
    assert_eq!(word(&status, "Ready"), words("Unknown", "MemberUnreachable"));
    assert!(text(&status, "Ready").contains("isn't registered"), "{}", text(&status, "Ready"));
    let gone = placement(&status, "gpu-a");
    assert_eq!((gone.stale, gone.current_replicas, gone.workload.as_ref().map(|w| w.name.as_str())), (true, Some(2), Some("chat")));

    // Its replicas are placed elsewhere: then they leave the sum.
    world.plan = Some(Plan { placements: [("gpu-b".to_owned(), 3)].into(), ..Plan::default() });
    let status = world.status();
    assert_eq!((status.replicas, status.placements.len()), (Some(1), 1));
}

#[test]
fn f8_i11_partial_placement_is_told_with_numbers() {
    let mut world = World::healthy(&[("gpu-a", 2)]);
    world.service.spec.replicas = Some(3);
    let plan = world.plan.as_mut().unwrap();
    plan.unplaced = 1;
    plan.rejections = vec![rejection("gpu-b", "needs 8 free amd.com/gpu; largest free: 4")];
    plan.rejection_summary = [("InsufficientRoom".to_owned(), 1)].into();
    let status = world.status();
    assert_eq!(word(&status, "Placed"), words("False", "Unplaced"));
    assert!(text(&status, "Placed").starts_with("2 of 3 groups placed in 1 cluster; gpu-b: InsufficientRoom: needs 8"));
    assert_eq!(word(&status, "Ready"), words("False", "Unplaced"));
    assert_eq!(diagnostic(&status).message, "gpu-b/chat: InsufficientRoom: needs 8 free amd.com/gpu; largest free: 4 (1 group affected)");
    assert_eq!((status.unplaced_replicas, status.rejections.len(), status.rejection_summary.len()), (Some(1), 1, 1));
    assert_eq!(word(&status, "Progressing"), words("False", "Unplaced"));
    assert_eq!(status.observed_generation, Some(1));

    // The service fits nowhere at all.
    world.members.clear();
    world.plan.as_mut().unwrap().placements.clear();
    let status = world.status();
    assert_eq!(word(&status, "Placed").0, "False");
    assert_eq!(word(&status, "Applied"), words("False", "Unplaced"));
    assert_eq!(status.workload.as_ref().map(|w| (w.name.as_str(), w.cluster.as_deref())), Some(("chat", None)));
    assert!(diagnostic(&status).message.ends_with("(3 groups affected)"));
}

#[test]
fn i12_what_rejected_each_cluster_is_counted_in_an_order_that_stays() {
    let mut world = World::healthy(&[]);
    world.service.spec.replicas = Some(1);
    let plan = world.plan.as_mut().unwrap();
    plan.unplaced = 1;
    let told = [
        ("gpu-d", "Fragmented", "needs 1 node with 4 free amd.com/gpu; largest free: 2,2,2; 0 of 1 replicas fit"),
        ("gpu-c", "TaintNotTolerated", "the member has the taint gpu:NoSchedule"),
        ("gpu-a", "NotReady", "it doesn't answer"),
        ("gpu-b", "NotReady", "it doesn't answer"),
        ("gpu-e", "NoSuchAccelerator", "no node has moai.moreh.io/accelerator.model=mi355x"),
    ];
    plan.rejections = told.map(|(cluster, reason, message)| Rejection { reason: reason.into(), ..rejection(cluster, message) }).into();
    for (_, reason, _) in told {
        *plan.rejection_summary.entry(reason.to_owned()).or_default() += 1;
    }
    let want = "0 of 1 group placed in 0 clusters; gpu-d: Fragmented: needs 1 node with 4 free amd.com/gpu; largest free: 2,2,2; 0 of 1 \
                replicas fit; 5 clusters passed over: 1 Fragmented, 1 NoSuchAccelerator, 2 NotReady, 1 TaintNotTolerated";
    assert_eq!(text(&world.status(), "Placed"), want);
    world.plan = None;
    assert_eq!(text(&world.status(), "Placed"), want, "also from what the status holds");
}

#[test]
fn after_a_restart_of_the_hub_the_objects_say_what_was_applied() {
    let mut world = World::healthy(&[("gpu-a", 2)]);
    let before = world.status();
    world.members[0].applied = ApplyState::Pending;
    world.all_ready_since = None;
    world.now = at(900);
    assert_eq!(world.status(), before);
    world.view(0).rendered_hash = Some("of something else".into());
    let status = world.status();
    assert_eq!(word(&status, "Applied"), words("False", "Reconciling"));
    assert_eq!(status.updated_replicas, Some(0));
}

#[test]
fn a_member_that_is_left_is_listed_until_it_is_empty() {
    let mut world = World::healthy(&[("gpu-a", 2)]);
    world.leaving = vec![member("gpu-c", 1, "old")];
    let status = world.status();
    assert_eq!(word(&status, "Ready").0, "True", "what is wanted is there");
    assert_eq!((status.replicas, status.updated_replicas), (Some(3), Some(2)));
    let left = placement(&status, "gpu-c");
    assert_eq!((left.phase, left.replicas, left.current_replicas), (Phase::Leaving, 0, Some(1)));
    assert_eq!(status.clusters.as_deref(), Some("gpu-a:2"));
    assert_eq!(word(&status, "Progressing"), words("True", "Progressing"));
    world.leaving.clear();
    assert_eq!(world.status().placements.len(), 1);
}

#[test]
fn without_a_plan_the_placements_in_the_status_hold() {
    let mut world = World::healthy(&[("gpu-a", 2), ("gpu-b", 1)]);
    let before = world.status();
    world.plan = None;
    assert_eq!(world.status(), before);

    let mut world = World::healthy(&[("gpu-a", 1)]);
    world.plan = None;
    world.members.clear();
    let status = world.status();
    assert_eq!(word(&status, "Placed"), words("", ""), "nothing is decided");
    assert_eq!(word(&status, "Ready"), words("False", "Reconciling"));
    assert_eq!(word(&status, "Progressing"), words("Unknown", "Reconciling"));
    assert_eq!(status.observed_generation, None);
}

#[test]
fn a_member_that_refuses_is_told_verbatim_and_the_others_go_on() {
    let mut world = World::healthy(&[("gpu-a", 1), ("gpu-b", 2)]);
    let object = ObjectRef { kind: "Deployment".into(), namespace: Some("demo".into()), name: "chat".into() };
    let message = "admission webhook \"policy\" denied the request:\n\x1b[31mno\x07".to_owned();
    world.members[0].applied = ApplyState::Failed { reason: Reason::ApplyDenied, message, at: at(-9), object };
    world.members[0].workload = None;
    let status = world.status();
    assert_eq!(word(&status, "Applied"), words("False", "ApplyDenied"));
    assert!(text(&status, "Applied").starts_with("1 of 2 clusters accepted generation 1; gpu-a/chat: admission webhook"));
    let cause = diagnostic(&status);
    assert_eq!(cause.message, "gpu-a/chat: admission webhook \"policy\" denied the request: [31mno (1 group affected)");
    assert_eq!(cause.observed_at.0, at(-9));
    let refused = placement(&status, "gpu-a");
    assert_eq!((refused.phase, refused.reason.as_deref()), (Phase::Planned, Some("ApplyDenied")));
    assert_eq!(placement(&status, "gpu-b").phase, Phase::Ready);
    assert_eq!((status.ready_replicas, status.observed_generation), (Some(2), None));
    let workload = status.workload.unwrap();
    assert_eq!((workload.cluster.as_deref(), workload.conditions.len()), (Some("gpu-a"), 0));
}

#[test]
fn an_answer_that_is_no_verdict_takes_nothing_from_what_runs() {
    let object = ObjectRef { kind: "Deployment".into(), namespace: Some("demo".into()), name: "chat".into() };
    for (reason, truth) in [(Reason::ApplyFailed, "True"), (Reason::ApplyDenied, "False")] {
        let mut world = World::healthy(&[("gpu-a", 1)]);
        world.members[0].applied = ApplyState::Failed { reason, message: "timeout".into(), at: at(-1), object: object.clone() };
        assert_eq!(word(&world.status(), "Ready").0, truth, "{reason}");
    }
}

#[test]
fn an_object_on_its_way_out_is_waited_for() {
    let mut world = World::healthy(&[("gpu-a", 1)]);
    world.view(0).deletion_timestamp = Some(at(-30));
    let status = world.status();
    assert_eq!(word(&status, "Ready"), words("False", "WaitingForDeletion"));
    assert_eq!(diagnostic(&status).observed_at.0, at(-30));

    // A pod on a silent node holds it.
    world.members[0].signals = vec![pod("chat-0", Reason::NodeLost, "node n7 no longer reports", -20)];
    let message = &diagnostic(&world.status()).message.clone();
    assert!(message.ends_with("it waits for Pod chat-0: node n7 no longer reports (1 group affected)"), "{message}");
    assert!(message.starts_with("gpu-a/chat: it is being deleted there"), "{message}");
}

#[test]
fn the_service_in_a_member_is_named_and_remembered() {
    let mut world = World::healthy(&[("gpu-a", 1)]);
    assert_eq!(placement(&world.status(), "gpu-a").service, None);
    world.members[0].service = Some("chat-svc".into());
    assert_eq!(placement(&world.status(), "gpu-a").service.as_deref(), Some("chat-svc"));
    world.members[0].reachable = false;
    world.members[0].service = None;
    assert_eq!(placement(&world.status(), "gpu-a").service.as_deref(), Some("chat-svc"), "what was last known");
    world.members[0].reachable = true;
    assert_eq!(placement(&world.status(), "gpu-a").service, None);
}
