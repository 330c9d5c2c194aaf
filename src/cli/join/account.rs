//! The member's side of joining: the hub's account and its token.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Node, Secret, ServiceAccount};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use secrecy::SecretString;
use serde_json::json;

use super::MANAGER;

/// Namespace of the hub's account in a member.
const NAMESPACE: &str = "odin-hub-member";
/// Name of the hub's account in a member.
pub(super) const SERVICE_ACCOUNT: &str = "odin-hub";
/// Name of the Secret with a token that does not expire.
const TOKEN_SECRET: &str = "odin-hub-token";
/// What the account may do.
const MANIFEST: &str = include_str!("../../../config/rbac/member.yaml");

/// What is asked for: a year. Clouds grant less.
const TOKEN_SECONDS: i64 = 365 * 24 * 3600;
/// How long controllers of a healthy API server need, with room: fill a token Secret, let a new binding take effect.
const SETTLE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(200);

/// A token of the hub's account.
pub(super) struct Token {
    pub(super) secret: SecretString,
    /// When it ends, as the member granted it; never for a long-lived one.
    pub(super) expires_at: Option<Timestamp>,
}

/// The objects of the account, in the order in which they are applied.
pub(super) fn manifest() -> anyhow::Result<Vec<DynamicObject>> {
    serde_saphyr::from_multiple(MANIFEST).context("the account's manifest built into this program is broken")
}

/// Creates the account, or brings it up to date.
pub(super) async fn apply(client: &Client) -> anyhow::Result<()> {
    for object in manifest()? {
        let (api, kind, name) = place(client, &object)?;
        api.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&object))
            .await
            .with_context(|| format!("applying {kind} {name} in the member; an administrator's kubeconfig is needed"))?;
    }
    Ok(())
}

/// Deletes what [`apply`] made, the last first; the `ServiceAccount` goes with its namespace, in which there is nothing
/// else. Returns what became of each object, in words.
pub(in crate::cli) async fn remove(client: &Client) -> anyhow::Result<Vec<String>> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let account = accounts.get_metadata_opt(SERVICE_ACCOUNT).await.context("reading the hub's account in the member")?;
    let mut outcomes = Vec::new();
    for object in manifest()?.iter().rev().filter(|object| object.metadata.namespace.is_none()) {
        let (api, kind, name) = place(client, object)?;
        let reading = || format!("reading {kind} {name} of the member; an administrator's kubeconfig is needed");
        let found = api.get_metadata_opt(&name).await.with_context(reading)?;
        // A namespace has no field of which managers could be told. It is join's if the account in it is.
        let holder =
            if name == NAMESPACE { account.as_ref().map(|account| &account.metadata) } else { found.as_ref().map(|f| &f.metadata) };
        let outcome = match &found {
            None => "is not there",
            Some(found) if found.metadata.deletion_timestamp.is_some() => "is being deleted in the member",
            Some(_) if !holder.is_some_and(is_joins) => "was not applied by join: it stays",
            Some(found) => {
                let preconditions = Preconditions { uid: found.metadata.uid.clone(), resource_version: None };
                match api.delete(&name, &DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }).await {
                    Ok(_) => "deleted in the member",
                    Err(kube::Error::Api(status)) if status.is_not_found() => "is not there",
                    Err(error) => return Err(error).with_context(|| format!("deleting {kind} {name} of the member")),
                }
            }
        };
        outcomes.push(format!("{kind} {name} {outcome}"));
    }
    Ok(outcomes)
}

/// Whether join manages fields of an object.
fn is_joins(metadata: &ObjectMeta) -> bool {
    metadata.managed_fields.iter().flatten().any(|entry| entry.manager.as_deref() == Some(MANAGER))
}

/// Where an object of the account belongs, its kind and its name.
fn place(client: &Client, object: &DynamicObject) -> anyhow::Result<(Api<DynamicObject>, String, String)> {
    let types = object.types.clone().unwrap_or_default();
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types)?);
    let api = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    Ok((api, types.kind, object.metadata.name.clone().unwrap_or_default()))
}

/// A token with an end, as late as the member grants.
pub(super) async fn request_token(client: &Client) -> anyhow::Result<Token> {
    let api: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let answer = api
        .create_token_request(SERVICE_ACCOUNT, &PostParams::default(), &request)
        .await
        .context("asking the member for a token of the hub's account")?;
    let status = answer.status.unwrap_or_default();
    let token = status.token.context("the member's answer holds no token")?;
    let expires_at = status.expiration_timestamp.context("the member's answer does not say when the token ends")?;
    Ok(Token { secret: token.into(), expires_at: Some(expires_at.0) })
}

