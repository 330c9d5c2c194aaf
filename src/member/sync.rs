//! Which kinds of a member have been listed, and which can't be.

use jiff::{SignedDuration, Timestamp};

use super::client::Failure;
use super::lean::Kind;
use super::view::Fact;
use crate::api::reason::Reason;

/// A failure is told only when it lasts: an API server that restarts refuses everyone for about a second while its
/// caches fill.
const GRACE: SignedDuration = SignedDuration::from_secs(10);

#[derive(Clone, Debug)]
struct Failing {
    verb: &'static str,
    /// The member answered, so that it isn't just out of reach.
    answered: bool,
    message: String,
    since: Timestamp,
}

/// How far one kind is.
#[derive(Clone, Debug, Default)]
struct State {
    listed: bool,
    failing: Option<Failing>,
    /// Whether the member serves it, once that is known; only asked of kinds that not every member serves.
    served: Option<bool>,
}

/// How far each kind is.
#[derive(Clone, Debug, Default)]
pub(super) struct Sync {
    states: [State; Kind::ALL.len()],
}

impl Sync {
    fn state(&mut self, kind: Kind) -> Option<&mut State> {
        self.states.get_mut(kind as usize)
    }

    fn each(&self) -> impl Iterator<Item = (Kind, &State)> {
        Kind::ALL.into_iter().zip(&self.states)
    }

    /// All objects of the kind are known. Returns whether that is news.
    pub(super) fn listed(&mut self, kind: Kind) -> bool {
        let Some(state) = self.state(kind) else { return false };
        let news = !state.listed || state.failing.is_some();
        state.listed = true;
        state.failing = None;
        news
    }

    /// The member serves the kind, or surely doesn't. Returns whether that is news.
    pub(super) fn served(&mut self, kind: Kind, served: bool) -> bool {
        self.state(kind).is_some_and(|state| state.served.replace(served) != Some(served))
    }

    /// The kind is followed no longer, and nothing of it is known.
    pub(super) fn unfollowed(&mut self, kind: Kind) {
        if let Some(state) = self.state(kind) {
            state.listed = false;
            state.failing = None;
        }
    }

    /// The watch of the kind is open again. Returns whether that is news.
    pub(super) fn watching(&mut self, kind: Kind) -> bool {
        self.state(kind).is_some_and(|state| state.failing.take().is_some())
    }

    /// Listing or watching failed.
    pub(super) fn failed(&mut self, kind: Kind, verb: &'static str, failure: &Failure, now: Timestamp) {
        let Some(state) = self.state(kind) else { return };
        let since = state.failing.as_ref().map_or(now, |failing| failing.since);
        state.failing = Some(Failing { verb, answered: failure.answered(), message: failure.message().to_owned(), since });
    }

    /// Whether the kind was ever listed.
    pub(super) fn is_listed(&self, kind: Kind) -> bool {
        self.each().any(|(k, state)| k == kind && state.listed)
    }

    /// Whether all objects of the kind are known, also because there can't be any.
    pub(super) fn is_known(&self, kind: Kind) -> bool {
        self.each().any(|(k, state)| k == kind && (state.listed || state.served == Some(false)))
    }

    /// Whether the member is known to serve the kind, for kinds that not every member serves.
    pub(super) fn is_served(&self, kind: Kind) -> bool {
        self.each().any(|(k, state)| k == kind && state.served == Some(true))
    }

    /// Whether what is known of the kind follows the member.
    pub(super) fn is_followed(&self, kind: Kind, now: Timestamp) -> bool {
        self.each().any(|(k, state)| k == kind && state.listed && state.failing.as_ref().is_none_or(|failing| !failing.lasts(now)))
    }

    /// Why the member doesn't let a kind be followed, if that lasts, and since when. One that doesn't answer refuses
    /// nothing.
    pub(super) fn refused(&self, kind: Kind, now: Timestamp) -> Option<(String, Timestamp)> {
        let (_, state) = self.each().find(|(k, _)| *k == kind)?;
        let failing = state.failing.as_ref().filter(|failing| failing.answered && failing.lasts(now))?;
        Some((format!("can't {} {}: {}", failing.verb, kind.plural(), failing.message), failing.since))
    }

    /// The condition Synced.
    pub(super) fn fact(&self, now: Timestamp) -> Fact {
        let mut refused: Vec<String> = Kind::ALL.into_iter().filter_map(|kind| Some(self.refused(kind, now)?.0)).collect();
        // Two watches of one kind fail alike.
        refused.dedup();
        if !refused.is_empty() {
            return Fact::no(Reason::NotSynced, refused.join("; "));
        }
        let missing = self.each().filter(|(kind, state)| !state.listed && is_needed(*kind, state));
        let missing: Vec<&str> = missing.map(|(kind, _)| kind.plural()).collect();
        if missing.is_empty() {
            Fact::yes(Reason::Synced, "")
        } else {
            Fact::unknown(Reason::NotSynced, format!("not listed yet: {}", missing.join(", ")))
        }
    }
}

