//! The conditions beside `Ready`. True only when all of it holds; messages hold counts, never ages, or they would
//! change by themselves.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::counters::{Counts, Share};
use super::diagnose::{Picked, best_rejection};
use super::ready::Verdict;
use super::report::{Facts, decided};
use super::text::{self, Cleaner};
use crate::api::condition::{self, Condition, Truth, service};
use crate::api::odin::Phase;
use crate::api::reason::Reason;

/// A condition as it shall be.
pub(super) struct Word {
    pub(super) status: Truth,
    pub(super) reason: Reason,
    pub(super) message: String,
}

impl Word {
    pub(super) fn new(status: Truth, reason: Reason, message: impl Into<String>) -> Self {
        Self { status, reason, message: message.into() }
    }

    /// Puts it into a list.
    pub(super) fn set(&self, conditions: &mut Vec<Condition>, now: Timestamp, type_: &str, generation: Option<i64>) {
        condition::set(conditions, now, type_, self.status, self.reason.as_str(), &self.message, generation);
    }
}

/// `Rendered`. `left_out` tells why the status doesn't hold the rendered spec, if it doesn't.
pub(super) fn rendered(facts: &Facts<'_>, left_out: Option<&String>, cleaner: &Cleaner) -> Word {
    match facts.rendered {
        Err(refusal) => Word::new(Truth::False, refusal.reason, text::compose("", &cleaner.clean(&refusal.message), "")),
        Ok(rendered) => {
            let layers = rendered.sources.len();
            let mut message = format!("rendered from {layers} {}", plural(layers, "layer"));
            let of_workload = facts.workload.into_iter().flat_map(|w| &w.warnings).filter(|note| !rendered.warnings.contains(note));
            for note in left_out.into_iter().chain(&rendered.warnings).chain(of_workload) {
                message.push_str("; ");
                message.push_str(note);
            }
            Word::new(Truth::True, Reason::Rendered, text::compose("", &cleaner.clean(&message), ""))
        }
    }
}

/// `Placed`; nothing when there is no decision to speak of.
pub(super) fn placed(facts: &Facts<'_>, shares: &[Share<'_>], wanted: u32, unplaced: u32, cleaner: &Cleaner) -> Option<Word> {
    if !decided(facts, shares) {
        return None;
    }
    let placed = wanted.saturating_sub(unplaced);
    let members = shares.iter().filter(|s| !s.leaving && s.wanted > 0).count();
    let counts = format!("{placed} of {wanted} {} placed in {members} {}", plural(wanted as usize, "group"), plural(members, "cluster"));
    if unplaced == 0 {
        return Some(Word::new(Truth::True, Reason::AllPlaced, with_spare(facts, counts)));
    }
    let message = match best_rejection(facts) {
        Some(best) => format!("{counts}; {}: {}: {}", best.cluster, best.reason, best.message),
        None => format!("{counts}; no cluster is registered and ready"),
    };
    Some(Word::new(Truth::False, Reason::Unplaced, text::compose("", &cleaner.clean(&message), &rejected(facts))))
}

/// How many clusters were passed over for each reason, if there are several. The order is that of the reasons' names.
fn rejected(facts: &Facts<'_>) -> String {
    let told = || facts.service.status.as_ref().map(|status| &status.rejection_summary);
    let Some(summary) = facts.plan.map(|plan| &plan.rejection_summary).or_else(told) else { return String::new() };
    let clusters: i32 = summary.values().sum();
    if clusters < 2 {
        return String::new();
    }
    let reasons: Vec<String> = summary.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    format!("; {clusters} clusters passed over: {}", reasons.join(", "))
}

