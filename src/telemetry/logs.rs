//! Logs on standard error.

use std::io::IsTerminal as _;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Filter without `RUST_LOG`. kube logs whole bodies that it can't decode, and a body may be a Secret: only its errors
/// are let through. kube's controllers put their own words for an object before each line, which names it already.
const DEFAULT_FILTER: &str = "info,kube_client=error,kube_runtime=warn";

/// Starts logging to standard error; `RUST_LOG` refines what is logged.
///
/// # Errors
/// When `RUST_LOG` is malformed, or logging was started before.
pub fn init(format: LogFormat) -> anyhow::Result<()> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(directives) if !directives.is_empty() => {
            EnvFilter::try_new(&directives).map_err(|error| anyhow::anyhow!("RUST_LOG={directives:?} is no log filter: {error}"))?
        }
        _ => EnvFilter::new(DEFAULT_FILTER),
    };
    // Colours are for terminals only: in a file or a pod's log they are noise.
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours);
    match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    }
    .map_err(|error| anyhow::anyhow!("logging can't be started: {error}"))
}
