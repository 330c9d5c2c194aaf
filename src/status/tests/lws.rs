//! Groups of a `LeaderWorkerSet`, and when its status can be believed.

use super::*;
use crate::api::odin::Phase;
use crate::api::reason::Reason;

/// Its status as release 0.8 writes it: no generation, and readiness that only the hub's own count can tell.
fn as_0_8(view: &mut WorkloadView, counted: u32) {
    view.release = Some(Release::V0_8);
    view.observed_generation = None;
    view.counted_ready = Some(counted);
}

#[test]
fn f63_counters_are_groups_and_each_release_is_believed_in_what_it_knows() {
    type Change = fn(&mut WorkloadView);
    let cases: [(&str, Change, u32, &str); 10] = [
        ("0.9, all ready", |_| {}, 2, "True"),
        ("0.9, a worker is down", |v| v.ready = 1, 1, "False"),
        ("0.9, has not reported yet", |v| v.observed_generation = Some(0), 0, "False"),
        ("0.9, has not seen this generation", |v| v.generation = 2, 2, "False"),
        ("unknown release that names a generation", |v| v.release = None, 2, "True"),
        ("0.8, all ready", |v| as_0_8(v, 2), 2, "True"),
        ("0.8, says ready while workers are Pending", |v| as_0_8(v, 0), 0, "False"),
        (
            "0.8, says less than the hub sees",
            |v| {
                as_0_8(v, 2);
                v.ready = 1;
            },
            1,
            "False",
        ),
        (
            "unknown release without a generation",
            |v| {
                as_0_8(v, 1);
                v.release = None;
            },
            1,
            "False",
        ),
        (
            "0.8, nobody looked at the workers",
            |v| {
                as_0_8(v, 2);
                v.counted_ready = None;
            },
            0,
            "False",
        ),
    ];
    for (name, change, ready, truth) in cases {
        let mut world = World::lws(&[("gpu-a", 2)]);
        change(world.view(0));
        // What is there was written by the hub.
        let written = world.view(0).generation;
        if let ApplyState::Applied { object_generation, .. } = &mut world.members[0].applied {
            *object_generation = written;
        }
        let status = world.status();
        assert_eq!(status.ready_replicas, Some(i32::try_from(ready).unwrap()), "{name}");
        assert_eq!(word(&status, "Ready").0, truth, "{name}: {}", text(&status, "Ready"));
    }
}

#[test]
fn f63_one_worker_down_is_one_group_down() {
    let mut world = World::lws(&[("gpu-a", 2)]);
    world.view(0).ready = 1;
    let worker = |name: &str, group| PodSignal { group: Some(group), ..pod(name, Reason::ErrImagePull, "not found", -3) };
    world.members[0].signals = vec![worker("chat-1", 1), worker("chat-1-1", 1), worker("chat-1-3", 1)];
    let status = world.status();
    assert_eq!((status.replicas, status.ready_replicas), (Some(2), Some(1)));
    assert_eq!(diagnostic(&status).message, "gpu-a/chat-1: not found (1 group affected)");
    world.members[0].signals.push(worker("chat-0-1", 0));
    assert!(diagnostic(&world.status()).message.ends_with("(2 groups affected)"));
}

#[test]
fn a_new_one_shows_nothing_and_proves_nothing() {
    for release in [Some(Release::V0_9), Some(Release::V0_8), None] {
        let mut world = World::lws(&[("gpu-a", 2)]);
        let view = world.view(0);
        (view.replicas, view.ready, view.updated) = (0, 0, 0);
        (view.release, view.observed_generation, view.conditions) = (release, None, Vec::new());
        let status = world.status();
        assert_eq!(word(&status, "Ready"), words("False", "Reconciling"), "{release:?}");
        assert_eq!(word(&status, "Applied"), words("True", "Applied"));
        assert_eq!(status.observed_generation, None, "{release:?}");
        let workload = status.workload.unwrap();
        assert_eq!((workload.conditions.len(), workload.observed_generation), (0, None));

        // Then it works on it: the first condition, and groups that aren't complete.
        let view = world.view(0);
        view.conditions = lws_conditions(None, Some(true), None);
        (view.replicas, view.updated, view.counted_ready) = (2, 0, Some(0));
        if release == Some(Release::V0_9) {
            view.observed_generation = Some(1);
        }
        let status = world.status();
        assert_eq!(status.observed_generation, Some(1), "{release:?}");
        assert_eq!((status.replicas, word(&status, "Ready").0.as_str()), (Some(2), "False"));
        assert_eq!(word(&status, "Progressing"), words("True", "Progressing"));
    }
}

