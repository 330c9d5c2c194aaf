//! Members: how they are registered, what is refused, and one that doesn't answer.

use std::process::Command;

use anyhow::{Result, anyhow, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, ResourceQuota};
use kube::Api;
use kube::api::{Patch, PatchParams};
use odin_hub::api::condition::{self, member as types};
use odin_hub::api::federation::{MemberCluster, MemberClusterStatus};
use odin_hub::api::labels::ALLOW;
use sandbox::hub;
use sandbox::sim::NodeSpec;
use sandbox::{Cluster, Fleet, MemberSpec, eventually};
use serde_json::json;

use crate::world::{LIMIT, PROGRAM, Space, World, world};

async fn until(fleet: &Fleet, name: &str, what: &str, holds: impl Fn(&MemberClusterStatus) -> bool) -> Result<MemberClusterStatus> {
    let api: Api<MemberCluster> = Api::all(fleet.hub().client().await?);
    eventually(what, LIMIT, || async {
        let cluster = api.get_opt(name).await?.ok_or_else(|| anyhow!("no MemberCluster {name}"))?;
        let status = cluster.status.ok_or_else(|| anyhow!("no status"))?;
        ensure!(holds(&status), "{}", serde_json::to_string(&status)?);
        Ok(status)
    })
    .await
}

fn is(status: &MemberClusterStatus, type_: &str, truth: &str) -> bool {
    condition::find(&status.conditions, type_).is_some_and(|c| c.status == truth)
}

#[tokio::test]
async fn a_labelled_secret_registers_a_member_that_shows_its_accelerators() -> Result<()> {
    let world = world().await;
    let status = until(world.fleet, "member-2", "member-2 is ready", |status| is(status, types::READY, "True")).await?;
    for type_ in [types::REACHABLE, types::CREDENTIAL_VALID, types::SYNCED, types::LEADER_WORKER_SET_AVAILABLE] {
        ensure!(is(&status, type_, "True"), "{type_}: {status:?}");
    }
    ensure!(status.cluster_uid.is_some() && status.kubernetes_version.as_deref().is_some_and(|v| v.starts_with("v1.")), "{status:?}");
    ensure!(status.credential.as_ref().is_some_and(|c| c.type_ == "token" && c.expires_at.is_some()), "{:?}", status.credential);
    let gpu = status.accelerators.iter().find(|a| a.resource == "nvidia.com/gpu").ok_or_else(|| anyhow!("{status:?}"))?;
    ensure!(
        (gpu.nodes, gpu.allocatable, gpu.model.as_deref(), gpu.vendor.as_deref()) == (5, 40, Some("h200-sxm"), Some("nvidia")),
        "{gpu:?}"
    );
    ensure!(status.accelerator_summary.as_deref().is_some_and(|s| s.ends_with("/40 h200-sxm")), "{status:?}");
    Ok(())
}

#[tokio::test]
async fn a_kubeconfig_that_would_run_or_read_something_is_refused_by_field() -> Result<()> {
    let world = world().await;
    let user = |user: &str| {
        format!(
            "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:1'}}}}], users: [{{name: u, user: {user}}}], contexts: [{{name: c, context: {{cluster: c, user: u}}}}]}}"
        )
    };
    let canary = "canary-7d1f";
    for (name, kubeconfig, field) in [
        (
            "refused-exec",
            user(&format!("{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: touch, args: ['/tmp/{canary}']}}}}")),
            "exec",
        ),
        ("refused-path", user("{tokenFile: /etc/hostname}"), "tokenFile"),
        ("refused-basic", user(&format!("{{username: admin, password: {canary}}}")), "username"),
        ("refused-text", format!("no kubeconfig, only {canary}"), ""),
    ] {
        hub::register(world.fleet.hub(), name, &kubeconfig).await?;
        let status = until(world.fleet, name, "the refusal", |status| is(status, types::CREDENTIAL_VALID, "False")).await?;
        let ready = condition::find(&status.conditions, types::READY).ok_or_else(|| anyhow!("no Ready"))?;
        ensure!(ready.status == "False" && ready.reason == "CredentialRefused" && ready.message.contains(field), "{ready:?}");
        ensure!(!serde_json::to_string(&status)?.contains(canary), "a secret stands in the status: {status:?}");
    }
    ensure!(!std::path::Path::new(&format!("/tmp/{canary}")).exists(), "a program was run");
    let log = std::fs::read_to_string(world.hub.process().log_path())?;
    ensure!(!log.contains(canary), "a secret stands in the log");
    Ok(())
}

