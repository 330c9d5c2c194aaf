//! What is told of a service that isn't well: each kind of trouble, for Deployments and for `LeaderWorkerSets`, which say
//! nothing of it themselves.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use futures::future::{LocalBoxFuture, join_all};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use odin_hub::api::condition::service::READY;
use odin_hub::api::labels::APP_INSTANCE;
use odin_hub::api::odin::InferenceServiceStatus;
use sandbox::{Cluster, eventually};
use serde_json::{Value, json};

use self::Part::{Group, Leader, Single, Worker};
use crate::world::{LIMIT, Space, World, condition_of, world};

/// The member that holds all of it: nodes of this kind are there alone.
const MEMBER: &str = "member-1";
/// What the member's policy says of an image that it doesn't take.
const UNSIGNED: &str = "images must be signed";

/// Where the trouble is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The pods of a Deployment.
    Single,
    /// The leader of a group.
    Leader,
    /// The worker of a group.
    Worker,
    /// A `LeaderWorkerSet` as a whole.
    Group,
}

impl Part {
    /// The template that its pods are made from.
    fn template(self) -> &'static str {
        if self == Worker { "workerTemplate" } else { "template" }
    }

    fn workload(self) -> &'static str {
        if self == Single { "Deployment" } else { "LeaderWorkerSet" }
    }

    /// A service of one replica that runs on any node of the member and needs no device.
    fn spec(self) -> Value {
        let pod = json!({"metadata": {}, "spec": {
            "nodeSelector": {"moai.moreh.io/accelerator.model": "mi300x"},
            "tolerations": [{"key": "amd.com/gpu", "operator": "Exists"}],
            "containers": [{"name": "main", "image": "registry.example/engine:1"}, {"name": "proxy", "image": "registry.example/proxy:1"}],
        }});
        match self {
            Single => json!({"replicas": 1, "template": pod}),
            _ => json!({"replicas": 1, "parallelism": {"pipeline": 2}, "template": pod, "workerTemplate": pod}),
        }
    }

    /// Whether a pod of a service is one of its.
    fn owns(self, service: &str, pod: &Pod) -> bool {
        match self {
            Single | Group => true,
            Leader => pod.name_any() == format!("{service}-0"),
            Worker => pod.name_any() == format!("{service}-0-1"),
        }
    }
}

/// What the diagnostic has to be.
struct Told {
    /// The reason, or one of two words for the same.
    reasons: &'static [&'static str],
    /// Kind of the object.
    kind: &'static str,
    container: Option<&'static str>,
    /// Parts of the message; `{template}` is the template with the trouble.
    words: &'static [&'static str],
}

/// A trouble that an edit of the service makes, and the next edit mends.
struct Row {
    name: &'static str,
    part: Part,
    /// Breaks a spec; the pod template with the trouble is under the key.
    edit: fn(&mut Value, &str),
    told: Told,
}

/// What the hub refuses, for a service that runs.
fn refused(
    name: &'static str,
    part: Part,
    edit: fn(&mut Value, &str),
    reason: &'static [&'static str],
    words: &'static [&'static str],
) -> Row {
    Row { name, part, edit, told: Told { reasons: reason, kind: "InferenceService", container: None, words } }
}

/// What goes wrong in a pod.
fn in_pod(
    name: &'static str,
    part: Part,
    edit: fn(&mut Value, &str),
    reasons: &'static [&'static str],
    container: Option<&'static str>,
    words: &'static [&'static str],
) -> Row {
    Row { name, part, edit, told: Told { reasons, kind: "Pod", container, words } }
}

fn fail(spec: &mut Value, template: &str, how: &str) {
    spec[template]["metadata"]["annotations"] = json!({"sim.odin-hub/fail": how, "sim.odin-hub/container": "proxy"});
}

fn no_template(spec: &mut Value, _: &str) {
    spec["templateRefs"] = json!([{"name": "nowhere"}]);
}

fn no_such_field(spec: &mut Value, template: &str) {
    spec[template]["spec"]["containers"][0]["args"] = json!(["{{ deref .Spec \"Model\" \"Name\" }}"]);
}

