//! The strategy Pack: as few members as possible.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::filter::Exclusion;
use super::ledger::Ledger;
use super::plan::Plan;
use crate::api::reason::Reason;
use crate::capacity::{GroupRequest, Options, Promise, Room, ServiceKey, Snapshot, room};

/// A member as placement sees it.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// Name of the `MemberCluster`.
    pub name: &'a str,
    /// UID of the cluster, which decides between equals.
    pub uid: &'a str,
    /// Why it takes nothing new, if it doesn't: see [`super::exclude`].
    pub excluded: Option<Exclusion>,
    /// Its nodes and pods; `None` while they aren't known.
    pub snapshot: Option<&'a Snapshot>,
    /// What is special about it.
    pub options: Options,
}

/// What a service wants.
#[derive(Clone, Debug)]
pub struct Demand<'a> {
    /// The service.
    pub service: ServiceKey,
    /// UID of the service.
    pub uid: &'a str,
    /// Groups that are wanted over all members.
    pub replicas: u32,
    /// What each group needs.
    pub request: Arc<GroupRequest>,
    /// Groups that each member holds by the last decision. Members that are gone for good are left out; one that is
    /// merely missing among the members keeps what it has.
    pub existing: BTreeMap<String, u32>,
}

/// Decides where the groups of a service go. What runs stays: growth only adds, shrinkage only removes.
pub fn decide(demand: &Demand<'_>, members: &[Member<'_>], ledger: &Ledger) -> Plan {
    let mut members: Vec<&Member<'_>> = members.iter().collect();
    members.sort_by_key(|member| member.name);
    let mut plan = Plan { placements: demand.existing.clone(), ..Plan::default() };
    if demand.replicas == 0 {
        plan.placements = rest_at(demand, &members, ledger).map(|member| (member, 0)).into_iter().collect();
        return plan;
    }
    let held = plan.placements.values().fold(0_u32, |sum, groups| sum.saturating_add(*groups));
    if held > demand.replicas {
        shrink(demand, &members, &mut plan.placements, held - demand.replicas);
    } else if held < demand.replicas {
        grow(demand, &members, ledger, &mut plan, demand.replicas - held);
    }
    plan.placements.retain(|_, groups| *groups > 0);
    plan
}

/// The member that keeps a service of no replicas, so that its workload is there to be scaled up: the one that holds
/// most of it, else the one with most room.
fn rest_at(demand: &Demand<'_>, members: &[&Member<'_>], ledger: &Ledger) -> Option<String> {
    let uid = |name: &str| members.iter().find(|member| member.name == name).map_or(String::new(), |member| member.uid.to_owned());
    let held = demand.existing.iter().max_by_key(|(name, groups)| (**groups, stable_hash(demand.uid, &uid(name)), Reverse(*name)));
    if let Some((name, _)) = held {
        return Some(name.clone());
    }
    let rooms = members.iter().filter_map(|member| Some((member, ask(demand, member, ledger, 1).ok()?)));
    rooms
        .max_by_key(|(member, room)| {
            (!room.fragile, room.groups.saturating_add(room.spare), stable_hash(demand.uid, member.uid), Reverse(member.name))
        })
        .map(|(member, _)| member.name.to_owned())
}

/// Takes groups away, from the smallest placements first, so that members become free of the service. Among equals a
/// member that takes nothing new goes first.
fn shrink(demand: &Demand<'_>, members: &[&Member<'_>], placements: &mut BTreeMap<String, u32>, mut surplus: u32) {
    let mut order: Vec<(&String, &mut u32)> = placements.iter_mut().collect();
    order.sort_by_cached_key(|(name, groups)| {
        let member = members.iter().find(|member| member.name == name.as_str());
        let takes_more = member.is_some_and(|member| member.excluded.is_none());
        (**groups, takes_more, Reverse(stable_hash(demand.uid, member.map_or(name.as_str(), |member| member.uid))))
    });
    for (_, groups) in order {
        let taken = surplus.min(*groups);
        *groups -= taken;
        surplus -= taken;
    }
}

