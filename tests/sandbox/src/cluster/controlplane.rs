//! Starting a cluster's processes, with the flags that they need and no more.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use parking_lot::Mutex;

use super::{Cluster, Role, client_of, lws};
use crate::audit::{self, AuditLog};
use crate::certs::{Authority, token_keys};
use crate::kubeconfig::{self, Auth};
use crate::ports::free_port;
use crate::process::Process;
use crate::programs::Programs;
use crate::sim::{self, Simulator};
use crate::wait::eventually;

/// Who issues `ServiceAccount` tokens, as tokens say it.
pub(super) const ISSUER: &str = "https://kubernetes.default.svc";

/// A bound on each step of a start; on a busy machine many clusters may start at once.
const LIMIT: Duration = Duration::from_secs(180);

/// The hub's controllers: what services, Secrets, policies and autoscalers need; nothing runs pods there.
const HUB_CONTROLLERS: [&str; 9] = [
    "namespace",
    "garbage-collector",
    "serviceaccount",
    "serviceaccount-token",
    "root-ca-certificate-publisher",
    "clusterrole-aggregation",
    "resourcequota",
    "validatingadmissionpolicy-status",
    "horizontal-pod-autoscaler",
];

/// What all clusters of a fleet stand on.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    /// The built programs.
    pub(crate) programs: Programs,
    /// The fleet's temp folder.
    pub(crate) folder: PathBuf,
    /// The one etcd's address; a prefix tells the clusters apart.
    pub(crate) etcd: String,
}

impl Ground {
    /// The log file of a process.
    pub(crate) fn log(&self, process: &str) -> PathBuf {
        self.folder.join("logs").join(format!("{process}.log"))
    }

    /// Starts a component of the `controlplane` program.
    pub(crate) fn component(&self, name: &str, component: &str, flags: &[String]) -> Result<Process> {
        let args: Vec<OsString> = std::iter::once(component.into()).chain(flags.iter().map(OsString::from)).collect();
        Process::start(name, &self.programs.controlplane(), &args, &[], &self.log(name))
    }
}

/// What a cluster is started with beside its name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    /// More flags of the API server.
    pub(crate) apiserver_flags: Vec<String>,
    /// More flags of the controller-manager.
    pub(crate) controller_manager_flags: Vec<String>,
}

impl Cluster {
    /// Starts a cluster and waits until it is usable.
    pub(crate) async fn start(ground: &Ground, name: &str, role: Role, extra: &Extra) -> Result<Self> {
        let folder = ground.folder.join(name);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let port = free_port()?;
        let server = format!("https://127.0.0.1:{port}");
        let authority = Authority::new(name)?;
        let (token_key, token_public_key) = token_keys()?;
        let identity = authority.server("kube-apiserver")?;
        let files = [
            ("ca.crt", authority.pem()),
            ("apiserver.crt", &identity.cert),
            ("apiserver.key", &identity.key),
            ("sa.key", &token_key),
            ("sa.pub", &token_public_key),
            ("audit-policy.yaml", audit::POLICY),
        ];
        for (file, content) in files {
            write(&folder, file, content)?;
        }
        let kubeconfig_of = |user: &str, groups: &[&str]| -> Result<String> {
            Ok(kubeconfig::render(name, &server, authority.pem(), &Auth::Certificate(authority.client(user, groups)?)))
        };
        let admin_kubeconfig = kubeconfig_of("admin", &["system:masters"])?;
        let admin_kubeconfig_path = write(&ground.folder, &format!("{name}.kubeconfig"), &admin_kubeconfig)?;

        let apiserver =
            ground.component(&format!("{name}-apiserver"), "kube-apiserver", &apiserver_flags(ground, name, port, &folder, extra))?;
        let client = client_of(&admin_kubeconfig).await?;
        wait_until_ready(&client, &apiserver, name).await?;

        let kubeconfig = write(&folder, "kcm.kubeconfig", &kubeconfig_of("system:kube-controller-manager", &[])?)?;
        let flags = controller_manager_flags(role, &kubeconfig, &folder, extra);
        let controller_manager = ground.component(&format!("{name}-kcm"), "kube-controller-manager", &flags)?;
        let (mut scheduler, mut lws_manager, mut simulator) = (None, None, None);
        if role == Role::Member {
            let kubeconfig = write(&folder, "scheduler.kubeconfig", &kubeconfig_of("system:kube-scheduler", &[])?)?;
            scheduler = Some(ground.component(&format!("{name}-scheduler"), "kube-scheduler", &client_flags(&kubeconfig))?);
            let sim_client = client_of(&kubeconfig_of("sandbox-simulator", &["system:masters"])?).await?;
            simulator = Some(Simulator::start(sim_client, sim::Options::default()));
            let webhook = authority.server("lws-webhook")?;
            let kubeconfig = kubeconfig_of(lws::USER, &[])?;
            lws_manager = Some(lws::start(ground, name, &folder, &client, authority.pem(), &webhook, &kubeconfig).await?);
        }
        let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
        alive_until(&controller_manager, &format!("{name}: the controller-manager made the default ServiceAccount"), async || {
            Ok(accounts.get("default").await.map(drop)?)
        })
        .await?;
        Ok(Self {
            name: name.to_owned(),
            role,
            port,
            admin_kubeconfig_path,
            audit: AuditLog::new(folder.join("audit.log")),
            authority,
            token_key,
            admin_kubeconfig,
            apiserver,
            controller_manager,
            scheduler,
            lws_manager,
            simulator: Mutex::new(simulator),
        })
    }

