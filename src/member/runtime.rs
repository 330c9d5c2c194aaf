//! The running tasks of one member.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::apply::Writer;
use super::cache::Cache;
use super::discovery::{self, Discovery};
use super::follow::Follow;
use super::health::{Health, Probe};
use super::lean::Kind;
use super::notify::Corrected;
use super::probe;
use super::queue::{Next, Queue, Verdict};
use super::{Credential, Event, Fact, MemberView, Observed, Outcome, Settings, Task, client};
use crate::api::condition::Truth;
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;
use crate::capacity::ServiceKey;
use crate::telemetry::metrics::Backlog;

/// How often versions and kinds of a member are looked at while nothing else asks for it.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(300);
/// Rounds of events are at least this many times as far apart as making a snapshot takes.
const SNAPSHOT_SHARE: u32 = 10;

/// Pause before the hub is told that the tasks of a member have failed, and starts them anew.
const RESTART: Duration = Duration::from_secs(1);

/// One member: its probes, watches and writes run until [`Member::stop`] or until the last handle is dropped. Should one
/// of them panic, all end, and the hub is told: half a member would go on looking well.
#[derive(Debug)]
pub struct Member {
    shared: Arc<Shared>,
    shutdown: CancellationToken,
    tracker: TaskTracker,
}

/// What the tasks of a member have in common.
#[derive(Debug)]
struct Shared {
    name: String,
    settings: Settings,
    credential: Credential,
    cache: Arc<Cache>,
    health: Mutex<Health>,
    discovery: Mutex<Discovery>,
    writer: Writer,
    queue: Mutex<Queue>,
    queue_changed: Notify,
    /// Counts how often the member was well again.
    returns: watch::Sender<u64>,
    /// Writes that run.
    writes: TaskTracker,
}

impl Member {
    /// Starts everything for one member and returns at once: nothing here waits for the member. It must be called
    /// inside a tokio runtime.
    ///
    /// # Errors
    /// When no client can be made from the credential.
    pub fn start(
        name: impl Into<String>,
        credential: &Credential,
        settings: Settings,
        events: mpsc::Sender<Event>,
    ) -> Result<Arc<Self>, kube::Error> {
        let client = client::connect(credential, &settings.limits, settings.metrics.calls())?;
        let cache = Arc::new(Cache::default());
        let shared = Arc::new(Shared {
            name: name.into(),
            credential: credential.clone(),
            health: Mutex::new(Health::new(settings.lost_after, settings.back_after, credential.expires_at())),
            discovery: Mutex::default(),
            writer: Writer::new(client.clone(), cache.clone(), &settings),
            queue: Mutex::new(Queue::new(settings.retry)),
            queue_changed: Notify::new(),
            returns: watch::Sender::new(0),
            writes: TaskTracker::new(),
            cache,
            settings,
        });
        let member = Self { shared: shared.clone(), shutdown: CancellationToken::new(), tracker: TaskTracker::new() };
        let (served, lws_served) = watch::channel(false);
        member.spawn(&events, probing(shared.clone(), client.clone(), served));
        let follow = Follow {
            client,
            cache: shared.cache.clone(),
            hub_id: shared.settings.hub_id.clone(),
            returned: shared.returns.subscribe(),
            metrics: shared.settings.metrics.clone(),
        };
        for watch in follow.all(&lws_served) {
            member.spawn(&events, watch);
        }
        member.spawn(&events, ageing(shared.clone()));
        member.spawn(&events, writing(shared.clone()));
        member.spawn(&events.clone(), telling(shared, events));
        member.tracker.close();
        Ok(Arc::new(member))
    }

    fn spawn(&self, events: &mpsc::Sender<Event>, task: impl Future<Output = ()> + Send + 'static) {
        let (shutdown, events, name) = (self.shutdown.clone(), events.clone(), self.shared.name.clone());
        self.tracker.spawn(async move {
            let ended = shutdown.run_until_cancelled(AssertUnwindSafe(task).catch_unwind()).await;
            if let Some(Err(_)) = ended {
                tracing::error!(member = name, "a task panicked, which is a mistake in this program; the member is connected anew");
                shutdown.cancel();
                tokio::time::sleep(RESTART).await;
                // Without a reader the hub is stopping.
                let _ = events.send(Event::Member(name)).await;
            }
        });
    }

