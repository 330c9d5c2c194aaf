//! Groups of `LeaderWorkerSets` that are made anew because a container of theirs ended. Pure.
//!
//! A group in which a container restarts is deleted whole within a third of a second: the pods that come next have
//! restarted nothing, and nothing of what is there tells what went wrong, or how often. So the ends that were seen are
//! remembered here, for a while and for so many groups at most.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::api::reason::Reason;
use crate::status::{PodStatusView, Terminated, words_for_end};

/// How long an end is remembered.
const MEMORY: SignedDuration = SignedDuration::from_mins(10);
/// A group that has been ready for this long got over it.
const STEADY: SignedDuration = SignedDuration::from_secs(30);
/// Groups of one member that are remembered at once.
const MOST: usize = 256;
/// A group that was made anew this often does so in a loop.
const RECREATIONS_OF_A_LOOP: u32 = 2;

/// How a container of a group ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    /// Name of the pod.
    pub(super) pod: String,
    /// Name of the container.
    pub(super) container: String,
    /// How it ended.
    pub(super) how: Terminated,
}

impl End {
    /// The first end of a container of a pod; that of an init container that did its work is none. What ends because its
    /// pod is being deleted is no cause of anything.
    pub(super) fn of(pod: &PodStatusView) -> Option<Self> {
        if pod.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let init = pod.status.init_container_statuses.iter().map(|container| (container, true));
        let main = pod.status.container_statuses.iter().map(|container| (container, false));
        let ends = init.chain(main).filter_map(|(container, init)| {
            let how = container.last_state.terminated.as_ref().or(container.state.terminated.as_ref())?;
            let done = init && how.exit_code == 0;
            (!done).then(|| Self { pod: pod.metadata.name.clone(), container: container.name.clone(), how: how.clone() })
        });
        ends.min_by(|a, b| a.order().cmp(&b.order()))
    }

    /// The first one is the cause of the others.
    fn order(&self) -> (Timestamp, &str, &str) {
        (self.how.finished_at.unwrap_or(Timestamp::MAX), &self.pod, &self.container)
    }
}

/// What is to be said of a group.
#[derive(Debug, PartialEq)]
pub(super) struct Crash<'a> {
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) end: &'a End,
}

#[derive(Debug)]
struct Group {
    /// UID of the pod that leads it.
    leader: String,
    /// What it was made from: another revision is another story.
    revision: String,
    /// The first end in the group as it is.
    now: Option<End>,
    /// The first end in the group as it was before.
    before: Option<End>,
    /// How often the group was made anew after an end.
    recreated: u32,
    ready_since: Option<Timestamp>,
    /// When the last end was seen.
    seen: Timestamp,
    /// Something was to be said of it when that was last looked at.
    told: bool,
}

impl Group {
    fn is_told(&self, now: Timestamp) -> bool {
        self.before.is_some()
            && now.duration_since(self.seen) < MEMORY
            && self.ready_since.is_none_or(|since| now.duration_since(since) < STEADY)
    }
}

/// The groups of one member that are remembered, by UID of the `LeaderWorkerSet` and number.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<(String, u32), Group>);

impl Groups {
    /// A container of a group ended while this pod led it. Returns whether that is news.
    pub(super) fn ended(&mut self, set: &str, group: u32, leader: &str, revision: &str, end: End, now: Timestamp) -> bool {
        let key = (set.to_owned(), group);
        if let Some(known) = self.0.get_mut(&key) {
            if known.leader != leader || known.now.as_ref().is_some_and(|first| first.order() <= end.order()) {
                return false;
            }
            known.now = Some(end);
            known.seen = now;
            return true;
        }
        if self.0.len() >= MOST
            && let Some(oldest) = self.0.iter().min_by_key(|(_, known)| known.seen).map(|(key, _)| key.clone())
        {
            self.0.remove(&oldest);
        }
        let (leader, revision) = (leader.to_owned(), revision.to_owned());
        let known = Group { leader, revision, now: Some(end), before: None, recreated: 0, ready_since: None, seen: now, told: false };
        self.0.insert(key, known);
        true
    }

    /// This pod leads a group.
    pub(super) fn led(&mut self, set: &str, group: u32, leader: &str, revision: &str) {
        let key = (set.to_owned(), group);
        let Some(known) = self.0.get_mut(&key).filter(|known| known.leader != leader) else { return };
        if known.revision != revision {
            self.0.remove(&key);
            return;
        }
        leader.clone_into(&mut known.leader);
        known.ready_since = None;
        if let Some(end) = known.now.take() {
            known.before = Some(end);
            known.recreated = known.recreated.saturating_add(1);
        }
    }

