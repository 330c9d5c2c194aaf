//! The life of a service whose groups have several pods: a `LeaderWorkerSet`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt as _};
use odin_hub::api::condition::service::{APPLIED, PLACED, READY, RENDERED};
use odin_hub::api::lws::{GROUP_INDEX, NAME, WORKER_INDEX};
use odin_hub::api::odin::{Diagnostic, InferenceService, InferenceServiceStatus, WorkloadKind};
use sandbox::{Cluster, eventually};
use serde_json::json;

use crate::refusals::hub_id;
use crate::world::{LIMIT, Space, clusters, condition_of, world};

/// `LeaderWorkerSets` of a namespace.
pub(crate) async fn sets(member: &Cluster, namespace: &str) -> Result<Api<DynamicObject>> {
    let kind = GroupVersionKind::gvk("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet");
    Ok(Api::namespaced_with(member.client().await?, namespace, &ApiResource::from_gvk(&kind)))
}

impl Space {
    /// The service's `LeaderWorkerSet` in a member.
    pub(crate) async fn set(&self, member: &Cluster, name: &str) -> Result<Option<DynamicObject>> {
        Ok(sets(member, &self.namespace).await?.get_opt(name).await?)
    }

    /// All pods of the service's groups in a member, those that don't serve too.
    pub(crate) async fn group_pods(&self, member: &Cluster, name: &str) -> Result<Vec<Pod>> {
        let api: Api<Pod> = Api::namespaced(member.client().await?, &self.namespace);
        Ok(api.list(&ListParams::default().labels(&format!("{NAME}={name}"))).await?.items)
    }

    /// Deletes a service and waits until nothing of it is left on the hub and in these members.
    pub(crate) async fn take_away(&self, members: &[&Cluster], name: &str) -> Result<()> {
        self.services().delete(name, &DeleteParams::default()).await?;
        eventually(&format!("nothing is left of {name}"), LIMIT, || async {
            ensure!(self.services().get_opt(name).await?.is_none(), "the service is there");
            for member in members {
                ensure!(self.deployment(member, name).await?.is_none(), "its Deployment is in {}", member.name());
                ensure!(self.set(member, name).await?.is_none(), "its LeaderWorkerSet is in {}", member.name());
                let pods = self.pods(member, name).await?.len() + self.group_pods(member, name).await?.len();
                ensure!(pods == 0, "{pods} of its pods are in {}", member.name());
                let services: Api<Service> = Api::namespaced(member.client().await?, &self.namespace);
                for service in [name.to_owned(), format!("{name}-service")] {
                    ensure!(services.get_opt(&service).await?.is_none(), "its Service {service} is in {}", member.name());
                }
            }
            Ok(())
        })
        .await
    }
}

/// What a status says is wrong.
pub(crate) fn diagnostic(status: &InferenceServiceStatus) -> Option<&Diagnostic> {
    status.workload.as_ref()?.diagnostic.as_ref()
}

/// UIDs of pods, by the number of their group.
pub(crate) fn by_group(pods: &[Pod]) -> BTreeMap<String, BTreeSet<String>> {
    let mut groups = BTreeMap::<_, BTreeSet<_>>::new();
    for pod in pods {
        let group = pod.labels().get(GROUP_INDEX).cloned().unwrap_or_default();
        groups.entry(group).or_default().extend(pod.uid());
    }
    groups
}

/// Places in their groups of the pods behind the service.
fn served(pods: &[Pod]) -> Vec<&str> {
    let mut places: Vec<_> = pods.iter().filter_map(|pod| pod.labels().get(WORKER_INDEX).map(String::as_str)).collect();
    places.sort_unstable();
    places
}

/// Spec of a service with groups of two pods, which run on nodes with MI300X and take no device, so that many of them
/// have room there. `container` are more fields of the container, `annotations` those of its pods, and `more` is more of
/// the spec.
fn pairs(replicas: u32, image: &str, container: &str, annotations: &str, more: &str) -> String {
    let pod = pod(&format!("{{name: main, image: '{image}', {container}}}"));
    format!(
        "{{replicas: {replicas}, parallelism: {{pipeline: 2}}, workerTemplate: {{metadata: {{annotations: {{{annotations}}}}}, spec: {pod}}}, {more}}}"
    )
}

