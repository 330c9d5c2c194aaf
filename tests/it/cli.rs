//! The commands for people, on a hub that runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Output;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt as _};
use odin_hub::api::condition::service::PLACED;
use odin_hub::api::federation::MemberCluster;
use odin_hub::api::labels::MEMBER;
use odin_hub::api::odin::InferenceServiceStatus;
use sandbox::sim::NodeSpec;
use sandbox::{Cluster, Fleet, MemberSpec, eventually};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::world::{LIMIT, PROGRAM, Space, amd, condition_of, plain, world};

/// What a command told, and whether it did its work.
struct Told {
    done: bool,
    out: String,
    error: String,
}

async fn run(arguments: &[&str]) -> Result<Told> {
    let Output { status, stdout, stderr } = Command::new(PROGRAM).args(arguments).output().await?;
    Ok(Told { done: status.success(), out: String::from_utf8(stdout)?, error: String::from_utf8(stderr)? })
}

/// Runs a command with the kubeconfig of the hub.
async fn on_hub(arguments: &[&str]) -> Result<Told> {
    let hub = world().await.fleet.hub().kubeconfig_path().display().to_string();
    run(&[arguments, &["--kubeconfig", &hub]].concat()).await
}

/// Standard output of a command that must succeed.
async fn done(arguments: &[&str]) -> Result<String> {
    let told = on_hub(arguments).await?;
    ensure!(told.done && told.error.is_empty(), "{arguments:?}: {}{}", told.out, told.error);
    Ok(told.out)
}

/// Cells of the line that begins with a name.
fn row<'a>(table: &'a str, name: &str) -> Result<Vec<&'a str>> {
    let rows = table.lines().map(|line| line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>());
    rows.into_iter().find(|cells| cells.first() == Some(&name)).with_context(|| format!("no row {name} in\n{table}"))
}

#[tokio::test]
async fn clusters_are_listed() -> Result<()> {
    let world = world().await;
    let members: Api<MemberCluster> = Api::all(world.fleet.hub().client().await?);
    eventually("member-2 has told its accelerators", LIMIT, || async {
        ensure!(members.get("member-2").await?.status.is_some_and(|status| status.accelerator_summary.is_some()));
        Ok(())
    })
    .await?;
    let wide = done(&["clusters", "-o", "wide"]).await?;
    let header = "NAME READY VERSION LWS ACCELERATORS SERVICES REPLICAS AGE REASON MESSAGE CREDENTIAL LAST SEEN";
    ensure!(row(&wide, "NAME")?.join(" ") == header, "{wide}");
    let one = row(&wide, "member-2")?;
    ensure!(one[2].starts_with("v1.") && one[4].ends_with("/40 h200-sxm"), "{wide}");
    ensure!(row(&done(&["clusters"]).await?, "member-1")?.len() == 8);

    let object: Value = serde_json::from_str(&done(&["clusters", "member-1", "-o", "json"]).await?)?;
    ensure!(object["kind"] == "MemberCluster" && object["metadata"]["name"] == "member-1", "{object}");
    ensure!(object["metadata"]["managedFields"].is_null() && object["status"]["conditions"].is_array(), "{object}");
    let list: Value = serde_saphyr::from_str(&done(&["clusters", "member-1", "member-2", "-o", "yaml"]).await?)?;
    ensure!(list["kind"] == "List" && list["items"][1]["metadata"]["name"] == "member-2", "{list}");
    ensure!(done(&["clusters", "member-2", "-o", "name"]).await? == "membercluster.federation.odin.moreh.io/member-2\n");

    let told = on_hub(&["clusters", "member-1", "none"]).await?;
    ensure!(
        !told.done && told.error == "odin-hub: there is no MemberCluster none\n" && row(&told.out, "member-1").is_ok(),
        "{}",
        told.error
    );

    let text = done(&["explain", "cluster/member-2"]).await?;
    ensure!(text.starts_with("MemberCluster member-2 is ") && text.contains("nvidia.com/gpu   h200-sxm   5"), "{text}");
    Ok(())
}

