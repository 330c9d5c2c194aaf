//! Observations to status; diagnosis.
//!
//! The member modules turn what they watch into [`MemberObservation`]s; [`report`] turns those, the rendered spec and
//! the plan into the status of a service. It keeps nothing between calls: what must outlast one (the start of a
//! condition, the last known counts of a silent member) is read from the status that the service already has.

mod child;
mod conditions;
mod counters;
mod diagnose;
mod late;
mod notices;
mod observation;
mod patch;
mod placements;
mod pod;
mod pod_signal;
mod rank;
mod ready;
mod report;
#[cfg(test)]
mod tests;
mod text;

pub use self::late::late_refusal;
pub use self::notices::{Notice, notices};
pub use self::observation::{ApplyState, MemberObservation, MemberTrouble, WorkloadView};
pub use self::patch::{is_pressing, merge_patch};
pub use self::pod::{PodStatusView, Terminated};
pub use self::pod_signal::PodSignal;
pub(crate) use self::pod_signal::words_for_end;
pub use self::report::{Facts, Report, report};
