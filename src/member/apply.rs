//! Carrying out the task of a service in one member: its workload, then its Service; or none of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;

use super::Settings;
use super::cache::Cache;
use super::lean::Kind;
use super::namespace;
use super::notify::Corrected;
use super::object::{Correction, Editor, Record, Step, Stop, TRIES, Target, object_ref, step};
use super::queue::Verdict;
use super::task::{Applied, Outcome, Task};
use crate::api::odin::{ObjectRef, WorkloadKind};
use crate::api::reason::Reason;
use crate::capacity::ServiceKey;
use crate::workload::Workload;

/// Writes to one member.
#[derive(Debug)]
pub(super) struct Writer {
    editor: Editor,
    cache: Arc<Cache>,
    protected: Vec<String>,
    drift_interval: Duration,
    /// By UID of the service.
    records: Mutex<HashMap<String, BTreeMap<Kind, Record>>>,
}

/// What a task to apply asks for.
struct Share<'a> {
    service: &'a ServiceKey,
    uid: &'a str,
    generation: i64,
    workload: &'a Workload,
    replicas: u32,
    namespace_labels: &'a BTreeMap<String, String>,
}

/// An object that the member holds.
struct Held {
    record: Record,
    /// When a change by others may be put back, if there is one.
    again: Option<Duration>,
}

impl Writer {
    pub(super) fn new(client: Client, cache: Arc<Cache>, settings: &Settings) -> Self {
        Self {
            editor: Editor::new(client, &settings.hub_id),
            cache,
            protected: settings.protected_namespaces.clone(),
            drift_interval: settings.drift_interval,
            records: Mutex::default(),
        }
    }

    /// Carries out a task.
    pub(super) async fn carry_out(&self, task: &Task) -> Verdict {
        match task {
            Task::Apply { service, uid, generation, workload, replicas, namespace_labels } => {
                let share = Share { service, uid, generation: *generation, workload, replicas: *replicas, namespace_labels };
                match self.apply(&share).await {
                    Ok((applied, None)) => Verdict::Done(Outcome::Applied(applied)),
                    Ok((applied, Some(again))) => Verdict::Again(Outcome::Applied(applied), again),
                    Err(failed) => failed.verdict(),
                }
            }
            Task::Delete { service, uid } => match self.delete(service, uid).await {
                Ok(()) => Verdict::Done(Outcome::Deleted),
                Err(failed) => failed.verdict(),
            },
        }
    }

