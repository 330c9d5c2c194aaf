//! What people and machines do to a hub that runs: a second registration, a rename, a service that comes back at once, a
//! member that starts again or no longer lets itself be followed.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use odin_hub::api::condition::{self, member as types, service::READY};
use odin_hub::api::federation::{MemberCluster, MemberClusterStatus};
use odin_hub::api::odin::InferenceServiceTemplate;
use sandbox::hub::{self, Hub, HubOptions};
use sandbox::sim::NodeSpec;
use sandbox::{Cluster, Fleet, FleetSpec, MemberSpec, eventually};
use serde_json::json;

use crate::world::{LIMIT, PROGRAM, Space, amd, condition_of};

/// A fleet of its own with one member.
struct Ground {
    fleet: Fleet,
    hub: Hub,
    options: HubOptions,
    member: std::sync::Arc<Cluster>,
}

impl Ground {
    async fn start() -> Result<Self> {
        let nodes = (0..2).map(|n| NodeSpec::gpu(&format!("amd-{n}"), "amd", "mi300x", 8)).collect();
        let fleet = Fleet::start(FleetSpec::new(vec![MemberSpec::new("member-1", nodes)])).await?;
        let options = HubOptions::new(PROGRAM);
        let hub = Hub::install(&fleet, &options).await?;
        let member = fleet.member("member-1")?;
        hub::join(&fleet, &member, &options.repository).await?;
        let ground = Self { fleet, hub, options, member };
        ground.until("member-1", "ready", |status| is(status, types::READY, "True")).await?;
        Ok(ground)
    }

    async fn until(&self, name: &str, what: &str, holds: impl Fn(&MemberClusterStatus) -> bool) -> Result<MemberClusterStatus> {
        let api: Api<MemberCluster> = Api::all(self.fleet.hub().client().await?);
        eventually(what, LIMIT, || async {
            let cluster = api.get_opt(name).await?.ok_or_else(|| anyhow!("no MemberCluster {name}"))?;
            let status = cluster.status.ok_or_else(|| anyhow!("no status"))?;
            ensure!(holds(&status), "{}", serde_json::to_string(&status)?);
            Ok(status)
        })
        .await
    }

