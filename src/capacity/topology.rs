//! Groups each of which has a domain for itself: all nodes with one value of a label.

use std::collections::BTreeMap;

use super::fit::{Verdicts, units};
use super::form::{Asked, Form};
use super::group::{self, Rows};
use super::reservation::WaitingGroups;
use super::room::{Options, Outcome};
use super::table::{Load, Order, Slot, Table};

/// What the nodes of one domain hold and have room for.
#[derive(Clone, Debug, Default)]
struct Domain {
    /// Domains that are alike.
    count: u64,
    /// A group of another service is here.
    taken: bool,
    /// A leader of the service runs here and stays.
    led: bool,
    /// There is room for a leader.
    takes_leader: bool,
    /// Workers, or pods of the one shape, that fit without a leader.
    pods: u128,
    /// The fewest workers that a leader costs.
    cost: Option<u64>,
}

impl Domain {
    fn fits(&self, form: Form<'_>) -> bool {
        match form {
            Form::Alike { size, .. } => self.pods >= u128::from(size),
            Form::Two { workers, .. } => self.cost.is_some_and(|cost| self.pods >= u128::from(workers) + u128::from(cost)),
        }
    }
}

/// How many domains there are of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Domains {
    /// Those with a node that the pods may use.
    pub(super) all: u64,
    /// Those that others hold.
    pub(super) taken: u64,
    /// Those that are free, and have room for the leader but not for the group.
    pub(super) traps: u64,
}

/// Whole groups that fit, one in each domain.
pub(super) fn fit(table: &Table<'_>, asked: &Asked<'_>, key: &str, want: u64) -> Outcome {
    let domains = domains(table, asked, key);
    let count = |which: &dyn Fn(&Domain) -> bool| domains.iter().filter(|domain| which(domain)).map(|domain| domain.count).sum::<u64>();
    let is_free = |domain: &Domain| !domain.taken && !domain.led;
    let fits = |domain: &Domain| domain.fits(asked.form);
    let led = count(&|domain| domain.led && fits(domain));
    let total = led + count(&|domain| is_free(domain) && fits(domain));
    // The scheduler takes a domain for the leader without looking at the workers.
    let traps = count(&|domain| is_free(domain) && domain.takes_leader && !fits(domain));
    let robust = if traps == 0 { total } else { led };
    let domains = Domains {
        all: count(&|domain| domain.taken || domain.led || domain.takes_leader || domain.pods > 0),
        taken: count(&|domain| domain.taken && !domain.led),
        traps,
    };
    Outcome { total, robust: robust.min(want), domains: Some(domains), ..Outcome::default() }
}

fn domains<'a>(table: &Table<'a>, asked: &Asked<'_>, key: &str) -> Vec<Domain> {
    let mut by_value: BTreeMap<&str, Domain> = BTreeMap::new();
    let mut alone = Vec::new();
    let mut add = |slot: &Slot<'a>, each: Domain| {
        let Some(value) = slot.domain(key) else { return };
        if slot.count > 1 && slot.is_by_name(key) {
            alone.push(Domain { count: u64::from(slot.count), ..each });
            return;
        }
        let domain = by_value.entry(value).or_insert_with(|| Domain { count: 1, ..Domain::default() });
        domain.taken |= each.taken;
        domain.led |= each.led;
        domain.takes_leader |= each.takes_leader;
        domain.pods += each.pods * u128::from(slot.count);
        domain.cost = domain.cost.into_iter().chain(each.cost).min();
    };
    match asked.form {
        Form::Alike { shape, .. } => {
            let row = table.row(shape);
            let mut verdicts = Verdicts::new(shape, asked.options);
            for slot in &table.slots {
                let verdict = verdicts.of(&slot.bucket.class, &slot.node.name);
                let (new, stay) = asked.pods_on(slot, &row, &verdict);
                let led = verdict.keeps() && asked.held(slot.node).leaders > 0;
                let (taken, pods) = (slot.holds_others(asked.service), u128::from(new) + u128::from(stay));
                add(slot, Domain { count: 1, taken, led, takes_leader: new > 0, pods, cost: None });
            }
        }
        Form::Two { leader, worker, .. } => {
            let rows = Rows::new(table, leader, worker);
            for (slot, share) in table.slots.iter().zip(group::shares(table, asked, &rows)) {
                let taken = slot.holds_others(asked.service);
                let Some(share) = share else {
                    add(slot, Domain { count: 1, taken, ..Domain::default() });
                    continue;
                };
                let takes_leader = share.leaders > 0 || share.more_leaders > 0;
                let pods = share.workers(&rows, 0);
                let cost = takes_leader.then(|| pods - share.workers(&rows, 1));
                add(slot, Domain { count: 1, taken, led: share.leaders > 0, takes_leader, pods: pods.into(), cost });
            }
        }
    }
    by_value.into_values().chain(alone).collect()
}

