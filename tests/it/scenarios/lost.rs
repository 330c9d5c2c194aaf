//! Members and kinds that are not there: while the hub starts, while it reads, and for good. The fleet is one of its own.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::{Method, StatusCode};
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::DeleteParams;
use odin_hub::api::condition::{self, member as types, service::PLACED, service::READY};
use odin_hub::api::federation::{MemberCluster, MemberClusterStatus};
use odin_hub::api::odin::InferenceServiceStatus;
use sandbox::hub::{self, Hub, HubOptions, Marks};
use sandbox::proxy::{Answer, Gate, Matcher, RequestProxy};
use sandbox::sim::{self, Fault, FaultKind, NodeSpec};
use sandbox::{Cluster, Fleet, FleetSpec, MemberSpec, eventually};

use crate::restarts::in_front_of;
use crate::world::{LIMIT, PROGRAM, Space, condition_of};

const NORTH: &str = "north";
const SOUTH: &str = "south";

/// A hub and two members, each behind a proxy.
struct Ground {
    hub: Hub,
    of_hub: RequestProxy,
    of_north: RequestProxy,
    space: Space,
    north: Arc<Cluster>,
    south: Arc<Cluster>,
    // Last: what runs on it goes first.
    fleet: Fleet,
}

/// A pod template with so many devices, for the nodes of one member if it is named.
fn pod_on(member: Option<&str>, devices: u32) -> String {
    let selector = member.map(|member| format!("nodeSelector: {{example.com/side: {member}}}, ")).unwrap_or_default();
    format!(
        "{{spec: {{{selector}tolerations: [{{operator: Exists}}], containers: [{{name: main, image: registry.example/engine:1, resources: {{limits: {{amd.com/gpu: {devices}}}}}}}]}}}}"
    )
}

/// Spec of a service of such pods, which rolls without spare room.
fn on(member: Option<&str>, replicas: u32, devices: u32) -> String {
    let rollout = "rolloutStrategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}";
    format!("{{replicas: {replicas}, {rollout}, template: {}}}", pod_on(member, devices))
}

/// Spec of a service of groups of two such pods.
fn pairs_on(member: &str) -> String {
    format!("{{replicas: 1, parallelism: {{pipeline: 2}}, workerTemplate: {}}}", pod_on(Some(member), 1))
}

impl Ground {
    async fn start() -> Result<Self> {
        let node = |side: &str, n| NodeSpec::gpu(&format!("{side}-{n}"), "amd", "mi300x", 8).label("example.com/side", side);
        let members = [NORTH, SOUTH].map(|name| MemberSpec::new(name, vec![node(name, 0), node(name, 1)]));
        let fleet = Fleet::start(FleetSpec::new(members.into())).await?;
        let options = HubOptions::new(PROGRAM);
        hub::install(&fleet, &options).await?;
        let (north, south) = (fleet.member(NORTH)?, fleet.member(SOUTH)?);
        let of_north = in_front_of(&north, &Gate::new()).await?;
        let kubeconfig = hub::member_account(&north, &options.repository).await?.replace(&north.server(), &of_north.url());
        hub::register(fleet.hub(), NORTH, &kubeconfig).await?;
        hub::join(&fleet, &south, &options.repository).await?;
        let of_hub = in_front_of(fleet.hub(), &Gate::new()).await?;
        let hub = Hub::start(&fleet, &HubOptions { server: Some(of_hub.url()), ..options }).await?;
        let space = Space::new(&fleet, "lost").await?;
        let ground = Self { hub, of_hub, of_north, space, north, south, fleet };
        for name in [NORTH, SOUTH] {
            ground.until_member(name, "it is ready", |status| is(status, types::READY, "True")).await?;
        }
        Ok(ground)
    }

