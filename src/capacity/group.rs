//! Groups whose leader and workers have two shapes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::fit::{Verdict, Verdicts, units};
use super::form::Asked;
use super::room::Outcome;
use super::shape::PodShape;
use super::table::{Slot, Table};

/// Steps that one answer may take: a few milliseconds.
const STEPS: u64 = 2_000_000;

/// How leaders and workers share the nodes of a slot. What runs there stays: `leaders` of the service are there at least.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub(super) count: u32,
    /// Leaders that run there.
    pub(super) leaders: u64,
    /// Leaders that fit besides, without workers.
    pub(super) more_leaders: u64,
    /// Workers that run there.
    workers: u64,
    /// What is free for more.
    free: Vec<i64>,
    /// It takes new workers.
    takes_workers: bool,
    /// A node takes one pod at most, whichever it is.
    alone: bool,
}

/// The requests of leader and worker.
pub(super) struct Rows {
    leader: Vec<i64>,
    worker: Vec<i64>,
}

impl Rows {
    pub(super) fn new(table: &Table<'_>, leader: &PodShape, worker: &PodShape) -> Self {
        Self { leader: table.row(leader), worker: table.row(worker) }
    }
}

impl Share {
    /// Workers that fit beside so many leaders, at most `leaders + more_leaders` of them.
    pub(super) fn workers(&self, rows: &Rows, leaders: u64) -> u64 {
        let new = leaders.saturating_sub(self.leaders);
        if !self.takes_workers || (self.alone && new > 0) {
            return self.workers;
        }
        let new = i64::try_from(new).unwrap_or(i64::MAX);
        let left: Vec<i64> =
            self.free.iter().zip(&rows.leader).map(|(free, request)| free.saturating_sub(request.saturating_mul(new))).collect();
        let more = units(&left, &rows.worker);
        self.workers.saturating_add(if self.alone { more.min(1) } else { more })
    }

    /// Leaders that fit without a worker less.
    fn free_leaders(&self, rows: &Rows) -> u64 {
        if self.alone {
            let full = !self.takes_workers || self.workers(rows, 0) == self.workers;
            return self.leaders.saturating_add(if full { self.more_leaders } else { 0 });
        }
        let new = i64::try_from(self.workers(rows, 0) - self.workers).unwrap_or(i64::MAX);
        let left: Vec<i64> =
            self.free.iter().zip(&rows.worker).map(|(free, request)| free.saturating_sub(request.saturating_mul(new))).collect();
        self.leaders.saturating_add(units(&left, &rows.leader).min(self.more_leaders))
    }
}

/// How the nodes of each slot can be shared; `None` for those that take nothing.
pub(super) fn shares(table: &Table<'_>, asked: &Asked<'_>, rows: &Rows) -> Vec<Option<Share>> {
    let (leader, worker) = (asked.form.leader(), asked.form.worker());
    let (mut for_leaders, mut for_workers) = (Verdicts::new(leader, asked.options), Verdicts::new(worker, asked.options));
    let mut share = |slot: &Slot<'_>| {
        let verdicts = [for_leaders.of(&slot.bucket.class, &slot.node.name), for_workers.of(&slot.bucket.class, &slot.node.name)];
        let [to_leaders, to_workers] = verdicts.each_ref().map(|verdict| verdict.is_usable() && !slot.closed);
        let [keeps_leaders, keeps_workers] = verdicts.each_ref().map(Verdict::keeps);
        let held = asked.held(slot.node);
        // Pods that run as they are wanted now stay where they are. Others will be replaced, and their room is free.
        let stays = held.total() > 0 && (!(to_leaders && to_workers) || runs_as_wanted(table, slot, asked, rows));
        let free = if held.total() > 0 || slot.node.held_by(asked.service).is_some() {
            table.given_back(slot, asked.service, !stays)
        } else {
            slot.free.clone()
        };
        let kept = |role: u32, keeps: bool| if stays && keeps { u64::from(role) } else { 0 };
        let (leaders, workers) = (kept(held.leaders, keeps_leaders), kept(held.workers, keeps_workers));
        let alone = leader.one_per_node || worker.one_per_node;
        let full = alone && leaders + workers > 0;
        let room = if to_leaders && !full { units(&free, &rows.leader) } else { 0 };
        let share = Share {
            count: slot.count,
            leaders,
            more_leaders: if alone { room.min(1) } else { room },
            workers,
            takes_workers: to_workers && !full,
            free,
            alone,
        };
        (share.leaders > 0 || share.more_leaders > 0 || share.workers(rows, 0) > 0).then_some(share)
    };
    table.slots.iter().map(&mut share).collect()
}

/// Whether the pods of the service on a node ask for what is wanted now.
fn runs_as_wanted(table: &Table<'_>, slot: &Slot<'_>, asked: &Asked<'_>, rows: &Rows) -> bool {
    let Some(held) = slot.node.held_by(asked.service).filter(|held| held.staying.single == 0) else { return false };
    let (leaders, workers) = (i64::from(held.staying.leaders), i64::from(held.staying.workers));
    table.columns().iter().zip(rows.leader.iter().zip(&rows.worker)).all(|(name, (leader, worker))| {
        held.requests.get(name) == leader.saturating_mul(leaders).saturating_add(worker.saturating_mul(workers))
    })
}

