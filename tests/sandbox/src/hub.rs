//! odin-hub itself on a fleet: installed by its chart, run as the chart's Deployment says and as its account, with members
//! registered by Secret.

mod pod;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use self::pod::{Pod, Ports};
use crate::apply::{ApplyOptions, apply_values, documents};
use crate::audit::{AuditEntry, Mark};
use crate::cluster::{Cluster, Role, alive_until};
use crate::exposition::Exposition;
use crate::fleet::Fleet;
use crate::ports::free_port;
use crate::process::Process;

/// The hub's release of the chart.
pub const RELEASE: &str = "odin-hub";
/// The namespace of the release, which holds the Secrets of members.
pub const NAMESPACE: &str = "odin-hub";
/// Where templates for services of all namespaces lie.
pub const SYSTEM_NAMESPACE: &str = "mif";
/// The hub's `ServiceAccount`, in [`NAMESPACE`].
pub const ACCOUNT: &str = "odin-hub";
/// The user that the hub is on the hub's API server, as audit logs name it.
pub const USER: &str = "system:serviceaccount:odin-hub:odin-hub";

/// Namespace of the hub's accounts in members, as `config/rbac/member.yaml` has it.
pub const MEMBER_NAMESPACE: &str = "odin-hub-member";

/// How long the hub may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(30);

/// What is installed, and from where.
#[derive(Clone, Debug)]
pub struct HubOptions {
    /// The `odin-hub` program; tests give `env!("CARGO_BIN_EXE_odin-hub")`.
    pub binary: PathBuf,
    /// The repository, which holds the chart and the member's RBAC.
    pub repository: PathBuf,
    /// Values of the chart beside its defaults.
    pub values: Value,
    /// More arguments of `odin-hub controller`.
    pub args: Vec<String>,
    /// More environment variables of it.
    pub env: Vec<(String, String)>,
    /// The address of the hub's API server for this process, when something stands in front of it.
    pub server: Option<String>,
    /// Its name in logs, to tell several apart.
    pub name: String,
}

impl HubOptions {
    /// This repository's hub.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self {
            binary: binary.into(),
            repository: repository(),
            values: json!({}),
            args: Vec::new(),
            env: Vec::new(),
            server: None,
            name: "odin-hub".to_owned(),
        }
    }
}

/// The repository that this package is part of.
pub fn repository() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}

/// A running `odin-hub controller`; ended when it is dropped.
#[derive(Debug)]
pub struct Hub {
    process: Process,
    ports: Ports,
    kubeconfig: PathBuf,
}

impl Hub {
    /// [`install`], then [`Hub::start`].
    pub async fn install(fleet: &Fleet, options: &HubOptions) -> Result<Self> {
        install(fleet, options).await?;
        Self::start(fleet, options).await
    }

    /// Starts the hub as the chart's Deployment says and as its account, and waits until it says that it is ready.
    /// Only what can't be the same here differs: ports, and where the API server is.
    pub async fn start(fleet: &Fleet, options: &HubOptions) -> Result<Self> {
        let deployments: Api<Deployment> = Api::namespaced(fleet.hub().client().await?, NAMESPACE);
        let pod = Pod::of(&deployments.get(RELEASE).await.context("the chart's Deployment")?, free_port)?;
        let name = &options.name;
        let mut text = fleet.hub().kubeconfig_for_service_account(NAMESPACE, &pod.account).await?;
        if let Some(server) = &options.server {
            text = text.replace(&fleet.hub().server(), server);
        }
        let kubeconfig = crate::cluster::write(fleet.folder(), &format!("{name}.account.kubeconfig"), &text)?;
        let mut args: Vec<OsString> = pod.args.iter().map(OsString::from).collect();
        args.extend(["--kubeconfig".into(), kubeconfig.clone().into()]);
        args.extend(options.args.iter().map(OsString::from));
        let env: Vec<(OsString, OsString)> = pod.env.iter().chain(&options.env).map(|(key, value)| (key.into(), value.into())).collect();
        let process = Process::start(name, &options.binary, &args, &env, &fleet.log_path(name))?;
        let hub = Self { process, ports: pod.ports, kubeconfig };
        hub.wait_until_ready().await?;
        Ok(hub)
    }

    /// The process: its log, and what else a test needs of it.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The file with the kubeconfig of the hub's account.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig
    }

    /// The port on 127.0.0.1 that stands for the container's port of this name, such as `health`.
    pub fn port(&self, name: &str) -> Result<u16> {
        self.ports.get(name).copied().with_context(|| format!("the chart's container has no port {name:?}; it has {:?}", self.ports))
    }

    /// What `/metrics` of the hub tells, checked for its form.
    pub async fn metrics(&self) -> Result<Exposition> {
        metrics(self.port("metrics")?).await
    }

    /// Waits until `/readyz` of the hub is 200.
    pub async fn wait_until_ready(&self) -> Result<()> {
        let health = self.port("health")?;
        alive_until(&self.process, "the hub is ready", async || {
            let answer = get(health, "/readyz").await?;
            ensure!(answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.0 200"), "{answer}");
            Ok(())
        })
        .await
    }

    /// Asks the hub to end (SIGTERM) and waits for it.
    pub async fn stop(&self) -> Result<ExitStatus> {
        self.process.terminate(GRACE).await
    }

    /// Ends the hub at once (SIGKILL).
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Starts the hub again (killing it when it still runs) and waits until it is ready.
    pub async fn restart(&self) -> Result<()> {
        self.process.restart()?;
        self.wait_until_ready().await
    }
}

