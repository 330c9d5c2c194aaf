//! The conditions beside `Ready`. True only when all of it holds; messages hold counts, never ages, or they would
//! change by themselves.

use jiff::Timestamp;

use super::counters::{Counts, Share};
use super::diagnose::{Picked, best_rejection};
use super::report::{Facts, decided};
use super::text::{self, Cleaner};
use crate::api::condition::{self, Condition, Truth};
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
            for note in left_out.into_iter().chain(&rendered.warnings) {
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
        return Some(Word::new(Truth::True, Reason::AllPlaced, counts));
    }
    let message = match best_rejection(facts) {
        Some(best) => format!("{counts}; {}: {}: {}", best.cluster, best.reason, best.message),
        None => format!("{counts}; no cluster is registered and ready"),
    };
    Some(Word::new(Truth::False, Reason::Unplaced, text::compose("", &cleaner.clean(&message), "")))
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
    if done {
        return Word::new(Truth::False, Reason::Complete, counts);
    }
    if still {
        return Word::new(Truth::Unknown, Reason::MemberUnreachable, counts);
    }
    Word::new(Truth::True, Reason::Progressing, counts)
}

/// A noun in the number that fits.
pub(super) fn plural(n: usize, noun: &str) -> String {
    if n == 1 { noun.to_owned() } else { format!("{noun}s") }
}
