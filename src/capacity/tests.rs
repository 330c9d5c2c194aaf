//! Worked examples: nodes and pods as JSON in, room and words out. `gpu` stands for one extended resource.

use serde_json::{Value, json};

use super::{GroupRequest, NodeView, Options, PodSet, PodShape, PodView, Promise, Room, ServiceKey, Store, room, taints_in_the_way};
use crate::api::reason::Reason;

pub(super) const GPU: &str = "amd.com/gpu";

pub(super) fn node(name: &str, allocatable: Value) -> Value {
    let mut all = json!({"cpu": "500", "memory": "2000Gi", "pods": "110"});
    all.as_object_mut().unwrap().extend(allocatable.as_object().unwrap().clone());
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": all, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

pub(super) fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = object.pointer_mut(parent).unwrap();
    parent.as_object_mut().unwrap().insert(key.replace("~1", "/"), value);
    object
}

pub(super) fn gpus(count: u32) -> Value {
    json!({"containers": [{"name": "main", "resources": {"limits": {GPU: count}}}]})
}

pub(super) fn pod(uid: &str, node: &str, spec: Value) -> Value {
    let pod = json!({"metadata": {"uid": uid, "namespace": "other", "name": uid}, "spec": spec, "status": {"phase": "Running"}});
    if node.is_empty() { pod } else { with(pod, "/spec/nodeName", json!(node)) }
}

pub(super) fn of(service: &ServiceKey, pod: Value) -> Value {
    let pod = with(pod, "/metadata/namespace", json!(service.namespace));
    with(pod, "/metadata/labels", json!({"mif.moreh.io/inferenceservice": service.name}))
}

pub(super) fn store(nodes: &[Value], pods: &[Value]) -> Store {
    let mut store = Store::new();
    for node in nodes {
        store.upsert_node(serde_json::from_value::<NodeView>(node.clone()).unwrap());
    }
    for pod in pods {
        store.upsert_pod(serde_json::from_value::<PodView>(pod.clone()).unwrap());
    }
    store
}

pub(super) fn shape(spec: Value) -> PodShape {
    PodShape::from_template(&json!({"metadata": {"labels": {"app": "me"}}, "spec": spec})).unwrap()
}

pub(super) fn me() -> ServiceKey {
    ServiceKey::new("team", "me")
}

pub(super) fn ask(store: &mut Store, spec: Value, want: u32) -> Room {
    room(&store.snapshot(), &GroupRequest::one(shape(spec)), &me(), &[], want, &Options::default())
}

/// Groups, and the reason and message of what stops the next.
pub(super) fn answer(room: &Room) -> (u32, Option<(Reason, &str)>) {
    (room.groups, room.stopped_by.as_ref().map(|stopped| (stopped.reason, stopped.message.as_str())))
}

#[test]
fn example_1_free_is_what_assigned_pods_leave() {
    let nodes = [node("a", json!({GPU: 8})), node("b", json!({GPU: 8}))];
    let mut store = store(&nodes, &[pod("1", "a", gpus(3)), pod("2", "b", gpus(8))]);
    let room = ask(&mut store, gpus(4), 2);
    let message = "needs 1 more node with 4 free amd.com/gpu; largest free: 1,0; 1 of 2 replicas fit";
    assert_eq!(answer(&room), (1, Some((Reason::InsufficientRoom, message))));
    assert!(room.exact);
    assert_eq!(ask(&mut store, gpus(4), 1).stopped_by, None);
}

#[test]
fn f60_i18_example_2_a_sum_over_nodes_is_not_a_place() {
    for (count, free, wanted, message) in [
        (4_u32, 2, 4, "needs 1 node with 4 free amd.com/gpu; largest free: 2,2,2; 0 of 1 replicas fit"),
        (8, 1, 8, "needs 1 node with 8 free amd.com/gpu; largest free: 1,1,1; 0 of 1 replicas fit"),
    ] {
        let names: Vec<String> = (0..count).map(|n| format!("node-{n}")).collect();
        let nodes: Vec<Value> = names.iter().map(|name| node(name, json!({GPU: 8}))).collect();
        let pods: Vec<Value> = names.iter().map(|name| pod(name, name, gpus(8 - free))).collect();
        let room = ask(&mut store(&nodes, &pods), gpus(wanted), 1);
        assert_eq!(answer(&room), (0, Some((Reason::Fragmented, message))));
    }
}

