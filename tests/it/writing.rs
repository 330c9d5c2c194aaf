//! The member modules against a real API server, without a hub around them: what is written, what is left alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use odin_hub::api::labels::{ALLOW, HUB, SERVICE_UID};
use odin_hub::api::odin::WorkloadKind;
use odin_hub::api::reason::Reason;
use odin_hub::capacity::ServiceKey;
use odin_hub::member::{Event, Member, Outcome, Settings, Task, parse_kubeconfig};
use odin_hub::render::Rendered;
use odin_hub::workload::{self, Owner};
use sandbox::audit::Mark;
use sandbox::{AuditEntry, Cluster, Fleet, eventually, hub};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::world::LIMIT;

pub(crate) const HUB_ID: &str = "hub-of-writing-tests";

/// A member with the rights of its account, and what it tells.
pub(crate) struct Bench {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) member: Arc<Member>,
    events: mpsc::Receiver<Event>,
    pub(crate) client: Client,
}

pub(crate) async fn bench() -> Result<Bench> {
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
    task_of(namespace, name, generation, replicas, json!({"template": {"spec": pod(container)}}))
}

/// What makes a pod of this container that runs on any node.
pub(crate) fn pod(container: &Value) -> Value {
    json!({"tolerations": [{"key": "amd.com/gpu", "operator": "Exists"}], "containers": [container]})
}

/// The task to apply a service with this spec.
pub(crate) fn task_of(namespace: &str, name: &str, generation: i64, replicas: u32, mut spec: Value) -> Result<Task> {
    let uid = uid(namespace, name);
    let labels = BTreeMap::new();
    let owner = Owner { name, namespace, uid: &uid, generation, labels: &labels, annotations: &labels, pools: &[], hub_id: HUB_ID };
    spec["replicas"] = replicas.into();
    let rendered = Rendered { spec, sources: Vec::new(), hash: String::new(), warnings: Vec::new() };
    let workload = Arc::new(workload::build(&owner, &rendered)?);
    Ok(Task::Apply { service: ServiceKey::new(namespace, name), uid, generation, workload, replicas, namespace_labels: Arc::default() })
}

pub(crate) fn uid(namespace: &str, name: &str) -> String {
    format!("uid-of-{name}-in-{namespace}")
}

pub(crate) fn plain() -> Value {
    json!({"name": "main", "image": "registry.example/engine:1"})
}

