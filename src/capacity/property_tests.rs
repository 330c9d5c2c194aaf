//! Room against exhaustive search, the store against one made afresh, and JSON that nobody would write.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::quantity::{self, Quantity};
use super::{GroupRequest, NodeView, Options, PodShape, PodView, Promise, ServiceKey, Snapshot, Store, room};

const GPU: &str = "amd.com/gpu";
const NIC: &str = "mellanox/hca";

/// Free devices, network cards and places for pods of one node, and whether the shape may use it.
type Free = ([i64; 3], bool);

fn snapshot(nodes: &[Free]) -> Arc<Snapshot> {
    let mut store = Store::new();
    for (at, ([gpu, nic, pods], usable)) in nodes.iter().enumerate() {
        let node = json!({
            "metadata": {"name": format!("n{at}"), "labels": {"pool": usable.to_string()}},
            "status": {"allocatable": {GPU: gpu, NIC: nic, "pods": pods}, "conditions": [{"type": "Ready", "status": "True"}]},
        });
        store.upsert_node(serde_json::from_value::<NodeView>(node).unwrap());
    }
    store.snapshot()
}

fn shape(gpu: i64, nic: i64) -> PodShape {
    let template = json!({"spec": {"nodeSelector": {"pool": "true"}, "containers": [{"resources": {"limits": {GPU: gpu, NIC: nic}}}]}});
    PodShape::from_template(&template).unwrap()
}

/// The most pods that can be on the nodes at once, by trying every number of them on every node.
fn search(nodes: &[Free], request: [i64; 3]) -> u32 {
    let Some((([gpu, nic, pods], usable), rest)) = nodes.split_first() else { return 0 };
    let [want_gpu, want_nic, want_pods] = request;
    let fits = |count: i64| want_gpu * count <= *gpu && want_nic * count <= *nic && want_pods * count <= *pods;
    (0..=9)
        .filter(|count| *count == 0 || (*usable && fits(*count)))
        .map(|count| u32::try_from(count).unwrap() + search(rest, request))
        .max()
        .unwrap()
}

/// What is left when promised pods are put on the nodes in some way, the worst for the request.
fn worst(nodes: &mut Vec<Free>, promised: [i64; 3], pods: u32, request: [i64; 3]) -> u32 {
    let places: Vec<usize> = (0..nodes.len()).filter(|at| nodes[*at].1 && (0..3).all(|r| promised[r] <= nodes[*at].0[r])).collect();
    if pods == 0 || places.is_empty() {
        return search(nodes, request);
    }
    let mut least = u32::MAX;
    for at in places {
        (0..3).for_each(|r| nodes[at].0[r] -= promised[r]);
        least = least.min(worst(nodes, promised, pods - 1, request));
        (0..3).for_each(|r| nodes[at].0[r] += promised[r]);
    }
    least
}

fn free() -> impl Strategy<Value = Vec<Free>> {
    proptest::collection::vec(((0_i64..9, 0_i64..5, 0_i64..7).prop_map(|(gpu, nic, pods)| [gpu, nic, pods]), any::<bool>()), 0..4)
}

fn me() -> ServiceKey {
    ServiceKey::new("ns", "me")
}

/// Texts that stand in the place of anything.
fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!([])),
        Just(json!({})),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[-+]?[0-9.]{0,50}[a-zA-Z]{0,3}[-+]?[0-9]{0,12}".prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ]
}

/// Puts `value` at the `at`-th place of the tree, counted from the root.
fn replace(tree: &mut Value, at: &mut usize, value: &Value) {
    if *at == 0 {
        *tree = value.clone();
    }
    *at = at.wrapping_sub(1);
    match tree {
        Value::Object(map) => map.values_mut().for_each(|child| replace(child, at, value)),
        Value::Array(list) => list.iter_mut().for_each(|child| replace(child, at, value)),
        _ => {}
    }
}

fn full_pod() -> Value {
    let container = json!({
        "name": "main", "restartPolicy": "Always", "ports": [{"containerPort": 80, "hostPort": 0}],
        "resources": {"requests": {"cpu": "1500m", GPU: "1"}, "limits": {"memory": "1Gi"}},
    });
    let requirement = json!({"key": "zone", "operator": "Gt", "values": ["1"]});
    let pod_terms = json!([{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": [requirement]}}]);
    json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "1", "labels": {"mif.moreh.io/inferenceservice": "me"}},
        "spec": {
            "nodeName": "n", "hostNetwork": false, "containers": [container], "initContainers": [container],
            "resources": {"limits": {"cpu": "4"}}, "overhead": {"cpu": "250m"}, "nodeSelector": {"zone": "2"},
            "tolerations": [{"key": "x", "operator": "Exists", "effect": "NoSchedule"}],
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [requirement], "matchFields": [requirement]}]}},
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": pod_terms},
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": pod_terms},
            },
            "topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
            "volumes": [{"persistentVolumeClaim": {"claimName": "c"}}], "resourceClaims": [{"name": "r"}],
        },
        "status": {
            "phase": "Running", "nominatedNodeName": "n", "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
            "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "3"}}}],
        },
    })
}

