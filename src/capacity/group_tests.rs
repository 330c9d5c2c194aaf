//! Worked examples of groups of several pods.

use serde_json::{Value, json};

use super::tests::{GPU, answer, gpus, me, node, of, pod, shape, store, with};
use super::{GroupRequest, NodeView, Options, PodSet, PodView, Promise, Room, ServiceKey, Store, room};
use crate::api::lws;
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;

const RACK: &str = "example.com/rack";

fn group(sets: &[(Value, u32)], topology: Option<&str>) -> GroupRequest {
    GroupRequest {
        kind: WorkloadKind::LeaderWorkerSet,
        pods: sets.iter().map(|(spec, count)| PodSet { shape: shape(spec.clone()), count: *count }).collect(),
        exclusive_topology: topology.map(str::to_owned),
    }
}

fn fit(store: &mut Store, request: &GroupRequest, promises: &[Promise], want: u32) -> Room {
    room(&store.snapshot(), request, &me(), promises, want, &Options::default())
}

fn promise(service: &ServiceKey, request: GroupRequest, groups: u32) -> Promise {
    Promise { service: service.clone(), request: request.into(), groups }
}

/// A pod of a group as a member has it: only leaders have the label of the service.
fn member(service: &ServiceKey, group: u32, index: u32, node: &str, spec: Value) -> Value {
    let mut labels = json!({
        lws::NAME: service.name, lws::WORKER_INDEX: index.to_string(), lws::GROUP_INDEX: group.to_string(),
        lws::GROUP_KEY: format!("{}-{group}", service.name), "app.kubernetes.io/instance": service.name,
    });
    if index == 0 {
        labels["mif.moreh.io/inferenceservice"] = json!(service.name);
    }
    let pod = pod(&format!("{service}-{group}-{index}"), node, spec);
    with(with(pod, "/metadata/namespace", json!(service.namespace)), "/metadata/labels", labels)
}

fn leaving(pod: Value) -> Value {
    with(pod, "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))
}

fn put(store: &mut Store, pod: Value) {
    store.upsert_pod(serde_json::from_value::<PodView>(pod).unwrap());
}

fn eights(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| node(name, json!({GPU: 8}))).collect()
}

fn in_rack(name: &str, rack: &str, gpus: u32) -> Value {
    with(node(name, json!({GPU: gpus})), "/metadata/labels/example.com~1rack", json!(rack))
}

fn asks(requests: Value) -> Value {
    json!({"containers": [{"name": "main", "resources": {"requests": requests}}]})
}

#[test]
fn example_6_pods_of_one_shape_may_share_a_node() {
    let nodes: Vec<Value> = [("a", 5), ("b", 4), ("c", 3), ("d", 1)].map(|(name, free)| node(name, json!({GPU: free}))).into();
    let room = fit(&mut store(&nodes, &[]), &group(&[(gpus(2), 4)], None), &[], 2);
    let message = "needs 4 more places with 2 free amd.com/gpu, has 1; largest free: 2,1,1; 1 of 2 groups fit";
    assert_eq!(answer(&room), (1, Some((Reason::InsufficientRoom, message))));
    assert!(room.exact && !room.fragile);
}

#[test]
fn a_group_that_needs_whole_nodes() {
    let model =
        |name: &str, free: u32| with(node(name, json!({GPU: free})), "/metadata/labels/moai.moreh.io~1accelerator.model", json!("mi300x"));
    let spec = with(gpus(8), "/nodeSelector", json!({"moai.moreh.io/accelerator.model": "mi300x"}));
    let room = fit(&mut store(&[model("a", 8), model("b", 4), model("c", 4)], &[]), &group(&[(spec, 2)], None), &[], 1);
    let message = "needs 2 nodes with 8 free amd.com/gpu (mi300x), has 1; largest free: 8,4,4; 0 of 1 groups fit";
    assert_eq!(answer(&room), (0, Some((Reason::Fragmented, message))));
}

