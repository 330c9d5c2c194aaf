//! What the tests share: one fleet with a hub that runs, and short ways to write and read.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use odin_hub::api::condition::{self, Condition};
use odin_hub::api::odin::{InferenceService, InferenceServiceStatus};
use sandbox::hub::{self, Hub, HubOptions};
use sandbox::{Fleet, eventually};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// A generous bound on whatever a test waits for.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_odin-hub");

/// The fleet that most tests share. A test that breaks a member or the hub takes its own.
pub(crate) struct World {
    pub(crate) fleet: &'static Fleet,
    pub(crate) hub: Hub,
}

/// Starts the shared world at the first call.
pub(crate) async fn world() -> &'static World {
    static WORLD: OnceCell<World> = OnceCell::const_new();
    let start = async || -> Result<World> {
        let fleet = Fleet::shared().await?;
        let options = HubOptions::new(PROGRAM);
        let hub = Hub::install(fleet, &options).await?;
        for member in fleet.members() {
            hub::join(fleet, &member, &options.repository).await?;
        }
        Ok(World { fleet, hub })
    };
    WORLD.get_or_try_init(start).await.expect("the shared fleet starts")
}

/// One namespace of the hub, for one test.
pub(crate) struct Space {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl Space {
    /// Makes the namespace on the hub of `fleet`.
    pub(crate) async fn new(fleet: &Fleet, namespace: &str) -> Result<Self> {
        fleet.hub().apply_yaml(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}")).await?;
        Ok(Self { client: fleet.hub().client().await?, namespace: namespace.to_owned() })
    }

    pub(crate) fn services(&self) -> Api<InferenceService> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Makes or changes a service: its spec as YAML in flow or block form.
    pub(crate) async fn apply(&self, name: &str, spec: &str) -> Result<()> {
        self.apply_object("InferenceService", name, spec).await
    }

    /// Makes or changes an object of one of Odin's namespaced kinds.
    pub(crate) async fn apply_object(&self, kind: &str, name: &str, spec: &str) -> Result<()> {
        let spec: Value = serde_saphyr::from_str(spec).context("spec")?;
        let object = json!({
            "apiVersion": "odin.moreh.io/v1alpha1", "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace}, "spec": spec,
        });
        let options = sandbox::ApplyOptions::default();
        sandbox::apply::apply_values(&self.client, vec![object], &options).await?;
        Ok(())
    }

    pub(crate) async fn status(&self, name: &str) -> Result<InferenceServiceStatus> {
        let service = self.services().get(name).await?;
        service.status.ok_or_else(|| anyhow!("{name} has no status yet"))
    }

    /// Waits until `holds` is content with the status.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&InferenceServiceStatus) -> bool,
    ) -> Result<InferenceServiceStatus> {
        eventually(what, LIMIT, || async {
            let status = self.status(name).await?;
            ensure!(holds(&status), "{}", serde_json::to_string(&status)?);
            Ok(status)
        })
        .await
    }

    /// Waits until the service is ready with so many replicas, for its newest generation.
    pub(crate) async fn until_ready(&self, name: &str, replicas: i32) -> Result<InferenceServiceStatus> {
        let what = format!("{name} is ready with {replicas}");
        eventually(&what, LIMIT, || async {
            let service = self.services().get(name).await?;
            let status = service.status.ok_or_else(|| anyhow!("no status"))?;
            let ready = condition::find(&status.conditions, condition::service::READY);
            ensure!(
                ready.is_some_and(|ready| ready.status == "True" && ready.observed_generation == service.metadata.generation)
                    && status.observed_generation == service.metadata.generation
                    && status.ready_replicas == Some(replicas)
                    && status.replicas == Some(replicas)
                    && status.updated_replicas == Some(replicas),
                "generation {:?}: {}",
                service.metadata.generation,
                serde_json::to_string(&status)?
            );
            Ok(status)
        })
        .await
    }

    /// Changes replicas as `kubectl scale` does.
    pub(crate) async fn scale(&self, name: &str, replicas: i32) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.services().patch_scale(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// The service's Deployment in a member.
    pub(crate) async fn deployment(&self, member: &sandbox::Cluster, name: &str) -> Result<Option<Deployment>> {
        let api: Api<Deployment> = Api::namespaced(member.client().await?, &self.namespace);
        Ok(api.get_opt(name).await?)
    }

    /// The service's pods in a member.
    pub(crate) async fn pods(&self, member: &sandbox::Cluster, name: &str) -> Result<Vec<Pod>> {
        let api: Api<Pod> = Api::namespaced(member.client().await?, &self.namespace);
        let ours = ListParams::default().labels(&format!("mif.moreh.io/inferenceservice={name}"));
        Ok(api.list(&ours).await?.items)
    }
}

/// The condition of this type; a test that asks for one that isn't there fails.
pub(crate) fn condition_of<'a>(status: &'a InferenceServiceStatus, type_: &str) -> &'a Condition {
    condition::find(&status.conditions, type_).unwrap_or_else(|| panic!("no condition {type_} in {:?}", status.conditions))
}

/// Replicas by cluster, as `status.clusters` shows them.
pub(crate) fn clusters(status: &InferenceServiceStatus) -> &str {
    status.clusters.as_deref().unwrap_or_default()
}

/// Spec of a service for MI300X, with so many devices a replica.
pub(crate) fn amd(replicas: i32, devices: i32) -> String {
    format!(
        "{{replicas: {replicas}, rolloutStrategy: {{rollingUpdate: {{maxSurge: 0, maxUnavailable: 1}}}}, template: {{spec: {{nodeSelector: {{moai.moreh.io/accelerator.model: mi300x}}, tolerations: [{{key: amd.com/gpu, operator: Exists}}], containers: [{{name: main, image: registry.example/engine:1, resources: {{limits: {{amd.com/gpu: {devices}}}}}}}]}}}}}}"
    )
}

/// Spec of a service without devices, which any member can hold.
pub(crate) fn plain(replicas: i32, image: &str) -> String {
    format!("{{replicas: {replicas}, template: {{spec: {{containers: [{{name: main, image: \"{image}\"}}]}}}}}}")
}
