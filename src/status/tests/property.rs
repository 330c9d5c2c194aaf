//! What holds for any facts.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::api::odin::ObjectRef;
use crate::api::reason::Reason;
use crate::status::MemberTrouble;

/// Any facts at all.
fn worlds() -> impl Strategy<Value = World> {
    let bad: Vec<_> = Reason::ALL.iter().copied().filter(|r| *r != Reason::AllReplicasReady).collect();
    let reasons = proptest::sample::select(bad);
    let pod = (reasons.clone(), "[a-c]{1,2}", ".{0,20}", -100_i64..100, proptest::option::of(0..2_u32))
        .prop_map(|(reason, name, text, t, group)| PodSignal { group, ..pod(&name, reason, &text, t) });
    let condition = (
        proptest::sample::select(&["ReplicaFailure", "Progressing", "Available", "UpdateInProgress"][..]),
        proptest::sample::select(&["True", "False"][..]),
        proptest::sample::select(&["FailedCreate", "ProgressDeadlineExceeded", ""][..]),
        any::<bool>(),
    )
        .prop_map(|(type_, status, reason, timed)| {
            let time = if timed { json!("2026-02-25T06:13:00Z") } else { json!(null) };
            json!({"type": type_, "status": status, "reason": reason, "message": "m", "lastTransitionTime": time})
        });
    let applied = (0..4_u8, reasons, -9_i64..9).prop_map(|(kind, reason, t)| (kind, reason, at(t)));
    let counts = (0..4_u32, 0..4_u32, 0..4_u32, proptest::option::of(0..3_i64), 0..3_i64);
    let release = proptest::sample::select(&[None, Some(Release::Before0_7), Some(Release::V0_8), Some(Release::V0_9)][..]);
    let lws = (any::<bool>(), release, proptest::option::of(0..3_u32), any::<bool>());
    let member = (
        (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
        lws,
        applied,
        counts,
        proptest::collection::vec(pod, 0..3),
        proptest::collection::vec(condition, 0..3),
    );
    let names = proptest::sample::subsequence(vec!["gpu-a", "gpu-b", "gpu-c"], 0..=3);
    let members = proptest::collection::vec(member, 3);
    let service = (0..5_i32, any::<bool>(), any::<bool>(), proptest::option::of(-9_i64..9), 0..2_usize, 0..2_usize);
    let workload = (any::<bool>(), 0..3_u32, proptest::collection::btree_map("gpu-[a-c]", 0..2_u32, 0..3));
    (names, members, service, workload).prop_map(
        |(names, members, (replicas, refused, planned, since, gone, left), (is_lws, partition, spare))| {
            let placed: Vec<_> = names.iter().map(|n| (*n, 1)).collect();
            let mut world = if is_lws { World::lws(&placed) } else { World::healthy(&placed) };
            if let Some(workload) = &mut world.workload {
                workload.partition = partition;
            }
            world.service.spec.replicas = Some(replicas);
            world.all_ready_since = since.map(at);
            if !planned {
                world.plan = None;
            }
            if let Some(plan) = &mut world.plan {
                plan.rejections = vec![rejection("gpu-d", "full")];
                plan.spare = spare;
            }
            for (observation, member) in world.members.iter_mut().zip(members) {
                let ((reachable, trouble, present, going), lws, (kind, reason, t), counts, pods, conditions) = member;
                let (other_kind, release, counted, previous) = lws;
                observation.reachable = reachable;
                observation.trouble = trouble.then(|| MemberTrouble { reason, message: "m".into(), since: t });
                observation.signals = pods;
                match kind {
                    0 => observation.applied = ApplyState::Pending,
                    1 => {
                        let object = ObjectRef { kind: "Deployment".into(), namespace: None, name: "chat".into() };
                        observation.applied = ApplyState::Failed { reason, message: "no".into(), at: t, object };
                    }
                    _ => {}
                }
                if let Some(view) = &mut observation.workload {
                    (view.replicas, view.ready, view.updated, view.observed_generation, view.generation) = counts;
                    view.conditions = conditions;
                    view.deletion_timestamp = going.then_some(t);
                    (view.release, view.counted_ready) = (release, counted);
                    if other_kind {
                        view.kind = if is_lws { WorkloadKind::Deployment } else { WorkloadKind::LeaderWorkerSet };
                    }
                    observation.previous = previous.then(|| view.clone());
                }
                if !present {
                    observation.workload = None;
                }
            }
            if left < world.members.len() && left == 1 {
                let leaving = world.members.remove(left);
                if let Some(plan) = &mut world.plan {
                    plan.placements.remove(&leaving.cluster);
                }
                world.leaving.push(leaving);
            }
            world.members.truncate(world.members.len().saturating_sub(gone));
            if refused {
                world.refuse(Reason::InvalidRendered, "no image");
            }
            world
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// `pass` itself asserts that a status that is fed back comes out unchanged.
    #[test]
    fn no_facts_make_it_panic_and_each_status_is_a_fixed_point(first in worlds(), second in worlds(), later in 0_i64..1000) {
        let mut first = first;
        let made = first.pass();
        let known = made.status.conditions.iter().all(|c| !c.reason.is_empty() && c.observed_generation.is_some());
        prop_assert!(known);
        prop_assert!(made.recheck_after.is_none() || made.all_ready);
        if !made.all_ready {
            first.now = at(later);
            prop_assert_eq!(&first.pass().status, &made.status, "time alone changes nothing");
        }
        let mut second = second;
        second.service.status = Some(made.status);
        let next = second.pass().status;
        let ready = word(&next, "Ready");
        let cause = next.workload.as_ref().and_then(|w| w.diagnostic.as_ref());
        prop_assert_eq!(ready.0 == "True", ready.1 == "AllReplicasReady");
        if let Some(cause) = cause {
            prop_assert_eq!(&ready.1, &cause.reason, "Ready's reason is the diagnostic's");
            prop_assert!(cause.message.chars().count() <= 1024 && cause.message.ends_with("affected)"));
        }
    }
}