    /// The leader of a group that is remembered.
    pub(super) fn leader(&self, set: &str, group: u32) -> Option<&str> {
        Some(&self.0.get(&(set.to_owned(), group))?.leader)
    }

    /// All pods of the group are ready, or not.
    pub(super) fn set_ready(&mut self, set: &str, group: u32, ready: bool, now: Timestamp) {
        let Some(known) = self.0.get_mut(&(set.to_owned(), group)) else { return };
        known.ready_since = ready.then(|| known.ready_since.unwrap_or(now));
    }

    /// What is to be said of the groups of a `LeaderWorkerSet`: of those that were made anew, until they have been ready
    /// for a while. Times and words change with the next end only.
    pub(super) fn crashes(&self, set: &str, now: Timestamp) -> impl Iterator<Item = (u32, Crash<'_>)> {
        let of_set = self.0.range((set.to_owned(), 0)..=(set.to_owned(), u32::MAX));
        of_set.filter(move |(_, known)| known.is_told(now)).filter_map(|((_, group), known)| {
            let end = known.before.as_ref()?;
            let times = if known.recreated == 1 { "time" } else { "times" };
            let often = format!("group {group} recreated {} {times}", known.recreated);
            let (reason, message) = words_for_end(&end.container, &end.how, known.recreated >= RECREATIONS_OF_A_LOOP, &often);
            // One word from the first round on, as the kubelet has for a container that it starts again.
            let reason = if reason == Reason::Error { Reason::CrashLoopBackOff } else { reason };
            Some((*group, Crash { reason, message, end }))
        })
    }

    /// Forgets what is old. Returns the `LeaderWorkerSets` of which less is to be said than before.
    pub(super) fn age(&mut self, now: Timestamp) -> Vec<String> {
        let mut quiet = Vec::new();
        self.0.retain(|(set, _), known| {
            let told = known.is_told(now);
            if std::mem::replace(&mut known.told, told) && !told {
                quiet.push(set.clone());
            }
            now.duration_since(known.seen) < MEMORY
        });
        quiet
    }

