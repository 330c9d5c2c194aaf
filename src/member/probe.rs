//! Asking a member whether it is there, and what it serves.

use kube::Client;

use super::client::{Failure, classify};
use super::health::Probe;
use super::rest;
use super::view::Fact;
use crate::api::reason::Reason;

/// What was found out about a member apart from its health.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Discovery {
    /// UID of the namespace kube-system.
    pub(super) cluster_uid: Option<String>,
    pub(super) kubernetes_version: Option<String>,
    pub(super) leader_worker_set: Fact,
    pub(super) leader_worker_set_version: Option<String>,
}

impl Default for Discovery {
    fn default() -> Self {
        Self {
            cluster_uid: None,
            kubernetes_version: None,
            leader_worker_set: Fact::unknown(Reason::Reconciling, "the member has not answered yet"),
            leader_worker_set_version: None,
        }
    }
}

/// Asks whether the member is ready and answers the account; gives the cluster's UID too.
pub(super) async fn probe(client: &Client) -> (Probe, Option<String>) {
    let readiness = readyz(client).await;
    match &readiness {
        // Each request with such a credential is answered like this.
        Err(Failure::Unauthorized(_)) => return (verdict(readiness, Ok(())), None),
        Err(failure) if !failure.answered() => return (verdict(readiness, Ok(())), None),
        _ => {}
    }
    match rest::get(client, "/api/v1/namespaces/kube-system").await {
        Ok(namespace) => {
            let uid = namespace.pointer("/metadata/uid").and_then(serde_json::Value::as_str).map(str::to_owned);
            (verdict(readiness, Ok(())), uid)
        }
        Err(failure) => (verdict(readiness, Err(failure)), None),
    }
}

async fn readyz(client: &Client) -> Result<(), Failure> {
    let request = http::Request::get("/readyz").body(Vec::new()).map_err(|error| Failure::Broken(error.to_string()))?;
    client.request_text(request).await.map(|_| ()).map_err(|error| classify(&error))
}

/// What the answers of `/readyz` and of a read with the account mean together.
fn verdict(readiness: Result<(), Failure>, read: Result<(), Failure>) -> Probe {
    match (readiness, read) {
        (Err(Failure::Unauthorized(text)), _) | (_, Err(Failure::Unauthorized(text))) => Probe::Unauthorized(text),
        (Err(failure), _) | (_, Err(failure)) if !failure.answered() => Probe::Silent(failure.message().to_owned()),
        // Some members don't let accounts see /readyz: then the read alone tells.
        (Err(Failure::Forbidden(_) | Failure::NotFound(_)) | Ok(()), Ok(())) => Probe::Alive,
        (Err(Failure::Forbidden(_) | Failure::NotFound(_)) | Ok(()), Err(Failure::Forbidden(text))) => Probe::Forbidden(text),
        (Ok(()) | Err(Failure::Forbidden(_) | Failure::NotFound(_)), Err(failure)) | (Err(failure), _) => {
            Probe::Unready(format!("the API server is not ready: {}", failure.message()))
        }
    }
}

/// Asks for versions; what can't be found out now stays what it was.
pub(super) async fn discover(client: &Client, mut known: Discovery) -> Discovery {
    if let Ok(version) = rest::get(client, "/version").await
        && let Some(version) = version.get("gitVersion").and_then(serde_json::Value::as_str)
    {
        known.kubernetes_version = Some(version.to_owned());
    }
    match rest::get(client, "/apis/leaderworkerset.x-k8s.io").await {
        Ok(group) => {
            let versions = group.get("versions").and_then(serde_json::Value::as_array).into_iter().flatten();
            let versions: Vec<&str> = versions.filter_map(|version| version.get("version")?.as_str()).collect();
            known.leader_worker_set_version = Some(versions.join(", "));
            known.leader_worker_set = Fact::yes(Reason::Available, "");
        }
        Err(Failure::NotFound(_)) => {
            known.leader_worker_set_version = None;
            known.leader_worker_set =
                Fact::no(Reason::NotInstalled, "the member serves no LeaderWorkerSet: services over several nodes can't come here");
        }
        Err(failure) => tracing::debug!(failure = failure.message(), "the kinds of a member can't be found out now"),
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_answers_make_one_verdict() {
        let text = || "text".to_owned();
        let busy = || Failure::Busy { message: text(), after: None };
        let unready = || Probe::Unready("the API server is not ready: text".into());
        let cases = [
            (Ok(()), Ok(()), Probe::Alive),
            (Err(Failure::Forbidden(text())), Ok(()), Probe::Alive),
            (Err(Failure::NotFound(text())), Ok(()), Probe::Alive),
            (Ok(()), Err(Failure::Forbidden(text())), Probe::Forbidden(text())),
            (Err(Failure::Forbidden(text())), Err(Failure::Forbidden(text())), Probe::Forbidden(text())),
            (Err(Failure::Unauthorized(text())), Ok(()), Probe::Unauthorized(text())),
            (Ok(()), Err(Failure::Unauthorized(text())), Probe::Unauthorized(text())),
            (Err(Failure::Unreachable(text())), Ok(()), Probe::Silent(text())),
            (Ok(()), Err(Failure::Unknown(text())), Probe::Silent(text())),
            (Err(busy()), Ok(()), unready()),
            (Err(busy()), Err(Failure::Forbidden(text())), unready()),
            (Ok(()), Err(busy()), unready()),
        ];
        for (readiness, read, want) in cases {
            assert_eq!(verdict(readiness.clone(), read.clone()), want, "{readiness:?} {read:?}");
        }
    }
}