#[test]
fn examples_7_and_8_leader_and_workers_of_two_shapes() {
    let request = group(&[(asks(json!({"cpu": 4})), 1), (asks(json!({"cpu": 32, GPU: 8})), 2)], None);
    let offer = |name: &str, gpu: u32, cpu: u32| node(name, json!({GPU: gpu, "cpu": cpu}));
    let room = fit(&mut store(&[offer("a", 8, 34), offer("b", 8, 40), offer("c", 0, 8)], &[]), &request, &[], 2);
    let message = "needs a leader with 4 cpu and 2 workers with 8 amd.com/gpu, 32 cpu; apart there is room for 20 leaders or 2 workers; \
                   1 of 2 groups fit";
    assert_eq!(answer(&room), (1, Some((Reason::InsufficientRoom, message))));
    assert!(room.exact && !room.fragile);
    assert_eq!(room.stopped_by.unwrap().resource.as_deref(), Some(GPU));

    let room = fit(&mut store(&[offer("a", 8, 34), offer("b", 8, 34)], &[]), &request, &[], 1);
    let message = "needs a leader with 4 cpu and 2 workers with 8 amd.com/gpu, 32 cpu; apart there is room for 16 leaders or 2 workers; \
                   0 of 1 groups fit";
    assert_eq!(answer(&room), (0, Some((Reason::Fragmented, message))));
    let room = fit(&mut store(&[offer("a", 0, 34)], &[]), &request, &[], 1);
    let message = "workers: no node offers amd.com/gpu; 0 of 1 groups fit";
    assert_eq!(answer(&room), (0, Some((Reason::NoSuchAccelerator, message))));
}

#[test]
fn example_9_a_leader_may_take_the_place_of_a_worker() {
    let nodes = [node("a", json!({GPU: 4})), node("b", json!({GPU: 2}))];
    let request = group(&[(gpus(2), 1), (gpus(4), 1)], None);
    let room = fit(&mut store(&nodes, &[]), &request, &[], 1);
    let message = "needs a leader with 2 amd.com/gpu and 1 worker with 4 amd.com/gpu; a leader may take the place that a worker needs: \
                   if leaders go to the emptiest nodes first, 0 of 1 groups fit; 1 of 1 groups fit";
    assert_eq!(answer(&room), (1, Some((Reason::Fragile, message))));
    assert_eq!((room.fragile, room.robust, room.exact), (true, 0, true));

    // Once the leader is where it leaves room, nothing can go wrong; where it leaves none, it stays.
    for (at, groups) in [("b", 1), ("a", 0)] {
        let room = fit(&mut store(&nodes, &[member(&me(), 0, 0, at, gpus(2))]), &request, &[], 1);
        assert_eq!((room.groups, room.fragile), (groups, false), "{at}");
    }
}

#[test]
fn examples_10_and_11_one_group_in_each_rack() {
    let racks =
        [("a", "r1", 8), ("b", "r1", 8), ("c", "r2", 8), ("d", "r2", 4), ("e", "r3", 8), ("f", "r3", 8), ("g", "r3", 8), ("h", "r3", 8)];
    let nodes = racks.map(|(name, rack, gpus)| in_rack(name, rack, gpus));
    let exclusive = group(&[(gpus(8), 2)], Some(RACK));
    let mut all = store(&nodes, &[]);
    let room = fit(&mut all, &exclusive, &[], 3);
    // A leader may go where only a leader fits.
    let message =
        "1 value of example.com/rack has room for a leader but not for its group, and the scheduler may choose it; 2 of 3 groups fit";
    assert_eq!(answer(&room), (2, Some((Reason::Fragile, message))));
    assert_eq!(fit(&mut all, &group(&[(gpus(8), 2)], None), &[], 9).groups, 3);

    for (namespace, groups) in [("team", 1), ("other", 2)] {
        let worker = member(&ServiceKey::new(namespace, "other"), 0, 1, "a", json!({"containers": []}));
        assert_eq!(fit(&mut store(&nodes, &[worker]), &exclusive, &[], 3).groups, groups, "{namespace}");
    }

    // A rack where a group of the service runs counts once, also while it lacks a pod.
    let mut own = store(&nodes, &[member(&me(), 0, 0, "a", gpus(8)), member(&me(), 1, 0, "e", gpus(8)), member(&me(), 1, 1, "f", gpus(8))]);
    let room = fit(&mut own, &exclusive, &[], 2);
    assert_eq!((room.groups, room.robust, room.spare, room.stopped_by), (2, 2, 0, None));

    // A node without the label holds nothing.
    let room = fit(&mut store(&eights(&["a", "b"]), &[]), &exclusive, &[], 1);
    let message = "no node that can take the pods has the label example.com/rack; 0 of 1 groups fit";
    assert_eq!(answer(&room), (0, Some((Reason::InsufficientRoom, message))));
    // Each node is a domain of its own.
    let by_host = group(&[(gpus(4), 2)], Some("kubernetes.io/hostname"));
    let room = fit(&mut store(&eights(&["a", "b", "c"]), &[]), &by_host, &[], 4);
    let message = "needs one more value of kubernetes.io/hostname that no other group holds, with room for 2 pods with 4 amd.com/gpu; \
                   3 values in all; 3 of 4 groups fit";
    assert_eq!(answer(&room), (3, Some((Reason::InsufficientRoom, message))));
}