    /// Name of the `MemberCluster`.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// What is known of the member now.
    pub fn view(&self) -> MemberView {
        let view = self.shared.view(Timestamp::now());
        if self.is_running() {
            return view;
        }
        let stopped = || Fact::unknown(Reason::Reconciling, "the member is being connected anew");
        MemberView { ready: stopped(), reachable: stopped(), synced: stopped(), capacity_known: false, ..view }
    }

    /// Whether its tasks run: not after [`Member::stop`], nor after a failure of one of them.
    pub fn is_running(&self) -> bool {
        !self.shutdown.is_cancelled()
    }

    /// What the member shows of a service whose workload is to be of this kind. `None` while workloads of the kind there
    /// were never listed; no workload means that the member surely holds none.
    pub fn observe(&self, service: &ServiceKey, uid: &str, kind: WorkloadKind) -> Option<Observed> {
        self.shared.cache.observe(service, uid, kind, Timestamp::now())
    }

    /// Puts a task in the queue; it replaces the one of the same service. One that asks for the same as before only
    /// checks that the member still holds it, and doesn't cut a pause after a failure short.
    pub fn submit(&self, task: Task) {
        self.submit_since(task, Instant::now());
    }

    /// [`Member::submit`] of what follows from a change that the hub saw at this time.
    pub fn submit_since(&self, task: Task, seen: Instant) {
        let uid = task.uid().to_owned();
        let mut queue = self.shared.queue.lock();
        queue.submit(task, Instant::now());
        queue.backdate(&uid, seen);
        drop(queue);
        self.shared.queue_changed.notify_one();
    }

    /// What is to be written to the member, and the age of the oldest change that it has not accepted yet.
    pub fn backlog(&self) -> Backlog {
        self.shared.queue.lock().backlog(Instant::now())
    }

    /// What came of the newest task of a service; `None` while it waits or runs for the first time.
    pub fn outcome(&self, uid: &str) -> Option<Outcome> {
        self.shared.queue.lock().outcome(uid).cloned()
    }

    /// Forgets the task and the outcome of a service that is gone.
    pub fn forget(&self, uid: &str) {
        self.shared.queue.lock().forget(uid);
        self.shared.writer.forget(uid);
    }

    /// Takes up no more writes, waits for those that run, and then does as [`Member::stop`].
    pub async fn close(&self) {
        self.shared.queue.lock().close();
        self.shared.writes.close();
        self.shared.writes.wait().await;
        self.stop().await;
    }

