//! What the hub leaves alone in a member, and how it says so.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use odin_hub::api::condition::service::{APPLIED, READY};
use sandbox::eventually;
use serde_json::json;

use crate::world::{LIMIT, Space, amd, condition_of, world};

pub(crate) async fn hub_id(world: &crate::world::World) -> Result<String> {
    let api: Api<ConfigMap> = Api::namespaced(world.fleet.hub().client().await?, "odin-hub");
    Ok(api.get("odin-hub-id").await?.data.unwrap_or_default().remove("id").unwrap_or_default())
}

#[tokio::test]
async fn a_foreign_object_of_the_same_name_is_reported_and_left_alone() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "refuse-foreign").await?;
    let member = world.fleet.member("member-1")?;
    let id = hub_id(world).await?;
    member
        .apply_yaml(&format!(
            "
{{apiVersion: v1, kind: Namespace, metadata: {{name: refuse-foreign, labels: {{federation.odin.moreh.io/allow: {id}}}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: chat, namespace: refuse-foreign, labels: {{owner: somebody-else}}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: theirs}}}}
  template:
    metadata: {{labels: {{app: theirs}}}}
    spec: {{containers: [{{name: theirs, image: registry.example/theirs:1}}]}}
"
        ))
        .await?;
    let theirs = space.deployment(&member, "chat").await?.expect("their Deployment");

    space.apply("chat", &amd(1, 1)).await?;
    let status = space
        .until("chat", "the conflict", |status| status.conditions.iter().any(|c| c.type_ == APPLIED && c.reason == "ObjectConflict"))
        .await?;
    let ready = condition_of(&status, READY);
    ensure!(ready.reason == "ObjectConflict" && ready.message.contains("chat") && ready.message.contains("member-1"), "{ready:?}");
    let now = space.deployment(&member, "chat").await?.expect("still there");
    ensure!(now.spec == theirs.spec && now.metadata.labels == theirs.metadata.labels && now.metadata.uid == theirs.metadata.uid, "{now:?}");

    // Deleting the service doesn't delete what isn't its own.
    space.services().delete("chat", &DeleteParams::default()).await?;
    eventually("the service is gone", LIMIT, || async {
        ensure!(space.services().get_opt("chat").await?.is_none(), "still there");
        Ok(())
    })
    .await?;
    ensure!(
        space
            .deployment(&member, "chat")
            .await?
            .is_some_and(|d| d.metadata.uid == theirs.metadata.uid && d.metadata.deletion_timestamp.is_none())
    );
    Ok(())
}

#[tokio::test]
async fn a_service_goes_on_once_the_foreign_object_is_out_of_the_way() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "refuse-yields").await?;
    let member = world.fleet.member("member-1")?;
    let id = hub_id(world).await?;
    member
        .apply_yaml(&format!(
            "
{{apiVersion: v1, kind: Namespace, metadata: {{name: refuse-yields, labels: {{federation.odin.moreh.io/allow: {id}}}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: chat, namespace: refuse-yields}}
spec:
  replicas: 0
  selector: {{matchLabels: {{app: theirs}}}}
  template: {{metadata: {{labels: {{app: theirs}}}}, spec: {{containers: [{{name: c, image: registry.example/theirs:1}}]}}}}
"
        ))
        .await?;
    space.apply("chat", &amd(1, 1)).await?;
    space.until("chat", "the conflict", |status| status.conditions.iter().any(|c| c.reason == "ObjectConflict")).await?;
    let api: Api<k8s_openapi::api::apps::v1::Deployment> = Api::namespaced(member.client().await?, "refuse-yields");
    api.delete("chat", &DeleteParams::default()).await?;
    space.until_ready("chat", 1).await?;
    Ok(())
}

#[tokio::test]
async fn a_namespace_that_the_member_did_not_open_is_not_written_until_it_does() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "refuse-closed").await?;
    let member = world.fleet.member("member-1")?;
    member.apply_yaml("{apiVersion: v1, kind: Namespace, metadata: {name: refuse-closed}}").await?;
    space.apply("chat", &amd(1, 1)).await?;
    let status = space.until("chat", "the refusal", |status| status.conditions.iter().any(|c| c.reason == "NamespaceNotAllowed")).await?;
    let id = hub_id(world).await?;
    let command = format!("kubectl label namespace refuse-closed federation.odin.moreh.io/allow={id}");
    let ready = condition_of(&status, READY);
    ensure!(ready.reason == "NamespaceNotAllowed" && ready.message.contains(&command), "{ready:?}");
    ensure!(space.deployment(&member, "chat").await?.is_none(), "written all the same");

    // What the command does.
    let namespaces: Api<Namespace> = Api::all(member.client().await?);
    let label = Patch::Merge(json!({"metadata": {"labels": {"federation.odin.moreh.io/allow": id}}}));
    namespaces.patch("refuse-closed", &PatchParams::default(), &label).await?;
    space.until_ready("chat", 1).await?;
    Ok(())
}

#[tokio::test]
async fn a_protected_namespace_is_never_made_in_a_member() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "refuse-system").await?;
    space.apply("chat", &amd(1, 1)).await?;
    let status = space.until("chat", "the refusal", |status| status.conditions.iter().any(|c| c.reason == "NamespaceNotAllowed")).await?;
    ensure!(condition_of(&status, READY).message.contains("refuse-system"), "{status:?}");
    let namespaces: Api<Namespace> = Api::all(world.fleet.member("member-1")?.client().await?);
    ensure!(namespaces.get_opt("refuse-system").await?.is_none(), "the namespace was made");
    Ok(())
}

#[tokio::test]
async fn what_a_member_refuses_is_shown_in_its_own_words() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "refuse-verbatim").await?;
    // Kubernetes accepts the reference in a template and refuses it in a pod template: the volume doesn't exist.
    let spec = "{template: {spec: {containers: [{name: main, image: registry.example/engine:1, volumeMounts: [{name: nowhere, mountPath: /data}]}]}}}";
    space.apply("chat", spec).await?;
    let status = space.until("chat", "the refusal", |status| status.conditions.iter().any(|c| c.reason == "ApplyDenied")).await?;
    let ready = condition_of(&status, READY);
    ensure!(ready.message.contains("volumeMounts[0].name: Not found: \"nowhere\""), "{ready:?}");
    Ok(())
}