/// The same cluster twice would count each device twice.
#[tokio::test]
async fn a_second_registration_of_one_cluster_does_not_count() -> Result<()> {
    let world = world().await;
    until(world.fleet, "member-2", "member-2 is ready", |status| is(status, types::READY, "True")).await?;
    let kubeconfig = hub::member_account(&*world.fleet.member("member-2")?, &hub::repository()).await?;
    hub::register(world.fleet.hub(), "member-2-again", &kubeconfig).await?;
    let status = until(world.fleet, "member-2-again", "the duplicate", |status| is(status, types::READY, "False")).await?;
    let ready = condition::find(&status.conditions, types::READY).ok_or_else(|| anyhow!("no Ready"))?;
    ensure!(ready.reason == "Duplicate" && ready.message.contains("member-2"), "{ready:?}");
    Ok(())
}

fn odin_hub(arguments: &[&str]) -> Result<String> {
    let output = Command::new(PROGRAM).args(arguments).env_remove("KUBECONFIG").output()?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "odin-hub {arguments:?}: {}: {text}", output.status);
    Ok(text)
}

/// A member that is joined by the command, and then falls silent while its services and those of others go on.
#[tokio::test]
async fn a_silent_member_stops_nothing_elsewhere_and_is_told_apart() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "silent").await?;
    let nodes = (0..2).map(|n| NodeSpec::gpu(&format!("intel-{n}"), "intel", "max-1550", 8)).collect();
    let member = world.fleet.add_member(MemberSpec::new("member-silent", nodes)).await?;
    a_quota_for_three(world, &member).await?;
    let admin = member.kubeconfig_path().to_string_lossy().into_owned();
    let hub_admin = world.fleet.hub().kubeconfig_path().to_string_lossy().into_owned();
    let told =
        tokio::task::spawn_blocking(move || odin_hub(&["join", "member-silent", "--kubeconfig", &admin, "--hub-kubeconfig", &hub_admin]))
            .await??;
    ensure!(!told.contains("eyJ"), "a token stands in the output: {told}");
    until(world.fleet, "member-silent", "the joined member is ready", |status| is(status, types::READY, "True")).await?;
    quotas_bound_what_is_placed_unless_they_are_ignored(world).await?;

    space.apply("pairs", &format!("{{replicas: 1, parallelism: {{pipeline: 2}}, workerTemplate: {}}}", intel_pod())).await?;
    space.until_ready("pairs", 1).await?;
    space.apply("there", &there(2)).await?;
    let before = space.until_ready("there", 2).await?;
    ensure!(before.clusters.as_deref() == Some("member-silent:2"), "{before:?}");

    member.apiserver().pause()?;
    // Tasks for the silent member wait in its own queue, and nobody else's.
    space.apply("there", &there(3)).await?;
    for (name, spec) in [("elsewhere", crate::world::amd(1, 1)), ("more", crate::world::amd(2, 1))] {
        space.apply(name, &spec).await?;
        let placed = space.until_ready(name, if name == "more" { 2 } else { 1 }).await?;
        ensure!(placed.clusters.as_deref().is_some_and(|c| c.starts_with("member-1:")), "{placed:?}");
    }
    space.scale("elsewhere", 2).await?;
    space.until_ready("elsewhere", 2).await?;

    let lost = until(world.fleet, "member-silent", "the member is unreachable", |status| is(status, types::REACHABLE, "False")).await?;
    ensure!(lost.last_seen.is_some() && is(&lost, types::READY, "False"), "{lost:?}");
    let stale = space.until("there", "its share left the sums", |status| status.placements.first().is_some_and(|p| p.stale)).await?;
    ensure!(stale.ready_replicas == Some(0) && stale.replicas == Some(2), "{stale:?}");
    let ready = condition::find(&stale.conditions, condition::service::READY).ok_or_else(|| anyhow!("no Ready"))?;
    ensure!(ready.status != "True" && ready.reason == "MemberUnreachable", "{ready:?}");
    let pairs = space.until("pairs", "its share left the sums", |status| status.placements.first().is_some_and(|p| p.stale)).await?;
    for status in [&stale, &pairs] {
        let told = status.workload.as_ref().and_then(|w| w.diagnostic.as_ref()).ok_or_else(|| anyhow!("no diagnostic: {status:?}"))?;
        ensure!(
            told.reason == "MemberUnreachable"
                && told.cluster.as_deref() == Some("member-silent")
                && told.message.starts_with("member-silent/member-silent: ")
                && told.message.ends_with(" affected)")
                && told.involved_object.kind == "MemberCluster"
                && lost.last_seen.as_ref().is_some_and(|seen| told.observed_at.0 <= seen.0),
            "{told:?}, last seen {:?}",
            lost.last_seen
        );
    }

    // It comes back, and what was wanted meanwhile is there.
    member.apiserver().resume()?;
    until(world.fleet, "member-silent", "the member is back", |status| is(status, types::READY, "True")).await?;
    space.until_ready("there", 3).await?;
    let pairs = space.until_ready("pairs", 1).await?;
    ensure!(pairs.workload.is_some_and(|workload| workload.diagnostic.is_none()), "it is told of what was");
    Ok(())
}