fn reserved_label(spec: &mut Value, template: &str) {
    spec[template]["metadata"]["labels"] = json!({"pod-template-hash": "mine"});
}

fn hub_label(spec: &mut Value, template: &str) {
    spec[template]["metadata"]["annotations"] = json!({"federation.odin.moreh.io/source": "elsewhere"});
}

fn host_network(spec: &mut Value, template: &str) {
    spec[template]["spec"]["hostNetwork"] = json!(true);
}

fn unsigned(spec: &mut Value, template: &str) {
    spec[template]["spec"]["containers"][0]["image"] = json!("registry.example/engine:unsigned");
}

fn no_image(spec: &mut Value, template: &str) {
    spec[template]["spec"]["containers"][1]["image"] = json!("sim.invalid/missing:1");
}

fn gated(spec: &mut Value, template: &str) {
    spec[template]["spec"]["schedulingGates"] = json!([{"name": "example.com/hold"}]);
}

fn rows() -> Vec<Row> {
    let denied = |name, part: Part| {
        let told = Told {
            reasons: &["ApplyDenied"],
            kind: part.workload(),
            container: None,
            words: &["ValidatingAdmissionPolicy 'diagnosis' with binding 'diagnosis' denied request: images must be signed"],
        };
        Row { name, part, edit: unsigned, told }
    };
    let gates = &["gates are removed: example.com/hold"];
    let image = &["container proxy", "sim.invalid/missing:1", "not found"];
    let pulls = &["ImagePullBackOff", "ErrImagePull"];
    let mut rows = vec![
        refused("template-single", Single, no_template, &["TemplateNotFound"], &["nowhere"]),
        refused("template-group", Group, no_template, &["TemplateNotFound"], &["nowhere"]),
        refused("render-single", Single, no_such_field, &["RenderFailed"], &["{template}", "containers[main].args[0]", "Model"]),
        refused("render-worker", Worker, no_such_field, &["RenderFailed"], &["{template}", "containers[main].args[0]", "Model"]),
        refused("reserved-single", Single, reserved_label, &["InvalidRendered"], &["{template}", "pod-template-hash"]),
        refused("reserved-worker", Worker, hub_label, &["InvalidRendered"], &["{template}", "federation.odin.moreh.io/source"]),
        refused("policy-single", Single, host_network, &["PodNotAllowed"], &["spec.{template}.spec.hostNetwork is true"]),
        refused("policy-worker", Worker, host_network, &["PodNotAllowed"], &["spec.{template}.spec.hostNetwork is true"]),
        denied("denied-single", Single),
        denied("denied-worker", Worker),
        in_pod("image-single", Single, no_image, pulls, Some("proxy"), image),
        in_pod("image-leader", Leader, no_image, pulls, Some("proxy"), image),
        in_pod("image-worker", Worker, no_image, pulls, Some("proxy"), image),
        in_pod("gated-single", Single, gated, &["SchedulingGated"], None, gates),
        in_pod("gated-leader", Leader, gated, &["SchedulingGated"], None, gates),
        in_pod("gated-worker", Worker, gated, &["SchedulingGated"], None, gates),
    ];
    let mut fails = |names: [&'static str; 3], edit, reason: &'static [&'static str], words: &'static [&'static str]| {
        rows.extend(
            names.into_iter().zip([Single, Leader, Worker]).map(|(name, part)| in_pod(name, part, edit, reason, Some("proxy"), words)),
        );
    };
    let config: &[&str] = &["container proxy can't be configured: secret \"missing\" not found"];
    let reason = &["CreateContainerConfigError"];
    fails(["config-single", "config-leader", "config-worker"], |s, t| fail(s, t, "config"), reason, config);
    let crash = &["container proxy ends again and again (exit code 1"];
    fails(["crash-single", "crash-leader", "crash-worker"], |s, t| fail(s, t, "crash"), &["CrashLoopBackOff"], crash);
    let oom = &["container proxy used more memory than its limit and was killed (exit code 137"];
    fails(["oom-single", "oom-leader", "oom-worker"], |s, t| fail(s, t, "oom"), &["OOMKilled"], oom);
    rows
}

/// Where the rows are tried.
struct Ground {
    world: &'static World,
    space: Space,
    member: Arc<Cluster>,
}

impl Ground {
    async fn new(namespace: &str) -> Result<Self> {
        let world = world().await;
        Ok(Self { world, space: Space::new(world.fleet, namespace).await?, member: world.fleet.member(MEMBER)? })
    }

    async fn apply(&self, name: &str, spec: &Value) -> Result<()> {
        self.space.apply(name, &spec.to_string()).await
    }

    /// All pods of a service in the member.
    async fn pods(&self, name: &str) -> Result<Vec<Pod>> {
        let api: Api<Pod> = Api::namespaced(self.member.client().await?, &self.space.namespace);
        Ok(api.list(&ListParams::default().labels(&format!("{APP_INSTANCE}={name}"))).await?.items)
    }

    /// Deletes the pods of a part that have a node.
    async fn evict(&self, name: &str, part: Part) -> Result<()> {
        let api: Api<Pod> = Api::namespaced(self.member.client().await?, &self.space.namespace);
        for pod in self.pods(name).await? {
            let runs = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()) && pod.metadata.deletion_timestamp.is_none();
            if runs && part.owns(name, &pod) {
                // Another may have been faster.
                api.delete(&pod.name_any(), &DeleteParams::default()).await.map(drop).or_else(gone)?;
            }
        }
        Ok(())
    }

    /// Waits until the service tells of this trouble. `again` is done before each look.
    async fn until_told(&self, name: &str, part: Part, told: &Told, again: impl AsyncFn() -> Result<()>) -> Result<InferenceServiceStatus> {
        let begin = Timestamp::now();
        eventually(&format!("{name} tells of {:?}", told.reasons), LIMIT, async || {
            again().await?;
            let status = self.space.status(name).await?;
            self.check(name, part, told, &status, begin).with_context(|| serde_json::to_string(&status).unwrap_or_default())?;
            Ok(status)
        })
        .await
    }

    fn check(&self, name: &str, part: Part, told: &Told, status: &InferenceServiceStatus, begin: Timestamp) -> Result<()> {
        let workload = status.workload.as_ref().context("no workload")?;
        ensure!(workload.kind.as_str() == part.workload() && workload.cluster.as_deref() == Some(MEMBER), "another workload");
        let found = workload.diagnostic.as_ref().context("no diagnostic")?;
        ensure!(told.reasons.contains(&found.reason.as_str()), "another reason");
        let object = &found.involved_object;
        ensure!(object.kind == told.kind && object.namespace.as_ref() == Some(&self.space.namespace), "another object");
        ensure!(found.container.as_deref() == told.container, "another container");
        for word in told.words {
            let word = word.replace("{template}", part.template());
            ensure!(found.message.contains(&word), "{word:?} isn't told");
        }
        if found.reason == "Unplaced" || told.kind != "InferenceService" {
            let prefix = format!("{MEMBER}/{}: ", object.name);
            ensure!(found.cluster.as_deref() == Some(MEMBER) && found.message.starts_with(&prefix), "another place");
        } else {
            ensure!(found.cluster.is_none(), "it is no member's trouble");
        }
        ensure!(object.name.starts_with(name), "an object of another service");
        ensure!(found.message.ends_with(" (1 group affected)"), "another number of groups");
        // The API keeps whole seconds.
        let at = found.observed_at.0;
        ensure!(
            at >= begin - SignedDuration::from_secs(2) && at <= Timestamp::now(),
            "it happened at another time: {at}, not after {begin}"
        );
        let ready = condition_of(status, READY);
        ensure!(ready.status == "False" && ready.reason == found.reason && ready.message == found.message, "Ready tells of something else");
        Ok(())
    }

    /// Waits until the service is well, and says nothing of what was.
    async fn until_well(&self, name: &str, replicas: i32) -> Result<InferenceServiceStatus> {
        let status = self.space.until_ready(name, replicas).await?;
        let workload = status.workload.as_ref().context("no workload")?;
        ensure!(workload.diagnostic.is_none(), "{name}: {workload:?}");
        Ok(status)
    }

    /// UIDs of the service's pods, sorted.
    async fn uids(&self, name: &str) -> Result<Vec<String>> {
        let mut uids: Vec<String> = self.pods(name).await?.iter().filter_map(ResourceExt::uid).collect();
        uids.sort();
        Ok(uids)
    }

    async fn row(&self, row: &Row) -> Result<()> {
        let Row { name, part, edit, told } = row;
        let well = part.spec();
        let mut ill = well.clone();
        edit(&mut ill, part.template());
        if told.kind == "Pod" {
            self.apply(name, &ill).await?;
            self.until_told(name, *part, told, async || Ok(())).await?;
        } else {
            // What is refused changes nothing of what runs.
            self.apply(name, &well).await?;
            self.until_well(name, 1).await?;
            let before = self.uids(name).await?;
            self.apply(name, &ill).await?;
            let status = self.until_told(name, *part, told, async || Ok(())).await?;
            ensure!(status.ready_replicas == Some(1) && self.uids(name).await? == before, "{name}: what ran doesn't: {status:?}");
        }
        self.apply(name, &well).await?;
        self.until_well(name, 1).await?;
        Ok(())
    }

    /// The nodes that a label lets pods on are gone, and the pod has to go there anew.
    async fn unschedulable(&self, name: &str, part: Part) -> Result<()> {
        let (node, label) = ("amd-7", format!("diagnosis.example/{name}"));
        self.member.label_node(node, &label, Some("here")).await?;
        let mut spec = part.spec();
        spec[part.template()]["spec"]["nodeSelector"][&label] = json!("here");
        self.apply(name, &spec).await?;
        self.until_well(name, 1).await?;
        self.member.label_node(node, &label, None).await?;
        let words = &["nodes are available: ", "node(s) didn't match Pod's node affinity/selector"];
        let told = Told { reasons: &["Unschedulable"], kind: "Pod", container: None, words };
        self.until_told(name, part, &told, async || self.evict(name, part).await).await?;
        self.member.label_node(node, &label, Some("here")).await?;
        self.until_well(name, 1).await?;
        self.member.label_node(node, &label, None).await
    }

    /// One node holds one group, until there is another node.
    async fn unplaced(&self, name: &str, part: Part, nodes: [&str; 2]) -> Result<()> {
        let label = format!("diagnosis.example/{name}");
        self.member.label_node(nodes[0], &label, Some("here")).await?;
        let mut spec = part.spec();
        spec["template"]["spec"]["nodeSelector"][&label] = json!("here");
        // More than half of a node.
        spec["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "97"}});
        self.apply(name, &spec).await?;
        self.until_well(name, 1).await?;
        spec["replicas"] = json!(2);
        self.apply(name, &spec).await?;
        let words: &[_] =
            if part == Single { &["InsufficientRoom: ", "97 free cpu", "1 of 2 replicas fit"] } else { &["97 cpu", "1 of 2 groups fit"] };
        let told = Told { reasons: &["Unplaced"], kind: "InferenceService", container: None, words };
        let status = self.until_told(name, part, &told, async || Ok(())).await?;
        ensure!(status.ready_replicas == Some(1) && status.unplaced_replicas == Some(1), "{status:?}");
        self.member.label_node(nodes[1], &label, Some("here")).await?;
        self.until_well(name, 2).await?;
        self.space.services().delete(name, &DeleteParams::default()).await?;
        for node in nodes {
            self.member.label_node(node, &label, None).await?;
        }
        Ok(())
    }

    /// A quota that comes after the decision and admits so many pods.
    async fn quota(&self, name: &str, part: Part, pods: u32, told: &Told) -> Result<()> {
        self.apply(name, &part.spec()).await?;
        self.until_well(name, 1).await?;
        let namespace = &self.space.namespace;
        let quota = format!(
            "{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: too-few, namespace: {namespace}}}, spec: {{hard: {{pods: '{pods}'}}}}}}"
        );
        self.member.apply_yaml(&quota).await?;
        self.until_told(name, part, told, async || self.evict(name, part).await).await?;
        let quotas: Api<ResourceQuota> = Api::namespaced(self.member.client().await?, namespace);
        quotas.delete("too-few", &DeleteParams::default()).await?;
        self.until_well(name, 1).await?;
        Ok(())
    }

    /// A policy of the member that refuses an image in one namespace; it is in force when this returns.
    async fn policy(&self) -> Result<()> {
        let namespace = &self.space.namespace;
        self.member
            .apply_yaml(&format!(
                "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: diagnosis}}
spec:
  matchConstraints:
    namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}
    resourceRules:
      - {{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE, UPDATE]}}
      - {{apiGroups: [leaderworkerset.x-k8s.io], apiVersions: [v1], resources: [leaderworkersets], operations: [CREATE, UPDATE]}}
  variables:
    - {{name: pod, expression: 'has(object.spec.template) ? object.spec.template : object.spec.leaderWorkerTemplate.workerTemplate'}}
  validations:
    - {{expression: \"!variables.pod.spec.containers.exists(c, c.image.endsWith(':unsigned'))\", message: {UNSIGNED}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: diagnosis}}
spec: {{policyName: diagnosis, validationActions: [Deny]}}
"
            ))
            .await?;
        let unsigned = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "probe"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "registry.example/engine:unsigned"}]},
            }},
        });
        let unsigned: Deployment = serde_json::from_value(unsigned)?;
        let params = kube::api::PostParams { dry_run: true, ..Default::default() };
        let api: Api<Deployment> = Api::namespaced(self.member.client().await?, namespace);
        eventually("the policy is in force", LIMIT, async || {
            let answer = api.create(&params, &unsigned).await;
            ensure!(answer.as_ref().is_err_and(|error| error.to_string().contains(UNSIGNED)), "{answer:?}");
            Ok(())
        })
        .await
    }
}

