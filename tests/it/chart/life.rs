//! The life of a release: installed, upgraded, uninstalled and installed again under services that go on serving.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use odin_hub::api::federation::MemberCluster;
use sandbox::hub::{self, Hub, HubOptions, NAMESPACE, RELEASE};
use sandbox::sim::NodeSpec;
use sandbox::{Cluster, Fleet, FleetSpec, MemberSpec};
use serde_json::json;
use tokio::process::Command;

use crate::world::{PROGRAM, Space, amd};

const SERVICE: &str = "serves";

/// A fleet of its own, since its hub comes and goes.
struct Ground {
    fleet: Fleet,
    space: Space,
    member: std::sync::Arc<Cluster>,
    definitions: Api<CustomResourceDefinition>,
}

impl Ground {
    async fn start() -> Result<Self> {
        let nodes = (0..2).map(|n| NodeSpec::gpu(&format!("amd-{n}"), "amd", "mi300x", 8)).collect();
        let fleet = Fleet::start(FleetSpec::new(vec![MemberSpec::new("member-1", nodes)])).await?;
        let definitions = Api::all(fleet.hub().client().await?);
        Ok(Self { member: fleet.member("member-1")?, space: Space::new(&fleet, "life").await?, fleet, definitions })
    }

    /// UIDs of the service's pods and of the kinds: what must survive everything.
    async fn lasting(&self) -> Result<BTreeMap<String, String>> {
        let pods = self.space.pods(&self.member, SERVICE).await?;
        let kinds = self.definitions.list_metadata(&ListParams::default()).await?.items;
        let named = |name: String, uid: Option<String>| Ok((name, uid.context("a UID")?));
        let pods = pods.iter().map(|pod| named(pod.name_any(), pod.uid()));
        pods.chain(kinds.iter().map(|kind| named(kind.name_any(), kind.uid()))).collect()
    }

    async fn hub_id(&self) -> Result<String> {
        let api: Api<ConfigMap> = Api::namespaced(self.fleet.hub().client().await?, NAMESPACE);
        api.get("odin-hub-id").await?.data.and_then(|mut data| data.remove("id")).context("the hub's id")
    }

    /// The chart's Deployment, which a kubelet's work follows: where it isn't, no hub runs.
    async fn deployment(&self) -> Result<Option<Deployment>> {
        Ok(Api::<Deployment>::namespaced(self.fleet.hub().client().await?, NAMESPACE).get_opt(RELEASE).await?)
    }
}

#[tokio::test]
async fn services_go_on_through_upgrade_uninstall_and_a_new_install() -> Result<()> {
    let ground = Ground::start().await?;
    let options = HubOptions::new(PROGRAM);
    let running = Hub::install(&ground.fleet, &options).await?;
    hub::join(&ground.fleet, &ground.member, &options.repository).await?;
    ground.space.apply(SERVICE, &amd(2, 1)).await?;
    ground.space.until_ready(SERVICE, 2).await?;
    let (lasting, id) = (ground.lasting().await?, ground.hub_id().await?);
    let notes = ground.fleet.helm().run(["get", "notes", RELEASE, "--namespace", NAMESPACE]).await?;
    for command in ["odin-hub join gpu-a --namespace odin-hub ", "kubectl apply -f examples/quickstart", "kubectl get memberclusters"] {
        ensure!(notes.contains(command), "{notes}");
    }

    definitions_are_upgraded_by_the_program_alone(&ground, &options).await?;

    // Recreate: the old one ends, then the new one starts.
    let changed = HubOptions { values: json!({"logFormat": "json", "podAnnotations": {"changed": "yes"}}), ..options.clone() };
    hub::install(&ground.fleet, &changed).await?;
    ensure!(running.stop().await?.success(), "{}", running.process().log_tail(20));
    drop(running);
    let before = fs::read_to_string(ground.fleet.log_path(&options.name))?.len();
    let running = Hub::start(&ground.fleet, &changed).await?;
    let log = fs::read_to_string(running.process().log_path())?;
    ensure!(log.get(before..).is_some_and(|new| new.starts_with('{')), "the hub doesn't run with the new values: {log}");
    ground.space.scale(SERVICE, 3).await?;
    ground.space.until_ready(SERVICE, 3).await?;
    let now = ground.lasting().await?;
    ensure!(lasting.iter().all(|(name, uid)| now.get(name) == Some(uid)), "before {lasting:?}, after the upgrade {now:?}");
    let lasting = now;

    ground.fleet.helm().run(["uninstall", RELEASE, "--namespace", NAMESPACE]).await?;
    ensure!(ground.deployment().await?.is_none(), "the Deployment is there");
    running.stop().await?;
    let client = ground.fleet.hub().client().await?;
    let roles = Api::<ClusterRole>::all(client.clone()).list_metadata(&ListParams::default()).await?.items;
    ensure!(roles.iter().all(|role| !role.name_any().starts_with("odin-hub")), "its rights are there");
    Api::<Secret>::namespaced(client.clone(), NAMESPACE).get("member-1").await.context("the member's credential")?;
    Api::<MemberCluster>::all(client).get("member-1").await.context("the member")?;
    ensure!(ground.lasting().await? == lasting, "uninstalling took or changed something that serves");
    // Nobody looks after it now; what people ask for is done by the next hub.
    ground.space.scale(SERVICE, 4).await?;

    let again = Hub::install(&ground.fleet, &options).await?;
    ground.space.until_ready(SERVICE, 4).await?;
    let now = ground.lasting().await?;
    ensure!(lasting.iter().all(|(name, uid)| now.get(name) == Some(uid)), "before {lasting:?}, after the new install {now:?}");
    ensure!(ground.hub_id().await? == id, "the hub has another id than before");
    ensure!(again.process().is_alive(), "{}", again.process().log_tail(20));
    Ok(())
}

/// A kind as an older chart would have left it stays so through `helm upgrade`, until `odin-hub crds --apply`.
async fn definitions_are_upgraded_by_the_program_alone(ground: &Ground, options: &HubOptions) -> Result<()> {
    let name = "memberclusters.federation.odin.moreh.io";
    let columns = async || -> Result<usize> {
        let definition = ground.definitions.get(name).await?;
        Ok(definition.spec.versions.first().and_then(|version| version.additional_printer_columns.as_ref()).map_or(0, Vec::len))
    };
    let new = columns().await?;
    let older = json!([{"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns/0"}]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(older)?);
    ground.definitions.patch(name, &PatchParams::default(), &patch).await?;
    hub::install(&ground.fleet, options).await?;
    ensure!(columns().await? == new - 1, "Helm changed a kind; say so in the README");
    let mut command = Command::new(PROGRAM);
    command.args(["crds", "--apply", "--kubeconfig"]).arg(ground.fleet.hub().kubeconfig_path());
    let output = command.output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    ensure!(columns().await? == new, "the kind is as it was");
    Ok(())
}