#[tokio::test]
async fn services_are_listed_and_explained() -> Result<()> {
    let world = world().await;
    let space = Space::new(world.fleet, "cli-services").await?;
    space.apply("chat", &amd(2, 1)).await?;
    space.apply("huge", &amd(1, 16)).await?;
    space.apply("lost", &plain(1, "sim.invalid/missing:1")).await?;
    space.until_ready("chat", 2).await?;
    space.until("huge", "every member is rejected", |status| status.rejections.len() >= 2).await?;
    let lost = space
        .until("lost", "the image is named", |status| {
            status
                .workload
                .as_ref()
                .and_then(|workload| workload.diagnostic.as_ref())
                .is_some_and(|cause| cause.message.contains("missing:1"))
        })
        .await?;

    let table = done(&["services", "-n", "cli-services"]).await?;
    let chat = row(&table, "chat")?;
    ensure!(chat[1..7] == ["True", "2", "2", "2", "member-1:2", "AllReplicasReady"], "{table}");
    ensure!(row(&table, "huge")?[5..7] == ["<none>", "Unplaced"], "{table}");
    let wide = done(&["services", "-A", "-o", "wide"]).await?;
    ensure!(row(&wide, "NAMESPACE")?.join(" ").ends_with("AGE WORKLOAD MODEL UNPLACED MESSAGE"), "{wide}");
    ensure!(row(&wide, "cli-services")?[1] == "chat", "{wide}");
    let names = done(&["services", "-n", "cli-services", "-o", "name"]).await?;
    ensure!(names.lines().collect::<Vec<_>>() == ["chat", "huge", "lost"].map(|name| format!("inferenceservice.odin.moreh.io/{name}")));

    let text = done(&["explain", "chat", "-n", "cli-services"]).await?;
    ensure!(text.starts_with("InferenceService cli-services/chat is ready (AllReplicasReady), since "), "{text}");
    ensure!(text.contains("Layers, the lowest first:\n  InferenceService cli-services/chat, generation 1\n"), "{text}");
    ensure!(!text.contains("Because") && text.contains("  member-1   Ready   2        2       2       2"), "{text}");

    let text = done(&["explain", "isvc/huge", "-n", "cli-services"]).await?;
    let status = space.status("huge").await?;
    ensure!(condition_of(&status, PLACED).status == "False" && text.contains("Because: Unplaced\n"), "{text}");
    for rejection in status.rejections.iter().filter(|rejection| rejection.cluster.starts_with("member-")) {
        ensure!(text.contains(&rejection.message), "{} in {text}", rejection.message);
    }
    ensure!(text.contains("Some replicas have no member"), "{text}");

    let text = done(&["explain", "lost", "-n", "cli-services"]).await?;
    let cause = lost.workload.and_then(|workload| workload.diagnostic).context("a cause")?;
    ensure!(text.contains("ImagePull") && text.contains("sim.invalid/missing:1"), "{text}");
    ensure!(text.contains(&format!("Pod cli-services/{}, container main, in ", cause.involved_object.name)), "{text}");
    ensure!(text.contains("What to do: Correct the image, or give the member a pull secret."), "{text}");
    let data: Value = serde_json::from_str(&done(&["explain", "lost", "-n", "cli-services", "-o", "json"]).await?)?;
    ensure!(data["cause"]["container"] == "main" && data["cause"]["meaning"] == "The image can't be pulled.", "{data}");
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_read_says_what_to_do() -> Result<()> {
    let world = world().await;
    Space::new(world.fleet, "cli-empty").await?;
    let told = on_hub(&["services", "-n", "cli-empty"]).await?;
    ensure!(told.done && told.out.is_empty() && told.error.contains("no services in namespace cli-empty"), "{}", told.error);
    let told = on_hub(&["explain", "chat", "-n", "cli-empty"]).await?;
    ensure!(!told.done && told.error.contains("there is no InferenceService chat in namespace cli-empty"), "{}", told.error);
    let told = on_hub(&["explain", "chat"]).await?;
    ensure!(!told.done && told.error.contains("in namespace default"), "{}", told.error);

    let no_kinds = world.fleet.member("member-2")?.kubeconfig_path().display().to_string();
    for command in [&["clusters"][..], &["services"], &["clusters", "a"], &["explain", "chat"], &["unjoin", "a"]] {
        let flag = if command[0] == "unjoin" { "--hub-kubeconfig" } else { "--kubeconfig" };
        let told = run(&[command, &[flag, &no_kinds]].concat()).await?;
        ensure!(!told.done && told.error.contains("`odin-hub crds --apply` installs the kinds"), "{command:?}: {}", told.error);
    }
    let folder = tempfile::tempdir()?;
    let nobody = folder.path().join("nobody.kubeconfig");
    std::fs::write(&nobody, world.fleet.hub().kubeconfig_for_user("nobody", &[])?)?;
    let told = run(&["services", "-n", "cli-empty", "--kubeconfig", &nobody.display().to_string()]).await?;
    ensure!(!told.done && told.error.contains("verb list on inferenceservices.odin.moreh.io in namespace cli-empty"), "{}", told.error);
    Ok(())
}

fn api_of(client: &Client, object: &DynamicObject) -> Result<Api<DynamicObject>> {
    let types = object.types.as_ref().context("a kind")?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
    Ok(Api::namespaced_with(client.clone(), &object.namespace().unwrap_or_default(), &resource))
}

/// Spec of an object, and the labels and annotations that are neither the hub's own nor those of a member's controllers.
fn content(mut object: DynamicObject) -> Value {
    let own = ["federation.odin.moreh.io/", "deployment.kubernetes.io/"];
    let others = |entries: &BTreeMap<String, String>| {
        let others = entries.iter().filter(|(key, _)| !own.iter().any(|own| key.starts_with(own)));
        json!(others.collect::<BTreeMap<_, _>>())
    };
    // Each Service gets addresses of its own.
    if let Some(spec) = object.data["spec"].as_object_mut() {
        spec.retain(|field, _| !field.starts_with("clusterIP"));
    }
    json!({"spec": object.data["spec"], "labels": others(object.labels()), "annotations": others(object.annotations())})
}

#[tokio::test]
async fn offline_rendering_is_what_the_hub_applies() -> Result<()> {
    let world = world().await;
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart");
    let folder = tempfile::tempdir()?;
    for file in ["10-namespace.yaml", "20-templates.yaml", "30-services.yaml"] {
        let mut objects = sandbox::apply::documents(&std::fs::read_to_string(examples.join(file))?)?;
        for service in objects.iter_mut().filter(|object| object["kind"] == "InferenceService") {
            // Workloads at rest take no devices from other tests.
            service["spec"]["replicas"] = 0.into();
        }
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
        let text = objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n");
        world.fleet.hub().apply_yaml(&text).await?;
        std::fs::write(folder.path().join(file), list)?;
    }
    let space = Space { client: world.fleet.hub().client().await?, namespace: "demo".to_owned() };
    let files = folder.path().display().to_string();
    let render = async |more: &[&str]| -> Result<Vec<Value>> {
        let told = run(&[&["render", "-f", &files, "-o", "json"], more].concat()).await?;
        ensure!(told.done && told.error.lines().all(|line| !line.starts_with("error")), "{}", told.error);
        let list: Value = serde_json::from_str(&told.out)?;
        list["items"].as_array().cloned().context("items")
    };
    let mut kinds = BTreeSet::new();
    for service in render(&["--spec"]).await? {
        let name = service["metadata"]["name"].as_str().context("a name")?;
        let rendered = render(&[name]).await?;
        if name == "too-big" {
            ensure!(!rendered.is_empty(), "what has no place can be rendered");
            continue;
        }
        let what = format!("{name} is applied");
        let applied = |status: &InferenceServiceStatus| status.observed_generation.is_some() && !status.placements.is_empty();
        let status = space.until(name, &what, applied).await?;
        ensure!(status.rendered_spec.as_ref() == Some(&service["status"]["renderedSpec"]), "{name}: {:?}\n{service}", status.rendered_spec);
        let member = world.fleet.member(&status.placements[0].cluster)?.client().await?;
        for object in rendered {
            let mut object: DynamicObject = serde_json::from_value(object)?;
            kinds.insert(object.types.as_ref().context("a kind")?.kind.clone());
            let api = api_of(&member, &object)?;
            let applied = api.get(&object.name_any()).await?;
            // The API server's defaults come to both.
            object.metadata.name = Some("stored-by-nobody".to_owned());
            let stored = api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object).await?;
            let (applied, stored) = (content(applied), content(stored));
            ensure!(applied == stored, "{name}: the hub applied\n{applied}\nrendered offline it is\n{stored}");
        }
    }
    ensure!(kinds.iter().map(String::as_str).eq(["Deployment", "LeaderWorkerSet", "Service"]), "{kinds:?}");
    Ok(())
}

