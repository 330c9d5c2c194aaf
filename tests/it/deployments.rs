//! The life of a service that is a Deployment.

use anyhow::{Result, ensure};
use kube::api::{DeleteParams, PropagationPolicy};
use odin_hub::api::condition::service::{PLACED, READY, RENDERED};
use sandbox::eventually;

use crate::world::{LIMIT, Space, amd, clusters, condition_of, plain, world};

#[tokio::test]
async fn a_service_lands_where_its_devices_are_and_becomes_ready() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "life-create").await?;
    space.apply("chat", &amd(2, 2)).await?;
    let status = space.until_ready("chat", 2).await?;

    ensure!(clusters(&status) == "member-1:2", "{status:?}");
    ensure!(status.hpa_pod_selector.as_deref() == Some("mif.moreh.io/inferenceservice=chat"), "{status:?}");
    ensure!(status.rendered_spec.is_some() && status.rendered_hash.is_some() && status.unplaced_replicas.unwrap_or(0) == 0);
    let workload = status.workload.as_ref().expect("a workload");
    ensure!(workload.cluster.as_deref() == Some("member-1") && workload.diagnostic.is_none(), "{workload:?}");
    ensure!(workload.conditions.iter().any(|c| c["reason"] == "MinimumReplicasAvailable"), "verbatim: {workload:?}");
    for type_ in [READY, RENDERED, PLACED] {
        ensure!(condition_of(&status, type_).status == "True", "{type_}: {status:?}");
    }

    let member = world.fleet.member("member-1")?;
    let deployment = space.deployment(&member, "chat").await?.expect("the Deployment");
    let labels = deployment.metadata.labels.clone().unwrap_or_default();
    ensure!(
        labels.contains_key("federation.odin.moreh.io/hub") && labels.contains_key("federation.odin.moreh.io/service-uid"),
        "{labels:?}"
    );
    let pods = space.pods(&member, "chat").await?;
    ensure!(pods.len() == 2, "{} pods", pods.len());
    let hub_keys = pods.iter().flat_map(|pod| pod.metadata.labels.iter().flatten()).filter(|(key, _)| key.starts_with("federation."));
    ensure!(hub_keys.count() == 0, "nothing of the hub stands on pods: they would roll when it changes");
    ensure!(space.deployment(&*world.fleet.member("member-2")?, "chat").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn replicas_follow_kubectl_scale_up_and_down_and_to_zero() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "life-scale").await?;
    space.apply("chat", &amd(1, 1)).await?;
    space.until_ready("chat", 1).await?;
    let member = world.fleet.member("member-1")?;
    for replicas in [4, 2, 0, 1] {
        space.scale("chat", replicas).await?;
        space.until_ready("chat", replicas).await?;
        eventually("the pods are as many", LIMIT, || async {
            let pods = space.pods(&member, "chat").await?.len();
            ensure!(pods == usize::try_from(replicas)?, "{pods} pods");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_a_scale_takes_away_leaves_the_other_pods_alone() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "life-keep").await?;
    let member = world.fleet.member("member-1")?;
    let uids =
        async || -> Result<Vec<String>> { Ok(space.pods(&member, "chat").await?.into_iter().filter_map(|pod| pod.metadata.uid).collect()) };
    space.apply("chat", &amd(2, 1)).await?;
    space.until_ready("chat", 2).await?;
    let before = uids().await?;
    space.scale("chat", 3).await?;
    space.until_ready("chat", 3).await?;
    let after = uids().await?;
    ensure!(before.iter().all(|uid| after.contains(uid)), "a scale rolled pods: {before:?} → {after:?}");
    Ok(())
}

#[tokio::test]
async fn a_template_edit_rolls_its_users_and_a_removed_field_is_removed() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "life-template").await?;
    let template = |env: &str, annotation: &str| {
        format!(
            "{{template: {{metadata: {{annotations: {annotation}}}, spec: {{containers: [{{name: main, image: registry.example/engine:1, args: ['--model={{{{ .Name }}}}'], env: {env}}}]}}}}}}"
        )
    };
    space.apply_object("InferenceServiceTemplate", "base", &template("[{name: A, value: a}, {name: B, value: b}]", "{note: x}")).await?;
    space.apply("chat", "{replicas: 2, templateRefs: [{name: base}]}").await?;
    let first = space.until_ready("chat", 2).await?;
    ensure!(first.sources.iter().any(|s| s.kind == "InferenceServiceTemplate" && s.generation == 1), "{:?}", first.sources);

    space.apply_object("InferenceServiceTemplate", "base", &template("[{name: A, value: changed}]", "{}")).await?;
    let second = space.until("chat", "the new template is rendered", |status| status.rendered_hash != first.rendered_hash).await?;
    ensure!(second.sources.iter().any(|s| s.kind == "InferenceServiceTemplate" && s.generation == 2), "{:?}", second.sources);
    space.until_ready("chat", 2).await?;

    let cluster = second.placements.first().expect("a placement").cluster.clone();
    let member = world.fleet.member(&cluster)?;
    let deployment = space.deployment(&member, "chat").await?.expect("the Deployment");
    let pod_template = deployment.spec.template;
    let container = pod_template.spec.expect("pod spec").containers.remove(0);
    ensure!(container.args == Some(vec!["--model=chat".to_owned()]), "{:?}", container.args);
    let env: Vec<_> = container.env.unwrap_or_default().into_iter().map(|e| (e.name, e.value)).collect();
    ensure!(env == [("A".to_owned(), Some("changed".to_owned()))], "B was removed from the template: {env:?}");
    let annotations = pod_template.metadata.and_then(|m| m.annotations).unwrap_or_default();
    ensure!(!annotations.contains_key("note"), "note was removed from the template: {annotations:?}");
    Ok(())
}