#[test]
fn two_shapes_in_one_rack() {
    let nodes = [("a", "r1", 8), ("b", "r1", 2), ("c", "r2", 8), ("d", "r2", 1), ("e", "r3", 10)]
        .map(|(name, rack, gpus)| in_rack(name, rack, gpus));
    let request = group(&[(gpus(2), 1), (gpus(8), 1)], Some(RACK));
    let room = fit(&mut store(&nodes, &[]), &request, &[], 3);
    assert_eq!((room.groups, room.fragile, room.robust), (2, true, 0), "in r2 a leader leaves no room for its worker");
    let room = fit(&mut store(&nodes[..2], &[]), &request, &[], 1);
    assert_eq!((room.groups, room.fragile), (1, false), "which of the two nodes is not looked at");
}

#[test]
fn groups_that_keep_others_away_do_so_whether_or_not_those_want_it() {
    let nodes = [("a", "r1"), ("b", "r1"), ("c", "r2"), ("d", "r2")].map(|(name, rack)| in_rack(name, rack, 8));
    let plain = group(&[(gpus(4), 2)], None);
    for (namespace, index, groups) in [("team", 0, 2), ("team", 1, 4), ("other", 0, 4)] {
        let other = member(&ServiceKey::new(namespace, "other"), 0, index, "a", json!({"containers": []}));
        let other = with(other, "/metadata/annotations", json!({lws::EXCLUSIVE_TOPOLOGY: RACK}));
        assert_eq!(fit(&mut store(&nodes, &[other]), &plain, &[], 9).groups, groups, "{namespace} {index}");
    }
}

#[test]
fn example_20_the_next_group_lacks_a_node() {
    let room = fit(&mut store(&eights(&["a", "b", "c", "d", "e"]), &[]), &group(&[(gpus(8), 2)], None), &[], 3);
    let message = "needs 2 more nodes with 8 free amd.com/gpu, has 1; largest free: 8,0,0; 2 of 3 groups fit";
    assert_eq!(answer(&room), (2, Some((Reason::InsufficientRoom, message))));
}

#[test]
fn f62_example_21_promised_groups_hold_their_room_until_they_are_assigned() {
    let older = ServiceKey::new("team", "older");
    let promises = [promise(&older, group(&[(gpus(8), 2)], None), 1)];
    let mut store = store(&eights(&["a", "b", "c"]), &[]);
    let mine = GroupRequest::one(shape(gpus(8)));
    let groups = |store: &mut Store| fit(store, &mine, &promises, 3).groups;
    assert_eq!(groups(&mut store), 1);
    // Pod by pod: an assigned pod counts as used instead, never twice.
    put(&mut store, member(&older, 0, 0, "a", gpus(8)));
    assert_eq!(groups(&mut store), 1);
    put(&mut store, member(&older, 0, 1, "b", gpus(8)));
    assert_eq!(groups(&mut store), 1);
    // One that is going away doesn't stand for the one that will follow it.
    put(&mut store, leaving(member(&older, 0, 1, "b", gpus(8))));
    assert_eq!(groups(&mut store), 0);
}

