//! From probes to what holds of a member: reachable, credential accepted, account permitted. Pure.
//!
//! Reachable is damped both ways, so that one lost packet moves no service. An answer that refuses the account is
//! contact: it shows in the credential or the permission, never as unreachable.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::view::Fact;
use crate::api::condition::Truth;
use crate::api::reason::Reason;

/// Failed probes in a row before a member counts as lost.
const LOST_PROBES: u32 = 3;
/// Good probes in a row before it counts as back.
const BACK_PROBES: u32 = 2;
/// A member that restarts refuses permission to everyone for about a second: a refusal counts after this time.
const PERMISSION_GRACE: SignedDuration = SignedDuration::from_secs(10);
/// Pause before a refusal is checked again.
const AGAIN: Duration = Duration::from_secs(1);

/// What one probe found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// Ready, and it answers the account.
    Alive,
    /// It doesn't accept the credential.
    Unauthorized(String),
    /// It doesn't permit the account what the hub needs.
    Forbidden(String),
    /// It answers that it isn't ready.
    Unready(String),
    /// No answer.
    Silent(String),
}

/// A row of like probes.
#[derive(Clone, Copy, Debug)]
struct Row {
    count: u32,
    since: Timestamp,
}

impl Row {
    fn one_more(row: &mut Option<Self>, now: Timestamp) -> Self {
        let mut next = row.unwrap_or(Self { count: 0, since: now });
        next.count = next.count.saturating_add(1);
        *row = Some(next);
        next
    }

    fn lasts(self, now: Timestamp, at_least: SignedDuration) -> bool {
        now.duration_since(self.since) >= at_least
    }
}

/// What holds of a member, as its probes tell.
#[derive(Clone, Debug)]
pub(super) struct Health {
    lost_after: SignedDuration,
    back_after: SignedDuration,
    credential_end: Option<Timestamp>,
    pub(super) reachable: Fact,
    pub(super) credential_valid: Fact,
    /// Why the account isn't permitted what the hub needs.
    pub(super) forbidden: Option<String>,
    pub(super) last_seen: Option<Timestamp>,
    /// The last probe found all well.
    well: bool,
    good: Option<Row>,
    bad: Option<Row>,
    unauthorized: Option<Row>,
    refused: Option<Row>,
}

/// What a probe changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    /// Any fact.
    pub(super) any: bool,
    /// The member can be reached now and couldn't before.
    pub(super) returned: bool,
    /// It is well, and wasn't the last time: what failed meanwhile may work again.
    pub(super) well_again: bool,
}

impl Health {
    /// Nothing is known yet. `lost_after` and `back_after` are the least times of a row of probes, `credential_end` is
    /// when the credential ends.
    pub(super) fn new(lost_after: Duration, back_after: Duration, credential_end: Option<Timestamp>) -> Self {
        let signed = |duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        let fact = || Fact::unknown(Reason::Reconciling, "the member has not answered yet");
        Self {
            lost_after: signed(lost_after),
            back_after: signed(back_after),
            credential_end,
            reachable: fact(),
            credential_valid: fact(),
            forbidden: None,
            last_seen: None,
            well: false,
            good: None,
            bad: None,
            unauthorized: None,
            refused: None,
        }
    }

    /// Takes what a probe found.
    pub(super) fn observe(&mut self, probe: &Probe, now: Timestamp) -> Changed {
        let before = (self.reachable.clone(), self.credential_valid.clone(), self.forbidden.clone());
        let was_well = std::mem::replace(&mut self.well, *probe == Probe::Alive);
        match probe {
            Probe::Alive | Probe::Unauthorized(_) | Probe::Forbidden(_) => self.contact(now),
            Probe::Unready(text) | Probe::Silent(text) => self.no_contact(text, now),
        }
        self.judge_credential(probe, now);
        self.judge_permission(probe, now);
        let any = before != (self.reachable.clone(), self.credential_valid.clone(), self.forbidden.clone());
        Changed { any, returned: self.reachable.holds() && !before.0.holds(), well_again: self.well && !was_well }
    }

    fn contact(&mut self, now: Timestamp) {
        let first = self.last_seen.is_none();
        self.last_seen = Some(now);
        self.bad = None;
        let row = Row::one_more(&mut self.good, now);
        if self.reachable.holds() || first || row.count >= BACK_PROBES && row.lasts(now, self.back_after) {
            self.reachable = Fact::yes(Reason::Connected, "");
        }
    }