    async fn until_member(&self, name: &str, what: &str, holds: impl Fn(&MemberClusterStatus) -> bool) -> Result<()> {
        let api: Api<MemberCluster> = Api::all(self.space.client.clone());
        eventually(&format!("{name}: {what}"), LIMIT, async || {
            let status = api.get(name).await?.status.context("no status")?;
            ensure!(holds(&status), "{}", serde_json::to_string(&status)?);
            Ok(())
        })
        .await
    }

    async fn delete(&self, name: &str) -> Result<()> {
        let services = self.space.services();
        services.delete(name, &DeleteParams::default()).await?;
        eventually(&format!("{name} and what it had are gone"), LIMIT, async || {
            ensure!(services.get_opt(name).await?.is_none(), "it is there");
            for member in [&self.north, &self.south] {
                ensure!(self.space.deployment(member, name).await?.is_none(), "its Deployment is in {}", member.name());
            }
            Ok(())
        })
        .await
    }
}

fn is(status: &MemberClusterStatus, type_: &str, truth: &str) -> bool {
    condition::find(&status.conditions, type_).is_some_and(|found| found.status == truth)
}

fn failure() -> Answer {
    Answer::failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "etcd has lost its leader")
}

#[tokio::test]
async fn what_is_not_there_neither_stops_nor_deletes_what_is() -> Result<()> {
    let ground = Ground::start().await?;
    i22_a_member_that_answers_500_is_stale_and_the_other_is_reported(&ground).await?;
    f25_nothing_is_deleted_while_a_cache_is_not_complete(&ground).await?;
    f37_the_hub_starts_without_waiting_for_a_member_that_is_down(&ground).await?;
    i30_f35_a_member_without_leader_worker_sets_takes_what_needs_none_and_holds_no_deletion(&ground).await?;
    f35_a_kind_of_template_that_is_gone_holds_no_deletion(&ground).await?;
    ensure!(ground.hub.process().is_alive(), "the hub ended: {}", ground.hub.process().log_tail(20));
    drop(ground.fleet);
    Ok(())
}

async fn i22_a_member_that_answers_500_is_stale_and_the_other_is_reported(ground: &Ground) -> Result<()> {
    let space = &ground.space;
    space.apply("wide", &on(None, 3, 8)).await?;
    let before = space.until_ready("wide", 3).await?;
    let of = |status: &InferenceServiceStatus, name: &str| status.placements.iter().find(|placement| placement.cluster == name).cloned();
    let (north, south) = (of(&before, NORTH).context("north")?, of(&before, SOUTH).context("south")?);

    ground.of_north.always(Matcher::any(), failure());
    let is_stale = |status: &InferenceServiceStatus| of(status, NORTH).is_some_and(|placement| placement.stale);
    let status = space.until("wide", "north is stale", is_stale).await?;
    let stale = of(&status, NORTH).context("north")?;
    ensure!(stale.last_seen.is_some() && stale.ready_replicas == north.ready_replicas, "{stale:?}");
    ensure!((status.replicas, status.ready_replicas) == (Some(3), south.ready_replicas), "{status:?}");
    ensure!(condition_of(&status, READY).status == "Unknown", "{status:?}");
    let fresh = of(&status, SOUTH).context("south")?;
    ensure!(!fresh.stale && fresh.last_seen.is_none(), "{fresh:?}");
    // What happens in the other one goes on being told.
    let client = ground.south.client().await?;
    let selector = "app.kubernetes.io/instance=wide";
    sim::set_fault(&client, &space.namespace, selector, &Fault::new(FaultKind::Unready)).await?;
    space.until("wide", "south is told to be down", |status| status.ready_replicas == Some(0)).await?;
    sim::clear_fault(&client, &space.namespace, selector).await?;
    space.until("wide", "south is told to be well", |status| status.ready_replicas == south.ready_replicas).await?;

    ground.of_north.pass_again();
    space.until_ready("wide", 3).await?;
    ground.delete("wide").await
}

