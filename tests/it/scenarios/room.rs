//! Room of a member: what counts as free, what is promised, and what the hub says when there is none. The member is one of
//! its own, with devices that no other has.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use odin_hub::api::condition::service::{APPLIED, PLACED, READY};
use odin_hub::api::federation::{Accelerator, MemberCluster};
use odin_hub::api::odin::InferenceServiceStatus;
use sandbox::sim::{self, NodeFault, NodeSpec};
use sandbox::{Cluster, MemberSpec, eventually, hub};
use serde_json::{Value, json};

use crate::world::{LIMIT, Space, clusters, condition_of, world};

const MEMBER: &str = "member-edge";
const NODES: [&str; 2] = ["edge-0", "edge-1"];

struct Edge {
    space: Space,
    member: Arc<Cluster>,
    clusters: Api<MemberCluster>,
}

/// Spec of a service for this member, with so many devices a replica and this in the annotations of its pods.
fn edge(replicas: u32, devices: u32, annotations: &str) -> String {
    format!(
        "{{replicas: {replicas}, rolloutStrategy: {{rollingUpdate: {{maxSurge: 0, maxUnavailable: 1}}}}, template: {{metadata: {{annotations: {{{annotations}}}}}, spec: {{nodeSelector: {{moai.moreh.io/accelerator.model: blackhole}}, tolerations: [{{key: tenstorrent.com/gpu, operator: Exists}}], containers: [{{name: main, image: registry.example/engine:1, resources: {{limits: {{tenstorrent.com/gpu: {devices}}}}}}}]}}}}}}"
    )
}

impl Edge {
    /// Waits until the hub counts the devices so.
    async fn until_counted(&self, what: &str, holds: impl Fn(&Accelerator) -> bool) -> Result<()> {
        eventually(what, LIMIT, async || {
            let status = self.clusters.get(MEMBER).await?.status.context("no status")?;
            let found = status.accelerators.iter().find(|found| found.resource == "tenstorrent.com/gpu").context("no devices")?;
            ensure!(holds(found), "{found:?}");
            Ok(())
        })
        .await
    }

    async fn delete(&self, names: &[&str]) -> Result<()> {
        let services = self.space.services();
        for name in names {
            services.delete(name, &DeleteParams::default()).await?;
        }
        for name in names {
            eventually(&format!("{name} is gone"), LIMIT, async || {
                ensure!(services.get_opt(name).await?.is_none(), "it is there");
                Ok(())
            })
            .await?;
        }
        self.until_counted("all devices are free again", |gpu| gpu.free == 16 && gpu.used == 0).await
    }

    async fn taint(&self, taints: Value) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.member.client().await?);
        for node in NODES {
            let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
            nodes.patch(node, &PatchParams::default(), &patch).await?;
        }
        Ok(())
    }

    /// Waits until the service has no place, and gives what was said of this member.
    async fn rejected(&self, name: &str, part: &str) -> Result<InferenceServiceStatus> {
        let of_member = |status: &InferenceServiceStatus| {
            status.rejections.iter().any(|rejection| rejection.cluster == MEMBER && rejection.message.contains(part))
        };
        self.space.until(name, &format!("{name} is rejected: {part}"), of_member).await
    }
}

/// Several things, one member: it takes a while to start.
#[tokio::test]
async fn what_is_free_in_a_member_is_what_pods_can_have() -> Result<()> {
    let world = world().await;
    let nodes = NODES.map(|name| NodeSpec::gpu(name, "tenstorrent", "blackhole", 8)).into();
    let member = world.fleet.add_member(MemberSpec::new(MEMBER, nodes)).await?;
    hub::join(world.fleet, &member, &hub::repository()).await?;
    let space = Space::new(world.fleet, "room").await?;
    let edge = Edge { clusters: Api::all(space.client.clone()), space, member };
    edge.until_counted("the devices are counted", |gpu| gpu.free == 16).await?;

    f8_i11_what_is_placed_in_part_is_not_placed(&edge).await?;
    f62_a_reservation_goes_when_its_pod_has_a_node(&edge).await?;
    f59_i13_i16_nodes_that_take_no_pods_are_no_room(&edge).await?;
    i31_a_taint_is_named_though_all_labels_match(&edge).await?;
    f6_i10_a_generation_counts_when_the_member_has_observed_it(&edge).await
}

async fn f8_i11_what_is_placed_in_part_is_not_placed(edge: &Edge) -> Result<()> {
    edge.space.apply("partly", &self::edge(3, 8, "")).await?;
    let ready = |status: &InferenceServiceStatus| status.ready_replicas == Some(2);
    let status = edge.space.until("partly", "two are ready", ready).await?;
    let placed = condition_of(&status, PLACED);
    ensure!(placed.status == "False" && placed.message.starts_with("2 of 3 groups placed in 1 cluster; "), "{placed:?}");
    ensure!(status.unplaced_replicas == Some(1) && clusters(&status) == "member-edge:2", "{status:?}");
    let ready = condition_of(&status, READY);
    ensure!(ready.status == "False" && ready.reason == "Unplaced", "{ready:?}");
    edge.space.scale("partly", 2).await?;
    let status = edge.space.until_ready("partly", 2).await?;
    ensure!(condition_of(&status, PLACED).status == "True", "{status:?}");
    edge.delete(&["partly"]).await
}

