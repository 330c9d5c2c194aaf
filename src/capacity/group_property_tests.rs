//! Room for groups against exhaustive search.

use std::sync::Arc;

use proptest::prelude::*;

use super::{
    GroupPlace, GroupRequest, NodeView, Options, PodSet, PodShape, PodView, Promise, QuotaView, Resources, Room, ServiceKey, Store, room,
};
use crate::api::odin::WorkloadKind;

const GPU: &str = "amd.com/gpu";
const NIC: &str = "mellanox/hca";
const RACK: &str = "rack";

/// Devices, network cards.
type Amount = [i64; 2];

/// A node: what it offers, its rack, and the leaders and workers of the service that run there.
#[derive(Clone, Copy, Debug)]
struct Machine {
    offer: Amount,
    rack: u8,
    runs: [i64; 2],
}

fn amounts([gpu, nic]: Amount) -> Resources {
    [(Arc::from(GPU), gpu), (Arc::from(NIC), nic), (Arc::from("pods"), 1)].into_iter().collect()
}

fn shape(request: Amount) -> PodShape {
    PodShape { requests: amounts(request), ..PodShape::default() }
}

fn me() -> ServiceKey {
    ServiceKey::new("ns", "me")
}

fn pods(store: &mut Store, service: &ServiceKey, node: usize, leader: bool, count: i64, request: Amount) {
    for n in 0..count {
        store.upsert_pod(PodView {
            namespace: service.namespace.clone(),
            uid: format!("{service}-{node}-{leader}-{n}"),
            node: Some(format!("n{node}")),
            service: Some(service.clone()),
            group: Some(GroupPlace { key: service.name.clone(), leader, exclusive_topology: None }),
            requests: amounts(request),
            ..PodView::default()
        });
    }
}

fn store(machines: &[Machine], leader: Amount, worker: Amount) -> Store {
    let mut store = Store::new();
    for (at, machine) in machines.iter().enumerate() {
        let [gpu, nic] = machine.offer;
        store.upsert_node(NodeView {
            name: format!("n{at}"),
            labels: [(RACK.to_owned(), format!("r{}", machine.rack))].into(),
            ready: true,
            allocatable: [(Arc::from(GPU), gpu), (Arc::from(NIC), nic), (Arc::from("pods"), 20)].into_iter().collect(),
            ..NodeView::default()
        });
        pods(&mut store, &me(), at, true, machine.runs[0], leader);
        pods(&mut store, &me(), at, false, machine.runs[1], worker);
    }
    store
}

fn group(leader: Amount, worker: Amount, workers: u32, topology: bool) -> GroupRequest {
    let pods = vec![PodSet { shape: shape(leader), count: 1 }, PodSet { shape: shape(worker), count: workers }];
    GroupRequest { kind: WorkloadKind::LeaderWorkerSet, pods, exclusive_topology: topology.then(|| RACK.to_owned()) }
}

fn ask(store: &mut Store, request: &GroupRequest, promises: &[Promise], want: u32) -> Room {
    room(&store.snapshot(), request, &me(), promises, want, &Options::default())
}

/// All pairs of leaders and workers that a node can hold at once, those that run there among them. Each pod asks for one
/// device at least.
fn pairs(machine: &Machine, leader: Amount, worker: Amount) -> Vec<(i64, i64)> {
    let holds = |(leaders, workers): &(i64, i64)| (0..2).all(|r| leaders * leader[r] + workers * worker[r] <= machine.offer[r]);
    let [least_leaders, least_workers] = machine.runs;
    let all = (0..=8).flat_map(|leaders| (0..=8).map(move |workers| (leaders, workers)));
    // A device that the node doesn't have at all keeps the pods away that ask for it.
    all.filter(|(leaders, workers)| *leaders >= least_leaders && *workers >= least_workers).filter(holds).collect()
}