/// A member with a node that no other test uses.
async fn member_of_its_own(fleet: &Fleet, name: &str) -> Result<std::sync::Arc<Cluster>> {
    let node = NodeSpec::new("own-0").label("cli", name).taint("cli", name, "NoSchedule");
    fleet.add_member(MemberSpec::new(name, vec![node])).await
}

#[tokio::test]
async fn a_member_is_unjoined() -> Result<()> {
    let world = world().await;
    let fleet = world.fleet;
    let own = member_of_its_own(fleet, "cli-own").await?;
    let other = fleet.member("member-1")?.kubeconfig_path().display().to_string();
    let (hub, file) = (fleet.hub().kubeconfig_path().display().to_string(), own.kubeconfig_path().display().to_string());
    let told = run(&["join", "cli-own", "--kubeconfig", &file, "--hub-kubeconfig", &hub]).await?;
    ensure!(told.done, "{}", told.error);
    let space = Space::new(fleet, "cli-unjoin").await?;
    space
        .apply(
            "chat",
            "{replicas: 1, template: {spec: {nodeSelector: {cli: cli-own}, tolerations: [{key: cli, operator: Exists}], \
             containers: [{name: main, image: 'registry.example/engine:1'}]}}}",
        )
        .await?;
    space.until_ready("chat", 1).await?;

    let client = fleet.hub().client().await?;
    let (members, secrets) = (Api::<MemberCluster>::all(client.clone()), Api::<Secret>::namespaced(client.clone(), "odin-hub"));
    for (more, wanted) in [
        (&[][..], "cli-own holds replicas of 1 service:\n  cli-unjoin/chat: 1\n"),
        (&["--force", "--kubeconfig", &other], "leads to another cluster than the member's"),
    ] {
        let told = run(&[&["unjoin", "cli-own", "--hub-kubeconfig", &hub], more].concat()).await?;
        ensure!(!told.done && told.error.contains(wanted), "{more:?}: {}{}", told.out, told.error);
        ensure!(members.get_opt("cli-own").await?.is_some() && secrets.get_opt("cli-own").await?.is_some(), "{more:?}");
    }

    let arguments = ["unjoin", "cli-own", "--hub-kubeconfig", &hub, "--kubeconfig", &file];
    let told = run(&[&arguments[..], &["--force"]].concat()).await?;
    ensure!(told.done, "{}{}", told.out, told.error);
    for wanted in [
        "Secret odin-hub/cli-own deleted on the hub",
        "MemberCluster cli-own deleted on the hub",
        "ClusterRoleBinding odin-hub-member deleted in the member",
        "Namespace odin-hub-member deleted in the member",
        "what 1 service had in cli-own stays there",
        "-l federation.odin.moreh.io/hub=",
    ] {
        ensure!(told.out.contains(wanted), "{wanted}: {}", told.out);
    }
    ensure!(secrets.get_opt("cli-own").await?.is_none());
    let member = own.client().await?;
    ensure!(Api::<ClusterRole>::all(member.clone()).get_opt("odin-hub-member").await?.is_none());
    ensure!(Api::<ClusterRoleBinding>::all(member.clone()).get_opt("odin-hub-member").await?.is_none());
    let namespaces: Api<Namespace> = Api::all(member.clone());
    eventually("the account's namespace is gone", LIMIT, || async {
        ensure!(namespaces.get_opt("odin-hub-member").await?.is_none());
        Ok(())
    })
    .await?;
    ensure!(namespaces.get("cli-unjoin").await?.metadata.deletion_timestamp.is_none(), "a namespace of services is never removed");
    let left = space.deployment(&own, "chat").await?.context("what ran is gone")?;
    let selector = told.out.lines().find_map(|line| line.split_once(" -l ")).context("a selector")?.1;
    let (key, id) = selector.split_once('=').context("key and value")?;
    ensure!(left.labels().get(key).is_some_and(|value| value == id), "{selector} finds {:?}", left.labels());
    eventually("the hub leaves it off", LIMIT, || async {
        ensure!(members.get_opt("cli-own").await?.is_none(), "it is there again");
        Ok(())
    })
    .await?;

    // Once more: the work is done already, and nothing is in its way.
    let told = run(&arguments).await?;
    ensure!(told.done, "{}", told.error);
    for wanted in ["no Secret odin-hub/cli-own registers it", "no MemberCluster cli-own", "Namespace odin-hub-member is not there"] {
        ensure!(told.out.contains(wanted), "{wanted}: {}", told.out);
    }
    Ok(())
}

