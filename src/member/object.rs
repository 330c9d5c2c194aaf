//! Writing one object to a member, and removing it: only what is ours, and only when something would change.
//!
//! An object is made by POST, so that one of the same name that is someone else's is noticed, and changed by
//! server-side apply that carries the UID of the object that is meant: a vanished or replaced one is answered by an
//! error instead of being made anew by accident.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::cache::{Live, Stamp};
use super::client::Failure;
use super::lean::{Kind, Marks};
use super::namespace::{self, Verdict as Namespace};
use super::owner::{exclusive_topology, foreign_owner, has_marks_of, holders, is_leaving, is_made_by};
use super::{managed, rest};
use crate::api::labels::{SERVICE_UID, label_value};
use crate::api::lws::EXCLUSIVE_TOPOLOGY;
use crate::api::odin::ObjectRef;
use crate::api::reason::Reason;
use crate::render::hash;

/// Writes that are tried at once when the object changes in between.
pub(super) const TRIES: usize = 4;
/// How long a namespace counts as the hub's without being looked at again.
const NAMESPACE_TTL: Duration = Duration::from_secs(60);
/// Pause before an object that is being deleted is looked at again; its end is seen by the watch.
const DELETION_PAUSE: Duration = Duration::from_secs(10);

/// An object that a member shall hold.
#[derive(Debug)]
pub(super) struct Target<'a> {
    pub(super) kind: Kind,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) manifest: &'a Value,
    /// Hash of the manifest.
    pub(super) print: String,
    /// UID of the service.
    pub(super) service_uid: &'a str,
    /// Labels of the namespace, if it has to be made.
    pub(super) namespace_labels: &'a BTreeMap<String, String>,
    /// The kind of which no object of this name may be there when this one is made, unless this one makes it.
    pub(super) rival: Option<Kind>,
}

impl<'a> Target<'a> {
    pub(super) fn print_of(manifest: &Value) -> String {
        hash::of(manifest)
    }

    pub(super) fn marks(&self) -> Marks<'a> {
        Marks::of(self.manifest)
    }

    pub(super) fn object(&self) -> ObjectRef {
        object_ref(self.kind, self.namespace, self.name)
    }

    fn shown(&self) -> String {
        format!("{} {}/{}", self.kind.name(), self.namespace, self.name)
    }

    fn recorded(&self, stamp: Stamp, put_back: Option<Instant>) -> Record {
        Record { print: self.print.clone(), stamp, put_back }
    }
}

pub(super) fn object_ref(kind: Kind, namespace: &str, name: &str) -> ObjectRef {
    ObjectRef { kind: kind.name().to_owned(), namespace: Some(namespace.to_owned()), name: name.to_owned() }
}

/// The answer to the last write of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    /// Hash of the manifest that was sent.
    pub(super) print: String,
    /// The object after it.
    pub(super) stamp: Stamp,
    /// When a change by others was last put back.
    pub(super) put_back: Option<Instant>,
}

/// What came of a write.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) record: Record,
    /// A change by others was put back.
    pub(super) correction: Option<Correction>,
}

/// What others had done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Correction {
    /// They changed it.
    Changed,
    /// They removed it.
    Removed,
}

/// Why a write was not carried out.
#[derive(Debug, PartialEq)]
pub(super) enum Stop {
    /// The object changed in between: read it and try at once.
    Changed,
    /// It can't be written now.
    Failed { reason: Reason, message: String, after: Option<Duration> },
    /// No verdict yet: no answer, or one that a member gives everyone for a second after its start.
    Silent { reason: Reason, message: String },
}

impl Stop {
    pub(super) fn refused(reason: Reason, message: impl Into<String>) -> Self {
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

/// What is to be done about an object, as far as the cache knows.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// The member holds it.
    Holds,
    /// A change by others is to be put back, but not yet.
    Wait(Duration),
    /// Read it from the member, and write it if that is needed.
    Look,
}

/// `wanted` is the hash of the manifest, `live` what the watch shows, and `known` whether its absence means anything.
pub(super) fn step(record: Option<&Record>, wanted: &str, live: Option<&Live>, known: bool, interval: Duration, now: Instant) -> Step {
    let Some(record) = record.filter(|record| record.print == wanted) else { return Step::Look };
    if !known {
        return Step::Holds;
    }
    let Some(live) = live else { return Step::Look };
    // An older version is the watch being late.
    let late = live.stamp.uid == record.stamp.uid && live.stamp.version < record.stamp.version;
    if late || live.stamp.is_same(&record.stamp) && live.bears && !live.leaving {
        return Step::Holds;
    }
    match record.put_back.map(|at| interval.saturating_sub(now.saturating_duration_since(at))) {
        Some(left) if !left.is_zero() => Step::Wait(left),
        _ => Step::Look,
    }
}

/// Writes objects to one member.
pub(super) struct Editor {
    client: Client,
    hub_id: String,
    /// When each namespace was last found to be the hub's.
    namespaces: Mutex<HashMap<String, Instant>>,
}

/// kube's client has no Debug.
impl std::fmt::Debug for Editor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Editor").field("hub_id", &self.hub_id).finish_non_exhaustive()
    }
}