/// Adds a warning for a rollout that will stand for want of room: the old revision serves on, and nothing else tells
/// before. It is told as it was when placements or service last changed, since what is free changes with each pod of
/// others.
fn with_spare(facts: &Facts<'_>, counts: String) -> String {
    let status = facts.service.status.as_ref();
    let before = status.and_then(|s| condition::find(&s.conditions, service::PLACED));
    let alike = before.filter(|b| b.message.strip_prefix(&counts).is_some_and(|rest| rest.is_empty() || rest.starts_with(';')));
    let kept = || alike.map_or_else(|| counts.clone(), |b| b.message.clone());
    let (Some(plan), Some(workload)) = (facts.plan, facts.workload) else { return kept() };
    let needed = |cluster: &String| workload.rollout_spare(plan.placements.get(cluster).copied().unwrap_or_default());
    if plan.placements.keys().all(|cluster| needed(cluster) == 0) {
        return counts;
    }
    let is_old = plan.placements == told(facts) && alike.is_some_and(|b| b.observed_generation == facts.service.metadata.generation);
    if is_old || plan.placements.keys().any(|cluster| !plan.spare.contains_key(cluster)) {
        return kept();
    }
    let lacks = |cluster: &&String| plan.spare.get(*cluster).is_some_and(|spare| *spare < needed(cluster));
    let mut short = plan.placements.keys().filter(lacks);
    let Some(first) = short.next() else { return counts };
    let others = match short.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{counts}; {}: a rollout makes new groups before it ends old ones, and when this was decided {first}{others} had no room \
         for that: set maxSurge 0 and maxUnavailable 1 in spec.rolloutStrategy.rollingUpdate, or keep room free",
        Reason::RolloutNeedsSpare
    )
}

/// Placements as the status has them.
fn told(facts: &Facts<'_>) -> BTreeMap<String, u32> {
    let placements = facts.service.status.iter().flat_map(|s| &s.placements).filter(|p| p.phase != Phase::Leaving);
    placements.map(|p| (p.cluster.clone(), u32::try_from(p.replicas).unwrap_or(0))).collect()
}

/// `Applied`.
pub(super) fn applied(facts: &Facts<'_>, shares: &[Share<'_>], wanted: u32, refused: Option<&Picked<'_>>) -> Word {
    let generation = facts.service.metadata.generation.unwrap_or(0);
    let planned = || shares.iter().filter(|s| !s.leaving);
    let (all, done) = (planned().count(), planned().filter(|s| s.applied).count());
    if !decided(facts, shares) {
        return Word::new(Truth::False, Reason::Reconciling, "nothing is decided yet");
    }
    if all == 0 && wanted > 0 {
        return Word::new(Truth::False, Reason::Unplaced, "no cluster holds any of it");
    }
    let counts = format!("{done} of {all} {} accepted generation {generation}", plural(all, "cluster"));
    if done == all {
        return Word::new(Truth::True, Reason::Applied, counts);
    }
    if let Some(refused) = refused {
        return Word::new(Truth::False, refused.reason, text::compose(&format!("{counts}; "), &refused.diagnostic.message, ""));
    }
    if planned().all(|s| s.applied || !s.fresh) {
        return Word::new(Truth::Unknown, Reason::MemberUnreachable, format!("{counts}, the others can't be seen"));
    }
    Word::new(Truth::False, Reason::Reconciling, counts)
}

/// `Progressing`: whether anything moves.
pub(super) fn progressing(
    facts: &Facts<'_>,
    shares: &[Share<'_>],
    sum: Counts,
    wanted: u32,
    unplaced: u32,
    verdict: &Verdict,
    picked: Option<&Picked<'_>>,
) -> Word {
    if !decided(facts, shares) {
        return Word::new(Truth::Unknown, Reason::Reconciling, "nothing is decided yet");
    }
    let leaving = shares.iter().filter(|s| s.leaving).count();
    let Counts { ready, updated, .. } = sum;
    let counts = format!("{ready} of {wanted} {} ready, {updated} updated", plural(wanted as usize, "group"));
    let done = shares.iter().filter(|s| !s.leaving).all(|s| s.done);
    let still = shares.iter().filter(|s| !s.leaving).all(|s| s.done || !s.fresh);
    if let Some(picked) = picked.filter(|p| p.reason == Reason::ProgressDeadlineExceeded) {
        return Word::new(Truth::False, picked.reason, counts);
    }
    if leaving > 0 {
        return Word::new(Truth::True, Reason::Progressing, format!("{counts}; {leaving} {} being left", plural(leaving, "cluster")));
    }
    if done && unplaced > 0 {
        return Word::new(Truth::False, Reason::Unplaced, counts);
    }
    if done && !verdict.is_settling() {
        return Word::new(Truth::False, Reason::Complete, counts);
    }
    if still && !done {
        return Word::new(Truth::Unknown, Reason::MemberUnreachable, counts);
    }
    Word::new(Truth::True, Reason::Progressing, counts)
}

/// A noun in the number that fits.
pub(super) fn plural(n: usize, noun: &str) -> String {
    if n == 1 { noun.to_owned() } else { format!("{noun}s") }
}
