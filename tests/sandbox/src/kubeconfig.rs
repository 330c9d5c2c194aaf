//! Self-contained kubeconfigs: inline material, no paths, no exec.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::certs::Identity;

/// How a kubeconfig authenticates.
#[derive(Clone, Debug)]
pub enum Auth {
    /// By client certificate.
    Certificate(Identity),
    /// By bearer token.
    Token(String),
}

/// A kubeconfig with the one context `name`, as indented JSON (which is YAML too).
pub fn render(name: &str, server: &str, ca_pem: &str, auth: &Auth) -> String {
    let user = match auth {
        Auth::Certificate(identity) => json!({
            "client-certificate-data": STANDARD.encode(&identity.cert),
            "client-key-data": STANDARD.encode(&identity.key),
        }),
        Auth::Token(token) => json!({ "token": token }),
    };
    let config: Value = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": STANDARD.encode(ca_pem)}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    });
    format!("{config:#}\n")
}