/// A model loads for minutes after its pod has a node. What it was promised must not count beside what it takes meanwhile.
async fn f62_a_reservation_goes_when_its_pod_has_a_node(edge: &Edge) -> Result<()> {
    let loads = "sim.odin-hub/ready-after: 1h";
    edge.space.apply("first", &self::edge(1, 8, loads)).await?;
    edge.until_counted("it is used and no longer reserved", |gpu| (gpu.used, gpu.reserved, gpu.free) == (8, 0, 8)).await?;
    let status = edge.space.status("first").await?;
    ensure!(status.ready_replicas.unwrap_or(0) == 0 && condition_of(&status, READY).status == "False", "{status:?}");
    edge.space.apply("second", &self::edge(1, 8, loads)).await?;
    edge.until_counted("so is the other half", |gpu| (gpu.used, gpu.reserved, gpu.free) == (16, 0, 0)).await?;
    edge.space.apply("third", &self::edge(1, 8, loads)).await?;
    edge.rejected("third", "needs 1 node with 8 free tenstorrent.com/gpu (blackhole); largest free: 0,0; 0 of 1 replicas fit").await?;
    edge.delete(&["first", "second", "third"]).await
}

async fn f59_i13_i16_nodes_that_take_no_pods_are_no_room(edge: &Edge) -> Result<()> {
    let client = edge.member.client().await?;
    edge.member.cordon_node(NODES[0], true).await?;
    sim::set_node_fault(&client, NODES[1], NodeFault::NotReady).await?;
    edge.until_counted("nothing is free", |gpu| gpu.free == 0).await?;
    edge.space.apply("chat", &self::edge(1, 1, "")).await?;
    let status = edge.rejected("chat", "1 node is cordoned").await?;
    ensure!(status.placements.is_empty() && status.unplaced_replicas == Some(1), "{status:?}");
    edge.rejected("chat", "1 node is not ready").await?;

    edge.member.cordon_node(NODES[0], false).await?;
    let status = edge.space.until_ready("chat", 1).await?;
    ensure!(clusters(&status) == "member-edge:1", "{status:?}");
    sim::clear_node_fault(&client, NODES[1]).await?;
    edge.delete(&["chat"]).await
}

async fn i31_a_taint_is_named_though_all_labels_match(edge: &Edge) -> Result<()> {
    let own = json!({"key": "tenstorrent.com/gpu", "effect": "NoSchedule"});
    edge.space.apply("chat", &self::edge(1, 8, "")).await?;
    edge.space.until_ready("chat", 1).await?;
    edge.taint(json!([own, {"key": "maintenance", "value": "cooling", "effect": "NoSchedule"}])).await?;
    for pod in edge.space.pods(&edge.member, "chat").await? {
        Api::<Pod>::namespaced(edge.member.client().await?, &edge.space.namespace)
            .delete(&pod.name_any(), &DeleteParams::default())
            .await?;
    }
    let status = edge.space.until("chat", "the pod waits", |status| condition_of(status, READY).reason == "Unschedulable").await?;
    let diagnostic = status.workload.as_ref().and_then(|workload| workload.diagnostic.as_ref()).context("a diagnostic")?;
    let named = "2 nodes are tainted maintenance=cooling:NoSchedule, which the pods don't tolerate";
    ensure!(diagnostic.message.contains(named) && diagnostic.message.contains("0/2 nodes are available"), "{diagnostic:?}");
    edge.space.apply("other", &self::edge(1, 1, "")).await?;
    edge.rejected("other", named).await?;
    edge.taint(json!([own])).await?;
    edge.space.until_ready("chat", 1).await?;
    edge.space.until_ready("other", 1).await?;
    edge.delete(&["chat", "other"]).await
}

/// The member accepts an edit, and nobody there works on it: all counters are full, and of the generation before.
async fn f6_i10_a_generation_counts_when_the_member_has_observed_it(edge: &Edge) -> Result<()> {
    edge.space.apply("chat", &self::edge(2, 1, "")).await?;
    let before = edge.space.until_ready("chat", 2).await?;
    edge.member.controller_manager().pause()?;
    let spec = self::edge(2, 1, "").replace("engine:1", "engine:2");
    edge.space.apply("chat", &spec).await?;
    let generation = edge.space.services().get("chat").await?.metadata.generation;
    let accepted = |status: &InferenceServiceStatus| {
        let applied = condition_of(status, APPLIED);
        applied.status == "True" && applied.observed_generation == generation
    };
    let status = edge.space.until("chat", "the edit is accepted", accepted).await?;
    ensure!(before.observed_generation < generation && status.observed_generation == before.observed_generation, "{status:?}");
    ensure!((status.ready_replicas, status.updated_replicas) == (Some(2), Some(0)), "{status:?}");
    ensure!(condition_of(&status, READY).status == "False", "{status:?}");
    edge.member.controller_manager().resume()?;
    edge.space.until_ready("chat", 2).await?;
    edge.delete(&["chat"]).await
}
