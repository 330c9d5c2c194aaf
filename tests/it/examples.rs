//! Every example does what its README says, on the members that `cargo sandbox up` starts.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use kube::{Api, Client};
use odin_hub::api::condition::{self, member, service::PLACED};
use odin_hub::api::federation::MemberCluster;
use odin_hub::api::odin::WorkloadKind;
use sandbox::apply::{ApplyOptions, apply_values};
use sandbox::hub::{self, Hub, HubOptions};
use sandbox::{Fleet, FleetSpec, eventually};
use serde_json::{Value, json};

use crate::kubectl::{self, objects};
use crate::world::{LIMIT, PROGRAM, Space, clusters, condition_of};

const DEPLOYMENT: Option<WorkloadKind> = Some(WorkloadKind::Deployment);
const GROUPS: Option<WorkloadKind> = Some(WorkloadKind::LeaderWorkerSet);

/// What the READMEs promise: folder, service, its workload and where it lands. One without a workload fits nowhere.
const PROMISED: [(&str, &str, Option<WorkloadKind>, &str); 12] = [
    ("data-parallel", "moe", GROUPS, "member-1:2"),
    ("pipeline-parallel", "big", GROUPS, "member-2:2"),
    ("prefill-decode", "r1-decode", GROUPS, "member-1:1"),
    ("prefill-decode", "r1-prefill", DEPLOYMENT, "member-1:2"),
    ("quickstart", "big-pp", GROUPS, "member-2:1"),
    ("quickstart", "chat-70b", DEPLOYMENT, "member-1:2"),
    ("quickstart", "chat-small", DEPLOYMENT, "member-2:1"),
    ("quickstart", "moe-dp", GROUPS, "member-1:1"),
    ("quickstart", "r1-decode", GROUPS, "member-1:2"),
    ("quickstart", "r1-prefill", DEPLOYMENT, "member-1:1"),
    ("quickstart", "too-big", None, ""),
    ("tensor-parallel", "chat-70b", DEPLOYMENT, "member-1:2"),
];

/// Label by which an example says that a service isn't meant to become ready.
const EXPECT: &str = "odin-hub.sandbox/expect";

fn root() -> PathBuf {
    hub::repository().join("examples")
}