fn pod(container: &str) -> String {
    format!("{{nodeSelector: {{moai.moreh.io/accelerator.model: mi300x}}, tolerations: [{{operator: Exists}}], containers: [{container}]}}")
}

const IMAGE: &str = "registry.example/engine:1";

/// One service from its first day to its last, since each step needs the one before it.
#[tokio::test]
async fn groups_are_made_scaled_edited_put_back_and_taken_away() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "lws-life").await?;
    let member = world.fleet.member("member-1")?;
    let first = "env: [{name: A, value: a}, {name: B, value: b}], ports: [{name: http, containerPort: 8080}, {containerPort: 9000}]";
    space.apply("chat", &pairs(2, IMAGE, first, "note: x", "")).await?;
    // Of these two, only some pods serve.
    let leader = format!("template: {{spec: {}}}", pod(&format!("{{name: main, image: '{IMAGE}'}}")));
    space.apply("leads", &pairs(1, IMAGE, "", "", &leader)).await?;
    space.apply("works", &pairs(1, IMAGE, "", "", "service: {target: workers}")).await?;

    let status = space.until_ready("chat", 2).await?;
    is_as_it_should_be(&space, &member, &status).await.context("created")?;
    for (name, places) in [("leads", ["0"]), ("works", ["1"])] {
        space.until_ready(name, 1).await?;
        let pods = space.pods(&member, name).await?;
        ensure!(served(&pods) == places && space.group_pods(&member, name).await?.len() == 2, "{name}: {:?} serve", served(&pods));
    }
    what_a_scale_leaves_stays_as_it_is(&space, &member).await.context("scaled")?;
    an_edit_rolls_all_groups(&space, &member).await.context("edited")?;
    its_service_is_put_back(&space, &member).await.context("changed by hand")?;
    space.take_away(&[&member], "chat").await
}

async fn is_as_it_should_be(space: &Space, member: &Cluster, status: &InferenceServiceStatus) -> Result<()> {
    ensure!(clusters(status) == "member-1:2", "{status:?}");
    let selector = format!("{NAME}=chat,{WORKER_INDEX}=0");
    ensure!(status.hpa_pod_selector.as_ref() == Some(&selector), "an autoscaler counts leaders: {status:?}");
    let workload = status.workload.as_ref().context("no workload")?;
    ensure!(workload.kind == WorkloadKind::LeaderWorkerSet && workload.diagnostic.is_none(), "{workload:?}");
    let available = workload.conditions.iter().find(|c| c["type"] == "Available").context("no Available")?;
    ensure!(available["reason"] == "AllGroupsReady" && available["status"] == "True", "verbatim: {available}");
    ensure!(status.placements[0].service.as_deref() == Some("chat-service"), "{:?}", status.placements);
    for type_ in [READY, RENDERED, PLACED, APPLIED] {
        ensure!(condition_of(status, type_).status == "True", "{type_}: {status:?}");
    }

    let set = space.set(member, "chat").await?.context("no LeaderWorkerSet")?;
    for label in ["federation.odin.moreh.io/hub", "federation.odin.moreh.io/service-uid"] {
        ensure!(set.labels().contains_key(label), "{:?}", set.labels());
    }
    let group = set.data.pointer("/spec/leaderWorkerTemplate").context("no template")?;
    ensure!(group["size"] == 2 && group.get("leaderTemplate").is_none() && set.data["spec"]["startupPolicy"] == "LeaderCreated", "{group}");
    let pods = space.group_pods(member, "chat").await?;
    ensure!(served(&space.pods(member, "chat").await?) == ["0", "0", "1", "1"] && pods.len() == 4, "all pods serve");
    let of_hub = pods.iter().flat_map(|pod| pod.labels().keys()).filter(|key| key.starts_with("federation."));
    ensure!(of_hub.count() == 0, "nothing of the hub stands on pods: they would roll when it changes");

    let services: Api<Service> = Api::namespaced(member.client().await?, &space.namespace);
    let spec = services.get("chat-service").await?.spec.context("no spec")?;
    let ports: Vec<_> = spec.ports.iter().flatten().map(|port| (port.name.as_deref().unwrap_or_default(), port.port)).collect();
    ensure!(ports == [("http", 8080), ("port-9000", 9000)], "{ports:?}");
    let selector = spec.selector.unwrap_or_default();
    ensure!(selector == BTreeMap::from([("mif.moreh.io/inferenceservice".to_owned(), "chat".to_owned())]), "{selector:?}");
    ensure!(space.deployment(member, "chat").await?.is_none(), "a Deployment beside it");
    Ok(())
}

