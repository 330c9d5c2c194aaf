//! Strategic merge patch, as Kubernetes' own apimachinery does it, on JSON values: nothing is typed on the way, so a
//! field that this program doesn't know passes through.
//!
//! [`strategic_merge`] is the exact merge. [`resolve_one_of`] is the step that the hub puts after it: of several
//! choices in a one-of group, which Kubernetes' merge keeps side by side, the latest layer's stays.

mod error;
mod list;
mod one_of;
mod patch;
mod path;
mod schema;

#[cfg(test)]
mod golden;

pub use error::{MergeError, MergeErrorKind};
pub use one_of::{Conflict, Resolved, resolve_one_of};
pub use patch::{is_directive, strategic_merge};
pub(crate) use path::below;
pub use path::{Path, Step};
pub use schema::{Field, Kind, ListMerge, Schema, pod_template, service_spec};
