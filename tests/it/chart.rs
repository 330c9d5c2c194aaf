//! The chart: how it renders, which values it takes, what its rights are, and how a release lives.

mod life;
mod rights;
mod values;

use std::collections::BTreeSet;
use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use sandbox::Helm;
use sandbox::apply::documents;
use sandbox::hub::repository;
use sandbox::programs::Programs;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::PROGRAM;

/// Helm without a cluster, and what it needs for one test.
struct Offline {
    helm: Helm,
    folder: TempDir,
}

impl Offline {
    async fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let programs = tokio::task::spawn_blocking(Programs::ensure).await??;
        Ok(Self { helm: Helm::new(&programs, folder.path(), None), folder })
    }

    /// Runs `helm COMMAND… CHART` with these values.
    async fn run(&self, command: &[&str], values: &Value) -> Result<String> {
        let file = tempfile::Builder::new().suffix(".json").tempfile_in(self.folder.path())?;
        std::fs::write(file.path(), values.to_string())?;
        let chart = repository().join("charts/odin-hub");
        let args = command.iter().map(AsRef::as_ref).chain([chart.as_os_str(), "--values".as_ref(), file.path().as_os_str()]);
        self.helm.run(args).await
    }

    /// The objects of a release.
    async fn template(&self, release: &str, namespace: &str, values: &Value) -> Result<Vec<Value>> {
        let text = self.run(&["template", release, "--namespace", namespace], values).await?;
        Ok(documents(&text)?)
    }
}

/// Values that differ from every default.
fn full() -> Value {
    json!({
        "nameOverride": "other",
        "image": {"repository": "registry.example/hub", "tag": "1.2.3", "digest": format!("sha256:{}", "0a".repeat(32)), "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "pull"}],
        "serviceAccount": {"name": "account", "annotations": {"cloud.example/role": "hub"}},
        "systemNamespace": "shared",
        "hubId": "hub-1",
        "protectedNamespaces": ["kube-*", "infra"],
        "allowSelf": true,
        "logFormat": "json",
        "logLevel": "debug",
        "metrics": {
            "port": 9090,
            "service": {"annotations": {"prometheus.io/scrape": "false", "team": "a"}},
            "serviceMonitor": {"enabled": true, "interval": "1m", "labels": {"release": "prometheus"}},
        },
        "resources": {"requests": {"cpu": 1}, "limits": {"memory": "2Gi"}},
        "podAnnotations": {"note": "x"},
        "podLabels": {"team": "a", "app.kubernetes.io/name": "stolen"},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "infra", "operator": "Exists"}]}
        ]}}},
        "priorityClassName": "system-cluster-critical",
    })
}

/// The one object of this kind.
fn one<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let found: Vec<&Value> = objects.iter().filter(|object| object["kind"] == kind).collect();
    let [object] = found.as_slice() else { panic!("{} objects of kind {kind}", found.len()) };
    object
}