impl Bench {
    pub(crate) fn deployments(&self, namespace: &str) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(crate) fn services(&self, namespace: &str) -> Api<Service> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// What was told of changes that were put back, for a service.
    fn corrections(&mut self, service: &ServiceKey) -> Vec<(String, bool)> {
        let mut told = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            if let Event::Corrected { service: of, object, recreated, .. } = event
                && of == *service
            {
                told.push((object.kind, recreated));
            }
        }
        told
    }

    /// What this account has written in a namespace since a place in the audit log.
    pub(crate) fn writes(&self, mark: Mark, namespace: &str) -> Result<Vec<String>> {
        let ours = |entry: &AuditEntry| entry.namespace == namespace && entry.user.contains(hub::MEMBER_NAMESPACE);
        let writes = self.cluster.audit().writes_since(mark, ours)?;
        Ok(writes.into_iter().map(|entry| format!("{} {}", entry.verb, entry.resource)).collect())
    }

    /// Submits and waits for an outcome that `holds` is content with.
    pub(crate) async fn settle(&self, task: &Task, holds: impl Fn(&Outcome) -> bool) -> Result<Outcome> {
        self.member.submit(task.clone());
        eventually("the outcome", LIMIT, async || {
            let outcome = self.member.outcome(task.uid()).context("no outcome yet")?;
            ensure!(holds(&outcome), "{outcome:?}");
            Ok(outcome)
        })
        .await
    }

    pub(crate) async fn applied(&self, task: &Task) -> Result<Outcome> {
        let Task::Apply { generation: wanted, replicas: groups, .. } = task else { bail!("no task to apply") };
        self.settle(
            task,
            |outcome| matches!(outcome, Outcome::Applied(applied) if applied.generation == *wanted && applied.replicas == *groups),
        )
        .await
    }

    pub(crate) async fn refused(&self, task: &Task, wanted: Reason) -> Result<String> {
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
    let manager = |operation: &str| [("odin-hub".to_owned(), operation.to_owned())];
    ensure!(managers(&made) == manager("Update"), "mended before it has to be: {:?}", made.managed_fields());
    let space = Api::<Namespace>::all(bench.client.clone()).get(namespace).await?;
    ensure!(space.labels().get(HUB).is_some_and(|id| id == HUB_ID), "{:?}", space.labels());

    bench.applied(&task(namespace, "chat", 2, 2, &without)?).await?;
    let changed = bench.deployments(namespace).get("chat").await?;
    ensure!(managers(&changed) == manager("Apply"), "{:?}", changed.managed_fields());
    let changed = serde_json::to_value(changed)?;
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
    let delete = Task::Delete { service: ServiceKey::new(namespace, "chat"), uid: uid(namespace, "chat") };
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
        let seen = bench.member.observe(&key, &uid(namespace, "chat"), WorkloadKind::Deployment).context("not listed")?;
        ensure!(seen.service.as_deref() == Some("chat-service"), "{seen:?}");
        let workload = seen.workload.context("no workload")?;
        ensure!(workload.ready == 2 && workload.service_generation == Some(1), "{workload:?}");
        Ok(())
    })
    .await?;
    let view = bench.member.view();
    ensure!(view.synced.holds(), "a kind isn't followed: {view:?}");
    ensure!(view.leader_worker_set_version.as_deref() == Some("v1 (0.9+)"), "{view:?}");
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

    let delete = Task::Delete { service: key.clone(), uid: uid(namespace, "chat") };
    bench.settle(&delete, |outcome| *outcome == Outcome::Deleted).await?;
    eventually("all of it is seen gone", LIMIT, async || {
        let seen = bench.member.observe(&key, &uid(namespace, "chat"), WorkloadKind::Deployment).context("not listed")?;
        ensure!(seen.is_empty(), "{seen:?}");
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

#[tokio::test(flavor = "multi_thread")]
async fn a_dispatch_is_one_write_for_each_object_and_a_restart_none() -> Result<()> {
    let bench = bench().await?;
    let namespace = "writing-count";
    bench.applied(&task(namespace, "first", 1, 1, &plain())?).await?;
    let mark = bench.cluster.audit().mark();
    let wanted = task(namespace, "chat", 1, 1, &plain())?;
    bench.applied(&wanted).await?;
    let dispatch = eventually("the dispatch is in the log", LIMIT, async || {
        let writes = bench.writes(mark, namespace)?;
        ensure!(writes.len() >= 2, "{writes:?}");
        Ok(writes)
    })
    .await?;
    ensure!(dispatch == ["create deployments", "create services"], "{dispatch:?}");
    bench.member.stop().await;

    // A hub that starts anew asks what a write would change, and writes what does change something.
    let again = self::bench().await?;
    again.applied(&wanted).await?;
    again.applied(&task(namespace, "chat", 2, 1, &plain())?).await?;
    let after = eventually("the change is in the log", LIMIT, async || {
        let writes = bench.writes(mark, namespace)?;
        ensure!(writes.len() >= 6, "{writes:?}");
        Ok(writes)
    })
    .await?;
    // Of each object, the first change mends who owns its fields.
    let change = ["patch deployments", "patch deployments", "patch services", "patch services"];
    ensure!(after.get(2..) == Some(&change.map(str::to_owned)), "{after:?}");
    again.member.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_put_back_and_made_anew_with_word_of_it() -> Result<()> {
    let mut bench = bench().await?;
    let namespace = "writing-service";
    let key = ServiceKey::new(namespace, "chat");
    let port =
        |port: u32| json!({"name": "main", "image": "registry.example/engine:1", "ports": [{"name": "http", "containerPort": port}]});
    let api = bench.services(namespace);
    let ports = async || -> Result<Vec<i32>> {
        let ports = api.get("chat-service").await?.spec.and_then(|spec| spec.ports).unwrap_or_default();
        Ok(ports.into_iter().map(|port| port.port).collect())
    };
    bench.applied(&task(namespace, "chat", 1, 1, &port(8000))?).await?;
    ensure!(ports().await? == [8000]);
    let wanted = task(namespace, "chat", 2, 1, &port(9000))?;
    bench.applied(&wanted).await?;
    ensure!(ports().await? == [9000], "a port that was there at the creation is gone");
    let told = bench.corrections(&key);
    ensure!(told.is_empty(), "the hub's own changes are told as corrections: {told:?}");

    let by_hand = json!([{"op": "replace", "path": "/spec/selector", "value": {"app": "other"}}]);
    api.patch("chat-service", &PatchParams::default(), &Patch::<()>::Json(serde_json::from_value(by_hand)?)).await?;
    let look = async |what: &str, holds: &dyn Fn(&Service) -> bool| {
        eventually(what, LIMIT, async || {
            bench.member.submit(wanted.clone());
            let service = api.get("chat-service").await?;
            ensure!(holds(&service), "{service:?}");
            Ok(service)
        })
        .await
    };
    let selects = |service: &Service| service.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_default();
    let put_back =
        look("the selector is put back", &|service| selects(service).len() == 1 && !selects(service).contains_key("app")).await?;
    api.delete("chat-service", &DeleteParams::default()).await?;
    look("it is made anew", &|service| service.metadata.uid != put_back.metadata.uid).await?;
    let mut told = Vec::new();
    eventually("both are told", LIMIT, || {
        told.extend(bench.corrections(&key));
        let told = told.clone();
        async move {
            ensure!(told == [("Service".to_owned(), false), ("Service".to_owned(), true)], "{told:?}");
            Ok(())
        }
    })
    .await?;
    bench.member.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_in_the_way_leaves_the_workload_accepted() -> Result<()> {
    let bench = bench().await?;
    let namespace = "writing-way";
    let manifest = format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}, labels: {{{ALLOW}: {HUB_ID}}}}}}}\n---\n\
         {{apiVersion: v1, kind: Service, metadata: {{name: chat-service, namespace: {namespace}}}, spec: {{ports: [{{port: 1}}]}}}}"
    );
    bench.cluster.apply_yaml(&manifest).await?;
    let wanted = task(namespace, "chat", 1, 1, &plain())?;
    let outcome = bench.settle(&wanted, |outcome| matches!(outcome, Outcome::Failed { reason: Reason::ObjectConflict, .. })).await?;
    let Outcome::Failed { object, applied, .. } = outcome else { bail!("{outcome:?}") };
    ensure!((object.kind.as_str(), object.name.as_str()) == ("Service", "chat-service"), "{object:?}");
    ensure!(applied.as_ref().is_some_and(|applied| applied.generation == 1 && applied.replicas == 1), "{applied:?}");
    bench.deployments(namespace).get("chat").await?;
    bench.member.stop().await;
    Ok(())
}
