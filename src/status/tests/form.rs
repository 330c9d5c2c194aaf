//! The form of the whole status.

use serde_json::json;

use super::*;
use crate::api::condition;
use crate::api::odin::Phase;
use crate::api::reason::Reason;
use crate::placement::Plan;

#[test]
fn a_healthy_service_over_two_members() {
    let mut world = World::healthy(&[("gpu-b", 1), ("gpu-a", 2)]);
    let report = world.pass();
    let status = report.status;
    assert_eq!((status.replicas, status.ready_replicas, status.updated_replicas), (Some(3), Some(3), Some(3)));
    assert_eq!(status.observed_generation, Some(1));
    assert_eq!(status.hpa_pod_selector.as_deref(), Some("mif.moreh.io/inferenceservice=chat"));
    assert_eq!(status.clusters.as_deref(), Some("gpu-a:2,gpu-b:1"));
    assert_eq!(status.unplaced_replicas, Some(0));
    assert_eq!(status.rendered_hash.as_deref(), Some("spec-hash"));
    assert_eq!(status.sources.len(), 1);
    assert!(status.rendered_spec.is_some());
    for (type_, truth, reason) in [
        ("Ready", "True", "AllReplicasReady"),
        ("Rendered", "True", "Rendered"),
        ("Placed", "True", "AllPlaced"),
        ("Applied", "True", "Applied"),
        ("Progressing", "False", "Complete"),
    ] {
        assert_eq!(word(&status, type_), words(truth, reason), "{type_}");
        let condition = condition::find(&status.conditions, type_).unwrap();
        assert_eq!(condition.observed_generation, Some(1), "{type_}");
    }
    let types: Vec<_> = status.conditions.iter().map(|c| c.type_.as_str()).collect();
    assert_eq!(types, ["Applied", "Placed", "Progressing", "Ready", "Rendered"]);
    assert_eq!(
        status.placements.iter().map(|p| (p.cluster.as_str(), p.phase)).collect::<Vec<_>>(),
        [("gpu-a", Phase::Ready), ("gpu-b", Phase::Ready)]
    );
    let workload = status.workload.unwrap();
    assert_eq!((workload.cluster.as_deref(), workload.observed_generation), (Some("gpu-a"), Some(1)));
    assert_eq!(workload.conditions, world.members[1].workload.as_ref().unwrap().conditions, "verbatim");
    assert_eq!(workload.diagnostic, None);
    assert_eq!((report.recheck_after, report.all_ready), (None, true));
}

#[test]
fn a_refused_rendering_leaves_what_runs() {
    let mut world = World::healthy(&[("gpu-a", 2)]);
    let before = world.status();
    world.service.metadata.generation = Some(2);
    world.refuse(Reason::RenderFailed, "template chat, container main, args[0]: unknown field .Foo");
    let status = world.status();
    assert_eq!(word(&status, "Rendered"), words("False", "RenderFailed"));
    assert_eq!(word(&status, "Ready"), words("False", "RenderFailed"));
    assert!(text(&status, "Ready").contains("unknown field .Foo"));
    assert_eq!(status.observed_generation, Some(1));
    for type_ in ["Placed", "Applied", "Progressing"] {
        assert_eq!(condition::find(&status.conditions, type_), condition::find(&before.conditions, type_), "{type_}");
    }
    assert_eq!((status.replicas, status.ready_replicas, status.updated_replicas), (Some(2), Some(2), Some(2)));
    assert_eq!(
        (&status.rendered_spec, &status.rendered_hash, &status.sources),
        (&before.rendered_spec, &before.rendered_hash, &before.sources)
    );
    assert_eq!((placement(&status, "gpu-a").replicas, &status.clusters), (2, &before.clusters));
    let cause = diagnostic(&status);
    assert_eq!((cause.involved_object.kind.as_str(), cause.cluster.as_deref()), ("InferenceService", None));
    assert_eq!(status.workload.as_ref().map(|w| w.name.as_str()), Some("chat"));

    let since = cause.observed_at.clone();
    world.now = at(500);
    assert_eq!(diagnostic(&world.status()).observed_at, since);
}

#[test]
fn before_the_first_rendering_only_conditions_speak() {
    let mut world = World::healthy(&[("gpu-a", 1)]);
    world.members.clear();
    world.refuse(Reason::TemplateNotFound, "no template engine in demo or mif");
    let status = world.status();
    assert_eq!(status.workload, None);
    assert_eq!(word(&status, "Ready"), words("False", "TemplateNotFound"));
    assert_eq!(status.conditions.len(), 2);
    assert_eq!((status.observed_generation, status.placements.len()), (None, 0));
    assert!(status.hpa_pod_selector.is_some());
}

#[test]
fn a_large_rendering_is_left_out_and_that_is_said() {
    let mut world = World::healthy(&[("gpu-a", 1)]);
    world.rendered.as_mut().unwrap().spec["template"]["metadata"] = json!({"annotations": {"a": "x".repeat(600 * 1024)}});
    let status = world.status();
    assert_eq!((status.rendered_spec, status.rendered_hash.as_deref()), (None, Some("spec-hash")));
    assert!(text(&world.status(), "Rendered").contains("status.renderedSpec is left out: it has 601 KiB"));
}

