//! Services of groups in members of their own, which are full, lose parts, or come and go.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use odin_hub::api::condition::service::{APPLIED, PLACED, READY, RENDERED};
use odin_hub::api::lws::EXCLUSIVE_TOPOLOGY;
use odin_hub::api::odin::{InferenceServiceStatus, Placement, WorkloadKind};
use sandbox::sim::NodeSpec;
use sandbox::{Cluster, MemberSpec, hub};
use serde_json::{Value, json};

use crate::leader_worker_sets::{Statuses, by_group};
use crate::world::{Space, World, clusters, condition_of, world};

/// Label of nodes by rack.
const RACK: &str = "example.com/rack";

/// Two members with devices that no other has: `lws-a` has three nodes of 8, two of them in racks, and `lws-b` has one.
struct Ground {
    world: &'static World,
    space: Space,
    a: Arc<Cluster>,
    b: Arc<Cluster>,
}

impl Ground {
    async fn start() -> Result<Self> {
        let world = world().await;
        let node = |name: &str| NodeSpec::gpu(name, "example", "e1", 8);
        let of_a = vec![node("a-0").label(RACK, "r0"), node("a-1").label(RACK, "r1"), node("a-2")];
        let (a, b) = tokio::try_join!(
            world.fleet.add_member(MemberSpec::new("lws-a", of_a)),
            world.fleet.add_member(MemberSpec::new("lws-b", vec![node("b-0")]))
        )?;
        for member in [&a, &b] {
            hub::join(world.fleet, member, &hub::repository()).await?;
        }
        Ok(Self { world, space: Space::new(world.fleet, "lws-members").await?, a, b })
    }

    fn both(&self) -> [&Cluster; 2] {
        [&*self.a, &*self.b]
    }

    async fn take_away(&self, name: &str) -> Result<()> {
        self.space.take_away(&self.both(), name).await
    }

    /// UIDs of all pods of a service's groups.
    async fn uids(&self, name: &str) -> Result<BTreeSet<String>> {
        let mut uids = BTreeSet::new();
        for member in self.both() {
            uids.extend(self.space.group_pods(member, name).await?.iter().filter_map(ResourceExt::uid));
        }
        Ok(uids)
    }

    /// Makes or changes a service with an exclusive topology.
    async fn apply_exclusive(&self, name: &str, topology: &str, spec: &str) -> Result<()> {
        let spec: Value = serde_saphyr::from_str(spec)?;
        let object = json!({
            "apiVersion": "odin.moreh.io/v1alpha1", "kind": "InferenceService",
            "metadata": {"name": name, "namespace": self.space.namespace, "annotations": {EXCLUSIVE_TOPOLOGY: topology}}, "spec": spec,
        });
        sandbox::apply::apply_values(&self.space.client, vec![object], &sandbox::ApplyOptions::default()).await?;
        Ok(())
    }
}

/// A pod with so many devices, on a node of this name or on any.
fn pod(devices: u32, node: &str, more: &str) -> String {
    let node = if node.is_empty() { String::new() } else { format!("nodeSelector: {{kubernetes.io/hostname: {node}}}, ") };
    format!(
        "{{spec: {{{node}tolerations: [{{operator: Exists}}], containers: [{{name: main, image: registry.example/engine:1, {more}resources: {{limits: {{example.com/gpu: {devices}}}}}}}]}}}}"
    )
}

/// Groups of so many pods.
fn groups(replicas: u32, size: u32, pod: &str) -> String {
    format!("{{replicas: {replicas}, parallelism: {{pipeline: {size}}}, workerTemplate: {pod}}}")
}

/// Single pods.
fn single(replicas: u32, pod: &str) -> String {
    let one_by_one = "rolloutStrategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}";
    format!("{{replicas: {replicas}, {one_by_one}, template: {pod}}}")
}

/// Several things, two members: they take a while to start.
#[tokio::test]
async fn groups_in_members_that_are_full_or_lose_parts() -> Result<()> {
    let ground = Box::pin(Ground::start()).await?;
    f58_f60_i19_only_whole_groups_are_placed(&ground).await.context("whole groups")?;
    each_rack_holds_one_group(&ground).await.context("exclusive topology")?;
    a_partition_is_for_one_cluster(&ground).await.context("partition")?;
    a_change_of_kind_takes_nothing_away_before_its_successor_is_accepted(&ground).await.context("change of kind")?;
    a_set_that_shows_no_conditions_is_no_cause_of_anything(&ground).await.context("no conditions")?;
    a_member_whose_groups_nobody_manages_is_told_apart(&ground).await.context("no manager")?;
    f2_a_registration_that_goes_and_returns_moves_nothing(&ground).await.context("registration")
}

