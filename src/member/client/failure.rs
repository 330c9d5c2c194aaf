//! What an error of a call means.
//!
//! The code alone doesn't tell: admission webhooks deny with 403 like missing permission does, and an API server whose
//! webhook is down answers 500. The reason and the message of the `Status` decide where they can.

use std::error::Error;
use std::io;
use std::time::Duration;

use kube::core::Status;

use super::bounds::{Phase, TimedOut, TooLarge};

/// Longest text of a member that is kept, in bytes: a member may be hostile.
const MAX_TEXT: usize = 1024;

/// What an error of a call means. Texts are the server's own words where it answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The request never reached the server: no connection, or no TLS.
    Unreachable(String),
    /// No complete answer: whether a write was carried out is unknown. Read before writing again.
    Unknown(String),
    /// The server doesn't accept the credential (401).
    Unauthorized(String),
    /// The account lacks permission (403 from the authorizer).
    Forbidden(String),
    /// There is no such object, or no such kind (404).
    NotFound(String),
    /// An object of this name is there already (409).
    AlreadyExists(String),
    /// The object changed in between, or isn't the one that was meant (409).
    Conflict(String),
    /// The object is refused: by validation, an admission plugin, a webhook, a policy or a quota.
    Denied(String),
    /// The watch or list can't go on from where it was (410).
    Gone(String),
    /// The server can't now: overloaded, not ready, or a webhook doesn't answer. It may name a pause.
    Busy {
        /// What it said.
        message: String,
        /// The pause that it asks for.
        after: Option<Duration>,
    },
    /// What can't happen with an API server that works: an answer that is none, or one that is too large.
    Broken(String),
}

impl Failure {
    /// For people.
    pub fn message(&self) -> &str {
        match self {
            Self::Unreachable(text)
            | Self::Unknown(text)
            | Self::Unauthorized(text)
            | Self::Forbidden(text)
            | Self::NotFound(text)
            | Self::AlreadyExists(text)
            | Self::Conflict(text)
            | Self::Denied(text)
            | Self::Gone(text)
            | Self::Broken(text)
            | Self::Busy { message: text, .. } => text,
        }
    }

    /// Whether the server answered at all.
    pub fn answered(&self) -> bool {
        !matches!(self, Self::Unreachable(_) | Self::Unknown(_))
    }
}

/// What an error of kube's client means.
pub fn classify(error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => of_status(status),
        kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => Failure::Broken("the answer is no JSON of the expected form".to_owned()),
        other => of_transport(other),
    }
}

/// What a `Status` means.
pub(in crate::member) fn of_status(status: &Status) -> Failure {
    let message = shorten(&status.message);
    let after = status.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0);
    let busy = |message| Failure::Busy { message, after: after.map(|seconds| Duration::from_secs(seconds.into())) };
    match (status.code, status.reason.as_str()) {
        (401, _) => Failure::Unauthorized(message),
        (403, _) if is_missing_permission(&status.message) => Failure::Forbidden(message),
        (404, _) => Failure::NotFound(message),
        (409, "AlreadyExists") => Failure::AlreadyExists(message),
        (409, _) => Failure::Conflict(message),
        (410, _) => Failure::Gone(message),
        (429, _) => busy(message),
        // The request may still be carried out after the server gave up waiting for it.
        (504, _) | (_, "Timeout") => Failure::Unknown(message),
        (400..=499, _) => Failure::Denied(message),
        _ => busy(message),
    }
}

/// The authorizer's own wording, which admission plugins and webhooks don't use.
fn is_missing_permission(message: &str) -> bool {
    message.contains("User \"") && message.contains("\" cannot ")
}