fn full_node() -> Value {
    json!({
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "1", "labels": {"zone": "2"}},
        "spec": {"unschedulable": false, "taints": [{"key": "x", "value": "y", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "64", GPU: "8", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

proptest! {
    #[test]
    fn room_is_what_exhaustive_search_finds(nodes in free(), gpu in 0_i64..5, nic in 0_i64..3, want in 0_u32..12) {
        let room = room(&snapshot(&nodes), &GroupRequest::one(shape(gpu, nic)), &me(), &[], want, &Options::default());
        let most = search(&nodes, [gpu, nic, 1]);
        prop_assert_eq!((room.groups, room.groups + room.spare, room.exact), (most.min(want), most, true));
        prop_assert_eq!(room.stopped_by.is_some(), most < want);
    }

    #[test]
    fn promised_pods_leave_no_less_than_their_worst_places(
        nodes in free(), gpu in 1_i64..5, (other_gpu, other_nic, pods) in (1_i64..5, 0_i64..3, 1_u32..4),
    ) {
        let request = Arc::new(GroupRequest::one(shape(other_gpu, other_nic)));
        let promises = [Promise { service: ServiceKey::new("ns", "other"), request, groups: pods }];
        let ask = |promises: &[Promise]| {
            room(&snapshot(&nodes), &GroupRequest::one(shape(gpu, 0)), &me(), promises, 20, &Options::default()).groups
        };
        let (groups, without) = (ask(&promises), ask(&[]));
        let least = worst(&mut nodes.clone(), [other_gpu, other_nic, 1], pods, [gpu, 0, 1]);
        prop_assert!(least <= groups && groups <= without, "{} <= {} <= {}", least, groups, without);
    }

    #[test]
    fn a_store_kept_up_to_date_is_as_one_made_afresh(
        steps in proptest::collection::vec((0_u8..5, 0_usize..4, 0_usize..4, 1_u32..5, any::<bool>()), 0..40),
        snapshots in proptest::collection::vec(any::<bool>(), 40),
    ) {
        let node = |n: usize, gpus: u32, cordoned: bool| -> NodeView {
            serde_json::from_value(json!({
                "metadata": {"name": format!("n{n}"), "labels": {"kubernetes.io/hostname": format!("n{n}")}},
                "spec": {"unschedulable": cordoned},
                "status": {"allocatable": {GPU: gpus * 2, "pods": 9}, "conditions": [{"type": "Ready", "status": "True"}]},
            })).unwrap()
        };
        let pod = |uid: usize, n: usize, gpus: u32, own: bool| -> PodView {
            serde_json::from_value(json!({
                "metadata": {"namespace": "ns", "uid": uid.to_string(), "labels": {"mif.moreh.io/inferenceservice": if own { "me" } else { "other" }}},
                "spec": {"nodeName": format!("n{n}"), "containers": [{"resources": {"limits": {GPU: gpus}}}]},
                "status": {"phase": "Running"},
            })).unwrap()
        };
        let mut store = Store::new();
        let (mut nodes, mut pods) = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
        for ((kind, a, b, amount, flag), snapshot) in steps.into_iter().zip(snapshots) {
            match kind {
                0 | 1 => {
                    store.upsert_node(node(a, amount, flag));
                    nodes.insert(a, node(a, amount, flag));
                }
                2 => {
                    store.remove_node(&format!("n{a}"));
                    nodes.remove(&a);
                }
                3 => {
                    store.upsert_pod(pod(a, b, amount, flag));
                    pods.insert(a, pod(a, b, amount, flag));
                }
                _ => {
                    store.remove_pod(&a.to_string());
                    pods.remove(&a);
                }
            }
            if snapshot {
                store.snapshot();
            }
        }
        let mut fresh = Store::new();
        for pod in pods.into_values() {
            fresh.upsert_pod(pod);
        }
        for node in nodes.into_values() {
            fresh.upsert_node(node);
        }
        let (kept, fresh) = (store.snapshot(), fresh.snapshot());
        prop_assert_eq!(format!("{:?}", kept.buckets), format!("{:?}", fresh.buckets));
        prop_assert_eq!(kept.accelerators(&[]), fresh.accelerators(&[]));
        prop_assert_eq!(kept.assigned_pods(&me()), fresh.assigned_pods(&me()));
        prop_assert_eq!(store.node_count(), kept.node_count());
    }

    #[test]
    fn odd_json_never_panics(at in 0_usize..80, value in odd()) {
        let (mut node, mut pod) = (full_node(), full_pod());
        replace(&mut node, &mut at.clone(), &value);
        replace(&mut pod, &mut at.clone(), &value);
        let mut store = Store::new();
        if let Ok(node) = serde_json::from_value::<NodeView>(node) {
            store.upsert_node(node);
        }
        store.upsert_node(serde_json::from_value::<NodeView>(full_node()).unwrap());
        if let Ok(shape) = PodShape::from_template(&pod) {
            let promise = Promise { service: ServiceKey::new("ns", "other"), request: GroupRequest::one(shape.clone()).into(), groups: u32::MAX };
            let promises = [promise];
            room(&store.snapshot(), &GroupRequest::one(shape), &me(), &promises, u32::MAX, &Options::default());
            store.snapshot().accelerators(&promises);
        }
        if let Ok(pod) = serde_json::from_value::<PodView>(pod) {
            store.upsert_pod(pod);
        }
        store.snapshot().accelerators(&[]);
    }

    #[test]
    fn any_text_as_a_quantity(text in "[-+]?[0-9]{0,45}[.]?[0-9]{0,45}[a-zA-Z]{0,2}[-+]?[0-9]{0,11}") {
        if let Ok(canonical) = quantity::canonical(&text) {
            let value = |text: &str| Quantity::parse(text).map(Quantity::value);
            prop_assert_eq!(value(&canonical), value(&text));
            prop_assert_eq!(quantity::canonical(&canonical), Ok(canonical.clone()));
        }
    }
}