/// Leaders of three groups would each take a node, and no worker would ever find one.
async fn f58_f60_i19_only_whole_groups_are_placed(ground: &Ground) -> Result<()> {
    let space = &ground.space;
    let unplaced = |n: i32| move |status: &InferenceServiceStatus| status.unplaced_replicas == Some(n) && status.rejections.len() >= 2;
    // Four nodes in all, and no member has four.
    space.apply("wide", &groups(1, 4, &pod(8, "", ""))).await?;
    let status = space.until("wide", "it fits nowhere", unplaced(1)).await?;
    ensure!(status.placements.is_empty() && condition_of(&status, PLACED).status == "False", "{status:?}");

    space.apply("chat", &groups(3, 2, &pod(8, "", ""))).await?;
    let status = space.until("chat", "one group is ready", |s| unplaced(2)(s) && s.ready_replicas == Some(1)).await?;
    ensure!(clusters(&status) == "lws-a:1" && condition_of(&status, READY).reason == "Unplaced", "{status:?}");
    for (cluster, numbers) in
        [("lws-a", "needs 2 more nodes with 8 free example.com/gpu, has 1"), ("lws-b", "needs 2 nodes with 8 free example.com/gpu, has 1")]
    {
        let why = status.rejections.iter().find(|r| r.cluster == cluster).context("no rejection")?;
        ensure!(why.message.starts_with(numbers), "{why:?}");
    }
    let set = space.set(&ground.a, "chat").await?.context("no LeaderWorkerSet")?;
    ensure!(set.data["spec"]["replicas"] == 1 && ground.uids("chat").await?.len() == 2, "half a group was made: {}", set.data);
    ensure!(space.set(&ground.b, "chat").await?.is_none(), "half a group was made");

    for name in ["wide", "chat"] {
        ensure!(name == "chat" || ground.uids(name).await?.is_empty(), "something was made of {name}");
        ground.take_away(name).await?;
    }
    // 1 device is left of each node: 3 in lws-a, none of which is beside another.
    space.apply("most", &single(4, &pod(7, "", ""))).await?;
    space.until_ready("most", 4).await?;
    space.apply("chat", &groups(1, 1, &pod(3, "", ""))).await?;
    let status = space.until("chat", "it fits on no node", unplaced(1)).await?;
    let why = status.rejections.iter().find(|r| r.cluster == "lws-a").context("no rejection")?;
    ensure!(
        why.reason == "Fragmented" && why.message.starts_with("needs 1 node with 3 free example.com/gpu; largest free: 1,1,1"),
        "{why:?}"
    );
    ensure!(space.set(&ground.a, "chat").await?.is_none() && space.set(&ground.b, "chat").await?.is_none(), "it was made");
    for name in ["chat", "most"] {
        ground.take_away(name).await?;
    }
    Ok(())
}

/// A node without the label is in no rack.
async fn each_rack_holds_one_group(ground: &Ground) -> Result<()> {
    let space = &ground.space;
    let spec = |replicas| groups(replicas, 2, &pod(1, "", ""));
    ground.apply_exclusive("racks", RACK, &spec(3)).await?;
    let status = space.until("racks", "there are two racks", |s| s.unplaced_replicas == Some(1) && s.ready_replicas == Some(2)).await?;
    ensure!(clusters(&status) == "lws-a:2", "{status:?}");
    let pods = space.group_pods(&ground.a, "racks").await?;
    let nodes: BTreeSet<_> = pods.iter().map(|pod| (by_group(std::slice::from_ref(pod)).into_keys().next(), node_of(pod))).collect();
    let names: BTreeSet<_> = nodes.iter().map(|(_, node)| *node).collect();
    ensure!(pods.len() == 4 && nodes.len() == 2 && names == BTreeSet::from(["a-0", "a-1"]), "{nodes:?}");

    space.scale("racks", 2).await?;
    space.until_ready("racks", 2).await?;
    let before = ground.uids("racks").await?;
    ground.apply_exclusive("racks", "kubernetes.io/hostname", &spec(2)).await?;
    let refused = |s: &InferenceServiceStatus| condition_of(s, RENDERED).reason == "ExclusiveTopologyImmutable";
    let status = space.until("racks", "the change is refused", refused).await?;
    ensure!(condition_of(&status, RENDERED).message.contains(RACK) && status.ready_replicas == Some(2), "{status:?}");
    ground.apply_exclusive("racks", RACK, &spec(2)).await?;
    space.until_ready("racks", 2).await?;
    ensure!(ground.uids("racks").await? == before, "groups were made anew");
    ground.take_away("racks").await
}

