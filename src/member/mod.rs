//! Everything that talks to one member.
//!
//! | file | job |
//! | --- | --- |
//! | `kubeconfig` | bytes of a Secret → [`Credential`], or what is wrong with them |
//! | `client` | the HTTP stack, its bounds, and what an error means |
//! | `probe`, `health` | is it there → reachable, credential, permission; damped |
//! | `watch`, `lean`, `cache`, `sync` | what is in the member, kept in step |
//! | `notify` | bursts of changes → few [`Event`]s |
//! | `task`, `queue` | what is to be written, the newest task of a service only |
//! | `apply`, `managed`, `namespace`, `rest` | writing one object, and only what is ours |
//! | `runtime` | [`Member`]: starts all of it for one member, and ends it |
//!
//! A member has its own client, bounds, queue and tasks. Nothing here waits for another member.

mod apply;
mod backoff;
mod cache;
pub mod client;
mod expiry;
mod health;
mod kubeconfig;
mod lean;
mod managed;
mod namespace;
mod notify;
mod probe;
mod queue;
mod rest;
mod runtime;
mod settings;
mod sync;
mod task;
mod view;
mod watch;

pub use client::{Limits, connect};
pub use kubeconfig::{Credential, CredentialKind, KubeconfigError, parse_kubeconfig};
pub(crate) use namespace::matches;
pub use notify::Event;
pub use runtime::Member;
pub use settings::{PROTECTED_NAMESPACES, Settings};
pub use task::{Outcome, Task};
pub use view::{Fact, MemberView};