    /// Waits until the API server says that it is ready: after a restart, some two seconds.
    pub async fn wait_until_ready(&self) -> Result<()> {
        wait_until_ready(&self.client().await?, &self.apiserver, &self.name).await
    }
}

async fn wait_until_ready(client: &Client, apiserver: &Process, name: &str) -> Result<()> {
    alive_until(apiserver, &format!("{name}: the API server is ready"), async || {
        let request = http::Request::get("/readyz").body(Vec::new())?;
        client.request_text(request).await?;
        Ok(())
    })
    .await
}

/// Waits for `check`, but not for a process that has ended; an error shows the end of its log.
pub(crate) async fn alive_until<F, Fut>(process: &Process, what: &str, check: F) -> Result<()>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let ended = async {
        loop {
            if let Some(status) = process.exit_status() {
                break anyhow!("{what}: {} has ended ({status})", process.name());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let outcome = tokio::select! {
        outcome = eventually(what, LIMIT, check) => outcome,
        error = ended => Err(error),
    };
    outcome.map_err(|error| anyhow!("{error:#}\n{} ends with:\n{}", process.log_path().display(), process.log_tail(15)))
}

fn apiserver_flags(ground: &Ground, name: &str, port: u16, folder: &Path, extra: &Extra) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut flags = vec![
        format!("--etcd-servers={}", ground.etcd),
        format!("--etcd-prefix=/{name}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--tls-cert-file={}", file("apiserver.crt")),
        format!("--tls-private-key-file={}", file("apiserver.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        "--authorization-mode=RBAC".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--allow-privileged".to_owned(),
        "--profiling=false".to_owned(),
        format!("--service-account-issuer={ISSUER}"),
        format!("--service-account-key-file={}", file("sa.pub")),
        format!("--service-account-signing-key-file={}", file("sa.key")),
        format!("--audit-policy-file={}", file("audit-policy.yaml")),
        format!("--audit-log-path={}", file("audit.log")),
        // Marks are offsets into one file: it is never rotated (the unit is MiB).
        "--audit-log-maxsize=65536".to_owned(),
    ];
    flags.extend(extra.apiserver_flags.iter().cloned());
    flags
}

fn controller_manager_flags(role: Role, kubeconfig: &Path, folder: &Path, extra: &Extra) -> Vec<String> {
    let mut flags = client_flags(kubeconfig);
    flags.extend([
        "--use-service-account-credentials".to_owned(),
        format!("--service-account-private-key-file={}", folder.join("sa.key").display()),
        format!("--root-ca-file={}", folder.join("ca.crt").display()),
    ]);
    if role == Role::Hub {
        let controllers: Vec<String> = HUB_CONTROLLERS.iter().map(|name| format!("{name}-controller")).collect();
        flags.push(format!("--controllers={}", controllers.join(",")));
        // A test waits for an autoscaler; it doesn't measure it.
        flags.push("--horizontal-pod-autoscaler-sync-period=1s".to_owned());
    }
    flags.extend(extra.controller_manager_flags.iter().cloned());
    flags
}

/// Of the controller-manager and the scheduler. Their default of 20 queries a second would make every larger test a measurement of it.
fn client_flags(kubeconfig: &Path) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        "--profiling=false".to_owned(),
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
    ]
}

/// Writes a file that only this user reads.
pub(crate) fn write(folder: &Path, name: &str, content: &str) -> Result<PathBuf> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let path = folder.join(name);
    let save = || {
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(content.as_bytes())
    };
    save().with_context(|| path.display().to_string())?;
    Ok(path)
}