/// The most groups over all ways to fill all nodes.
fn search(machines: &[Machine], leader: Amount, worker: Amount, workers: i64, (leaders, others): (i64, i64)) -> i64 {
    let Some((first, rest)) = machines.split_first() else { return leaders.min(others / workers) };
    let ways = pairs(first, leader, worker).into_iter();
    ways.map(|(l, w)| search(rest, leader, worker, workers, (leaders + l, others + w))).max().unwrap_or(0)
}

fn machines(runs: bool) -> impl Strategy<Value = Vec<Machine>> {
    let most = if runs { 2_i64 } else { 1 };
    let machine = (0_i64..9, 0_i64..4, 0_u8..3, 0..most, 0..most).prop_map(|(gpu, nic, rack, leaders, workers)| Machine {
        offer: [gpu, nic],
        rack,
        runs: [leaders, workers],
    });
    proptest::collection::vec(machine, 0..4)
}

fn requests() -> impl Strategy<Value = (Amount, Amount, u32)> {
    (1_i64..5, 0_i64..2, 1_i64..5, 0_i64..3, 1_u32..4).prop_map(|(a, b, c, d, workers)| ([a, b], [c, d], workers))
}

/// Leaves out running pods for which there is no place.
fn trim(machines: Vec<Machine>, leader: Amount, worker: Amount) -> Vec<Machine> {
    let fits = |machine: &Machine| (0..2).all(|r| machine.runs[0] * leader[r] + machine.runs[1] * worker[r] <= machine.offer[r]);
    machines.into_iter().map(|machine| if fits(&machine) { machine } else { Machine { runs: [0, 0], ..machine } }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn two_shapes_are_what_exhaustive_search_finds((leader, worker, workers) in requests(), all in machines(true), want in 0_u32..9) {
        let all = trim(all, leader, worker);
        let room = ask(&mut store(&all, leader, worker), &group(leader, worker, workers, false), &[], want);
        let most = u32::try_from(search(&all, leader, worker, workers.into(), (0, 0))).unwrap();
        prop_assert_eq!((room.groups, room.groups + room.spare, room.exact), (most.min(want), most.max(room.groups), true));
        prop_assert_eq!(room.stopped_by.is_some(), most < want || room.fragile);
        prop_assert_eq!(room.fragile, room.robust < room.groups);
    }

    #[test]
    fn one_shape_is_counted_with_what_is_half_there(
        (_, pod, workers) in requests(), all in machines(true), want in 0_u32..9,
    ) {
        let all = trim(all, pod, pod);
        let set = PodSet { shape: shape(pod), count: workers + 1 };
        let request = GroupRequest { kind: WorkloadKind::LeaderWorkerSet, pods: vec![set], exclusive_topology: None };
        let fits = |machine: &Machine| (0..2).filter(|r| pod[*r] > 0).map(|r| machine.offer[r] / pod[r]).min().unwrap();
        let most = u32::try_from(all.iter().map(fits).sum::<i64>()).unwrap() / (workers + 1);
        let room = ask(&mut store(&all, pod, pod), &request, &[], want);
        prop_assert_eq!((room.groups, room.groups + room.spare, room.fragile), (most.min(want), most.max(room.groups), false));
    }

    #[test]
    fn a_rack_holds_one_group(
        (leader, worker, workers) in requests(), all in machines(true), other in proptest::option::of(0_usize..4), want in 0_u32..5,
    ) {
        let all = trim(all, leader, worker);
        let mut store = store(&all, leader, worker);
        let other = other.filter(|at| *at < all.len());
        if let Some(at) = other {
            pods(&mut store, &ServiceKey::new("ns", "other"), at, false, 1, [0, 0]);
        }
        let in_rack = |rack: u8| all.iter().filter(|machine| machine.rack == rack).copied().collect::<Vec<Machine>>();
        let counts = |rack: &u8| {
            let here = in_rack(*rack);
            let led = here.iter().any(|machine| machine.runs[0] > 0);
            let taken = other.is_some_and(|at| all[at].rack == *rack) && !led;
            !taken && search(&here, leader, worker, workers.into(), (0, 0)) > 0
        };
        let most = u32::try_from((0..3).filter(counts).count()).unwrap();
        let room = ask(&mut store, &group(leader, worker, workers, true), &[], want);
        prop_assert_eq!((room.groups, room.groups + room.spare), (most.min(want), most.max(room.groups)));
    }

    #[test]
    fn the_tighter_of_nodes_and_quota_decides(
        (leader, worker, workers) in requests(), all in machines(false), hard in 0_i64..40, used in 0_i64..9, want in 0_u32..9,
    ) {
        let mut store = store(&all, leader, worker);
        let key = "requests.amd.com/gpu";
        let quota = serde_json::json!({
            "metadata": {"namespace": "ns", "name": "q", "uid": "q"}, "status": {"hard": {key: hard}, "used": {key: used}},
        });
        store.upsert_quota(serde_json::from_value::<QuotaView>(quota).unwrap());
        let fits = search(&all, leader, worker, workers.into(), (0, 0));
        let admits = (hard - used).max(0) / (leader[0] + worker[0] * i64::from(workers));
        let most = u32::try_from(fits.min(admits)).unwrap();
        let room = ask(&mut store, &group(leader, worker, workers, false), &[], want);
        prop_assert_eq!((room.groups, room.groups + room.spare), (most.min(want), most.max(room.groups)));
    }

    #[test]
    fn promised_groups_never_make_room(
        (leader, worker, workers) in requests(), all in machines(false), (a, b, others) in requests(), groups in 0_u32..3,
        topologies in any::<[bool; 2]>(),
    ) {
        let [mine, theirs] = topologies;
        let promise = Promise { service: ServiceKey::new("ns", "other"), request: group(a, b, others, theirs).into(), groups };
        let request = group(leader, worker, workers, mine);
        let mut store = store(&all, leader, worker);
        let (with, without) = (ask(&mut store, &request, &[promise], 9), ask(&mut store, &request, &[], 9));
        prop_assert!(with.groups <= without.groups);
        // All that is promised and mine can be there at once, so far as what is promised fits at all.
        let fits = search(&all, a, b, others.into(), (0, 0)) >= i64::from(groups);
        if with.groups > 0 && fits && !mine && !theirs {
            let needs = |r: usize| {
                i64::from(groups) * (a[r] + b[r] * i64::from(others)) + i64::from(with.groups) * (leader[r] + worker[r] * i64::from(workers))
            };
            let offers = |r: usize| all.iter().map(|machine| machine.offer[r]).sum::<i64>();
            prop_assert!((0..2).all(|r| needs(r) <= offers(r)) || with.groups < without.groups || groups == 0);
        }
    }

    #[test]
    fn odd_numbers_never_panic(
        offers in proptest::collection::vec((any::<i64>(), any::<i64>()), 1..4), leader in any::<[i64; 2]>(), worker in any::<[i64; 2]>(),
        (workers, want, groups) in (any::<u32>(), any::<u32>(), any::<u32>()), (hard, used) in any::<(i64, i64)>(), topology in any::<bool>(),
    ) {
        let all: Vec<Machine> =
            offers.iter().enumerate().map(|(at, (gpu, nic))| Machine { offer: [*gpu, *nic], rack: (at % 2) as u8, runs: [1, 1] }).collect();
        let mut store = store(&all, leader, worker);
        let key = "requests.amd.com/gpu";
        let quota = serde_json::json!({
            "metadata": {"namespace": "ns", "name": "q", "uid": "q"}, "status": {"hard": {key: hard}, "used": {key: used}},
        });
        store.upsert_quota(serde_json::from_value::<QuotaView>(quota).unwrap());
        for request in [group(leader, worker, workers, topology), group(worker, leader, 1, false)] {
            let promise = Promise { service: ServiceKey::new("ns", "other"), request: request.clone().into(), groups };
            ask(&mut store, &request, std::slice::from_ref(&promise), want);
            ask(&mut store, &GroupRequest::one(shape(worker)), &[promise], want);
        }
    }
}