async fn what_a_scale_leaves_stays_as_it_is(space: &Space, member: &Cluster) -> Result<()> {
    let mut before = by_group(&space.group_pods(member, "chat").await?);
    for replicas in [3, 1, 0, 2] {
        space.scale("chat", replicas).await?;
        space.until_ready("chat", replicas).await?;
        let after = eventually("there are as many groups", LIMIT, || async {
            let groups = by_group(&space.group_pods(member, "chat").await?);
            ensure!(groups.len() == usize::try_from(replicas)? && groups.values().all(|uids| uids.len() == 2), "{groups:?}");
            Ok(groups)
        })
        .await?;
        let kept = before.iter().filter(|(group, _)| after.contains_key(*group));
        for (group, uids) in kept {
            ensure!(after.get(group) == Some(uids), "a scale to {replicas} made group {group} anew");
        }
        before = after;
    }
    Ok(())
}

async fn an_edit_rolls_all_groups(space: &Space, member: &Cluster) -> Result<()> {
    let before = by_group(&space.group_pods(member, "chat").await?);
    let edited = "env: [{name: A, value: changed}], ports: [{name: http, containerPort: 8080}]";
    space.apply("chat", &pairs(2, IMAGE, edited, "", "")).await?;
    space.until_ready("chat", 2).await?;
    let set = space.set(member, "chat").await?.context("no LeaderWorkerSet")?;
    let template = set.data.pointer("/spec/leaderWorkerTemplate/workerTemplate").context("no template")?;
    ensure!(template["spec"]["containers"][0]["env"] == json!([{"name": "A", "value": "changed"}]), "B was removed: {template}");
    ensure!(template.pointer("/metadata/annotations/note").is_none(), "note was removed: {template}");
    let services: Api<Service> = Api::namespaced(member.client().await?, &space.namespace);
    let ports = services.get("chat-service").await?.spec.and_then(|spec| spec.ports).unwrap_or_default();
    ensure!(ports.len() == 1 && ports[0].port == 8080, "a port was removed: {ports:?}");
    let after = by_group(&space.group_pods(member, "chat").await?);
    ensure!(after.len() == 2 && before.iter().all(|(group, uids)| after[group].is_disjoint(uids)), "{before:?} → {after:?}");
    Ok(())
}

/// I28: what others remove is made anew and told; so is what they change.
async fn its_service_is_put_back(space: &Space, member: &Cluster) -> Result<()> {
    let services: Api<Service> = Api::namespaced(member.client().await?, &space.namespace);
    let before = services.get("chat-service").await?;
    services.delete("chat-service", &DeleteParams::default()).await?;
    eventually("the Service is made anew", LIMIT, || async {
        let now = services.get("chat-service").await?;
        ensure!(now.metadata.uid != before.metadata.uid && now.metadata.deletion_timestamp.is_none(), "{now:?}");
        Ok(())
    })
    .await?;
    let events: Api<Event> = Api::namespaced(space.client.clone(), &space.namespace);
    eventually("the hub tells of it", LIMIT, || async {
        let told: Vec<_> = events.list(&ListParams::default()).await?.items.into_iter().filter_map(|event| event.note).collect();
        ensure!(told.iter().any(|note| note.contains("chat-service") && note.contains("was made anew")), "{told:?}");
        Ok(())
    })
    .await?;
    let by_hand = Patch::Merge(json!({"spec": {"selector": {"app": "other"}}}));
    services.patch("chat-service", &PatchParams::default(), &by_hand).await?;
    eventually("the selector is put back", LIMIT, || async {
        let selector = services.get("chat-service").await?.spec.and_then(|spec| spec.selector).unwrap_or_default();
        ensure!(selector.len() == 1 && !selector.contains_key("app"), "{selector:?}");
        Ok(())
    })
    .await?;
    space.until_ready("chat", 2).await.map(drop)
}

