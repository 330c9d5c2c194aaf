//! A hub that is killed at every write, and one that has nothing to do.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::Api;
use kube::api::DeleteParams;
use odin_hub::api::condition::{self, member as types, service::PLACED, service::RENDERED};
use odin_hub::api::federation::MemberCluster;
use odin_hub::api::odin::Diagnostic;
use sandbox::hub::{self, Hub, HubOptions};
use sandbox::proxy::{Gate, RequestProxy, Settings};
use sandbox::sim::NodeSpec;
use sandbox::{Cluster, Fleet, FleetSpec, MemberSpec, eventually};

use crate::leader_worker_sets::diagnostic;
use crate::world::{LIMIT, PROGRAM, Space, amd, condition_of};

/// More writes than a dispatch may take: beyond it something writes again and again.
const MOST_WRITES: u64 = 25;

/// Puts a proxy in front of a cluster, through which all of the hub's requests to it go.
pub(crate) async fn in_front_of(cluster: &Cluster, gate: &Gate) -> Result<RequestProxy> {
    let (certificate, key) = cluster.issue_server_cert()?;
    RequestProxy::start(Settings {
        name: cluster.name().to_owned(),
        server: cluster.server(),
        ca: cluster.ca_pem().to_owned(),
        certificate,
        key,
        gate: gate.clone(),
    })
    .await
}

/// A fleet of its own whose hub reaches everything through proxies with one gate.
struct Gated {
    fleet: Fleet,
    gate: Gate,
    hub: Hub,
    _proxies: Vec<RequestProxy>,
}

impl Gated {
    async fn start() -> Result<Self> {
        let nodes = |prefix: &str| (0..2).map(|n| NodeSpec::gpu(&format!("{prefix}-{n}"), "amd", "mi300x", 8)).collect();
        let members = vec![MemberSpec::new("member-1", nodes("a")), MemberSpec::new("member-2", nodes("b"))];
        let fleet = Fleet::start(FleetSpec::new(members)).await?;
        let options = HubOptions::new(PROGRAM);
        hub::install(&fleet, &options).await?;
        let gate = Gate::new();
        let mut proxies = Vec::new();
        for member in fleet.members() {
            let proxy = in_front_of(&member, &gate).await?;
            let kubeconfig = hub::member_account(&member, &options.repository).await?.replace(&member.server(), &proxy.url());
            hub::register(fleet.hub(), member.name(), &kubeconfig).await?;
            proxies.push(proxy);
        }
        let proxy = in_front_of(fleet.hub(), &gate).await?;
        let hub = Hub::start(&fleet, &HubOptions { server: Some(proxy.url()), ..options }).await?;
        proxies.push(proxy);
        let gated = Self { fleet, gate, hub, _proxies: proxies };
        gated.until_members_are_ready().await?;
        Ok(gated)
    }

    async fn until_members_are_ready(&self) -> Result<()> {
        let api: Api<MemberCluster> = Api::all(self.fleet.hub().client().await?);
        eventually("both members are ready", LIMIT, || async {
            let members = api.list(&kube::api::ListParams::default()).await?.items;
            let ready = |m: &&MemberCluster| m.status.as_ref().is_some_and(|s| condition::is_true(&s.conditions, types::READY));
            let count = members.iter().filter(ready).count();
            ensure!(count == 2, "{count} are ready: {}", self.hub.process().log_tail(5));
            Ok(())
        })
        .await
    }

    /// Kills the hub where it stands and starts it again.
    fn crash(&self) -> Result<()> {
        self.hub.kill();
        self.gate.cut();
        self.hub.process().restart()
    }

    /// Workloads of this name, over both members.
    async fn copies(&self, space: &Space, name: &str) -> Result<usize> {
        let mut copies = 0;
        for member in self.fleet.members() {
            copies += usize::from(space.deployment(&member, name).await?.is_some());
            copies += usize::from(space.set(&member, name).await?.is_some());
        }
        Ok(copies)
    }
}

/// Spec of a service with groups of two pods, with a device each.
fn pairs(replicas: i32) -> String {
    amd(replicas, 1).replace("{replicas", "{parallelism: {pipeline: 2}, replicas").replace("template:", "workerTemplate:")
}

/// Several things, one fleet: it takes a while to start.
#[tokio::test]
async fn i29_a_hub_killed_after_any_write_ends_in_the_right_state_and_then_writes_nothing() -> Result<()> {
    let gated = Gated::start().await?;
    let space = Space::new(&gated.fleet, "restarts").await?;
    for (kind, spec) in [("single", amd(1, 1)), ("pair", pairs(1))] {
        let writes = killed_while_it_dispatches(&gated, &space, kind, &spec).await?;
        ensure!(writes >= 4, "a dispatch takes at least a finalizer, a decision, an object and a report; the gate saw {writes} writes");
        killed_while_it_removes(&gated, &space, kind, &spec).await?;
    }
    writes_nothing_in_an_idle_minute(&gated, &space).await
}

