//! What is to be written to a member: one task a service, the newest only, and what came of it. Pure; `runtime` runs it.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use super::backoff::Backoff;
use super::task::{Outcome, Task};
use crate::capacity::ServiceKey;
use crate::telemetry::metrics::Backlog;

/// Failures in a row without a verdict before they are told as the service's outcome: until then the member's own
/// condition tells enough.
const SILENT_TRIES: u32 = 3;

/// What carrying out a task came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// There is nothing more to do.
    Done(Outcome),
    /// It holds for now; look again after this time.
    Again(Outcome, Duration),
    /// It failed; try again later, not before this time if the member named one.
    Failed(Outcome, Option<Duration>),
    /// The member did not answer, or nothing that counts at once.
    Silent(Outcome),
}

#[derive(Debug)]
struct Entry {
    task: Task,
    /// Counts the tasks of the service, to tell whether a newer one came while one ran.
    version: u64,
    /// When it is to be carried out; `None` while nothing is to be done.
    due: Option<Instant>,
    running: bool,
    backoff: Backoff,
    outcome: Option<Outcome>,
    /// When the change that the member has not accepted yet was seen.
    waits_since: Option<Instant>,
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum Next {
    /// Carry this out, and tell [`Queue::finish`].
    Run(Task, u64),
    /// Nothing before then.
    At(Instant),
    /// Nothing until something is submitted or finished.
    Idle,
}

/// The tasks of one member.
#[derive(Debug)]
pub(super) struct Queue {
    entries: HashMap<String, Entry>,
    /// Due entries in the order of their times.
    due: BTreeSet<(Instant, String)>,
    retry: (Duration, Duration),
    closed: bool,
}

impl Queue {
    /// Pauses after failures grow within `retry`.
    pub(super) fn new(retry: (Duration, Duration)) -> Self {
        Self { entries: HashMap::new(), due: BTreeSet::new(), retry, closed: false }
    }

    /// Takes a task. One that asks for the same as the one before is carried out again, as a check, unless the one
    /// before is being carried out, waits to be tried again, or deleted everything.
    pub(super) fn submit(&mut self, task: Task, now: Instant) {
        let uid = task.uid().to_owned();
        let Some(entry) = self.entries.get_mut(&uid) else {
            let backoff = Backoff::new(self.retry.0, self.retry.1);
            let waits_since = Some(now);
            self.entries.insert(uid.clone(), Entry { task, version: 0, due: None, running: false, backoff, outcome: None, waits_since });
            return self.schedule(&uid, Some(now));
        };
        if entry.task.same_as(&task) {
            if !entry.running && entry.due.is_none() && entry.outcome != Some(Outcome::Deleted) {
                self.schedule(&uid, Some(now));
            }
            return;
        }
        // An outcome of applying says nothing about deleting, nor the other way round.
        if matches!((&entry.task, &task), (Task::Apply { .. }, Task::Delete { .. }) | (Task::Delete { .. }, Task::Apply { .. })) {
            entry.outcome = None;
        }
        entry.task = task;
        entry.waits_since.get_or_insert(now);
        entry.version += 1;
        entry.backoff.reset();
        if !entry.running {
            self.schedule(&uid, Some(now));
        }
    }

    /// What was submitted last follows from a change that was seen at this time.
    pub(super) fn backdate(&mut self, uid: &str, seen: Instant) {
        if let Some(waits_since) = self.entries.get_mut(uid).and_then(|entry| entry.waits_since.as_mut()) {
            *waits_since = seen.min(*waits_since);
        }
    }

    /// Whether what came of a task is that the member accepted a change, and when that was seen. Each is told once.
    pub(super) fn accepted(&mut self, uid: &str, version: u64, verdict: &Verdict) -> Option<Instant> {
        let entry = self.entries.get_mut(uid).filter(|entry| entry.version == version)?;
        match verdict {
            Verdict::Done(_) | Verdict::Again(..) => entry.waits_since.take(),
            Verdict::Failed(..) | Verdict::Silent(_) => None,
        }
    }

    /// What waits, and the age of the oldest change that the member has not accepted yet.
    pub(super) fn backlog(&self, now: Instant) -> Backlog {
        let oldest = self.entries.values().filter_map(|entry| entry.waits_since).min();
        Backlog { items: self.due.len(), oldest: oldest.map(|since| now.saturating_duration_since(since)).unwrap_or_default() }
    }

