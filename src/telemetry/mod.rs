//! Logs, metrics and the endpoints for health and metrics.

mod endpoints;
mod health;
mod logs;
pub mod metrics;

pub use endpoints::{serve_health, serve_metrics};
pub use health::Health;
pub use logs::{LogFormat, LogLevel, init};
