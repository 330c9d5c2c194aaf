//! A hub and its members.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use parking_lot::RwLock;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use crate::cluster::{Cluster, Extra, Ground, Role, alive_until};
use crate::helm::Helm;
use crate::ports::free_port;
use crate::process::{Janitor, Process};
use crate::programs::Programs;
use crate::sim::NodeSpec;

/// Name of the hub's cluster.
pub const HUB: &str = "hub";

/// A member to start.
#[derive(Clone, Debug)]
pub struct MemberSpec {
    /// Name of the cluster: lower-case letters, digits and `-`.
    pub name: String,
    /// Its nodes.
    pub nodes: Vec<NodeSpec>,
    /// More flags of its API server.
    pub apiserver_flags: Vec<String>,
    /// More flags of its controller-manager, such as `--node-monitor-grace-period=12s`.
    pub controller_manager_flags: Vec<String>,
}

impl MemberSpec {
    /// A member with these nodes.
    pub fn new(name: &str, nodes: Vec<NodeSpec>) -> Self {
        Self { name: name.to_owned(), nodes, apiserver_flags: Vec::new(), controller_manager_flags: Vec::new() }
    }
}

/// Called with a line of news while a fleet starts.
pub type Observer = Arc<dyn Fn(&str) + Send + Sync>;

/// A fleet to start.
#[derive(Clone)]
pub struct FleetSpec {
    /// The members.
    pub members: Vec<MemberSpec>,
    /// Where the logs go when the fleet ends; without it they go with the temp folder.
    pub keep_logs: Option<PathBuf>,
    /// Told what is ready.
    pub observer: Option<Observer>,
}

impl Default for FleetSpec {
    /// member-1: 8 nodes with 8 `mi300x` and 8 network devices each. member-2: 5 nodes with 8 `h200-sxm` each, and a node without devices.
    fn default() -> Self {
        let amd = |n| NodeSpec::gpu(&format!("amd-{n}"), "amd", "mi300x", 8).with("mellanox/hca", 8);
        let nvidia = |n| NodeSpec::gpu(&format!("nvidia-{n}"), "nvidia", "h200-sxm", 8);
        let one = MemberSpec::new("member-1", (0..8).map(amd).collect());
        let two = MemberSpec::new("member-2", (0..5).map(nvidia).chain([NodeSpec::new("cpu-0")]).collect());
        Self::new(vec![one, two])
    }
}

impl FleetSpec {
    /// A hub with these members.
    pub fn new(members: Vec<MemberSpec>) -> Self {
        Self { members, keep_logs: None, observer: None }
    }
}

/// A running hub with members, all on 127.0.0.1 and in one temp folder.
///
/// It has a runtime of its own, so it outlives the runtimes of single tests. When it is dropped, and when this
/// process ends in whatever way, all its processes and its folder are gone.
pub struct Fleet {
    hub: Arc<Cluster>,
    members: RwLock<BTreeMap<String, Arc<Cluster>>>,
    etcd: Process,
    ground: Ground,
    keep_logs: Option<PathBuf>,
    observer: Option<Observer>,
    /// `None` only until the start is over.
    runtime: Option<OwnRuntime>,
    // Last: fields are dropped in order, and the folder goes after all that writes there.
    _janitor: Janitor,
    _folder: TempDir,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("folder", &self.ground.folder).field("members", &self.members.read().keys()).finish_non_exhaustive()
    }
}

impl Fleet {
    /// Starts a fleet and waits until all of it is usable: some 10 s, and minutes when the programs must be built first.
    pub async fn start(spec: FleetSpec) -> Result<Self> {
        let programs = tokio::task::spawn_blocking(Programs::ensure).await??;
        Self::start_with(spec, programs).await
    }

    /// [`Fleet::start`] with programs that are there already.
    pub async fn start_with(spec: FleetSpec, programs: Programs) -> Result<Self> {
        let runtime = OwnRuntime::start()?;
        let mut fleet = runtime.run(begin(spec, programs)).await?;
        fleet.runtime = Some(runtime);
        Ok(fleet)
    }

