//! How a command reaches the hub's API server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Longest wait for an answer. A command has nothing to do meanwhile, and its user is waiting.
const ANSWER: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(10);

/// Flags of a command that talks to the hub's API server.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Connection {
    /// Kubeconfig of the hub; else the files in KUBECONFIG, else ~/.kube/config, else the account of the pod
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Context in that kubeconfig; else its current one
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,
}

impl Connection {
    /// A client for a person's command: each request gives up after half a minute; an API server that says that it is busy, or
    /// not ready yet, is asked again, as kubectl does.
    pub(super) async fn client(&self) -> anyhow::Result<Client> {
        let config = match (&self.kubeconfig, &self.context) {
            (Some(file), context) => {
                let kubeconfig = Kubeconfig::read_from(file).with_context(|| format!("kubeconfig {}", file.display()))?;
                config(kubeconfig, context.as_deref()).await.with_context(|| format!("kubeconfig {}", file.display()))?
            }
            (None, Some(context)) => config(Kubeconfig::read()?, Some(context)).await?,
            (None, None) => Config::infer().await.context("no kubeconfig found: name one by flag or in KUBECONFIG")?,
        };
        client(config)
    }
}

/// The configuration of one context of a kubeconfig.
pub(super) async fn config(kubeconfig: Kubeconfig, context: Option<&str>) -> anyhow::Result<Config> {
    let options = KubeConfigOptions { context: context.map(ToOwned::to_owned), ..KubeConfigOptions::default() };
    Ok(Config::from_custom_kubeconfig(kubeconfig, &options).await?)
}

/// A client with the time limits of a command.
pub(super) fn client(mut config: Config) -> anyhow::Result<Client> {
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(ANSWER);
    config.write_timeout = Some(ANSWER);
    config.default_retry = true;
    Ok(Client::try_from(config)?)
}
