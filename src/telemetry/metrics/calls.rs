//! Requests to one API server: how many, how long, and how they ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use http::{Method, Request, StatusCode, Uri};
use parking_lot::Mutex;
use prometheus_client::metrics::histogram::Histogram;

/// Buckets of the time until an API server answers, in seconds.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Code of a request without an answer, or with one whose code HTTP doesn't know.
const ERROR: &str = "error";

/// Requests to one API server.
#[derive(Debug, Default)]
pub struct Calls(Mutex<Counts>);

/// How many requests there were by verb and code, and their times by verb.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) requests: BTreeMap<(&'static str, Option<StatusCode>), u64>,
    pub(super) times: BTreeMap<&'static str, Histogram>,
}

impl Calls {
    /// A request that is sent now. It is counted when what is returned is dropped: without an answer by then it failed.
    pub fn begin<B>(self: &Arc<Self>, request: &Request<B>) -> Call {
        Call { calls: self.clone(), verb: verb(request.method(), request.uri()), start: Instant::now(), code: None }
    }

    pub(super) fn counts(&self) -> Counts {
        self.0.lock().clone()
    }
}

/// A request that has been sent.
#[derive(Debug)]
pub struct Call {
    calls: Arc<Calls>,
    verb: &'static str,
    start: Instant,
    code: Option<StatusCode>,
}

impl Call {
    /// The head of the answer is there.
    pub fn answered(&mut self, code: StatusCode) {
        // A member may be hostile: codes that mean nothing are no labels.
        self.code = code.canonical_reason().map(|_| code);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut counts = self.calls.0.lock();
        *counts.requests.entry((self.verb, self.code)).or_default() += 1;
        let times = counts.times.entry(self.verb).or_insert_with(|| Histogram::new(BUCKETS));
        times.observe(self.start.elapsed().as_secs_f64());
    }
}

/// The value of the label `code`.
pub(super) fn code(code: Option<&StatusCode>) -> &str {
    code.map_or(ERROR, StatusCode::as_str)
}

/// The verb as Kubernetes' own permissions name it.
fn verb(method: &Method, uri: &Uri) -> &'static str {
    match *method {
        Method::GET if is_watch(uri) => "watch",
        Method::GET if is_collection(uri.path()) => "list",
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

/// Whether a request opens a watch, whose response goes on for as long as it may.
pub(crate) fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "follow=true")))
}

/// Whether a path is that of all objects of a kind. What an API server's address has before `/api` doesn't count.
fn is_collection(path: &str) -> bool {
    let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).skip_while(|part| !["api", "apis"].contains(part)).collect();
    matches!(segments.as_slice(), ["api", _, _] | ["api", _, "namespaces", _, _] | ["apis", _, _, _] | ["apis", _, _, "namespaces", _, _])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_told_by_its_query() {
        for (uri, want) in [
            ("/api/v1/pods?watch=true", true),
            ("/api/v1/pods?limit=5&watch=1", true),
            ("/api/v1/pods?watch=false", false),
            ("/api/v1/pods?rewatch=true", false),
            ("/api/v1/pods/watch", false),
        ] {
            assert_eq!(is_watch(&uri.parse().unwrap()), want, "{uri}");
        }
    }

    #[test]
    fn the_verb_is_told_by_method_and_path() {
        for (method, uri, want) in [
            (Method::GET, "/api/v1/nodes?watch=true&sendInitialEvents=true", "watch"),
            (Method::GET, "/api/v1/nodes?limit=500", "list"),
            (Method::GET, "/api/v1/namespaces", "list"),
            (Method::GET, "/api/v1/namespaces/kube-system", "get"),
            (Method::GET, "/api/v1/namespaces/a/pods", "list"),
            (Method::GET, "/api/v1/namespaces/a/pods/b", "get"),
            (Method::GET, "/apis/apps/v1/deployments", "list"),
            (Method::GET, "/apis/apps/v1/namespaces/a/deployments", "list"),
            (Method::GET, "/apis/apps/v1/namespaces/a/deployments/b", "get"),
            (Method::GET, "https://rancher.example/k8s/clusters/c/apis/apps/v1/deployments", "list"),
            (Method::GET, "/readyz", "get"),
            (Method::GET, "/version", "get"),
            (Method::GET, "/apis/leaderworkerset.x-k8s.io", "get"),
            (Method::POST, "/api/v1/namespaces", "create"),
            (Method::PUT, "/api/v1/namespaces/a", "update"),
            (Method::PATCH, "/apis/apps/v1/namespaces/a/deployments/b", "patch"),
            (Method::DELETE, "/apis/apps/v1/namespaces/a/deployments/b", "delete"),
            (Method::OPTIONS, "/", "other"),
        ] {
            assert_eq!(verb(&method, &uri.parse().unwrap()), want, "{method} {uri}");
        }
    }

    #[test]
    fn a_request_is_counted_once_by_how_it_ended() {
        let calls = Arc::new(Calls::default());
        let request = Request::get("/version").body(()).unwrap();
        calls.begin(&request).answered(StatusCode::OK);
        calls.begin(&request).answered(StatusCode::FORBIDDEN);
        calls.begin(&request).answered(StatusCode::from_u16(799).unwrap());
        drop(calls.begin(&request));
        let counts = calls.counts();
        let by_code: Vec<_> = counts.requests.iter().map(|((verb, status), count)| (*verb, code(status.as_ref()), *count)).collect();
        assert_eq!(by_code, [("get", "error", 2), ("get", "200", 1), ("get", "403", 1)]);
    }
}
