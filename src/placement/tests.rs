//! Decisions over whole members.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::{Demand, Exclusion, Ledger, Member, Plan, decide};
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;
use crate::capacity::{GroupRequest, NodeView, Options, PodSet, PodShape, PodView, QuotaView, ServiceKey, Snapshot, Store, room};

const GPU: &str = "amd.com/gpu";

/// A member whose nodes have this many devices.
fn nodes(gpus: &[u32]) -> Store {
    let mut store = Store::new();
    for (at, count) in gpus.iter().enumerate() {
        let node = json!({
            "metadata": {"name": format!("node-{at}")},
            "status": {"allocatable": {GPU: count, "pods": 110}, "conditions": [{"type": "Ready", "status": "True"}]},
        });
        store.upsert_node(serde_json::from_value::<NodeView>(node).unwrap());
    }
    store
}

fn run(store: &mut Store, service: &str, uid: &str, node: usize, gpus: u32) {
    let pod = json!({
        "metadata": {"namespace": "ns", "uid": uid, "labels": {"mif.moreh.io/inferenceservice": service}},
        "spec": {"nodeName": format!("node-{node}"), "containers": [{"resources": {"limits": {GPU: gpus}}}]},
        "status": {"phase": "Running"},
    });
    store.upsert_pod(serde_json::from_value::<PodView>(pod).unwrap());
}

fn request(gpus: u32) -> Arc<GroupRequest> {
    let template = json!({"spec": {"containers": [{"resources": {"limits": {GPU: gpus}}}]}});
    Arc::new(GroupRequest::one(PodShape::from_template(&template).unwrap()))
}

fn member<'a>(name: &'a str, snapshot: &'a Snapshot) -> Member<'a> {
    Member { name, uid: name, excluded: None, snapshot: Some(snapshot), options: Options::default() }
}

fn placements(list: &[(&str, u32)]) -> BTreeMap<String, u32> {
    list.iter().map(|(member, groups)| ((*member).to_owned(), *groups)).collect()
}

fn demand(name: &str, replicas: u32, gpus: u32, existing: &[(&str, u32)]) -> Demand<'static> {
    Demand { service: ServiceKey::new("ns", name), uid: "uid", replicas, request: request(gpus), existing: placements(existing) }
}

fn rejections(plan: &Plan) -> Vec<(&str, &str, &str)> {
    plan.rejections.iter().map(|rejection| (rejection.cluster.as_str(), rejection.reason.as_str(), rejection.message.as_str())).collect()
}

#[test]
fn a_decision_that_counts_tells_what_is_left_for_a_rollout() {
    let (small, large) = (nodes(&[8, 8]).snapshot(), nodes(&[8, 8, 8, 8]).snapshot());
    let members = [member("large", &large), member("small", &small)];
    for (name, replicas, existing, left) in [
        ("new", 2, vec![], vec![("large", 2)]),
        ("grown", 2, vec![("small", 1)], vec![("small", 0)]),
        ("grown elsewhere", 4, vec![("small", 2), ("large", 1)], vec![("large", 2), ("small", 0)]),
        ("nothing was counted", 2, vec![("small", 2)], vec![]),
    ] {
        let plan = decide(&demand("me", replicas, 8, &existing), &members, &Ledger::new());
        assert_eq!(plan.spare, placements(&left), "{name}");
    }
}

#[test]
fn as_few_members_as_possible_and_what_runs_stays() {
    let (small, large) = (nodes(&[8, 8]).snapshot(), nodes(&[8, 8, 8, 8]).snapshot());
    let members = [member("large", &large), member("small", &small)];
    for (name, replicas, existing, expected, unplaced) in [
        ("nothing wanted", 0, vec![], vec![("large", 0)], 0),
        ("nothing wanted any more", 0, vec![("large", 1), ("small", 2)], vec![("small", 0)], 0),
        ("at rest", 0, vec![("small", 0)], vec![("small", 0)], 0),
        ("from rest", 2, vec![("small", 0)], vec![("small", 2)], 0),
        ("from rest, to where it fits", 4, vec![("small", 0)], vec![("large", 4)], 0),
        ("all in one, where more is left", 2, vec![], vec![("large", 2)], 0),
        ("the rest in the next", 5, vec![], vec![("large", 4), ("small", 1)], 0),
        ("all there is", 9, vec![], vec![("large", 4), ("small", 2)], 3),
        ("growth where it runs already", 2, vec![("small", 1)], vec![("small", 2)], 0),
        ("growth beyond it", 4, vec![("small", 1)], vec![("large", 2), ("small", 2)], 0),
        ("what runs isn't gathered", 2, vec![("large", 1), ("small", 1)], vec![("large", 1), ("small", 1)], 0),
        ("shrinkage frees the smallest", 3, vec![("large", 3), ("small", 2)], vec![("large", 3)], 0),
        ("shrinkage goes on", 2, vec![("large", 3), ("small", 2)], vec![("large", 2)], 0),
        ("more than there is room for stays", 9, vec![("small", 9)], vec![("small", 9)], 0),
        ("a member that is missing keeps its own", 3, vec![("gone", 2)], vec![("gone", 2), ("large", 1)], 0),
        ("none in a member that is missing", 0, vec![("gone", 2), ("small", 1)], vec![("gone", 0)], 0),
    ] {
        let plan = decide(&demand("me", replicas, 8, &existing), &members, &Ledger::new());
        assert_eq!((plan.placements, plan.unplaced), (placements(&expected), unplaced), "{name}");
        assert_eq!(plan.rejections.is_empty(), unplaced == 0, "{name}");
    }
}

