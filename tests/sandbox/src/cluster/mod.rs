//! One cluster: its control plane's processes, its authority, and what tests ask of it.

mod access;
mod controlplane;
mod lws;
mod nodes;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kube::api::DynamicObject;
use kube::config::KubeConfigOptions;
use kube::{Client, Config, config::Kubeconfig};
use parking_lot::Mutex;

use crate::apply::{ApplyError, ApplyOptions, apply_yaml};
use crate::audit::AuditLog;
use crate::certs::{Authority, Identity};
use crate::process::Process;
use crate::sim::Simulator;

pub(crate) use controlplane::{Extra, Ground, alive_until, write};

/// What a cluster is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Holds services; runs no pods: API server and a controller-manager with few controllers.
    Hub,
    /// Runs pods: API server, controller-manager, scheduler, `LeaderWorkerSet` manager and simulated nodes.
    Member,
}

/// A running cluster. Dropped or stopped, its processes are gone.
#[derive(Debug)]
pub struct Cluster {
    name: String,
    role: Role,
    port: u16,
    admin_kubeconfig_path: PathBuf,
    authority: Authority,
    token_key: String,
    admin_kubeconfig: String,
    audit: AuditLog,
    apiserver: Process,
    controller_manager: Process,
    /// Of a member only.
    scheduler: Option<Process>,
    lws_manager: Option<Process>,
    simulator: Mutex<Option<Simulator>>,
}

impl Cluster {
    /// The name, such as `hub` or `member-1`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the cluster is for.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The API server's port on 127.0.0.1; a restart keeps it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The API server's address.
    pub fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The certificate of the cluster's authority, PEM.
    pub fn ca_pem(&self) -> &str {
        self.authority.pem()
    }

    /// A certificate for 127.0.0.1 and localhost, signed by the cluster's authority, and its key: for whatever stands in front of the API server.
    pub fn issue_server_cert(&self) -> Result<(String, String)> {
        let Identity { cert, key } = self.authority.server("in-front-of-the-apiserver")?;
        Ok((cert, key))
    }

    /// A file with an administrator's kubeconfig, for kubectl.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.admin_kubeconfig_path
    }

    /// An administrator's kubeconfig (group system:masters).
    pub fn kubeconfig(&self) -> &str {
        &self.admin_kubeconfig
    }

    /// An administrator's client for the calling runtime. Each call makes a new one: it must not outlive that runtime.
    pub async fn client(&self) -> Result<Client> {
        client_of(&self.admin_kubeconfig).await
    }

    /// Applies a YAML text of any number of documents as an administrator, strictly validated: see [`apply_yaml`].
    pub async fn apply_yaml(&self, text: &str) -> Result<Vec<DynamicObject>, ApplyError> {
        self.apply_yaml_with(text, &ApplyOptions::default()).await
    }

    /// [`Cluster::apply_yaml`] with options.
    pub async fn apply_yaml_with(&self, text: &str, options: &ApplyOptions) -> Result<Vec<DynamicObject>, ApplyError> {
        let client = self.client().await.map_err(|error| ApplyError::Text(format!("{error:#}")))?;
        apply_yaml(&client, text, options).await
    }

    /// What the API server was asked.
    pub fn audit(&self) -> &AuditLog {
        &self.audit
    }

    /// The API server's process: pause, resume, kill, restart it.
    pub fn apiserver(&self) -> &Process {
        &self.apiserver
    }

    /// The controller-manager's process.
    pub fn controller_manager(&self) -> &Process {
        &self.controller_manager
    }

    /// The scheduler's process; a hub has none.
    pub fn scheduler(&self) -> Option<&Process> {
        self.scheduler.as_ref()
    }

    /// The `LeaderWorkerSet` manager's process; a hub has none.
    pub fn lws_manager(&self) -> Option<&Process> {
        self.lws_manager.as_ref()
    }

    /// Every process of the cluster.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        [&self.apiserver, &self.controller_manager].into_iter().chain(self.scheduler.as_ref()).chain(self.lws_manager.as_ref())
    }

    /// Stops the simulator and all processes, at once.
    pub(crate) fn stop(&self) {
        drop(self.simulator.lock().take());
        for process in self.processes() {
            process.kill();
        }
    }
}

/// A client of a kubeconfig for the calling runtime: no hidden retries, no proxy from the environment.
pub async fn client_of(kubeconfig: &str) -> Result<Client> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).context("kubeconfig")?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.context("kubeconfig")?;
    config.default_retry = false;
    config.proxy_url = None;
    Client::try_from(config).context("client")
}
