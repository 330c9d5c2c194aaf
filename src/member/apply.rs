//! Writing one workload to a member, and removing it: only what is ours, and only when something would change.
//!
//! An object is made by POST, so that one of the same name that is someone else's is noticed, and changed by
//! server-side apply that carries the UID of the object that is meant: a vanished or replaced one is answered by an
//! error instead of being made anew by accident.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::cache::Cache;
use super::client::Failure;
use super::lean::Deployment;
use super::namespace::{self, Verdict as Namespace};
use super::queue::Verdict;
use super::task::{Outcome, Task};
use super::{Settings, managed, rest};
use crate::api::labels::{HUB, SERVICE_UID, SOURCE};
use crate::api::odin::{ObjectRef, WorkloadKind};
use crate::api::reason::Reason;
use crate::render::hash;
use crate::workload::Workload;

/// Writes that are tried at once when the object changes in between.
const TRIES: usize = 4;
/// How long a namespace counts as the hub's without being looked at again.
const NAMESPACE_TTL: Duration = Duration::from_secs(60);
/// Pause before an object that is being deleted is looked at again; its end is seen by the watch.
const DELETION_PAUSE: Duration = Duration::from_secs(10);

/// The answer to the last write of a service's workload.
#[derive(Clone, Debug, PartialEq)]
struct Record {
    /// Hash of the manifest that was sent.
    print: String,
    /// UID of the object.
    uid: String,
    /// Generation of the object.
    generation: i64,
    /// When a change by others was last put back.
    put_back: Option<Instant>,
}

/// Writes to one member.
#[derive(Debug)]
pub(super) struct Writer {
    client: ClientHandle,
    cache: Arc<Cache>,
    hub_id: String,
    protected: Vec<String>,
    drift_interval: Duration,
    records: Mutex<HashMap<String, Record>>,
    namespaces: Mutex<HashMap<String, Instant>>,
}

/// kube's client has no Debug.
#[derive(Clone)]
struct ClientHandle(Client);

impl std::fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

/// Why a write was not carried out.
#[derive(Debug, PartialEq)]
enum Stop {
    /// The object changed in between: read it and try at once.
    Changed,
    /// It can't be written now.
    Failed { reason: Reason, message: String, after: Option<Duration> },
    /// No verdict yet: no answer, or one that a member gives everyone for a second after its start.
    Silent { reason: Reason, message: String },
}

impl Stop {
    fn refused(reason: Reason, message: impl Into<String>) -> Self {
        Self::Failed { reason, message: message.into(), after: None }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Conflict(_) | Failure::AlreadyExists(_) => Self::Changed,
            // A replaced object: the UID that was meant can't become that of the new one.
            Failure::Denied(message) if message.contains("metadata.uid") && message.contains("immutable") => Self::Changed,
            Failure::Denied(message) | Failure::NotFound(message) => Self::refused(Reason::ApplyDenied, message),
            // The authorizer of an API server that has just started knows no roles yet.
            Failure::Forbidden(message) => Self::Silent { reason: Reason::ApplyDenied, message },
            Failure::Unauthorized(message) => Self::refused(Reason::CredentialInvalid, message),
            Failure::Busy { message, after } => Self::Failed { reason: Reason::ApplyFailed, message, after },
            Failure::Gone(message) | Failure::Broken(message) => Self::refused(Reason::ApplyFailed, message),
            Failure::Unreachable(message) | Failure::Unknown(message) => Self::Silent { reason: Reason::ApplyFailed, message },
        }
    }
}

/// What is to be done about a workload, as far as the cache knows.
#[derive(Debug, PartialEq)]
enum Step {
    /// The member holds it.
    Holds,
    /// A change by others is to be put back, but not yet.
    Wait(Duration),
    /// Read it from the member, and write it if that is needed.
    Look,
}

