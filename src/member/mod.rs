//! Everything that talks to one member.
//!
//! | file | job |
//! | --- | --- |
//! | `kubeconfig` | bytes of a Secret → [`Credential`], or what is wrong with them |
//! | `client` | the HTTP stack, its bounds, and what an error means |
//! | `probe`, `health` | is it there → reachable, credential, permission; damped |
//! | `discovery` | versions, and what not every member serves |
//! | `watch`, `follow`, `lean`, `cache`, `sync` | what is in the member, kept in step |
//! | `groups` | why groups are made anew, which nothing in the member remembers |
//! | `notify` | bursts of changes → few [`Event`]s |
//! | `task`, `queue` | what is to be written, the newest task of a service only |
//! | `apply` | carrying out a task: which objects, in which order |
//! | `object`, `owner`, `managed`, `namespace`, `rest` | writing one object, and only what is ours |
//! | `runtime` | [`Member`]: starts all of it for one member, and ends it |
//!
//! A member has its own client, bounds, queue and tasks. Nothing here waits for another member.

mod apply;
mod backoff;
mod cache;
pub mod client;
mod discovery;
mod expiry;
mod follow;
mod groups;
mod health;
mod kubeconfig;
mod lean;
mod managed;
mod namespace;
mod notify;
mod object;
mod owner;
mod probe;
mod queue;
mod rest;
mod runtime;
mod settings;
mod sync;
mod task;
mod view;
mod watch;

pub use cache::Observed;
pub use client::{Limits, connect};
pub use kubeconfig::{Credential, CredentialKind, KubeconfigError, parse_kubeconfig};
pub(crate) use namespace::matches;
pub use notify::Event;
pub use runtime::Member;
pub use settings::{PROTECTED_NAMESPACES, Settings};
pub use task::{Applied, Outcome, Task};
pub use view::{Fact, MemberView};
