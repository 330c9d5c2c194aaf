//! The sandbox itself: a fleet starts, pods become Ready, faults are real, and nothing is left behind.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt};
use sandbox::{ApplyOptions, Cluster, Fleet, eventually};
use serde_json::json;

/// A generous bound: two cores may be shared with much else.
const LIMIT: Duration = Duration::from_secs(120);

async fn namespace(cluster: &Cluster, name: &str) -> Result<()> {
    cluster.apply_yaml(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}")).await?;
    Ok(())
}

#[tokio::test]
async fn the_default_fleet_has_the_nodes_that_it_says() -> Result<()> {
    let fleet = Fleet::shared().await?;
    for (member, resource, model, with, without) in
        [("member-1", "amd.com/gpu", "mi300x", 8, 0), ("member-2", "nvidia.com/gpu", "h200-sxm", 5, 1)]
    {
        let api: Api<Node> = Api::all(fleet.member(member)?.client().await?);
        let all = eventually("all nodes are Ready", LIMIT, async || {
            let mut nodes = api.list(&ListParams::default()).await?.items;
            // Another test adds one to the same fleet.
            nodes.retain(|node| node.name_any() != EXTRA);
            let ready = |node: &Node| {
                let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
                conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
            };
            let unready: Vec<String> = nodes.iter().filter(|node| !ready(node)).map(ResourceExt::name_any).collect();
            ensure!(unready.is_empty(), "not Ready: {unready:?}");
            Ok(nodes)
        })
        .await?;
        let devices = |node: &Node| node.status.as_ref().and_then(|s| s.allocatable.as_ref()?.get(resource)).map(|q| q.0.clone());
        let (having, lacking): (Vec<&Node>, Vec<&Node>) = all.iter().partition(|node| devices(node).is_some());
        assert_eq!((having.len(), lacking.len()), (with, without), "{member}");
        for node in having {
            assert_eq!(devices(node).as_deref(), Some("8"));
            assert_eq!(node.labels().get("moai.moreh.io/accelerator.model").map(String::as_str), Some(model));
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref()).context("taints")?;
            assert!(taints.iter().any(|taint| taint.key == resource && taint.effect == "NoSchedule"), "{taints:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_deployment_on_devices_becomes_ready() -> Result<()> {
    let fleet = Fleet::shared().await?;
    let member = fleet.member("member-1")?;
    namespace(&member, "deployment").await?;
    let manifest = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: deployment}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      tolerations: [{key: amd.com/gpu, operator: Exists}]
      containers: [{name: main, image: example.com/none, resources: {limits: {amd.com/gpu: 2}}}]
";
    member.apply_yaml(manifest).await?;
    let api: Api<Deployment> = Api::namespaced(member.client().await?, "deployment");
    eventually("3 replicas are ready", LIMIT, async || {
        let status = api.get("web").await?.status.unwrap_or_default();
        ensure!(status.ready_replicas == Some(3), "{}", serde_json::to_string(&status)?);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_leader_worker_set_of_two_becomes_ready() -> Result<()> {
    let fleet = Fleet::shared().await?;
    let member = fleet.member("member-2")?;
    namespace(&member, "groups").await?;
    let manifest = r"
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: big, namespace: groups}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      spec:
        tolerations: [{key: nvidia.com/gpu, operator: Exists}]
        containers: [{name: main, image: example.com/none, resources: {limits: {nvidia.com/gpu: 8}}}]
";
    let [kept] = member.apply_yaml(manifest).await?.try_into().map_err(|_| anyhow::anyhow!("one object"))?;
    let resource =
        kube::discovery::pinned_kind(&member.client().await?, &GroupVersionKind::try_from(kept.types.context("types")?)?).await?.0;
    let api: Api<DynamicObject> = Api::namespaced_with(member.client().await?, "groups", &resource);
    eventually("the group is ready", LIMIT, async || {
        let object = api.get("big").await?;
        ensure!(object.data.pointer("/status/readyReplicas") == Some(&json!(1)), "{}", object.data["status"]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_paused_api_server_is_silent_and_goes_on() -> Result<()> {
    let fleet = Fleet::shared().await?;
    let member = fleet.add_member(sandbox::MemberSpec::new("breakable", vec![])).await?;
    let client = member.client().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.list(&ListParams::default()).await?;

    member.apiserver().pause()?;
    let silent = tokio::time::timeout(Duration::from_secs(1), maps.list(&ListParams::default())).await;
    member.apiserver().resume()?;
    assert!(silent.is_err(), "a paused API server answered");
    eventually("it answers again", LIMIT, async || Ok(maps.list(&ListParams::default()).await.map(drop)?)).await?;

    let port = member.port();
    member.apiserver().kill();
    assert!(!member.apiserver().is_alive());
    assert!(maps.list(&ListParams::default()).await.is_err(), "a killed API server answered");
    member.apiserver().restart()?;
    member.wait_until_ready().await?;
    assert_eq!(member.port(), port);
    maps.list(&ListParams::default()).await?;
    fleet.remove_member("breakable")
}

#[tokio::test]
async fn the_audit_log_counts_writes_by_user() -> Result<()> {
    let fleet = Fleet::shared().await?;
    let hub = fleet.hub();
    namespace(hub, "audited").await?;
    let account = r"
{apiVersion: v1, kind: ServiceAccount, metadata: {name: writer, namespace: audited}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: writer, namespace: audited}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: writer, namespace: audited}]
";
    hub.apply_yaml(account).await?;
    let user = "system:serviceaccount:audited:writer";
    let issued = hub.kubeconfig_for_service_account("audited", "writer").await?;
    let minted = hub.kubeconfig_with_minted_token("audited", "writer", 600).await?;
    let mark = hub.audit().mark();
    for (name, kubeconfig) in [("issued", issued), ("minted", minted)] {
        let client = sandbox::cluster::client_of(&kubeconfig).await?;
        let text = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}");
        // The role reaches the authorizer some moments after it was made.
        let apply = async || Ok(sandbox::apply::apply_yaml(&client, &text, &ApplyOptions::namespace("audited")).await.map(drop)?);
        eventually("the account may write", LIMIT, apply).await?;
    }
    eventually("both writes are in the log", LIMIT, async || {
        let writes = hub.audit().writes_since(mark, |entry| entry.user == user && entry.code < 300)?;
        let seen: Vec<_> = writes.iter().map(|e| (e.verb.as_str(), e.resource.as_str(), e.namespace.as_str(), e.name.as_str())).collect();
        ensure!(seen == [("patch", "configmaps", "audited", "issued"), ("patch", "configmaps", "audited", "minted")], "{seen:?}");
        Ok(())
    })
    .await?;
    let dead = hub.kubeconfig_with_minted_token("audited", "writer", -120).await?;
    let maps: Api<ConfigMap> = Api::namespaced(sandbox::cluster::client_of(&dead).await?, "audited");
    let refused = maps.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 401), "{refused}");
    Ok(())
}

#[tokio::test]
async fn strict_validation_says_what_is_wrong() -> Result<()> {
    let fleet = Fleet::shared().await?;
    let wrong = "{apiVersion: v1, kind: ConfigMap, metadata: {name: wrong}, dat: {a: b}}";
    let error = fleet.hub().apply_yaml(wrong).await.unwrap_err();
    let status = error.status().context("an answer of the API server")?;
    assert!(status.message.contains("dat"), "{}", status.message);
    assert!(error.to_string().starts_with("ConfigMap wrong: "), "{error}");
    let lax = ApplyOptions { strict: false, dry_run: true, ..ApplyOptions::default() };
    fleet.hub().apply_yaml_with("{apiVersion: v1, kind: ConfigMap, metadata: {name: wrong}}", &lax).await?;
    Ok(())
}

/// A node that only [`nodes_come_and_go`] has.
const EXTRA: &str = "extra";

#[tokio::test]
async fn nodes_come_and_go() -> Result<()> {
    let fleet = Fleet::shared().await?;
    let member = fleet.member("member-2")?;
    member.add_nodes(&[sandbox::sim::NodeSpec::new(EXTRA)]).await?;
    member.cordon_node(EXTRA, true).await?;
    member.label_node(EXTRA, "zone", Some("a")).await?;
    let api: Api<Node> = Api::all(member.client().await?);
    let node = api.get(EXTRA).await?;
    assert_eq!(node.labels().get("zone").map(String::as_str), Some("a"));
    assert_eq!(node.spec.and_then(|spec| spec.unschedulable), Some(true));
    member.label_node(EXTRA, "zone", None).await?;
    assert_eq!(api.get(EXTRA).await?.labels().get("zone"), None);
    member.remove_node(EXTRA).await?;
    assert!(api.get_opt(EXTRA).await?.is_none());
    Ok(())
}

/// Set in the process that [`nothing_outlives_a_killed_parent`] starts and kills.
const CHILD: &str = "SANDBOX_TEST_CHILD_REPORT";

#[tokio::test]
async fn nothing_outlives_a_dropped_fleet_or_a_killed_parent() -> Result<()> {
    if let Ok(report) = std::env::var(CHILD) {
        let fleet = Fleet::start(sandbox::FleetSpec::new(vec![])).await?;
        let pids: Vec<String> = fleet.hub().processes().chain([fleet.etcd()]).map(|process| process.pid().to_string()).collect();
        std::fs::write(format!("{report}.new"), format!("{}\n{}", fleet.folder().display(), pids.join("\n")))?;
        std::fs::rename(format!("{report}.new"), &report)?;
        std::future::pending::<()>().await;
        return Ok(());
    }
    let fleet = Fleet::start(sandbox::FleetSpec::new(vec![])).await?;
    let folder = fleet.folder().to_owned();
    let pids: Vec<u32> = fleet.hub().processes().chain([fleet.etcd()]).map(sandbox::Process::pid).collect();
    assert!(pids.iter().all(|pid| exists(*pid)) && folder.exists());
    drop(fleet);
    assert!(!pids.iter().any(|pid| exists(*pid)), "processes left after a drop");
    assert!(!folder.exists(), "{} left after a drop", folder.display());

    let report = tempfile::tempdir()?;
    let report = report.path().join("report");
    let mut child = std::process::Command::new(std::env::current_exe()?)
        .args(["--exact", "nothing_outlives_a_dropped_fleet_or_a_killed_parent"])
        .env(CHILD, &report)
        .spawn()?;
    let began = Instant::now();
    while !report.exists() && began.elapsed() < LIMIT && child.try_wait()?.is_none() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let text = std::fs::read_to_string(&report);
    child.kill()?;
    child.wait()?;
    let text = text.context("the other process did not start its fleet")?;
    let (folder, pids) = text.split_once('\n').context("report")?;
    eventually("processes and folder are gone", LIMIT, async || {
        let left: Vec<&str> = pids.lines().filter(|pid| pid.parse().is_ok_and(exists)).collect();
        ensure!(left.is_empty(), "processes {left:?}");
        ensure!(!std::path::Path::new(folder).exists(), "{folder}");
        Ok(())
    })
    .await
}

fn exists(pid: u32) -> bool {
    // A zombie that some init hasn't collected yet is gone for our purpose.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[tokio::test]
async fn a_new_kind_can_be_used_in_the_text_that_brings_it() -> Result<()> {
    let fleet = Fleet::shared().await?;
    let text = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.sandbox.test}
spec:
  group: sandbox.test
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {n: {type: integer}}}}}}}]
---
{apiVersion: sandbox.test/v1, kind: Thing, metadata: {name: a}, spec: {n: 1}}
";
    let kept = fleet.hub().apply_yaml(text).await?;
    assert_eq!(kept.len(), 2);
    let resource =
        kube::discovery::pinned_kind(&fleet.hub().client().await?, &GroupVersionKind::gvk("sandbox.test", "v1", "Thing")).await?.0;
    let api: Api<DynamicObject> = Api::default_namespaced_with(fleet.hub().client().await?, &resource);
    let patch = Patch::Merge(json!({"spec": {"n": "x"}}));
    let error = api.patch("a", &PatchParams::default(), &patch).await.unwrap_err();
    assert!(error.to_string().contains("spec.n"), "{error}");
    Ok(())
}
