//! `odin-hub join` with a real member and a real hub. No hub runs: what it would say is written here.

use std::process::Output;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use odin_hub::api::federation::MemberCluster;
use odin_hub::api::labels::{ALLOW, JOINED, MEMBER};
use sandbox::{ApplyOptions, Fleet};
use serde_json::{Value, json};
use tokio::process::Command;

async fn odin_hub(arguments: &[&str]) -> Result<(bool, String, String)> {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_odin-hub")).args(arguments).output().await?;
    Ok((status.success(), String::from_utf8(stdout)?, String::from_utf8(stderr)?))
}

/// A hub's namespace of its own in the cluster that has our kinds, and the arguments that lead to it and to member-1.
struct Ground {
    client: Client,
    member: Client,
    namespace: &'static str,
    arguments: Vec<String>,
}

impl Ground {
    async fn new(namespace: &'static str) -> Result<Self> {
        let hub = crate::crds::cluster().await?;
        let member = Fleet::shared().await?.member("member-1")?;
        let hub_file = hub.kubeconfig_path().display().to_string();
        hub.apply_yaml(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}")).await?;
        let arguments =
            ["--namespace", namespace, "--hub-kubeconfig", &hub_file, "--kubeconfig", &member.kubeconfig_path().display().to_string()];
        let arguments = arguments.map(ToOwned::to_owned).to_vec();
        Ok(Self { client: hub.client().await?, member: member.client().await?, namespace, arguments })
    }

    async fn join(&self, name: &str, more: &[&str]) -> Result<(bool, String, String)> {
        let mut arguments = vec!["join", name];
        arguments.extend(self.arguments.iter().map(String::as_str));
        arguments.extend(more);
        odin_hub(&arguments).await
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    async fn kubeconfig(&self, name: &str) -> Result<String> {
        let mut data = self.secrets().get(name).await?.data.context("data")?;
        Ok(String::from_utf8(data.remove("kubeconfig").context("key kubeconfig")?.0)?)
    }
}

#[tokio::test]
async fn a_member_is_joined_and_joined_again() -> Result<()> {
    let ground = Ground::new("join-again").await?;
    let hub = crate::crds::cluster().await?;
    let member = Fleet::shared().await?.member("member-1")?;
    for name in ["joined-a", "joined-b", "unjoined"] {
        member.apply_yaml(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}")).await?;
    }
    let (joined, _, error) = ground.join("again", &["--wait=false", "--allow-namespace", "joined-*"]).await?;
    assert!(!joined && error.contains("odin-hub-id"), "the hub's id is needed to allow a namespace: {error}");
    hub.apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: odin-hub-id, namespace: join-again}, data: {id: hub-of-join}}")
        .await?;

    let (joined, output, error) = ground.join("again", &["--wait=false", "--allow-namespace", "joined-*", "kube-public"]).await?;
    ensure!(joined, "{error}");
    assert!(output.contains("token expires 2") && output.contains("Secret join-again/again created"), "{output}");
    assert!(output.contains("namespace kube-public left alone"), "{output}");
    let namespaces: Api<Namespace> = Api::all(ground.member.clone());
    for (name, allowed) in [("joined-a", true), ("joined-b", true), ("unjoined", false), ("kube-public", false)] {
        let labelled = namespaces.get(name).await?.labels().get(ALLOW).is_some_and(|id| id == "hub-of-join");
        assert_eq!(labelled, allowed, "{name}");
    }
    let secret = ground.secrets().get("again").await?;
    assert_eq!(
        (secret.labels().get(MEMBER).map(String::as_str), secret.annotations().get(JOINED).map(String::as_str)),
        (Some("true"), Some("true"))
    );
    let first = ground.kubeconfig("again").await?;
    let token = |text: &str| -> Result<String> {
        let value: Value = serde_saphyr::from_str(text)?;
        Ok(value["users"][0]["user"]["token"].as_str().context("token")?.to_owned())
    };
    assert!(!format!("{output}{error}").contains(&token(&first)?), "the token is shown");

    // The account can do the hub's work and nothing else.
    let account = sandbox::cluster::client_of(&first).await?;
    Api::<Node>::all(account.clone()).list(&ListParams::default()).await?;
    let refused = |what: kube::Result<()>| matches!(what, Err(kube::Error::Api(status)) if status.code == 403);
    let secrets = Api::<Secret>::namespaced(account.clone(), "joined-a");
    assert!(refused(secrets.list(&ListParams::default()).await.map(drop)));
    assert!(refused(Api::<Namespace>::all(account.clone()).delete("joined-a", &DeleteParams::default()).await.map(drop)));
    let pods = Api::<Pod>::namespaced(account.clone(), "joined-a");
    assert!(refused(pods.delete("none", &DeleteParams::default()).await.map(drop)));
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: joined-a},
        spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: d}]}}}}";
    sandbox::apply::apply_yaml(&account, deployment, &ApplyOptions { dry_run: true, ..ApplyOptions::default() }).await?;

    let (joined, output, error) = ground.join("again", &["--wait=false", "--long-lived"]).await?;
    ensure!(joined, "{error}");
    assert!(output.contains("token does not expire") && output.contains("Secret join-again/again renewed"), "{output}");
    let second = ground.kubeconfig("again").await?;
    assert_ne!(token(&first)?, token(&second)?);
    let account = sandbox::cluster::client_of(&second).await?;
    Api::<Node>::all(account).list(&ListParams::default()).await?;
    Ok(())
}