#[test]
fn a_member_that_is_out_keeps_what_it_has_and_takes_nothing_new() {
    let room = nodes(&[8, 8]).snapshot();
    let mut members = [member("a", &room), member("b", &room)];
    members[0].excluded = Some(Exclusion::new(Reason::NotReady, "it doesn't answer"));
    members[1].snapshot = None;
    let plan = decide(&demand("me", 3, 8, &[("a", 1), ("b", 1)]), &members, &Ledger::new());
    assert_eq!((plan.placements.clone(), plan.unplaced), (placements(&[("a", 1), ("b", 1)]), 1));
    assert_eq!(
        rejections(&plan),
        [("b", "CapacityUnknown", "nodes and pods of the member aren't known yet"), ("a", "NotReady", "it doesn't answer")]
    );
    // Among equals the one that is out shrinks first.
    let plan = decide(&demand("me", 1, 8, &[("a", 1), ("b", 1)]), &members, &Ledger::new());
    assert_eq!(plan.placements, placements(&[("b", 1)]));
    // With no replicas and no member there is nothing to say.
    assert_eq!(decide(&demand("me", 0, 8, &[]), &members, &Ledger::new()), Plan::default());
}

#[test]
fn i12_rejections_have_numbers_and_stay_the_same() {
    let (split, full, other) = (nodes(&[4, 4, 2]).snapshot(), nodes(&[8]).snapshot(), nodes(&[]).snapshot());
    let members = [member("other", &other), member("split", &split), member("full", &full)];
    let first = decide(&demand("me", 3, 8, &[]), &members, &Ledger::new());
    assert_eq!((first.placements.clone(), first.unplaced), (placements(&[("full", 1)]), 2));
    assert_eq!(
        rejections(&first),
        [
            ("split", "Fragmented", "needs 1 node with 8 free amd.com/gpu; largest free: 4,4,2; 0 of 2 replicas fit"),
            ("full", "InsufficientRoom", "needs 1 more node with 8 free amd.com/gpu; largest free: 0; 1 of 3 replicas fit"),
            ("other", "NoSuchAccelerator", "the member has no nodes; 0 of 2 replicas fit"),
        ]
    );
    let summary: Vec<(&str, i32)> = first.rejection_summary.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
    assert_eq!(summary, [("Fragmented", 1), ("InsufficientRoom", 1), ("NoSuchAccelerator", 1)]);
    // Decided again on its own result, in another order of members.
    let reversed: Vec<Member<'_>> = members.iter().rev().cloned().collect();
    assert_eq!(decide(&demand("me", 3, 8, &[("full", 1)]), &reversed, &Ledger::new()), first);
}

#[test]
fn rejections_are_counted_beyond_twenty() {
    let empty = nodes(&[]).snapshot();
    let names: Vec<String> = (0..30).map(|n| format!("member-{n:02}")).collect();
    let members: Vec<Member<'_>> = names.iter().map(|name| member(name, &empty)).collect();
    let plan = decide(&demand("me", 1, 8, &[]), &members, &Ledger::new());
    assert_eq!((plan.rejections.len(), plan.rejection_summary.get("NoSuchAccelerator")), (20, Some(&30)));
    assert_eq!(plan.rejections[0].cluster, "member-00");
}

#[test]
fn equal_members_share_the_services() {
    let room = nodes(&[8; 100]).snapshot();
    let members = [member("a", &room), member("b", &room)];
    let mut counts = BTreeMap::<String, u32>::new();
    for n in 0..100 {
        let uid = format!("uid-{n}");
        let plan = decide(&Demand { uid: &uid, ..demand("me", 1, 8, &[]) }, &members, &Ledger::new());
        for member in plan.placements.into_keys() {
            *counts.entry(member).or_default() += 1;
        }
    }
    assert!(counts.values().all(|count| *count > 30), "{counts:?}");
}

