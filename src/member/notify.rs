//! Bursts of changes become few events.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tokio::sync::Notify;

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
}

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

    pub(super) fn take(&self) -> Changes {
        std::mem::take(&mut self.changes.lock())
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
        let changes = notifier.take();
        assert_eq!(changes.services.len(), 1);
        assert!(changes.capacity && changes.room && !changes.member);
        assert_eq!(notifier.take(), Changes::default());
    }
}