    /// Ends all tasks of the member and waits for them.
    pub async fn stop(&self) {
        self.shutdown.cancel();
        self.tracker.wait().await;
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Shared {
    fn note_accepted(&self, task: &Task, version: u64, verdict: &Verdict) {
        if let Some(seen) = self.queue.lock().accepted(task.uid(), version, verdict)
            && matches!(task, Task::Apply { .. })
        {
            self.settings.metrics.applied(seen.elapsed());
        }
    }

    fn view(&self, now: Timestamp) -> MemberView {
        let health = self.health.lock().clone();
        let discovery = self.discovery.lock().clone();
        let shown_version = discovery.shown_version();
        let synced = self.cache.synced(now);
        let capacity_known = self.cache.capacity_known(now);
        MemberView {
            ready: ready(&health, &synced, capacity_known),
            refused_since: health.refused_since(),
            reachable: health.reachable,
            credential_valid: health.credential_valid,
            synced,
            leader_worker_set: discovery.leader_worker_set,
            leader_worker_set_version: shown_version,
            cluster_uid: discovery.cluster_uid,
            leader_worker_set_release: discovery.leader_worker_set_release,
            kubernetes_version: discovery.kubernetes_version,
            credential: self.credential.status(now),
            snapshot: self.cache.snapshot(),
            capacity_known,
            workloads_refused: self.cache.refused(Kind::Deployment, now),
            leader_worker_sets_refused: self.cache.refused(Kind::LeaderWorkerSet, now),
            last_seen: health.last_seen,
        }
    }
}

/// Whether the member can take services, and if not, the first thing that stands in the way.
fn ready(health: &Health, synced: &Fact, capacity_known: bool) -> Fact {
    // Of a credential nothing is known while the member doesn't answer: that isn't what stands in the way.
    let refused = Some(&health.credential_valid).filter(|credential| credential.truth == Truth::False);
    for fact in refused.into_iter().chain([&health.reachable, &health.credential_valid]) {
        if !fact.holds() {
            return fact.clone();
        }
    }
    if let Some(text) = &health.forbidden {
        return Fact::no(Reason::Forbidden, text.as_str());
    }
    if !capacity_known {
        return if synced.holds() { Fact::unknown(Reason::CapacityUnknown, "nodes and pods are not followed now") } else { synced.clone() };
    }
    Fact::yes(Reason::Connected, "")
}

/// Probes for ever, and tells whether `LeaderWorkerSets` are served.
async fn probing(shared: Arc<Shared>, client: Client, lws_served: watch::Sender<bool>) {
    let mut discovered: Option<Instant> = None;
    loop {
        let (probe, uid) = probe::probe(&client).await;
        let changed = shared.health.lock().observe(&probe, Timestamp::now());
        if let Some(uid) = uid
            && shared.discovery.lock().cluster_uid.replace(uid.clone()) != Some(uid)
        {
            shared.cache.notifier.member();
        }
        if changed.any {
            shared.cache.notifier.member();
        }
        if changed.returned || changed.well_again {
            shared.returns.send_modify(|count| *count += 1);
            shared.queue.lock().poke_all(Instant::now());
            shared.queue_changed.notify_one();
        }
        if changed.returned {
            discovered = None;
        }
        // What an API server serves is complete once it says that it is ready.
        let is_ready = shared.health.lock().reachable.holds() && probe == Probe::Alive;
        if is_ready && discovered.is_none_or(|at| at.elapsed() >= DISCOVERY_INTERVAL) {
            let before = shared.discovery.lock().clone();
            let after = discovery::discover(&client, before.clone()).await;
            let served = after.leader_worker_set.truth;
            if served != Truth::Unknown {
                shared.cache.served(Kind::LeaderWorkerSet, served == Truth::True);
                shared.cache.served(Kind::StatefulSet, served == Truth::True);
                lws_served.send_replace(served == Truth::True);
            }
            shared.cache.set_release(after.leader_worker_set_release);
            discovered = (!after.in_doubt).then(Instant::now);
            if before != after {
                *shared.discovery.lock() = after;
                shared.cache.notifier.member();
            }
        }
        let pause = shared.health.lock().pause(shared.settings.probe_interval);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shared.cache.kind_missing.notified() => discovered = None,
        }
    }
}

/// How often it is looked whether what is remembered of groups is still to be told.
const AGEING: Duration = Duration::from_secs(5);

/// Forgets for ever.
async fn ageing(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(AGEING).await;
        shared.cache.age(Timestamp::now());
    }
}