fn example(name: &str) -> Result<Vec<Value>> {
    objects(&root().join(name))
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The whole fleet for the examples alone: they want most of its devices, one example after the other.
#[tokio::test]
async fn every_example_does_what_it_says() -> Result<()> {
    let fleet = Fleet::start(FleetSpec::default()).await?;
    let options = HubOptions::new(PROGRAM);
    let _hub = Hub::install(&fleet, &options).await?;
    let client = fleet.hub().client().await?;

    members_are_registered_by_the_files(&fleet, &client, &options).await.context("members")?;
    for member in fleet.members() {
        hub::join(&fleet, &member, &options.repository).await?;
    }
    let mut folders = Vec::new();
    for entry in fs::read_dir(root())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    folders.sort();
    for folder in folders {
        ensure!(root().join(&folder).join("README.md").exists(), "{folder} has no README.md");
        if folder != "members" {
            services_do_as_promised(&fleet, &client, &folder).await.with_context(|| folder.clone())?;
        }
    }
    Ok(())
}

/// Runs the commands of a README: the first one applies the folder, and its services become what is promised.
async fn services_do_as_promised(fleet: &Fleet, client: &Client, folder: &str) -> Result<()> {
    let readme = fs::read_to_string(root().join(folder).join("README.md"))?;
    let commands = kubectl::commands(&readme);
    let (first, others) = commands.split_first().context("the README has no command")?;
    ensure!(first.contains(" apply "), "the first command is: {first}");
    kubectl::run(fleet, first).await?;

    let objects = example(folder)?;
    let services: Vec<_> = objects.iter().filter(|object| text(object, "/kind") == "InferenceService").collect();
    let promised: Vec<_> = PROMISED.iter().filter(|promise| promise.0 == folder).collect();
    ensure!(services.len() == promised.len(), "{} services, {} are promised", services.len(), promised.len());
    for service in services {
        let name = text(service, "/metadata/name");
        let promise = promised.iter().find(|promise| promise.1 == name).with_context(|| format!("{name} is not promised"))?;
        let space = Space { client: client.clone(), namespace: text(service, "/metadata/namespace").to_owned() };
        let Some(workload) = promise.2 else {
            ensure!(service["metadata"]["labels"][EXPECT] == "unplaced", "{name} lacks the label {EXPECT}");
            let status = space.until(name, "every member is rejected", |status| status.rejections.len() == 2).await?;
            ensure!(condition_of(&status, PLACED).status == "False", "{status:?}");
            continue;
        };
        let replicas = service["spec"]["replicas"].as_i64().unwrap_or(1);
        let status = space.until_ready(name, i32::try_from(replicas)?).await?;
        ensure!(clusters(&status) == promise.3, "{name} is on {}, not {}", clusters(&status), promise.3);
        let seen = status.workload.as_ref().map(|child| child.kind);
        ensure!(seen == Some(workload), "{name} is {seen:?}, not {workload:?}");
    }

    let mut printed = Vec::new();
    for command in others {
        printed.push((command, kubectl::run(fleet, command).await.with_context(|| (*command).to_owned())?));
    }
    if folder == "quickstart" {
        let in_member: Vec<_> =
            printed.iter().filter(|(command, _)| command.contains("--kubeconfig")).map(|(_, printed)| printed).collect();
        let [before, after] = in_member.as_slice() else { bail!("the tour looks into a member {} times", in_member.len()) };
        for object in ["Deployment chat-small", "Service chat-small-service", "LeaderWorkerSet big-pp", "Service big-pp-service"] {
            ensure!(before.lines().any(|line| line == object), "no {object} in the member: {before}");
        }
        ensure!(!after.contains("chat-small"), "left in the member: {after}");
    }
    take_away(client, objects).await
}

/// Deletes all but namespaces, which are left empty: they take long to go.
async fn take_away(client: &Client, mut objects: Vec<Value>) -> Result<()> {
    objects.retain(|object| object["kind"] != "Namespace");
    objects.reverse();
    kubectl::delete(&kubectl::targets(client, &objects).await?, true).await
}

/// As they are, the files register nobody and name the field that must be filled in; filled in, they register a member.
async fn members_are_registered_by_the_files(fleet: &Fleet, client: &Client, options: &HubOptions) -> Result<()> {
    let mut objects = example("members")?;
    apply_values(client, objects.clone(), &ApplyOptions::default()).await?;
    for (name, member) in [("gpu-a", "member-1"), ("gpu-c", "member-2")] {
        let refused = until_ready_is(client, name, "False").await?;
        ensure!(refused.contains("CredentialRefused") && refused.contains("certificate-authority-data"), "{refused}");

        let account = hub::member_account(&*fleet.member(member)?, &options.repository).await?;
        let is_secret = |object: &&Value| text(object, "/kind") == "Secret" && text(object, "/metadata/name") == name;
        let mut secret = objects.iter().find(is_secret).with_context(|| format!("no Secret {name}"))?.clone();
        let kubeconfigs = secret["stringData"].as_object_mut().context("stringData")?;
        ensure!(kubeconfigs.len() == 1 && kubeconfigs.values().all(is_no_credential), "{name}: what looks like a credential");
        kubeconfigs.values_mut().for_each(|kubeconfig| *kubeconfig = account.clone().into());
        apply_values(client, vec![secret], &ApplyOptions::default()).await?;
        until_ready_is(client, name, "True").await?;
    }
    // Nobody wrote this one: its Secret made it.
    objects.insert(0, json!({"apiVersion": "federation.odin.moreh.io/v1alpha1", "kind": "MemberCluster", "metadata": {"name": "gpu-a"}}));
    take_away(client, objects).await
}

fn is_no_credential(kubeconfig: &Value) -> bool {
    kubeconfig.as_str().is_some_and(|text| text.contains("token: REPLACE-BY-A-TOKEN") && !text.contains("client-key-data"))
}

/// Waits until the condition Ready of a member has this status, and gives its reason and message.
async fn until_ready_is(client: &Client, name: &str, truth: &str) -> Result<String> {
    let api: Api<MemberCluster> = Api::all(client.clone());
    eventually(&format!("{name} has Ready={truth}"), LIMIT, || async {
        let status = api.get_opt(name).await?.and_then(|member| member.status).ok_or_else(|| anyhow!("no status"))?;
        let ready = condition::find(&status.conditions, member::READY).ok_or_else(|| anyhow!("no condition"))?;
        ensure!(ready.status == truth, "{ready:?}");
        Ok(format!("{}: {}", ready.reason, ready.message))
    })
    .await
}