    /// Nothing is to be done any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// What the tasks of these services wait for may have happened: they are tried again at once. A service goes by its
    /// name here, since a new one waits for what is left of one before it.
    pub(super) fn poke(&mut self, services: &BTreeSet<ServiceKey>, now: Instant) {
        let waits = |entry: &Entry| entry.due.is_some_and(|due| due > now) && services.contains(entry.task.service());
        let waiting: Vec<String> = self.entries.iter().filter(|(_, entry)| waits(entry)).map(|(uid, _)| uid.clone()).collect();
        for uid in waiting {
            self.schedule(&uid, Some(now));
        }
    }

    /// The member came back: all that wait are tried again at once.
    pub(super) fn poke_all(&mut self, now: Instant) {
        let waiting: Vec<String> = self.due.iter().filter(|(due, _)| *due > now).map(|(_, uid)| uid.clone()).collect();
        for uid in waiting {
            self.schedule(&uid, Some(now));
        }
    }

    /// What is to be done next; the longest due first.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        match self.due.first() {
            _ if self.closed => Next::Idle,
            None => Next::Idle,
            Some((due, _)) if *due > now => Next::At(*due),
            Some((_, uid)) => {
                let uid = uid.clone();
                self.schedule(&uid, None);
                match self.entries.get_mut(&uid) {
                    Some(entry) => {
                        entry.running = true;
                        Next::Run(entry.task.clone(), entry.version)
                    }
                    None => Next::Idle,
                }
            }
        }
    }

    /// A task was carried out. Returns whether the outcome of the service changed.
    pub(super) fn finish(&mut self, uid: &str, version: u64, verdict: Verdict, now: Instant) -> bool {
        let Some(entry) = self.entries.get_mut(uid) else { return false };
        entry.running = false;
        if entry.version != version {
            // What came of an older task is no news; the newer one is to be carried out.
            self.schedule(uid, Some(now));
            return false;
        }
        let (outcome, due) = match verdict {
            Verdict::Done(outcome) => {
                entry.backoff.reset();
                (Some(outcome), None)
            }
            Verdict::Again(outcome, after) => {
                entry.backoff.reset();
                (Some(outcome), Some(after))
            }
            Verdict::Failed(outcome, after) => {
                let pause = entry.backoff.next().max(after.unwrap_or_default().min(self.retry.1));
                (Some(outcome), Some(pause))
            }
            Verdict::Silent(outcome) => {
                let pause = entry.backoff.next();
                ((entry.backoff.tries() >= SILENT_TRIES).then_some(outcome), Some(pause))
            }
        };
        let news =
            outcome.map(|outcome| since_first(outcome, entry.outcome.as_ref())).filter(|outcome| entry.outcome.as_ref() != Some(outcome));
        let changed = news.is_some();
        entry.outcome = news.or(entry.outcome.take());
        self.schedule(uid, due.map(|pause| now + pause));
        changed
    }

    /// What came of the newest task of a service.
    pub(super) fn outcome(&self, uid: &str) -> Option<&Outcome> {
        self.entries.get(uid)?.outcome.as_ref()
    }

    /// Drops the task and the outcome of a service.
    pub(super) fn forget(&mut self, uid: &str) {
        self.schedule(uid, None);
        self.entries.remove(uid);
    }

    fn schedule(&mut self, uid: &str, due: Option<Instant>) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        if let Some(before) = entry.due {
            self.due.remove(&(before, uid.to_owned()));
        }
        entry.due = due;
        if let Some(due) = due {
            self.due.insert((due, uid.to_owned()));
        }
    }
}