    async fn unregister(&self, name: &str) -> Result<()> {
        let client = self.fleet.hub().client().await?;
        let secrets: Api<Secret> = Api::namespaced(client.clone(), hub::NAMESPACE);
        secrets.delete(name, &DeleteParams::default()).await?;
        Api::<MemberCluster>::all(client).delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    fn check_log(&self) -> Result<()> {
        let log = fs::read_to_string(self.hub.process().log_path())?;
        for word in ["panicked", "eyJ", "BEGIN"] {
            ensure!(!log.contains(word), "{word} in the hub's log: {}", self.hub.process().log_tail(20));
        }
        Ok(())
    }

    async fn uid(&self, space: &Space, name: &str) -> Result<Option<String>> {
        Ok(space.deployment(&self.member, name).await?.and_then(|deployment| deployment.metadata.uid))
    }
}

fn is(status: &MemberClusterStatus, type_: &str, truth: &str) -> bool {
    condition::find(&status.conditions, type_).is_some_and(|c| c.status == truth)
}

/// Looks again and again: it has to hold each time.
async fn stays(what: &str, time: Duration, check: impl AsyncFn() -> Result<()>) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < time {
        check().await.with_context(|| format!("{what}, after {:?}", start.elapsed()))?;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    Ok(())
}

/// Several things, one fleet: it takes a while to start.
#[tokio::test]
async fn what_happens_around_a_service_neither_loses_it_nor_makes_the_hub_tell_lies() -> Result<()> {
    let ground = Ground::start().await?;
    a_service_made_again_at_once_follows_its_template(&ground).await?;
    a_new_service_waits_for_what_is_left_of_the_old_one(&ground).await?;
    a_restart_of_the_member_is_no_refusal(&ground).await?;
    a_kind_that_is_not_followed_is_not_fine(&ground).await?;
    another_registration_takes_nothing_away(&ground).await?;
    ground.check_log()
}

fn template(n: i32) -> String {
    format!(
        "{{template: {{spec: {{tolerations: [{{operator: Exists}}], containers: [{{name: main, image: registry.example/engine:1, args: ['{n}']}}]}}}}}}"
    )
}

/// Deletes a service and waits until its name is free. It looks much more often than other tests: what is tried is to
/// make the service again before the hub has heard that the old one is gone.
async fn delete(space: &Space, name: &str) -> Result<()> {
    space.services().delete(name, &DeleteParams::default()).await?;
    let start = Instant::now();
    while space.services().get_opt(name).await?.is_some() {
        ensure!(start.elapsed() < LIMIT, "{name} is still there");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

async fn a_service_made_again_at_once_follows_its_template(ground: &Ground) -> Result<()> {
    let space = Space::new(&ground.fleet, "again").await?;
    space.apply_object("InferenceServiceTemplate", "base", &template(0)).await?;
    for _ in 0..4 {
        space.apply("chat", "{replicas: 1, templateRefs: [{name: base}]}").await?;
        delete(&space, "chat").await?;
    }
    space.apply("chat", "{replicas: 1, templateRefs: [{name: base}]}").await?;
    let first = space.until_ready("chat", 1).await?;
    space.apply_object("InferenceServiceTemplate", "base", &template(1)).await?;
    space.until("chat", "the template is followed", |status| status.rendered_hash != first.rendered_hash).await?;

    // Other content under a generation that was there before.
    let templates: Api<InferenceServiceTemplate> = Api::namespaced(space.client.clone(), &space.namespace);
    templates.delete("base", &DeleteParams::default()).await?;
    space.apply_object("InferenceServiceTemplate", "base", &template(2)).await?;
    eventually("the new template is at work", LIMIT, || async {
        let deployment = space.deployment(&ground.member, "chat").await?.ok_or_else(|| anyhow!("no Deployment"))?;
        let args = deployment.spec.template.spec.and_then(|spec| spec.containers[0].args.clone());
        ensure!(args == Some(vec!["2".to_owned()]), "{args:?}");
        Ok(())
    })
    .await?;
    delete(&space, "chat").await
}

async fn a_new_service_waits_for_what_is_left_of_the_old_one(ground: &Ground) -> Result<()> {
    let space = Space::new(&ground.fleet, "left").await?;
    space.apply("chat", &amd(1, 1)).await?;
    space.until_ready("chat", 1).await?;
    let deployments: Api<Deployment> = Api::namespaced(ground.member.client().await?, &space.namespace);
    let finalizers = async |finalizers: serde_json::Value| {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        deployments.patch("chat", &PatchParams::default(), &patch).await.map(drop)
    };
    finalizers(json!(["example.com/wait"])).await?;
    delete(&space, "chat").await?;
    space.apply("chat", &amd(1, 1)).await?;
    let waits = space.until("chat", "it says what it waits for", |s| s.placements.first().is_some_and(|p| p.reason.is_some())).await?;
    let placement = &waits.placements[0];
    ensure!(placement.reason.as_deref() == Some("WaitingForDeletion"), "{placement:?}");
    ensure!(placement.message.as_deref().is_some_and(|message| message.contains("example.com/wait")), "{placement:?}");
    finalizers(json!(null)).await?;
    space.until_ready("chat", 1).await?;
    delete(&space, "chat").await
}

async fn a_restart_of_the_member_is_no_refusal(ground: &Ground) -> Result<()> {
    let space = Space::new(&ground.fleet, "restarted").await?;
    space.apply("chat", &amd(1, 1)).await?;
    space.until_ready("chat", 1).await?;
    ground.member.apiserver().kill();
    ground.member.apiserver().restart()?;
    let start = Instant::now();
    for n in 0.. {
        let status = space.status("chat").await?;
        let ready = condition_of(&status, READY);
        ensure!(ready.reason != "ApplyDenied", "{ready:?}");
        if n < 10 {
            space.scale("chat", 1 + n % 2).await?;
        } else if ready.status == "True" && status.ready_replicas == Some(2) {
            break;
        }
        ensure!(start.elapsed() < LIMIT, "{status:?}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    delete(&space, "chat").await
}

async fn a_kind_that_is_not_followed_is_not_fine(ground: &Ground) -> Result<()> {
    let space = Space::new(&ground.fleet, "blind").await?;
    space.apply("chat", &amd(1, 1)).await?;
    space.until_ready("chat", 1).await?;
    let roles: Api<ClusterRole> = Api::all(ground.member.client().await?);
    let rules = roles.get("odin-hub-member").await?.rules.unwrap_or_default();
    let blind: Vec<_> = rules.iter().filter(|rule| rule.api_groups != Some(vec!["apps".to_owned()])).collect();
    let give = async |rules: serde_json::Value| {
        roles.patch("odin-hub-member", &PatchParams::default(), &Patch::Merge(json!({"rules": rules}))).await.map(drop)
    };
    give(json!(blind)).await?;
    // Watches that are open go on; a restart ends them.
    ground.member.apiserver().kill();
    ground.member.apiserver().restart()?;
    let status = space.until("chat", "it isn't known to be ready", |s| condition_of(s, READY).status == "Unknown").await?;
    let ready = condition_of(&status, READY);
    ensure!(ready.reason == "NotSynced" && ready.message.contains("deployments"), "{ready:?}");
    give(json!(rules)).await?;
    space.until_ready("chat", 1).await?;
    delete(&space, "chat").await
}

async fn another_registration_takes_nothing_away(ground: &Ground) -> Result<()> {
    let space = Space::new(&ground.fleet, "twice").await?;
    space.apply("chat", &amd(1, 1)).await?;
    space.until_ready("chat", 1).await?;
    let before = ground.uid(&space, "chat").await?;
    ensure!(before.is_some(), "no Deployment");
    let is_left_alone = async |what: &str| {
        stays(what, Duration::from_secs(5), async || {
            ensure!(ground.uid(&space, "chat").await? == before, "the Deployment is gone or another one");
            Ok(())
        })
        .await
    };
    let kubeconfig = hub::member_account(&ground.member, &ground.options.repository).await?;
    hub::register(ground.fleet.hub(), "second", &kubeconfig).await?;
    let duplicate = |s: &MemberClusterStatus| condition::find(&s.conditions, types::READY).is_some_and(|c| c.reason == "Duplicate");
    ground.until("second", "it is a duplicate", duplicate).await?;
    hub::register(ground.fleet.hub(), "member-1", "garbage: [").await?;
    ground.until("member-1", "its credential is refused", |s| is(s, types::CREDENTIAL_VALID, "False")).await?;
    is_left_alone("the first has no credential").await?;
    hub::register(ground.fleet.hub(), "member-1", &kubeconfig).await?;
    space.until_ready("chat", 1).await?;
    // As one does who renames a member.
    ground.unregister("member-1").await?;
    ground.until("second", "it counts now", |s| is(s, types::READY, "True")).await?;
    is_left_alone("the first is gone").await
}
