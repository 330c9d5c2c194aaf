//! Status that tells the truth: what a member does, and what the hub says of it meanwhile.

use anyhow::{Context as _, Result, anyhow, ensure};
use futures::StreamExt as _;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Pod, ResourceQuota};
use kube::api::{DeleteParams, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use odin_hub::api::condition::{self, service::APPLIED, service::READY};
use odin_hub::api::odin::{InferenceService, InferenceServiceStatus};
use sandbox::eventually;
use sandbox::proxy::{Answer, Gate, Matcher, RequestProxy, Settings};
use sandbox::sim::{self, Fault, FaultKind};
use serde_json::{Value, json};

use crate::kubectl;
use crate::world::{LIMIT, Space, amd, condition_of, world};

/// Every status that the service has from `version` on, until one is content with `last`.
async fn statuses(
    space: &Space,
    name: &str,
    version: &str,
    last: impl Fn(&InferenceServiceStatus) -> bool,
) -> Result<Vec<InferenceServiceStatus>> {
    let all = async {
        let services = space.services();
        let only = WatchParams::default().fields(&format!("metadata.name={name}"));
        let mut changes = std::pin::pin!(services.watch(&only, version).await?);
        let mut seen = Vec::new();
        while let Some(change) = changes.next().await {
            let WatchEvent::Modified(InferenceService { status: Some(status), .. }) = change? else { continue };
            let is_last = last(&status);
            seen.push(status);
            if is_last {
                return Ok(seen);
            }
        }
        Err(anyhow!("the watch ended after {} statuses; last: {:?}", seen.len(), seen.last()))
    };
    tokio::time::timeout(LIMIT, all).await.with_context(|| format!("{name} never came to the last status that was waited for"))?
}

fn is_ready(status: &InferenceServiceStatus) -> bool {
    condition::is_true(&status.conditions, READY)
}

#[tokio::test]
async fn i7_an_engine_that_crashes_after_it_was_ready_takes_ready_away_at_once() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "truth-crash").await?;
    space.apply("chat", &amd(2, 1)).await?;
    space.until_ready("chat", 2).await?;
    let version = space.services().get("chat").await?.resource_version().context("a version")?;

    let member = world.fleet.member("member-1")?;
    let (client, fault) = (member.client().await?, Fault::new(FaultKind::Crash));
    let struck = sim::set_fault(&client, &space.namespace, "app.kubernetes.io/instance=chat", &fault).await?;
    ensure!(struck == 2, "{struck} pods");
    let seen = statuses(&space, "chat", &version, |status| condition_of(status, READY).reason == "CrashLoopBackOff").await?;
    for status in &seen {
        ensure!(!is_ready(status) || status.ready_replicas == Some(2), "Ready with {:?} ready: {status:?}", status.ready_replicas);
    }
    let last = seen.last().context("a status")?;
    let diagnostic = last.workload.as_ref().and_then(|workload| workload.diagnostic.as_ref()).context("a diagnostic")?;
    ensure!(diagnostic.reason == "CrashLoopBackOff" && diagnostic.container.as_deref() == Some("main"), "{diagnostic:?}");
    ensure!(diagnostic.message.contains("exit code 1") && diagnostic.cluster.as_deref() == Some("member-1"), "{diagnostic:?}");
    Ok(())
}

