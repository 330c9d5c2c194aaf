//! The definitions of our kinds against a real API server: what it takes, what it refuses and in which words.

mod refused;

use std::path::PathBuf;
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Request;
use kube::Client;
use odin_hub::api::schema::pod_template;
use sandbox::{ApplyOptions, Cluster, Fleet, MemberSpec, eventually};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::OnceCell;

const LIMIT: Duration = Duration::from_secs(60);
const NAMESPACE: &str = "crds";

/// Runs `odin-hub crds --apply` on a cluster.
async fn apply(cluster: &Cluster) -> Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_odin-hub"));
    command.args(["crds", "--apply", "--kubeconfig"]).arg(cluster.kubeconfig_path());
    let output = command.output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(output)
}

/// A cluster with our kinds and no hub, which would write into the status of what these tests make.
pub(crate) async fn cluster() -> Result<&'static Cluster> {
    static READY: OnceCell<Arc<Cluster>> = OnceCell::const_new();
    let cluster = READY
        .get_or_try_init(|| async {
            let cluster = Fleet::shared().await?.add_member(MemberSpec::new("without-hub", Vec::new())).await?;
            apply(&cluster).await?;
            cluster.apply_yaml(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAMESPACE}}}}}")).await?;
            anyhow::Ok(cluster)
        })
        .await?;
    Ok(cluster)
}

async fn client() -> Result<Client> {
    cluster().await?.client().await
}

struct Kind {
    name: &'static str,
    path: &'static str,
}

const SERVICE: Kind = Kind { name: "InferenceService", path: "/apis/odin.moreh.io/v1alpha1/namespaces/crds/inferenceservices" };
const TEMPLATE: Kind =
    Kind { name: "InferenceServiceTemplate", path: "/apis/odin.moreh.io/v1alpha1/namespaces/crds/inferenceservicetemplates" };
const CLUSTER_TEMPLATE: Kind =
    Kind { name: "ClusterInferenceServiceTemplate", path: "/apis/odin.moreh.io/v1alpha1/clusterinferenceservicetemplates" };
const BASE: Kind = Kind { name: "RuntimeBase", path: "/apis/odin.moreh.io/v1alpha1/runtimebases" };
const MEMBER: Kind = Kind { name: "MemberCluster", path: "/apis/federation.odin.moreh.io/v1alpha1/memberclusters" };

async fn send(client: &Client, method: &str, path: &str, kind: &str, body: &Value) -> Result<Value, String> {
    let request = Request::builder().method(method).uri(path).header("content-type", kind).body(body.to_string().into_bytes());
    client.request::<Value>(request.map_err(|error| error.to_string())?).await.map_err(|error| match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    })
}

/// What would be stored, or what the API server says against it. Strict, as kubectl asks for by default.
async fn create(client: &Client, kind: &Kind, spec: &Value) -> Result<Value, String> {
    let version = if kind.path.contains("federation") { "federation.odin.moreh.io/v1alpha1" } else { "odin.moreh.io/v1alpha1" };
    let object = json!({"apiVersion": version, "kind": kind.name, "metadata": {"name": "x"}, "spec": spec});
    let path = format!("{}?dryRun=All&fieldValidation=Strict", kind.path);
    let stored = send(client, "POST", &path, "application/json", &object).await?;
    Ok(stored.get("spec").cloned().unwrap_or_default())
}

/// A spec of a table below. Text that is no YAML becomes a string, which no kind takes.
fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| json!(format!("{text}: {error}")))
}