/// A token without an end, which lives in a Secret of the member.
pub(super) async fn long_lived_token(client: &Client) -> anyhow::Result<Token> {
    let api: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": TOKEN_SECRET, "annotations": {"kubernetes.io/service-account.name": SERVICE_ACCOUNT}},
    });
    api.patch(TOKEN_SECRET, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&secret))
        .await
        .with_context(|| format!("applying Secret {NAMESPACE}/{TOKEN_SECRET} in the member"))?;
    let until = Instant::now() + SETTLE;
    loop {
        let data = api.get(TOKEN_SECRET).await?.data.unwrap_or_default();
        if let Some(token) = data.get("token") {
            let token = String::from_utf8(token.0.clone()).context("the token in the member's Secret is not text")?;
            return Ok(Token { secret: token.into(), expires_at: None });
        }
        if Instant::now() >= until {
            bail!(
                "no token came into Secret {NAMESPACE}/{TOKEN_SECRET} of the member within {} s: \
                 its controller-manager may be down; leave --long-lived out to use a token with an end",
                SETTLE.as_secs()
            );
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Whether the account can do its work: reads a node as the account. A new binding needs a moment to count.
pub(super) async fn check(client: &Client) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let until = Instant::now() + SETTLE;
    loop {
        match nodes.list_metadata(&ListParams::default().limit(1)).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 403 && Instant::now() < until => tokio::time::sleep(POLL).await,
            Err(error) => return Err(error).context("trying the new account: the member does not let it list nodes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_holds_the_account_that_is_used() {
        let objects: Vec<String> = manifest()
            .unwrap()
            .iter()
            .map(|object| {
                let metadata = &object.metadata;
                let namespace = metadata.namespace.as_deref().unwrap_or("-");
                format!("{} {namespace}/{}", object.types.as_ref().unwrap().kind, metadata.name.as_deref().unwrap())
            })
            .collect();
        assert_eq!(
            objects,
            [
                format!("Namespace -/{NAMESPACE}"),
                format!("ServiceAccount {NAMESPACE}/{SERVICE_ACCOUNT}"),
                "ClusterRole -/odin-hub-member".to_owned(),
                "ClusterRoleBinding -/odin-hub-member".to_owned(),
            ]
        );
    }

    /// What is granted at large is granted for good: each right is named, and those that would let the account out of its
    /// bounds are not among them.
    #[test]
    fn the_account_may_do_what_is_named_and_nothing_at_large() {
        let role = manifest().unwrap().into_iter().find(|object| object.types.as_ref().unwrap().kind == "ClusterRole").unwrap();
        let rules = role.data["rules"].as_array().unwrap().clone();
        let texts = |rule: &serde_json::Value, key: &str| -> Vec<String> {
            rule[key].as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let written = ["deployments", "leaderworkersets", "services"];
        for rule in &rules {
            let (groups, resources, verbs) = (texts(rule, "apiGroups"), texts(rule, "resources"), texts(rule, "verbs"));
            assert!(groups.iter().chain(&resources).chain(&verbs).all(|text| !text.contains('*')), "{rule}");
            for kept in ["secrets", "serviceaccounts", "pods/exec", "roles", "clusterroles", "rolebindings", "clusterrolebindings"] {
                assert!(!resources.iter().any(|resource| resource == kept), "{rule}");
            }
            let writes = |verb: &String| !matches!(verb.as_str(), "get" | "list" | "watch");
            if resources != ["namespaces"] && verbs.iter().any(writes) {
                assert!(resources.iter().all(|resource| written.contains(&resource.as_str())), "{rule}");
                assert_eq!(verbs, ["get", "list", "watch", "create", "patch", "delete"], "{rule}");
            }
        }
        let granted: Vec<String> = rules.iter().flat_map(|rule| texts(rule, "resources")).collect();
        for followed in ["nodes", "pods", "resourcequotas", "events", "replicasets", "statefulsets"].iter().chain(&written) {
            assert_eq!(granted.iter().filter(|resource| resource == followed).count(), 1, "{followed}");
        }
    }
}