/// Adds groups where there is room: members that hold some already first, then those that take most.
fn grow(demand: &Demand<'_>, members: &[&Member<'_>], ledger: &Ledger, plan: &mut Plan, mut missing: u32) {
    struct Candidate<'a> {
        name: &'a str,
        /// It holds some groups already.
        holds: bool,
        /// It has the workload already, scaled to nothing.
        rests: bool,
        /// Groups that it can take besides, however many.
        more: u32,
        hash: u64,
    }
    let here = |plan: &Plan, member: &Member<'_>| plan.placements.get(member.name).copied().unwrap_or_default();

    let mut candidates = Vec::new();
    let mut answers = Vec::with_capacity(members.len());
    for member in members {
        let here = here(plan, member);
        let want = here.saturating_add(missing);
        let answer = ask(demand, member, ledger, want);
        if let Ok(room) = &answer {
            // Where not all can be relied on, nothing beyond is counted either.
            let fits = if room.fragile { room.robust } else { room.groups.saturating_add(room.spare) };
            let more = fits.saturating_sub(here);
            let rests = plan.placements.contains_key(member.name);
            candidates.push(Candidate { name: member.name, holds: here > 0, rests, more, hash: stable_hash(demand.uid, member.uid) });
        }
        answers.push((want, answer));
    }
    while missing > 0 {
        let best = candidates.iter().enumerate().filter(|(_, candidate)| candidate.more > 0).max_by_key(|(_, candidate)| {
            let takes = candidate.more.min(missing);
            (candidate.holds, takes, candidate.rests, candidate.more - takes, candidate.hash, Reverse(candidate.name))
        });
        let Some(at) = best.map(|(at, _)| at) else { break };
        let chosen = candidates.swap_remove(at);
        let takes = chosen.more.min(missing);
        *plan.placements.entry(chosen.name.to_owned()).or_default() += takes;
        plan.spare.insert(chosen.name.to_owned(), chosen.more - takes);
        missing -= takes;
    }
    let untouched = candidates.iter().filter(|candidate| candidate.holds);
    plan.spare.extend(untouched.map(|candidate| (candidate.name.to_owned(), candidate.more)));

    plan.unplaced = missing;
    if missing > 0 {
        // Asked again where something was placed meanwhile, so that the same state always gives the same words.
        let mut rejected = Vec::new();
        for (member, (asked, answer)) in members.iter().zip(answers) {
            let want = here(plan, member).saturating_add(missing);
            let answer = if want == asked { answer } else { ask(demand, member, ledger, want) };
            match answer.map(|room| room.stopped_by) {
                Err(exclusion) => rejected.push((member.name, exclusion)),
                Ok(Some(stopped)) => rejected.push((member.name, Exclusion::new(stopped.reason, stopped.message))),
                Ok(None) => {}
            }
        }
        plan.reject(rejected);
    }
}

/// The room of a member, unless it takes nothing new at all.
fn ask(demand: &Demand<'_>, member: &Member<'_>, ledger: &Ledger, want: u32) -> Result<Room, Exclusion> {
    if let Some(exclusion) = &member.excluded {
        return Err(exclusion.clone());
    }
    let Some(snapshot) = member.snapshot else {
        return Err(Exclusion::new(Reason::CapacityUnknown, "nodes and pods of the member aren't known yet"));
    };
    let mut promises = ledger.promises(member.name, demand.uid);
    if let Some(groups) = demand.existing.get(member.name) {
        promises.push(Promise { service: demand.service.clone(), request: demand.request.clone(), groups: *groups });
    }
    Ok(room(snapshot, &demand.request, &demand.service, &promises, want, &member.options))
}

/// Decides between members that are otherwise equal: the same for ever for one service, another for the next, so that
/// equal members share the load.
fn stable_hash(service_uid: &str, cluster_uid: &str) -> u64 {
    let digest = Sha256::new().chain_update(service_uid).chain_update([0]).chain_update(cluster_uid).finalize();
    digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}