impl Editor {
    pub(super) fn new(client: Client, hub_id: &str) -> Self {
        Self { client, hub_id: hub_id.to_owned(), namespaces: Mutex::default() }
    }

    /// Makes an object that is not there as far as is known: most are new, and needn't be looked for first.
    pub(super) async fn put_new(&self, target: &Target<'_>) -> Result<Written, Stop> {
        match self.make(target).await {
            Ok(object) => Ok(Written { record: target.recorded(stamp(target.kind, &object)?, None), correction: None }),
            Err(Stop::Changed) => self.put(target, None).await,
            Err(stop) => Err(stop),
        }
    }

    /// Makes the object what the manifest says; `record` is the answer to its last write.
    pub(super) async fn put(&self, target: &Target<'_>, record: Option<&Record>) -> Result<Written, Stop> {
        again(|| self.try_put(target, record)).await
    }

    async fn try_put(&self, target: &Target<'_>, record: Option<&Record>) -> Result<Written, Stop> {
        let (client, manifest) = (&self.client, target.manifest);
        let here = rest::one(&rest::all(target.kind, target.namespace), target.name);
        let recorded = |stamp, put_back| target.recorded(stamp, put_back);
        let mut object = match rest::get(client, &here).await {
            Ok(object) => object,
            Err(Failure::NotFound(_)) => {
                let stamp = stamp(target.kind, &self.make(target).await?)?;
                return Ok(Written { record: recorded(stamp, None), correction: record.map(|_| Correction::Removed) });
            }
            Err(failure) => return Err(failure.into()),
        };
        // Whosever it is: nobody has to do anything about one that goes.
        if is_leaving(&object) {
            let text = format!("{} is being deleted{}; it is made again once it is gone", target.shown(), holders(&object));
            return Err(Stop::Failed { reason: Reason::WaitingForDeletion, message: text, after: Some(DELETION_PAUSE) });
        }
        if let Some(owner) = foreign_owner(&object, &self.hub_id, target.service_uid) {
            let text =
                format!("{} is there already and not this service's: {owner}; remove it there or rename the service", target.shown());
            return Err(Stop::refused(Reason::ObjectConflict, text));
        }
        // Leaders would restart all at once. That the hub saw none before may be because it started while the member was away.
        if target.kind == Kind::LeaderWorkerSet && exclusive_topology(&object) != exclusive_topology(manifest) {
            let text = format!(
                "{} was made with another exclusive topology than the service asks for: set the service's annotation {EXCLUSIVE_TOPOLOGY} \
                 back, or delete the service and create it anew",
                target.shown()
            );
            return Err(Stop::refused(Reason::ExclusiveTopologyImmutable, text));
        }
        let read = stamp(target.kind, &object)?;
        let sent_before = record.filter(|record| record.print == target.print);
        let bears = has_marks_of(&object, manifest);
        if let Some(record) = sent_before.filter(|record| bears && record.stamp.is_same(&read)) {
            return Ok(Written { record: recorded(read, record.put_back), correction: None });
        }
        let mut body = manifest.clone();
        if let Some(meta) = body.pointer_mut("/metadata").and_then(Value::as_object_mut) {
            meta.insert("uid".to_owned(), read.uid.clone().into());
        }
        // A hub that starts anew finds most objects as it left them, and writes nothing then.
        if record.is_none() && bears && stamp(target.kind, &rest::apply(client, &here, &body, true).await?)?.is_same(&read) {
            return Ok(Written { record: recorded(read, None), correction: None });
        }
        self.prepare_namespace(target).await?;
        if let Some(patch) = managed::mend(&object) {
            object = rest::json_patch(client, &here, &patch).await?;
        }
        let written = stamp(target.kind, &rest::apply(client, &here, &body, false).await?)?;
        let was_changed = sent_before.is_some() && !(bears && stamp(target.kind, &object)?.is_same(&written));
        let correction = was_changed.then_some(Correction::Changed);
        Ok(Written { record: recorded(written, sent_before.map(|_| Instant::now())), correction })
    }