#[test]
fn i29_twenty_services_for_two_slots() {
    let mut store = nodes(&[8, 8]);
    let snapshot = store.snapshot();
    let mut ledger = Ledger::new();
    let names: Vec<String> = (0..20).map(|n| format!("service-{n:02}")).collect();
    let ask = |name: &str, ledger: &Ledger, snapshot: &Snapshot, existing: &BTreeMap<String, u32>| {
        let demand = Demand { uid: name, existing: existing.clone(), ..demand(name, 1, 8, &[]) };
        decide(&demand, &[member("only", snapshot)], ledger)
    };
    let mut decided = BTreeMap::new();
    for name in &names {
        let plan = ask(name, &ledger, &snapshot, &BTreeMap::new());
        ledger.assume(name, &ServiceKey::new("ns", name.as_str()), request(8), &plan.placements);
        decided.insert(name.clone(), plan);
    }
    let placed: Vec<&String> = decided.iter().filter(|(_, plan)| plan.unplaced == 0).map(|(name, _)| name).collect();
    assert_eq!(placed, ["service-00", "service-01"]);
    assert_eq!(
        rejections(&decided["service-19"]),
        [(
            "only",
            "InsufficientRoom",
            "needs 1 node with 8 free amd.com/gpu; largest free: 0,0; 0 of 1 replicas fit; 2 pods of other services are promised \
             room and not assigned yet"
        )]
    );

    // A restart knows what status holds; the pods come one by one, are never counted twice, and change nothing.
    let mut ledger = Ledger::new();
    for (name, plan) in &decided {
        ledger.observe(name, &ServiceKey::new("ns", name.as_str()), request(8), &plan.placements);
    }
    for (node, placed) in placed.iter().enumerate() {
        run(&mut store, placed, placed, node, 8);
        let snapshot = store.snapshot();
        for (name, plan) in &decided {
            let again = ask(name, &ledger, &snapshot, &plan.placements);
            assert_eq!((&again.placements, again.unplaced), (&plan.placements, plan.unplaced));
        }
    }
}

/// A group of a leader and one worker with so many devices each.
fn pair(leader: u32, worker: u32) -> Arc<GroupRequest> {
    let set = |gpus: u32| PodSet { shape: request(gpus).pods[0].shape.clone(), count: 1 };
    Arc::new(GroupRequest { kind: WorkloadKind::LeaderWorkerSet, pods: vec![set(leader), set(worker)], exclusive_topology: None })
}

#[test]
fn i19_half_a_group_is_never_placed() {
    let (half, whole) = (nodes(&[8, 4]).snapshot(), nodes(&[8, 8, 8]).snapshot());
    let two = Arc::new(GroupRequest {
        kind: WorkloadKind::LeaderWorkerSet,
        pods: vec![PodSet { count: 2, ..request(8).pods[0].clone() }],
        exclusive_topology: None,
    });
    let ask = Demand { request: two, ..demand("me", 2, 8, &[]) };
    let plan = decide(&ask, &[member("half", &half), member("whole", &whole)], &Ledger::new());
    assert_eq!((plan.placements.clone(), plan.unplaced), (placements(&[("whole", 1)]), 1));
    assert_eq!(
        rejections(&plan),
        [
            ("half", "InsufficientRoom", "needs 2 nodes with 8 free amd.com/gpu, has 1; largest free: 8,4; 0 of 1 groups fit"),
            ("whole", "InsufficientRoom", "needs 2 more nodes with 8 free amd.com/gpu, has 1; largest free: 8,0,0; 1 of 2 groups fit"),
        ]
    );
}

#[test]
fn what_only_luck_would_place_is_refused() {
    let (lucky, safe) = (nodes(&[4, 2]).snapshot(), nodes(&[4, 4]).snapshot());
    let message = "needs a leader with 2 amd.com/gpu and 1 worker with 4 amd.com/gpu; a leader may take the place that a worker needs: if \
                   leaders go to the emptiest nodes first, 0 of 1 groups fit; 1 of 1 groups fit";
    let ask = |replicas, existing| Demand { request: pair(2, 4), ..demand("me", replicas, 0, existing) };
    let members = [member("lucky", &lucky), member("safe", &safe)];
    assert_eq!(decide(&ask(1, &[]), &members, &Ledger::new()).placements, placements(&[("safe", 1)]));
    let plan = decide(&ask(2, &[]), &members, &Ledger::new());
    assert_eq!((plan.placements.clone(), plan.unplaced), (placements(&[("safe", 1)]), 1));
    assert_eq!(rejections(&plan)[1], ("lucky", "Fragile", message));
    // A service of no groups rests where it can grow for sure.
    assert_eq!(decide(&ask(0, &[]), &members, &Ledger::new()).placements, placements(&[("safe", 0)]));
    // Of those that fit in a member the ones that can be relied on are placed.
    let both = nodes(&[4, 4, 2, 2]).snapshot();
    let plan = decide(&ask(2, &[]), &[member("both", &both)], &Ledger::new());
    assert_eq!((plan.placements.clone(), plan.unplaced), (placements(&[("both", 1)]), 1));
    assert_eq!(plan.rejections[0].reason, "Fragile");
    assert_eq!(decide(&ask(2, &[("both", 1)]), &[member("both", &both)], &Ledger::new()), plan);
}

