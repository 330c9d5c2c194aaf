//! What is known of a member, kept in step by its watches and read by everyone else without waiting.

mod capacity;
mod objects;
mod observe;
mod owned;
mod sinks;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};

use self::capacity::Capacity;
use self::objects::Objects;
pub(super) use self::objects::{Live, Stamp};
pub use self::observe::Observed;
use super::client::Failure;
use super::lean::{Kind, Lean, Marks};
use super::notify::Notifier;
use super::sync::Sync;
use super::view::Fact;
use crate::api::lws::Release;
use crate::capacity::Snapshot;

/// What is known of a member.
#[derive(Debug, Default)]
pub(super) struct Cache {
    capacity: Mutex<Capacity>,
    objects: RwLock<Objects>,
    sync: RwLock<Sync>,
    snapshot: ArcSwapOption<Snapshot>,
    pub(super) notifier: Notifier,
    /// Whether events are wanted: only while something isn't as it should be.
    pub(super) events_wanted: watch::Sender<bool>,
    /// A kind turned out to be served no longer.
    pub(super) kind_missing: Notify,
}

/// What a watch found.
#[derive(Debug)]
pub(super) enum Change<T> {
    /// All objects there are.
    All(Vec<T>),
    /// An object is new or changed.
    Put(T),
    /// An object is gone.
    Gone(T),
}

/// Where a watch puts what it found.
pub(super) trait Sink<T> {
    fn apply(&self, change: Change<T>);
}

impl Cache {
    pub(super) fn listed(&self, kind: Kind) {
        if self.sync.write().listed(kind) {
            self.notifier.member();
        }
    }

    pub(super) fn watching(&self, kind: Kind) {
        if self.sync.write().watching(kind) {
            self.notifier.member();
        }
    }

    pub(super) fn failed(&self, kind: Kind, verb: &'static str, failure: &Failure) {
        self.sync.write().failed(kind, verb, failure, Timestamp::now());
        self.notifier.member();
        if matches!(failure, Failure::NotFound(_)) {
            self.kind_missing.notify_one();
        }
    }

    /// The member serves a kind that not every member serves, or surely doesn't.
    pub(super) fn served(&self, kind: Kind, served: bool) {
        if self.sync.write().served(kind, served) {
            self.notifier.member();
        }
    }

    /// A kind is followed no longer: nothing of it is known.
    pub(super) fn unfollowed<T: Lean>(&self, kind: Kind)
    where
        Self: Sink<T>,
    {
        self.sync.write().unfollowed(kind);
        self.apply(Change::All(Vec::new()));
        self.notifier.member();
    }

    /// The condition Synced.
    pub(super) fn synced(&self, now: Timestamp) -> Fact {
        self.sync.read().fact(now)
    }

    /// Why a kind can't be followed although the member answers, and since when.
    pub(super) fn refused(&self, kind: Kind, now: Timestamp) -> Option<(String, Timestamp)> {
        self.sync.read().refused(kind, now)
    }

    /// Whether the snapshot follows the member.
    pub(super) fn capacity_known(&self, now: Timestamp) -> bool {
        let sync = self.sync.read();
        self.snapshot.load().is_some() && sync.is_followed(Kind::Node, now) && sync.is_followed(Kind::Pod, now)
    }

    /// The last snapshot, once nodes and pods were listed.
    pub(super) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.snapshot.load_full()
    }

    /// Makes a new snapshot, if nodes and pods were listed.
    pub(super) fn renew_snapshot(&self) {
        let sync = self.sync.read();
        if !sync.is_listed(Kind::Node) || !sync.is_listed(Kind::Pod) {
            return;
        }
        drop(sync);
        let snapshot = self.capacity.lock().snapshot();
        self.snapshot.store(Some(snapshot));
    }

    /// Whether the absence of an object of the kind means something: all of them were listed, or there can't be any.
    pub(super) fn knows(&self, kind: Kind) -> bool {
        self.sync.read().is_known(kind)
    }

    /// Whether the member is known to serve a kind that not every member serves.
    pub(super) fn serves(&self, kind: Kind) -> bool {
        self.sync.read().is_served(kind)
    }

    /// An object of a service as the watch of its kind last saw it, and whether it bears these marks.
    pub(super) fn live(&self, kind: Kind, service_uid: &str, namespace: &str, name: &str, marks: &Marks<'_>) -> Option<Live> {
        self.objects.read().live(kind, service_uid, namespace, name, marks)
    }

    /// Whether the watch shows an object of a service, and it isn't being deleted.
    pub(super) fn holds(&self, kind: Kind, service_uid: &str, namespace: &str, name: &str) -> bool {
        self.objects.read().meta(kind, service_uid, namespace, name).is_some_and(|(meta, _)| meta.deletion_timestamp.is_none())
    }

    /// The release of `LeaderWorkerSet` was found out.
    pub(super) fn set_release(&self, release: Option<Release>) {
        let mut objects = self.objects.write();
        let services = objects.set_release(release);
        drop(objects);
        self.notifier.services(services);
    }

    /// Forgets what is old of groups that were made anew.
    pub(super) fn age(&self, now: Timestamp) {
        let mut objects = self.objects.write();
        let services = objects.age(now);
        drop(objects);
        self.notifier.services(services);
    }
}