/// The hub starts with one list that it can't get, each time another.
async fn f25_nothing_is_deleted_while_a_cache_is_not_complete(ground: &Ground) -> Result<()> {
    let space = &ground.space;
    space.apply_object("InferenceServiceTemplate", "base", &format!("{{template: {}}}", pod_on(Some(NORTH), 1))).await?;
    space.apply("chat", "{replicas: 2, templateRefs: [{name: base}]}").await?;
    let before = space.until_ready("chat", 2).await?;
    let deployment = space.deployment(&ground.north, "chat").await?.context("the Deployment")?.metadata.uid;

    let kinds = |group: &str, kind: &str| format!("/apis/{group}/v1alpha1/{kind}");
    let of_hub = [
        kinds("odin.moreh.io", "inferenceservices"),
        kinds("odin.moreh.io", "inferenceservicetemplates"),
        kinds("federation.odin.moreh.io", "memberclusters"),
        "/api/v1/namespaces/odin-hub/secrets".to_owned(),
        "/api/v1/namespaces".to_owned(),
    ];
    let of_member = ["/apis/apps/v1/deployments", "/api/v1/nodes", "/api/v1/pods", "/api/v1/services"].map(str::to_owned);
    let lists = of_hub.iter().map(|path| (&ground.of_hub, path)).chain(of_member.iter().map(|path| (&ground.of_north, path)));
    for (proxy, path) in lists {
        let asked = |proxy: &RequestProxy| -> u64 {
            proxy.requests().iter().filter(|((method, asked), _)| method != "POST" && asked == path).map(|(_, count)| count).sum()
        };
        let exactly = path.clone();
        proxy.always(Matcher::method(Method::GET).and(Matcher::new(move |_, uri| uri.path() == exactly)), failure());
        let already = asked(proxy);
        ground.hub.kill();
        // No request of the hub before this one shall count as one of its successor.
        ground.of_hub.gate().cut();
        ground.of_north.gate().cut();
        let (marks, started) = (Marks::take(&ground.fleet), Timestamp::now());
        // What the hub before this one did may still be on its way into the logs.
        let writes = || -> Result<Vec<_>> {
            let all = marks.writes()?.into_iter();
            Ok(all.filter(|(_, write)| write.at.parse().is_ok_and(|at: Timestamp| at >= started)).collect())
        };
        ground.hub.process().restart()?;
        eventually(&format!("the hub asks for {path} again and again"), LIMIT, async || {
            let count = asked(proxy) - already;
            ensure!(count >= 3, "{count} times: {}", ground.hub.process().log_tail(3));
            Ok(())
        })
        .await?;
        let is_of_hub = of_hub.contains(path);
        if !is_of_hub {
            ground.hub.wait_until_ready().await?;
        }
        for (cluster, write) in writes()? {
            ensure!(!is_of_hub, "a hub that doesn't know {path} writes in {cluster}: {write:?}");
            ensure!(!write.verb.starts_with("delete"), "a hub that doesn't know {path} deletes in {cluster}: {write:?}");
        }
        proxy.pass_again();
        let after = space.until_ready("chat", 2).await?;
        ensure!(after.placements.len() == 1 && after.clusters == before.clusters, "after {path}: {after:?}");
        let now = space.deployment(&ground.north, "chat").await?.context("the Deployment")?.metadata.uid;
        ensure!(now == deployment, "after {path}: another Deployment");
        ground.hub.wait_until_ready().await?;
        let deletes: Vec<_> = writes()?.into_iter().filter(|(_, write)| write.verb.starts_with("delete")).collect();
        ensure!(deletes.is_empty(), "around a hub that didn't know {path}: {deletes:?}");
    }
    // The same logs do show a deletion that is meant.
    let marks = Marks::take(&ground.fleet);
    ground.delete("chat").await?;
    eventually("the deletion is in the log", Duration::from_secs(10), async || {
        let writes = marks.writes()?;
        ensure!(writes.iter().any(|(cluster, write)| cluster == NORTH && write.verb == "delete"), "{writes:?}");
        Ok(())
    })
    .await
}

