//! The member modules against a real API server, without a hub around them: what is written, what is left alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use odin_hub::api::labels::{ALLOW, HUB, SERVICE_UID};
use odin_hub::api::reason::Reason;
use odin_hub::capacity::ServiceKey;
use odin_hub::member::{Event, Member, Outcome, Settings, Task, parse_kubeconfig};
use odin_hub::render::Rendered;
use odin_hub::workload::{self, Owner};
use sandbox::{Cluster, Fleet, eventually, hub};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::world::LIMIT;

const HUB_ID: &str = "hub-of-writing-tests";

/// A member with the rights of its account, and what it tells.
struct Bench {
    cluster: Arc<Cluster>,
    member: Arc<Member>,
    events: mpsc::Receiver<Event>,
    client: Client,
}

async fn bench() -> Result<Bench> {
    let fleet = Fleet::shared().await?;
    let cluster = fleet.member("member-1")?;
    let kubeconfig = hub::member_account(&cluster, &hub::repository()).await?;
    let credential = parse_kubeconfig(kubeconfig.as_bytes())?;
    let (sender, events) = mpsc::channel(1000);
    let settings = Settings { drift_interval: Duration::from_secs(3600), ..Settings::new(HUB_ID) };
    let member = Member::start("member-1", &credential, settings, sender)?;
    let client = cluster.client().await?;
    Ok(Bench { cluster, member, events, client })
}

fn task(namespace: &str, name: &str, generation: i64, replicas: u32, container: &Value) -> Result<Task> {
    let uid = uid(namespace, name);
    let labels = BTreeMap::new();
    let owner = Owner { name, namespace, uid: &uid, generation, labels: &labels, hub_id: HUB_ID };
    let tolerations = json!([{"key": "amd.com/gpu", "operator": "Exists"}]);
    let spec = json!({"replicas": replicas, "template": {"spec": {"tolerations": tolerations, "containers": [container]}}});
    let rendered = Rendered { spec, sources: Vec::new(), hash: String::new(), warnings: Vec::new() };
    let workload = Arc::new(workload::build(&owner, &rendered)?);
    Ok(Task::Apply { service: ServiceKey::new(namespace, name), uid, generation, workload, replicas })
}

fn uid(namespace: &str, name: &str) -> String {
    format!("uid-of-{name}-in-{namespace}")
}

fn plain() -> Value {
    json!({"name": "main", "image": "registry.example/engine:1"})
}

impl Bench {
    fn deployments(&self, namespace: &str) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Submits and waits for an outcome that `holds` is content with.
    async fn settle(&self, task: &Task, holds: impl Fn(&Outcome) -> bool) -> Result<Outcome> {
        self.member.submit(task.clone());
        eventually("the outcome", LIMIT, async || {
            let outcome = self.member.outcome(task.uid()).context("no outcome yet")?;
            ensure!(holds(&outcome), "{outcome:?}");
            Ok(outcome)
        })
        .await
    }

    async fn applied(&self, task: &Task) -> Result<Outcome> {
        let Task::Apply { generation: wanted, replicas: groups, .. } = task else { bail!("no task to apply") };
        self.settle(
            task,
            |outcome| matches!(outcome, Outcome::Applied { generation, replicas, .. } if generation == wanted && replicas == groups),
        )
        .await
    }

    async fn refused(&self, task: &Task, wanted: Reason) -> Result<String> {
        match self.settle(task, |outcome| matches!(outcome, Outcome::Failed { reason, .. } if *reason == wanted)).await? {
            Outcome::Failed { message, .. } => Ok(message),
            other => bail!("{other:?}"),
        }
    }
}