#[tokio::test]
async fn f5_an_image_that_cannot_be_pulled_is_named_and_can_be_mended() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "life-image").await?;
    space.apply("chat", &plain(2, "sim.invalid/missing:1")).await?;
    let status = space
        .until("chat", "the diagnostic names the image", |status| {
            status
                .workload
                .as_ref()
                .and_then(|w| w.diagnostic.as_ref())
                .is_some_and(|d| d.reason == "ImagePullBackOff" || d.reason == "ErrImagePull")
                // Both pods are there, of the newest revision: only they know that they don't run.
                && (status.replicas, status.updated_replicas, status.ready_replicas) == (Some(2), Some(2), Some(0))
        })
        .await?;
    let diagnostic = status.workload.as_ref().and_then(|w| w.diagnostic.clone()).expect("a diagnostic");
    ensure!(diagnostic.message.contains("sim.invalid/missing:1"), "{diagnostic:?}");
    ensure!(diagnostic.container.as_deref() == Some("main") && diagnostic.involved_object.kind == "Pod", "{diagnostic:?}");
    let ready = condition_of(&status, READY);
    ensure!(ready.status == "False" && ready.reason == diagnostic.reason, "{ready:?}");

    space.apply("chat", &plain(2, "registry.example/engine:1")).await?;
    let status = space.until_ready("chat", 2).await?;
    ensure!(status.workload.and_then(|w| w.diagnostic).is_none(), "a ready service has no diagnostic");
    Ok(())
}

#[tokio::test]
async fn a_deleted_service_takes_its_objects_along() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "life-delete").await?;
    space.apply("chat", &amd(2, 1)).await?;
    space.until_ready("chat", 2).await?;
    let member = world.fleet.member("member-1")?;
    let background = DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
    space.services().delete("chat", &background).await?;
    eventually("service, Deployment and pods are gone", LIMIT, || async {
        ensure!(space.services().get_opt("chat").await?.is_none(), "the service is there");
        ensure!(space.deployment(&member, "chat").await?.is_none(), "the Deployment is there");
        ensure!(space.pods(&member, "chat").await?.is_empty(), "pods are there");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn one_that_fits_nowhere_shows_the_numbers_of_each_member() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "life-unplaced").await?;
    space.apply("chat", &amd(1, 16)).await?;
    let status = space.until("chat", "each member is rejected", |status| status.rejections.len() >= 2).await?;
    let placed = condition_of(&status, PLACED);
    ensure!(placed.status == "False" && status.unplaced_replicas == Some(1), "{status:?}");
    let one = status.rejections.iter().find(|r| r.cluster == "member-1").expect("member-1 is rejected");
    // How much is free is up to the other tests.
    ensure!(["Fragmented", "InsufficientRoom"].contains(&one.reason.as_str()), "{one:?}");
    ensure!(one.message.contains("needs 1 node with 16 free amd.com/gpu (mi300x); largest free: "), "{one:?}");
    let two = status.rejections.iter().find(|r| r.cluster == "member-2").expect("member-2 is rejected");
    ensure!(two.reason != one.reason || two.message != one.message, "{two:?}");
    ensure!(condition_of(&status, READY).reason == "Unplaced", "{status:?}");
    // It fits after an edit.
    space.apply("chat", &amd(1, 1)).await?;
    space.until_ready("chat", 1).await?;
    Ok(())
}

#[tokio::test]
async fn a_template_that_breaks_leaves_what_runs_alone_and_says_where() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "life-broken").await?;
    let template =
        |arg: &str| format!("{{template: {{spec: {{containers: [{{name: main, image: registry.example/engine:1, args: ['{arg}']}}]}}}}}}");
    space.apply_object("InferenceServiceTemplate", "base", &template("{{ .Namespace }}")).await?;
    space.apply("chat", "{replicas: 1, templateRefs: [{name: base}]}").await?;
    let before = space.until_ready("chat", 1).await?;

    space.apply_object("InferenceServiceTemplate", "base", &template("{{ deref .Spec \"Model\" \"Name\" }}")).await?;
    let broken = space.until("chat", "the render error", |status| condition_of(status, RENDERED).status == "False").await?;
    let rendered = condition_of(&broken, RENDERED);
    ensure!(rendered.reason == "RenderFailed", "{rendered:?}");
    for word in ["base", "containers[main].args[0]", "Model"] {
        ensure!(rendered.message.contains(word), "{word} in {rendered:?}");
    }
    ensure!(broken.observed_generation == before.observed_generation && broken.ready_replicas == Some(1), "{broken:?}");
    ensure!(condition_of(&broken, READY).status == "False", "{broken:?}");

    space.apply_object("InferenceServiceTemplate", "base", &template("mended")).await?;
    space.until_ready("chat", 1).await?;
    Ok(())
}

#[tokio::test]
async fn a_service_may_come_before_its_template() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "life-order").await?;
    space.apply("chat", "{replicas: 1, templateRefs: [{name: later}]}").await?;
    let status = space.until("chat", "the missing template is named", |status| !status.conditions.is_empty()).await?;
    let rendered = condition_of(&status, RENDERED);
    ensure!(rendered.reason == "TemplateNotFound" && rendered.message.contains("later"), "{rendered:?}");
    space
        .apply_object(
            "InferenceServiceTemplate",
            "later",
            "{template: {spec: {containers: [{name: main, image: registry.example/engine:1}]}}}",
        )
        .await?;
    space.until_ready("chat", 1).await?;
    Ok(())
}
