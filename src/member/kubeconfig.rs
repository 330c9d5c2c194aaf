//! A kubeconfig from a Secret, taken apart without trusting it.
//!
//! Only what stands in the bytes themselves is used: nothing is read from disk and nothing is run. A kubeconfig that
//! asks for either is refused, because whoever may write the Secret could otherwise run programs and read files inside
//! the hub. No error holds any text of the kubeconfig, since any of it may be secret.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::client::ConfigExt as _;
use kube::config::AuthInfo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::expiry;
use crate::api::federation::CredentialStatus;

/// Largest kubeconfig, in bytes: no Secret can hold a larger one.
const MAX_BYTES: usize = 1 << 20;

/// How the hub shows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// A bearer token.
    Token,
    /// A client certificate.
    ClientCertificate,
}

impl CredentialKind {
    /// As the status of a `MemberCluster` spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::ClientCertificate => "clientCertificate",
        }
    }
}

/// A checked kubeconfig: where a member is and how the hub shows who it is. Debug prints nothing of it.
#[derive(Clone)]
pub struct Credential {
    config: kube::Config,
    kind: CredentialKind,
    expires_at: Option<Timestamp>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Credential {
    /// How the hub shows who it is.
    pub fn kind(&self) -> CredentialKind {
        self.kind
    }

    /// When it ends, if it says so: `exp` of a JSON Web Token, `notAfter` of a certificate.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }

    /// What the status of the `MemberCluster` tells about it. It changes at most once a day for equal credentials.
    pub fn status(&self, now: Timestamp) -> CredentialStatus {
        CredentialStatus {
            type_: self.kind.as_str().to_owned(),
            expires_at: self.expires_at.map(Time),
            expires_in: self.expires_at.map(|end| days_until(end, now)),
            renewed_by: None,
        }
    }

    pub(super) fn config(&self) -> &kube::Config {
        &self.config
    }
}

fn days_until(end: Timestamp, now: Timestamp) -> String {
    let left = end.duration_since(now);
    match left.as_hours() / 24 {
        _ if left <= SignedDuration::ZERO => "expired".to_owned(),
        0 => "<1d".to_owned(),
        days => format!("{days}d"),
    }
}

/// Why a kubeconfig is refused. It names the field and says what to do, and holds nothing of the kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct KubeconfigError {
    /// The field, for example `users[0].user.exec`.
    pub field: String,
    /// What is wrong with it and what to do.
    pub message: String,
}

fn refuse<T>(field: impl Into<String>, message: impl Into<String>) -> Result<T, KubeconfigError> {
    Err(KubeconfigError { field: field.into(), message: message.into() })
}

/// Takes a kubeconfig apart: the current context with its cluster and user, or the only context there is.
///
/// # Errors
/// When it is no kubeconfig, or when the current context uses anything but inline material over https.
pub fn parse_kubeconfig(bytes: &[u8]) -> Result<Credential, KubeconfigError> {
    let document = document(bytes)?;
    let root = Section { path: String::new(), fields: &document };
    let context = current_context(&root)?;
    let cluster = named(&root, "clusters", "cluster", &context, "cluster")?;
    let user = named(&root, "users", "user", &context, "user")?;
    let (auth_info, kind, expires_at) = identity(&user)?;
    let config = connection(&cluster, auth_info)?;
    if config.rustls_client_config().is_err() {
        return match kind {
            CredentialKind::ClientCertificate => refuse(
                user.at("client-key-data"),
                "is no private key of the certificate in client-certificate-data: both come from one issue",
            ),
            CredentialKind::Token => {
                refuse(cluster.at("certificate-authority-data"), "holds a certificate that can't be used as an authority")
            }
        };
    }
    Ok(Credential { config, kind, expires_at })
}

fn document(bytes: &[u8]) -> Result<Map<String, Value>, KubeconfigError> {
    const FIELD: &str = "kubeconfig";
    if bytes.len() > MAX_BYTES {
        return refuse(
            FIELD,
            "is larger than 1 MiB: keep only the context that leads to the member (kubectl config view --minify --flatten)",
        );
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return refuse(FIELD, "is not UTF-8 text: store the file itself, neither compressed nor encoded twice");
    };
    match serde_saphyr::from_str::<Value>(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => refuse(FIELD, "is no YAML mapping: store a kubeconfig as kubectl config view --minify --flatten prints it"),
        Err(error) => {
            let place = error.location().map(|at| format!(" (line {}, column {})", at.line(), at.column())).unwrap_or_default();
            refuse(FIELD, format!("is not YAML{place}: store a kubeconfig as kubectl config view --minify --flatten prints it"))
        }
    }
}

