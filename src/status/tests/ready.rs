//! Ready, and the generation that everything has arrived at.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::api::condition;
use crate::api::odin::Phase;
use crate::api::reason::Reason;

#[test]
fn i7_ready_is_gained_when_it_lasts_and_lost_at_once() {
    let mut world = World::healthy(&[("gpu-a", 2)]);
    world.all_ready_since = None;
    let first = world.pass();
    assert_eq!((first.all_ready, first.recheck_after), (true, Some(Duration::from_secs(2))));
    assert_eq!(word(&first.status, "Ready"), words("False", "Reconciling"));

    world.all_ready_since = Some(at(0));
    world.now = at(0) + SignedDuration::from_millis(1500);
    let waiting = world.pass();
    assert_eq!(waiting.recheck_after, Some(Duration::from_millis(500)));
    assert_eq!(waiting.status, first.status, "nothing moves meanwhile");

    world.now = at(2);
    let ready = world.pass();
    assert_eq!(word(&ready.status, "Ready"), words("True", "AllReplicasReady"));
    assert_eq!(condition::find(&ready.status.conditions, "Ready").unwrap().last_transition_time, Time(at(2)));

    // After a restart nobody knows since when, and nothing changes.
    world.all_ready_since = None;
    world.now = at(100);
    let restarted = world.pass();
    assert_eq!((restarted.status, restarted.recheck_after), (ready.status, None));

    world.view(0).ready = 1;
    world.members[0].signals = vec![pod("chat-x", Reason::CrashLoopBackOff, "container main ends again and again", 99)];
    let lost = world.status();
    assert_eq!(word(&lost, "Ready"), words("False", "CrashLoopBackOff"));
    assert_eq!(text(&lost, "Ready"), "gpu-a/chat-x: container main ends again and again (1 group affected)");
    assert_eq!(lost.ready_replicas, Some(1));
    let cause = diagnostic(&lost);
    assert_eq!((cause.observed_at.0, cause.container.as_deref(), cause.cluster.as_deref()), (at(99), Some("main"), Some("gpu-a")));

    // Ready for a moment: the cause stays until it has lasted.
    world.view(0).ready = 2;
    world.members[0].signals.clear();
    world.all_ready_since = Some(at(100));
    let moment = world.status();
    assert_eq!(word(&moment, "Ready"), words("False", "CrashLoopBackOff"));
    assert_eq!(moment.ready_replicas, Some(2), "counters follow");
    world.now = at(103);
    let settled = world.status();
    assert_eq!(word(&settled, "Ready"), words("True", "AllReplicasReady"));
    assert_eq!(settled.workload.unwrap().diagnostic, None);
}

#[test]
fn a_clock_that_was_set_back_does_not_stretch_the_wait() {
    let mut world = World::healthy(&[("gpu-a", 1)]);
    world.all_ready_since = Some(at(3600));
    assert_eq!(world.pass().recheck_after, Some(Duration::from_secs(2)));
}

#[test]
fn f6_i10_a_new_generation_counts_only_when_each_child_has_observed_it() {
    let mut world = World::healthy(&[("gpu-a", 2), ("gpu-b", 1)]);
    world.pass();
    world.edit("y");
    let status = world.status();
    assert_eq!(status.observed_generation, Some(1), "nothing applied yet");
    assert_eq!(word(&status, "Applied"), words("False", "Reconciling"));
    assert_eq!(word(&status, "Ready"), words("False", "Reconciling"));
    assert_eq!((status.replicas, status.ready_replicas, status.updated_replicas), (Some(3), Some(3), Some(0)));

    world.apply(0);
    world.apply(1);
    let status = world.status();
    assert_eq!(word(&status, "Applied"), words("True", "Applied"));
    assert_eq!(status.observed_generation, Some(1), "full counters of the generation before don't count");
    assert_eq!(word(&status, "Ready").0, "False");
    assert_eq!((status.ready_replicas, status.updated_replicas), (Some(3), Some(0)));

    for i in 0..2 {
        let view = world.view(i);
        view.observed_generation = Some(view.generation);
        view.updated = 0;
    }
    world.view(1).observed_generation = Some(1);
    assert_eq!(world.status().observed_generation, Some(1), "one member is behind");
    world.view(1).observed_generation = Some(2);
    let status = world.status();
    assert_eq!(status.observed_generation, Some(2));
    assert_eq!(word(&status, "Progressing"), words("True", "Progressing"));

    for (i, n) in [(0, 2), (1, 1)] {
        world.view(i).updated = n;
    }
    assert_eq!(word(&world.status(), "Progressing"), words("False", "Complete"));
}

#[test]
fn a_changed_template_is_a_new_revision_without_a_new_generation() {
    let mut world = World::healthy(&[("gpu-a", 2)]);
    world.pass();
    world.edit("y");
    world.service.metadata.generation = Some(1);
    let status = world.status();
    assert_eq!(word(&status, "Ready").0, "False");
    assert_eq!(status.updated_replicas, Some(0));
    assert_eq!(placement(&status, "gpu-a").phase, Phase::Planned);
}

#[test]
fn f64_surge_groups_are_counted_and_old_ones_do_not_make_ready() {
    for (replicas, ready, updated, truth) in
        [(4, 4, 3, "True"), (4, 3, 3, "False"), (3, 3, 3, "True"), (3, 3, 2, "False"), (5, 5, 5, "True"), (3, 2, 3, "False")]
    {
        let mut world = World::healthy(&[("gpu-a", 3)]);
        let view = world.view(0);
        (view.replicas, view.ready, view.updated) = (replicas, ready, updated);
        let status = world.status();
        assert_eq!(word(&status, "Ready").0, truth, "{replicas} {ready} {updated}");
        assert_eq!(status.replicas, Some(i32::try_from(replicas).unwrap()));
        assert_eq!(status.ready_replicas, Some(i32::try_from(ready).unwrap()));
    }
}

#[test]
fn no_groups_wanted_is_ready_when_there_are_none() {
    let mut world = World::healthy(&[("gpu-a", 0)]);
    assert_eq!(word(&world.status(), "Ready"), words("True", "AllReplicasReady"));
    world.view(0).replicas = 1;
    assert_eq!(word(&world.status(), "Ready").0, "False");

    let mut world = World::healthy(&[]);
    assert_eq!(world.service.spec.replicas, Some(0));
    let status = world.status();
    assert_eq!(word(&status, "Ready"), words("True", "AllReplicasReady"));
    assert_eq!((status.replicas, status.clusters), (Some(0), None));
    world.leaving = vec![member("gpu-a", 1, "x")];
    let status = world.status();
    assert_eq!(word(&status, "Ready").0, "False");
    assert_eq!(placement(&status, "gpu-a").phase, Phase::Leaving);
}

#[test]
fn times_move_with_their_condition_only() {
    let mut world = World::healthy(&[("gpu-a", 2)]);
    world.pass();
    world.now = at(50);
    world.view(0).ready = 1;
    let status = world.status();
    let moved = |type_: &str| condition::find(&status.conditions, type_).unwrap().last_transition_time.0 == at(50);
    assert!(moved("Ready") && moved("Progressing"));
    assert!(!moved("Placed") && !moved("Applied") && !moved("Rendered"));
}
