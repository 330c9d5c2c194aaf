//! Groups by quota.

use serde_json::{Value, json};

use super::tests::{GPU, answer, gpus, me, node, of, pod, shape, store, with};
use super::{GroupRequest, Options, PodSet, PodView, Promise, QuotaView, Room, ServiceKey, Store, room};
use crate::api::lws;
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;

fn quota(store: &mut Store, name: &str, spec: Value, hard: Value, used: Value) {
    let quota = json!({
        "metadata": {"namespace": "team", "name": name, "uid": name}, "spec": spec, "status": {"hard": hard, "used": used},
    });
    store.upsert_quota(serde_json::from_value::<QuotaView>(quota).unwrap());
}

fn large() -> Vec<Value> {
    ["a", "b"].iter().map(|name| node(name, json!({GPU: 100}))).collect()
}

fn ask(store: &mut Store, request: &GroupRequest, promises: &[Promise], want: u32) -> Room {
    room(&store.snapshot(), request, &me(), promises, want, &Options::default())
}

fn set(sets: &[(Value, u32)]) -> GroupRequest {
    let pods = sets.iter().map(|(spec, count)| PodSet { shape: shape(spec.clone()), count: *count }).collect();
    GroupRequest { kind: WorkloadKind::LeaderWorkerSet, pods, exclusive_topology: None }
}

fn main_with(resources: Value) -> Value {
    json!({"containers": [{"name": "main", "resources": resources}]})
}

#[test]
fn example_14_a_quota_is_tighter_than_the_nodes() {
    let mut store = store(&[node("a", json!({GPU: 20}))], &[]);
    let request = GroupRequest::one(shape(gpus(4)));
    quota(&mut store, "compute", json!({}), json!({"requests.amd.com/gpu": "20"}), json!({"requests.amd.com/gpu": "6"}));
    let room = ask(&mut store, &request, &[], 5);
    let message = "quota compute in team leaves 14 of 20 requests.amd.com/gpu, and a group needs 4; 3 of 5 replicas fit";
    assert_eq!(answer(&room), (3, Some((Reason::QuotaExceeded, message))));
    assert_eq!(room.stopped_by.unwrap().resource.as_deref(), Some("requests.amd.com/gpu"));
    let ignored = Options { ignore_quotas: true, ..Options::default() };
    assert_eq!(super::room(&store.snapshot(), &request, &me(), &[], 5, &ignored).groups, 5);
    let elsewhere = super::room(&store.snapshot(), &request, &ServiceKey::new("other", "me"), &[], 5, &Options::default());
    assert_eq!(elsewhere.groups, 5);
}