/// A failure that is the same as before keeps its first time, so that equal trouble is an equal outcome.
fn since_first(outcome: Outcome, before: Option<&Outcome>) -> Outcome {
    match (outcome, before) {
        (Outcome::Failed { reason, message, object, applied, .. }, Some(Outcome::Failed { reason: r, message: m, at, object: o, .. }))
            if reason == *r && message == *m && object == *o =>
        {
            Outcome::Failed { reason, message, at: *at, object, applied }
        }
        (outcome, _) => outcome,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use jiff::Timestamp;
    use serde_json::json;

    use super::super::task::Applied;
    use super::*;
    use crate::api::odin::ObjectRef;
    use crate::api::reason::Reason;
    use crate::render::Rendered;
    use crate::workload::{Owner, Workload, build};

    /// A task of service `uid`; tasks with different generations ask for different things.
    fn task(uid: &str, generation: &str) -> Task {
        Task::Apply {
            service: ServiceKey::new("team", uid),
            uid: uid.to_owned(),
            generation: generation.parse().unwrap(),
            workload: workload(),
            replicas: 1,
            namespace_labels: Arc::default(),
        }
    }

    fn workload() -> Arc<Workload> {
        let none = BTreeMap::new();
        let owner =
            Owner { name: "chat", namespace: "team", uid: "u", generation: 1, labels: &none, annotations: &none, pools: &[], hub_id: "h" };
        let spec = json!({"template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}});
        let rendered = Rendered { spec, sources: Vec::new(), hash: String::new(), warnings: Vec::new() };
        Arc::new(build(&owner, &rendered).unwrap())
    }

    fn failed(message: &str, second: i64) -> Outcome {
        Outcome::Failed {
            reason: Reason::ApplyFailed,
            message: message.to_owned(),
            at: Timestamp::from_second(second).unwrap(),
            object: ObjectRef::default(),
            applied: None,
        }
    }

    fn applied(generation: i64) -> Outcome {
        Outcome::Applied(Applied { generation, object_generation: 1, object_uid: "o".into(), hash: "h".into(), replicas: 1 })
    }

    fn queue() -> Queue {
        Queue::new((Duration::from_secs(1), Duration::from_secs(60)))
    }

    fn run(queue: &mut Queue, now: Instant) -> Option<(String, String, u64)> {
        match queue.next(now) {
            Next::Run(Task::Apply { uid, generation, .. }, version) => Some((uid, generation.to_string(), version)),
            _ => None,
        }
    }

    #[test]
    fn the_newest_task_of_a_service_wins_and_one_runs_at_a_time() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.submit(task("a", "1"), now);
        queue.submit(task("a", "2"), now);
        let (_, name, version) = run(&mut queue, now).unwrap();
        assert_eq!(name, "2");
        queue.submit(task("a", "3"), now);
        queue.submit(task("a", "4"), now);
        assert!(run(&mut queue, now).is_none(), "one of this service runs");
        queue.submit(task("b", "1"), now);
        assert_eq!(run(&mut queue, now).unwrap().0, "b");
        assert!(!queue.finish("a", version, Verdict::Done(applied(2)), now), "outcome of an older task");
        assert_eq!(queue.outcome("a"), None);
        assert_eq!(run(&mut queue, now).unwrap().1, "4");
    }

    #[test]
    fn an_equal_task_is_a_check_but_does_not_cut_a_pause_short() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.submit(task("a", "1"), now);
        let (_, _, version) = run(&mut queue, now).unwrap();
        queue.submit(task("a", "1"), now);
        assert!(queue.finish("a", version, Verdict::Failed(failed("no", 1), None), now));
        queue.submit(task("a", "1"), now);
        assert!(run(&mut queue, now).is_none(), "waits");
        assert!(run(&mut queue, now + Duration::from_secs(1)).is_some());
        assert!(queue.finish("a", version, Verdict::Done(applied(1)), now));
        assert!(run(&mut queue, now).is_none(), "done");
        queue.submit(task("a", "1"), now);
        assert!(run(&mut queue, now).is_some(), "check");
        assert!(!queue.finish("a", version, Verdict::Done(applied(1)), now), "no news");
    }

    #[test]
    fn a_newer_task_cuts_a_pause_short() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.submit(task("a", "1"), now);
        let (_, _, version) = run(&mut queue, now).unwrap();
        queue.finish("a", version, Verdict::Failed(failed("no", 1), Some(Duration::from_secs(3600))), now);
        assert!(run(&mut queue, now + Duration::from_secs(59)).is_none(), "the member's pause");
        queue.submit(task("a", "2"), now);
        assert!(run(&mut queue, now).is_some());
    }

    #[test]
    fn pauses_of_one_service_harm_no_other_and_grow_to_the_cap() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.submit(task("a", "1"), now);
        let mut at = now;
        for _ in 0..20 {
            let (_, _, version) = run(&mut queue, at).expect("due");
            queue.finish("a", version, Verdict::Failed(failed("no", 1), Some(Duration::from_secs(3600))), at);
            at += Duration::from_secs(60);
        }
        queue.submit(task("b", "1"), at);
        assert!(matches!(queue.next(at), Next::Run(..)));
    }

    #[test]
    fn equal_trouble_is_told_once_with_its_first_time() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.submit(task("a", "1"), now);
        let mut news = Vec::new();
        for (second, message) in [(1, "no"), (2, "no"), (3, "other")] {
            let (_, _, version) = run(&mut queue, now + Duration::from_secs(second * 1000)).unwrap();
            news.push(queue.finish("a", version, Verdict::Failed(failed(message, second as i64), None), now));
        }
        assert_eq!(news, [true, false, true]);
        assert_eq!(queue.outcome("a"), Some(&failed("other", 3)));
    }

    #[test]
    fn silence_is_told_when_it_lasts() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.submit(task("a", "1"), now);
        for want in [false, false, true, false] {
            let (_, _, version) = run(&mut queue, now + Duration::from_secs(1000)).unwrap();
            assert_eq!(queue.finish("a", version, Verdict::Silent(failed("no answer", 1)), now), want);
        }
    }

    #[test]
    fn what_waits_is_tried_again_when_the_member_returns() {
        let (mut queue, now) = (queue(), Instant::now());
        for uid in ["a", "b"] {
            queue.submit(task(uid, "1"), now);
            let (_, _, version) = run(&mut queue, now).unwrap();
            queue.finish(uid, version, Verdict::Failed(failed("no", 1), Some(Duration::from_secs(60))), now);
        }
        assert!(matches!(queue.next(now), Next::At(_)));
        queue.poke(&BTreeSet::from([ServiceKey::new("team", "b"), ServiceKey::new("team", "unknown")]), now);
        assert_eq!(run(&mut queue, now).unwrap().0, "b");
        queue.poke_all(now);
        assert_eq!(run(&mut queue, now).unwrap().0, "a");
    }

    #[test]
    fn what_was_deleted_is_not_deleted_again() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.submit(task("a", "1"), now);
        let (_, _, version) = run(&mut queue, now).unwrap();
        queue.finish("a", version, Verdict::Done(Outcome::Deleted), now);
        queue.submit(task("a", "1"), now);
        assert!(matches!(queue.next(now), Next::Idle));
        queue.forget("a");
        assert_eq!(queue.outcome("a"), None);
        queue.submit(task("a", "1"), now);
        assert!(run(&mut queue, now).is_some());
    }

    #[test]
    fn a_change_waits_until_the_member_accepts_it_once() {
        let (mut queue, seen) = (queue(), Instant::now());
        let now = seen + Duration::from_secs(3);
        let waits = |items, seconds| Backlog { items, oldest: Duration::from_secs(seconds) };
        queue.submit(task("a", "1"), now);
        queue.backdate("a", seen);
        assert_eq!(queue.backlog(now), waits(1, 3));
        let (_, _, version) = run(&mut queue, now).unwrap();
        assert_eq!(queue.backlog(now), waits(0, 3), "it runs");
        let refused = Verdict::Failed(failed("no", 1), None);
        assert_eq!(queue.accepted("a", version, &refused), None);
        queue.finish("a", version, refused, now);

        queue.submit(task("a", "2"), now);
        queue.backdate("a", now);
        assert_eq!(queue.backlog(now), waits(1, 3), "nothing was accepted since the first change");
        assert_eq!(queue.accepted("a", version, &Verdict::Done(applied(1))), None, "of an older task");
        let (_, _, version) = run(&mut queue, now).unwrap();
        assert_eq!(queue.accepted("a", version, &Verdict::Done(applied(2))), Some(seen));
        queue.finish("a", version, Verdict::Done(applied(2)), now);

        queue.submit(task("a", "2"), now);
        queue.backdate("a", seen);
        assert_eq!(queue.backlog(now), waits(1, 0), "a check is no change");
        assert_eq!(queue.accepted("a", version, &Verdict::Done(applied(2))), None);
    }

    #[test]
    fn what_is_closed_gives_out_nothing() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.submit(task("a", "1"), now);
        queue.close();
        assert!(matches!(queue.next(now), Next::Idle));
    }

    #[test]
    fn forgetting_while_it_runs_is_safe() {
        let (mut queue, now) = (queue(), Instant::now());
        queue.submit(task("a", "1"), now);
        let (_, _, version) = run(&mut queue, now).unwrap();
        queue.forget("a");
        assert!(!queue.finish("a", version, Verdict::Done(Outcome::Deleted), now));
        assert!(matches!(queue.next(now), Next::Idle));
    }
}
