//! What belongs to a service beside its workload: layers that break, events, pools, gateways, rules of its namespace.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt};
use odin_hub::api::condition::service::{READY, RENDERED};
use odin_hub::api::labels::{AI_GATEWAY, POD_POLICY};
use sandbox::eventually;
use serde_json::{Value, json};

use crate::world::{LIMIT, Space, condition_of, world};

/// A group of two pods that runs on any node of member-1; `argument` is an argument of both.
fn groups(argument: &str) -> String {
    let pod = json!({"spec": {
        "nodeSelector": {"moai.moreh.io/accelerator.model": "mi300x"},
        "tolerations": [{"key": "amd.com/gpu", "operator": "Exists"}],
        "containers": [{"name": "main", "image": "registry.example/engine:1", "args": [argument]}],
    }});
    json!({"parallelism": {"pipeline": 2}, "workerTemplate": pod}).to_string()
}

impl Space {
    /// Waits for an event beside a service.
    async fn until_event(&self, service: &str, reason: &str, type_: &str, words: &[&str]) -> Result<()> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        eventually(&format!("an event {reason}"), LIMIT, async || {
            let events = api.list(&ListParams::default()).await?.items;
            let is_it = |event: &&Event| {
                let of_service = event.regarding.as_ref().is_some_and(|object| object.name.as_deref() == Some(service));
                let note = event.note.as_deref().unwrap_or_default();
                of_service
                    && event.reason.as_deref() == Some(reason)
                    && event.type_.as_deref() == Some(type_)
                    && words.iter().all(|w| note.contains(w))
            };
            let seen: Vec<_> = events.iter().map(|event| (&event.reason, &event.type_, &event.note)).collect();
            ensure!(events.iter().any(|event| is_it(&event)), "{seen:?}");
            Ok(())
        })
        .await
    }
}

#[tokio::test]
async fn a_broken_template_leaves_groups_alone_and_events_tell_of_it() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "around-broken").await?;
    let member = world.fleet.member("member-1")?;
    space.apply_object("InferenceServiceTemplate", "base", &groups("{{ .Namespace }}")).await?;
    space.apply("chat", "{replicas: 1, templateRefs: [{name: base}]}").await?;
    let before = space.until_ready("chat", 1).await?;
    let sources: Vec<_> = before.sources.iter().map(|s| (s.kind.as_str(), s.namespace.as_deref(), s.name.as_str(), s.generation)).collect();
    let own = Some("around-broken");
    ensure!(
        sources == [("InferenceServiceTemplate", own, "base", 1), ("InferenceService", own, "chat", 1)],
        "lowest first, each with its generation: {sources:?}"
    );
    space.until_event("chat", "Placed", "Normal", &["member-1:1"]).await?;

    let kind = GroupVersionKind::gvk("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet");
    let sets: Api<DynamicObject> = Api::namespaced_with(member.client().await?, &space.namespace, &ApiResource::from_gvk(&kind));
    let pods: Api<Pod> = Api::namespaced(member.client().await?, &space.namespace);
    let runs = async || -> Result<Value> {
        let set = sets.get("chat").await?;
        let pods = pods.list(&ListParams::default()).await?.items;
        Ok(json!({"set": [set.uid(), set.metadata.generation], "pods": pods.iter().map(ResourceExt::uid).collect::<Vec<_>>()}))
    };
    let ran = runs().await?;
    ensure!(ran["pods"].as_array().is_some_and(|pods| pods.len() == 2), "{ran}");
    space.apply_object("InferenceServiceTemplate", "base", &groups("{{ deref .Spec \"Model\" \"Name\" }}")).await?;
    let broken = space.until("chat", "the render error", |status| condition_of(status, RENDERED).status == "False").await?;
    let rendered = condition_of(&broken, RENDERED);
    for word in ["base", "spec.workerTemplate.spec.containers[main].args[0]", "Model"] {
        ensure!(rendered.reason == "RenderFailed" && rendered.message.contains(word), "{word} in {rendered:?}");
    }
    ensure!(broken.ready_replicas == Some(1) && condition_of(&broken, READY).reason == "RenderFailed", "{broken:?}");
    space.until_event("chat", "RenderFailed", "Warning", &["base", "Model"]).await?;
    let runs = runs().await?;
    ensure!(runs == ran, "what ran was touched: {runs}, before {ran}");

    space.apply_object("InferenceServiceTemplate", "base", &groups("mended")).await?;
    let mended = space.until_ready("chat", 1).await?;
    ensure!(mended.sources.first().is_some_and(|s| s.name == "base" && s.generation == 3), "{:?}", mended.sources);
    space.until_event("chat", "Rendered", "Normal", &["renders again"]).await?;

    // By hand, in the member.
    sets.patch("chat", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 2}}))).await?;
    space.until_event("chat", "DriftCorrected", "Warning", &["member-1/chat", "LeaderWorkerSet"]).await?;
    space.until_ready("chat", 1).await?;
    Ok(())
}

/// The kind of another project, as far as the hub reads it.
const POOLS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: inferencepools.inference.networking.k8s.io
  annotations: {api-approved.kubernetes.io: 'unapproved, this is not the real one'}
spec:
  group: inference.networking.k8s.io
  scope: Namespaced
  names: {kind: InferencePool, plural: inferencepools, singular: inferencepool}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