/// Installs the chart on the hub by Helm as an administrator, or upgrades it to these options, and makes the namespace of shared templates.
pub async fn install(fleet: &Fleet, options: &HubOptions) -> Result<()> {
    let values = crate::cluster::write(fleet.folder(), &format!("{}.values.json", options.name), &options.values.to_string())?;
    let chart = options.repository.join("charts/odin-hub");
    let args: [&OsStr; 9] = [
        "upgrade".as_ref(),
        "--install".as_ref(),
        RELEASE.as_ref(),
        chart.as_ref(),
        "--namespace".as_ref(),
        NAMESPACE.as_ref(),
        "--create-namespace".as_ref(),
        "--values".as_ref(),
        values.as_ref(),
    ];
    fleet.helm().run(args).await?;
    let system = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}});
    apply_values(&fleet.hub().client().await?, vec![system], &ApplyOptions::default()).await?;
    Ok(())
}

/// Makes the account of `config/rbac/member.yaml` in a member and gives its kubeconfig.
pub async fn member_account(member: &Cluster, repository: &Path) -> Result<String> {
    let path = repository.join("config/rbac/member.yaml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let objects = documents(&text).with_context(|| path.display().to_string())?;
    let Some((namespace, name)) = account_of(&objects) else { bail!("{}: no ServiceAccount with a namespace", path.display()) };
    let client = member.client().await?;
    apply_values(&client, objects, &ApplyOptions::default()).await.with_context(|| format!("{} in {}", path.display(), member.name()))?;
    member.kubeconfig_for_service_account(&namespace, &name).await
}

/// Registers a member by a labelled Secret of that name: what people do by hand or from a repository. Called again, it changes the kubeconfig.
pub async fn register(hub: &Cluster, member: &str, kubeconfig: &str) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": member, "namespace": NAMESPACE, "labels": {"federation.odin.moreh.io/member": "true"}},
        "type": "Opaque",
        "stringData": {"kubeconfig": kubeconfig},
    });
    apply_values(&hub.client().await?, vec![secret], &ApplyOptions::default()).await.with_context(|| format!("Secret of {member}"))?;
    Ok(())
}

/// [`member_account`], then [`register`]: the member is reached directly.
pub async fn join(fleet: &Fleet, member: &Cluster, repository: &Path) -> Result<()> {
    let kubeconfig = member_account(member, repository).await?;
    register(fleet.hub(), member.name(), &kubeconfig).await
}

/// Places in the audit logs of a fleet, to count what the hub writes from then on.
#[derive(Clone, Debug)]
pub struct Marks(Vec<(Arc<Cluster>, Mark)>);

impl Marks {
    /// The ends of all logs, now.
    pub fn take(fleet: &Fleet) -> Self {
        let clusters = std::iter::once(Arc::clone(fleet.hub())).chain(fleet.members());
        Self(clusters.map(|cluster| (Arc::clone(&cluster), cluster.audit().mark())).collect())
    }

    /// The writes of the hub's accounts since then, each with the name of the cluster: those of [`USER`] on the hub, and of
    /// accounts in [`MEMBER_NAMESPACE`] in members. A write may appear some milliseconds after its effect.
    pub fn writes(&self) -> Result<Vec<(String, AuditEntry)>> {
        let mut all = Vec::new();
        for (cluster, mark) in &self.0 {
            let ours = |entry: &AuditEntry| match cluster.role() {
                Role::Hub => entry.user == USER,
                Role::Member => entry.user.starts_with(&format!("system:serviceaccount:{MEMBER_NAMESPACE}:")),
            };
            all.extend(cluster.audit().writes_since(*mark, ours)?.into_iter().map(|entry| (cluster.name().to_owned(), entry)));
        }
        Ok(all)
    }
}

/// What `/metrics` of a hub at this port on 127.0.0.1 tells, checked for its form.
pub async fn metrics(port: u16) -> Result<Exposition> {
    let answer = get(port, "/metrics").await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no body")?;
    ensure!(head.starts_with("HTTP/1.1 200") && head.contains("text/plain; version=0.0.4"), "{head}");
    Exposition::parse(body)
}

/// Namespace and name of the first `ServiceAccount`.
fn account_of(objects: &[Value]) -> Option<(String, String)> {
    let account = objects.iter().find(|object| object.get("kind").is_some_and(|kind| kind == "ServiceAccount"))?;
    let text = |pointer: &str| account.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Some((text("/metadata/namespace")?, text("/metadata/name")?))
}

/// The answer to a GET on 127.0.0.1, head and body.
async fn get(port: u16, path: &str) -> Result<String> {
    let ask = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        anyhow::Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    tokio::time::timeout(Duration::from_secs(5), ask).await.with_context(|| format!("{path}: no answer within 5 s"))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_the_first_with_a_namespace() {
        let text = "{kind: Namespace, metadata: {name: n}}\n---\n{kind: ServiceAccount, metadata: {name: a, namespace: n}}\n";
        assert_eq!(account_of(&documents(text).unwrap()), Some(("n".to_owned(), "a".to_owned())));
        assert_eq!(account_of(&[]), None);
    }

    #[test]
    fn the_members_namespace_is_the_one_of_its_rbac() {
        let path = repository().join("config/rbac/member.yaml");
        let account = account_of(&documents(&fs::read_to_string(path).unwrap()).unwrap());
        assert_eq!(account.map(|(namespace, _)| namespace).as_deref(), Some(MEMBER_NAMESPACE));
    }

    #[test]
    fn the_repository_is_the_one_around_this_package() {
        assert!(repository().join("tests/sandbox/Cargo.toml").exists(), "{}", repository().display());
    }
}
