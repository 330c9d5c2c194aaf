//! Bursts of changes become few events.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::api::odin::ObjectRef;
use crate::capacity::ServiceKey;

/// What the hub is told by a member. The facts themselves are read from the [`Member`](super::Member).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something about this service changed in a member: its workload, its pods, or what came of a task.
    Service(ServiceKey),
    /// Health, versions or capacity of this member changed.
    Member(String),
    /// There is more room in this member than before: services that found none may try again.
    Room(String),
    /// A change that others made to an object of this service was put back.
    Corrected {
        /// The member.
        member: String,
        /// The service.
        service: ServiceKey,
        /// The object.
        object: ObjectRef,
        /// It was missing and was made anew; otherwise it was changed.
        recreated: bool,
    },
}

/// A change by others to an object of a service was put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Corrected {
    pub(super) service: ServiceKey,
    pub(super) object: ObjectRef,
    /// It was missing and was made anew; otherwise it was changed.
    pub(super) recreated: bool,
}

/// Corrections that are told in one round at most.
const MOST_CORRECTED: usize = 1000;

/// What changed since the last round of events.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Services with a change.
    pub(super) services: BTreeSet<ServiceKey>,
    /// Services of whose name a workload of this hub is gone from the member.
    pub(super) gone: BTreeSet<ServiceKey>,
    /// Health or versions.
    pub(super) member: bool,
    /// Nodes or pods: a new snapshot is due.
    pub(super) capacity: bool,
    /// Something went away that took room, or a node changed.
    pub(super) room: bool,
    /// Changes by others that were put back.
    pub(super) corrected: Vec<Corrected>,
}

/// Gathers changes until the next round.
#[derive(Debug, Default)]
pub(super) struct Notifier {
    changes: Mutex<Changes>,
    wake: Notify,
}

impl Notifier {
    pub(super) fn services(&self, services: impl IntoIterator<Item = ServiceKey>) {
        let mut changes = self.changes.lock();
        let before = changes.services.len();
        changes.services.extend(services);
        if changes.services.len() > before {
            self.wake.notify_one();
        }
    }

    /// The workload of a service, or of one before it of the same name, is gone.
    pub(super) fn gone(&self, service: ServiceKey) {
        self.changes.lock().gone.insert(service);
        self.wake.notify_one();
    }

    /// A change by others was put back.
    pub(super) fn corrected(&self, corrected: Corrected) {
        let mut changes = self.changes.lock();
        if changes.corrected.len() < MOST_CORRECTED && !changes.corrected.contains(&corrected) {
            changes.corrected.push(corrected);
        }
        drop(changes);
        self.wake.notify_one();
    }

    pub(super) fn member(&self) {
        self.changes.lock().member = true;
        self.wake.notify_one();
    }

    /// Nodes or pods changed; `room` tells whether there may be more room now.
    pub(super) fn capacity(&self, room: bool) {
        let mut changes = self.changes.lock();
        changes.capacity = true;
        changes.room |= room;
        drop(changes);
        self.wake.notify_one();
    }

    /// Waits until something changed. What it was is taken later, when the burst is over.
    pub(super) async fn changed(&self) {
        self.wake.notified().await;
    }

    /// Whether what a snapshot is made for has changed.
    pub(super) fn has_changed_capacity(&self) -> bool {
        let changes = self.changes.lock();
        changes.capacity || changes.member
    }

    /// Takes what has changed: all of it, or only what no snapshot is made for.
    pub(super) fn take(&self, with_capacity: bool) -> Changes {
        let mut changes = self.changes.lock();
        let taken = std::mem::take(&mut *changes);
        if with_capacity {
            return taken;
        }
        let Changes { member, capacity, room, .. } = taken;
        *changes = Changes { member, capacity, room, ..Changes::default() };
        Changes { member: false, capacity: false, room: false, ..taken }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_burst_is_one_round() {
        let notifier = Notifier::default();
        for _ in 0..1000 {
            notifier.services([ServiceKey::new("team", "chat")]);
            notifier.capacity(false);
        }
        notifier.capacity(true);
        notifier.capacity(false);
        notifier.changed().await;
        let changes = notifier.take(false);
        assert_eq!(changes.services.len(), 1);
        assert!(!changes.capacity && !changes.room && notifier.has_changed_capacity(), "that waits for its turn");
        let changes = notifier.take(true);
        assert!(changes.services.is_empty() && changes.capacity && changes.room && !changes.member);
        assert_eq!(notifier.take(true), Changes::default());
    }
}