#[test]
fn example_3_the_scarcest_resource_decides() {
    let nodes = [node("a", json!({GPU: 8, "cpu": "30", "memory": "500Gi", "pods": "5"}))];
    let spec = json!({"containers": [{"resources": {"requests": {GPU: "2", "cpu": "8", "memory": "100Gi"}}}]});
    let room = ask(&mut store(&nodes, &[]), spec, 4);
    let message = "needs 1 more node with 8 free cpu beside 2 amd.com/gpu; largest free: 6; 3 of 4 replicas fit";
    assert_eq!(answer(&room), (3, Some((Reason::InsufficientRoom, message))));
    assert_eq!(room.stopped_by.unwrap().resource.as_deref(), Some("cpu"));
}

#[test]
fn example_4_init_containers_and_sidecars() {
    let sidecar = json!({"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": {"cpu": 1}}});
    let init = json!({"name": "init", "resources": {"requests": {"cpu": 8}}});
    let main = json!({"name": "main", "resources": {"requests": {"cpu": 4}}});
    for (inits, cores) in [(vec![&sidecar, &init], 9), (vec![&init, &sidecar], 8), (vec![&sidecar], 5), (vec![&init], 8), (vec![], 4)] {
        let spec = json!({"containers": [main], "initContainers": inits});
        assert_eq!(shape(spec.clone()).requests.get("cpu"), cores * 1000, "{spec}");
    }
}

#[test]
fn example_5_limits_without_requests_are_requests() {
    let nodes = [node("a", json!({GPU: 16, "mellanox/hca": 1}))];
    let spec = json!({"containers": [{"resources": {"limits": {GPU: 8, "mellanox/hca": 1}, "requests": {GPU: 8}}}]});
    let room = ask(&mut store(&nodes, &[]), spec, 2);
    assert_eq!(room.groups, 1);
    assert_eq!(room.stopped_by.unwrap().resource.as_deref(), Some("mellanox/hca"));
}

#[test]
fn pod_level_resources_replace_native_ones_and_overhead_is_added() {
    let spec = json!({
        "containers": [{"resources": {"requests": {"cpu": 4, "memory": "4Gi", GPU: 2}}}],
        "resources": {"requests": {"cpu": "500m", GPU: 7}, "limits": {"memory": "8Gi", "hugepages-2Mi": "2Mi"}},
        "overhead": {"cpu": "250m"},
    });
    let requests = shape(spec).requests;
    let all: Vec<(&str, i64)> = requests.iter().collect();
    assert_eq!(all, [(GPU, 2), ("cpu", 750), ("hugepages-2Mi", 2 << 20), ("memory", 4 << 30), ("pods", 1)]);
}

#[test]
fn a_pod_that_is_resized_takes_the_larger_of_what_it_has_and_wants() {
    let resized = |allocated: &str, actual: &str, conditions: Value| {
        let pod = pod("1", "n", json!({"containers": [{"name": "main", "resources": {"requests": {"cpu": 2, "memory": "1Gi", GPU: 1}}}]}));
        let status = json!({"name": "main", "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": actual, GPU: 9}}});
        let pod = with(pod, "/status/conditions", conditions);
        let view: PodView = serde_json::from_value(with(pod, "/status/containerStatuses", json!([status]))).unwrap();
        (view.requests.get("cpu"), view.requests.get("memory"), view.requests.get(GPU))
    };
    let infeasible = json!([{"type": "PodResizePending", "reason": "Infeasible"}]);
    assert_eq!(resized("1", "1", json!([])), (2000, 1 << 30, 1));
    assert_eq!(resized("3", "1", json!([])), (3000, 1 << 30, 1));
    assert_eq!(resized("1", "4", json!([])), (4000, 1 << 30, 1));
    assert_eq!(resized("1", "1", infeasible), (1000, 1 << 30, 1));
}

