//! The member's side of joining: the hub's account and its token.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Node, Secret, ServiceAccount};
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
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
        let types = object.types.clone().unwrap_or_default();
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types)?);
        let name = object.metadata.name.clone().unwrap_or_default();
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        api.patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&object))
            .await
            .with_context(|| format!("applying {} {name} in the member; an administrator's kubeconfig is needed", types.kind))?;
    }
    Ok(())
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
}