/// A mapping of the kubeconfig and where it stands.
struct Section<'a> {
    path: String,
    fields: &'a Map<String, Value>,
}

impl<'a> Section<'a> {
    fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// A value that says something: kubectl takes null, empty text and false for absent.
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.fields.get(key).filter(|value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            _ => true,
        })
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, KubeconfigError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => refuse(self.at(key), "is no text: put it in quotes"),
        }
    }

    fn refuse_if_set(&self, key: &str, message: &str) -> Result<(), KubeconfigError> {
        if self.get(key).is_some() { refuse(self.at(key), message) } else { Ok(()) }
    }

    /// The PEM text of a base64 field.
    fn pem(&self, key: &str) -> Result<Option<Vec<u8>>, KubeconfigError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let compact: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        match STANDARD.decode(compact) {
            Ok(pem) => Ok(Some(pem)),
            Err(_) => refuse(self.at(key), "is not base64: it holds a PEM file in base64"),
        }
    }
}

/// The section of the current context.
fn current_context<'a>(root: &Section<'a>) -> Result<Section<'a>, KubeconfigError> {
    let contexts = list(root, "contexts")?;
    let current = root.text("current-context")?;
    let entry = match (current, contexts) {
        (_, []) => return refuse("contexts", "is empty: a kubeconfig needs a context that joins a cluster and a user"),
        (None, [_]) => 0,
        (None, _) => {
            return refuse("current-context", "is missing and there are several contexts: set the one that leads to the member");
        }
        (Some(name), contexts) => match position(contexts, name) {
            Some(entry) => entry,
            None => return refuse("current-context", "names no entry of contexts: set it to the one that leads to the member"),
        },
    };
    inner(root, "contexts", entry, "context")
}

/// The section of the cluster or user that the context names in its field `key`.
fn named<'a>(root: &Section<'a>, entries: &str, body: &str, context: &Section<'_>, key: &str) -> Result<Section<'a>, KubeconfigError> {
    let Some(name) = context.text(key)? else {
        return refuse(context.at(key), format!("is missing: it names an entry of {entries}"));
    };
    match position(list(root, entries)?, name) {
        Some(entry) => inner(root, entries, entry, body),
        None => refuse(context.at(key), format!("names no entry of {entries}")),
    }
}

fn list<'a>(root: &Section<'a>, key: &str) -> Result<&'a [Value], KubeconfigError> {
    match root.get(key) {
        None => Ok(&[]),
        Some(Value::Array(entries)) => Ok(entries),
        Some(_) => refuse(root.at(key), "is no list"),
    }
}

fn position(entries: &[Value], name: &str) -> Option<usize> {
    entries.iter().position(|entry| entry.get("name").and_then(Value::as_str) == Some(name))
}

fn inner<'a>(root: &Section<'a>, entries: &str, entry: usize, body: &str) -> Result<Section<'a>, KubeconfigError> {
    let path = format!("{entries}[{entry}].{body}");
    match list(root, entries)?.get(entry).and_then(|e| e.get(body)) {
        Some(Value::Object(fields)) => Ok(Section { path, fields }),
        _ => refuse(path, "is no mapping"),
    }
}