#[test]
fn f64_a_group_beyond_what_is_wanted_takes_room_and_gives_none() {
    let older = ServiceKey::new("team", "older");
    let mine = GroupRequest::one(shape(gpus(8)));
    let mut pods: Vec<Value> = Vec::new();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for (at, name) in names.iter().take(6).enumerate() {
        let at = u32::try_from(at).unwrap();
        pods.push(member(&older, at / 2, at % 2, name, gpus(8)));
    }
    // Two groups of two are wanted, and a rollout runs a third one: all are ready.
    let promises = [promise(&older, group(&[(gpus(8), 2)], None), 2)];
    assert_eq!(fit(&mut store(&eights(&names), &pods), &mine, &promises, 8).groups, 2);
    assert_eq!(fit(&mut store(&eights(&names), &pods[..4]), &mine, &promises, 8).groups, 4, "it is free once it has gone");
    // Nor does it make the service itself larger than its nodes.
    let own: Vec<Value> = (0..6).map(|at| member(&me(), at / 2, at % 2, names[at as usize], gpus(8))).collect();
    assert_eq!(fit(&mut store(&eights(&names), &own), &group(&[(gpus(8), 2)], None), &[], 9).groups, 4);
}

#[test]
fn leaders_and_workers_do_not_stand_for_each_other() {
    let older = ServiceKey::new("team", "older");
    for request in [group(&[(gpus(8), 2)], None), group(&[(gpus(8), 1), (gpus(8), 1)], None)] {
        let promises = [promise(&older, request, 1)];
        let mine = GroupRequest::one(shape(gpus(8)));
        let mut store = store(&eights(&["a", "b", "c", "d"]), &[]);
        // A leader that comes besides, as in a rollout, is no worker.
        put(&mut store, member(&older, 0, 0, "a", gpus(8)));
        put(&mut store, member(&older, 1, 0, "b", gpus(8)));
        assert_eq!(fit(&mut store, &mine, &promises, 4).groups, 1);
        put(&mut store, member(&older, 0, 1, "c", gpus(8)));
        assert_eq!(fit(&mut store, &mine, &promises, 4).groups, 1);
        // Nor is a pod that an older kind of workload left.
        let mut store = super::tests::store(&eights(&["a", "b", "c", "d"]), &[of(&older, pod("1", "a", gpus(8)))]);
        assert_eq!(fit(&mut store, &mine, &promises, 4).groups, 1);
    }
}

#[test]
fn a_promised_group_with_a_rack_for_itself_waits_as_a_whole() {
    let nodes = [("a", "r1"), ("b", "r1"), ("c", "r2"), ("d", "r2")].map(|(name, rack)| in_rack(name, rack, 8));
    let older = ServiceKey::new("team", "older");
    let request = || group(&[(gpus(8), 2)], Some(RACK));
    let promises = [promise(&older, request(), 1)];
    let mine = GroupRequest::one(shape(gpus(8)));
    let mut store = store(&nodes, &[]);
    // Its leader has no node yet, and its worker doesn't even exist.
    put(&mut store, member(&older, 0, 0, "", gpus(8)));
    assert_eq!(fit(&mut store, &mine, &promises, 4).groups, 2);
    assert_eq!(fit(&mut store, &request(), &promises, 4).groups, 1);
    assert_eq!(fit(&mut store, &group(&[(gpus(8), 2)], None), &promises, 4).groups, 1);
    // With the leader on a node the worker can only come beside it.
    put(&mut store, member(&older, 0, 0, "a", gpus(8)));
    let room = fit(&mut store, &mine, &promises, 4);
    let message = "needs 1 more node with 8 free amd.com/gpu; largest free: 0,0,0; 2 of 4 replicas fit; 1 pod of other services is promised \
                   room and not assigned yet";
    assert_eq!(answer(&room), (2, Some((Reason::InsufficientRoom, message))));
    put(&mut store, pod("foreign", "b", gpus(8)));
    assert_eq!(fit(&mut store, &mine, &promises, 4).groups, 2, "there is no room left for the worker");
    // Two such groups never share a rack.
    assert_eq!(fit(&mut super::tests::store(&nodes, &[]), &mine, &[promise(&older, request(), 2)], 4).groups, 0);
    // Nor nodes that are a rack each.
    let by_host = group(&[(gpus(4), 2)], Some("kubernetes.io/hostname"));
    assert_eq!(fit(&mut super::tests::store(&nodes, &[]), &mine, &[promise(&older, by_host, 3)], 4).groups, 1);
}