fn of_transport(error: &(dyn Error + 'static)) -> Failure {
    let mut never_sent = false;
    let mut texts: Vec<String> = Vec::new();
    let mut timed_out = None;
    let mut too_large = None;
    let mut next = Some(error);
    // Sources may form a ring if a library is wrong.
    for _ in 0..16 {
        let Some(error) = next else { break };
        if let Some(late) = error.downcast_ref::<TimedOut>() {
            timed_out = Some(*late);
        }
        too_large = too_large.or(error.downcast_ref::<TooLarge>().copied());
        never_sent |= error.downcast_ref::<hyper_util::client::legacy::Error>().is_some_and(hyper_util::client::legacy::Error::is_connect);
        texts.push(error.to_string());
        // An I/O error that wraps another passes over it in its own source.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    if let Some(late) = timed_out {
        return match late.phase {
            Phase::Turn => Failure::Busy { message: late.to_string(), after: None },
            Phase::Connect => Failure::Unreachable(late.to_string()),
            Phase::Headers | Phase::Body => Failure::Unknown(late.to_string()),
        };
    }
    if let Some(large) = too_large {
        return Failure::Broken(large.to_string());
    }
    // The innermost error says what happened; what is around it says where in the client.
    let text = shorten(texts.last().map_or("", String::as_str));
    if never_sent { Failure::Unreachable(text) } else { Failure::Unknown(text) }
}

/// Cut at a character, with a mark where something is missing.
pub(in crate::member) fn shorten(text: &str) -> String {
    let text = text.trim();
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let mut end = MAX_TEXT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, reason: &str, message: &str) -> Status {
        Status::failure(message, reason).with_code(code)
    }

    #[test]
    fn a_status_is_told_by_code_reason_and_message() {
        let rbac = r#"nodes is forbidden: User "system:serviceaccount:default:hub" cannot list resource "nodes" in API group "" at the cluster scope"#;
        let webhook = "admission webhook \"vleaderworkerset.kb.io\" denied the request: spec.rolloutStrategy: Invalid value";
        let quota = "deployments.apps \"a\" is forbidden: exceeded quota: q, requested: count/deployments.apps=1";
        type Case = (Status, fn(String) -> Failure);
        let cases: [Case; 13] = [
            (status(401, "Unauthorized", "Unauthorized"), Failure::Unauthorized),
            (status(403, "Forbidden", rbac), Failure::Forbidden),
            (status(403, "Forbidden", webhook), Failure::Denied),
            (status(403, "Forbidden", quota), Failure::Denied),
            (status(404, "NotFound", "deployments.apps \"a\" not found"), Failure::NotFound),
            (status(409, "AlreadyExists", "exists"), Failure::AlreadyExists),
            (status(409, "Conflict", "uid mismatch"), Failure::Conflict),
            (status(410, "Expired", "too old"), Failure::Gone),
            (status(422, "Invalid", "uid: field is immutable"), Failure::Denied),
            (status(400, "BadRequest", "strict decoding error"), Failure::Denied),
            (status(504, "Timeout", "gave up"), Failure::Unknown),
            (status(500, "Timeout", "gave up"), Failure::Unknown),
            (status(413, "", "too large"), Failure::Denied),
        ];
        for (status, want) in cases {
            assert_eq!(of_status(&status), want(status.message.clone()), "{status:?}");
        }
        for code in [429, 500, 503] {
            assert_eq!(of_status(&status(code, "", "later")), Failure::Busy { message: "later".into(), after: None }, "{code}");
        }
    }

    #[test]
    fn a_server_may_name_a_pause() {
        let details = serde_json::from_value(serde_json::json!({"retryAfterSeconds": 7})).unwrap();
        let status = status(429, "TooManyRequests", "slow down").with_details(details);
        assert_eq!(of_status(&status), Failure::Busy { message: "slow down".into(), after: Some(Duration::from_secs(7)) });
    }

    #[test]
    fn a_timeout_tells_whether_the_request_was_sent() {
        let limit = Duration::from_secs(1);
        let of = |phase| classify(&kube::Error::Service(Box::new(io::Error::other(TimedOut { phase, limit }))));
        assert!(matches!(of(Phase::Turn), Failure::Busy { .. }));
        assert!(matches!(of(Phase::Connect), Failure::Unreachable(_)));
        assert!(matches!(of(Phase::Headers), Failure::Unknown(_)));
        assert!(matches!(of(Phase::Body), Failure::Unknown(_)));
        assert_eq!(of(Phase::Headers).message(), "no answer within 1s");
    }

    #[test]
    fn a_broken_connection_leaves_the_outcome_unknown() {
        let reset = io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer");
        assert_eq!(classify(&kube::Error::Service(Box::new(reset))), Failure::Unknown("connection reset by peer".into()));
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let text = "ü".repeat(MAX_TEXT);
        let short = shorten(&text);
        assert!(short.len() <= MAX_TEXT + "…".len() && short.ends_with('…'));
        assert_eq!(shorten(" kept\n"), "kept");
    }
}
