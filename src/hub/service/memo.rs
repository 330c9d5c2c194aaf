//! What the hub remembers of a service between two passes. All of it can be lost: a restart finds it again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::capacity::ServiceKey;
use crate::render::{Layer, Refusal, Rendered};
use crate::workload::{Pool, Workload};

/// All that a rendering is made from.
#[derive(Clone, PartialEq)]
pub(crate) struct Inputs {
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) labels: BTreeMap<String, String>,
    /// Annotations of the service that are copied.
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) pools: Vec<Pool>,
    /// Its namespace may run any pod.
    pub(crate) exempt: bool,
}

/// A rendering and what it was made from.
#[derive(Clone)]
pub(crate) struct Rendering {
    pub(crate) inputs: Inputs,
    pub(crate) outcome: Result<(Arc<Rendered>, Arc<Workload>), Refusal>,
}

/// What is remembered of one service.
#[derive(Clone, Default)]
pub(crate) struct Memo {
    pub(crate) rendering: Option<Arc<Rendering>>,
    /// Since when all wanted groups have been ready on end.
    pub(crate) all_ready_since: Option<Timestamp>,
    /// resourceVersion of our last write: what the cache holds from before it is stale.
    pub(crate) written: Option<u64>,
    /// When status was last written.
    pub(crate) written_at: Option<Instant>,
    /// When a status was last written that could not wait.
    pub(crate) pressed_at: Option<Instant>,
    /// Since when passes have been wanted, until one came through to the members.
    pub(crate) wanted_since: Option<Instant>,
    /// Passes that failed on end.
    pub(crate) failures: u32,
}

/// What is remembered of all services.
#[derive(Default)]
pub(crate) struct Memos {
    memos: Mutex<HashMap<ServiceKey, Memo>>,
}

impl Memos {
    pub(crate) fn get(&self, service: &ServiceKey) -> Memo {
        self.memos.lock().get(service).cloned().unwrap_or_default()
    }

    pub(crate) fn update<R>(&self, service: &ServiceKey, change: impl FnOnce(&mut Memo) -> R) -> R {
        change(self.memos.lock().entry(service.clone()).or_default())
    }

    /// Counts passes that fail on end. A pass that removed the service leaves nothing behind.
    pub(crate) fn note_result(&self, service: &ServiceKey, succeeded: bool) {
        let mut memos = self.memos.lock();
        if succeeded {
            if let Some(memo) = memos.get_mut(service) {
                memo.failures = 0;
            }
        } else {
            let memo = memos.entry(service.clone()).or_default();
            memo.failures = memo.failures.saturating_add(1);
        }
    }

    pub(crate) fn forget(&self, service: &ServiceKey) {
        self.memos.lock().remove(service);
    }
}