#[test]
fn promised_groups_of_two_shapes_may_be_packed_or_spread() {
    let older = ServiceKey::new("team", "older");
    let promises = [promise(&older, group(&[(gpus(2), 1), (gpus(4), 1)], None), 1)];
    let mut store = store(&eights(&["a", "b"]), &[]);
    let whole = fit(&mut store, &group(&[(gpus(8), 1)], None), &promises, 2);
    assert_eq!((whole.groups, whole.exact), (0, false), "spread, no node stays whole");
    assert_eq!(fit(&mut store, &group(&[(gpus(4), 2)], None), &promises, 2).groups, 1);
}

#[test]
fn a_group_that_is_half_there_is_counted_once() {
    let alike = group(&[(gpus(8), 2)], None);
    let two_shapes = group(&[(gpus(8), 1), (asks(json!({GPU: 8, "cpu": 1})), 1)], None);
    let worker_of = |request: &GroupRequest| if request.pods.len() == 1 { gpus(8) } else { asks(json!({GPU: 8, "cpu": 1})) };
    for request in [alike, two_shapes] {
        let leader = member(&me(), 0, 0, "a", gpus(8));
        let worker = member(&me(), 0, 1, "b", worker_of(&request));
        for (what, pods) in [
            ("nothing yet", vec![]),
            ("the worker is gone", vec![leader.clone()]),
            ("the leader is gone", vec![worker.clone()]),
            ("all there", vec![leader.clone(), worker.clone()]),
            ("the worker is leaving", vec![leader.clone(), leaving(worker.clone())]),
            ("all leaving", vec![leaving(leader.clone()), leaving(worker.clone())]),
        ] {
            // The cluster is full, and what runs fits.
            let room = fit(&mut store(&eights(&["a", "b"]), &pods), &request, &[], 1);
            assert_eq!((room.groups, room.spare, room.fragile, &room.stopped_by), (1, 0, false, &None), "{what}");
            let room = fit(&mut store(&eights(&["a", "b", "c"]), &pods), &request, &[], 2);
            assert_eq!(room.groups, 1, "{what}: a node more is no group more");
            let room = fit(&mut store(&eights(&["a", "b", "c", "d"]), &pods), &request, &[], 2);
            assert_eq!((room.groups, room.spare), (2, 0), "{what}: two more are");
        }
    }
}

#[test]
fn what_runs_on_a_cordoned_node_stays_and_counts() {
    let cordoned = |name: &str| with(node(name, json!({GPU: 8})), "/spec/unschedulable", json!(true));
    let nodes = [cordoned("a"), cordoned("b"), node("c", json!({GPU: 8})), node("d", json!({GPU: 8}))];
    for request in [group(&[(gpus(8), 2)], None), group(&[(gpus(8), 1), (gpus(8), 1)], None)] {
        let pods = [member(&me(), 0, 0, "a", gpus(8)), member(&me(), 0, 1, "b", gpus(8))];
        assert_eq!(fit(&mut store(&nodes, &pods), &request, &[], 3).groups, 2);
        assert_eq!(fit(&mut store(&nodes, &pods[..1]), &request, &[], 3).groups, 1, "a pod that is gone doesn't come back there");
    }
}