#[test]
fn affinity_and_the_name_of_a_node() {
    let nodes = ["a", "b", "c"].map(|name| node(name, json!({GPU: 8})));
    let terms = |terms: Value| json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
    let by_host = json!([{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["a"]}]}]);
    let by_field = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]);
    let mut store = store(&nodes, &[]);
    for (spec, groups) in [
        (with(gpus(8), "/affinity", terms(by_host)), 2),
        (with(gpus(8), "/affinity", terms(by_field)), 1),
        (with(gpus(8), "/nodeSelector", json!({"kubernetes.io/hostname": "c"})), 1),
        (with(gpus(8), "/nodeSelector", json!({"kubernetes.io/hostname": "d"})), 0),
        (with(gpus(8), "/nodeName", json!("a")), 1),
        (with(gpus(8), "/nodeName", json!("d")), 0),
    ] {
        assert_eq!(ask(&mut store, spec.clone(), 9).groups, groups, "{spec}");
    }
}

#[test]
fn a_bad_quantity_in_a_template_is_named() {
    let template = json!({"spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": "16GB"}}}]}});
    let error = PodShape::from_template(&template).unwrap_err();
    assert!(error.starts_with("spec.containers[main].resources.limits.memory: \"16GB\" has an unknown suffix"), "{error}");
}

#[test]
fn f59_i13_i16_i31_example_12_nodes_that_take_no_pods() {
    let taint = |key: &str, effect: &str| json!([{"key": key, "value": "x", "effect": effect}]);
    let nodes = [
        with(node("a", json!({GPU: 8})), "/spec/taints", taint(GPU, "NoSchedule")),
        with(node("b", json!({GPU: 8})), "/spec/unschedulable", json!(true)),
        with(node("c", json!({GPU: 8})), "/status/conditions", json!([{"type": "Ready", "status": "False"}])),
        with(node("d", json!({GPU: 8})), "/spec/taints", taint("x", "PreferNoSchedule")),
        with(node("e", json!({GPU: 8})), "/spec/taints", taint("y", "NoExecute")),
    ];
    let spec = with(gpus(8), "/tolerations", json!([{"key": GPU, "operator": "Exists"}]));
    let mut store = store(&nodes, &[]);
    let message = "needs 1 more node with 8 free amd.com/gpu; largest free: 0,0; 1 node is tainted y=x:NoExecute, which the pods \
                   don't tolerate; 1 node is cordoned; 1 node is not ready; 2 of 5 replicas fit";
    assert_eq!(answer(&ask(&mut store, spec, 5)), (2, Some((Reason::InsufficientRoom, message))));

    let named = |store: &mut Store, spec: Value| taints_in_the_way(&store.snapshot(), &GroupRequest::one(shape(spec)), Options::default());
    let tainted = "1 node is tainted y=x:NoExecute, which the pods don't tolerate";
    let tolerates = with(gpus(8), "/tolerations", json!([{"key": GPU, "operator": "Exists"}]));
    assert_eq!(named(&mut store, tolerates).as_deref(), Some(tainted));
    assert_eq!(named(&mut store, with(gpus(8), "/tolerations", json!([{"operator": "Exists"}]))), None);

    // Without the toleration the admission plugin may still add it.
    let request = GroupRequest::one(shape(gpus(8)));
    for (on, groups) in [(false, 1), (true, 2)] {
        let options = Options { extended_resource_toleration: on, ..Options::default() };
        assert_eq!(room(&store.snapshot(), &request, &me(), &[], 5, &options).groups, groups);
    }

    for name in ["a", "d"] {
        store.remove_node(name);
    }
    let room = ask(&mut store, gpus(8), 1);
    let message = "1 node is tainted y=x:NoExecute, which the pods don't tolerate; 1 node is cordoned; 1 node is not ready; 0 of 1 \
                   replicas fit";
    assert_eq!(answer(&room), (0, Some((Reason::NodesTainted, message))));
    store.remove_node("e");
    let message = "1 node is cordoned; 1 node is not ready; 0 of 1 replicas fit";
    assert_eq!(answer(&ask(&mut store, gpus(8), 1)), (0, Some((Reason::NodesUnavailable, message))));
}