async fn killed_while_it_dispatches(gated: &Gated, space: &Space, kind: &str, spec: &str) -> Result<u64> {
    for n in 1..=MOST_WRITES {
        let name = format!("dispatch-{kind}-{n}");
        let reached = gated.gate.after_writes(n);
        space.apply(&name, spec).await?;
        let killed = tokio::select! {
            reached = reached => reached,
            ready = space.until_ready(&name, 1) => { ready?; false }
        };
        if killed {
            gated.crash()?;
            let log = gated.gate.writes();
            space.until_ready(&name, 1).await.with_context(|| format!("killed after write {n}: {:?}", log.last()))?;
        } else {
            gated.gate.release();
        }
        ensure!(gated.copies(space, &name).await? == 1, "killed after write {n}: more than one copy of {name}");
        for member in gated.fleet.members() {
            let (pods, most) = (space.pods(&member, &name).await?.len(), if kind == "pair" { 2 } else { 1 });
            ensure!(pods <= most, "killed after write {n}: {pods} pods in {}", member.name());
        }
        space.services().delete(&name, &DeleteParams::default()).await?;
        if !killed {
            return Ok(n - 1);
        }
    }
    anyhow::bail!("a dispatch takes more than {MOST_WRITES} writes: {:#?}", gated.gate.writes())
}

async fn killed_while_it_removes(gated: &Gated, space: &Space, kind: &str, spec: &str) -> Result<()> {
    for n in 1..=MOST_WRITES {
        let name = format!("remove-{kind}-{n}");
        space.apply(&name, spec).await?;
        space.until_ready(&name, 1).await?;
        let gone = async || {
            eventually("the service and its objects are gone", LIMIT, || async {
                ensure!(space.services().get_opt(&name).await?.is_none(), "the service is there");
                ensure!(gated.copies(space, &name).await? == 0, "its workload is there");
                Ok(())
            })
            .await
        };
        let reached = gated.gate.after_writes(n);
        space.services().delete(&name, &DeleteParams::default()).await?;
        let killed = tokio::select! {
            reached = reached => reached,
            gone = gone() => { gone?; false }
        };
        if !killed {
            gated.gate.release();
            return Ok(());
        }
        gated.crash()?;
        gone().await.with_context(|| format!("killed after write {n} of a removal"))?;
    }
    anyhow::bail!("a removal takes more than {MOST_WRITES} writes: {:#?}", gated.gate.writes())
}

/// Services in every state in which they can stay.
async fn writes_nothing_in_an_idle_minute(gated: &Gated, space: &Space) -> Result<()> {
    let marks = hub::Marks::take(&gated.fleet);
    space.apply("ready", &amd(2, 1)).await?;
    space.apply("unplaced", &amd(1, 16)).await?;
    space.apply("broken", "{template: {spec: {containers: [{name: main, image: x, args: ['{{ .Nothing }}']}]}}}").await?;
    space.apply("waiting", &amd(1, 1).replace("registry.example/engine", "sim.invalid/missing")).await?;
    space.apply("groups-ready", &pairs(2)).await?;
    space.apply("groups-unplaced", &pairs(1).replace("pipeline: 2", "pipeline: 64")).await?;
    space.apply("groups-waiting", &pairs(1).replace("registry.example/engine", "sim.invalid/missing")).await?;
    space.until("broken", "it can't be rendered", |status| condition_of(status, RENDERED).status == "False").await?;
    for (ready, unplaced, waiting) in [("ready", "unplaced", "waiting"), ("groups-ready", "groups-unplaced", "groups-waiting")] {
        space.until_ready(ready, 2).await?;
        space.until(unplaced, "it has no place", |status| condition_of(status, PLACED).status == "False").await?;
        let is_image = |d: &Diagnostic| d.reason == "ErrImagePull" || d.reason == "ImagePullBackOff";
        space.until(waiting, "its image is missing", |status| diagnostic(status).is_some_and(is_image)).await?;
    }

    // A member's status is written at most every ten seconds, so what the services above changed may take that long.
    let minute = Duration::from_secs(60);
    let count = || marks.writes();
    let mut quiet_since = std::time::Instant::now();
    let mut before = count()?;
    ensure!(
        before.iter().any(|(cluster, _)| cluster == "hub") && before.iter().any(|(cluster, _)| cluster != "hub"),
        "the audit log shows no write at all"
    );
    // Idle begins when nothing has been written for a while; then a whole minute has to stay so.
    let settled = Duration::from_secs(12);
    let deadline = std::time::Instant::now() + LIMIT;
    while quiet_since.elapsed() < settled {
        ensure!(std::time::Instant::now() < deadline, "never idle; last: {:#?}", before.iter().rev().take(8).collect::<Vec<_>>());
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = count()?;
        if now.len() != before.len() {
            quiet_since = std::time::Instant::now();
            before = now;
        }
    }
    // Being looked at is nothing to write about.
    let end = std::time::Instant::now() + minute;
    while std::time::Instant::now() < end {
        gated.hub.metrics().await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let after = count()?;
    ensure!(after.len() == before.len(), "written in an idle minute: {:#?}", after.get(before.len()..));
    ensure!(gated.hub.process().is_alive(), "the hub ended: {}", gated.hub.process().log_tail(20));
    Ok(())
}
