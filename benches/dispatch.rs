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
use sandbox::{Fleet, FleetSpec, eventually};
use serde_json::json;

const NAMESPACE: &str = "bench";
/// Services that are created one after the other.
const ONE_BY_ONE: usize = 50;
/// Services that are created at once.
const BURST: usize = 200;
const LIMIT: Duration = Duration::from_secs(120);

/// When something was first seen, by name of the service.
type Seen = Arc<Mutex<BTreeMap<String, Instant>>>;

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

    let (created, ready) = (Seen::default(), Seen::default());
    for member in fleet.members() {
        let (created, ready) = (created.clone(), ready.clone());
        follow::<Deployment>(member.client().await?, move |object| {
            note(&created, object);
            if object.status.as_ref().is_some_and(|status| status.ready_replicas == Some(1)) {
                note(&ready, object);
            }
        });
    }
    let (reported, done) = (Seen::default(), Seen::default());
    follow::<InferenceService>(client, {
        let (reported, done) = (reported.clone(), done.clone());
        move |object| {
            let Some(status) = &object.status else { return };
            if status.ready_replicas == Some(1) {
                note(&reported, object);
            }
            if status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True") {
                note(&done, object);
            }
        }
    });

    // The first service finds a hub that may still be listing its members.
    create(&services, "warm").await?;
    until(&done, "warm").await?;

    let (cpu, marks) = (cpu_seconds(hub.process().pid())?, Marks::take(&fleet));
    let mut dispatch = Vec::new();
    let mut report = Vec::new();
    for n in 0..ONE_BY_ONE {
        let name = format!("one-{n}");
        let begin = Instant::now();
        create(&services, &name).await?;
        dispatch.push(until(&created, &name).await?.saturating_duration_since(begin));
        let is_ready = until(&ready, &name).await?;
        report.push(until(&reported, &name).await?.saturating_duration_since(is_ready));
        until(&done, &name).await?;
    }
    figures("dispatch", &mut dispatch, "2_members");
    figures("ready_to_status", &mut report, "2_members");
    let writes = marks.writes()?;
    let at = |hub: bool| writes.iter().filter(|(cluster, _)| (cluster == "hub") == hub).count() as f64 / ONE_BY_ONE as f64;
    figure("writes_to_hub_per_dispatch", at(true), "writes", "one_by_one");
    figure("writes_to_member_per_dispatch", at(false), "writes", "one_by_one");
    let spent = cpu_seconds(hub.process().pid())? - cpu;
    figure("hub_cpu_per_dispatch_ms", spent * 1000.0 / ONE_BY_ONE as f64, "ms", "one_by_one");

    let begin = Instant::now();
    let all = (0..BURST).map(|n| {
        let services = services.clone();
        async move { create(&services, &format!("burst-{n}")).await }
    });
    let results: Vec<Result<()>> = futures::stream::iter(all).buffer_unordered(32).collect().await;
    results.into_iter().collect::<Result<()>>()?;
    figure("burst_created_s", begin.elapsed().as_secs_f64(), "s", "200_services");
    let mut last = begin;
    for n in 0..BURST {
        last = last.max(until(&created, &format!("burst-{n}")).await?);
    }
    figure("burst_dispatched_s", last.saturating_duration_since(begin).as_secs_f64(), "s", "200_services");
    for n in 0..BURST {
        until(&done, &format!("burst-{n}")).await?;
    }
    figure("hub_memory_mib", memory_mib(hub.process().pid())?, "MiB", "250_services_2_members");
    ensure!(hub.process().is_alive(), "the hub ended: {}", hub.process().log_tail(20));
    Ok(())
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

async fn until(seen: &Seen, name: &str) -> Result<Instant> {
    if let Some(at) = seen.lock().get(name) {
        return Ok(*at);
    }
    eventually(name, LIMIT, || async { seen.lock().get(name).copied().context("not seen") }).await
}

fn figures(name: &str, times: &mut [Duration], size: &str) {
    times.sort_unstable();
    for percent in [50, 99] {
        let at = times.len().saturating_sub(1) * percent / 100;
        if let Some(time) = times.get(at) {
            figure(&format!("{name}_p{percent}_ms"), time.as_secs_f64() * 1000.0, "ms", size);
        }
    }
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