    fn no_contact(&mut self, text: &str, now: Timestamp) {
        self.good = None;
        let row = Row::one_more(&mut self.bad, now);
        if row.count >= LOST_PROBES && row.lasts(now, self.lost_after) || self.reachable.truth == Truth::False {
            self.reachable = Fact::no(Reason::Unreachable, text);
        } else if self.reachable.truth == Truth::Unknown {
            self.reachable = Fact::unknown(Reason::Unreachable, text);
        }
    }

    fn judge_credential(&mut self, probe: &Probe, now: Timestamp) {
        match probe {
            Probe::Alive | Probe::Forbidden(_) => {
                self.unauthorized = None;
                self.credential_valid = Fact::yes(Reason::Accepted, "");
            }
            Probe::Unauthorized(text) => {
                let row = Row::one_more(&mut self.unauthorized, now);
                if row.count > 1 || !self.credential_valid.holds() {
                    self.credential_valid = match self.credential_end.filter(|end| *end <= now) {
                        Some(end) => {
                            Fact::no(Reason::CredentialExpired, format!("the credential ended at {end}: store a new one in the Secret"))
                        }
                        None => Fact::no(Reason::CredentialInvalid, format!("the member doesn't accept the credential: {text}")),
                    };
                }
            }
            Probe::Unready(_) | Probe::Silent(_) => self.unauthorized = None,
        }
    }

    fn judge_permission(&mut self, probe: &Probe, now: Timestamp) {
        match probe {
            Probe::Forbidden(text) => {
                let row = Row::one_more(&mut self.refused, now);
                if row.count > 1 && row.lasts(now, PERMISSION_GRACE) {
                    self.forbidden = Some(text.clone());
                }
            }
            Probe::Alive => {
                self.refused = None;
                self.forbidden = None;
            }
            // Nothing is learnt about the permission; a row of refusals is broken.
            Probe::Unauthorized(_) | Probe::Unready(_) | Probe::Silent(_) => self.refused = None,
        }
    }

    /// Since when the credential has been refused on end.
    pub(super) fn refused_since(&self) -> Option<Timestamp> {
        self.unauthorized.map(|row| row.since)
    }