/// Puts promised groups on nodes: each leader on the first node by the order, whether or not its workers fit beside it.
pub(super) fn place<'a>(table: &mut Table<'a>, waiting: &WaitingGroups<'a>, order: Order, options: Options) {
    let (leader, worker) = (waiting.form.leader(), waiting.form.worker());
    let rows = [leader, worker].map(|shape| table.row(shape));
    let [leader_row, worker_row] = &rows;
    let guest = Some((waiting.service, Some(waiting.topology)));
    let (mut for_leaders, mut for_workers) = (Verdicts::new(leader, options), Verdicts::new(worker, options));
    let mut takes_workers = |slot: &Slot<'_>| for_workers.of(&slot.bucket.class, &slot.node.name).is_usable();
    let put_workers = |table: &mut Table<'a>, domain: &str, pods: u64, takes: &mut dyn FnMut(&Slot<'_>) -> bool| {
        let load = Load { row: worker_row, pods, once: worker.one_per_node, guest };
        table.put(&load, order, |slot| slot.domain(waiting.topology) == Some(domain) && takes(slot));
    };
    for (domain, workers) in &waiting.workers {
        put_workers(table, domain, *workers, &mut takes_workers);
    }
    // Where a leader of the service is, or another group of the namespace, no other can go.
    let mut taken: Vec<&str> = Vec::new();
    for slot in &table.slots {
        let led = slot.node.held_by(waiting.service).is_some_and(|held| held.staying.leaders > 0);
        if (led || slot.holds_others(waiting.service))
            && let Some(domain) = slot.domain(waiting.topology)
        {
            taken.push(domain);
        }
    }
    let mut open: Vec<(u64, usize)> = Vec::new();
    for (at, slot) in table.slots.iter().enumerate() {
        let room = units(&slot.free, leader_row);
        let free = slot.domain(waiting.topology).is_some_and(|domain| !taken.contains(&domain));
        if room > 0 && free && !slot.closed && for_leaders.of(&slot.bucket.class, &slot.node.name).is_usable() {
            open.push((room, at));
        }
    }
    match order {
        Order::Packed => open.sort_unstable(),
        Order::Spread => open.sort_unstable_by_key(|(room, at)| (std::cmp::Reverse(*room), *at)),
    }
    let mut left = waiting.whole;
    for (_, at) in open {
        let Some((domain, alike)) = table.slots.get(at).and_then(|slot| {
            let alike = if slot.is_by_name(waiting.topology) { slot.count } else { 1 };
            Some((slot.domain(waiting.topology)?, alike))
        }) else {
            continue;
        };
        if left == 0 {
            return;
        }
        if taken.contains(&domain) {
            continue;
        }
        // Nodes with a domain each are taken together.
        let nodes = u32::try_from(left).unwrap_or(u32::MAX).min(alike);
        left -= u64::from(nodes);
        taken.push(domain);
        let led = table.take(at, nodes, 1, &Load { row: leader_row, pods: 1, once: leader.one_per_node, guest });
        if alike == 1 {
            put_workers(table, domain, waiting.form.workers(), &mut takes_workers);
        } else if let Some(slot) = table.slots.get(led)
            && takes_workers(slot)
        {
            let beside = units(&slot.free, worker_row).min(waiting.form.workers());
            table.take(led, nodes, beside, &Load { row: worker_row, pods: beside, once: worker.one_per_node, guest });
        }
    }
}