#[test]
fn example_13_which_pods_count() {
    let phase = |pod: Value, phase: &str| with(pod, "/status/phase", json!(phase));
    let pods = [
        pod("running", "n", gpus(2)),
        phase(pod("pending", "n", gpus(1)), "Pending"),
        with(pod("terminating", "n", gpus(1)), "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
        phase(pod("failed", "n", gpus(4)), "Failed"),
        phase(pod("succeeded", "n", gpus(8)), "Succeeded"),
        phase(pod("waiting", "", gpus(8)), "Pending"),
        with(phase(pod("nominated", "", gpus(1)), "Pending"), "/status/nominatedNodeName", json!("n")),
    ];
    let mut store = store(&[node("n", json!({GPU: 8}))], &pods);
    assert_eq!(ask(&mut store, gpus(1), 9).groups, 3);
    assert_eq!(ask(&mut store, gpus(4), 9).groups, 0);
    assert_eq!(store.pod_count(), 4, "finished pods and those without a node aren't kept");
    store.upsert_pod(serde_json::from_value(phase(pods[0].clone(), "Succeeded")).unwrap());
    assert_eq!(ask(&mut store, gpus(1), 9).groups, 5);
    store.remove_pod("terminating");
    assert_eq!(ask(&mut store, gpus(1), 9).groups, 6);
}

#[test]
fn example_15_failed_devices_are_never_negative_room() {
    let mut store = store(&[node("n", json!({GPU: 6}))], &[pod("1", "n", gpus(8))]);
    assert_eq!(ask(&mut store, gpus(1), 1).groups, 0);
}

#[test]
fn example_16_places_for_pods_are_a_resource() {
    let pods: Vec<Value> = (0..10).map(|n| pod(&n.to_string(), "n", json!({"containers": []}))).collect();
    let room = ask(&mut store(&[node("n", json!({GPU: 8, "pods": 12}))], &pods), gpus(1), 8);
    let message = "needs 1 more node with 1 free pods beside 1 amd.com/gpu; largest free: 0; 2 of 8 replicas fit";
    assert_eq!(answer(&room), (2, Some((Reason::InsufficientRoom, message))));
}

#[test]
fn examples_17_and_18_no_devices() {
    let mig = json!({"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 7});
    let spec = json!({"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]});
    let message = "no node offers nvidia.com/gpu; 0 of 1 replicas fit";
    assert_eq!(answer(&ask(&mut store(&[node("n", mig)], &[]), spec, 1)), (0, Some((Reason::NoSuchAccelerator, message))));

    let labelled = with(node("n", json!({})), "/metadata/labels/moai.moreh.io~1accelerator.model", json!("mi300x"));
    let message = "1 node is labelled moai.moreh.io/accelerator.model=mi300x, but without amd.com/gpu: is the device plugin \
                   running?; 0 of 1 replicas fit";
    let mut store = store(&[labelled], &[]);
    assert_eq!(answer(&ask(&mut store, gpus(1), 1)), (0, Some((Reason::LabelWithoutDevices, message))));

    let elsewhere = with(gpus(1), "/nodeSelector", json!({"moai.moreh.io/accelerator.model": "mi355x"}));
    let message = "no node has moai.moreh.io/accelerator.model=mi355x; 0 of 1 replicas fit";
    assert_eq!(answer(&ask(&mut store, elsewhere, 1)), (0, Some((Reason::NoSuchAccelerator, message))));
}

#[test]
fn example_19_running_pods_of_the_service_are_its_room() {
    let nodes = [node("a", json!({GPU: 8})), node("b", json!({GPU: 8}))];
    let mut store = store(&nodes, &[of(&me(), pod("1", "a", gpus(8))), of(&me(), pod("2", "b", gpus(8)))]);
    assert_eq!(store.snapshot().assigned_pods(&me()), 2);
    // A rollout that has to start a pod before it stops one has no place for it.
    let room_of_two = ask(&mut store, gpus(8), 2);
    assert_eq!((room_of_two.groups, room_of_two.spare), (2, 0));
    let other = ServiceKey::new("team", "other");
    let request = GroupRequest::one(shape(gpus(8)));
    assert_eq!(room(&store.snapshot(), &request, &other, &[], 2, &Options::default()).groups, 0);

    // A cordoned node takes nothing new, but what runs there stays.
    store.upsert_node(serde_json::from_value(with(nodes[0].clone(), "/spec/unschedulable", json!(true))).unwrap());
    assert_eq!(ask(&mut store, gpus(8), 3).groups, 2);
    // A node that is lost keeps nothing.
    let lost = with(nodes[0].clone(), "/status/conditions", json!([{"type": "Ready", "status": "Unknown"}]));
    store.upsert_node(serde_json::from_value(lost).unwrap());
    assert_eq!(ask(&mut store, gpus(8), 3).groups, 1);
}

#[test]
fn f54_pods_of_a_service_with_a_long_name_are_its_own() {
    let long = ServiceKey::new("team", "x".repeat(100));
    let labelled = ServiceKey::new("team", crate::api::labels::label_value(&long.name));
    let mut store = store(&[node("a", json!({GPU: 8}))], &[of(&labelled, pod("1", "a", gpus(8)))]);
    assert_eq!(store.snapshot().assigned_pods(&long), 1);
    let request = GroupRequest::one(shape(gpus(8)));
    assert_eq!(room(&store.snapshot(), &request, &long, &[], 1, &Options::default()).groups, 1);
}

#[test]
fn promised_pods_may_be_packed_or_spread() {
    let nodes = [node("a", json!({GPU: 8})), node("b", json!({GPU: 8}))];
    let other = ServiceKey::new("team", "other");
    let promise = |gpu: u32| [Promise { service: other.clone(), request: GroupRequest::one(shape(gpus(gpu))).into(), groups: 2 }];
    let snapshot = store(&nodes, &[]).snapshot();
    // Two halves may land on both nodes and leave no whole one.
    let whole = room(&snapshot, &GroupRequest::one(shape(gpus(8))), &me(), &promise(4), 2, &Options::default());
    let message = "needs 1 node with 8 free amd.com/gpu; largest free: 4,4; 0 of 2 replicas fit; 2 pods of other services are \
                   promised room and not assigned yet";
    assert_eq!(answer(&whole), (0, Some((Reason::Fragmented, message))));
    assert!(!whole.exact);
    let half = room(&snapshot, &GroupRequest::one(shape(gpus(4))), &me(), &promise(4), 4, &Options::default());
    assert_eq!(half.groups, 2);
}

#[test]
fn pods_that_repel_each_other_take_a_node_each() {
    let nodes = [node("a", json!({GPU: 8})), node("b", json!({GPU: 8}))];
    let term = |labels: Value| {
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}]}})
    };
    let mut store = store(&nodes, &[]);
    let room = ask(&mut store, with(gpus(1), "/affinity", term(json!({"app": "me"}))), 3);
    let message = "needs 1 more node, since a node takes one of these pods at most; 2 of 3 replicas fit";
    assert_eq!(answer(&room), (2, Some((Reason::InsufficientRoom, message))));
    let room = ask(&mut store, with(gpus(1), "/affinity", term(json!({"app": "other"}))), 20);
    assert_eq!((room.groups, room.unsimulated), (16, vec!["anti-affinity to other pods".to_owned()]));
}