fn node_of(pod: &k8s_openapi::api::core::v1::Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

async fn a_partition_is_for_one_cluster(ground: &Ground) -> Result<()> {
    let space = &ground.space;
    let spec = |partition: u32, env: &str| {
        let strategy = format!("rolloutStrategy: {{rollingUpdate: {{partition: {partition}}}}}");
        let more = format!("env: [{{name: A, value: {env}}}], ");
        groups(4, 2, &pod(4, "", &more)).replacen('{', &format!("{{{strategy}, "), 1)
    };
    let refused = |s: &InferenceServiceStatus| condition_of(s, RENDERED).reason == "RolloutNotSupported";
    space.apply("split", &spec(1, "a")).await?;
    let status = space.until("split", "a partition over two clusters is refused", refused).await?;
    let message = &condition_of(&status, RENDERED).message;
    ensure!(message.contains("lws-a") && message.contains("lws-b") && status.placements.is_empty(), "{status:?}");
    ensure!(ground.uids("split").await?.is_empty(), "something was made");

    space.apply("split", &spec(0, "a")).await?;
    let status = space.until_ready("split", 4).await?;
    ensure!(clusters(&status) == "lws-a:3,lws-b:1", "{status:?}");
    let before = ground.uids("split").await?;
    space.apply("split", &spec(1, "b")).await?;
    let status = space.until("split", "so it is once groups run", refused).await?;
    ensure!(status.ready_replicas == Some(4) && clusters(&status) == "lws-a:3,lws-b:1", "{status:?}");
    ensure!(ground.uids("split").await? == before, "groups were made anew");
    space.apply("split", &spec(0, "a")).await?;
    space.until_ready("split", 4).await?;
    ensure!(ground.uids("split").await? == before, "groups were made anew");
    ground.take_away("split").await
}

/// Both members are full: the service's own pods are the room of their successors.
async fn a_change_of_kind_takes_nothing_away_before_its_successor_is_accepted(ground: &Ground) -> Result<()> {
    let space = &ground.space;
    space.apply("switch", &single(4, &pod(8, "", ""))).await?;
    space.until_ready("switch", 4).await?;
    let mut statuses = Statuses::of(space, "switch").await?;

    // A LeaderWorkerSet would take a Service of its name for its own.
    for member in ground.both() {
        let service = "{apiVersion: v1, kind: Service, metadata: {name: switch, namespace: lws-members}, spec: {ports: [{port: 1}]}}";
        member.apply_yaml(service).await?;
    }
    space.apply("switch", &groups(4, 2, &pod(4, "", ""))).await?;
    let refused = |reason: &'static str| {
        move |s: &InferenceServiceStatus| s.placements.len() == 2 && s.placements.iter().all(|p| p.reason.as_deref() == Some(reason))
    };
    let status = space.until("switch", "both members keep what they have", refused("ObjectConflict")).await?;
    ensure!(condition_of(&status, APPLIED).status == "False" && condition_of(&status, READY).status == "False", "{status:?}");
    for status in statuses.take()? {
        ensure!(status.ready_replicas == Some(4) && status.unplaced_replicas.unwrap_or(0) == 0, "{status:?}");
    }
    for member in ground.both() {
        ensure!(space.set(member, "switch").await?.is_none() && space.deployment(member, "switch").await?.is_some());
        let services: Api<Service> = Api::namespaced(member.client().await?, &space.namespace);
        services.delete("switch", &DeleteParams::default()).await?;
    }
    let status = space.until_ready("switch", 4).await?;
    ensure!(clusters(&status) == "lws-a:3,lws-b:1", "{status:?}");
    serves_until_accepted(&statuses.take()?, WorkloadKind::Deployment)?;
    for member in ground.both() {
        ensure!(space.deployment(member, "switch").await?.is_none(), "the Deployment is left in {}", member.name());
    }
    ensure!(ground.uids("switch").await?.len() == 8);

    // And back, first to what no API server takes.
    let broken = single(4, &pod(8, "", "volumeMounts: [{name: nowhere, mountPath: /data}], "));
    space.apply("switch", &broken).await?;
    space.until("switch", "both members keep what they have", refused("ApplyDenied")).await?;
    for status in statuses.take()? {
        ensure!(status.ready_replicas == Some(4) && status.unplaced_replicas.unwrap_or(0) == 0, "{status:?}");
    }
    space.apply("switch", &single(4, &pod(8, "", ""))).await?;
    space.until_ready("switch", 4).await?;
    serves_until_accepted(&statuses.take()?, WorkloadKind::LeaderWorkerSet)?;
    for member in ground.both() {
        ensure!(space.set(member, "switch").await?.is_none(), "the LeaderWorkerSet is left in {}", member.name());
    }
    ensure!(ground.uids("switch").await?.is_empty(), "pods of groups are left");
    ground.take_away("switch").await
}