#[tokio::test]
async fn what_stands_in_the_way_is_told_and_nothing_is_written() -> Result<()> {
    let ground = Ground::new("join-refused").await?;
    let hub = crate::crds::cluster().await?;
    hub.apply_yaml(
        "{apiVersion: v1, kind: Secret, metadata: {name: foreign, namespace: join-refused}, stringData: {kubeconfig: mine}}
---
{apiVersion: federation.odin.moreh.io/v1alpha1, kind: MemberCluster, metadata: {name: join-other}, spec: {secretRef: {name: else}, suspend: true}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: odin-hub-id, namespace: join-refused}, data: {id: hub-of-join}}",
    )
    .await?;
    let cases: &[(&str, &[&str], &str)] = &[
        ("foreign", &[], "Secret join-refused/foreign exists and was not written by join"),
        ("join-other", &[], "takes its kubeconfig from Secret else"),
        ("fresh", &["--allow-namespace", "no-such-*"], "no namespace of the member matches \"no-such-*\""),
        ("fresh", &["--context", "none"], "it has no context none; it has: member-1"),
        ("fresh", &["--hub-context", "none"], "none"),
        ("fresh.a", &[], "lower-case letters, digits or '-'"),
    ];
    for (name, more, wanted) in cases {
        let (joined, output, error) = ground.join(name, more).await?;
        assert!(!joined && error.contains(wanted), "{name} {more:?}: {output}{error}");
    }
    let (shown, output, error) = ground.join("fresh", &["--dry-run"]).await?;
    ensure!(shown, "{error}");
    assert!(output.contains("ClusterRole odin-hub-member") && output.contains("would create on the hub"), "{output}");
    let secrets: Vec<String> = ground.secrets().list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
    assert_eq!(secrets, ["foreign"]);

    let no_kinds = Fleet::shared().await?.member("member-2")?.kubeconfig_path().display().to_string();
    let mut arguments = vec!["join", "fresh", "--namespace", "default", "--hub-kubeconfig", no_kinds.as_str()];
    arguments.extend(["--kubeconfig", no_kinds.as_str()]);
    let (joined, _, error) = odin_hub(&arguments).await?;
    assert!(!joined && error.contains("`odin-hub crds --apply` installs the kind"), "{error}");

    let elsewhere = Ground {
        namespace: "join-nowhere",
        arguments: ground.arguments.iter().map(|argument| argument.replace("join-refused", "join-nowhere")).collect(),
        ..ground
    };
    let (joined, _, error) = elsewhere.join("fresh", &[]).await?;
    assert!(!joined && error.contains("the hub has no namespace join-nowhere"), "{error}");
    Ok(())
}

#[tokio::test]
async fn join_waits_for_what_the_hub_says() -> Result<()> {
    let ground = Ground::new("join-waits").await?;
    let hub = crate::crds::cluster().await?;
    let (joined, _, error) = ground.join("join-waits", &["--timeout", "1"]).await?;
    assert!(!joined && error.contains("the hub has not made MemberCluster join-waits yet"), "{error}");

    hub.apply_yaml(
        "{apiVersion: federation.odin.moreh.io/v1alpha1, kind: MemberCluster, metadata: {name: join-waits}, spec: {secretRef: {name: join-waits}, suspend: true}}",
    )
    .await?;
    let members: Api<MemberCluster> = Api::all(ground.client.clone());
    for (status, reason, wanted) in [("False", "Unreachable", "Unreachable: because"), ("True", "Connected", "ready")] {
        let status = json!({"status": {"conditions": [
            {"type": "Ready", "status": status, "reason": reason, "message": "because", "lastTransitionTime": "2030-01-01T00:00:00Z"}]}});
        members.patch_status("join-waits", &PatchParams::default(), &Patch::Merge(&status)).await?;
        let (joined, output, error) = ground.join("join-waits", &["--timeout", "1"]).await?;
        assert_eq!(joined, reason == "Connected", "{output}{error}");
        assert!(format!("{output}{error}").contains(wanted), "{output}{error}");
    }
    Ok(())
}