#[test]
fn claimed_devices_and_odd_groups_are_unknown() {
    let snapshot = store(&[node("a", json!({GPU: 8}))], &[]).snapshot();
    let set = |count| PodSet { shape: shape(gpus(1)), count };
    let group = |pods| GroupRequest { pods, ..GroupRequest::default() };
    let claims = GroupRequest::one(shape(with(gpus(1), "/resourceClaims", json!([{"name": "gpu"}]))));
    let odd = "only groups of a leader and workers are counted";
    for (request, message) in [
        (claims, "devices that pods claim by resourceClaims are not counted"),
        (group(vec![]), odd),
        (group(vec![set(0)]), odd),
        (group(vec![set(2), set(2)]), odd),
        (group(vec![set(1), set(2), set(1)]), odd),
    ] {
        let room = room(&snapshot, &request, &me(), &[], 1, &Options::default());
        assert_eq!(answer(&room), (0, Some((Reason::CapacityUnknown, message))));
    }
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let mut store = store(&[node("a", json!({GPU: 8}))], &[]);
    let before = store.snapshot();
    store.upsert_pod(serde_json::from_value(pod("1", "a", gpus(8))).unwrap());
    let after = store.snapshot();
    let request = GroupRequest::one(shape(gpus(8)));
    let groups = |snapshot: &super::Snapshot| room(snapshot, &request, &me(), &[], 1, &Options::default()).groups;
    assert_eq!((groups(&before), groups(&after)), (1, 0));
    store.clear_pods();
    assert_eq!(groups(&store.snapshot()), 1);
    store.clear_nodes();
    assert_eq!((groups(&store.snapshot()), store.node_count()), (0, 0));
}