#[test]
fn conditions_decide_nothing() {
    // A broken one keeps the words of when it was well, and Available alone is no proof.
    for (conditions, ready, truth) in [
        (lws_conditions(Some(false), Some(true), None), 0, "False"),
        (lws_conditions(Some(true), Some(false), None), 0, "False"),
        (lws_conditions(Some(false), Some(true), Some(true)), 2, "True"),
        (lws_conditions(Some(true), Some(false), Some(false)), 2, "True"),
    ] {
        let mut world = World::lws(&[("gpu-a", 2)]);
        world.view(0).ready = ready;
        world.view(0).conditions.clone_from(&conditions);
        let status = world.status();
        assert_eq!(word(&status, "Ready").0, truth, "{conditions:?}");
        let workload = status.workload.as_ref().unwrap();
        assert_eq!((&workload.conditions, &workload.diagnostic), (&conditions, &None), "verbatim, and never the cause");
        assert!(!text(&status, "Ready").contains("All replicas"));
    }
}

#[test]
fn an_old_release_that_says_it_updates_is_not_done() {
    for (conditions, truth) in
        [(lws_conditions(Some(false), Some(true), Some(true)), "False"), (lws_conditions(Some(true), Some(false), Some(false)), "True")]
    {
        let mut world = World::lws(&[("gpu-a", 2)]);
        as_0_8(world.view(0), 2);
        world.view(0).conditions = conditions;
        assert_eq!(word(&world.status(), "Ready").0, truth);
    }
}

#[test]
fn f64_surge_groups_are_reported_and_hold_the_end_of_a_rollout() {
    for (partition, replicas, ready, updated, truth) in [
        (0, 3, 3, 3, "True"),
        (0, 4, 4, 4, "False"),
        (0, 4, 4, 3, "False"),
        (0, 3, 3, 2, "False"),
        // A canary: that is its normal end, with or without surge groups, which then stay.
        (1, 3, 3, 2, "True"),
        (2, 3, 3, 1, "True"),
        (2, 3, 3, 0, "False"),
        (2, 3, 2, 1, "False"),
        (2, 4, 4, 2, "True"),
        (2, 4, 4, 1, "False"),
        (2, 4, 3, 2, "False"),
        (9, 3, 3, 0, "True"),
    ] {
        let mut world = World::lws(&[("gpu-a", 3)]);
        world.workload.as_mut().unwrap().partition = partition;
        let view = world.view(0);
        (view.replicas, view.ready, view.updated) = (replicas, ready, updated);
        let status = world.status();
        assert_eq!(word(&status, "Ready").0, truth, "partition {partition}: {replicas} {ready} {updated}");
        let counted = [status.replicas, status.ready_replicas, status.updated_replicas].map(|n| u32::try_from(n.unwrap()).unwrap());
        assert_eq!(counted, [replicas, ready, updated], "as they are");
    }
}

#[test]
fn a_rolling_update_as_it_was_recorded() {
    let mut world = World::lws(&[("gpu-a", 2)]);
    world.pass();
    world.edit("y");
    world.apply(0);
    let before = world.status();
    assert_eq!((before.observed_generation, before.ready_replicas, before.updated_replicas), (Some(1), Some(2), Some(0)));
    for (ready, updated, done) in [(1, 0, false), (1, 1, false), (1, 2, false), (2, 2, true)] {
        let view = world.view(0);
        (view.observed_generation, view.ready, view.updated) = (Some(2), ready, updated);
        view.conditions = lws_conditions(Some(done), Some(!done), Some(!done));
        let status = world.status();
        assert_eq!(status.observed_generation, Some(2));
        assert_eq!(status.ready_replicas, Some(i32::try_from(ready).unwrap()));
        let ended = (word(&status, "Ready").0 == "True", placement(&status, "gpu-a").phase == Phase::Ready);
        assert_eq!(ended, (done, done), "{ready} {updated}");
    }
}

#[test]
fn f63_an_old_release_counts_for_a_new_generation_once_the_written_object_is_seen() {
    let mut world = World::lws(&[("gpu-a", 2)]);
    as_0_8(world.view(0), 2);
    world.pass();
    world.edit("y");
    world.apply(0);
    let written = world.view(0).generation;
    world.view(0).generation = 1;
    let status = world.status();
    assert_eq!((status.observed_generation, status.updated_replicas), (Some(1), Some(0)), "what is seen is from before the write");
    world.view(0).generation = written;
    world.view(0).updated = 0;
    world.view(0).conditions = lws_conditions(Some(false), Some(true), Some(true));
    let status = world.status();
    assert_eq!((status.observed_generation, status.updated_replicas), (Some(2), Some(0)));
    assert_eq!(word(&status, "Ready").0, "False");
}
