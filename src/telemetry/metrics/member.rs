//! What is counted for one member.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::histogram::Histogram;

use super::calls::Calls;

/// Buckets of the time from a change to its acceptance, in seconds.
const BUCKETS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// How a watch came to be made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchEnd {
    /// The server ended it, as it does every few minutes, or the connection broke.
    Ended,
    /// What came in between is no longer known to the server.
    Expired,
    /// It, or the list before it, failed.
    Failed,
}

impl WatchEnd {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Expired => "expired",
            Self::Failed => "failed",
        }
    }
}

/// What is counted for one member.
#[derive(Debug)]
pub struct MemberMetrics {
    calls: Arc<Calls>,
    /// Watches that were made anew, by kind and cause.
    pub(super) watch_restarts: Mutex<BTreeMap<(&'static str, WatchEnd), u64>>,
    /// Times from a change to its acceptance, in seconds.
    pub(super) apply_latency: Histogram,
}

impl Default for MemberMetrics {
    fn default() -> Self {
        Self { calls: Arc::default(), watch_restarts: Mutex::default(), apply_latency: Histogram::new(BUCKETS) }
    }
}

impl MemberMetrics {
    /// Requests to its API server.
    pub fn calls(&self) -> &Arc<Calls> {
        &self.calls
    }

    /// A watch of this kind, in the plural that permissions use, is made anew.
    pub fn watch_restarted(&self, kind: &'static str, end: WatchEnd) {
        *self.watch_restarts.lock().entry((kind, end)).or_default() += 1;
    }

    /// The member accepted what a change asks for, so long after the hub saw the change.
    pub fn applied(&self, after: Duration) {
        self.apply_latency.observe(after.as_secs_f64());
    }
}