/// A pod template with one device that member-silent alone has.
fn intel_pod() -> &'static str {
    "{spec: {tolerations: [{operator: Exists}], containers: [{name: main, image: registry.example/engine:1, resources: {limits: {intel.com/gpu: 1}}}]}}"
}

fn there(replicas: i32) -> String {
    format!("{{replicas: {replicas}, template: {}}}", intel_pod())
}

const BOUND: &str = "silent-quota";

/// A namespace whose quota admits three devices, before the hub knows the member.
async fn a_quota_for_three(world: &World, member: &Cluster) -> Result<()> {
    let ids: Api<ConfigMap> = Api::namespaced(world.fleet.hub().client().await?, hub::NAMESPACE);
    let id = ids.get("odin-hub-id").await?.data.unwrap_or_default().remove("id").unwrap_or_default();
    member
        .apply_yaml(&format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: {BOUND}, labels: {{{ALLOW}: {id}}}}}}}\n---\n\
             {{apiVersion: v1, kind: ResourceQuota, metadata: {{name: three, namespace: {BOUND}}}, spec: {{hard: {{requests.intel.com/gpu: '3'}}}}}}"
        ))
        .await?;
    let quotas: Api<ResourceQuota> = Api::namespaced(member.client().await?, BOUND);
    eventually("the quota counts", LIMIT, async || {
        let quota = quotas.get("three").await?;
        ensure!(quota.status.as_ref().is_some_and(|status| status.hard.is_some() && status.used.is_some()), "{quota:?}");
        Ok(())
    })
    .await
}

async fn quotas_bound_what_is_placed_unless_they_are_ignored(world: &World) -> Result<()> {
    let space = Space::new(world.fleet, BOUND).await?;
    space.apply("chat", &there(4)).await?;
    let bound = space.until("chat", "three have a place and are ready", |status| status.ready_replicas == Some(3)).await?;
    ensure!(bound.clusters.as_deref() == Some("member-silent:3") && bound.unplaced_replicas == Some(1), "{bound:?}");
    let rejection = bound.rejections.iter().find(|r| r.cluster == "member-silent").ok_or_else(|| anyhow!("no rejection: {bound:?}"))?;
    ensure!(rejection.reason == "QuotaExceeded", "{rejection:?}");
    for word in ["quota three in silent-quota", "of 3 requests.intel.com/gpu", "3 of 4 replicas fit"] {
        ensure!(rejection.message.contains(word), "{word:?} in {rejection:?}");
    }

    let api: Api<MemberCluster> = Api::all(world.fleet.hub().client().await?);
    let ignore = Patch::Merge(json!({"spec": {"ignoreResourceQuota": true}}));
    api.patch("member-silent", &PatchParams::default(), &ignore).await?;
    // The decision is the hub's, and the quota is the member's all the same.
    let placed = space
        .until("chat", "the member's quota is told", |status| {
            status.workload.as_ref().is_some_and(|w| w.diagnostic.as_ref().is_some_and(|d| d.reason == "FailedCreate"))
        })
        .await?;
    ensure!(placed.clusters.as_deref() == Some("member-silent:4") && placed.unplaced_replicas.unwrap_or(0) == 0, "{placed:?}");
    let ready = condition::find(&placed.conditions, condition::service::READY).ok_or_else(|| anyhow!("no Ready"))?;
    ensure!(
        ready.message.contains("exceeded quota: three, requested: requests.intel.com/gpu=1, used: requests.intel.com/gpu=3"),
        "{ready:?}"
    );
    space.scale("chat", 3).await?;
    space.until_ready("chat", 3).await?;
    Ok(())
}