/// No hub runs there.
#[tokio::test]
async fn what_others_made_stays() -> Result<()> {
    let cluster = crate::crds::cluster().await?;
    cluster
        .apply_yaml(
            "{apiVersion: v1, kind: Namespace, metadata: {name: unjoin-foreign}}
---
{apiVersion: v1, kind: Secret, metadata: {name: unjoin-a, namespace: unjoin-foreign, labels: {federation.odin.moreh.io/member: 'true', a: b}}, stringData: {kubeconfig: theirs}}
---
{apiVersion: federation.odin.moreh.io/v1alpha1, kind: MemberCluster, metadata: {name: unjoin-a}, spec: {secretRef: {name: unjoin-other}, suspend: true}}",
        )
        .await?;
    // An account that was applied without join, as a person may do with kubectl.
    sandbox::hub::member_account(cluster, Path::new(env!("CARGO_MANIFEST_DIR"))).await?;
    let file = cluster.kubeconfig_path().display().to_string();
    let told = run(&["unjoin", "unjoin-a", "--namespace", "unjoin-foreign", "--hub-kubeconfig", &file, "--kubeconfig", &file]).await?;
    ensure!(told.done, "{}", told.error);
    for wanted in [
        "Secret unjoin-foreign/unjoin-a was not written by join: it stays, without the label",
        "Secret unjoin-foreign/unjoin-other, which it took its kubeconfig from, stays",
        "MemberCluster unjoin-a deleted",
        "ClusterRole odin-hub-member was not applied by join: it stays",
        "Namespace odin-hub-member was not applied by join: it stays",
    ] {
        ensure!(told.out.contains(wanted), "{wanted}: {}", told.out);
    }
    ensure!(!format!("{}{}", told.out, told.error).contains("theirs"), "a secret is shown");
    let client = cluster.client().await?;
    let secret = Api::<Secret>::namespaced(client.clone(), "unjoin-foreign").get("unjoin-a").await?;
    ensure!(!secret.labels().contains_key(MEMBER) && secret.labels().contains_key("a") && secret.data.is_some(), "{:?}", secret.labels());
    ensure!(Api::<MemberCluster>::all(client.clone()).get_opt("unjoin-a").await?.is_none());
    ensure!(Api::<ClusterRole>::all(client).get_opt("odin-hub-member").await?.is_some());
    Ok(())
}