#[test]
fn every_form_of_a_bound() {
    let spec = main_with(json!({"requests": {"cpu": "1500m", "memory": "1Gi", GPU: 2}, "limits": {"cpu": 2, "memory": "2Gi", GPU: 2}}));
    let single = GroupRequest::one(shape(spec.clone()));
    let three = set(&[(spec.clone(), 3)]);
    let two_shapes =
        set(&[(main_with(json!({"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"cpu": 1, "memory": "1Gi"}})), 1), (spec, 2)]);
    for (key, hard, used, expected) in [
        ("requests.cpu", "10", "500m", [Some(6), Some(2), Some(2)]),
        ("cpu", "9", "0", [Some(6), Some(2), Some(2)]),
        ("limits.cpu", "13", "1", [Some(6), Some(2), Some(2)]),
        ("requests.memory", "6Gi", "0", [Some(6), Some(2), Some(2)]),
        ("memory", "6Gi", "1Mi", [Some(5), Some(1), Some(1)]),
        ("limits.memory", "12Gi", "0", [Some(6), Some(2), Some(2)]),
        ("requests.amd.com/gpu", "13", "1", [Some(6), Some(2), Some(3)]),
        ("pods", "9", "3", [Some(6), Some(2), Some(2)]),
        ("count/pods", "6", "0", [Some(6), Some(2), Some(2)]),
        ("count/deployments.apps", "3", "3", [Some(0), None, None]),
        ("count/deployments.apps", "3", "2", [None, None, None]),
        ("count/replicasets.apps", "3", "3", [Some(0), None, None]),
        ("count/leaderworkersets.leaderworkerset.x-k8s.io", "1", "1", [None, Some(0), Some(0)]),
        ("count/statefulsets.apps", "5", "1", [None, Some(3), Some(3)]),
        ("count/services", "2", "1", [None, Some(0), Some(0)]),
        ("services", "1", "1", [Some(0), Some(0), Some(0)]),
        ("count/secrets", "0", "0", [None, None, None]),
        ("requests.nvidia.com/gpu", "0", "0", [None, None, None]),
        ("requests.storage", "0", "0", [None, None, None]),
        ("requests.cpu", "1", "5", [Some(0), Some(0), Some(0)]),
        ("requests.cpu", "9223372036854775807", "0", [None, None, None]),
        ("requests.cpu", "odd", "0", [None, None, None]),
    ] {
        let mut store = store(&large(), &[]);
        quota(&mut store, "q", json!({}), json!({key: hard}), json!({key: used}));
        for (request, expected) in [&single, &three, &two_shapes].into_iter().zip(expected) {
            let room = ask(&mut store, request, &[], 20);
            assert_eq!(room.groups, expected.unwrap_or(20), "{key} {hard} {used}: {:?}", room.stopped_by);
        }
    }
}

#[test]
fn all_quotas_apply_and_the_tightest_is_named() {
    let mut store = store(&large(), &[]);
    let bound = |gpus: u32| json!({"requests.amd.com/gpu": gpus.to_string(), "pods": "50"});
    quota(&mut store, "wide", json!({}), bound(40), json!({}));
    quota(&mut store, "tight", json!({}), bound(8), json!({}));
    let message = "quota tight in team leaves 8 of 8 requests.amd.com/gpu, and a group needs 4; 2 of 20 replicas fit";
    let request = GroupRequest::one(shape(gpus(4)));
    assert_eq!(answer(&ask(&mut store, &request, &[], 20)), (2, Some((Reason::QuotaExceeded, message))));
    let before = store.snapshot();
    quota(&mut store, "tight", json!({}), bound(8), json!({}));
    assert!(std::sync::Arc::ptr_eq(&before, &store.snapshot()), "nothing changed");
    store.remove_quota("tight");
    assert_eq!(ask(&mut store, &request, &[], 20).groups, 10);
    store.clear_quotas();
    assert_eq!(ask(&mut store, &request, &[], 20).groups, 20);
}

#[test]
fn scopes_select_pods() {
    let best_effort = main_with(json!({"limits": {GPU: 4}}));
    let burstable = main_with(json!({"requests": {"cpu": 1}, "limits": {GPU: 4}}));
    let urgent = with(burstable.clone(), "/priorityClassName", json!("urgent"));
    let across = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "namespaces": ["x"]}]}});
    let across = with(burstable.clone(), "/affinity", across);
    let class = |operator: &str, values: Value| json!({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": values}]}});
    // Whether each of the four is counted.
    for (spec, counted) in [
        (json!({}), [true, true, true, true]),
        (json!({"scopes": ["BestEffort"]}), [true, false, false, false]),
        (json!({"scopes": ["NotBestEffort"]}), [false, true, true, true]),
        (json!({"scopes": ["Terminating"]}), [false, false, false, false]),
        (json!({"scopes": ["NotTerminating"]}), [true, true, true, true]),
        (json!({"scopes": ["NotTerminating", "BestEffort"]}), [true, false, false, false]),
        (json!({"scopes": ["CrossNamespacePodAffinity"]}), [false, false, false, true]),
        (json!({"scopes": ["PriorityClass"]}), [false, false, true, false]),
        (class("In", json!(["urgent", "x"])), [false, false, true, false]),
        (class("In", json!(["x"])), [false, false, false, false]),
        (class("NotIn", json!(["urgent"])), [true, true, false, true]),
        (class("Exists", json!([])), [false, false, true, false]),
        (class("DoesNotExist", json!([])), [true, true, false, true]),
        (json!({"scopes": ["FromTheFuture"]}), [true, true, true, true]),
        (class("Like", json!([])), [true, true, true, true]),
        (json!({"scopes": ["FromTheFuture", "Terminating"]}), [false, false, false, false]),
    ] {
        let mut store = store(&large(), &[]);
        quota(&mut store, "q", spec.clone(), json!({"requests.amd.com/gpu": "8"}), json!({}));
        for (pod, counted) in [&best_effort, &burstable, &urgent, &across].into_iter().zip(counted) {
            let room = ask(&mut store, &GroupRequest::one(shape(pod.clone())), &[], 9);
            assert_eq!(room.groups, if counted { 2 } else { 9 }, "{spec} {pod}");
        }
    }
    let mut store = store(&large(), &[]);
    quota(&mut store, "q", json!({"scopes": ["FromTheFuture"]}), json!({"pods": "1"}), json!({}));
    let message = "quota q in team leaves 1 of 1 pods, and a group needs 1; it can't be told whether its scope FromTheFuture selects the \
                   pods; 1 of 2 replicas fit";
    assert_eq!(answer(&ask(&mut store, &GroupRequest::one(shape(burstable)), &[], 2)), (1, Some((Reason::QuotaExceeded, message))));
}

#[test]
fn pods_without_the_request_that_a_quota_bounds_are_refused() {
    let message = |key: &str, container: &str| {
        format!(
            "quota q in team bounds {key}, so each container must set it, and {container} doesn't; defaults of a LimitRange are not seen; 0 \
             of 1 replicas fit"
        )
    };
    let limited = main_with(json!({"limits": {"cpu": 1}}));
    let beside = json!({"containers": [{"name": "main", "resources": {"requests": {"cpu": 1}}}], "initContainers": [{"name": "init"}]});
    let by_pod = json!({"containers": [{"name": "main"}], "resources": {"requests": {"cpu": 1}}});
    for (key, spec, missing) in [
        ("cpu", gpus(1), Some("main")),
        ("requests.cpu", gpus(1), Some("main")),
        ("requests.cpu", limited.clone(), None),
        ("limits.cpu", limited.clone(), None),
        ("limits.cpu", main_with(json!({"requests": {"cpu": 1}})), Some("main")),
        ("requests.memory", limited, Some("main")),
        ("requests.cpu", beside, Some("init")),
        ("requests.cpu", by_pod, None),
        ("pods", gpus(1), None),
        ("requests.ephemeral-storage", gpus(1), None),
    ] {
        let mut store = store(&large(), &[]);
        quota(&mut store, "q", json!({}), json!({key: "50"}), json!({}));
        let room = ask(&mut store, &GroupRequest::one(shape(spec.clone())), &[], 1);
        let told = room.stopped_by.map(|stopped| stopped.message);
        assert_eq!((room.groups, told), missing.map_or((1, None), |missing| (0, Some(message(key, missing)))), "{key} {spec}");
    }
}

#[test]
fn what_is_used_by_the_service_itself_is_given_back() {
    let limits = json!({"requests.amd.com/gpu": "8", "pods": "2", "count/deployments.apps": "1", "limits.cpu": "4"});
    let spec = main_with(json!({"limits": {GPU: 4, "cpu": 2, "memory": "1Gi"}}));
    let request = GroupRequest::one(shape(spec.clone()));
    let mut store = store(&large(), &[of(&me(), pod("1", "a", spec.clone())), of(&me(), pod("2", "", spec.clone()))]);
    // The second pod has no node yet, but counts in the quota.
    quota(&mut store, "q", json!({}), limits.clone(), limits.clone());
    let room = ask(&mut store, &request, &[], 2);
    assert_eq!((room.groups, room.stopped_by), (2, None));
    let message = "quota q in team leaves 0 of 4 limits.cpu, and a group needs 2; 2 of 3 replicas fit";
    assert_eq!(answer(&ask(&mut store, &request, &[], 3)), (2, Some((Reason::QuotaExceeded, message))));

    // A workload of no replicas has no pods, and is there.
    let mut store = super::tests::store(&large(), &[]);
    quota(&mut store, "q", json!({}), json!({"count/deployments.apps": "1"}), json!({"count/deployments.apps": "1"}));
    assert_eq!(ask(&mut store, &request, &[], 1).groups, 0);
    let own = Promise { service: me(), request: request.clone().into(), groups: 0 };
    assert_eq!(ask(&mut store, &request, &[own], 1).groups, 1);
}

#[test]
fn what_is_promised_to_others_and_not_created_yet_is_left_to_them() {
    let older = ServiceKey::new("team", "older");
    let promised = |namespace: &str, request: GroupRequest, groups| {
        [Promise { service: ServiceKey::new(namespace, "older"), request: request.into(), groups }]
    };
    let mine = GroupRequest::one(shape(gpus(4)));
    let mut store = store(&large(), &[]);
    let bound = |used: u32| (json!({"requests.amd.com/gpu": "20"}), json!({"requests.amd.com/gpu": used.to_string()}));
    let (hard, used) = bound(0);
    quota(&mut store, "q", json!({}), hard.clone(), used);
    let group = set(&[(gpus(1), 1), (gpus(3), 2)]);
    let promises = promised("team", group.clone(), 1);
    let message = "quota q in team leaves 13 of 20 requests.amd.com/gpu, and a group needs 4; 7 are promised to other services; 3 of 9 \
                   replicas fit";
    assert_eq!(answer(&ask(&mut store, &mine, &promises, 9)), (3, Some((Reason::QuotaExceeded, message))));
    assert_eq!(ask(&mut store, &mine, &promised("other", group, 1), 9).groups, 5);

    // A worker is created: it is in what is used, with a node or without.
    let worker = json!({lws::NAME: "older", lws::WORKER_INDEX: "1", lws::GROUP_KEY: "k", "app.kubernetes.io/instance": "older"});
    let worker = with(of(&older, pod("w", "", gpus(3))), "/metadata/labels", worker);
    store.upsert_pod(serde_json::from_value::<PodView>(worker).unwrap());
    quota(&mut store, "q", json!({}), hard, bound(3).1);
    assert_eq!(ask(&mut store, &mine, &promises, 9).groups, 3);

    let objects = json!({"count/statefulsets.apps": "5"});
    let mut store = super::tests::store(&large(), &[]);
    quota(&mut store, "q", json!({}), objects, json!({"count/statefulsets.apps": "0"}));
    let group = set(&[(gpus(1), 2)]);
    assert_eq!(ask(&mut store, &group, &promised("team", group.clone(), 1), 9).groups, 2);
}