/// `wanted` is the hash of the manifest, `bears` whether the live object bears the marks of what was applied.
fn step(record: Option<&Record>, wanted: &str, live: Option<(&Deployment, bool)>, known: bool, interval: Duration, now: Instant) -> Step {
    let Some(record) = record.filter(|record| record.print == wanted) else { return Step::Look };
    if !known {
        return Step::Holds;
    }
    let Some((live, bears)) = live else { return Step::Look };
    let meta = &live.metadata;
    // An older generation is the watch being late.
    if meta.uid == record.uid && (meta.generation < record.generation || meta.generation == record.generation && bears) {
        return Step::Holds;
    }
    match record.put_back.map(|at| interval.saturating_sub(now.saturating_duration_since(at))) {
        Some(left) if !left.is_zero() => Step::Wait(left),
        _ => Step::Look,
    }
}

impl Writer {
    pub(super) fn new(client: Client, cache: Arc<Cache>, settings: &Settings) -> Self {
        Self {
            client: ClientHandle(client),
            cache,
            hub_id: settings.hub_id.clone(),
            protected: settings.protected_namespaces.clone(),
            drift_interval: settings.drift_interval,
            records: Mutex::default(),
            namespaces: Mutex::default(),
        }
    }

    /// Carries out a task.
    pub(super) async fn carry_out(&self, task: &Task) -> Verdict {
        match task {
            Task::Apply { uid, generation, workload, replicas, .. } => self.apply(uid, *generation, workload, *replicas).await,
            Task::Delete { service, uid, kind, name } => {
                let object = ObjectRef { kind: kind.as_str().to_owned(), namespace: Some(service.namespace.clone()), name: name.clone() };
                let mut result = Err(Stop::Changed);
                for _ in 0..TRIES {
                    result = self.delete(uid, *kind, &service.namespace, name).await;
                    if result != Err(Stop::Changed) {
                        break;
                    }
                }
                match result {
                    Ok(()) => {
                        self.records.lock().remove(uid);
                        Verdict::Done(Outcome::Deleted)
                    }
                    Err(stop) => failed(stop, object),
                }
            }
        }
    }