/// Managers and operations of an object, apart from controllers.
fn managers(object: &Deployment) -> Vec<(String, String)> {
    let entries = object.managed_fields().iter().filter(|entry| entry.subresource.as_deref().unwrap_or_default().is_empty());
    entries
        .map(|entry| (entry.manager.clone().unwrap_or_default(), entry.operation.clone().unwrap_or_default()))
        .filter(|(m, _)| m == "odin-hub")
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_was_there_at_the_creation_can_be_removed() -> Result<()> {
    let bench = bench().await?;
    let namespace = "writing-removal";
    let with =
        json!({"name": "main", "image": "registry.example/engine:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]});
    let without = json!({"name": "main", "image": "registry.example/engine:1", "env": [{"name": "B", "value": "2"}]});

    bench.applied(&task(namespace, "chat", 1, 1, &with)?).await?;
    let made = bench.deployments(namespace).get("chat").await?;
    ensure!(managers(&made) == [("odin-hub".to_owned(), "Apply".to_owned())], "{:?}", made.managed_fields());
    let space = Api::<Namespace>::all(bench.client.clone()).get(namespace).await?;
    ensure!(space.labels().get(HUB).is_some_and(|id| id == HUB_ID), "{:?}", space.labels());

    bench.applied(&task(namespace, "chat", 2, 2, &without)?).await?;
    let changed = serde_json::to_value(bench.deployments(namespace).get("chat").await?)?;
    let env = changed.pointer("/spec/template/spec/containers/0/env").cloned();
    ensure!(env == Some(json!([{"name": "B", "value": "2"}])), "{env:?}");
    ensure!(changed.pointer("/spec/replicas") == Some(&json!(2)), "{changed}");

    // A hub that starts anew knows nothing of what it applied.
    let again = self::bench().await?;
    again.applied(&task(namespace, "chat", 3, 2, &plain())?).await?;
    let changed = serde_json::to_value(bench.deployments(namespace).get("chat").await?)?;
    ensure!(changed.pointer("/spec/template/spec/containers/0/env").is_none(), "{changed}");
    again.member.stop().await;
    bench.member.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_someone_else_s_is_named_and_left_alone() -> Result<()> {
    let bench = bench().await?;
    let namespace = "writing-foreign";
    let manifest = format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}, labels: {{{ALLOW}: {HUB_ID}}}}}}}\n---\n\
         {{apiVersion: apps/v1, kind: Deployment, metadata: {{name: chat, namespace: {namespace}, labels: {{app.kubernetes.io/managed-by: Helm}}}}, \
         spec: {{selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{name: theirs, image: x}}]}}}}}}}}"
    );
    bench.cluster.apply_yaml(&manifest).await?;
    let before = bench.deployments(namespace).get("chat").await?;
    let message = bench.refused(&task(namespace, "chat", 1, 1, &plain())?, Reason::ObjectConflict).await?;
    ensure!(message.contains("Helm"), "{message}");
    let delete = Task::Delete {
        service: ServiceKey::new(namespace, "chat"),
        uid: uid(namespace, "chat"),
        kind: odin_hub::api::odin::WorkloadKind::Deployment,
        name: "chat".to_owned(),
    };
    bench.settle(&delete, |outcome| *outcome == Outcome::Deleted).await?;
    let after = bench.deployments(namespace).get("chat").await?;
    ensure!(before.spec == after.spec && after.metadata.deletion_timestamp.is_none(), "it was touched");
    bench.member.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_namespaces_that_allow_it_are_written() -> Result<()> {
    let bench = bench().await?;
    let namespace = "writing-unmarked";
    bench.cluster.apply_yaml(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}")).await?;
    let wanted = task(namespace, "chat", 1, 1, &plain())?;
    let message = bench.refused(&wanted, Reason::NamespaceNotAllowed).await?;
    ensure!(message.contains(&format!("kubectl label namespace {namespace} {ALLOW}={HUB_ID}")), "{message}");
    let message = bench.refused(&task("kube-system", "system", 1, 1, &plain())?, Reason::NamespaceNotAllowed).await?;
    ensure!(message.contains("protected"), "{message}");

    let labels = json!({"metadata": {"labels": {ALLOW: HUB_ID}}});
    Api::<Namespace>::all(bench.client.clone()).patch(namespace, &PatchParams::default(), &Patch::Merge(labels)).await?;
    bench.applied(&wanted).await?;
    bench.member.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_by_hand_is_put_back_and_not_fought() -> Result<()> {
    let bench = bench().await?;
    let namespace = "writing-drift";
    let wanted = task(namespace, "chat", 1, 2, &plain())?;
    bench.applied(&wanted).await?;
    let api = bench.deployments(namespace);
    let by_hand = Patch::Merge(json!({"spec": {"replicas": 1}, "metadata": {"labels": {SERVICE_UID: uid(namespace, "chat")}}}));
    api.patch("chat", &PatchParams::default(), &by_hand).await?;
    eventually("it is put back", LIMIT, async || {
        bench.member.submit(wanted.clone());
        let replicas = api.get("chat").await?.spec.replicas;
        ensure!(replicas == Some(2), "{replicas:?}");
        Ok(())
    })
    .await?;
    api.patch("chat", &PatchParams::default(), &by_hand).await?;
    for _ in 0..20 {
        bench.member.submit(wanted.clone());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let replicas = api.get("chat").await?.spec.replicas;
    ensure!(replicas == Some(1), "put back again at once: {replicas:?}");
    bench.member.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_seen_and_goes_again() -> Result<()> {
    let mut bench = bench().await?;
    let namespace = "writing-life";
    let key = ServiceKey::new(namespace, "chat");
    bench.applied(&task(namespace, "chat", 1, 2, &plain())?).await?;
    eventually("both replicas are seen ready", LIMIT, async || {
        let (workload, _) = bench.member.observe(&key, &uid(namespace, "chat")).context("not listed")?;
        let workload = workload.context("no workload")?;
        ensure!(workload.ready == 2 && workload.service_generation == Some(1), "{workload:?}");
        Ok(())
    })
    .await?;
    let view = bench.member.view();
    ensure!(view.ready.holds() && view.capacity_known && view.cluster_uid.is_some(), "{view:?}");
    ensure!(view.kubernetes_version.as_deref().is_some_and(|version| version.starts_with('v')), "{view:?}");
    ensure!(view.leader_worker_set.holds(), "{view:?}");
    let snapshot = view.snapshot.context("no snapshot")?;
    ensure!(
        snapshot.node_count() == 8 && snapshot.assigned_pods(&key) == 2,
        "{} nodes, {} pods",
        snapshot.node_count(),
        snapshot.assigned_pods(&key)
    );

    let delete = Task::Delete {
        service: key.clone(),
        uid: uid(namespace, "chat"),
        kind: odin_hub::api::odin::WorkloadKind::Deployment,
        name: "chat".to_owned(),
    };
    bench.settle(&delete, |outcome| *outcome == Outcome::Deleted).await?;
    eventually("the workload is seen gone", LIMIT, async || {
        let seen = bench.member.observe(&key, &uid(namespace, "chat")).context("not listed")?;
        ensure!(seen.0.is_none(), "{seen:?}");
        Ok(())
    })
    .await?;
    let mut told = Vec::new();
    while let Ok(event) = bench.events.try_recv() {
        told.push(event);
    }
    ensure!(told.contains(&Event::Service(key)) && told.iter().any(|event| matches!(event, Event::Room(_))), "{told:?}");
    ensure!(told.len() < 200, "{} events for the life of one service", told.len());
    bench.member.stop().await;
    Ok(())
}