#[tokio::test]
async fn what_is_taken_and_how_it_is_stored() -> Result<()> {
    let client = client().await?;
    // Stored as sent, unless a second text says otherwise.
    let cases: &[(&Kind, &str, Option<&str>)] = &[
        (&SERVICE, "{}", Some("{replicas: 1}")),
        (&SERVICE, "{replicas: 0}", None),
        (&SERVICE, "{replicas: 1000000}", None),
        (&SERVICE, "{replicas: 2, service: {}, templateRefs: [{name: a}, {name: b, group: ''}], rolloutStrategy: {}}", None),
        (&SERVICE, "{replicas: 1, framework: my-engine_1.0, model: {name: org/model}, service: {target: leader}}", None),
        (&SERVICE, "{replicas: 1, parallelism: {tensor: 8, data: 16, dataLocal: 8, dataRPCPort: 13345, expert: true}}", None),
        (&SERVICE, "{replicas: 1, parallelism: {pipeline: 4096}, revisionHistoryLimit: 0}", None),
        (&SERVICE, "{replicas: 1, templateRefs: [{name: a, kind: InferenceServiceTemplate, group: odin.moreh.io}]}", None),
        (&SERVICE, "{replicas: 1, rolloutStrategy: {type: Recreate}}", None),
        (&SERVICE, "{replicas: 1, rolloutStrategy: {rollingUpdate: {maxUnavailable: 100%, maxSurge: 0, partition: 0}}}", None),
        (&SERVICE, "{replicas: 1, rolloutStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 150%}}}", None),
        (&SERVICE, "{inferencePoolRefs: [{}]}", Some("{replicas: 1, inferencePoolRefs: [{name: ''}]}")),
        (&SERVICE, "{replicas: 1, template: {}, workerTemplate: {spec: {nodeSelector: {a: b}}}}", None),
        (
            &SERVICE,
            "{replicas: 1, template: {metadata: {labels: {a: b}, annotations: {c: '{{ .Name }}'}, finalizers: [d], name: e, namespace: f}}}",
            None,
        ),
        (
            &SERVICE,
            "{replicas: 1, template: {spec: {containers: [{name: a, image: '{{ .Spec.Model.Name }}',
              resources: {limits: {amd.com/gpu: 1, nvidia.com/gpu: '8', cpu: '0.5', memory: 1.5Gi}, claims: [{name: c}]},
              readinessProbe: {httpGet: {path: /, port: http}}, livenessProbe: {tcpSocket: {port: 8000}}}],
              initContainers: [{name: b, restartPolicy: Always}], resourceClaims: [{name: c, resourceClaimTemplateName: d}],
              volumes: [{name: v, image: {reference: w}}]}}}",
            None,
        ),
        (
            &SERVICE,
            "{template: {spec: {containers: [{name: a, ports: [{containerPort: 53, protocol: UDP}, {containerPort: 53}]}]}}}",
            Some(
                "{replicas: 1, template: {spec: {containers: [{name: a, ports:
                  [{containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: TCP}]}]}}}",
            ),
        ),
        // A null erases nothing: it is gone before it is stored.
        (
            &SERVICE,
            "{framework: null, template: {spec: {nodeSelector: {a: null}, containers: null, priority: null}}}",
            Some("{replicas: 1, template: {spec: {nodeSelector: {}}}}"),
        ),
        (&TEMPLATE, "{}", None),
        (&TEMPLATE, "{framework: vllm, runtimeBaseRef: {name: b}, service: {}, template: {spec: {}}, workerTemplate: {}}", None),
        (&CLUSTER_TEMPLATE, "{parallelism: {data: 4}, runtimeBaseRef: {name: b}}", None),
        (&BASE, "{framework: sglang, template: {spec: {containers: [{name: main}]}}}", None),
        (&MEMBER, "{secretRef: {name: a}}", None),
        (
            &MEMBER,
            "{secretRef: {name: a, key: value}, namespaceSelector: {matchExpressions: [{key: team, operator: In, values: [a, b]}]},
              taints: [{key: maintenance, effect: NoSchedule}, {key: maintenance, value: soon, effect: NoExecute}], suspend: true,
              ignoreResourceQuota: false, extendedResourceToleration: true, requestLimits: {qps: 1, burst: 100000, maxInFlight: 64}}",
            None,
        ),
    ];
    for (kind, spec, stored) in cases {
        let got = create(&client, kind, &yaml(spec)).await;
        assert_eq!(got, Ok(yaml(stored.unwrap_or(spec))), "{} {spec}", kind.name);
    }
    Ok(())
}

/// One row of `kubectl get -o wide`: header and cell of each column.
async fn row(client: &Client, path: &str) -> Result<Vec<(String, String)>> {
    let request = Request::get(path).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io").body(Vec::new())?;
    let table = client.request::<Value>(request).await?;
    let columns = table.pointer("/columnDefinitions").and_then(Value::as_array).context("columns")?;
    let cells = table.pointer("/rows/0/cells").and_then(Value::as_array).context("cells")?;
    let text = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), ToOwned::to_owned);
    Ok(columns.iter().zip(cells).map(|(column, cell)| (column.get("name").map(text).unwrap_or_default(), text(cell))).collect())
}

fn pairs<'a>(row: &'a [(String, String)], but: &str) -> Vec<(&'a str, &'a str)> {
    row.iter().filter(|(name, _)| name != but).map(|(name, cell)| (name.as_str(), cell.as_str())).collect()
}

