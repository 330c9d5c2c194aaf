//! A worker of a `LeaderWorkerSet` that crashes a second after it became ready, as it was recorded: the group is made
//! anew within 0.3 s, so that restart counts stay 0 and `Available` flaps every second or two.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::*;
use crate::api::reason::Reason;

/// Moments of one round of a group, in milliseconds since its pods were made anew.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    /// Pods wait for the scheduler, which has not looked or still sees the pods of before.
    Pending,
    /// Containers run and aren't ready.
    Starts,
    /// All is ready for a second.
    Ready,
    /// The worker has ended, and the group is still there.
    Ended,
}

fn moment(milliseconds: i64) -> Moment {
    match milliseconds.rem_euclid(2000) {
        0..300 => Moment::Pending,
        300..700 => Moment::Starts,
        700..1700 => Moment::Ready,
        _ => Moment::Ended,
    }
}

/// What the member module shows: the pods as they are, and what it remembers of crashes.
fn signals(group: u32, now: i64) -> Vec<PodSignal> {
    let (worker, seconds) = (format!("chat-{group}-1"), now.div_euclid(1000));
    let of = |name: &str, reason, message: &str| PodSignal { group: Some(group), ..pod(name, reason, message, seconds) };
    let leader = format!("chat-{group}");
    let mut signals = Vec::new();
    let rounds = now.div_euclid(2000);
    let mut own = match moment(now) {
        Moment::Pending if rounds % 2 == 0 => {
            vec![of(&leader, Reason::Unschedulable, "0/2 nodes are available: 2 Insufficient amd.com/gpu.")]
        }
        Moment::Pending => vec![of(&leader, Reason::Starting, "the pod waits for the scheduler")],
        Moment::Starts => vec![of(&leader, Reason::Starting, "container main runs"), of(&worker, Reason::Starting, "container main runs")],
        Moment::Ready => Vec::new(),
        Moment::Ended => vec![of(&worker, Reason::Error, "container main ended (exit code 1, restarts 0): no peer")],
    };
    if rounds > 0 {
        let words = format!("container main ends again and again (exit code 1): no peer; the group was recreated {rounds} times");
        own.retain(|s| s.object.name != worker);
        signals.push(of(&worker, Reason::CrashLoopBackOff, &words));
    }
    signals.extend(own);
    signals
}

/// Without the counters, which follow, the child's own conditions, and what counts crashes.
fn essence(status: &InferenceServiceStatus) -> String {
    let mut status = status.clone();
    (status.replicas, status.ready_replicas, status.updated_replicas) = (None, None, None);
    if let Some(workload) = &mut status.workload {
        workload.conditions.clear();
        if let Some(diagnostic) = &mut workload.diagnostic {
            diagnostic.observed_at.0 = at(0);
        }
    }
    for placement in &mut status.placements {
        (placement.current_replicas, placement.ready_replicas, placement.updated_replicas) = (None, None, None);
    }
    let text = serde_json::to_string(&status).unwrap();
    regex::Regex::new(r"recreated \d+ times|\d of \d groups? ready|affected\)|\(\d groups? ").unwrap().replace_all(&text, "#").into_owned()
}

/// Thirty seconds of it, looked at every `step` milliseconds. `offsets` is when each group crashes.
fn play(step: usize, offsets: &[i64]) -> Vec<InferenceServiceStatus> {
    let groups = u32::try_from(offsets.len()).unwrap();
    let mut world = World::lws(&[("gpu-a", groups)]);
    world.all_ready_since = None;
    let mut seen = Vec::new();
    for now in (0..30_000_i64).step_by(step) {
        world.now = at(0) + SignedDuration::from_millis(now);
        let ready = offsets.iter().filter(|offset| moment(now + **offset) == Moment::Ready).count();
        let view = world.view(0);
        view.ready = u32::try_from(ready).unwrap();
        let all = view.ready == groups;
        view.conditions = lws_conditions(Some(all), Some(!all), None);
        world.members[0].signals = (0_u32..).zip(offsets).flat_map(|(group, offset)| signals(group, now + offset)).collect();
        let report = world.pass();
        // As the hub keeps it.
        world.all_ready_since = report.all_ready.then(|| world.all_ready_since.unwrap_or(world.now));
        seen.push(report.status);
    }
    seen
}

#[test]
fn ready_and_its_cause_do_not_flap() {
    for (step, offsets) in [
        (300, &[0, 0][..]),
        (700, &[0, 0][..]),
        (1100, &[0][..]),
        (2000, &[0, 0][..]),
        // One group crashes while the other is well, and the other way round.
        (300, &[0, 900][..]),
        (500, &[0, 1300, 400][..]),
    ] {
        let seen = play(step, offsets);
        let crashed = seen.iter().position(|s| word(s, "Ready").1 == "CrashLoopBackOff").unwrap();
        let after = &seen[crashed..];
        assert!(crashed * step <= 4000 && after.len() > 10);
        for status in after {
            assert_eq!(word(status, "Ready"), words("False", "CrashLoopBackOff"), "{step} {offsets:?}");
            assert_eq!(word(status, "Progressing"), words("True", "Progressing"), "{step} {offsets:?}");
        }
        assert!(seen.iter().all(|s| word(s, "Ready").0 == "False"), "never ready for 2 seconds on end");
        let distinct: BTreeSet<_> = after.iter().map(essence).collect();
        assert!(distinct.len() == 1, "{step} {offsets:?}: {distinct:#?}");
    }
}

#[test]
fn it_is_ready_again_when_it_lasts() {
    let mut world = World::lws(&[("gpu-a", 1)]);
    world.view(0).ready = 0;
    world.members[0].signals = signals(0, 4400);
    assert_eq!(word(&world.status(), "Ready"), words("False", "CrashLoopBackOff"));
    world.view(0).ready = 1;
    world.all_ready_since = Some(at(10));
    world.now = at(19);
    assert_eq!(word(&world.status(), "Ready"), words("False", "CrashLoopBackOff"), "it may last some seconds each time");
    world.now = at(20);
    let status = world.status();
    assert_eq!(word(&status, "Ready"), words("True", "AllReplicasReady"), "what is remembered explains nothing now");
    assert_eq!((status.workload.unwrap().diagnostic, &status.placements[0].reason), (None, &None));
}
