//! End to end: the hub on real control planes, with the rights of its chart's account in the hub and of the member
//! account in members.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test stops at the first thing that is not as it says")]

mod around;
mod autoscaling;
mod chart;
mod cli;
mod crds;
mod deployments;
mod diagnosis;
mod docs;
mod examples;
mod faults;
mod groups;
mod join;
mod kubectl;
mod leader_worker_sets;
mod lws_members;
mod members;
mod metrics;
mod program;
mod purity;
mod refusals;
mod restarts;
mod scenarios;
mod stop;
mod world;
mod writing;
