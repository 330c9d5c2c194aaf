//! The Kubernetes API of the hub: Odin's own kinds, the kinds that the hub adds, and the names they share.

pub mod condition;
pub mod federation;
pub mod labels;
pub mod lws;
pub(crate) mod names;
pub mod odin;
pub mod reason;
pub mod schema;

pub use condition::Condition;

use serde::{Deserialize, Deserializer};

/// Reads `null` as the default, as API servers do.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
