//! The members that the hub knows now, and what runs for each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::RwLock;

use crate::api::condition::Truth;
use crate::api::federation::MemberCluster;
use crate::api::reason::Reason;
use crate::member::Member;

/// How long decisions wait for the first sync of a member; after that its capacity counts as unknown.
const FIRST_SYNC: Duration = Duration::from_secs(15);

/// Why a member has no client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoClient {
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

/// One registered member.
#[derive(Clone)]
pub(crate) struct Entry {
    /// The object as it was last reconciled.
    pub(crate) cluster: Arc<MemberCluster>,
    /// What it was connected with: changes when the credential or the limits do.
    pub(crate) fingerprint: [u8; 32],
    /// Its client and watches, or why there are none.
    pub(crate) runtime: Result<Arc<Member>, NoClient>,
    /// When `runtime` was made.
    pub(crate) since: Instant,
    /// The same as a time for people.
    pub(crate) since_time: Timestamp,
}

impl Entry {
    /// Whether enough is known to decide: it has synced, can't be connected, or took too long.
    fn is_settled(&self) -> bool {
        match &self.runtime {
            Ok(member) => {
                let view = member.view();
                view.capacity_known
                    || view.reachable.truth == Truth::False
                    || view.credential_valid.truth == Truth::False
                    || self.is_overdue()
            }
            Err(_) => true,
        }
    }

    /// Whether the member has had its time for a first sync.
    pub(crate) fn is_overdue(&self) -> bool {
        self.since.elapsed() > FIRST_SYNC
    }
}

/// All registered members, by name.
#[derive(Default)]
pub(crate) struct Members {
    entries: RwLock<BTreeMap<String, Arc<Entry>>>,
}

impl Members {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Entry>> {
        self.entries.read().get(name).cloned()
    }

    /// All of them, sorted by name.
    pub(crate) fn all(&self) -> Vec<(String, Arc<Entry>)> {
        self.entries.read().iter().map(|(name, entry)| (name.clone(), entry.clone())).collect()
    }

    pub(crate) fn put(&self, name: &str, entry: Entry) -> Option<Arc<Entry>> {
        self.entries.write().insert(name.to_owned(), Arc::new(entry))
    }

    pub(crate) fn remove(&self, name: &str) -> Option<Arc<Entry>> {
        self.entries.write().remove(name)
    }

    /// Whether each of `registered` is settled: before that, new replicas would go to whoever answered first.
    pub(crate) fn are_settled<'a>(&self, registered: impl IntoIterator<Item = &'a str>) -> bool {
        let entries = self.entries.read();
        registered.into_iter().all(|name| entries.get(name).is_some_and(|entry| entry.is_settled()))
    }
}
