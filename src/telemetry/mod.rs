//! Logs and health endpoints.

mod health;
mod logs;

pub use health::{Health, serve};
pub use logs::{LogFormat, init};