/// Carries out tasks for ever, several at once. While the member is out of reach they are parked.
async fn writing(shared: Arc<Shared>) {
    let mut running: JoinSet<()> = JoinSet::new();
    loop {
        while let Some(ended) = running.try_join_next() {
            pass_on(ended);
        }
        let mut wake_at = None;
        if running.len() < shared.settings.workers.max(1) && shared.health.lock().reachable.holds() {
            let (next, begun) = {
                let mut queue = shared.queue.lock();
                (queue.next(Instant::now()), shared.writes.token())
            };
            match next {
                Next::Run(task, version) => {
                    let shared = shared.clone();
                    running.spawn(async move {
                        let _begun = begun;
                        let verdict = shared.writer.carry_out(&task).await;
                        shared.note_accepted(&task, version, &verdict);
                        if shared.queue.lock().finish(task.uid(), version, verdict, Instant::now()) {
                            shared.cache.notifier.services([task.service().clone()]);
                        }
                        shared.queue_changed.notify_one();
                    });
                    continue;
                }
                Next::At(at) => wake_at = Some(at),
                Next::Idle => {}
            }
        }
        let timer = async {
            match wake_at {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.queue_changed.notified() => {}
            () = timer => {}
            Some(ended) = running.join_next(), if !running.is_empty() => pass_on(ended),
        }
    }
}

/// A write that panicked never tells the queue that it ended.
fn pass_on(ended: Result<(), JoinError>) {
    if let Some(panic) = ended.err().and_then(|error| error.try_into_panic().ok()) {
        resume_unwind(panic);
    }
}

/// What one write sets off in the member arrives within this time as a rule, and is told together.
const GATHER: Duration = Duration::from_millis(5);

/// Least time between two rounds of events. What happens to one service is told sooner than what happens to the
/// member's capacity: people wait for the one, and the other costs a snapshot.
const ROUND: Duration = Duration::from_millis(20);

/// Turns changes into snapshots and events for ever: the first of a burst at once, the rest of it in rounds.
async fn telling(shared: Arc<Shared>, events: mpsc::Sender<Event>) {
    let notifier = &shared.cache.notifier;
    let (mut next_round, mut next_snapshot) = (Instant::now(), Instant::now());
    loop {
        let snapshot_due = async {
            if notifier.has_changed_capacity() {
                tokio::time::sleep_until(next_snapshot.into()).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = notifier.changed() => {}
            () = snapshot_due => {}
        }
        tokio::time::sleep_until(next_round.max(Instant::now() + GATHER).into()).await;
        let start = Instant::now();
        let changes = notifier.take(start >= next_snapshot);
        if changes.capacity || changes.member {
            shared.cache.renew_snapshot();
            next_snapshot = Instant::now() + shared.settings.coalesce.max(start.elapsed() * SNAPSHOT_SHARE);
        }
        if !changes.gone.is_empty() {
            let mut queue = shared.queue.lock();
            queue.poke(&changes.gone, Instant::now());
            drop(queue);
            shared.queue_changed.notify_one();
        }
        let name = || shared.name.clone();
        let about_member = (changes.member || changes.capacity).then(|| Event::Member(name()));
        let room = changes.room.then(|| Event::Room(name()));
        let corrected = changes.corrected.into_iter().map(|Corrected { service, object, recreated }| Event::Corrected {
            member: name(),
            service,
            object,
            recreated,
        });
        for event in changes.services.into_iter().map(Event::Service).chain(about_member).chain(room).chain(corrected) {
            if events.send(event).await.is_err() {
                // Nobody listens any more: the hub is about to stop this member.
                return;
            }
        }
        next_round = Instant::now() + ROUND;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::parse_kubeconfig;

    #[tokio::test]
    async fn a_panic_of_one_task_ends_the_member_and_tells_the_hub() {
        // Nothing listens there: the member is merely unreachable until a task panics.
        let kubeconfig = "{clusters: [{name: m, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: m, user: {token: t}}], \
                          contexts: [{name: m, context: {cluster: m, user: m}}]}";
        let credential = parse_kubeconfig(kubeconfig.as_bytes()).unwrap();
        let (events, mut inbox) = mpsc::channel(64);
        let member = Member::start("m", &credential, Settings::new("hub"), events.clone()).unwrap();
        assert!(member.is_running());

        let task = async { panic!("odd object") };
        member.tracker.reopen();
        member.spawn(&events, task);
        member.tracker.close();
        member.shutdown.cancelled().await;
        let view = member.view();
        assert!(!view.capacity_known && !view.reachable.holds() && !view.ready.holds());
        member.tracker.wait().await;
        let mut told = Vec::new();
        while let Ok(event) = inbox.try_recv() {
            told.push(event);
        }
        assert_eq!(told.last(), Some(&Event::Member("m".to_owned())));
    }

    #[test]
    fn the_first_thing_that_stands_in_the_way_is_told() {
        let silent = || Probe::Silent("connection refused".to_owned());
        let unauthorized = || Probe::Unauthorized("no such user".to_owned());
        for (probes, truth, reason) in [
            (vec![], Truth::Unknown, Reason::Reconciling),
            (vec![silent()], Truth::Unknown, Reason::Unreachable),
            (vec![silent(), silent(), silent()], Truth::False, Reason::Unreachable),
            (vec![unauthorized()], Truth::False, Reason::CredentialInvalid),
            (vec![unauthorized(), silent(), silent(), silent()], Truth::False, Reason::CredentialInvalid),
            (vec![Probe::Alive], Truth::True, Reason::Connected),
            (vec![Probe::Alive, silent(), silent(), silent()], Truth::False, Reason::Unreachable),
        ] {
            let mut health = Health::new(Duration::from_secs(30), Duration::from_secs(10), None);
            for (index, probe) in probes.iter().enumerate() {
                health.observe(probe, Timestamp::from_second(1_800_000_000 + 15 * index as i64).unwrap());
            }
            let fact = ready(&health, &Fact::yes(Reason::Synced, ""), true);
            assert_eq!((fact.truth, fact.reason), (truth, reason), "{probes:?}");
        }
    }
}