/// Leaders, and workers, that fit if there were none of the other.
pub(super) fn apart(shares: &[Share], rows: &Rows) -> (u128, u128) {
    shares.iter().fold((0, 0), |(leaders, workers), share| {
        let count = u128::from(share.count);
        (
            leaders + count * u128::from(share.leaders.saturating_add(share.more_leaders)),
            workers + count * u128::from(share.workers(rows, 0)),
        )
    })
}

/// Whole groups that fit; `None` when it would take too long to tell.
pub(super) fn fit(table: &Table<'_>, asked: &Asked<'_>, want: u64) -> Option<Outcome> {
    let rows = Rows::new(table, asked.form.leader(), asked.form.worker());
    let shares: Vec<Share> = shares(table, asked, &rows).into_iter().flatten().collect();
    let workers = asked.form.workers();
    let (leaders_apart, workers_apart) = apart(&shares, &rows);
    let most = u64::try_from(leaders_apart.min(workers_apart / u128::from(workers.max(1)))).unwrap_or(u64::MAX);
    // Mostly leaders ask for little, and there is nothing to weigh up.
    let free: u128 = shares.iter().map(|share| u128::from(share.count) * u128::from(share.free_leaders(&rows))).sum();
    let total = if free >= u128::from(most) {
        most
    } else {
        // More than are wanted only decide between members.
        search(&shares, &rows, workers, most).or_else(|| search(&shares, &rows, workers, most.min(want)))?
    };
    let robust = robust(&shares, &rows, workers, total.min(want))?;
    Some(Outcome { total, robust, leaders_apart, workers_apart, ..Outcome::default() })
}

/// The largest number of groups, at most `most`, for which leaders and workers fit at once: for each number of leaders
/// the most workers, node after node.
fn search(shares: &[Share], rows: &Rows, workers: u64, most: u64) -> Option<u64> {
    let mut steps = STEPS;
    let mut spend = |cost: u64| {
        steps = steps.checked_sub(cost)?;
        Some(())
    };
    // More workers than these don't matter, and kept small they can't overflow.
    let enough = most.saturating_mul(workers);
    let mut curves: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
    for share in shares {
        let last = share.leaders.saturating_add(share.more_leaders).min(most);
        spend(last.saturating_add(1))?;
        let curve = (0..=last).map(|leaders| share.workers(rows, leaders).min(enough)).collect();
        *curves.entry(curve).or_default() += u64::from(share.count);
    }
    let mut combine = |a: &[u64], b: &[u64]| -> Option<Vec<u64>> {
        let length = (a.len() + b.len()).saturating_sub(1).min(usize::try_from(most).ok()?.checked_add(1)?);
        spend((a.len() as u64).checked_mul(b.len() as u64)?)?;
        let mut sums = vec![0; length];
        for (i, left) in a.iter().enumerate() {
            for (sum, right) in sums.iter_mut().skip(i).zip(b) {
                *sum = enough.min(left.saturating_add(*right)).max(*sum);
            }
        }
        Some(sums)
    };
    let mut all = vec![0];
    for (curve, count) in curves {
        // Nodes that are alike are combined in powers of two.
        let (mut power, mut count) = (curve, count);
        loop {
            if count % 2 == 1 {
                all = combine(&all, &power)?;
            }
            count /= 2;
            if count == 0 {
                break;
            }
            power = combine(&power, &power)?;
        }
    }
    let groups = (0_u64..).zip(&all).filter(|(groups, found)| **found >= groups.saturating_mul(workers)).map(|(groups, _)| groups);
    groups.last()
}

/// How many of `groups` also fit if the leaders of all of them go first, each to the emptiest node.
fn robust(shares: &[Share], rows: &Rows, workers: u64, groups: u64) -> Option<u64> {
    let mut steps = STEPS;
    let mut leaders: u128 = shares.iter().map(|share| u128::from(share.count) * u128::from(share.leaders)).sum();
    let mut room: u128 = shares.iter().map(|share| u128::from(share.count) * u128::from(share.workers(rows, share.leaders))).sum();
    // Of nodes with room for equally many leaders the one goes first where a leader costs most workers.
    let cost = |share: &Share, taken: u64| {
        let here = share.leaders.saturating_add(taken);
        share.workers(rows, here) - share.workers(rows, here.saturating_add(1))
    };
    let entry = |at: usize, taken: u64, count: u128| {
        let share = shares.get(at).filter(|share| share.more_leaders > taken)?;
        Some((share.more_leaders - taken, cost(share, taken), Reverse(at), taken, count))
    };
    let mut heap: BinaryHeap<_> = shares.iter().enumerate().filter_map(|(at, share)| entry(at, 0, u128::from(share.count))).collect();
    while leaders < u128::from(groups) {
        steps = steps.checked_sub(1)?;
        let Some((_, cost, Reverse(at), taken, count)) = heap.pop() else { break };
        let next = count.min(u128::from(groups) - leaders);
        let needed = leaders * u128::from(workers);
        if room < needed + u128::from(workers) + u128::from(cost) {
            break;
        }
        // As many leaders as leave room for the workers of all.
        let good = (room - needed).checked_div(u128::from(workers) + u128::from(cost)).unwrap_or(next).min(next);
        leaders += good;
        room -= good * u128::from(cost);
        if good < next {
            break;
        }
        heap.extend(entry(at, taken.saturating_add(1), next));
        if next < count {
            break;
        }
    }
    let enough = room.checked_div(u128::from(workers)).unwrap_or(leaders);
    Some(u64::try_from(leaders.min(enough)).unwrap_or(u64::MAX).min(groups))
}
