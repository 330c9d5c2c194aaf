//! Logs on standard error.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::IsTerminal as _;
use std::panic::PanicHookInfo;

use clap::ValueEnum;
use tracing::Level;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, with the keys timestamp, level, target and message and those of the line.
    Json,
}

/// Which lines are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// What failed and needs somebody.
    Error,
    /// What failed and is tried again too.
    Warn,
    /// What is begun and ended too.
    #[default]
    Info,
    /// What each step found too.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The level is that of the hub's own lines; of libraries only trouble is told.
    fn directives(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "warn,odin_hub=info",
            Self::Debug => "warn,odin_hub=debug",
            Self::Trace => "warn,odin_hub=trace",
        }
    }
}

/// Starts logging to standard error; directives in `RUST_LOG` take the place of `level`.
///
/// # Errors
/// When `RUST_LOG` is malformed, or logging was started before.
pub fn init(format: LogFormat, level: LogLevel) -> anyhow::Result<()> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(directives) if !directives.is_empty() => {
            EnvFilter::try_new(&directives).map_err(|error| anyhow::anyhow!("RUST_LOG={directives:?} is no log filter: {error}"))?
        }
        _ => EnvFilter::new(level.directives()),
    };
    // kube logs whole bodies that it can't decode, and a body may be a Secret: only its errors are let through, whatever
    // is asked for.
    let harmless = filter_fn(|line| *line.level() == Level::ERROR || !line.target().starts_with("kube_client"));
    // Colours are for terminals only: in a file or a pod's log they are noise.
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(colours).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    };
    tracing_subscriber::registry()
        .with(filter)
        .with(lines.with_filter(harmless))
        .try_init()
        .map_err(|error| anyhow::anyhow!("logging can't be started: {error}"))?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// A panic is a line like any other: one that isn't JSON would break who reads them.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let text = panic.payload().downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.payload().downcast_ref::<String>().map(String::as_str)).unwrap_or("a value that is no text");
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    tracing::error!(place, backtrace, "panicked: {text}");
}