    /// Forgets a service that is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.records.lock().remove(uid);
    }

    /// Makes the member hold the workload; then one of the other kind may go, which served until here, and must not keep
    /// its devices should the Service be refused. Last comes the Service, which leads to pods of either kind.
    async fn apply(&self, share: &Share<'_>) -> Result<(Applied, Option<Duration>), Failed> {
        let (workload, uid) = (share.workload, share.uid);
        let manifest = workload.manifest(share.replicas);
        let target = |kind, name, manifest, rival| Target {
            kind,
            namespace: &workload.namespace,
            name,
            manifest,
            print: Target::print_of(manifest),
            service_uid: uid,
            namespace_labels: share.namespace_labels,
            rival,
        };
        let rival = (workload.kind == WorkloadKind::LeaderWorkerSet).then_some(Kind::Service);
        let first = target(workload.kind.into(), workload.name.as_str(), &manifest, rival);
        let held = self.hold(share.service, &first).await.map_err(|stop| Failed { stop, object: first.object(), applied: None })?;
        let applied = Applied {
            generation: share.generation,
            object_generation: held.record.stamp.generation,
            object_uid: held.record.stamp.uid,
            hash: workload.hash.clone(),
            replicas: share.replicas,
        };
        let failed = |stop, object| Failed { stop, object, applied: Some(applied.clone()) };
        self.drop_previous(share).await.map_err(|(stop, object)| failed(stop, object))?;
        let kube = workload.service();
        let second = target(Kind::Service, kube.name.as_str(), &kube.object, Some(Kind::LeaderWorkerSet));
        let reached = self.hold(share.service, &second).await.map_err(|stop| failed(stop, second.object()))?;
        let again = held.again.into_iter().chain(reached.again).min();
        Ok((applied, again))
    }

    /// Makes the member hold one object, if it doesn't as far as the cache knows.
    async fn hold(&self, service: &ServiceKey, target: &Target<'_>) -> Result<Held, Stop> {
        let (uid, kind) = (target.service_uid, target.kind);
        let record = self.records.lock().get(uid).and_then(|records| records.get(&kind)).cloned();
        let live = self.cache.live(kind, uid, target.namespace, target.name, &target.marks());
        let known = self.cache.knows(kind);
        let next = step(record.as_ref(), &target.print, live.as_ref(), known, self.drift_interval, Instant::now());
        match (next, record) {
            (Step::Holds, Some(record)) => Ok(Held { record, again: None }),
            (Step::Wait(left), Some(record)) => Ok(Held { record, again: Some(left) }),
            (_, record) => {
                if let Some(why) = namespace::protected(target.namespace, &self.protected) {
                    return Err(Stop::refused(Reason::NamespaceNotAllowed, why));
                }
                let written = match record {
                    None if known && live.is_none() => self.editor.put_new(target).await?,
                    record => self.editor.put(target, record.as_ref()).await?,
                };
                self.records.lock().entry(uid.to_owned()).or_default().insert(kind, written.record.clone());
                if let Some(correction) = written.correction {
                    let recreated = correction == Correction::Removed;
                    self.cache.notifier.corrected(Corrected { service: service.clone(), object: target.object(), recreated });
                }
                Ok(Held { record: written.record, again: None })
            }
        }
    }

    /// Removes the workload of the other kind, as long as the watch shows one: also after a restart, or a failure.
    async fn drop_previous(&self, share: &Share<'_>) -> Result<(), (Stop, ObjectRef)> {
        let workload = share.workload;
        let other = match workload.kind {
            WorkloadKind::Deployment => Kind::LeaderWorkerSet,
            WorkloadKind::LeaderWorkerSet => Kind::Deployment,
        };
        if !self.cache.holds(other, share.uid, &workload.namespace, &workload.name) {
            return Ok(());
        }
        let removed = self.editor.remove(other, &workload.namespace, &workload.name, share.uid).await;
        removed.map_err(|stop| (stop, object_ref(other, &workload.namespace, &workload.name)))?;
        if let Some(records) = self.records.lock().get_mut(share.uid) {
            records.remove(&other);
        }
        Ok(())
    }

    /// Removes everything of a service: first what leads to it. One kind that fails keeps no other.
    async fn delete(&self, service: &ServiceKey, uid: &str) -> Result<(), Failed> {
        let mut result = Ok(());
        for kind in [Kind::Service, Kind::Deployment, Kind::LeaderWorkerSet] {
            if let Err(stop) = self.editor.remove_all(kind, &service.namespace, uid, self.cache.serves(kind)).await {
                let object = object_ref(kind, &service.namespace, &service.name);
                result = result.and(Err(Failed { stop, object, applied: None }));
            }
        }
        if result.is_ok() {
            self.forget(uid);
        }
        result
    }
}

/// What kept a task from being carried out.
struct Failed {
    stop: Stop,
    object: ObjectRef,
    /// The workload, if that was accepted.
    applied: Option<Applied>,
}

impl Failed {
    fn verdict(self) -> Verdict {
        let Self { stop, object, applied } = self;
        let outcome = |reason, message| Outcome::Failed { reason, message, at: Timestamp::now(), object, applied };
        match stop {
            Stop::Failed { reason, message, after } => Verdict::Failed(outcome(reason, message), after),
            Stop::Silent { reason, message } => Verdict::Silent(outcome(reason, message)),
            Stop::Changed => {
                let text = format!("the object was changed by others during each of {TRIES} tries");
                Verdict::Failed(outcome(Reason::ApplyFailed, text), None)
            }
        }
    }
}