fn identity(user: &Section<'_>) -> Result<(AuthInfo, CredentialKind, Option<Timestamp>), KubeconfigError> {
    const JOIN: &str = "run odin-hub join NAME --kubeconfig F on a machine where this kubeconfig works: it makes an account for the hub in the \
                        member and stores a kubeconfig that needs nothing else";
    let file = |inline: &str| {
        format!("is a path, and the hub reads no files for a member: put the content into {inline} (kubectl config view --flatten does)")
    };
    user.refuse_if_set("exec", &format!("runs a program, which the hub never does: {JOIN}"))?;
    user.refuse_if_set("auth-provider", &format!("needs a login of a cloud, which the hub doesn't have: {JOIN}"))?;
    user.refuse_if_set("tokenFile", &file("token"))?;
    user.refuse_if_set("client-certificate", &file("client-certificate-data"))?;
    user.refuse_if_set("client-key", &file("client-key-data"))?;
    for key in ["username", "password"] {
        user.refuse_if_set(key, &format!("is basic authentication, which API servers no longer accept: {JOIN}"))?;
    }
    for key in ["as", "as-uid", "as-groups", "as-user-extra"] {
        user.refuse_if_set(key, &format!("impersonates another user, so that the member can't tell who acts: {JOIN}"))?;
    }

    let mut auth_info = AuthInfo::default();
    let certificate = user.pem("client-certificate-data")?;
    let key = user.pem("client-key-data")?;
    let mut certificate_end = None;
    match (certificate, key) {
        (None, None) => {}
        (Some(_), None) => return refuse(user.at("client-key-data"), "is missing beside client-certificate-data"),
        (None, Some(_)) => return refuse(user.at("client-certificate-data"), "is missing beside client-key-data"),
        (Some(certificate), Some(key)) => {
            let Some(first) = certificates(&certificate).into_iter().next() else {
                return refuse(user.at("client-certificate-data"), "holds no certificate in PEM");
            };
            if PrivateKeyDer::from_pem_slice(&key).is_err() {
                return refuse(user.at("client-key-data"), "holds no private key in PEM");
            }
            certificate_end = expiry::of_certificate(&first);
            auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
            auth_info.client_key_data = Some(SecretString::from(STANDARD.encode(key)));
        }
    }
    if let Some(token) = user.text("token")? {
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return refuse(user.at("token"), "holds spaces, line breaks or other characters that a token can't have");
        }
        auth_info.token = Some(SecretString::from(token.to_owned()));
        return Ok((auth_info, CredentialKind::Token, expiry::of_token(token)));
    }
    if auth_info.client_certificate_data.is_none() {
        return refuse(user.path.as_str(), format!("has neither token nor client-certificate-data and client-key-data: {JOIN}"));
    }
    Ok((auth_info, CredentialKind::ClientCertificate, certificate_end))
}

fn certificates(pem: &[u8]) -> Vec<Vec<u8>> {
    CertificateDer::pem_slice_iter(pem).map_while(Result::ok).map(|der| der.to_vec()).collect()
}

fn connection(cluster: &Section<'_>, auth_info: AuthInfo) -> Result<kube::Config, KubeconfigError> {
    cluster.refuse_if_set(
        "insecure-skip-tls-verify",
        "lets anyone pose as the member and take its credential: put the member's CA into certificate-authority-data",
    )?;
    cluster.refuse_if_set(
        "certificate-authority",
        "is a path, and the hub reads no files for a member: put the content into certificate-authority-data (kubectl config view --flatten does)",
    )?;
    let server = uri(cluster, "server")?;
    let Some(server) = server else {
        return refuse(cluster.at("server"), "is missing: it is the https URL of the member's API server");
    };
    if server.scheme_str() != Some("https") {
        return refuse(cluster.at("server"), "is not https: a credential is only sent over TLS");
    }
    if server.authority().is_some_and(|authority| authority.as_str().contains('@')) || server.query().is_some() {
        return refuse(cluster.at("server"), "holds a user or a query: only host, port and path belong there");
    }

    let mut config = kube::Config::new(server);
    config.auth_info = auth_info;
    config.default_retry = false;
    if let Some(pem) = cluster.pem("certificate-authority-data")? {
        let authorities = certificates(&pem);
        if authorities.is_empty() {
            return refuse(cluster.at("certificate-authority-data"), "holds no certificate in PEM");
        }
        config.root_cert = Some(authorities);
    }
    if let Some(name) = cluster.text("tls-server-name")? {
        if ServerName::try_from(name).is_err() {
            return refuse(cluster.at("tls-server-name"), "is no host name");
        }
        config.tls_server_name = Some(name.to_owned());
    }
    if let Some(proxy) = uri(cluster, "proxy-url")? {
        if !matches!(proxy.scheme_str(), Some("http" | "socks5")) {
            return refuse(cluster.at("proxy-url"), "is neither http:// nor socks5://: the hub speaks to no other kind of proxy");
        }
        config.proxy_url = Some(proxy);
    }
    Ok(config)
}

/// A URL with a scheme and a host.
fn uri(section: &Section<'_>, key: &str) -> Result<Option<Uri>, KubeconfigError> {
    let Some(text) = section.text(key)? else { return Ok(None) };
    match text.parse::<Uri>() {
        Ok(uri) if uri.scheme().is_some() && uri.host().is_some_and(|host| !host.is_empty()) => Ok(Some(uri)),
        _ => refuse(section.at(key), "is no URL with scheme and host"),
    }
}

#[cfg(test)]
#[path = "kubeconfig_tests.rs"]
mod tests;
