//! What a hub that runs tells Prometheus.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use odin_hub::api::federation::MemberCluster;
use sandbox::{Exposition, eventually, hub};

use crate::world::{LIMIT, Space, World, amd, world};

/// Waits until `holds` is content with what is served.
async fn until(world: &World, what: &str, holds: impl Fn(&Exposition) -> Result<()>) -> Result<Exposition> {
    eventually(what, LIMIT, || async {
        let metrics = world.hub.metrics().await?;
        holds(&metrics)?;
        Ok(metrics)
    })
    .await
}

fn is(metrics: &Exposition, name: &str, labels: &[(&str, &str)], want: f64) -> Result<()> {
    let found = metrics.values(name, labels);
    ensure!(found == [want], "{name} {labels:?}: {found:?}, not {want}");
    Ok(())
}

fn some(metrics: &Exposition, name: &str, labels: &[(&str, &str)]) -> Result<()> {
    let found = metrics.values(name, labels);
    ensure!(found.iter().any(|value| *value > 0.0), "{name} {labels:?}: {found:?}");
    Ok(())
}

#[tokio::test]
async fn a_service_shows_for_as_long_as_it_exists() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "metrics").await?;
    space.apply("chat", &amd(2, 1)).await?;
    space.apply("huge", &amd(1, 4096)).await?;
    space.until_ready("chat", 2).await?;
    let service = |name| [("service_namespace", "metrics"), ("service_name", name)];
    let metrics = until(world, "the service shows", |metrics| {
        for (of, wanted, placed, ready, unplaced) in [("chat", 2.0, 2.0, 2.0, 0.0), ("huge", 1.0, 0.0, 0.0, 1.0)] {
            is(metrics, "odin_hub_service_wanted_groups", &service(of), wanted)?;
            is(metrics, "odin_hub_service_placed_groups", &service(of), placed)?;
            is(metrics, "odin_hub_service_ready_groups", &service(of), ready)?;
            is(metrics, "odin_hub_service_unplaced_groups", &service(of), unplaced)?;
        }
        Ok(())
    })
    .await?;
    some(&metrics, "odin_hub_reconcile_duration_seconds_count", &[("controller", "service"), ("result", "ok")])?;
    some(&metrics, "odin_hub_reconcile_duration_seconds_count", &[("controller", "member"), ("result", "ok")])?;
    some(&metrics, "odin_hub_decision_duration_seconds_count", &[])?;
    some(&metrics, "odin_hub_status_writes_total", &[("kind", "InferenceService")])?;
    some(&metrics, "odin_hub_status_writes_total", &[("kind", "MemberCluster")])?;
    some(&metrics, "odin_hub_requests_total", &[("member", ""), ("verb", "patch"), ("code", "200")])?;

    for name in ["chat", "huge"] {
        space.services().delete(name, &DeleteParams::default()).await?;
    }
    until(world, "the series go with their service", |metrics| {
        let left: Vec<_> = metrics.samples().filter(|sample| sample.labels.values().any(|value| value == "metrics")).collect();
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn members_show_their_state_their_devices_and_what_is_asked_of_them() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "metrics-members").await?;
    space.apply("chat", &amd(1, 1)).await?;
    let status = space.until_ready("chat", 1).await?;
    let holder = status.placements[0].cluster.as_str();
    // Other tests take members of their own.
    let shared = [world.fleet.member("member-1")?, world.fleet.member("member-2")?];
    let metrics = until(world, "the members are ready", |metrics| {
        for member in &shared {
            is(metrics, "odin_hub_member_ready", &[("member", member.name())], 1.0)?;
            is(metrics, "odin_hub_member_reachable", &[("member", member.name())], 1.0)?;
        }
        Ok(())
    })
    .await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
    for member in &shared {
        let of = [("member", member.name())];
        ensure!(metrics.values("odin_hub_member_last_seen_age_seconds", &of).len() == 1, "{}", member.name());
        ensure!(metrics.values("odin_hub_member_credential_expiry_timestamp_seconds", &of)[0] > now, "{}", member.name());
        ensure!(metrics.values("odin_hub_member_queue_tasks", &of).len() == 1, "{}", member.name());
        some(&metrics, "odin_hub_requests_total", &[("member", member.name()), ("verb", "watch"), ("code", "200")])?;
        some(&metrics, "odin_hub_request_duration_seconds_count", &[("member", member.name()), ("verb", "get")])?;
    }
    some(&metrics, "odin_hub_requests_total", &[("member", holder), ("verb", "create"), ("code", "201")])?;
    some(&metrics, "odin_hub_apply_latency_seconds_count", &[("member", holder)])?;

    let clusters: Api<MemberCluster> = Api::all(space.client.clone());
    eventually("the devices are those of the status", LIMIT, || async {
        let metrics = world.hub.metrics().await?;
        for cluster in clusters.list(&ListParams::default()).await?.items {
            for devices in cluster.status.unwrap_or_default().accelerators {
                let labels = [
                    ("member", cluster.metadata.name.as_deref().unwrap_or_default()),
                    ("resource", &devices.resource),
                    ("vendor", devices.vendor.as_deref().unwrap_or_default()),
                    ("model", devices.model.as_deref().unwrap_or_default()),
                ];
                is(&metrics, "odin_hub_member_accelerator_allocatable_devices", &labels, devices.allocatable as f64)?;
                is(&metrics, "odin_hub_member_accelerator_used_devices", &labels, devices.used as f64)?;
                is(&metrics, "odin_hub_member_accelerator_free_devices", &labels, devices.free as f64)?;
                is(&metrics, "odin_hub_member_accelerator_largest_free_node_devices", &labels, devices.largest_free_node as f64)?;
            }
        }
        Ok(())
    })
    .await?;
    space.services().delete("chat", &DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test]
async fn a_member_shows_for_as_long_as_it_is_registered() -> Result<()> {
    let world = world().await;
    let name = "metrics-away";
    // Nothing listens there.
    let kubeconfig = "{clusters: [{name: m, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: m, user: {token: t}}], \
                      contexts: [{name: m, context: {cluster: m, user: m}}], current-context: m}";
    hub::register(world.fleet.hub(), name, kubeconfig).await?;
    until(world, "it shows and isn't ready", |metrics| {
        is(metrics, "odin_hub_member_ready", &[("member", name)], 0.0)?;
        some(metrics, "odin_hub_requests_total", &[("member", name), ("verb", "get"), ("code", "error")])?;
        some(metrics, "odin_hub_watch_restarts_total", &[("member", name), ("kind", "nodes"), ("cause", "failed")])
    })
    .await?;
    let client = world.fleet.hub().client().await?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), hub::NAMESPACE);
    secrets.delete(name, &DeleteParams::default()).await?;
    Api::<MemberCluster>::all(client).delete(name, &DeleteParams::default()).await?;
    until(world, "its series go", |metrics| {
        ensure!(metrics.samples().all(|sample| sample.labels.get("member").is_none_or(|member| member != name)), "some are left");
        Ok(())
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn no_label_holds_anything_of_a_credential() -> Result<()> {
    let world = world().await;
    let metrics = until(world, "there are members", |metrics| is(metrics, "odin_hub_member_ready", &[("member", "member-1")], 1.0)).await?;
    let secrets: Api<Secret> = Api::namespaced(world.fleet.hub().client().await?, hub::NAMESPACE);
    let data = secrets.list(&ListParams::default()).await?.items.into_iter().flat_map(|secret| secret.data.unwrap_or_default());
    let mut texts: Vec<String> = data.map(|(_, bytes)| String::from_utf8_lossy(&bytes.0).into_owned()).collect();
    texts.push(std::fs::read_to_string(world.hub.kubeconfig_path())?);
    let words: BTreeSet<&str> =
        texts.iter().flat_map(|text| text.split([' ', '\n', '"', '\'', ',', '.'])).filter(|word| word.len() > 20).collect();
    ensure!(words.len() > 3, "no credentials were found to look for");
    for sample in metrics.samples() {
        for value in sample.labels.values() {
            ensure!(!words.iter().any(|word| value.contains(word)) && value.len() <= 253, "{sample:?}");
        }
    }
    Ok(())
}

/// The document is held to what can be served by a test beside the code; this is what a hub does serve.
#[tokio::test]
async fn what_is_served_is_documented() -> Result<()> {
    let world = world().await;
    let metrics = world.hub.metrics().await?;
    let documented: BTreeSet<&str> =
        include_str!("../../docs/metrics.md").lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()).collect();
    let served: BTreeSet<&str> = metrics.0.keys().map(String::as_str).collect();
    let documented: BTreeSet<&str> = documented.into_iter().filter(|name| name.starts_with("odin_hub_")).collect();
    ensure!(served == documented, "{served:?} {documented:?}");
    Ok(())
}