#[test]
fn accelerators_by_model() {
    let model =
        |name: &str, model: &str, offer: Value| with(node(name, offer), "/metadata/labels/moai.moreh.io~1accelerator.model", json!(model));
    let nodes = [
        model("a", "mi300x", json!({GPU: 8, "mellanox/hca": 8})),
        model("b", "mi300x", json!({GPU: 8})),
        with(model("c", "mi300x", json!({GPU: 8})), "/spec/unschedulable", json!(true)),
        with(node("d", json!({"nvidia.com/gpu": 4})), "/metadata/labels/nvidia.com~1gpu.product", json!("NVIDIA-H200")),
        with(node("e", json!({"nvidia.com/gpu": 2})), "/metadata/labels/nvidia.com~1gpu.product", json!("")),
        model("f", "mi308x", json!({GPU: 0})),
    ];
    let snapshot = store(&nodes, &[pod("1", "a", gpus(5)), pod("2", "c", gpus(1))]).snapshot();
    let selecting = with(gpus(2), "/nodeSelector", json!({"moai.moreh.io/accelerator.model": "mi300x"}));
    let promise = Promise { service: me(), request: GroupRequest::one(shape(selecting)).into(), groups: 3 };
    let accelerators = snapshot.accelerators(&[promise]);
    assert_eq!(
        serde_json::to_value(&accelerators).unwrap(),
        json!([
            {"resource": GPU, "vendor": "amd", "model": "mi300x", "nodes": 3, "allocatable": 24, "used": 6, "reserved": 6, "free": 11,
             "largestFreeNode": 8, "freeByNode": [{"free": 8, "nodes": 1}, {"free": 3, "nodes": 1}]},
            {"resource": "nvidia.com/gpu", "vendor": "nvidia", "nodes": 1, "allocatable": 2, "used": 0, "reserved": 0, "free": 2,
             "largestFreeNode": 2, "freeByNode": [{"free": 2, "nodes": 1}]},
            {"resource": "nvidia.com/gpu", "vendor": "nvidia", "model": "NVIDIA-H200", "nodes": 1, "allocatable": 4, "used": 0,
             "reserved": 0, "free": 4, "largestFreeNode": 4, "freeByNode": [{"free": 4, "nodes": 1}]},
        ])
    );
    assert_eq!(super::summary(&accelerators), "11/24 mi300x, 4/4 NVIDIA-H200, 2/2 nvidia.com/gpu");
}