/// While a member shows what served before, all of it is ready.
fn serves_until_accepted(statuses: &[InferenceServiceStatus], old: WorkloadKind) -> Result<()> {
    for status in statuses {
        ensure!(status.unplaced_replicas.unwrap_or(0) == 0, "its own pods are no room: {status:?}");
        let is_old = |p: &&Placement| p.workload.as_ref().is_some_and(|w| w.kind == old);
        for placement in status.placements.iter().filter(is_old) {
            ensure!(placement.ready_replicas >= Some(placement.replicas), "taken away before its successor was there: {placement:?}");
        }
    }
    Ok(())
}

/// What its manager may no longer write stays as the API server made it: without a status.
async fn a_set_that_shows_no_conditions_is_no_cause_of_anything(ground: &Ground) -> Result<()> {
    let (space, member) = (&ground.space, &ground.b);
    let bindings: Api<ClusterRoleBinding> = Api::all(member.client().await?);
    let mut binding = bindings.get("lws-manager").await?;
    bindings.delete("lws-manager", &DeleteParams::default()).await?;
    space.apply("quiet", &groups(1, 2, &pod(1, "b-0", ""))).await?;
    let there = |s: &InferenceServiceStatus| s.placements.first().is_some_and(|p| p.workload.is_some());
    let status = space.until("quiet", "it is there and shows nothing", there).await?;
    let set = space.set(member, "quiet").await?.context("no LeaderWorkerSet")?;
    ensure!(set.data.get("status").is_none_or(|status| status.get("conditions").is_none()), "{}", set.data);
    let ready = condition_of(&status, READY);
    ensure!((ready.status.as_str(), ready.reason.as_str()) == ("False", "Reconciling"), "{ready:?}");
    ensure!(status.ready_replicas == Some(0) && status.observed_generation.is_none(), "{status:?}");
    let workload = status.workload.as_ref().context("no workload")?;
    ensure!(workload.conditions.is_empty() && workload.observed_generation.is_none(), "{workload:?}");

    (binding.metadata.resource_version, binding.metadata.uid) = (None, None);
    bindings.create(&PostParams::default(), &binding).await?;
    space.until_ready("quiet", 1).await?;
    ground.take_away("quiet").await
}

async fn a_member_whose_groups_nobody_manages_is_told_apart(ground: &Ground) -> Result<()> {
    let (space, member) = (&ground.space, &ground.b);
    space.apply("there", &groups(1, 2, &pod(1, "b-0", ""))).await?;
    space.until_ready("there", 1).await?;
    let before = ground.uids("there").await?;
    let manager = member.lws_manager().context("no manager")?;
    manager.kill();
    space.apply("new", &groups(1, 2, &pod(1, "b-0", ""))).await?;
    space.scale("there", 2).await?;
    let failed = |s: &InferenceServiceStatus| s.placements.first().is_some_and(|p| p.reason.as_deref() == Some("ApplyFailed"));
    for name in ["new", "there"] {
        let status = space.until(name, "it is told and no denial", failed).await?;
        let message = status.placements[0].message.as_deref().unwrap_or_default();
        ensure!(message.contains("failed calling webhook"), "{message}");
        ensure!(name == "new" || status.ready_replicas == Some(1), "what runs goes on: {status:?}");
    }
    space.apply("elsewhere", &groups(1, 2, &pod(1, "a-0", ""))).await?;
    space.until_ready("elsewhere", 1).await?;
    manager.restart()?;
    space.until_ready("new", 1).await?;
    space.until_ready("there", 2).await?;
    ensure!(before.is_subset(&ground.uids("there").await?), "the first group was made anew");
    for name in ["new", "elsewhere"] {
        ground.take_away(name).await?;
    }
    Ok(())
}

/// With a service in the member of before.
async fn f2_a_registration_that_goes_and_returns_moves_nothing(ground: &Ground) -> Result<()> {
    let space = &ground.space;
    let before = ground.uids("there").await?;
    let secrets: Api<Secret> = Api::namespaced(space.client.clone(), hub::NAMESPACE);
    let mut statuses = Statuses::of(space, "there").await?;
    secrets.delete("lws-b", &DeleteParams::default()).await?;
    let status = space.until("there", "its share left the sums", |s| s.ready_replicas == Some(0)).await?;
    ensure!(status.updated_replicas == Some(0) && status.placements[0].stale, "{status:?}");
    ensure!(condition_of(&status, READY).reason == "CredentialMissing", "{status:?}");
    let fewer = statuses.take()?.iter().filter(|s| s.ready_replicas == Some(1)).count();
    ensure!(fewer == 0, "all of its share leaves at once");
    ensure!(ground.uids("there").await? == before && space.set(&ground.b, "there").await?.is_some(), "objects went");

    hub::join(ground.world.fleet, &ground.b, &hub::repository()).await?;
    let status = space.until_ready("there", 2).await?;
    ensure!(clusters(&status) == "lws-b:2" && !status.placements[0].stale, "{status:?}");
    ensure!(ground.uids("there").await? == before, "pods were made anew");
    ground.take_away("there").await
}
