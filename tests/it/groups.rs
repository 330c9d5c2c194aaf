//! `LeaderWorkerSets` in a member, without a hub around it: what is written, what is seen, what goes wrong.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use odin_hub::api::labels::ALLOW;
use odin_hub::api::lws::Release;
use odin_hub::api::odin::WorkloadKind;
use odin_hub::api::reason::Reason;
use odin_hub::capacity::ServiceKey;
use odin_hub::member::{Observed, Outcome, Task};
use odin_hub::status::PodSignal;
use sandbox::eventually;
use serde_json::{Value, json};

use crate::world::LIMIT;
use crate::writing::{Bench, HUB_ID, bench, plain, pod, task_of, uid};

/// A service whose groups have two pods each.
fn pairs(namespace: &str, generation: i64, groups: u32, container: &Value, annotations: &Value) -> Result<Task> {
    let template = json!({"metadata": {"annotations": annotations}, "spec": pod(container)});
    task_of(namespace, "chat", generation, groups, json!({"parallelism": {"pipeline": 2}, "workerTemplate": template}))
}

impl Bench {
    fn groups(&self, namespace: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet");
        Api::namespaced_with(self.client.clone(), namespace, &ApiResource::from_gvk(&kind))
    }

    fn seen(&self, namespace: &str, kind: WorkloadKind) -> Result<Observed> {
        self.member.observe(&ServiceKey::new(namespace, "chat"), &uid(namespace, "chat"), kind).context("not listed")
    }

    async fn until(&self, namespace: &str, kind: WorkloadKind, what: &str, holds: impl Fn(&Observed) -> bool) -> Result<Observed> {
        eventually(what, LIMIT, async || {
            let seen = self.seen(namespace, kind)?;
            ensure!(holds(&seen), "{seen:?}");
            Ok(seen)
        })
        .await
    }

    /// The first signal that `holds` is content with.
    async fn signal(&self, namespace: &str, what: &str, holds: impl Fn(&PodSignal) -> bool) -> Result<PodSignal> {
        let seen = self.until(namespace, WorkloadKind::LeaderWorkerSet, what, |seen| seen.signals.iter().any(&holds)).await?;
        seen.signals.into_iter().find(holds).context("no signal")
    }
}

