//! Free room of a member: nodes and pods go into a [`Store`], which gives immutable [`Snapshot`]s; [`room`] tells how
//! many groups of a service fit at once, and what stops the next one.

mod accelerators;
mod budget;
mod census;
mod fit;
mod form;
mod group;
#[cfg(test)]
mod group_property_tests;
#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "the JSON is made for the call")]
mod group_tests;
mod node;
mod pod;
#[cfg(test)]
mod property_tests;
pub mod quantity;
mod quota;
#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "the JSON is made for the call")]
mod quota_tests;
mod request;
mod reservation;
pub mod resources;
mod room;
mod selection;
mod shape;
mod shortfall;
mod snapshot;
mod store;
mod table;
#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "the JSON is made for the call")]
mod tests;
mod topology;

pub use accelerators::summary;
pub use census::taints_in_the_way;
pub use node::NodeView;
pub use pod::{GroupPlace, PodView, ServiceKey};
pub use quota::QuotaView;
pub use resources::Resources;
pub use room::{Options, Promise, Room, Shortfall, room};
pub use selection::{Requirement, Selection, Taint, Term, Toleration};
pub use shape::{GroupRequest, PodSet, PodShape, QuotaFacts};
pub use snapshot::Snapshot;
pub use store::Store;
