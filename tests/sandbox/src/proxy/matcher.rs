//! Which requests are meant.

use std::{fmt, sync::Arc};

use http::{Method, Uri};

type Test = dyn Fn(&Method, &Uri) -> bool + Send + Sync;

/// A set of requests, by method, path and query.
#[derive(Clone)]
pub struct Matcher(Arc<Test>);

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Matcher")
    }
}

impl Matcher {
    /// The requests for which `test` says yes.
    pub fn new(test: impl Fn(&Method, &Uri) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(test))
    }

    /// All requests.
    pub fn any() -> Self {
        Self::new(|_, _| true)
    }

    /// The requests that change something: POST, PUT, PATCH and DELETE, but for reviews (of access or tokens), which
    /// are questions in the form of a POST.
    pub fn writes() -> Self {
        Self::new(|method, uri| {
            let writes = matches!(*method, Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
            let asks = ["/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"].iter().any(|group| uri.path().starts_with(group));
            writes && !asks
        })
    }

    /// The requests of one method.
    pub fn method(method: Method) -> Self {
        Self::new(move |m, _| *m == method)
    }

    /// The requests whose path contains a text, such as `/deployments`.
    pub fn path(part: &str) -> Self {
        let part = part.to_owned();
        Self::new(move |_, uri| uri.path().contains(&part))
    }

    /// The requests that are in both sets.
    pub fn and(self, other: Self) -> Self {
        Self::new(move |method, uri| self.matches(method, uri) && other.matches(method, uri))
    }

    /// The requests that are not in the set.
    pub fn negated(self) -> Self {
        Self::new(move |method, uri| !self.matches(method, uri))
    }

    /// Whether a request is in the set.
    pub fn matches(&self, method: &Method, uri: &Uri) -> bool {
        (self.0)(method, uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_requests() {
        let deployments = || Matcher::path("/deployments");
        for (name, matcher, method, path, want) in [
            ("any", Matcher::any(), Method::GET, "/healthz", true),
            ("create", Matcher::writes(), Method::POST, "/api/v1/pods", true),
            ("patch", Matcher::writes(), Method::PATCH, "/api/v1/pods/a", true),
            ("read", Matcher::writes(), Method::GET, "/api/v1/pods", false),
            ("review", Matcher::writes(), Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false),
            ("path", deployments(), Method::GET, "/apis/apps/v1/deployments?watch=1", true),
            ("query is not path", Matcher::path("watch"), Method::GET, "/api/v1/pods?watch=1", false),
            ("both", deployments().and(Matcher::method(Method::PUT)), Method::PUT, "/apis/apps/v1/deployments", true),
            ("one of both", deployments().and(Matcher::method(Method::PUT)), Method::GET, "/apis/apps/v1/deployments", false),
            ("not", deployments().negated(), Method::GET, "/apis/apps/v1/deployments", false),
        ] {
            assert_eq!(matcher.matches(&method, &path.parse().unwrap()), want, "{name}");
        }
    }
}