fn container(objects: &[Value]) -> &Value {
    &one(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter_map(Value::as_str).collect()
}

/// Whether every pair of `selector` is in `labels`, and there is one at all.
fn selects(selector: &Value, labels: &Value) -> bool {
    selector.as_object().is_some_and(|pairs| !pairs.is_empty() && pairs.iter().all(|(key, value)| labels.get(key) == Some(value)))
}

#[tokio::test]
async fn helms_own_check_finds_nothing() -> Result<()> {
    let offline = Offline::new().await?;
    for values in [json!({}), full()] {
        offline.run(&["lint", "--strict"], &values).await?;
    }
    Ok(())
}

#[tokio::test]
async fn names_follow_the_release_and_what_overrides_it() -> Result<()> {
    let offline = Offline::new().await?;
    let long = "a-release-whose-name-is-as-long-as-helm-lets-it-be-xx";
    ensure!(long.len() == 53, "{}", long.len());
    for (release, values, wanted) in [
        ("odin-hub", json!({}), "odin-hub"),
        ("prod", json!({}), "prod-odin-hub"),
        ("my-odin-hub-2", json!({}), "my-odin-hub-2"),
        ("prod", json!({"nameOverride": "hub"}), "prod-hub"),
        ("prod", json!({"fullnameOverride": "just-this"}), "just-this"),
        (long, json!({}), "a-release-whose-name-is-as-long-as-helm-lets-it"),
    ] {
        let objects = offline.template(release, "team-hub", &values).await?;
        ensure!(one(&objects, "Deployment")["metadata"]["name"] == wanted, "{release} {values}");
        for object in &objects {
            let metadata = &object["metadata"];
            let name = metadata["name"].as_str().context("a name")?;
            ensure!(name == wanted || name.starts_with(&format!("{wanted}-")), "{release} {values}: {} {name}", object["kind"]);
            ensure!(name.len() <= 63, "{name} is too long");
            let wide = object["kind"].as_str().is_some_and(|kind| kind.starts_with("Cluster"));
            ensure!(metadata["namespace"] == if wide { Value::Null } else { json!("team-hub") }, "{object}");
            ensure!(metadata["labels"]["app.kubernetes.io/instance"] == release, "{object}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_one_object_says_of_another_is_so() -> Result<()> {
    let offline = Offline::new().await?;
    for values in [json!({}), full(), json!({"serviceAccount": {"create": false, "name": "theirs"}})] {
        let objects = offline.template("prod", "team-hub", &values).await?;
        let named = |kind: &Value, name: &Value| objects.iter().any(|o| o["kind"] == *kind && o["metadata"]["name"] == *name);
        let pod = &one(&objects, "Deployment")["spec"]["template"];
        let account = &pod["spec"]["serviceAccountName"];
        let makes_account = values["serviceAccount"]["create"] != false;
        ensure!(named(&json!("ServiceAccount"), account) == makes_account, "{account}");
        for kind in ["RoleBinding", "ClusterRoleBinding"] {
            let binding = one(&objects, kind);
            ensure!(named(&binding["roleRef"]["kind"], &binding["roleRef"]["name"]), "{binding}");
            let subject = json!([{"kind": "ServiceAccount", "name": account, "namespace": "team-hub"}]);
            ensure!(binding["subjects"] == subject, "{binding}");
        }
        let labels = &pod["metadata"]["labels"];
        ensure!(selects(&one(&objects, "Deployment")["spec"]["selector"]["matchLabels"], labels), "{labels}");
        let hub = container(&objects);
        let ports: BTreeSet<&str> = hub["ports"].as_array().context("ports")?.iter().filter_map(|port| port["name"].as_str()).collect();
        let service = one(&objects, "Service");
        ensure!(selects(&service["spec"]["selector"], labels), "{service}");
        let targets = [
            &service["spec"]["ports"][0]["targetPort"],
            &hub["livenessProbe"]["httpGet"]["port"],
            &hub["readinessProbe"]["httpGet"]["port"],
        ];
        ensure!(targets.iter().all(|target| target.as_str().is_some_and(|name| ports.contains(name))), "{targets:?} are not in {ports:?}");
        if values["metrics"]["serviceMonitor"]["enabled"] == true {
            let monitor = one(&objects, "ServiceMonitor");
            ensure!(selects(&monitor["spec"]["selector"]["matchLabels"], &service["metadata"]["labels"]), "{monitor}");
            ensure!(monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"], "{monitor}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn values_arrive_where_they_belong() -> Result<()> {
    let offline = Offline::new().await?;
    let values = full();
    let objects = offline.template("prod", "team-hub", &values).await?;
    let deployment = one(&objects, "Deployment");
    let (pod, spec) = (&deployment["spec"]["template"]["metadata"], &deployment["spec"]["template"]["spec"]);
    for field in ["nodeSelector", "tolerations", "affinity", "priorityClassName", "imagePullSecrets"] {
        ensure!(spec[field] == values[field], "{field}: {}", spec[field]);
    }
    let hub = container(&objects);
    ensure!(hub["image"] == format!("registry.example/hub:1.2.3@sha256:{}", "0a".repeat(32)), "{}", hub["image"]);
    ensure!(hub["imagePullPolicy"] == "Always" && hub["resources"]["requests"]["cpu"] == 1, "{hub}");
    ensure!(hub["resources"]["limits"] == json!({"memory": "2Gi"}), "{}", hub["resources"]);
    let args = [
        "controller",
        "--system-namespace=shared",
        "--hub-id=hub-1",
        "--protected-namespaces=kube-*,infra",
        "--allow-self",
        "--log-format=json",
        "--log-level=debug",
        "--health-addr=0.0.0.0:8081",
        "--metrics-addr=0.0.0.0:9090",
    ];
    ensure!(strings(&hub["args"]) == args, "{}", hub["args"]);
    ensure!(pod["annotations"] == values["podAnnotations"], "{pod}");
    // The selector rests on the chart's own labels: nobody else's may take their place.
    ensure!(pod["labels"]["team"] == "a" && pod["labels"]["app.kubernetes.io/name"] == "other", "{pod}");
    ensure!(one(&objects, "ServiceAccount")["metadata"]["annotations"] == values["serviceAccount"]["annotations"], "{objects:?}");
    let annotations = &one(&objects, "Service")["metadata"]["annotations"];
    ensure!(
        *annotations
            == json!({"prometheus.io/scrape": "false", "prometheus.io/path": "/metrics", "prometheus.io/port": "9090", "team": "a"}),
        "{annotations}"
    );
    let monitor = one(&objects, "ServiceMonitor");
    ensure!(monitor["metadata"]["labels"]["release"] == "prometheus" && monitor["spec"]["endpoints"][0]["interval"] == "1m", "{monitor}");
    Ok(())
}

#[tokio::test]
async fn what_is_switched_off_is_not_there() -> Result<()> {
    let offline = Offline::new().await?;
    let objects = offline.template("odin-hub", "odin-hub", &json!({})).await?;
    ensure!(objects.iter().all(|object| object["kind"] != "ServiceMonitor"), "nobody asked for a ServiceMonitor");
    ensure!(container(&objects)["image"] == format!("odin-hub:{}", env!("CARGO_PKG_VERSION")), "{}", container(&objects)["image"]);

    let objects =
        offline.template("odin-hub", "odin-hub", &json!({"metrics": {"enabled": false, "serviceMonitor": {"enabled": true}}})).await?;
    ensure!(objects.iter().all(|object| object["kind"] != "Service" && object["kind"] != "ServiceMonitor"), "{objects:?}");
    let hub = container(&objects);
    ensure!(hub["ports"].as_array().is_some_and(|ports| ports.len() == 1), "{hub}");
    ensure!(strings(&hub["args"]).contains(&"--metrics-addr=0"), "{hub}");

    let objects = offline.template("odin-hub", "odin-hub", &json!({"rbac": {"tenantRoles": false}})).await?;
    let roles: Vec<&Value> =
        objects.iter().filter(|object| object["kind"] == "ClusterRole").map(|role| &role["metadata"]["name"]).collect();
    ensure!(roles == ["odin-hub"], "{roles:?}");
    Ok(())
}

#[tokio::test]
async fn there_is_one_hub_and_it_ends_before_the_next_begins() -> Result<()> {
    let objects = Offline::new().await?.template("odin-hub", "odin-hub", &full()).await?;
    let spec = &one(&objects, "Deployment")["spec"];
    ensure!(spec["replicas"] == 1 && spec["strategy"] == json!({"type": "Recreate"}), "{spec}");
    // The program waits four seconds for what is under way; see its `STOP`.
    ensure!(spec["template"]["spec"]["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds > 5), "{spec}");
    let probes = ["livenessProbe", "readinessProbe"].map(|probe| &container(&objects)[probe]["httpGet"]["path"]);
    ensure!(probes == ["/livez", "/readyz"], "{probes:?}");
    Ok(())
}

/// Only the hub's own pod gets a token.
#[tokio::test]
async fn the_accounts_token_is_mounted_where_it_is_asked_for() -> Result<()> {
    let objects = Offline::new().await?.template("odin-hub", "odin-hub", &json!({})).await?;
    ensure!(one(&objects, "ServiceAccount")["automountServiceAccountToken"] == false, "{objects:?}");
    ensure!(one(&objects, "Deployment")["spec"]["template"]["spec"]["automountServiceAccountToken"] == true, "{objects:?}");
    Ok(())
}

/// Helm knows the program by the chart's words alone: what those say of it has to be so.
#[tokio::test]
async fn the_program_is_the_one_that_the_chart_speaks_of() -> Result<()> {
    let chart: Value = serde_saphyr::from_str(&std::fs::read_to_string(repository().join("charts/odin-hub/Chart.yaml"))?)?;
    let version = env!("CARGO_PKG_VERSION");
    ensure!(chart["version"] == version && chart["appVersion"] == version, "{chart}");

    let objects = Offline::new().await?.template("odin-hub", "odin-hub", &full()).await?;
    let help = |args: &[&str]| -> Result<(bool, String)> {
        let Output { status, stdout, stderr } = Command::new(PROGRAM).args(args).arg("--help").output()?;
        Ok((status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned()))
    };
    for wrong in ["--nonsense", "--log-level=nonsense"] {
        ensure!(!help(&["controller", wrong])?.0, "{wrong} is told even when help is asked for");
    }
    let hub = container(&objects);
    let (known, told) = help(&strings(&hub["args"]))?;
    ensure!(known, "{told}");
    for variable in hub["env"].as_array().context("env")? {
        let name = variable["name"].as_str().context("a name")?;
        ensure!(told.contains(&format!("[env: {name}=")), "{name} means nothing to the program");
    }
    Ok(())
}
