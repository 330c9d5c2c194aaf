//! How things stand at the moment of a scrape.

use std::time::Duration;

use jiff::Timestamp;

use crate::api::federation::Accelerator;
use crate::capacity::ServiceKey;

/// How things stand at one moment.
#[derive(Clone, Debug, Default)]
pub struct Gauges {
    /// When that is.
    pub now: Timestamp,
    /// Registered members.
    pub members: Vec<MemberGauges>,
    /// Services.
    pub services: Vec<ServiceGauges>,
    /// What waits for each controller of the hub.
    pub queues: Vec<(&'static str, Backlog)>,
}

/// How one member stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberGauges {
    /// Its name.
    pub name: String,
    /// Whether it takes services.
    pub ready: bool,
    /// Whether its API server answers; while it doesn't, its tasks are parked.
    pub reachable: bool,
    /// When it last answered.
    pub last_seen: Option<Timestamp>,
    /// When its credential ends, if it does.
    pub credential_end: Option<Timestamp>,
    /// Its devices, as last known.
    pub accelerators: Vec<Accelerator>,
    /// What is to be written to it.
    pub tasks: Backlog,
}

/// How one service stands, in groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceGauges {
    /// The service.
    pub service: ServiceKey,
    /// What its spec asks for.
    pub wanted: i64,
    /// Ready ones, over all members.
    pub ready: i64,
    /// What members were chosen for.
    pub placed: i64,
    /// What no member can hold.
    pub unplaced: i64,
}

/// What waits in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How much.
    pub items: usize,
    /// How long the oldest has waited; zero when nothing does.
    pub oldest: Duration,
}
