//! Free room of a member: nodes and pods go into a [`Store`], which gives immutable [`Snapshot`]s; [`room`] tells how
//! many groups of a service fit, exactly for one pod shape, and what stops the next one.

mod accelerators;
mod fit;
mod node;
mod pod;
#[cfg(test)]
mod property_tests;
pub mod quantity;
mod request;
pub mod resources;
mod room;
mod selection;
mod shape;
mod shortfall;
mod snapshot;
mod store;
#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "the JSON is made for the call")]
mod tests;

pub use accelerators::summary;
pub use node::NodeView;
pub use pod::{PodView, ServiceKey};
pub use resources::Resources;
pub use room::{Options, Promise, Room, Shortfall, room};
pub use selection::{Requirement, Selection, Taint, Term, Toleration};
pub use shape::{GroupRequest, PodSet, PodShape};
pub use snapshot::Snapshot;
pub use store::Store;
