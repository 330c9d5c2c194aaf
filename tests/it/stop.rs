//! Stopping: within five seconds, whatever hangs, and without cutting off a write.

use std::fs;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use sandbox::hub::{self, Hub, HubOptions};
use sandbox::proxy::{Gate, Matcher, RequestProxy};
use sandbox::sim::NodeSpec;
use sandbox::{Cluster, Fleet, FleetSpec, MemberSpec, eventually};
use serde_json::{Value, json};

use crate::restarts::in_front_of;
use crate::world::{LIMIT, PROGRAM, Space, amd};

/// What a stop may take.
const STOP: Duration = Duration::from_secs(5);

/// A fleet of its own with one member, which the hub reaches through a gate.
struct Ground {
    fleet: Fleet,
    member: Arc<Cluster>,
    gate: Gate,
    space: Space,
    _proxy: RequestProxy,
}

impl Ground {
    async fn start() -> Result<Self> {
        let fleet =
            Fleet::start(FleetSpec::new(vec![MemberSpec::new("member-1", vec![NodeSpec::gpu("amd-0", "amd", "mi300x", 8)])])).await?;
        let options = HubOptions { values: json!({"logFormat": "json"}), ..HubOptions::new(PROGRAM) };
        hub::install(&fleet, &options).await?;
        let member = fleet.member("member-1")?;
        let gate = Gate::new();
        let proxy = in_front_of(&member, &gate).await?;
        let kubeconfig = hub::member_account(&member, &options.repository).await?.replace(&member.server(), &proxy.url());
        hub::register(fleet.hub(), member.name(), &kubeconfig).await?;
        let space = Space::new(&fleet, "stop").await?;
        Ok(Self { fleet, member, gate, space, _proxy: proxy })
    }

    async fn hub(&self, name: &str) -> Result<Hub> {
        let hub = Hub::start(&self.fleet, &HubOptions { name: name.to_owned(), ..HubOptions::new(PROGRAM) }).await?;
        eventually("the member is ready", LIMIT, || async {
            ensure!(hub.metrics().await?.values("odin_hub_member_ready", &[]) == [1.0], "it isn't");
            Ok(())
        })
        .await?;
        Ok(hub)
    }
}

async fn stop(hub: &Hub) -> Result<ExitStatus> {
    hub.process().terminate(STOP).await
}

async fn stops_well(hub: &Hub) -> Result<()> {
    let status = stop(hub).await?;
    ensure!(status.code() == Some(0), "{status}: {}", hub.process().log_tail(10));
    Ok(())
}

async fn until_it_is_stopping(hub: &Hub) -> Result<()> {
    eventually("it is stopping", LIMIT, || async {
        ensure!(fs::read_to_string(hub.process().log_path())?.contains("stopping"), "it isn't");
        Ok(())
    })
    .await
}

/// Waits until a change is on its way to the member and doesn't come through.
async fn until_a_write_hangs(hub: &Hub) -> Result<()> {
    eventually("a write hangs", LIMIT, || async {
        let metrics = hub.metrics().await?;
        let value = |name: &str| metrics.values(name, &[("member", "member-1")]).first().copied().context(name.to_owned());
        let (waits, due) = (value("odin_hub_member_queue_oldest_seconds")?, value("odin_hub_member_queue_tasks")?);
        ensure!(waits > 0.0 && due == 0.0, "the oldest change waits {waits} s, {due} tasks wait for their turn");
        Ok(())
    })
    .await
}

/// Several things, one fleet: it takes a while to start.
#[tokio::test]
async fn a_hub_stops_in_time_and_lets_what_runs_end() -> Result<()> {
    let ground = Ground::start().await?;
    its_log_is_json_and_holds_no_secret(&ground).await?;
    a_write_that_runs_comes_to_its_end(&ground).await?;
    a_member_that_hangs_keeps_nobody(&ground).await?;
    who_asks_twice_does_not_wait(&ground).await?;
    a_hub_whose_own_cluster_hangs_stops_too(&ground).await
}

async fn its_log_is_json_and_holds_no_secret(ground: &Ground) -> Result<()> {
    let options =
        HubOptions { name: "logging-hub".to_owned(), env: vec![("RUST_LOG".to_owned(), "trace".to_owned())], ..HubOptions::new(PROGRAM) };
    let hub = Hub::start(&ground.fleet, &options).await?;
    ground.space.apply("chat", &amd(1, 1)).await?;
    ground.space.until_ready("chat", 1).await?;
    stops_well(&hub).await?;

    let log = fs::read_to_string(hub.process().log_path())?;
    let mut own = 0;
    for line in log.lines() {
        let object: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        ensure!(!text("timestamp").is_empty() && !text("level").is_empty() && !text("target").is_empty(), "{line}");
        ensure!(!text("target").starts_with("kube_client") || text("level") == "ERROR", "kube's client shows bodies: {line}");
        if text("target").starts_with("odin_hub") {
            ensure!(!text("message").is_empty(), "{line}");
            own += 1;
        }
        for secret in ["eyJ", "BEGIN"] {
            ensure!(!line.contains(secret), "{secret} in {line}");
        }
    }
    ensure!(own > 3, "the hub itself says nothing");
    Ok(())
}

async fn a_write_that_runs_comes_to_its_end(ground: &Ground) -> Result<()> {
    let hub = ground.hub("writing-hub").await?;
    let before = ground.gate.writes().len();
    let held = ground.gate.after(1, Matcher::method(Method::POST).and(Matcher::path("/deployments")));
    ground.space.apply("late", &amd(1, 1)).await?;
    ensure!(held.await, "the write was not held");
    let release = async {
        until_it_is_stopping(&hub).await?;
        ground.gate.release();
        anyhow::Ok(())
    };
    let (stopped, released) = tokio::join!(stops_well(&hub), release);
    stopped.and(released)?;
    // The Kubernetes Service is made after the workload, by the same task.
    let writes = ground.gate.writes().split_off(before);
    let mut made = writes.iter().filter(|write| write.method == Method::POST).map(|write| write.path.rsplit('/').next());
    ensure!(made.any(|kind| kind == Some("deployments")) && made.next() == Some(Some("services")), "it was cut off: {writes:?}");
    Ok(())
}

async fn a_member_that_hangs_keeps_nobody(ground: &Ground) -> Result<()> {
    let hub = ground.hub("patient-hub").await?;
    ground.member.apiserver().pause()?;
    ground.space.scale("chat", 2).await?;
    until_a_write_hangs(&hub).await?;
    stops_well(&hub).await?;
    ground.member.apiserver().resume()?;
    ground.member.wait_until_ready().await
}

async fn who_asks_twice_does_not_wait(ground: &Ground) -> Result<()> {
    let hub = ground.hub("hasty-hub").await?;
    ground.member.apiserver().pause()?;
    ground.space.scale("chat", 1).await?;
    until_a_write_hangs(&hub).await?;
    let again = async {
        until_it_is_stopping(&hub).await?;
        stop(&hub).await
    };
    let (first, second) = tokio::join!(stop(&hub), again);
    let (first, second) = (first?, second?);
    ensure!(first.code() == Some(143) && second == first, "{first}, {second}: {}", hub.process().log_tail(10));
    ground.member.apiserver().resume()?;
    ground.member.wait_until_ready().await
}

async fn a_hub_whose_own_cluster_hangs_stops_too(ground: &Ground) -> Result<()> {
    let hub = ground.hub("lonely-hub").await?;
    // A pass begins with what can be read, and hangs at its status.
    ground.space.scale("chat", 3).await?;
    ground.fleet.hub().apiserver().pause()?;
    stops_well(&hub).await
}