fn ready(seen: &Observed, kind: WorkloadKind, groups: u32) -> bool {
    seen.workload.as_ref().is_some_and(|w| w.kind == kind && w.ready == groups && w.updated == groups && w.replicas == groups)
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_made_changed_and_removed_with_their_service() -> Result<()> {
    let bench = bench().await?;
    let namespace = "groups-life";
    let kind = WorkloadKind::LeaderWorkerSet;
    let with = json!({"name": "main", "image": "registry.example/engine:1", "env": [{"name": "A", "value": "1"}]});
    bench.applied(&pairs(namespace, 1, 2, &with, &json!({}))?).await?;
    let seen = bench.until(namespace, kind, "both groups are ready", |seen| ready(seen, kind, 2)).await?;
    let workload = seen.workload.context("no workload")?;
    ensure!(workload.release == Some(Release::V0_9) && workload.counted_ready.is_none(), "{workload:?}");
    ensure!(workload.observed_generation == Some(workload.generation), "{workload:?}");
    ensure!(seen.service.as_deref() == Some("chat-service") && seen.previous.is_none(), "another service or workload");

    bench.applied(&pairs(namespace, 2, 1, &plain(), &json!({}))?).await?;
    let changed = bench.groups(namespace).get("chat").await?;
    let env = changed.data.pointer("/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/env");
    ensure!(env.is_none(), "a field that was there at the creation can't be removed: {env:?}");
    bench.until(namespace, kind, "one group of the new revision is ready", |seen| ready(seen, kind, 1)).await?;

    let delete = Task::Delete { service: ServiceKey::new(namespace, "chat"), uid: uid(namespace, "chat") };
    bench.settle(&delete, |outcome| *outcome == Outcome::Deleted).await?;
    bench.until(namespace, kind, "all of it is gone", Observed::is_empty).await?;
    ensure!(bench.services(namespace).get_opt("chat-service").await?.is_none(), "its Service is left");
    bench.member.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_changes_its_kind_without_a_gap() -> Result<()> {
    let bench = bench().await?;
    let namespace = "groups-switch";
    let single = |generation| task_of(namespace, "chat", generation, 1, json!({"template": {"spec": pod(&plain())}}));
    bench.applied(&single(1)?).await?;
    let deployment = WorkloadKind::Deployment;
    bench.until(namespace, deployment, "the Deployment is ready", |seen| ready(seen, deployment, 1)).await?;
    let service = bench.services(namespace).get("chat-service").await?.metadata.uid;

    let mark = bench.cluster.audit().mark();
    bench.applied(&pairs(namespace, 2, 1, &plain(), &json!({}))?).await?;
    let group = WorkloadKind::LeaderWorkerSet;
    bench.until(namespace, group, "the groups are ready and alone", |seen| ready(seen, group, 1) && seen.previous.is_none()).await?;
    ensure!(bench.deployments(namespace).get_opt("chat").await?.is_none(), "the Deployment is left");

    bench.applied(&single(3)?).await?;
    bench
        .until(namespace, deployment, "the Deployment is back and alone", |seen| ready(seen, deployment, 1) && seen.previous.is_none())
        .await?;
    ensure!(bench.services(namespace).get("chat-service").await?.metadata.uid == service, "the Service was made anew");
    let writes = eventually("all writes are in the log", LIMIT, async || {
        let writes = bench.writes(mark, namespace)?;
        let of_kinds: Vec<String> = writes.into_iter().filter(|write| !write.starts_with("patch")).collect();
        ensure!(of_kinds.len() >= 4, "{of_kinds:?}");
        Ok(of_kinds)
    })
    .await?;
    let wanted = ["create leaderworkersets", "delete deployments", "create deployments", "delete leaderworkersets"];
    ensure!(writes == wanted, "the old one goes after the new one was accepted: {writes:?}");
    bench.member.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_that_is_refused_takes_nothing_away() -> Result<()> {
    let bench = bench().await?;
    let namespace = "groups-refused";
    let single = task_of(namespace, "chat", 1, 1, json!({"template": {"spec": pod(&plain())}}))?;
    bench.applied(&single).await?;
    // A LeaderWorkerSet would take the Service of its name for the one of its leaders.
    bench
        .cluster
        .apply_yaml(&format!(
            "{{apiVersion: v1, kind: Service, metadata: {{name: chat, namespace: {namespace}}}, spec: {{ports: [{{port: 1}}]}}}}"
        ))
        .await?;
    let message = bench.refused(&pairs(namespace, 2, 1, &plain(), &json!({}))?, Reason::ObjectConflict).await?;
    for named in [format!("LeaderWorkerSet {namespace}/chat "), format!("Service {namespace}/chat:")] {
        ensure!(message.contains(&named), "{message}");
    }
    ensure!(bench.groups(namespace).get_opt("chat").await?.is_none(), "it was made all the same");
    ensure!(bench.deployments(namespace).get("chat").await?.metadata.deletion_timestamp.is_none(), "what serves was removed");
    bench.member.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_a_quota_refuses_is_told_with_its_group() -> Result<()> {
    let bench = bench().await?;
    let namespace = "groups-quota";
    let manifest = format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}, labels: {{{ALLOW}: {HUB_ID}}}}}}}\n---\n\
         {{apiVersion: v1, kind: ResourceQuota, metadata: {{name: one-pod, namespace: {namespace}}}, spec: {{hard: {{pods: '1'}}}}}}"
    );
    bench.cluster.apply_yaml(&manifest).await?;
    bench.applied(&pairs(namespace, 1, 1, &plain(), &json!({}))?).await?;
    let refused = bench.signal(namespace, "the refusal is told", |signal| signal.reason == Reason::FailedCreate).await?;
    ensure!(refused.message.contains("exceeded quota: one-pod"), "{refused:?}");
    ensure!(
        (refused.object.kind.as_str(), refused.object.name.as_str(), refused.group) == ("StatefulSet", "chat-0", Some(0)),
        "{refused:?}"
    );

    // Once the pod is there, the event is of the past.
    let more = json!({"spec": {"hard": {"pods": "10"}}});
    let quotas: Api<k8s_openapi::api::core::v1::ResourceQuota> = Api::namespaced(bench.client.clone(), namespace);
    quotas.patch("one-pod", &kube::api::PatchParams::default(), &kube::api::Patch::Merge(more)).await?;
    let kind = WorkloadKind::LeaderWorkerSet;
    bench.until(namespace, kind, "the group is ready", |seen| ready(seen, kind, 1) && seen.signals.is_empty()).await?;
    bench.member.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_crashes_again_and_again_says_why_and_how_often() -> Result<()> {
    let bench = bench().await?;
    let namespace = "groups-crash";
    let crash = json!({"sim.odin-hub/fail": "crash", "sim.odin-hub/fail-after": "1s"});
    bench.applied(&pairs(namespace, 1, 1, &plain(), &crash)?).await?;
    let in_a_loop = |signal: &PodSignal| signal.reason == Reason::CrashLoopBackOff && signal.message.contains(" times");
    let told = bench.signal(namespace, "the loop is told", in_a_loop).await?;
    ensure!(told.message.contains("exit code 1") && told.message.contains(" times"), "{told:?}");
    ensure!(told.group == Some(0) && told.container.as_deref() == Some("main"), "{told:?}");

    // Whatever the group does right now: nothing but the count changes.
    let shape = |signal: &PodSignal| signal.message.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    for _ in 0..60 {
        let seen = bench.seen(namespace, WorkloadKind::LeaderWorkerSet)?;
        let Some(crash) = seen.signals.iter().find(|signal| signal.reason == Reason::CrashLoopBackOff) else { bail!("{seen:?}") };
        ensure!(shape(crash) == shape(&told), "{seen:?}");
        ensure!(seen.signals.iter().all(|signal| signal.reason != Reason::Error), "two signals for one end: {seen:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bench.member.stop().await;
    Ok(())
}
