//! odin-hub serves models over many Kubernetes clusters: people write Odin `InferenceService` objects in one
//! management cluster (the hub), and odin-hub renders them, finds member clusters whose accelerators can hold them,
//! applies the workloads there and reports back into the status on the hub.
//!
//! # The map
//! Dependencies point downwards only. Everything above the line decides; it is synchronous and free of I/O, and takes
//! time as an argument. Everything below carries out what was decided.
//!
//! | module | job |
//! | --- | --- |
//! | [`api`] | the kinds, labels, conditions and reasons |
//! | [`template`] | Go text/template; knows nothing of Kubernetes |
//! | [`merge`] | strategic merge patch |
//! | [`render`] | layers → merged, rendered and validated spec |
//! | [`capacity`] | nodes, pods and quotas → free room; how many groups fit |
//! | [`workload`] | rendered service → Deployment or `LeaderWorkerSet`, and Service, for a member; request of one group; pod policy |
//! | [`placement`] | room → plan, with a rejection for each member that was passed over |
//! | [`status`] | observations → status; diagnosis |
//! | — | — |
//! | [`member`] | kubeconfig, client, watches, apply and health of one member |
//! | [`hub`] | the controllers, and events on services |
//! | [`telemetry`] | logs, metrics, health endpoints |
//! | [`cli`] | the subcommands |

pub mod api;
pub mod capacity;
pub mod cli;
pub mod hub;
pub mod member;
pub mod merge;
pub mod placement;
pub mod render;
pub mod status;
pub mod telemetry;
pub mod template;
pub mod workload;