/// Whether the kind has to be listed: some are not served everywhere, and events are followed on demand.
fn is_needed(kind: Kind, state: &State) -> bool {
    match kind {
        Kind::LeaderWorkerSet | Kind::StatefulSet => state.served == Some(true),
        Kind::SetEvent | Kind::LwsEvent => false,
        _ => true,
    }
}

impl Failing {
    fn lasts(&self, now: Timestamp) -> bool {
        now.duration_since(self.since) >= GRACE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::condition::Truth;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn forbidden() -> Failure {
        Failure::Forbidden("no".into())
    }

    fn all_listed() -> Sync {
        let mut sync = Sync::default();
        for kind in Kind::ALL {
            assert!(sync.listed(kind));
            assert!(!sync.listed(kind), "known already");
        }
        sync
    }

    #[test]
    fn unknown_until_each_kind_was_listed() {
        let mut sync = Sync::default();
        sync.listed(Kind::Node);
        let fact = sync.fact(at(0));
        assert_eq!(
            (fact.truth, fact.message.as_str()),
            (Truth::Unknown, "not listed yet: pods, deployments, replicasets, services, resourcequotas")
        );
        assert!(all_listed().fact(at(0)).holds());
    }

    #[test]
    fn a_kind_that_can_not_be_listed_is_named_when_it_lasts() {
        let mut sync = all_listed();
        sync.failed(Kind::Pod, "watch", &forbidden(), at(0));
        assert!(sync.fact(at(9)).holds() && sync.is_followed(Kind::Pod, at(9)));
        sync.failed(Kind::Pod, "list", &forbidden(), at(10));
        let fact = sync.fact(at(10));
        assert_eq!((fact.truth, fact.message.as_str()), (Truth::False, "can't list pods: no"));
        assert_eq!(sync.refused(Kind::Pod, at(10)), Some(("can't list pods: no".to_owned(), at(0))));
        assert_eq!(sync.refused(Kind::Deployment, at(10)), None);
        assert!(!sync.is_followed(Kind::Pod, at(10)) && sync.is_followed(Kind::Node, at(10)) && sync.is_listed(Kind::Pod));
        assert!(sync.watching(Kind::Pod) && !sync.watching(Kind::Pod));
        assert!(sync.fact(at(11)).holds());
    }

    #[test]
    fn kinds_that_not_every_member_serves_count_where_they_are_served() {
        let mut sync = Sync::default();
        for kind in [Kind::Node, Kind::Pod, Kind::Deployment, Kind::ReplicaSet, Kind::Service, Kind::ResourceQuota] {
            sync.listed(kind);
        }
        assert!(sync.fact(at(0)).holds() && !sync.is_known(Kind::LeaderWorkerSet), "not found out yet");
        assert!(sync.served(Kind::LeaderWorkerSet, false) && !sync.served(Kind::LeaderWorkerSet, false));
        assert!(sync.fact(at(0)).holds() && sync.is_known(Kind::LeaderWorkerSet) && !sync.is_listed(Kind::LeaderWorkerSet));
        assert!(!sync.is_served(Kind::LeaderWorkerSet));
        sync.served(Kind::LeaderWorkerSet, true);
        assert!(sync.is_served(Kind::LeaderWorkerSet));
        assert_eq!(sync.fact(at(0)).message, "not listed yet: leaderworkersets");
        assert!(!sync.is_known(Kind::LeaderWorkerSet));
        sync.listed(Kind::LeaderWorkerSet);
        assert!(sync.fact(at(0)).holds() && sync.is_known(Kind::LeaderWorkerSet));
        // Events that are not wanted any more leave no trace of their failure.
        sync.failed(Kind::SetEvent, "list", &forbidden(), at(0));
        sync.failed(Kind::LwsEvent, "list", &forbidden(), at(0));
        assert_eq!(sync.fact(at(10)).message, "can't list events: no");
        sync.unfollowed(Kind::SetEvent);
        sync.unfollowed(Kind::LwsEvent);
        assert!(sync.fact(at(10)).holds());
    }

    #[test]
    fn a_silent_member_is_no_refusal() {
        let mut sync = all_listed();
        sync.failed(Kind::Node, "watch", &Failure::Unreachable("gone".into()), at(0));
        assert!(sync.fact(at(100)).holds() && sync.refused(Kind::Node, at(100)).is_none(), "Reachable tells that");
        assert!(!sync.is_followed(Kind::Node, at(100)));
    }
}
