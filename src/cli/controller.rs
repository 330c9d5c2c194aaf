//! `odin-hub controller`.

use std::net::SocketAddr;

use anyhow::Context as _;
use clap::Parser;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use tokio_util::sync::CancellationToken;

use crate::hub::{self, Settings};
use crate::member::{PROTECTED_NAMESPACES, client};
use crate::telemetry::{self, LogFormat};

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

/// Runs the hub until SIGTERM or SIGINT.
pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    telemetry::init(args.log_format)?;
    let namespace = match args.namespace {
        Some(namespace) => namespace,
        None => std::fs::read_to_string(POD_NAMESPACE_FILE).map_or_else(|_| DEFAULT_NAMESPACE.to_owned(), |text| text.trim().to_owned()),
    };
    anyhow::ensure!(
        namespace != args.system_namespace,
        "--system-namespace must differ from the hub's own namespace {namespace}: editors of templates could read the credentials of members there"
    );
    let config = hub_config(args.kubeconfig.as_deref()).await?;
    let client = client::build(&config, &client::Limits::default()).context("the client of the hub's own cluster can't be made")?;
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
        },
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
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        shutdown.cancel();
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::parse_hub_id;

    #[test]
    fn a_hub_id_is_a_label_value() {
        for good in ["a", "hub-1", "0d5f.x_y", &"a".repeat(63)] {
            assert!(parse_hub_id(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "a b", "ä", &"a".repeat(64)] {
            assert!(parse_hub_id(bad).is_err(), "{bad}");
        }
    }
}