#[tokio::test]
async fn i28_what_was_deleted_by_hand_is_made_again_and_never_counts_as_success() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "truth-deleted").await?;
    space.apply("chat", &amd(1, 1)).await?;
    space.until_ready("chat", 1).await?;
    let version = space.services().get("chat").await?.resource_version().context("a version")?;

    let member = world.fleet.member("member-1")?;
    let before = space.deployment(&member, "chat").await?.context("the Deployment")?.metadata.uid;
    Api::<Deployment>::namespaced(member.client().await?, &space.namespace).delete("chat", &DeleteParams::background()).await?;
    let went = std::cell::Cell::new(false);
    let seen = statuses(&space, "chat", &version, |status| {
        went.set(went.get() || !is_ready(status));
        went.get() && is_ready(status)
    })
    .await?;
    for status in &seen {
        ensure!(!is_ready(status) || status.ready_replicas == Some(1), "Ready without a replica: {status:?}");
    }
    let after = space.deployment(&member, "chat").await?.context("made again")?.metadata.uid;
    ensure!(after.is_some() && after != before, "the same object: {after:?}");
    let events: Api<Event> = Api::namespaced(space.client.clone(), &space.namespace);
    eventually("an event tells of it", LIMIT, async || {
        let all = events.list(&ListParams::default()).await?.items;
        let told = all.iter().find(|event| event.reason.as_deref() == Some("DriftCorrected")).context("no such event")?;
        ensure!(told.message.as_deref().is_some_and(|message| message.contains("member-1/chat: the Deployment was missing")), "{told:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn i6_a_quota_of_the_member_is_the_cause_in_its_own_words() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "truth-quota").await?;
    space.apply("chat", &amd(1, 1)).await?;
    space.until_ready("chat", 1).await?;
    // It comes after the decision: what the hub knows beforehand, it would not even try.
    let member = world.fleet.member("member-1")?;
    member
        .apply_yaml("{apiVersion: v1, kind: ResourceQuota, metadata: {name: frozen, namespace: truth-quota}, spec: {hard: {pods: \"0\"}}}")
        .await?;
    let quotas: Api<ResourceQuota> = Api::namespaced(member.client().await?, &space.namespace);
    eventually("the quota is counted", LIMIT, async || {
        let used = quotas.get("frozen").await?.status.and_then(|status| status.used).unwrap_or_default();
        ensure!(used.get("pods").is_some_and(|pods| pods.0 == "1"), "{used:?}");
        Ok(())
    })
    .await?;
    for pod in space.pods(&member, "chat").await? {
        Api::<Pod>::namespaced(member.client().await?, &space.namespace).delete(&pod.name_any(), &DeleteParams::default()).await?;
    }
    let status = space.until("chat", "the quota is the cause", |status| condition_of(status, READY).reason == "FailedCreate").await?;
    let workload = status.workload.as_ref().context("a workload")?;
    let diagnostic = workload.diagnostic.as_ref().context("a diagnostic")?;
    ensure!(diagnostic.message.starts_with("member-1/") && diagnostic.message.contains("exceeded quota: frozen"), "{diagnostic:?}");
    ensure!(diagnostic.cluster.as_deref() == Some("member-1"), "{diagnostic:?}");
    let failure = workload.conditions.iter().find(|condition| condition["type"] == "ReplicaFailure").context("verbatim")?;
    ensure!(failure["status"] == "True" && failure["lastTransitionTime"] == json!(diagnostic.observed_at), "{failure} {diagnostic:?}");

    quotas.delete("frozen", &DeleteParams::default()).await?;
    space.until_ready("chat", 1).await?;
    Ok(())
}

/// Serves a webhook of a member that refuses everything with these words, until it is dropped.
async fn webhook(member: &sandbox::Cluster, words: &str) -> Result<RequestProxy> {
    let (certificate, key) = member.issue_server_cert()?;
    let (name, server, ca) = ("webhook".to_owned(), member.server(), member.ca_pem().to_owned());
    let proxy = RequestProxy::start(Settings { name, server, ca, certificate, key, gate: Gate::new() }).await?;
    // In this version an answer need not repeat the UID of the question, so one text answers all.
    let review: Value = json!({
        "apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview",
        "response": {"uid": "", "allowed": false, "status": {"message": words, "code": 403}},
    });
    let answer = Answer::new(StatusCode::OK, &review.to_string()).header(CONTENT_TYPE, "application/json".parse()?);
    proxy.always(Matcher::any(), answer);
    Ok(proxy)
}

#[tokio::test]
async fn i33_a_webhook_that_refuses_a_change_is_quoted() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "truth-webhook").await?;
    space.apply("chat", &amd(1, 1)).await?;
    let before = space.until_ready("chat", 1).await?;

    let words = "Deployments are frozen until Monday, 08:00: ask the platform team (ticket queue \"gpu\")";
    let member = world.fleet.member("member-1")?;
    let webhook = webhook(&member, words).await?;
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "freeze"},
        "webhooks": [{
            "name": "freeze.example.com", "admissionReviewVersions": ["v1beta1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": {"url": webhook.url(), "caBundle": k8s_openapi::ByteString(member.ca_pem().as_bytes().to_vec())},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space.namespace}},
            "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments"]}],
        }],
    });
    let client = member.client().await?;
    sandbox::apply::apply_values(&client, vec![configuration.clone()], &sandbox::ApplyOptions::default()).await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &space.namespace);
    eventually("the webhook is asked", LIMIT, async || {
        let touch = kube::api::Patch::Merge(json!({"metadata": {"annotations": {"touched": "yes"}}}));
        let dry = kube::api::PatchParams { dry_run: true, ..kube::api::PatchParams::default() };
        ensure!(deployments.patch("chat", &dry, &touch).await.is_err(), "a change is still let through");
        Ok(())
    })
    .await?;

    space.apply("chat", &amd(1, 1).replace("engine:1", "engine:2")).await?;
    let status = space.until("chat", "the refusal", |status| condition_of(status, APPLIED).reason == "ApplyDenied").await?;
    let text = format!("admission webhook \"freeze.example.com\" denied the request: {words}");
    for type_ in [APPLIED, READY] {
        ensure!(condition_of(&status, type_).message.contains(&text), "{type_}: {status:?}");
    }
    ensure!(
        status.ready_replicas == Some(1) && status.observed_generation == before.observed_generation,
        "what runs is left alone: {status:?}"
    );

    let object: DynamicObject = serde_json::from_value(configuration.clone())?;
    let gone = kubectl::targets(&client, &[serde_json::to_value(object)?]).await?;
    kubectl::delete(&gone, false).await?;
    space.until_ready("chat", 1).await?;
    Ok(())
}