    /// A `LeaderWorkerSet` is gone.
    pub(super) fn forget(&mut self, set: &str) {
        self.0.retain(|(of, _), _| of != set);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn end(pod: &str, reason: &str, code: i32, seconds: i64) -> End {
        let how = Terminated {
            exit_code: code,
            reason: reason.into(),
            message: "no devices".into(),
            finished_at: Some(at(seconds)),
            signal: None,
        };
        End { pod: pod.into(), container: "main".into(), how }
    }

    fn said(groups: &Groups, now: i64) -> Vec<(u32, Reason, String, Timestamp)> {
        groups.crashes("s", at(now)).map(|(group, c)| (group, c.reason, c.message, c.end.how.finished_at.unwrap())).collect()
    }

    /// Round after round: ready for a second, an end, a new leader.
    fn crash(groups: &mut Groups, rounds: std::ops::Range<i64>, reason: &str, code: i32) {
        for round in rounds {
            let leader = format!("leader-{round}");
            groups.led("s", 0, &leader, "r");
            groups.set_ready("s", 0, true, at(round * 3));
            groups.set_ready("s", 0, false, at(round * 3 + 1));
            groups.ended("s", 0, &leader, "r", end("chat-0-1", reason, code, round * 3 + 1), at(round * 3 + 1));
        }
        groups.led("s", 0, "leader-last", "r");
    }

    #[test]
    fn a_group_that_is_made_anew_says_why_and_how_often() {
        for (rounds, reason, code, word, message) in [
            (1, "Error", 1, Reason::CrashLoopBackOff, "container main ended (exit code 1, group 0 recreated 1 time): no devices"),
            (
                3,
                "Error",
                1,
                Reason::CrashLoopBackOff,
                "container main ends again and again (exit code 1, group 0 recreated 3 times): no devices",
            ),
            (
                2,
                "OOMKilled",
                137,
                Reason::OomKilled,
                "container main used more memory than its limit and was killed (exit code 137, group 0 recreated 2 times): no devices",
            ),
        ] {
            let mut groups = Groups::default();
            crash(&mut groups, 0..rounds, reason, code);
            let want = vec![(0, word, message.to_owned(), at((rounds - 1) * 3 + 1))];
            assert_eq!(said(&groups, rounds * 3), want);
            // The same while nothing new ends, whether the group is ready for a moment or not.
            groups.set_ready("s", 0, true, at(rounds * 3 + 2));
            assert_eq!(said(&groups, rounds * 3 + 20), want);
        }
    }

    #[test]
    fn nothing_is_said_before_the_group_was_made_anew() {
        let mut groups = Groups::default();
        assert!(groups.ended("s", 0, "a", "r", end("chat-0", "Error", 1, 1), at(1)));
        assert!(!groups.ended("s", 0, "a", "r", end("chat-0", "Error", 1, 1), at(1)), "known");
        assert_eq!(said(&groups, 1), []);
        groups.led("s", 0, "a", "r");
        assert_eq!(said(&groups, 2), [], "the same leader");
    }

    #[test]
    fn the_first_end_of_a_round_is_its_cause() {
        let mut groups = Groups::default();
        groups.ended("s", 0, "a", "r", end("chat-0-1", "Error", 3, 5), at(5));
        groups.ended("s", 0, "a", "r", end("chat-0", "Error", 1, 4), at(5));
        groups.ended("s", 0, "a", "r", end("chat-0-2", "Error", 9, 6), at(6));
        groups.led("s", 0, "b", "r");
        groups.ended("s", 0, "a", "r", end("chat-0-3", "Error", 2, 1), at(7));
        assert_eq!(groups.crashes("s", at(7)).map(|(_, c)| c.end.pod.clone()).collect::<Vec<_>>(), ["chat-0"], "of the leader of its time");
    }

    #[test]
    fn a_group_that_lasts_got_over_it() {
        let mut groups = Groups::default();
        crash(&mut groups, 0..2, "Error", 1);
        groups.set_ready("s", 0, true, at(10));
        groups.set_ready("s", 0, true, at(20));
        assert!(groups.age(at(39)).is_empty());
        assert_eq!(said(&groups, 39).len(), 1);
        assert_eq!(said(&groups, 40), []);
        assert_eq!(groups.age(at(40)), ["s"]);
        assert!(groups.age(at(41)).is_empty(), "told once");
        // Not for good: the count goes on.
        groups.set_ready("s", 0, false, at(50));
        groups.ended("s", 0, "leader-last", "r", end("chat-0", "Error", 1, 50), at(50));
        groups.led("s", 0, "next", "r");
        assert!(said(&groups, 51)[0].2.contains("recreated 3 times"));
    }

    #[test]
    fn another_revision_is_another_story_and_so_is_a_deletion_without_an_end() {
        let mut groups = Groups::default();
        crash(&mut groups, 0..2, "Error", 1);
        groups.led("s", 0, "moved", "r");
        assert!(said(&groups, 10)[0].2.contains("recreated 2 times"));
        groups.led("s", 0, "new", "r2");
        assert_eq!(said(&groups, 10), []);
    }

    #[test]
    fn what_is_remembered_has_an_end() {
        let mut groups = Groups::default();
        crash(&mut groups, 0..1, "Error", 1);
        assert!(groups.age(at(10)).is_empty());
        assert_eq!(groups.age(at(601)), ["s"]);
        assert!(groups.0.is_empty());
        for group in 0..300 {
            groups.ended("t", group, "a", "r", end("p", "Error", 1, 0), at(i64::from(group)));
        }
        assert_eq!(groups.0.len(), MOST);
        assert!(groups.leader("t", 299).is_some() && groups.leader("t", 0).is_none());
        groups.forget("t");
        assert!(groups.0.is_empty());
    }

    #[test]
    fn ends_are_found_in_every_container_but_those_that_did_their_work() {
        let crashed = |code: i32, second: u32| json!({"terminated": {"exitCode": code, "reason": "Error", "finishedAt": format!("2026-03-01T09:55:0{second}Z")}});
        let pod = |status: serde_json::Value| -> PodStatusView {
            serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap()
        };
        for (status, want) in [
            (json!({"containerStatuses": [{"name": "main", "state": {"running": {}}}]}), None),
            (json!({"initContainerStatuses": [{"name": "fetch", "state": crashed(0, 1)}]}), None),
            (json!({"initContainerStatuses": [{"name": "fetch", "lastState": crashed(1, 1), "state": crashed(0, 2)}]}), Some("fetch")),
            (json!({"containerStatuses": [{"name": "main", "state": crashed(0, 1)}]}), Some("main")),
            (json!({"containerStatuses": [{"name": "a", "state": crashed(1, 3)}, {"name": "b", "lastState": crashed(1, 2)}]}), Some("b")),
        ] {
            assert_eq!(End::of(&pod(status.clone())).map(|end| end.container).as_deref(), want, "{status}");
        }
        let mut going = pod(json!({"containerStatuses": [{"name": "main", "state": crashed(137, 1)}]}));
        going.metadata.deletion_timestamp = Some(at(0));
        assert_eq!(End::of(&going), None);
    }
}
