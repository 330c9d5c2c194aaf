//! From a service on the hub to its object in a member and back, on real control planes: `cargo bench --bench dispatch`.
//!
//! A hub and two members, the hub as it is released, everything on this machine: the API servers, their etcd and the
//! simulated nodes share its cores with the hub.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use odin_hub::api::odin::InferenceService;
use parking_lot::Mutex;
use sandbox::hub::{self, Hub, HubOptions, Marks};
use sandbox::sim::{self, Fault, FaultKind};
use sandbox::{Fleet, FleetSpec};
use serde_json::json;

const NAMESPACE: &str = "bench";
/// Services that are created one after the other, each when the one before is ready.
const ONE_BY_ONE: usize = 200;
/// Services that are created at once.
const BURST: usize = 200;
/// Changes in a member, over so many services in turn.
const CHANGES: (usize, usize) = (100, 10);
const LIMIT: Duration = Duration::from_secs(120);

/// When something was first seen, by name of the service.
type Seen = Arc<Mutex<BTreeMap<String, Instant>>>;

/// Ready replicas of each service and when they became so, in members and as the hub tells.
type Counts = Arc<Mutex<BTreeMap<String, (i32, Instant)>>>;

fn main() -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run())
}

async fn run() -> Result<()> {
    let fleet = Fleet::start(FleetSpec::default()).await?;
    let options = HubOptions::new(env!("CARGO_BIN_EXE_odin-hub"));
    let hub = Hub::install(&fleet, &options).await?;
    for member in fleet.members() {
        hub::join(&fleet, &member, &options.repository).await?;
    }
    fleet.hub().apply_yaml(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAMESPACE}}}}}")).await?;
    let client = fleet.hub().client().await?;
    let services: Api<InferenceService> = Api::namespaced(client.clone(), NAMESPACE);

    let (applied, there, told, done) = (Seen::default(), Counts::default(), Counts::default(), Seen::default());
    for member in fleet.members() {
        let (applied, there) = (applied.clone(), there.clone());
        follow::<Deployment>(member.client().await?, move |object| {
            note(&applied, object);
            count(&there, object, object.status.as_ref().and_then(|status| status.ready_replicas));
        });
    }
    follow::<InferenceService>(client, {
        let (told, done) = (told.clone(), done.clone());
        move |object| {
            let Some(status) = &object.status else { return };
            count(&told, object, status.ready_replicas);
            if status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True") {
                note(&done, object);
            }
        }
    });

    // The first service finds a hub that may still be listing its members.
    create(&services, "warm").await?;
    until(&done, "warm").await?;

    let (cpu, marks) = (cpu_seconds(hub.process().pid())?, Marks::take(&fleet));
    let mut times = Vec::new();
    for n in 0..ONE_BY_ONE {
        let name = format!("one-{n}");
        let begin = Instant::now();
        create(&services, &name).await?;
        times.push(until(&applied, &name).await?.saturating_duration_since(begin));
        until_count(&told, &name, 1).await?;
    }
    for n in 0..ONE_BY_ONE {
        until(&done, &format!("one-{n}")).await?;
    }
    figures("created_to_applied", &mut times, "200_one_by_one_2_members");
    let spent = cpu_seconds(hub.process().pid())? - cpu;
    figure("hub_cpu_ms_per_dispatch", spent * 1000.0 / ONE_BY_ONE as f64, "ms", "200_one_by_one_until_ready");
    let writes = marks.writes()?;
    let at = |hub: bool| writes.iter().filter(|(cluster, _)| (cluster == "hub") == hub).count() as f64 / ONE_BY_ONE as f64;
    figure("hub_writes_per_dispatch", at(true), "writes", "200_one_by_one_until_ready");
    figure("member_writes_per_dispatch", at(false), "writes", "200_one_by_one_until_ready");

    let mut times = changes(&fleet, &there, &told).await?;
    figures("member_change_to_hub_status", &mut times, "100_changes_10_services");

    let begin = Instant::now();
    let all = (0..BURST).map(|n| {
        let services = services.clone();
        async move {
            let begin = Instant::now();
            create(&services, &format!("burst-{n}")).await.map(|()| begin)
        }
    });
    let begins: Vec<Result<Instant>> = futures::stream::iter(all).buffered(32).collect().await;
    figure("burst_200_created_ms", milliseconds(begin.elapsed()), "ms", "200_at_once");
    let mut times = Vec::new();
    let mut last = begin;
    for (n, created) in begins.into_iter().enumerate() {
        let at = until(&applied, &format!("burst-{n}")).await?;
        times.push(at.saturating_duration_since(created?));
        last = last.max(at);
    }
    figure("burst_200_total_ms", milliseconds(last.saturating_duration_since(begin)), "ms", "200_at_once_2_members");
    figures("burst_created_to_applied", &mut times, "200_at_once_2_members");
    for n in 0..BURST {
        until(&done, &format!("burst-{n}")).await?;
    }
    figure("hub_rss_mib", memory_mib(hub.process().pid())?, "MiB", "400_services_2_members");
    ensure!(hub.process().is_alive(), "the hub ended: {}", hub.process().log_tail(20));
    Ok(())
}

