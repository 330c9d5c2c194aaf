//! Figures for Prometheus; `docs/metrics.md` describes each.
//!
//! What happens is counted where it happens. How things stand is asked for when it is scraped ([`Gauges`]), so that
//! there is no second copy that could be wrong, and nothing is left of what is gone.

mod calls;
mod exposition;
mod gauges;
mod member;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::RwLock;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

pub(crate) use self::calls::is_watch;
pub use self::calls::{Call, Calls};
pub use self::exposition::Form;
pub use self::gauges::{Backlog, Gauges, MemberGauges, ServiceGauges};
pub use self::member::{MemberMetrics, WatchEnd};

/// How a pass of a controller ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Pass {
    /// `service` or `member`.
    pub(crate) controller: &'static str,
    /// `ok`, `conflict` or `error`.
    pub(crate) result: &'static str,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

/// Makes the figures current.
type Source = Box<dyn Fn() -> Gauges + Send + Sync>;

/// All figures of one hub.
pub struct Metrics {
    /// Times of passes, in seconds.
    passes: Family<Pass, Histogram>,
    /// Times of decisions, in seconds.
    decisions: Histogram,
    /// Status writes by kind of the object.
    status_writes: Family<Kind, Counter>,
    /// Requests to the hub's own API server.
    hub_calls: Arc<Calls>,
    /// What is counted for each member, by name.
    members: RwLock<BTreeMap<String, Arc<MemberMetrics>>>,
    /// How things stand; nothing while the hub isn't that far.
    source: OnceLock<Source>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            passes: Family::new_with_constructor(|| {
                Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0])
            }),
            decisions: Histogram::new([0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0]),
            status_writes: Family::default(),
            hub_calls: Arc::default(),
            members: RwLock::default(),
            source: OnceLock::new(),
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Requests to the hub's own API server.
    pub fn hub_calls(&self) -> &Arc<Calls> {
        &self.hub_calls
    }

    /// What is counted for a member. It goes on over a change of its credential, and ends with [`Metrics::forget`].
    pub fn member(&self, name: &str) -> Arc<MemberMetrics> {
        self.members.write().entry(name.to_owned()).or_default().clone()
    }

    /// The member is no longer registered: its series go.
    pub fn forget(&self, member: &str) {
        self.members.write().remove(member);
    }

    /// Says who knows how things stand. Only the first one is asked.
    pub fn ask(&self, source: impl Fn() -> Gauges + Send + Sync + 'static) {
        // A second hub in one process has figures of its own.
        let _ = self.source.set(Box::new(source));
    }

    pub(crate) fn passed(&self, pass: &Pass, took: Duration) {
        self.passes.get_or_create(pass).observe(took.as_secs_f64());
    }

    pub(crate) fn decided(&self, took: Duration) {
        self.decisions.observe(took.as_secs_f64());
    }

    /// The status of an object of this kind was written.
    pub(crate) fn status_written(&self, kind: &'static str) {
        self.status_writes.get_or_create(&Kind { kind }).inc();
    }
}
