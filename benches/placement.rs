//! How long a decision takes in an almost full fleet: `cargo bench --bench placement`, or `-- 10` for ten members.
//!
//! Each member has 1,000 nodes of 8 devices with 20 pods each. Most nodes have no device left, some a few, and a handful
//! in every tenth member are whole. Services of the hub hold some of the devices, and some of their pods wait for a node.

mod common;

use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use odin_hub::capacity::{GroupRequest, NodeView, Options, PodShape, PodView, Resources, ServiceKey, Snapshot, Store};
use odin_hub::placement::{Demand, Ledger, Member, decide};
use serde_json::json;

use self::common::{figure, percentile, times};

const NODES: usize = 1_000;
const PODS: usize = 20;
const DEVICE: &str = "amd.com/gpu";
/// Services of the hub in each member, each with pods on this many nodes and one that waits.
const SERVICES: usize = 20;
const ASSIGNED: usize = 4;
const ROUNDS: usize = 600;

fn amounts(list: &[(&str, i64)]) -> Resources {
    list.iter().map(|(name, amount)| (Arc::from(*name), *amount)).collect()
}

fn service_name(member: usize, service: usize) -> String {
    format!("held-{member}-{service}")
}

/// Devices that the pods of a node take.
fn taken(member: usize, node: usize) -> usize {
    match node {
        0..4 if member.is_multiple_of(10) => 0,
        _ if node.is_multiple_of(50) => 4 + node % 3,
        _ if node.is_multiple_of(7) => 7,
        _ => 8,
    }
}

fn member_snapshot(member: usize) -> Arc<Snapshot> {
    let mut store = Store::new();
    let allocatable = amounts(&[("cpu", 192_000), ("memory", 2 << 40), ("pods", 110), (DEVICE, 8)]);
    let with_device = amounts(&[("cpu", 8_000), ("memory", 64 << 30), ("pods", 1), (DEVICE, 1)]);
    // What daemons and other work ask for differs from node to node, so that few nodes are quite alike.
    let others: Vec<Resources> = (1..=5).map(|n| amounts(&[("cpu", 100 * n), ("memory", n << 28), ("pods", 1)])).collect();
    for node in 0..NODES {
        let name = format!("node-{node}");
        let labels =
            [("kubernetes.io/hostname", name.as_str()), ("moai.moreh.io/accelerator.model", "mi300x"), ("kubernetes.io/os", "linux")];
        store.upsert_node(NodeView {
            name: name.clone(),
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            ready: true,
            allocatable: allocatable.clone(),
            ..NodeView::default()
        });
        let devices = taken(member, node);
        for pod in 0..PODS {
            // The last nodes hold the pods of the hub's services.
            let held = (NODES - 1 - node) / ASSIGNED;
            let service = (pod == 0 && devices > 0 && held < SERVICES).then(|| ServiceKey::new("demo", service_name(member, held)));
            let other = others.get((node * 31 + pod * pod * 17) % others.len());
            store.upsert_pod(PodView {
                uid: format!("{node}-{pod}"),
                node: Some(name.clone()),
                service,
                requests: if pod < devices { with_device.clone() } else { other.cloned().unwrap_or_default() },
                ..PodView::default()
            });
        }
    }
    store.snapshot()
}

fn request(devices: u32) -> Result<Arc<GroupRequest>> {
    let template = json!({"spec": {
        "nodeSelector": {"moai.moreh.io/accelerator.model": "mi300x"},
        "containers": [{"name": "main", "resources": {"limits": {DEVICE: devices}, "requests": {"cpu": "4", "memory": "32Gi"}}}],
    }});
    let shape = PodShape::from_template(&template).map_err(|message| anyhow!(message))?;
    Ok(Arc::new(GroupRequest::one(shape)))
}

fn main() -> Result<()> {
    let count: usize = env::args().find_map(|argument| argument.parse().ok()).unwrap_or(100);
    let size = format!("{count}x{NODES}x{PODS}");
    let snapshots: Vec<Arc<Snapshot>> = (0..count).map(member_snapshot).collect();
    let names: Vec<String> = (0..count).map(|member| format!("member-{member:04}")).collect();
    let members: Vec<Member<'_>> = names
        .iter()
        .zip(&snapshots)
        .map(|(name, snapshot)| Member { name, uid: name, excluded: None, snapshot: Some(snapshot), options: Options::default() })
        .collect();
    let one = request(1)?;
    let mut ledger = Ledger::new();
    for (member, name) in names.iter().enumerate() {
        for service in 0..SERVICES {
            let key = ServiceKey::new("demo", service_name(member, service));
            let held = u32::try_from(ASSIGNED)? + u32::from(service.is_multiple_of(10));
            ledger.observe(&key.to_string(), &key, one.clone(), &BTreeMap::from([(name.clone(), held)]));
        }
    }

    // What fits in many members, in a few, and in none: then each member is asked why.
    for (what, devices, replicas, placed) in [("pack", 1, 8, 8), ("pack_scarce", 8, 4, 4), ("pack_rejected", 16, 1, 0)] {
        let request = request(devices)?;
        let demand =
            |uid| Demand { service: ServiceKey::new("demo", "new"), uid, replicas, request: request.clone(), existing: BTreeMap::new() };
        let plan = decide(&demand("first"), &members, &ledger);
        ensure!(plan.placements.values().sum::<u32>() == placed, "{what}: {plan:?}");
        let uids: Vec<String> = (0..ROUNDS).map(|round| format!("uid-{round}")).collect();
        let times = times(ROUNDS, |round| {
            let uid = uids.get(round).map(String::as_str).unwrap_or_default();
            std::hint::black_box(decide(&demand(uid), &members, &ledger));
        });
        for percent in [50, 99] {
            let milliseconds = percentile(&times, percent).as_secs_f64() * 1e3;
            figure(&format!("decision_p{percent}_ms_{count}x{NODES}_{what}"), milliseconds, "ms", &size);
        }
        let seconds: f64 = times.iter().map(std::time::Duration::as_secs_f64).sum();
        figure(&format!("decisions_per_s_{count}x{NODES}_{what}"), ROUNDS as f64 / seconds, "1/s", &size);
    }
    Ok(())
}