#[test]
fn an_edit_takes_the_room_of_the_pods_before_it() {
    let pods = [member(&me(), 0, 0, "a", gpus(8)), member(&me(), 0, 1, "b", gpus(8))];
    let mut full = store(&eights(&["a", "b"]), &pods);
    assert_eq!(fit(&mut full, &group(&[(gpus(4), 1), (gpus(6), 1)], None), &[], 1).groups, 1);
    assert_eq!(fit(&mut full, &group(&[(gpus(4), 1), (gpus(6), 2)], None), &[], 1).groups, 0);
    assert_eq!(fit(&mut full, &group(&[(gpus(4), 4)], None), &[], 2).groups, 1);
}

#[test]
fn pods_of_groups_that_repel_each_other() {
    let repel = |gpu: u32| {
        with(
            gpus(gpu),
            "/affinity",
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "me"}}}]}}),
        )
    };
    let mut store = store(&eights(&["a", "b", "c"]), &[]);
    let room = fit(&mut store, &group(&[(repel(1), 2)], None), &[], 2);
    let message = "needs 2 more nodes, since a node takes one of these pods at most; 1 of 2 groups fit";
    assert_eq!(answer(&room), (1, Some((Reason::InsufficientRoom, message))));
    assert!(room.exact);
    // Whether a leader keeps workers away isn't known; that it does is the safe side.
    let room = fit(&mut store, &group(&[(repel(1), 1), (gpus(1), 1)], None), &[], 2);
    assert_eq!((room.groups, room.exact), (1, false));
}

#[test]
fn what_would_take_too_long_is_not_answered() {
    let nodes = [node("a", json!({GPU: 1_000_000, "pods": 9_000_000})), node("b", json!({GPU: 999_999, "pods": 9_000_000}))];
    let request = group(&[(gpus(3), 1), (gpus(2), 1)], None);
    let mut store = store(&nodes, &[]);
    let few = fit(&mut store, &request, &[], 10);
    assert_eq!((few.groups, few.spare, few.robust), (10, 0, 10));
    let message = "there are too many ways to put leaders and workers on its nodes";
    assert_eq!(answer(&fit(&mut store, &request, &[], 1_000_000)), (0, Some((Reason::CapacityUnknown, message))));
}

#[test]
fn the_service_of_pods_without_a_node_is_kept() {
    let mut store = store(&eights(&["a"]), &[]);
    let before = store.snapshot();
    put(&mut store, member(&me(), 0, 1, "", gpus(8)));
    put(&mut store, pod("foreign", "", gpus(8)));
    assert_eq!(store.pod_count(), 1);
    let after = store.snapshot();
    assert_eq!((after.assigned_pods(&me()), after.tally(&me()).unwrap().staying.workers), (0, 1));
    assert!(before.tally(&me()).is_none());
    store.clear_pods();
    assert!(store.snapshot().tally(&me()).is_none());
}

#[test]
fn devices_of_promised_groups_are_reserved() {
    let nodes: Vec<Value> = eights(&["a", "b", "c"])
        .into_iter()
        .map(|node| with(node, "/metadata/labels/moai.moreh.io~1accelerator.model", json!("mi300x")))
        .collect();
    let older = ServiceKey::new("team", "older");
    let promises = [promise(&older, group(&[(gpus(1), 1), (gpus(2), 3)], None), 2)];
    let mut store = store(&nodes, &[]);
    let reserved = |store: &mut Store| store.snapshot().accelerators(&promises)[0].reserved;
    assert_eq!(reserved(&mut store), 14);
    put(&mut store, member(&older, 0, 1, "a", gpus(2)));
    put(&mut store, member(&older, 0, 2, "a", gpus(2)));
    assert_eq!(reserved(&mut store), 10);
    put(&mut store, member(&older, 0, 0, "b", gpus(1)));
    assert_eq!(reserved(&mut store), 9);
    store.upsert_node(serde_json::from_value::<NodeView>(nodes[0].clone()).unwrap());
    assert_eq!(reserved(&mut store), 9);
}