    async fn make(&self, target: &Target<'_>) -> Result<Value, Stop> {
        let client = &self.client;
        if let Some(rival) = target.rival {
            match rest::get(client, &rest::one(&rest::all(rival, target.namespace), target.name)).await {
                Ok(object) if is_made_by(&object, target.kind.name(), target.name) => {}
                Ok(object) => return Err(Stop::refused(Reason::ObjectConflict, in_the_way(target, rival, &object, &self.hub_id))),
                Err(Failure::NotFound(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        self.prepare_namespace(target).await?;
        rest::post(client, &rest::all(target.kind, target.namespace), target.manifest).await.map_err(|failure| {
            // It may be the namespace that is gone, or going.
            self.namespaces.lock().remove(target.namespace);
            failure.into()
        })
    }

    /// Makes sure that the hub may write in a namespace, and makes it if it isn't there.
    async fn prepare_namespace(&self, target: &Target<'_>) -> Result<(), Stop> {
        let name = target.namespace;
        if self.namespaces.lock().get(name).is_some_and(|seen| seen.elapsed() < NAMESPACE_TTL) {
            return Ok(());
        }
        let client = &self.client;
        let found = match rest::get(client, &rest::one("/api/v1/namespaces", name)).await {
            Ok(found) => Some(found),
            Err(Failure::NotFound(_)) => None,
            Err(failure) => return Err(failure.into()),
        };
        match namespace::judge(name, found.as_ref(), &self.hub_id) {
            Namespace::Use => {}
            Namespace::Create => {
                let manifest = namespace::manifest(name, &self.hub_id, target.namespace_labels);
                rest::post(client, "/api/v1/namespaces", &manifest).await?;
            }
            Namespace::Refuse(reason, message) => return Err(Stop::refused(reason, message)),
        }
        self.namespaces.lock().insert(name.to_owned(), Instant::now());
        Ok(())
    }

    /// Removes what a namespace holds of a service of this kind: found by its labels, whatever is remembered or cached.
    /// `served` tells that the member is known to have the kind.
    pub(super) async fn remove_all(&self, kind: Kind, namespace: &str, service_uid: &str, served: bool) -> Result<(), Stop> {
        again(|| self.try_remove_all(kind, namespace, service_uid, served)).await
    }

    async fn try_remove_all(&self, kind: Kind, namespace: &str, service_uid: &str, served: bool) -> Result<(), Stop> {
        let all = rest::labelled(&rest::all(kind, namespace), SERVICE_UID, &label_value(service_uid));
        let list = match rest::get(&self.client, &all).await {
            Ok(list) => list,
            // An API server that has just started doesn't find what is there, and it would be left behind for good.
            Err(Failure::NotFound(message)) if served => return Err(Stop::Silent { reason: Reason::ApplyFailed, message }),
            // A kind that isn't served.
            Err(Failure::NotFound(_)) => return Ok(()),
            Err(failure) => return Err(failure.into()),
        };
        for object in list.get("items").and_then(Value::as_array).into_iter().flatten() {
            self.remove_object(kind, namespace, service_uid, object).await?;
        }
        Ok(())
    }

    /// Removes one object of a service.
    pub(super) async fn remove(&self, kind: Kind, namespace: &str, name: &str, service_uid: &str) -> Result<(), Stop> {
        again(|| self.try_remove(kind, namespace, name, service_uid)).await
    }

    async fn try_remove(&self, kind: Kind, namespace: &str, name: &str, service_uid: &str) -> Result<(), Stop> {
        match rest::get(&self.client, &rest::one(&rest::all(kind, namespace), name)).await {
            Ok(object) => self.remove_object(kind, namespace, service_uid, &object).await,
            Err(Failure::NotFound(_)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Removes an object if it is this service's. One that is being deleted already, or is someone else's, is left.
    async fn remove_object(&self, kind: Kind, namespace: &str, service_uid: &str, object: &Value) -> Result<(), Stop> {
        if foreign_owner(object, &self.hub_id, service_uid).is_some() || is_leaving(object) {
            return Ok(());
        }
        // A new LeaderWorkerSet of the same name would meet the StatefulSet of the old one.
        let propagation = if kind == Kind::LeaderWorkerSet { "Foreground" } else { "Background" };
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let here = rest::one(&rest::all(kind, namespace), text("/metadata/name"));
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation,
            "preconditions": {"uid": text("/metadata/uid")},
        });
        match rest::delete(&self.client, &here, &options).await {
            Ok(_) | Err(Failure::NotFound(_)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Tries at once again while objects change in between.
async fn again<T, F: Future<Output = Result<T, Stop>>>(attempt: impl Fn() -> F) -> Result<T, Stop> {
    let mut result = Err(Stop::Changed);
    for _ in 0..TRIES {
        result = attempt().await;
        if !matches!(result, Err(Stop::Changed)) {
            break;
        }
    }
    result
}

fn stamp(kind: Kind, object: &Value) -> Result<Stamp, Stop> {
    Stamp::of(kind, object).ok_or_else(|| Stop::refused(Reason::ApplyFailed, "the answer is no object"))
}

/// Why an object can't be made beside one of another kind: a `LeaderWorkerSet` reaches its leaders by a Service of its
/// own name.
fn in_the_way(target: &Target<'_>, rival: Kind, object: &Value, hub_id: &str) -> String {
    let whose = foreign_owner(object, hub_id, target.service_uid).unwrap_or_else(|| "it is this service's".to_owned());
    format!(
        "{} can't be made beside {} {}/{}: a LeaderWorkerSet needs the Service of its name for itself; {whose}; remove it there or \
         rename the service",
        target.shown(),
        rival.name(),
        target.namespace,
        target.name
    )
}

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
