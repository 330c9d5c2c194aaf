//! Asking a member whether it is there.

use kube::Client;

use super::client::{Failure, classify};
use super::health::Probe;
use super::rest;

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
