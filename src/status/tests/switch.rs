//! A service that becomes another kind of workload.

use super::*;
use crate::api::odin::Phase;
use crate::api::reason::Reason;

/// A Deployment serves two groups, and the service was made a `LeaderWorkerSet` by an edit.
fn switched() -> World {
    let mut world = World::healthy(&[("gpu-a", 2)]);
    world.pass();
    world.edit("y");
    if let Some(workload) = &mut world.workload {
        workload.kind = WorkloadKind::LeaderWorkerSet;
    }
    world
}

/// The new kind was accepted beside the old one, and its controller has reported nothing.
fn accepted() -> World {
    let mut world = switched();
    world.pass();
    let hash = world.workload.as_ref().unwrap().hash.clone();
    let member = &mut world.members[0];
    member.applied = ApplyState::Applied { generation: 2, object_generation: 1, hash: hash.clone() };
    member.previous = member.workload.replace(WorkloadView {
        kind: WorkloadKind::LeaderWorkerSet,
        release: Some(Release::V0_9),
        name: "chat".into(),
        namespace: "demo".into(),
        uid: "new".into(),
        generation: 1,
        rendered_hash: Some(hash),
        service_generation: Some(2),
        ..WorkloadView::default()
    });
    world
}

fn counts(status: &InferenceServiceStatus) -> [i32; 3] {
    [status.replicas, status.ready_replicas, status.updated_replicas].map(Option::unwrap)
}

#[test]
fn before_its_successor_is_accepted_the_old_one_serves() {
    let mut world = switched();
    for applied in [ApplyState::Pending, world.members[0].applied.clone()] {
        world.members[0].applied = applied;
        let status = world.status();
        assert_eq!((counts(&status), status.observed_generation), ([2, 2, 0], Some(1)));
        assert_eq!(word(&status, "Applied"), words("False", "Reconciling"));
        assert_eq!(word(&status, "Ready").0, "False");
        let workload = status.workload.as_ref().unwrap();
        assert_eq!((workload.kind, workload.conditions.len()), (WorkloadKind::LeaderWorkerSet, 0), "it starts anew");
        let there = placement(&status, "gpu-a");
        assert_eq!((there.phase, there.workload.as_ref().map(|w| w.kind)), (Phase::Planned, Some(WorkloadKind::Deployment)));
    }
    // A refusal leaves it at that.
    let object = ObjectRef { kind: "LeaderWorkerSet".into(), namespace: Some("demo".into()), name: "chat".into() };
    let (reason, message) = (Reason::ApplyDenied, "no".to_owned());
    world.members[0].applied = ApplyState::Failed { reason, message, at: at(-1), object };
    let status = world.status();
    assert_eq!((counts(&status), word(&status, "Ready")), ([2, 2, 0], words("False", "ApplyDenied")));
}

#[test]
fn both_count_until_the_old_one_is_gone() {
    let mut world = accepted();
    let status = world.status();
    assert_eq!((counts(&status), status.observed_generation), ([2, 2, 0], Some(1)), "the new one has reported nothing");
    assert_eq!(status.workload.as_ref().map(|w| w.kind), Some(WorkloadKind::LeaderWorkerSet));
    assert_eq!(placement(&status, "gpu-a").workload.as_ref().map(|w| w.kind), Some(WorkloadKind::LeaderWorkerSet));

    let view = world.view(0);
    (view.observed_generation, view.replicas, view.updated, view.ready) = (Some(1), 2, 2, 0);
    view.conditions = lws_conditions(None, Some(true), None);
    let status = world.status();
    assert_eq!((counts(&status), status.observed_generation), ([4, 2, 2], Some(2)), "the new one has observed it");
    assert_eq!(status.workload.as_ref().map(|w| w.conditions.len()), Some(1));

    world.view(0).ready = 2;
    let status = world.status();
    assert_eq!(counts(&status), [4, 4, 2]);
    assert_eq!(word(&status, "Ready"), words("False", "Reconciling"), "the old one is still there");
    assert!(text(&status, "Ready").ends_with("the Deployment of before is still in gpu-a"), "{}", text(&status, "Ready"));
    assert_eq!(word(&status, "Progressing"), words("True", "Progressing"));

    let old = world.members[0].previous.as_mut().unwrap();
    (old.deletion_timestamp, old.replicas, old.ready) = (Some(at(0)), 1, 1);
    let status = world.status();
    assert_eq!((counts(&status), word(&status, "Ready").0.as_str()), ([3, 3, 2], "False"));

    let old = world.members[0].previous.as_mut().unwrap();
    (old.replicas, old.ready) = (0, 0);
    let status = world.status();
    assert_eq!((counts(&status), word(&status, "Ready")), ([2, 2, 2], words("False", "Reconciling")), "empty, and not gone");

    world.members[0].previous = None;
    let status = world.status();
    assert_eq!((counts(&status), word(&status, "Ready")), ([2, 2, 2], words("True", "AllReplicasReady")));
}

#[test]
fn a_successor_that_never_reports_does_not_hide_that_the_old_one_is_gone() {
    let mut world = accepted();
    world.pass();
    world.members[0].previous = None;
    assert_eq!(counts(&world.status()), [0, 0, 0]);
}

#[test]
fn the_way_back_is_the_same() {
    let mut world = World::lws(&[("gpu-a", 2)]);
    world.pass();
    world.edit("y");
    if let Some(workload) = &mut world.workload {
        workload.kind = WorkloadKind::Deployment;
    }
    // The old one is on its way out already, which isn't what the new one waits for.
    world.view(0).deletion_timestamp = Some(at(-1));
    let status = world.status();
    assert_eq!((counts(&status), word(&status, "Ready")), ([2, 2, 0], words("False", "Reconciling")));
    assert_eq!(status.workload.unwrap().kind, WorkloadKind::Deployment);
}
