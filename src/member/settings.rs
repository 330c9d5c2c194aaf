//! What the hub fixes for a member.

use std::sync::Arc;
use std::time::Duration;

use super::client::Limits;
use crate::telemetry::metrics::MemberMetrics;

/// Namespaces of a cluster's own programs, as patterns in which `*` stands for any text: by default the hub never writes
/// there, whatever their labels are.
pub const PROTECTED_NAMESPACES: [&str; 3] = ["kube-*", "openshift-*", "*-system"];

/// What the hub fixes for a member.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hub's id: the value of the label on everything that it owns in members.
    pub hub_id: String,
    /// Bounds of the requests to this member.
    pub limits: Limits,
    /// How often the member is probed.
    pub probe_interval: Duration,
    /// Reachable goes False only after failures for at least this long.
    pub lost_after: Duration,
    /// Reachable comes back only after successes for at least this long.
    pub back_after: Duration,
    /// Namespaces that are never created nor written, as patterns in which `*` stands for any text.
    pub protected_namespaces: Vec<String>,
    /// Writes to this member that run at once.
    pub workers: usize,
    /// Shortest time between two snapshots of the capacity, and between the events that go with them.
    pub coalesce: Duration,
    /// Least and most pause after a write that failed.
    pub retry: (Duration, Duration),
    /// A change by others is put back at most this often per object.
    pub drift_interval: Duration,
    /// Where what happens is counted.
    pub metrics: Arc<MemberMetrics>,
}

impl Settings {
    /// The defaults, for the hub with this id.
    pub fn new(hub_id: impl Into<String>) -> Self {
        Self {
            hub_id: hub_id.into(),
            limits: Limits::default(),
            probe_interval: Duration::from_secs(10),
            lost_after: Duration::from_secs(30),
            back_after: Duration::from_secs(10),
            protected_namespaces: PROTECTED_NAMESPACES.map(str::to_owned).to_vec(),
            workers: 8,
            coalesce: Duration::from_millis(100),
            retry: (Duration::from_secs(1), Duration::from_secs(60)),
            drift_interval: Duration::from_secs(60),
            metrics: Arc::default(),
        }
    }
}
