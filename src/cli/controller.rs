//! `odin-hub controller`.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Parser;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use tokio_util::sync::CancellationToken;

use super::output::{Logged, Told};
use crate::hub::{self, Settings};
use crate::member::{PROTECTED_NAMESPACES, client};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::{self, LogFormat, LogLevel};

/// Flags of `odin-hub controller`; each is an environment variable too.
#[derive(Debug, Parser)]
pub(super) struct Args {
    /// Kubeconfig of the hub's own cluster; else the files in KUBECONFIG, else ~/.kube/config, else the account of the pod
    #[arg(long, env = "ODIN_HUB_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<std::path::PathBuf>,
    /// The hub's own namespace, which holds the kubeconfig Secrets of members; default from the pod, else odin-hub
    #[arg(long, env = "ODIN_HUB_NAMESPACE")]
    namespace: Option<String>,
    /// Namespace of templates that services of every namespace may use
    #[arg(long, env = "ODIN_HUB_SYSTEM_NAMESPACE", default_value = "mif", value_name = "NAMESPACE")]
    system_namespace: String,
    /// Identity of this hub on objects in members; default from the UID of the namespace kube-system
    #[arg(long, env = "ODIN_HUB_ID", value_name = "ID", value_parser = parse_hub_id)]
    hub_id: Option<String>,
    /// Where /livez and /readyz are served
    #[arg(long, env = "ODIN_HUB_HEALTH_ADDR", default_value = "0.0.0.0:8081", value_name = "ADDRESS")]
    health_addr: SocketAddr,
    /// Where /metrics is served; 0 for nowhere
    #[arg(long, env = "ODIN_HUB_METRICS_ADDR", default_value = "0.0.0.0:8080", value_name = "ADDRESS", value_parser = parse_metrics_addr)]
    metrics_addr: MetricsAddr,
    /// Which lines are logged; directives in `RUST_LOG` take its place
    #[arg(long, env = "ODIN_HUB_LOG_LEVEL", default_value = "info", value_name = "LEVEL")]
    log_level: LogLevel,
    /// How log lines look
    #[arg(long, env = "ODIN_HUB_LOG_FORMAT", default_value = "text", value_name = "FORMAT")]
    log_format: LogFormat,
    /// Namespaces that are never created or written in a member; `*` matches any text
    #[arg(
        long,
        env = "ODIN_HUB_PROTECTED_NAMESPACES",
        value_delimiter = ',',
        default_values = PROTECTED_NAMESPACES,
        value_name = "PATTERN"
    )]
    protected_namespaces: Vec<String>,
    /// Let a member be the hub's own cluster
    #[arg(long, env = "ODIN_HUB_ALLOW_SELF")]
    allow_self: bool,
}

/// Where Kubernetes tells a pod its namespace.
const POD_NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// What shells add to the number of the signal that ended a process.
const KILLED_BY: i32 = 128;
/// The hub's namespace outside a pod.
const DEFAULT_NAMESPACE: &str = "odin-hub";

fn parse_hub_id(id: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if id.len() <= 63 && id.chars().all(allowed) && ends(id.chars().next()) && ends(id.chars().last()) {
        Ok(id.to_owned())
    } else {
        Err("must be a label value: 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends".to_owned())
    }
}

/// Where `/metrics` is served, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MetricsAddr(Option<SocketAddr>);

fn parse_metrics_addr(address: &str) -> Result<MetricsAddr, String> {
    if ["", "0"].contains(&address) {
        return Ok(MetricsAddr(None));
    }
    let parsed = address.parse().map_err(|error| format!("{error}: write it as 0.0.0.0:8080, or 0 for nowhere"))?;
    Ok(MetricsAddr(Some(parsed)))
}

/// Runs the hub until SIGTERM or SIGINT.
pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    telemetry::init(args.log_format, args.log_level)?;
    serve(args).await.map_err(|error| {
        // Where the log is turned down it is told all the same.
        if !tracing::enabled!(tracing::Level::ERROR) {
            return error;
        }
        tracing::error!("{}", Told(&error));
        Logged.into()
    })
}

async fn serve(args: Args) -> anyhow::Result<()> {
    let namespace = match args.namespace {
        Some(namespace) => namespace,
        None => std::fs::read_to_string(POD_NAMESPACE_FILE).map_or_else(|_| DEFAULT_NAMESPACE.to_owned(), |text| text.trim().to_owned()),
    };
    anyhow::ensure!(
        namespace != args.system_namespace,
        "--system-namespace must differ from the hub's own namespace {namespace}: editors of templates could read the credentials of members there"
    );
    let config = hub_config(args.kubeconfig.as_deref()).await?;
    let metrics = Arc::new(Metrics::default());
    let client = client::build_counted(&config, &client::Limits::default(), metrics.hub_calls())
        .context("the client of the hub's own cluster can't be made")?;
    let shutdown = CancellationToken::new();
    stop_on_signal(shutdown.clone())?;
    hub::run(
        client,
        Settings {
            namespace,
            system_namespace: args.system_namespace,
            hub_id: args.hub_id,
            protected_namespaces: args.protected_namespaces,
            allow_self: args.allow_self,
            health_address: args.health_addr,
            metrics_address: args.metrics_addr.0,
        },
        metrics,
        shutdown,
    )
    .await
}

async fn hub_config(file: Option<&std::path::Path>) -> anyhow::Result<Config> {
    match file {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path).with_context(|| format!("--kubeconfig {}", path.display()))?;
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .with_context(|| format!("--kubeconfig {}", path.display()))
        }
        None => {
            Config::infer().await.context("no cluster found: give --kubeconfig, set KUBECONFIG, or run in a pod with a service account")
        }
    }
}

fn stop_on_signal(shutdown: CancellationToken) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = terminate.recv() => SignalKind::terminate(),
                _ = interrupt.recv() => SignalKind::interrupt(),
            }
        };
        next().await;
        tracing::info!("stopping");
        shutdown.cancel();
        // Who asks twice doesn't want to wait.
        std::process::exit(KILLED_BY + next().await.as_raw_value());
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_id_is_a_label_value() {
        for good in ["a", "hub-1", "0d5f.x_y", &"a".repeat(63)] {
            assert!(parse_hub_id(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "a b", "ä", &"a".repeat(64)] {
            assert!(parse_hub_id(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn metrics_are_served_at_an_address_or_nowhere() {
        for (text, want) in [("127.0.0.1:9", Some("127.0.0.1:9")), ("[::]:9", Some("[::]:9")), ("0", None), ("", None)] {
            assert_eq!(parse_metrics_addr(text), Ok(MetricsAddr(want.map(|address| address.parse().unwrap()))), "{text}");
        }
        for bad in [":8080", "8080", "localhost:8080", "no"] {
            assert!(parse_metrics_addr(bad).unwrap_err().contains("0 for nowhere"), "{bad}");
        }
    }
}
