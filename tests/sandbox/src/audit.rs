//! What an API server was asked, from its audit log at Metadata level.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The policy that every API server of the sandbox runs with.
pub(crate) const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";

/// A place in the log: what was answered before it doesn't count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

/// One answered request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// `create`, `update`, `patch`, `delete`, `deletecollection`, `get`, `list` or `watch`.
    pub verb: String,
    /// The user, such as `system:serviceaccount:odin-hub:odin-hub`.
    pub user: String,
    /// The program, as it names itself.
    pub user_agent: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Resource in the plural, such as `deployments`.
    pub resource: String,
    /// Subresource such as `status`; else empty.
    pub subresource: String,
    /// Namespace; empty for cluster-scoped resources.
    pub namespace: String,
    /// Name; empty where the request names none.
    pub name: String,
    /// HTTP status of the answer.
    pub code: u16,
    /// Whether the request was a dry run.
    pub dry_run: bool,
    /// When the request came, RFC 3339.
    pub at: String,
}

impl AuditEntry {
    /// Whether the request was meant to change what the API server keeps: no dry runs, and no reviews of access or tokens, which are
    /// creations in form only.
    pub fn is_write(&self) -> bool {
        let verb = matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection");
        verb && !self.dry_run && !matches!(self.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io")
    }
}

/// The audit log of one API server.
#[derive(Clone, Debug)]
pub struct AuditLog {
    path: PathBuf,
}

impl AuditLog {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The end of the log as it is now.
    ///
    /// The server writes an entry right after it answered: the last answer's may still be missing for some milliseconds.
    pub fn mark(&self) -> Mark {
        Mark(self.path.metadata().map_or(0, |file| file.len()))
    }

    /// The writes that were answered since `mark` and that `wanted` lets through, refused ones included (look at the code).
    pub fn writes_since(&self, mark: Mark, wanted: impl Fn(&AuditEntry) -> bool) -> Result<Vec<AuditEntry>> {
        self.since(mark, |entry| entry.is_write() && wanted(entry))
    }

    /// All requests that were answered since `mark` and that `wanted` lets through.
    pub fn since(&self, mark: Mark, wanted: impl Fn(&AuditEntry) -> bool) -> Result<Vec<AuditEntry>> {
        let read = || -> Result<Vec<AuditEntry>> {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(mark.0))?;
            let mut entries = Vec::new();
            let (mut lines, mut line) = (BufReader::new(file), Vec::new());
            // A last line without its end is one that is being written.
            while lines.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
                if let Some(entry) = serde_json::from_slice::<Event>(&line)?.entry()
                    && wanted(&entry)
                {
                    entries.push(entry);
                }
                line.clear();
            }
            Ok(entries)
        };
        read().with_context(|| format!("audit log {}", self.path.display()))
    }
}

/// The part of an `audit.k8s.io/v1` Event that is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    stage: String,
    verb: String,
    #[serde(default, rename = "requestURI")]
    request_uri: String,
    #[serde(default)]
    user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    #[serde(default)]
    request_received_timestamp: String,
}

#[derive(Default, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ObjectRef {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

impl Event {
    /// The request, once it is over; a watch has an event for its start too.
    fn entry(self) -> Option<AuditEntry> {
        matches!(self.stage.as_str(), "ResponseComplete" | "Panic").then(|| AuditEntry {
            dry_run: self.request_uri.split_once('?').is_some_and(|(_, query)| query.split('&').any(|part| part.starts_with("dryRun="))),
            verb: self.verb,
            user: self.user.username,
            user_agent: self.user_agent,
            group: self.object_ref.api_group,
            resource: self.object_ref.resource,
            subresource: self.object_ref.subresource,
            namespace: self.object_ref.namespace,
            name: self.object_ref.name,
            code: self.response_status.code,
            at: self.request_received_timestamp,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(stage: &str, verb: &str, uri: &str, reference: &str) -> String {
        format!(
            r#"{{"kind":"Event","stage":"{stage}","verb":"{verb}","requestURI":"{uri}","user":{{"username":"u"}},"objectRef":{reference},"responseStatus":{{"code":201}}}}"#
        ) + "\n"
    }

    #[test]
    fn writes_are_those_that_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let deployments = r#"{"apiGroup":"apps","resource":"deployments","namespace":"n","name":"a"}"#;
        std::fs::write(&path, line("ResponseComplete", "create", "/before", deployments)).unwrap();
        let log = AuditLog::new(path.clone());
        let mark = log.mark();
        let mut text = std::fs::read_to_string(&path).unwrap();
        text += &line("ResponseComplete", "patch", "/a?fieldManager=x&force=true", deployments);
        text += &line("ResponseComplete", "patch", "/a?fieldManager=x&dryRun=All", deployments);
        text += &line("ResponseComplete", "get", "/a", deployments);
        text += &line("ResponseStarted", "update", "/a", deployments);
        text += &line("ResponseComplete", "create", "/r", r#"{"apiGroup":"authorization.k8s.io","resource":"selfsubjectaccessreviews"}"#);
        text += r#"{"kind":"Event","stage":"Resp"#;
        std::fs::write(&path, text).unwrap();
        let writes = log.writes_since(mark, |_| true).unwrap();
        let [write] = writes.as_slice() else { panic!("{writes:?}") };
        assert_eq!((write.verb.as_str(), write.resource.as_str(), write.name.as_str(), write.code), ("patch", "deployments", "a", 201));
        assert_eq!(log.writes_since(mark, |entry| entry.user == "someone").unwrap(), []);
    }
}