#[test]
fn the_short_form_of_placements_ends_with_what_is_left_out() {
    let names: Vec<_> = (0..40).map(|i| format!("cluster-{i:02}")).collect();
    let placements: Vec<_> = names.iter().map(|n| (n.as_str(), 1)).collect();
    let mut world = World::healthy(&placements);
    let clusters = world.status().clusters.unwrap();
    assert!(clusters.len() <= 120, "{clusters}");
    assert!(clusters.starts_with("cluster-00:1,cluster-01:1,") && clusters.ends_with(",+32 more"), "{clusters}");
    assert_eq!(clusters.matches("cluster-").count(), 8);
}

#[test]
fn healthy_placements_are_told_in_short_when_there_are_many() {
    let names: Vec<_> = (0..201).map(|i| format!("c{i}")).collect();
    let placements: Vec<_> = names.iter().map(|n| (n.as_str(), 1)).collect();
    let mut world = World::healthy(&placements);
    world.view(7).ready = 0;
    let status = world.status();
    assert_eq!(placement(&status, "c8").workload, None);
    assert_eq!(placement(&status, "c8").ready_replicas, Some(1));
    assert!(placement(&status, "c7").workload.is_some());
    assert_eq!(status.workload.unwrap().cluster.as_deref(), Some("c7"), "the least ready one");
}

#[test]
fn a_refusal_that_comes_late_leaves_plan_and_counts() {
    let mut world = World::lws(&[("gpu-a", 2)]);
    let before = world.status();
    world.edit("y");
    world.plan = Some(Plan { placements: [("gpu-a".to_owned(), 1), ("gpu-b".to_owned(), 1)].into(), ..Plan::default() });
    world.plan.as_mut().unwrap().unplaced = 7;
    world.rendered = Err(Refusal { reason: Reason::RolloutNotSupported, message: "remove partition".into() });
    let status = world.status();
    assert_eq!(word(&status, "Ready"), words("False", "RolloutNotSupported"));
    assert_eq!(word(&status, "Rendered"), words("False", "RolloutNotSupported"));
    let of = |s: &InferenceServiceStatus| {
        let counts = (s.replicas, s.ready_replicas, s.updated_replicas, s.unplaced_replicas, s.observed_generation);
        (counts, s.clusters.clone(), s.rendered_hash.clone(), s.hpa_pod_selector.clone(), s.placements.len())
    };
    assert_eq!(of(&status), of(&before));
    assert_eq!(status.workload.as_ref().map(|w| w.kind), Some(WorkloadKind::LeaderWorkerSet));
}

#[test]
fn warnings_about_the_template_stand_in_rendered_each_once() {
    let mut world = World::healthy(&[("gpu-a", 1)]);
    world.rendered.as_mut().unwrap().warnings = vec!["first".into(), "both".into()];
    world.workload.as_mut().unwrap().warnings = vec!["both".into(), "last".into()];
    assert_eq!(text(&world.status(), "Rendered"), "rendered from 1 layer; first; both; last");
}

#[test]
fn a_rollout_without_room_is_told_when_it_is_decided_and_no_more_often() {
    let warns = |status: &InferenceServiceStatus| text(status, "Placed").contains("RolloutNeedsSpare");
    let spare = |world: &mut World, a: u32, b: u32| {
        world.plan.as_mut().unwrap().spare = [("gpu-a".to_owned(), a), ("gpu-b".to_owned(), b)].into();
    };
    let mut world = World::healthy(&[("gpu-a", 2), ("gpu-b", 4)]);
    spare(&mut world, 0, 0);
    let first = world.status();
    assert_eq!(word(&first, "Placed"), words("True", "AllPlaced"));
    assert!(text(&first, "Placed").contains("6 of 6 groups placed in 2 clusters; RolloutNeedsSpare: "), "{}", text(&first, "Placed"));
    assert!(text(&first, "Placed").contains("gpu-a had no room"), "four groups spare one: {}", text(&first, "Placed"));
    assert_eq!(word(&first, "Ready").0, "True");

    spare(&mut world, 5, 5);
    assert_eq!(world.status(), first, "what is free alone changes nothing");
    world.plan.as_mut().unwrap().spare.clear();
    assert_eq!(world.status(), first, "nor that it wasn't counted");
    let plan = world.plan.take();
    assert_eq!(world.status(), first, "nor that nothing is decided");
    world.plan = plan;

    spare(&mut world, 1, 0);
    world.edit("y");
    assert!(!warns(&world.status()), "a new generation is looked at anew");
    spare(&mut world, 0, 0);
    assert!(!warns(&world.status()));
    world.edit("z");
    assert!(warns(&world.status()), "room that was lost is told with the edit that needs it");

    // Other placements.
    world.service.spec.replicas = Some(4);
    world.plan = Some(Plan { placements: [("gpu-b".to_owned(), 4)].into(), ..Plan::default() });
    assert!(!warns(&world.status()), "a rollout of four begins with taking one away");
}