#[test]
fn a_workload_at_rest_grows_though_quotas_admit_no_other() {
    let mut store = nodes(&[8]);
    let bound = json!({"count/deployments.apps": "1"});
    let quota = json!({"metadata": {"namespace": "ns", "name": "q", "uid": "q"}, "status": {"hard": bound, "used": bound}});
    store.upsert_quota(serde_json::from_value::<QuotaView>(quota).unwrap());
    let snapshot = store.snapshot();
    let members = [member("only", &snapshot)];
    let plan = decide(&demand("me", 1, 8, &[]), &members, &Ledger::new());
    let message = "quota q in ns leaves 0 of 1 count/deployments.apps, and a group needs 1; 0 of 1 replicas fit";
    assert_eq!(rejections(&plan), [("only", "QuotaExceeded", message)]);
    let plan = decide(&demand("me", 1, 8, &[("only", 0)]), &members, &Ledger::new());
    assert_eq!((plan.placements, plan.unplaced), (placements(&[("only", 1)]), 0));
}

proptest! {
    #[test]
    fn no_plan_exceeds_room_or_moves_what_runs(
        gpus in proptest::collection::vec(proptest::collection::vec(0_u32..9, 0..4), 0..5),
        running in proptest::collection::vec((0_usize..5, 0_usize..4, 1_u32..5, any::<bool>()), 0..6),
        existing in proptest::collection::btree_map(0_usize..6, 0_u32..4, 0..4),
        out in proptest::collection::vec(any::<bool>(), 5),
        promised in proptest::collection::vec((0_usize..5, 1_u32..4), 0..3),
        (replicas, size) in (0_u32..12, 1_u32..9),
    ) {
        let name = |n: usize| format!("member-{n}");
        let mut stores: Vec<Store> = gpus.iter().map(|gpus| nodes(gpus)).collect();
        for (at, (member, node, size, own)) in running.iter().enumerate() {
            if let Some(store) = stores.get_mut(*member) {
                run(store, if *own { "me" } else { "foreign" }, &at.to_string(), *node, *size);
            }
        }
        let snapshots: Vec<Arc<Snapshot>> = stores.iter_mut().map(Store::snapshot).collect();
        let names: Vec<String> = (0..snapshots.len()).map(name).collect();
        let mut members: Vec<Member<'_>> = names.iter().zip(&snapshots).map(|(name, snapshot)| member(name, snapshot)).collect();
        for (member, out) in members.iter_mut().zip(&out) {
            member.excluded = out.then(|| Exclusion::new(Reason::Suspended, "out"));
        }
        let mut ledger = Ledger::new();
        for (at, (member, groups)) in promised.iter().enumerate() {
            let service = ServiceKey::new("ns", format!("promised-{at}"));
            ledger.observe(&at.to_string(), &service, request(2), &BTreeMap::from([(name(*member), *groups)]));
        }
        let existing: BTreeMap<String, u32> = existing.into_iter().map(|(member, groups)| (name(member), groups)).collect();
        let demand = Demand { existing: existing.clone(), ..demand("me", replicas, size, &[]) };
        let plan = decide(&demand, &members, &ledger);

        let sum = |placements: &BTreeMap<String, u32>| placements.values().sum::<u32>();
        prop_assert_eq!(sum(&plan.placements) + plan.unplaced, replicas);
        let grows = sum(&existing) <= replicas;
        for (member, groups) in &existing {
            let now = plan.placements.get(member).copied().unwrap_or_default();
            let stays = if grows { now >= *groups } else { now <= *groups };
            prop_assert!(stays);
        }
        for (member, groups) in &plan.placements {
            let before = existing.get(member).copied().unwrap_or_default();
            if *groups > before {
                let found = members.iter().find(|other| other.name == member.as_str()).unwrap();
                prop_assert!(found.excluded.is_none());
                let promises = ledger.promises(member, demand.uid);
                let room = room(found.snapshot.unwrap(), &demand.request, &demand.service, &promises, *groups, &found.options);
                prop_assert_eq!(room.groups, *groups);
            }
        }
        // Nothing is left out: with something unplaced every member says why, and deciding again changes nothing.
        prop_assert_eq!(plan.rejections.len(), if plan.unplaced > 0 { members.len() } else { 0 });
        members.reverse();
        let again = decide(&Demand { existing: plan.placements.clone(), ..demand.clone() }, &members, &ledger);
        // A decision that changes nothing counts nothing.
        prop_assert_eq!(Plan { spare: plan.spare.clone(), ..again }, plan);
    }
}