    /// Forgets a service that is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.records.lock().remove(uid);
    }

    async fn apply(&self, uid: &str, generation: i64, workload: &Workload, replicas: u32) -> Verdict {
        let manifest = workload.manifest(replicas);
        let print = hash::of(&manifest);
        let outcome = |record: &Record| Outcome::Applied {
            generation,
            object_generation: record.generation,
            object_uid: record.uid.clone(),
            hash: workload.hash.clone(),
            replicas,
        };
        let record = self.records.lock().get(uid).cloned();
        let live = self.cache.workload(uid, &workload.namespace, &workload.name);
        let live = live.as_ref().map(|live| (live, live.bears(&self.hub_id, uid, &workload.hash, generation)));
        let next = step(record.as_ref(), &print, live, self.cache.knows_workloads(), self.drift_interval, Instant::now());
        match (next, &record) {
            (Step::Holds, Some(record)) => return Verdict::Done(outcome(record)),
            (Step::Wait(left), Some(record)) => return Verdict::Again(outcome(record), left),
            _ => {}
        }
        let object =
            ObjectRef { kind: workload.kind.as_str().to_owned(), namespace: Some(workload.namespace.clone()), name: workload.name.clone() };
        let mut result = Err(Stop::Changed);
        for _ in 0..TRIES {
            result = self.write(uid, workload, &manifest, &print, record.as_ref()).await;
            if result != Err(Stop::Changed) {
                break;
            }
        }
        match result {
            Ok(record) => {
                let verdict = Verdict::Done(outcome(&record));
                self.records.lock().insert(uid.to_owned(), record);
                verdict
            }
            Err(stop) => failed(stop, object),
        }
    }

    /// Reads the object and makes it what the manifest says.
    async fn write(&self, uid: &str, workload: &Workload, manifest: &Value, print: &str, record: Option<&Record>) -> Result<Record, Stop> {
        let client = &self.client.0;
        if let Some(why) = namespace::protected(&workload.namespace, &self.protected) {
            return Err(Stop::refused(Reason::NamespaceNotAllowed, why));
        }
        let path = rest::workloads(workload.kind, &workload.namespace);
        let here = rest::one(&path, &workload.name);
        let kind = workload.kind.as_str();
        let answer = |object: &Value, put_back| {
            recorded(object, print, put_back).ok_or_else(|| Stop::refused(Reason::ApplyFailed, "the answer is no object"))
        };
        let object = match rest::get(client, &here).await {
            Ok(object) => object,
            Err(Failure::NotFound(_)) => {
                self.prepare_namespace(&workload.namespace).await?;
                let object = match rest::post(client, &path, manifest).await {
                    Ok(object) => object,
                    Err(failure) => {
                        // It may be the namespace that is gone, or going.
                        self.namespaces.lock().remove(&workload.namespace);
                        return Err(failure.into());
                    }
                };
                return answer(&self.own_by_apply(&here, object).await, None);
            }
            Err(failure) => return Err(failure.into()),
        };
        // Whosever it is: nobody has to do anything about one that goes.
        if is_leaving(&object) {
            let text = format!(
                "{kind} {}/{} is being deleted{}; it is made again once it is gone",
                workload.namespace,
                workload.name,
                holders(&object)
            );
            return Err(Stop::Failed { reason: Reason::WaitingForDeletion, message: text, after: Some(DELETION_PAUSE) });
        }
        if let Some(owner) = foreign_owner(&object, &self.hub_id, uid) {
            let text = format!(
                "{kind} {}/{} is there already and not this service's: {owner}; remove it there or rename the service",
                workload.namespace, workload.name
            );
            return Err(Stop::refused(Reason::ObjectConflict, text));
        }
        let sent_before = record.filter(|record| record.print == print);
        if let (Some(record), Ok(read)) = (sent_before, answer(&object, None))
            && record.uid == read.uid
            && record.generation == read.generation
            && has_marks_of(&object, manifest)
        {
            return Ok(record.clone());
        }
        self.prepare_namespace(&workload.namespace).await?;
        if let Some(patch) = managed::mend(&object) {
            rest::json_patch(client, &here, &patch).await?;
        }
        let mut body = manifest.clone();
        let meant = object.pointer("/metadata/uid").cloned().unwrap_or_default();
        if let Some(meta) = body.pointer_mut("/metadata").and_then(Value::as_object_mut) {
            meta.insert("uid".to_owned(), meant);
        }
        let put_back = sent_before.map(|_| Instant::now());
        answer(&rest::apply(client, &here, &body).await?, put_back)
    }

    /// Makes the fields of an object that was just made owned by apply, so that those that a later apply leaves out go.
    /// Others write to a new object as well, its controller first of all; should they win each time, or the member fall
    /// silent, the next apply mends it.
    async fn own_by_apply(&self, here: &str, mut object: Value) -> Value {
        let client = &self.client.0;
        for _ in 0..TRIES {
            let Some(patch) = managed::mend(&object) else { break };
            match rest::json_patch(client, here, &patch).await {
                Ok(mended) => return mended,
                Err(Failure::Conflict(_)) => match rest::get(client, here).await {
                    Ok(read) => object = read,
                    Err(_) => break,
                },
                Err(_) => break,
            }
        }
        object
    }

    /// Makes sure that the hub may write in a namespace, and makes it if it isn't there.
    async fn prepare_namespace(&self, name: &str) -> Result<(), Stop> {
        if self.namespaces.lock().get(name).is_some_and(|seen| seen.elapsed() < NAMESPACE_TTL) {
            return Ok(());
        }
        let client = &self.client.0;
        let found = match rest::get(client, &rest::one("/api/v1/namespaces", name)).await {
            Ok(found) => Some(found),
            Err(Failure::NotFound(_)) => None,
            Err(failure) => return Err(failure.into()),
        };
        match namespace::judge(name, found.as_ref(), &self.hub_id) {
            Namespace::Use => {}
            Namespace::Create => {
                rest::post(client, "/api/v1/namespaces", &namespace::manifest(name, &self.hub_id)).await?;
            }
            Namespace::Refuse(reason, message) => return Err(Stop::refused(reason, message)),
        }
        self.namespaces.lock().insert(name.to_owned(), Instant::now());
        Ok(())
    }

    /// Removes the object if it is this service's. One that is being deleted already, or is someone else's, is left.
    async fn delete(&self, uid: &str, kind: WorkloadKind, namespace: &str, name: &str) -> Result<(), Stop> {
        let client = &self.client.0;
        let here = rest::one(&rest::workloads(kind, namespace), name);
        let object = match rest::get(client, &here).await {
            Ok(object) => object,
            Err(Failure::NotFound(_)) => return Ok(()),
            Err(failure) => return Err(failure.into()),
        };
        if foreign_owner(&object, &self.hub_id, uid).is_some() || is_leaving(&object) {
            return Ok(());
        }
        let propagation = match kind {
            WorkloadKind::Deployment => "Background",
            // A new one of the same name would meet the StatefulSet of the old one.
            WorkloadKind::LeaderWorkerSet => "Foreground",
        };
        let meant = object.pointer("/metadata/uid").cloned().unwrap_or_default();
        let options =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation, "preconditions": {"uid": meant}});
        match rest::delete(client, &here, &options).await {
            Ok(_) | Err(Failure::NotFound(_)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}

fn failed(stop: Stop, object: ObjectRef) -> Verdict {
    let outcome = |reason, message| Outcome::Failed { reason, message, at: Timestamp::now(), object };
    match stop {
        Stop::Failed { reason, message, after } => Verdict::Failed(outcome(reason, message), after),
        Stop::Silent { reason, message } => Verdict::Silent(outcome(reason, message)),
        Stop::Changed => {
            Verdict::Failed(outcome(Reason::ApplyFailed, format!("the object was changed by others during each of {TRIES} tries")), None)
        }
    }
}

fn recorded(object: &Value, print: &str, put_back: Option<Instant>) -> Option<Record> {
    Some(Record {
        print: print.to_owned(),
        uid: object.pointer("/metadata/uid")?.as_str()?.to_owned(),
        generation: object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default(),
        put_back,
    })
}

fn is_leaving(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null())
}

