//! Proxies that stand between odin-hub and an API server and misbehave as told.
//!
//! [`RequestProxy`] understands requests: it counts them, holds them back at a chosen write (its [`Gate`]), and answers
//! some itself. [`TcpProxy`] understands only bytes: latency, bandwidth, silence, resets.
//!
//! To kill a client after each write of something it does, with one [`Gate`] for all API servers that it writes to:
//!
//! 1. `let stop = gate.after_writes(n)`, then start the client;
//! 2. when `stop` gives `true`, exactly `n` writes were answered and the client has not seen the last answer: kill it;
//! 3. `gate.cut()`, start the client again, and see that everything comes right;
//! 4. go on with `n + 1` until the work is done before `stop` is.

mod answer;
mod gate;
mod matcher;
mod request;
mod tcp;

pub use self::{
    answer::Answer,
    gate::{Gate, Write},
    matcher::Matcher,
    request::{RequestProxy, Settings},
    tcp::{Behaviour, Mode, TcpProxy},
};
