//! End to end: the hub on real control planes, with the rights of its chart's account in the hub and of the member
//! account in members.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test stops at the first thing that is not as it says")]

mod crds;
mod deployments;
mod docs;
mod faults;
mod join;
mod members;
mod program;
mod purity;
mod refusals;
mod restarts;
mod world;
mod writing;