#[tokio::test]
async fn pods_join_the_pool_and_the_gateway_of_their_service() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "around-pools").await?;
    let member = world.fleet.member("member-1")?;
    let services = [("single", "template"), ("group", "workerTemplate")];
    for (name, template) in services {
        let mut spec: Value = serde_json::from_str(&groups("plain"))?;
        spec[template] = spec["workerTemplate"].clone();
        if name == "single" {
            for field in ["workerTemplate", "parallelism"] {
                spec.as_object_mut().context("no object")?.remove(field);
            }
        }
        spec["inferencePoolRefs"] = json!([{"name": "pool-a"}]);
        space.apply(name, &spec.to_string()).await?;
    }
    let warned = async |name: &str| {
        let status = space.until(name, "the pool that isn't there is told", |status| {
            let rendered = status.conditions.iter().find(|c| c.type_ == RENDERED);
            rendered.is_some_and(|c| c.status == "True" && c.message.contains("pool-a"))
        });
        status.await.map(drop)
    };
    for (name, _) in services {
        // A warning, and no more.
        warned(name).await?;
        space.until_ready(name, 1).await?;
    }

    world.fleet.hub().apply_yaml(POOLS).await?;
    let pool = "{apiVersion: inference.networking.k8s.io/v1, kind: InferencePool, metadata: {name: pool-a, namespace: around-pools}, \
                spec: {selector: {matchLabels: {serving: pool-a}}}}";
    world.fleet.hub().apply_yaml(pool).await?;
    let gateway = Patch::Merge(json!({"metadata": {"labels": {AI_GATEWAY: "main-gw"}}}));
    for (name, _) in services {
        space.services().patch(name, &PatchParams::default(), &gateway).await?;
    }
    for (name, _) in services {
        eventually(&format!("the pods of {name} have the labels of pool and gateway"), LIMIT, async || {
            let mut pods = space.pods(&member, name).await?;
            pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
            let labelled = |pod: &Pod| {
                pod.labels().get("serving").is_some_and(|pool| pool == "pool-a")
                    && pod.labels().get(AI_GATEWAY).is_some_and(|gateway| gateway == "main-gw")
            };
            ensure!(!pods.is_empty() && pods.iter().all(labelled), "{:?}", pods.iter().map(ResourceExt::labels).collect::<Vec<_>>());
            Ok(())
        })
        .await?;
        let status = space.until_ready(name, 1).await?;
        ensure!(!condition_of(&status, RENDERED).message.contains("pool-a"), "{status:?}");
    }

    let kind = GroupVersionKind::gvk("inference.networking.k8s.io", "v1", "InferencePool");
    let pools: Api<DynamicObject> = Api::namespaced_with(space.client.clone(), "around-pools", &ApiResource::from_gvk(&kind));
    pools.delete("pool-a", &DeleteParams::default()).await?;
    for (name, _) in services {
        warned(name).await?;
        space.until_ready(name, 1).await?;
        let pods = space.pods(&member, name).await?;
        let left = pods.iter().any(|pod| pod.metadata.deletion_timestamp.is_none() && pod.labels().contains_key("serving"));
        ensure!(!left, "a pod of {name} still has the label of a pool that is gone");
    }
    Ok(())
}

#[tokio::test]
async fn a_namespace_of_the_hub_decides_what_its_pods_may_do() -> Result<()> {
    let world = world().await;
    let namespace = "around-exempt";
    let security = BTreeMap::from([("pod-security.kubernetes.io/enforce", "privileged"), ("pod-security.kubernetes.io/warn", "baseline")]);
    let label = async |policy: Option<&str>| {
        let mut labels: BTreeMap<&str, &str> = security.clone();
        labels.extend(policy.map(|policy| (POD_POLICY, policy)));
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}});
        world.fleet.hub().apply_yaml(&object.to_string()).await
    };
    label(None).await?;
    let space = Space { client: world.fleet.hub().client().await?, namespace: namespace.to_owned() };
    let mut spec: Value = serde_json::from_str(&groups("plain"))?;
    spec["workerTemplate"]["spec"]["hostNetwork"] = json!(true);
    space.apply("chat", &spec.to_string()).await?;
    let refused = space.until("chat", "the refusal", |status| status.conditions.iter().any(|c| c.reason == "PodNotAllowed")).await?;
    let ready = condition_of(&refused, READY);
    for word in ["spec.workerTemplate.spec.hostNetwork", "federation.odin.moreh.io/pod-policy=privileged"] {
        ensure!(ready.reason == "PodNotAllowed" && ready.message.contains(word), "{word} in {ready:?}");
    }
    ensure!(refused.workload.is_none() && refused.placements.is_empty(), "nothing was made: {refused:?}");

    // What the message says.
    label(Some("privileged")).await?;
    space.until_ready("chat", 1).await?;
    let member = world.fleet.member("member-1")?;
    let pods = space.pods(&member, "chat").await?;
    ensure!(pods.iter().all(|pod| pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true)) && !pods.is_empty(), "{pods:?}");
    let made = Api::<Namespace>::all(member.client().await?).get(namespace).await?;
    for (key, value) in security {
        ensure!(made.labels().get(key).is_some_and(|found| found == value), "{key} in {:?}", made.labels());
    }
    Ok(())
}
