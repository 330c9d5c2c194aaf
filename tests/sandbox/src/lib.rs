//! Real control planes on this machine, with simulated GPU nodes: for odin-hub's tests and for `cargo sandbox up`.
//!
//! A [`Fleet`] is a hub and its members: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and the
//! `LeaderWorkerSet` manager, all built from the Go module in `controlplane/`, on 127.0.0.1 and in a temp folder. Nodes and what
//! happens to pods on them are played by [`sim`]; [`proxy`] makes the network bad. [`Hub`] installs odin-hub and runs it.
//!
//! ```no_run
//! # async fn test() -> anyhow::Result<()> {
//! let fleet = sandbox::Fleet::shared().await?;
//! let member = fleet.member("member-1")?;
//! member.apply_yaml("{apiVersion: v1, kind: Namespace, metadata: {name: mine}}").await?;
//! let mark = member.audit().mark();
//! member.apiserver().pause()?;
//! // …
//! member.apiserver().resume()?;
//! member.wait_until_ready().await?;
//! let writes = member.audit().writes_since(mark, |entry| entry.user.contains("odin-hub"))?;
//! assert!(writes.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! Linux only for now: that children end with their parent rests on a signal that other systems lack.

pub mod apply;
pub mod audit;
pub mod certs;
pub mod cluster;
pub mod exposition;
pub mod fleet;
pub mod helm;
pub mod hub;
pub mod kubeconfig;
pub mod ports;
pub mod process;
pub mod programs;
pub mod progress;
pub mod proxy;
pub mod sim;
pub mod wait;

pub use apply::{ApplyError, ApplyOptions};
pub use audit::{AuditEntry, AuditLog};
pub use cluster::{Cluster, Role};
pub use exposition::Exposition;
pub use fleet::{Fleet, FleetSpec, MemberSpec};
pub use helm::Helm;
pub use hub::{Hub, HubOptions};
pub use process::Process;
pub use wait::eventually;