fn gone(error: kube::Error) -> Result<()> {
    match error {
        kube::Error::Api(status) if status.is_not_found() => Ok(()),
        error => Err(error.into()),
    }
}

#[tokio::test]
async fn each_trouble_is_told_with_its_cause_and_forgotten_when_it_is_mended() -> Result<()> {
    let ground = Ground::new("diagnosis").await?;
    // The hub makes the namespace there.
    ground.apply("first", &Single.spec()).await?;
    ground.until_well("first", 1).await?;
    ground.policy().await?;

    let rows = rows();
    let mut tries: Vec<(String, LocalBoxFuture<'_, Result<()>>)> = Vec::new();
    for row in &rows {
        tries.push((row.name.to_owned(), Box::pin(ground.row(row))));
    }
    for (name, part) in [("room-single", Single), ("room-leader", Leader), ("room-worker", Worker)] {
        tries.push((name.to_owned(), Box::pin(ground.unschedulable(name, part))));
    }
    for (name, part, nodes) in [("place-single", Single, ["amd-0", "amd-1"]), ("place-group", Group, ["amd-2", "amd-3"])] {
        tries.push((name.to_owned(), Box::pin(ground.unplaced(name, part, nodes))));
    }
    for (namespace, part, pods, kind) in [
        ("diagnosis-quota-single", Single, 0, "Deployment"),
        ("diagnosis-quota-leader", Leader, 0, "StatefulSet"),
        ("diagnosis-quota-worker", Worker, 1, "StatefulSet"),
    ] {
        let quota = async move {
            let words = &["is forbidden: exceeded quota: too-few, requested: pods=1"];
            let told = Told { reasons: &["FailedCreate"], kind, container: None, words };
            Ground::new(namespace).await?.quota("chat", part, pods, &told).await
        };
        tries.push((namespace.to_owned(), Box::pin(quota)));
    }
    let results = join_all(tries.into_iter().map(async |(name, row)| (name, row.await))).await;
    let failed: Vec<String> = results.into_iter().filter_map(|(name, result)| Some(format!("{name}: {:#}", result.err()?))).collect();
    ensure!(failed.is_empty(), "{}", failed.join("\n\n"));
    ensure!(!std::fs::read_to_string(ground.world.hub.process().log_path())?.contains("panicked"), "the hub panicked");
    Ok(())
}
