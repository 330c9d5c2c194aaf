//! The simulator: it plays the kubelet of every node of one cluster.
//!
//! Nodes are objects without a machine. The simulator renews their leases, posts their status, brings the pods that
//! the scheduler binds to them to Running and Ready, confirms their deletion, and lets them fail as they are told:
//! by [`annotations`] in a pod template or on a live pod or node, by an image that cannot be pulled
//! ([`MISSING_IMAGE`]), or by the functions [`set_fault`], [`set_node_fault`] and [`drain`].
//!
//! When nothing changes it writes nothing but leases and each node's status every five minutes. Probes, logs, exec,
//! networks and volumes are not simulated, and no container ends by itself: a Job's pod runs until it is deleted.

mod actions;
pub mod annotations;
mod cache;
mod container;
mod events;
mod kubelet;
mod node;
mod pod;
mod queue;
mod spec;

use std::{sync::Arc, time::Duration};

use kube::Client;
use tokio::task::JoinSet;

pub use self::{
    actions::{NodeFault, clear_fault, clear_node_fault, create_node, drain, set_fault, set_node_fault, uncordon},
    annotations::{Fault, FaultKind},
    container::MISSING_IMAGE,
    spec::{NodeSpec, Taint},
};

/// How a [`Simulator`] behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long after its start a pod turns Ready when its annotations don't say.
    pub ready_after: Duration,
    /// The first back-off of a container that crashes; it doubles up to thirty times this.
    pub back_off: Duration,
    /// How often a node's lease is renewed.
    pub lease_period: Duration,
    /// The version that nodes report.
    pub kubelet_version: String,
    /// How many pods and nodes are worked on at once.
    pub workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ready_after: Duration::from_millis(200),
            back_off: Duration::from_secs(2),
            lease_period: Duration::from_secs(10),
            kubelet_version: "v1.36.3".to_owned(),
            workers: 16,
        }
    }
}

/// A running simulator of one cluster's nodes. Dropping it stops it; the nodes then turn Unknown as dead ones do.
#[derive(Debug)]
pub struct Simulator {
    _tasks: JoinSet<()>,
}

impl Simulator {
    /// Starts simulating all nodes of the cluster that `client` speaks to, on the current tokio runtime.
    ///
    /// The client needs to read nodes and pods, write their status, delete pods, and write leases in the namespace
    /// `kube-node-lease` and events.
    pub fn start(client: Client, options: Options) -> Self {
        let workers = options.workers.max(1);
        let kubelet = Arc::new(kubelet::Kubelet::new(client, options));
        let mut tasks = JoinSet::new();
        tasks.spawn(kubelet.clone().watch_nodes());
        tasks.spawn(kubelet.clone().watch_pods());
        for _ in 0..workers {
            tasks.spawn(kubelet.clone().work());
        }
        Self { _tasks: tasks }
    }
}