async fn f37_the_hub_starts_without_waiting_for_a_member_that_is_down(ground: &Ground) -> Result<()> {
    let space = &ground.space;
    space.apply("there", &on(Some(SOUTH), 1, 1)).await?;
    space.until_ready("there", 1).await?;
    ground.south.apiserver().pause()?;
    ground.hub.restart().await?;
    space.apply("here", &on(Some(NORTH), 1, 1)).await?;
    space.until_ready("here", 1).await?;
    let status = space.until("there", "what is down is told", |status| status.placements.first().is_some_and(|p| p.stale)).await?;
    ensure!(status.replicas == Some(1) && status.ready_replicas == Some(0), "{status:?}");
    ensure!(condition_of(&status, READY).status != "True", "{status:?}");
    ground.south.apiserver().resume()?;
    space.until_ready("there", 1).await?;
    ground.delete("there").await?;
    ground.delete("here").await
}

async fn i30_f35_a_member_without_leader_worker_sets_takes_what_needs_none_and_holds_no_deletion(ground: &Ground) -> Result<()> {
    let space = &ground.space;
    space.apply("pair", &pairs_on(SOUTH)).await?;
    space.until_ready("pair", 1).await?;
    let client = ground.south.client().await?;
    ground.south.lws_manager().context("a manager")?.kill();
    let all = kube::api::ListParams::default();
    for found in Api::<ValidatingWebhookConfiguration>::all(client.clone()).list_metadata(&all).await? {
        let name = found.metadata.name.unwrap_or_default();
        Api::<ValidatingWebhookConfiguration>::all(client.clone()).delete(&name, &DeleteParams::default()).await?;
    }
    for found in Api::<MutatingWebhookConfiguration>::all(client.clone()).list_metadata(&all).await? {
        let name = found.metadata.name.unwrap_or_default();
        Api::<MutatingWebhookConfiguration>::all(client.clone()).delete(&name, &DeleteParams::default()).await?;
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    definitions.delete("leaderworkersets.leaderworkerset.x-k8s.io", &DeleteParams::default()).await?;
    eventually("the kind is gone", LIMIT, async || {
        ensure!(definitions.get_opt("leaderworkersets.leaderworkerset.x-k8s.io").await?.is_none(), "it is there");
        Ok(())
    })
    .await?;

    ground.delete("pair").await?;
    ground.until_member(SOUTH, "it has no LeaderWorkerSets", |s| is(s, types::LEADER_WORKER_SET_AVAILABLE, "False")).await?;
    ground.until_member(SOUTH, "it is ready all the same", |status| is(status, types::READY, "True")).await?;
    space.apply("pair", &pairs_on(SOUTH)).await?;
    let status = space.until("pair", "it has no place", |status| status.rejections.len() == 2).await?;
    ensure!(condition_of(&status, PLACED).status == "False", "{status:?}");
    let rejection = status.rejections.iter().find(|rejection| rejection.cluster == SOUTH).context("south")?;
    ensure!(rejection.reason == "NoLeaderWorkerSet", "{rejection:?}");
    space.apply("single", &on(Some(SOUTH), 1, 1)).await?;
    space.until_ready("single", 1).await?;
    ground.delete("single").await?;
    ground.delete("pair").await
}

async fn f35_a_kind_of_template_that_is_gone_holds_no_deletion(ground: &Ground) -> Result<()> {
    let space = &ground.space;
    space.apply_object("InferenceServiceTemplate", "base", &format!("{{template: {}}}", pod_on(Some(NORTH), 1))).await?;
    space.apply("chat", "{replicas: 1, templateRefs: [{name: base}]}").await?;
    space.until_ready("chat", 1).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(space.client.clone());
    definitions.delete("inferenceservicetemplates.odin.moreh.io", &DeleteParams::default()).await?;
    eventually("the kind is gone", LIMIT, async || {
        ensure!(definitions.get_opt("inferenceservicetemplates.odin.moreh.io").await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    ground.delete("chat").await
}
