//! Requests of the writer, on JSON as it is: an object of a member is never made into a type that might drop fields.

use http::header::CONTENT_TYPE;
use http::{Method, Request};
use kube::Client;
use serde_json::Value;

use super::client::{Failure, classify};
use super::lean::Kind;
use super::watch::encode;
use crate::api::labels::FIELD_MANAGER;

/// Path of the objects of a kind in a namespace.
pub(super) fn all(kind: Kind, namespace: &str) -> String {
    format!("{}/namespaces/{}/{}", kind.api(), encode(namespace), kind.plural())
}

/// Path of those among the objects of a path that bear a label.
pub(super) fn labelled(path: &str, label: &str, value: &str) -> String {
    format!("{path}?labelSelector={}", encode(&format!("{label}={value}")))
}

/// Path of one of the objects of a path.
pub(super) fn one(path: &str, name: &str) -> String {
    format!("{path}/{}", encode(name))
}

pub(super) async fn get(client: &Client, path: &str) -> Result<Value, Failure> {
    send(client, Method::GET, path, "", None).await
}

pub(super) async fn post(client: &Client, path: &str, body: &Value) -> Result<Value, Failure> {
    send(client, Method::POST, &format!("{path}?fieldManager={FIELD_MANAGER}"), "application/json", Some(body)).await
}

/// Server-side apply of the fields in `body`, which become the hub's; or only what would come of it.
pub(super) async fn apply(client: &Client, path: &str, body: &Value, dry_run: bool) -> Result<Value, Failure> {
    let dry_run = if dry_run { "&dryRun=All" } else { "" };
    let path = format!("{path}?fieldManager={FIELD_MANAGER}&force=true{dry_run}");
    send(client, Method::PATCH, &path, "application/apply-patch+yaml", Some(body)).await
}

pub(super) async fn json_patch(client: &Client, path: &str, body: &Value) -> Result<Value, Failure> {
    let path = format!("{path}?fieldManager={FIELD_MANAGER}");
    send(client, Method::PATCH, &path, "application/json-patch+json", Some(body)).await
}

pub(super) async fn delete(client: &Client, path: &str, options: &Value) -> Result<Value, Failure> {
    send(client, Method::DELETE, path, "application/json", Some(options)).await
}

async fn send(client: &Client, method: Method, path: &str, content_type: &str, body: Option<&Value>) -> Result<Value, Failure> {
    let broken = |error: &dyn std::error::Error| Failure::Broken(error.to_string());
    let mut request = Request::builder().method(method).uri(path);
    if !content_type.is_empty() {
        request = request.header(CONTENT_TYPE, content_type);
    }
    let bytes = match body {
        Some(body) => serde_json::to_vec(body).map_err(|error| broken(&error))?,
        None => Vec::new(),
    };
    let request = request.body(bytes).map_err(|error| broken(&error))?;
    // Text first: kube's own decoding logs the whole answer when it isn't JSON.
    let text = client.request_text(request).await.map_err(|error| classify(&error))?;
    serde_json::from_str(&text).map_err(|_| Failure::Broken("the answer is no JSON".to_owned()))
}