#[tokio::test]
async fn columns_scale_and_what_status_keeps() -> Result<()> {
    let client = client().await?;
    let name = "shown";
    cluster().await?.apply_yaml(&format!(
        "{{apiVersion: odin.moreh.io/v1alpha1, kind: InferenceService, metadata: {{name: {name}, namespace: {NAMESPACE}}}, spec: {{replicas: 2}}}}
---
{{apiVersion: federation.odin.moreh.io/v1alpha1, kind: MemberCluster, metadata: {{name: {name}}}, spec: {{secretRef: {{name: none}}, suspend: true}}}}"
    ))
    .await?;
    let ready = |reason: &str| json!([{"type": "Ready", "status": "False", "reason": reason, "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z"}]);
    let workload_conditions = json!([{"type": "Available", "status": "False", "reason": "", "lastUpdateTime": "2030-01-01T00:00:00Z"}]);
    let status = json!({"status": {
        "conditions": ready("Starting"), "replicas": 2, "readyReplicas": 1, "updatedReplicas": 2, "observedGeneration": 1,
        "hpaPodSelector": "mif.moreh.io/inferenceservice=shown", "clusters": "gpu-a:2", "unplacedReplicas": 0,
        "renderedSpec": {"model": {"name": "m"}, "template": {"spec": {"newer": [1.5, null]}}},
        "workload": {"kind": "Deployment", "name": name, "cluster": "gpu-a", "conditions": workload_conditions},
        "placements": [{"cluster": "gpu-a", "replicas": 2, "phase": "Applied"}],
        "rejectionSummary": {"InsufficientRoom": 1},
    }});
    let path = format!("{}/{name}", SERVICE.path);
    let merge = "application/merge-patch+json";
    let kept =
        send(&client, "PATCH", &format!("{path}/status?fieldValidation=Strict"), merge, &status).await.map_err(anyhow::Error::msg)?;
    assert_eq!(kept["status"]["workload"]["conditions"], workload_conditions, "the child's conditions are kept as they are");
    assert_eq!(kept["status"]["renderedSpec"]["template"]["spec"]["newer"][0], json!(1.5), "the rendered spec is kept as it is");
    let twice = json!({"status": {"placements": [{"cluster": "a", "replicas": 1, "phase": "Ready"}, {"cluster": "a", "replicas": 1, "phase": "Ready"}]}});
    let refused = send(&client, "PATCH", &format!("{path}/status"), merge, &twice).await.unwrap_err();
    assert!(refused.ends_with("status.placements[1]: Duplicate value: {\"cluster\":\"a\"}"), "{refused}");

    let shown = row(&client, &path).await?;
    assert_eq!(
        pairs(&shown, "Age"),
        [
            ("Name", name),
            ("Ready", "False"),
            ("Desired", "2"),
            ("Up-to-date", "2"),
            ("Serving", "1"),
            ("Clusters", "gpu-a:2"),
            ("Reason", "Starting"),
            ("Workload", "Deployment"),
            ("Model", "m"),
            ("Unplaced", "0"),
        ]
    );

    let scale = format!("{path}/scale");
    let scaled = send(&client, "PATCH", &scale, merge, &json!({"spec": {"replicas": 3}})).await.map_err(anyhow::Error::msg)?;
    assert_eq!(scaled["status"], json!({"replicas": 2, "selector": "mif.moreh.io/inferenceservice=shown"}));
    let service = client.request::<Value>(Request::get(&path).body(Vec::new())?).await?;
    assert_eq!(service["spec"], json!({"replicas": 3}));
    let refused = send(&client, "PATCH", &scale, merge, &json!({"spec": {"replicas": -1}})).await.unwrap_err();
    assert!(refused.contains("spec.replicas"), "{refused}");

    let member = format!("{}/{name}", MEMBER.path);
    let status = json!({"status": {
        "conditions": ready("Suspended"), "kubernetesVersion": "v1.36.3", "acceleratorSummary": "24/64 mi300x", "services": 2,
        "leaderWorkerSetVersion": "v1", "credential": {"type": "token", "expiresIn": "364d"},
    }});
    send(&client, "PATCH", &format!("{member}/status?fieldValidation=Strict"), merge, &status).await.map_err(anyhow::Error::msg)?;
    let shown = row(&client, &member).await?;
    assert_eq!(
        pairs(&shown, "Age"),
        [
            ("Name", name),
            ("Ready", "False"),
            ("Version", "v1.36.3"),
            ("Accelerators", "24/64 mi300x"),
            ("Services", "2"),
            ("LWS", "v1"),
            ("Reason", "Suspended"),
            ("Credential", "364d"),
        ]
    );
    for path in [&path, &member] {
        send(&client, "DELETE", path, "application/json", &json!({})).await.map_err(anyhow::Error::msg)?;
    }
    Ok(())
}