#[tokio::test]
async fn an_image_that_a_worker_cannot_pull_is_named_and_can_be_mended() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "lws-image").await?;
    let leader = format!("template: {{spec: {}}}", pod(&format!("{{name: main, image: '{IMAGE}'}}")));
    space.apply("chat", &pairs(1, "sim.invalid/missing:1", "", "", &leader)).await?;
    let is_image = |d: &Diagnostic| d.reason == "ImagePullBackOff" || d.reason == "ErrImagePull";
    let status = space.until("chat", "the image is named", |status| diagnostic(status).is_some_and(is_image)).await?;
    let told = diagnostic(&status).context("no diagnostic")?;
    ensure!(told.message.contains("sim.invalid/missing:1") && told.involved_object.name == "chat-0-1", "{told:?}");
    ensure!(told.container.as_deref() == Some("main") && condition_of(&status, READY).reason == told.reason, "{status:?}");

    space.apply("chat", &pairs(1, IMAGE, "", "", &leader)).await?;
    let status = space.until_ready("chat", 1).await?;
    ensure!(diagnostic(&status).is_none(), "{status:?}");
    Ok(())
}

/// What stands in the way of each service of [`what_is_someone_else_s_stays_and_is_named`], and what names it.
const IN_THE_WAY: [(&str, &str); 4] = [
    ("same", "LeaderWorkerSet lws-foreign/same is there already"),
    ("headless", "LeaderWorkerSet lws-foreign/headless can't be made beside Service lws-foreign/headless"),
    ("taken", "Service lws-foreign/taken-service is there already"),
    ("rival", "Service lws-foreign/rival-service can't be made beside LeaderWorkerSet lws-foreign/rival-service"),
];

#[tokio::test]
async fn what_is_someone_else_s_stays_and_is_named() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "lws-foreign").await?;
    let member = world.fleet.member("member-1")?;
    let id = hub_id(world).await?;
    let set = |name: &str| {
        format!(
            "{{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {{name: {name}, namespace: lws-foreign}}, spec: {{replicas: 0, leaderWorkerTemplate: {{size: 1, workerTemplate: {{spec: {{containers: [{{name: theirs, image: x}}]}}}}}}}}}}"
        )
    };
    let service = |name: &str| {
        format!(
            "{{apiVersion: v1, kind: Service, metadata: {{name: {name}, namespace: lws-foreign}}, spec: {{selector: {{app: theirs}}, ports: [{{port: 1}}]}}}}"
        )
    };
    let allowed =
        format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: lws-foreign, labels: {{federation.odin.moreh.io/allow: {id}}}}}}}");
    let theirs = [allowed, set("same"), service("headless"), service("taken-service"), set("rival-service")];
    member.apply_yaml(&theirs.join("\n---\n")).await?;
    let (sets, services) = (sets(&member, "lws-foreign").await?, Api::<Service>::namespaced(member.client().await?, "lws-foreign"));
    let specs = async || -> Result<serde_json::Value> {
        let sets = [sets.get("same").await?, sets.get("rival-service").await?];
        let services = [services.get("headless").await?, services.get("taken-service").await?];
        ensure!(sets.iter().all(|set| set.metadata.deletion_timestamp.is_none()), "they are being deleted");
        Ok(json!([sets.map(|set| (set.metadata.uid, set.data["spec"].clone())), services.map(|s| (s.metadata.uid, s.spec))]))
    };
    let before = specs().await?;

    for (name, _) in IN_THE_WAY {
        space.apply(name, &pairs(1, IMAGE, "", "", "")).await?;
    }
    for (name, text) in IN_THE_WAY {
        let conflict = |status: &InferenceServiceStatus| {
            status.conditions.iter().any(|c| c.type_ == READY && c.reason == "ObjectConflict" && c.message.contains(text))
        };
        space.until(name, &format!("{name}: {text}"), conflict).await?;
    }
    ensure!(specs().await? == before, "theirs were touched");
    ensure!(space.set(&member, "headless").await?.is_none(), "it would have taken their Service for its own");

    for set in ["same", "rival-service"] {
        sets.delete(set, &DeleteParams::foreground()).await?;
    }
    for service in ["headless", "taken-service"] {
        services.delete(service, &DeleteParams::default()).await?;
    }
    for (name, _) in IN_THE_WAY {
        space.until_ready(name, 1).await?;
    }
    Ok(())
}

