//! Credentials for accounts and users of a cluster.

use anyhow::{Context, Result, anyhow};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject};
use serde_json::json;

use super::Cluster;
use super::controlplane::ISSUER;
use crate::kubeconfig::{self, Auth};

/// Life of a token that the API server issues, in seconds: longer than any run.
const TOKEN_SECONDS: i64 = 24 * 3600;

impl Cluster {
    /// A kubeconfig of a `ServiceAccount` with a token that the API server issued (`TokenRequest`).
    pub async fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> Result<String> {
        let api: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        let spec = TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let answer = api.create_token_request(name, &PostParams::default(), &request).await;
        let answer = answer.with_context(|| format!("token of ServiceAccount {namespace}/{name} in {}", self.name()))?;
        let token = answer.status.and_then(|status| status.token).context("the answer to a TokenRequest has no token")?;
        Ok(self.kubeconfig_of(&Auth::Token(token)))
    }

    /// A kubeconfig of a `ServiceAccount` with a token of any life, signed here with the cluster's own key:
    /// the API server issues none below ten minutes. `life` may be negative, in seconds.
    ///
    /// The API server grants 60 s after the end, and keeps what it found about a token for 10 s: -50 gives
    /// a token that dies in some 10 s, -120 a dead one.
    pub async fn kubeconfig_with_minted_token(&self, namespace: &str, name: &str, life: i64) -> Result<String> {
        let api: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        let account = api.get(name).await.with_context(|| format!("ServiceAccount {namespace}/{name}"))?;
        let uid = account.metadata.uid.context("a ServiceAccount without UID")?;
        let now = Timestamp::now().as_second();
        let head = json!({"alg": "ES256", "typ": "JWT"});
        let claims = json!({
            "iss": ISSUER,
            "aud": [ISSUER],
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
            "iat": now,
            "nbf": now,
            "exp": now + life,
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
        });
        let body = format!("{}.{}", URL_SAFE_NO_PAD.encode(head.to_string()), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let random = SystemRandom::new();
        let key = PrivatePkcs8KeyDer::from_pem_slice(self.token_key.as_bytes()).map_err(|error| anyhow!("token key: {error}"))?;
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.secret_pkcs8_der(), &random);
        let key = key.map_err(|error| anyhow!("token key: {error}"))?;
        let signature = key.sign(&random, body.as_bytes()).map_err(|error| anyhow!("token: {error}"))?;
        Ok(self.kubeconfig_of(&Auth::Token(format!("{body}.{}", URL_SAFE_NO_PAD.encode(signature)))))
    }

    /// A kubeconfig of a user by client certificate.
    pub fn kubeconfig_for_user(&self, user: &str, groups: &[&str]) -> Result<String> {
        Ok(self.kubeconfig_of(&Auth::Certificate(self.authority.client(user, groups)?)))
    }

    /// A kubeconfig of this cluster with the given authentication.
    pub fn kubeconfig_of(&self, auth: &Auth) -> String {
        kubeconfig::render(self.name(), &self.server(), self.ca_pem(), auth)
    }
}
