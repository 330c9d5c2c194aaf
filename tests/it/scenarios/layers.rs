//! Layers, names and numbers of a service: what is refused, with which words, and that nothing running is lost by it.

use anyhow::{Context as _, Result, ensure};
use kube::api::{Patch, PatchParams};
use odin_hub::api::condition::service::{PLACED, READY, RENDERED};
use sandbox::eventually;
use serde_json::json;

use crate::world::{LIMIT, Space, amd, condition_of, plain, world};

fn template(image: &str) -> String {
    format!("{{template: {{spec: {{containers: [{{name: main, image: 'registry.example/{image}'}}]}}}}}}")
}

async fn cluster_scoped(space: &Space, kind: &str, name: &str, spec: &str) -> Result<()> {
    let spec: serde_json::Value = serde_saphyr::from_str(spec)?;
    let object = json!({"apiVersion": "odin.moreh.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    sandbox::apply::apply_values(&space.client, vec![object], &sandbox::ApplyOptions::default()).await?;
    Ok(())
}

#[tokio::test]
async fn i4_two_places_that_name_a_base_are_both_told_and_what_runs_goes_on() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "layers-base").await?;
    cluster_scoped(&space, "RuntimeBase", "layers-engine", &template("engine:1")).await?;
    let based = |more: &str| format!("{{framework: vllm{more}}}");
    space.apply_object("InferenceServiceTemplate", "preset", &based("")).await?;
    space.apply("chat", "{runtimeBaseRef: {name: layers-engine}, templateRefs: [{name: preset}]}").await?;
    let before = space.until_ready("chat", 1).await?;
    let cluster = before.placements.first().context("a placement")?.cluster.clone();
    let member = world.fleet.member(&cluster)?;
    let running = space.deployment(&member, "chat").await?.context("the Deployment")?;

    space.apply_object("InferenceServiceTemplate", "preset", &based(", runtimeBaseRef: {name: layers-engine}")).await?;
    let status = space.until("chat", "the conflict", |status| condition_of(status, RENDERED).status == "False").await?;
    let rendered = condition_of(&status, RENDERED);
    ensure!(rendered.reason == "RuntimeBaseConflict", "{rendered:?}");
    for place in
        ["InferenceService layers-base/chat (spec.runtimeBaseRef)", "InferenceServiceTemplate layers-base/preset (spec.templateRefs[0])"]
    {
        ensure!(rendered.message.contains(place), "{place} in {rendered:?}");
    }
    ensure!(status.ready_replicas == Some(1) && condition_of(&status, READY).status == "False", "{status:?}");
    let still = space.deployment(&member, "chat").await?.context("the Deployment")?;
    ensure!(still.metadata.uid == running.metadata.uid && still.spec == running.spec, "what runs was touched: {still:?}");

    space.apply_object("InferenceServiceTemplate", "preset", &based("")).await?;
    space.until_ready("chat", 1).await?;
    Ok(())
}

#[tokio::test]
async fn i5_of_two_templates_of_one_name_the_one_of_the_cluster_is_used_and_named() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "layers-both").await?;
    space.apply_object("InferenceServiceTemplate", "layers-both", &template("local:1")).await?;
    cluster_scoped(&space, "ClusterInferenceServiceTemplate", "layers-both", &template("shared:1")).await?;
    let image = |status: &odin_hub::api::odin::InferenceServiceStatus| {
        status.rendered_spec.as_ref().and_then(|spec| spec.pointer("/template/spec/containers/0/image").cloned())
    };
    for (reference, kind, namespace, used) in [
        ("{name: layers-both}", "ClusterInferenceServiceTemplate", None, "shared"),
        ("{name: layers-both, kind: InferenceServiceTemplate}", "InferenceServiceTemplate", Some("layers-both"), "local"),
        ("{name: layers-both}", "ClusterInferenceServiceTemplate", None, "shared"),
    ] {
        space.apply("chat", &format!("{{replicas: 1, templateRefs: [{reference}]}}")).await?;
        let what = format!("{reference} leads to the {kind}");
        let status = space.until("chat", &what, |status| image(status) == Some(json!(format!("registry.example/{used}:1")))).await?;
        let source = status.sources.first().context("a source")?;
        ensure!(
            (source.kind.as_str(), source.namespace.as_deref(), source.name.as_str(), source.generation)
                == (kind, namespace, "layers-both", 1),
            "{source:?}"
        );
    }
    cluster_scoped(&space, "ClusterInferenceServiceTemplate", "layers-both", &template("shared:2")).await?;
    space
        .until("chat", "the generation that is used", |status| status.sources.first().is_some_and(|source| source.generation == 2))
        .await?;
    Ok(())
}

#[tokio::test]
async fn i25_a_name_that_no_group_can_have_is_refused_before_anything_is_sent() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "layers-name").await?;
    let name = format!("70b-{}", "a".repeat(56));
    let workers = "{workerTemplate: {spec: {containers: [{name: main, image: 'registry.example/engine:1'}]}}, parallelism: {pipeline: 2}}";
    space.apply_object("InferenceServiceTemplate", "groups", workers).await?;
    space.apply(&name, "{replicas: 1, templateRefs: [{name: groups}]}").await?;
    let status = space.until(&name, "the refusal", |status| condition_of(status, RENDERED).status == "False").await?;
    let rendered = condition_of(&status, RENDERED);
    ensure!(rendered.reason == "NameNotAllowed" && rendered.message.contains("use at most 50"), "{rendered:?}");
    ensure!(status.placements.is_empty(), "{status:?}");
    for member in world.fleet.members() {
        let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(member.client().await?);
        ensure!(namespaces.get_opt(&space.namespace).await?.is_none(), "something was sent to {}", member.name());
    }
    space.apply_object("InferenceServiceTemplate", "groups", &template("engine:1")).await?;
    space.until_ready(&name, 1).await?;
    Ok(())
}

#[tokio::test]
async fn f66_absurd_numbers_of_replicas_are_refused_or_told_and_harm_nobody() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "layers-absurd").await?;
    space.apply("chat", &plain(1, "registry.example/engine:1")).await?;
    space.until_ready("chat", 1).await?;
    let services = space.services();
    for replicas in [-1_i64, 1_000_001, 1_000_000_000, i64::from(i32::MAX) + 1, i64::MAX] {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let scaled = services.patch_scale("chat", &PatchParams::default(), &patch).await;
        ensure!(scaled.is_err(), "{replicas} was taken by scale: {scaled:?}");
        let edited = services.patch("chat", &PatchParams::default(), &patch).await;
        ensure!(edited.is_err(), "{replicas} was taken by an edit: {edited:?}");
    }
    // The most that is taken, of what has no place anywhere.
    space.apply("huge", &amd(1_000_000, 16)).await?;
    let status = space.until("huge", "none is placed", |status| status.unplaced_replicas == Some(1_000_000)).await?;
    let placed = condition_of(&status, PLACED);
    ensure!(placed.status == "False" && placed.message.starts_with("0 of 1000000 groups"), "{placed:?}");
    // The hub goes on.
    space.scale("chat", 2).await?;
    space.until_ready("chat", 2).await?;
    services.delete("huge", &kube::api::DeleteParams::default()).await?;
    eventually("it goes too", LIMIT, async || {
        ensure!(services.get_opt("huge").await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    ensure!(world.hub.process().is_alive(), "the hub ended: {}", world.hub.process().log_tail(20));
    Ok(())
}