/// What an object that is being deleted waits for.
fn holders(object: &Value) -> String {
    let finalizers: Vec<&str> =
        object.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if finalizers.is_empty() { String::new() } else { format!(" and waits for {}", finalizers.join(", ")) }
}

/// Whether the labels and annotations of the manifest are all on the object: they don't count in its generation.
fn has_marks_of(object: &Value, manifest: &Value) -> bool {
    ["/metadata/labels", "/metadata/annotations"].iter().all(|path| {
        let there = object.pointer(path);
        manifest
            .pointer(path)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .all(|(key, value)| there.and_then(|there| there.get(key)) == Some(value))
    })
}

/// Whose an object is, if it isn't this service's.
fn foreign_owner(object: &Value, hub_id: &str, service_uid: &str) -> Option<String> {
    let text = |path: &str, key: &str| object.pointer(path).and_then(|map| map.get(key)).and_then(Value::as_str);
    let hub = text("/metadata/labels", HUB);
    let service = text("/metadata/labels", SERVICE_UID);
    if hub == Some(hub_id) && service == Some(service_uid) {
        return None;
    }
    if let Some(other) = hub.filter(|hub| *hub != hub_id) {
        return Some(format!("it belongs to the hub {other}"));
    }
    if let (Some(_), Some(other)) = (hub, service) {
        let source = text("/metadata/annotations", SOURCE).map(|source| format!(" ({source})")).unwrap_or_default();
        return Some(format!("it belongs to the service with UID {other}{source}"));
    }
    let owner = object.pointer("/metadata/ownerReferences/0");
    if let (Some(kind), Some(name)) = (owner.and_then(|o| o.get("kind")?.as_str()), owner.and_then(|o| o.get("name")?.as_str())) {
        return Some(format!("it belongs to {kind} {name}"));
    }
    if let Some(manager) = text("/metadata/labels", "app.kubernetes.io/managed-by") {
        return Some(format!("it is managed by {manager}"));
    }
    let managers = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let manager = managers.filter_map(|entry| entry.get("manager")?.as_str()).find(|manager| *manager != "kube-controller-manager");
    Some(manager.map_or_else(
        || "it bears no mark of this hub".to_owned(),
        |manager| format!("it bears no mark of this hub and was written by {manager}"),
    ))
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