/// Pods of ready services stop and begin to be ready in turn: from the change of the Deployment in the member to the
/// count on the hub.
async fn changes(fleet: &Fleet, there: &Counts, told: &Counts) -> Result<Vec<Duration>> {
    let (all, services) = CHANGES;
    let mut clients = Vec::new();
    for member in fleet.members() {
        clients.push(member.client().await?);
    }
    let mut times = Vec::new();
    for n in 0..all {
        let name = format!("one-{}", n % services);
        let selector = format!("mif.moreh.io/inferenceservice={name}");
        let breaks = (n / services).is_multiple_of(2);
        for client in &clients {
            // The service is in one of them.
            if breaks {
                sim::set_fault(client, NAMESPACE, &selector, &Fault::new(FaultKind::Unready)).await?;
            } else {
                sim::clear_fault(client, NAMESPACE, &selector).await?;
            }
        }
        let ready = i32::from(!breaks);
        let changed = until_count(there, &name, ready).await?;
        times.push(until_count(told, &name, ready).await?.saturating_duration_since(changed));
    }
    Ok(times)
}

/// A service without devices: room is not what is measured.
async fn create(services: &Api<InferenceService>, name: &str) -> Result<()> {
    let pod = json!({
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "registry.example/engine:1", "resources": {"limits": {"cpu": "100m"}}}],
    });
    let service = serde_json::from_value(json!({
        "apiVersion": "odin.moreh.io/v1alpha1", "kind": "InferenceService",
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"replicas": 1, "template": {"spec": pod}},
    }))?;
    services.create(&PostParams::default(), &service).await?;
    Ok(())
}

fn follow<K>(client: Client, on_change: impl Fn(&K) + Send + 'static)
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned
        + Send
        + 'static,
{
    tokio::spawn(async move {
        let api: Api<K> = Api::namespaced(client, NAMESPACE);
        let mut changes = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff().applied_objects());
        while let Some(change) = changes.next().await {
            if let Ok(object) = change {
                on_change(&object);
            }
        }
    });
}

fn note(seen: &Seen, object: &impl kube::ResourceExt) {
    seen.lock().entry(object.name_any()).or_insert_with(Instant::now);
}

fn count(counts: &Counts, object: &impl kube::ResourceExt, ready: Option<i32>) {
    let ready = ready.unwrap_or_default();
    let mut counts = counts.lock();
    if counts.get(&object.name_any()).map(|(count, _)| *count) != Some(ready) {
        counts.insert(object.name_any(), (ready, Instant::now()));
    }
}

async fn until(seen: &Seen, name: &str) -> Result<Instant> {
    closely(name, || seen.lock().get(name).copied()).await
}

async fn until_count(counts: &Counts, name: &str, ready: i32) -> Result<Instant> {
    closely(name, || counts.lock().get(name).filter(|(count, _)| *count == ready).map(|(_, at)| *at)).await
}

/// Waits for what the watches see. It looks often, since one thing begins when the one before is seen.
async fn closely<T>(name: &str, look: impl Fn() -> Option<T>) -> Result<T> {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        ensure!(begin.elapsed() < LIMIT, "{name}: not seen within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn figures(name: &str, times: &mut [Duration], size: &str) {
    times.sort_unstable();
    for percent in [50, 99] {
        let at = times.len().saturating_sub(1) * percent / 100;
        if let Some(time) = times.get(at) {
            figure(&format!("{name}_p{percent}_ms"), milliseconds(*time), "ms", size);
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn figure(name: &str, value: f64, unit: &str, size: &str) {
    println!("figure {name} {value:.1} {unit} {size}");
}

/// CPU time that a process has used.
fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).context("/proc/PID/stat");
    // Fields 14 and 15 of proc(5), in ticks of 10 ms on Linux.
    Ok((ticks(11)? + ticks(12)?) / 100.0)
}

/// Resident memory of a process.
fn memory_mib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kib: f64 = line.split_whitespace().next().unwrap_or_default().parse()?;
    Ok(kib / 1024.0)
}