/// All statuses of a service from a moment on, as a watch shows them.
pub(crate) struct Statuses {
    seen: tokio::sync::mpsc::UnboundedReceiver<InferenceServiceStatus>,
    task: tokio::task::JoinHandle<Result<()>>,
}

impl Statuses {
    pub(crate) async fn of(space: &Space, name: &str) -> Result<Self> {
        let api: Api<InferenceService> = space.services();
        let version = api.get(name).await?.resource_version().context("no resourceVersion")?;
        let of_name = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(290);
        let (sender, seen) = tokio::sync::mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let mut events = std::pin::pin!(api.watch(&of_name, &version).await?);
            while let Some(event) = events.try_next().await? {
                // Before its first status there is its finalizer.
                if let WatchEvent::Modified(InferenceService { status: Some(status), .. }) = event {
                    sender.send(status)?;
                }
            }
            Ok(())
        });
        Ok(Self { seen, task })
    }

    /// Those that came since the last call.
    pub(crate) fn take(&mut self) -> Result<Vec<InferenceServiceStatus>> {
        ensure!(!self.task.is_finished(), "the watch has ended");
        let mut all = Vec::new();
        while let Ok(status) = self.seen.try_recv() {
            all.push(status);
        }
        Ok(all)
    }
}

impl Drop for Statuses {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How often the message of a diagnostic says that a group was made anew.
fn recreations(status: &InferenceServiceStatus) -> Option<u32> {
    diagnostic(status)?.message.split_once("recreated ")?.1.split(' ').next()?.parse().ok()
}

/// Every other second all pods are ready, and each of them has restarted nothing.
#[tokio::test]
async fn a_worker_that_crashes_a_second_after_it_was_ready_is_one_steady_story() -> Result<()> {
    /// Rounds that are looked at.
    const ROUNDS: u32 = 6;
    let world = world().await;
    let space = Space::new(world.fleet, "lws-crash").await?;
    let leader = format!("template: {{spec: {}}}", pod(&format!("{{name: main, image: '{IMAGE}'}}")));
    let crash = "sim.odin-hub/fail: crash, sim.odin-hub/fail-after: 600ms";
    space.apply("chat", &pairs(1, IMAGE, "", crash, &leader)).await?;
    let mut statuses = Statuses::of(&space, "chat").await?;
    let first = space.until("chat", "the loop is told", |status| recreations(status).is_some()).await?;
    let told = diagnostic(&first).context("no diagnostic")?.clone();
    ensure!(told.involved_object.name == "chat-0-1" && told.container.as_deref() == Some("main"), "{told:?}");
    let before = statuses.take()?;
    ensure!(before.iter().all(|status| condition_of(status, READY).status != "True"), "ready for a moment: {before:?}");

    let until = recreations(&first).unwrap_or_default() + ROUNDS;
    space.until("chat", "more rounds", |status| recreations(status).is_some_and(|now| now >= until)).await?;
    let seen = statuses.take()?;
    let words = seen.iter().map(|status| {
        let ready = condition_of(status, READY);
        let told = diagnostic(status).map(|told| (told.reason.as_str(), &told.involved_object.name, &told.container));
        (ready.status.as_str(), ready.reason.as_str(), told)
    });
    let words: BTreeSet<_> = words.map(|words| format!("{words:?}")).collect();
    ensure!(words.len() == 1 && words.iter().all(|words| words.contains("\"False\", \"CrashLoopBackOff\"")), "{words:#?}");
    // Of each round the count is news, and that groups come and go; whatever is between is not.
    let most = usize::try_from(ROUNDS)? * 5;
    ensure!(seen.len() <= most, "{} statuses of {ROUNDS} rounds: {:#?}", seen.len(), seen.iter().map(counts).collect::<Vec<_>>());
    Ok(())
}

fn counts(status: &InferenceServiceStatus) -> String {
    let Some(told) = diagnostic(status) else { return "no diagnostic".to_owned() };
    format!("{:?} {:?} {:?} {}", status.replicas, status.ready_replicas, status.updated_replicas, told.message)
}
