//! Answers that a proxy gives by itself.

use http::{HeaderName, HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use serde_json::json;

/// An answer in place of the API server's.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: StatusCode,
    /// Headers, such as `Retry-After`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: String,
}

impl Answer {
    /// An answer with this body and no headers.
    pub fn new(status: StatusCode, body: &str) -> Self {
        Self { status, headers: vec![], body: body.to_owned() }
    }

    /// A `Status` object as an API server writes it, such as `409`, `Conflict`, `the object has been modified`.
    pub fn failure(status: StatusCode, reason: &str, message: &str) -> Self {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": status.as_u16(),
        });
        Self::new(status, &body.to_string()).header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }

    /// Bears this header too.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(super) fn response<B: From<String>>(self) -> Response<B> {
        let mut response = Response::new(B::from(self.body));
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        response
    }
}
