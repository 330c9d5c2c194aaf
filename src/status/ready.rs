//! Whether a service is ready: lost at once, gained only when it lasts.

use std::time::Duration;

use jiff::SignedDuration;

use super::counters::Share;
use super::report::Facts;
use crate::api::condition::{self, Truth, service};

/// How long all groups must have been ready on end. A worker that crashes right after it became ready would make the
/// condition flap without it.
const STEADY: SignedDuration = SignedDuration::from_secs(2);
/// The same while it is remembered that a group was made anew because a container of it ended: one that lasts a few
/// seconds each time is no more ready than one that lasts one.
const STEADY_AFTER_A_CRASH: SignedDuration = SignedDuration::from_secs(10);

/// What `Ready` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) status: Truth,
    /// All is well now.
    pub(super) all_ready: bool,
    /// When it will be True if all stays as it is.
    pub(super) recheck_after: Option<Duration>,
}

impl Verdict {
    /// Whether all is well, but hasn't been for long enough to say so. What was said before stands meanwhile, or it would
    /// come and go with each moment of readiness.
    pub(super) fn is_settling(&self) -> bool {
        self.all_ready && self.status != Truth::True
    }
}

/// Decides on `Ready` from the shares, with what found no place.
pub(super) fn verdict(facts: &Facts<'_>, shares: &[Share<'_>], wanted: u32, unplaced: u32) -> Verdict {
    let no = |status| Verdict { status, all_ready: false, recheck_after: None };
    if facts.rendered.is_err() || unplaced > 0 || (wanted > 0 && shares.iter().all(|s| s.leaving)) {
        return no(Truth::False);
    }
    let mut planned = shares.iter().filter(|s| !s.leaving);
    let rest_is_done = planned.all(|s| s.done || !s.fresh);
    let none_left = wanted > 0 || shares.iter().all(|s| !s.fresh || s.known().current == 0);
    if !rest_is_done || !none_left {
        return no(Truth::False);
    }
    if shares.iter().any(|s| !s.fresh && (!s.leaving || wanted == 0)) {
        return no(Truth::Unknown);
    }
    let conditions = facts.service.status.as_ref().map_or(&[][..], |s| s.conditions.as_slice());
    if condition::is_true(conditions, service::READY) {
        return Verdict { status: Truth::True, all_ready: true, recheck_after: None };
    }
    // A clock that was set back must not make the wait longer.
    let lasted = facts.all_ready_since.map_or(SignedDuration::ZERO, |since| facts.now.duration_since(since)).max(SignedDuration::ZERO);
    let steady = if shares.iter().any(Share::remembers_a_crash) { STEADY_AFTER_A_CRASH } else { STEADY };
    let rest = steady.saturating_sub(lasted);
    if rest <= SignedDuration::ZERO {
        return Verdict { status: Truth::True, all_ready: true, recheck_after: None };
    }
    Verdict { status: Truth::False, all_ready: true, recheck_after: Some(rest.unsigned_abs()) }
}