    /// Pause before the next probe: short while a refusal waits for its check.
    pub(super) fn pause(&self, interval: Duration) -> Duration {
        let credential = self.unauthorized.is_some() && self.credential_valid.holds();
        let permission = self.refused.is_some() && self.forbidden.is_none();
        if credential || permission { AGAIN.min(interval) } else { interval }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn health() -> Health {
        Health::new(Duration::from_secs(30), Duration::from_secs(10), None)
    }

    fn silent() -> Probe {
        Probe::Silent("connection refused".into())
    }

    /// Runs probes at these seconds and gives the truth of Reachable after each.
    fn reachable(probes: &[(i64, Probe)]) -> Vec<Truth> {
        let mut health = health();
        probes
            .iter()
            .map(|(second, probe)| {
                health.observe(probe, at(*second));
                health.reachable.truth
            })
            .collect()
    }

    #[test]
    fn reachable_is_damped_both_ways() {
        use Truth::{False, True, Unknown};
        let alive = || Probe::Alive;
        let unready = || Probe::Unready("etcd failed".into());
        type Steps = Vec<(i64, Probe, Truth)>;
        let cases: Vec<(&str, Steps)> = vec![
            ("first contact counts at once", vec![(0, alive(), True)]),
            ("a refusal is contact too", vec![(0, Probe::Unauthorized("no".into()), True)]),
            (
                "without contact it is unknown, then lost",
                vec![(0, silent(), Unknown), (10, silent(), Unknown), (20, silent(), Unknown), (30, silent(), False)],
            ),
            (
                "after that the first contact counts at once",
                vec![(0, silent(), Unknown), (30, silent(), Unknown), (31, silent(), False), (40, alive(), True)],
            ),
            (
                "three failures within 30 s are not enough",
                vec![(0, alive(), True), (1, silent(), True), (2, silent(), True), (3, silent(), True), (31, silent(), False)],
            ),
            (
                "two failures over 30 s are not enough",
                vec![(0, alive(), True), (1, silent(), True), (40, silent(), True), (41, unready(), False)],
            ),
            (
                "a good probe breaks the row",
                vec![
                    (0, alive(), True),
                    (10, silent(), True),
                    (30, silent(), True),
                    (40, alive(), True),
                    (50, silent(), True),
                    (60, silent(), True),
                    (70, silent(), True),
                    (80, silent(), False),
                ],
            ),
            (
                "back after two good probes and 10 s",
                vec![
                    (0, alive(), True),
                    (10, silent(), True),
                    (20, silent(), True),
                    (40, silent(), False),
                    (50, alive(), False),
                    (55, alive(), False),
                    (60, alive(), True),
                ],
            ),
            (
                "a bad probe breaks the way back",
                vec![
                    (0, alive(), True),
                    (10, silent(), True),
                    (20, silent(), True),
                    (40, silent(), False),
                    (50, alive(), False),
                    (55, silent(), False),
                    (61, alive(), False),
                    (71, alive(), True),
                ],
            ),
        ];
        for (what, steps) in cases {
            let probes: Vec<_> = steps.iter().map(|(second, probe, _)| (*second, probe.clone())).collect();
            let want: Vec<_> = steps.iter().map(|(_, _, truth)| *truth).collect();
            assert_eq!(reachable(&probes), want, "{what}");
        }
    }

    #[test]
    fn a_lost_member_tells_its_newest_trouble() {
        let mut health = health();
        health.observe(&Probe::Alive, at(0));
        for second in [10, 25, 40] {
            health.observe(&silent(), at(second));
        }
        assert_eq!(health.reachable.message, "connection refused");
        assert!(health.observe(&Probe::Unready("not ready".into()), at(50)).any);
        assert_eq!((health.reachable.message.as_str(), health.last_seen), ("not ready", Some(at(0))));
        assert!(!health.observe(&Probe::Unready("not ready".into()), at(60)).any);
    }

    #[test]
    fn a_credential_is_refused_at_once_only_at_first_contact() {
        let refused = || Probe::Unauthorized("Unauthorized".into());
        let mut first = health();
        first.observe(&refused(), at(0));
        assert_eq!((first.credential_valid.truth, first.credential_valid.reason), (Truth::False, Reason::CredentialInvalid));

        let mut later = health();
        later.observe(&Probe::Alive, at(0));
        later.observe(&refused(), at(10));
        assert!(later.credential_valid.holds());
        assert_eq!(later.pause(Duration::from_secs(10)), AGAIN);
        later.observe(&refused(), at(11));
        assert!(!later.credential_valid.holds() && later.reachable.holds());
        assert_eq!(later.pause(Duration::from_secs(10)), Duration::from_secs(10));
        assert!(later.observe(&Probe::Alive, at(20)).any);
        assert!(later.credential_valid.holds());
    }

    #[test]
    fn an_ended_credential_is_told_as_such() {
        let mut health = Health::new(Duration::ZERO, Duration::ZERO, Some(at(5)));
        health.observe(&Probe::Unauthorized("Unauthorized".into()), at(10));
        assert_eq!(health.credential_valid.reason, Reason::CredentialExpired);
    }

    #[test]
    fn a_refusal_of_permission_counts_when_it_lasts() {
        let refused = || Probe::Forbidden("cannot get namespaces".into());
        let mut health = health();
        for (second, want) in [(0, false), (1, false), (9, false), (10, true)] {
            health.observe(&refused(), at(second));
            assert_eq!(health.forbidden.is_some(), want, "{second}");
        }
        assert!(health.reachable.holds() && health.credential_valid.holds());
        health.observe(&Probe::Alive, at(20));
        health.observe(&refused(), at(30));
        health.observe(&Probe::Alive, at(31));
        health.observe(&refused(), at(45));
        assert_eq!(health.forbidden, None, "a blip while the member restarts");
    }

    #[test]
    fn returning_is_told_once() {
        let mut health = health();
        assert_eq!(health.observe(&Probe::Alive, at(0)), Changed { any: true, returned: true, well_again: true });
        assert_eq!(health.observe(&Probe::Alive, at(10)), Changed::default());
        for second in [20, 30, 50] {
            health.observe(&silent(), at(second));
        }
        assert_eq!(health.observe(&Probe::Alive, at(60)), Changed { well_again: true, ..Changed::default() });
        assert_eq!(health.observe(&Probe::Alive, at(70)), Changed { any: true, returned: true, well_again: false });
        health.observe(&silent(), at(80));
        assert!(!health.observe(&Probe::Forbidden("starting".into()), at(81)).well_again);
        assert_eq!(health.observe(&Probe::Alive, at(90)), Changed { well_again: true, ..Changed::default() }, "not lost, but missed");
    }
}