    /// The one fleet (of the default kind) that all tests of this process share; the first call starts it.
    ///
    /// Each test takes a namespace and labels of its own, and a member of its own ([`Fleet::add_member`]) if it breaks one.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<Fleet> = OnceCell::const_new();
        SHARED.get_or_try_init(|| Self::start(FleetSpec::default())).await
    }

    /// The hub.
    pub fn hub(&self) -> &Arc<Cluster> {
        &self.hub
    }

    /// A member by name.
    pub fn member(&self, name: &str) -> Result<Arc<Cluster>> {
        let members = self.members.read();
        members.get(name).cloned().with_context(|| format!("no member {name:?}; there are {:?}", members.keys()))
    }

    /// All members, by name.
    pub fn members(&self) -> Vec<Arc<Cluster>> {
        self.members.read().values().cloned().collect()
    }

    /// Starts one more member: some 7 s.
    pub async fn add_member(&self, spec: MemberSpec) -> Result<Arc<Cluster>> {
        let name = spec.name.clone();
        ensure!(name != HUB && !self.members.read().contains_key(&name), "a cluster named {name:?} is there already");
        let (ground, observer) = (self.ground.clone(), self.observer.clone());
        let cluster = Arc::new(self.on_runtime(async move { start_member(&ground, &spec, observer.as_ref()).await }).await?);
        self.members.write().insert(name, Arc::clone(&cluster));
        Ok(cluster)
    }

    /// Ends a member for good.
    pub fn remove_member(&self, name: &str) -> Result<()> {
        let Some(cluster) = self.members.write().remove(name) else { bail!("no member {name:?}") };
        cluster.stop();
        Ok(())
    }

    /// The temp folder, which holds `NAME.kubeconfig` of each cluster (an administrator's) and `logs/`.
    pub fn folder(&self) -> &Path {
        &self.ground.folder
    }

    /// The log file of a process of the fleet, or of one that is started beside it.
    pub fn log_path(&self, process: &str) -> PathBuf {
        self.ground.log(process)
    }

    /// etcd's process: one for all clusters.
    pub fn etcd(&self) -> &Process {
        &self.etcd
    }

    /// Helm as an administrator of the hub.
    pub fn helm(&self) -> Helm {
        Helm::new(&self.ground.programs, &self.ground.folder.join("helm"), Some(self.hub.kubeconfig_path()))
    }

    async fn on_runtime<T: Send + 'static>(&self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        self.runtime.as_ref().context("the fleet has not started")?.run(work).await
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for cluster in self.members.get_mut().values() {
            cluster.stop();
        }
        self.hub.stop();
        self.etcd.kill();
        self.runtime = None;
        if let Some(kept) = &self.keep_logs
            && let Err(error) = copy_logs(&self.ground.folder.join("logs"), kept)
        {
            crate::progress::say(&format!("logs not kept: {error:#}"));
        }
    }
}

/// A runtime that may be dropped anywhere, also where another runtime is at work and blocking is not allowed.
#[derive(Debug)]
struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    fn start() -> Result<Self> {
        Ok(Self(Some(Builder::new_multi_thread().worker_threads(2).thread_name("sandbox").enable_all().build().context("runtime")?)))
    }

    /// Runs `work` here, for a caller on another runtime. A caller that goes away takes the work with it.
    async fn run<T: Send + 'static>(&self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        let runtime = self.0.as_ref().context("the runtime has ended")?;
        let mut tasks = JoinSet::new();
        tasks.spawn_on(work, runtime.handle());
        tasks.join_next().await.context("no task")?.context("task of the fleet")?
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Starts etcd, then all clusters at once.
async fn begin(spec: FleetSpec, programs: Programs) -> Result<Fleet> {
    let folder = tempfile::Builder::new().prefix("odin-hub-sandbox-").tempdir().context("temp folder")?;
    let janitor = Janitor::watch(folder.path()).context("janitor")?;
    let (client, peer) = (format!("http://127.0.0.1:{}", free_port()?), format!("http://127.0.0.1:{}", free_port()?));
    let ground = Ground { programs, folder: folder.path().to_owned(), etcd: client };
    let etcd = ground.component(
        "etcd",
        "etcd",
        &[
            format!("--data-dir={}", folder.path().join("etcd").display()),
            format!("--listen-client-urls={}", ground.etcd),
            format!("--advertise-client-urls={}", ground.etcd),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
            "--quota-backend-bytes=8589934592".to_owned(),
        ],
    )?;
    alive_until(&etcd, "etcd answers", async || {
        let address = ground.etcd.trim_start_matches("http://");
        tokio::time::timeout(Duration::from_secs(2), tokio::net::TcpStream::connect(address)).await??;
        Ok(())
    })
    .await?;
    tell(spec.observer.as_ref(), "etcd is up");
    let hub = async {
        let hub = Cluster::start(&ground, HUB, Role::Hub, &Extra::default()).await?;
        tell(spec.observer.as_ref(), "hub is usable");
        Ok(hub)
    };
    let members = spec.members.iter().map(|member| start_member(&ground, member, spec.observer.as_ref()));
    let (hub, members) = futures::future::try_join(hub, futures::future::try_join_all(members)).await?;
    let members = members.into_iter().map(|member| (member.name().to_owned(), Arc::new(member))).collect();
    Ok(Fleet {
        hub: Arc::new(hub),
        members: RwLock::new(members),
        etcd,
        ground: ground.clone(),
        keep_logs: spec.keep_logs,
        observer: spec.observer,
        runtime: None,
        _janitor: janitor,
        _folder: folder,
    })
}

async fn start_member(ground: &Ground, spec: &MemberSpec, observer: Option<&Observer>) -> Result<Cluster> {
    let extra = Extra { apiserver_flags: spec.apiserver_flags.clone(), controller_manager_flags: spec.controller_manager_flags.clone() };
    let cluster = Cluster::start(ground, &spec.name, Role::Member, &extra).await?;
    cluster.add_nodes(&spec.nodes).await?;
    tell(observer, &format!("{} is usable, {} nodes", spec.name, spec.nodes.len()));
    Ok(cluster)
}

fn tell(observer: Option<&Observer>, news: &str) {
    if let Some(observer) = observer {
        observer(news);
    }
}

fn copy_logs(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name())).with_context(|| entry.path().display().to_string())?;
    }
    Ok(())
}
