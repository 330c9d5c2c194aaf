//! Observations to status; diagnosis.
//!
//! The member modules turn what they watch into [`MemberObservation`]s; [`report`] turns those, the rendered spec and
//! the plan into the status of a service. It keeps nothing between calls: what must outlast one (the start of a
//! condition, the last known counts of a silent member) is read from the status that the service already has.

mod conditions;
mod counters;
mod diagnose;
mod observation;
mod patch;
mod pod;
mod pod_signal;
mod ready;
mod report;
#[cfg(test)]
mod tests;
mod text;

pub use self::observation::{ApplyState, MemberObservation, MemberTrouble, WorkloadView};
pub use self::patch::merge_patch;
pub use self::pod::PodStatusView;
pub use self::pod_signal::PodSignal;
pub use self::report::{Facts, Report, report};