/// Two people write one object by server-side apply: lists with keys are merged, and a change of the other's value is told.
#[tokio::test]
async fn writers_of_one_object_share_its_lists() -> Result<()> {
    let cluster = cluster().await?;
    let write = async |manager: &str, containers: &str| {
        let text = format!(
            "{{apiVersion: odin.moreh.io/v1alpha1, kind: InferenceServiceTemplate, metadata: {{name: shared, namespace: {NAMESPACE}}},
               spec: {{template: {{spec: {{containers: {containers}}}}}}}}}"
        );
        cluster.apply_yaml_with(&text, &ApplyOptions { manager: manager.to_owned(), force: false, ..ApplyOptions::default() }).await
    };
    write("alice", "[{name: main, env: [{name: A, value: a}, {name: B, value: b}], ports: [{containerPort: 8000}]}]").await?;
    let kept = write("bob", "[{name: sidecar}, {name: main, env: [{name: C, value: c}], ports: [{containerPort: 8000}]}]").await?;
    let containers = &kept.first().context("one object")?.data["spec"]["template"]["spec"]["containers"];
    let main = containers.as_array().context("a list")?.iter().find(|container| container["name"] == "main").context("main")?;
    let names: Vec<&str> = main["env"].as_array().context("a list")?.iter().filter_map(|entry| entry["name"].as_str()).collect();
    assert_eq!(names, ["A", "B", "C"]);
    let lengths = [containers, &main["ports"]].map(|list| list.as_array().map(Vec::len));
    assert_eq!(lengths, [Some(2), Some(1)], "both containers, and one port that both own");
    let conflict = write("carol", "[{name: main, env: [{name: A, value: other}]}]").await.unwrap_err();
    let conflict = conflict.status().context("refused")?.message.clone();
    assert!(conflict.contains("alice") && conflict.contains("env[name=\"A\"].value"), "{conflict}");
    Ok(())
}

#[tokio::test]
async fn applying_again_changes_nothing() -> Result<()> {
    let cluster = cluster().await?;
    eventually("all definitions are as they were", LIMIT, async || {
        let output = String::from_utf8(apply(cluster).await?.stdout)?;
        let lines: Vec<&str> = output.lines().collect();
        ensure!(lines.len() == 5 && lines.iter().all(|line| line.ends_with(" unchanged")), "{output}");
        Ok(())
    })
    .await
}

/// The folder of the public preset library, if it is there.
fn presets() -> Option<PathBuf> {
    let folder = std::env::var_os("ODIN_PRESETS_DIR").map_or_else(|| sandbox::hub::repository().join("../shared/presets"), PathBuf::from);
    let there = folder.is_dir();
    if !there {
        println!("skipped: the preset library is not in {}; set ODIN_PRESETS_DIR", folder.display());
    }
    there.then_some(folder)
}

#[tokio::test]
async fn every_preset_is_accepted_in_strict_mode() -> Result<()> {
    let Some(folder) = presets() else { return Ok(()) };
    let client = client().await?;
    cluster().await?.apply_yaml("{apiVersion: v1, kind: Namespace, metadata: {name: mif}}").await?;
    let mut files = Vec::new();
    for group in std::fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?.into_iter().filter(|entry| entry.path().is_dir()) {
        for file in std::fs::read_dir(group.path())? {
            files.push(file?.path());
        }
    }
    ensure!(files.len() > 100, "{} holds only {} presets", folder.display(), files.len());
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let options = ApplyOptions { dry_run: true, ..ApplyOptions::default() };
        sandbox::apply::apply_yaml(&client, &text, &options).await.with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// The checked-in schema may know more than the running API server, but not less.
#[tokio::test]
async fn every_field_of_the_servers_pod_template_is_known() -> Result<()> {
    let client = client().await?;
    let document = client.request::<Value>(Request::get("/openapi/v3/api/v1").body(Vec::new())?).await?;
    let theirs = pod_template::from_openapi(&document)?;
    let crd = odin_hub::api::schema::crds()?.into_iter().next().context("a definition")?;
    let ours = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["template"];
    let mut missing = Vec::new();
    subset("pod", &theirs, ours, &mut missing);
    assert!(missing.is_empty(), "renew src/api/odin/pod_template.schema.json, it lacks: {missing:?}");
    Ok(())
}

fn subset(path: &str, theirs: &Value, ours: &Value, missing: &mut Vec<String>) {
    for (name, field) in theirs.get("properties").and_then(Value::as_object).into_iter().flatten() {
        match ours.get("properties").and_then(|fields| fields.get(name)) {
            Some(known) => subset(&format!("{path}.{name}"), field, known, missing),
            None => missing.push(format!("{path}.{name}")),
        }
    }
    for inner in ["items", "additionalProperties"] {
        match (theirs.get(inner).filter(|theirs| theirs.is_object()), ours.get(inner)) {
            (Some(theirs), Some(ours)) => subset(path, theirs, ours, missing),
            (Some(_), None) => missing.push(format!("{path}: {inner}")),
            (None, _) => {}
        }
    }
}
