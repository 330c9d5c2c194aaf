//! What a member serves: versions, and which release of `LeaderWorkerSet`.

use kube::Client;
use serde_json::Value;

use super::client::Failure;
use super::rest;
use super::view::Fact;
use crate::api::lws::Release;
use crate::api::reason::Reason;

/// What was found out about a member apart from its health.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Discovery {
    /// UID of the namespace kube-system.
    pub(super) cluster_uid: Option<String>,
    pub(super) kubernetes_version: Option<String>,
    pub(super) leader_worker_set: Fact,
    pub(super) leader_worker_set_version: Option<String>,
    pub(super) leader_worker_set_release: Option<Release>,
    /// The document that the release was read from. Its address changes with its content.
    document: Option<String>,
    /// The group was there and was not found: an API server that has just started says so of one that is there.
    pub(super) in_doubt: bool,
}

impl Default for Discovery {
    fn default() -> Self {
        Self {
            cluster_uid: None,
            kubernetes_version: None,
            leader_worker_set: Fact::unknown(Reason::Reconciling, "the member has not answered yet"),
            leader_worker_set_version: None,
            leader_worker_set_release: None,
            document: None,
            in_doubt: false,
        }
    }
}

impl Discovery {
    /// The member doesn't serve the group, or not yet again.
    fn not_found(&mut self) {
        self.in_doubt = self.leader_worker_set.holds() && !self.in_doubt;
        if self.in_doubt {
            return;
        }
        self.leader_worker_set_version = None;
        self.leader_worker_set_release = None;
        self.document = None;
        self.leader_worker_set =
            Fact::no(Reason::NotInstalled, "the member serves no LeaderWorkerSet: services over several nodes can't come here");
    }

    /// The versions of `LeaderWorkerSet` for people, with the release as far as it is known.
    pub(super) fn shown_version(&self) -> Option<String> {
        let versions = self.leader_worker_set_version.as_ref()?;
        Some(match self.leader_worker_set_release {
            Some(release) => format!("{versions} ({})", shown(release)),
            None => versions.clone(),
        })
    }
}

fn shown(release: Release) -> &'static str {
    match release {
        Release::Before0_7 => "before 0.7",
        Release::V0_7 => "0.7",
        Release::V0_8 => "0.8",
        Release::V0_9 => "0.9+",
    }
}

/// Asks for versions; what can't be found out now stays what it was.
pub(super) async fn discover(client: &Client, mut known: Discovery) -> Discovery {
    if let Ok(version) = rest::get(client, "/version").await
        && let Some(version) = version.get("gitVersion").and_then(Value::as_str)
    {
        known.kubernetes_version = Some(version.to_owned());
    }
    match rest::get(client, "/apis/leaderworkerset.x-k8s.io").await {
        Ok(group) => {
            let versions = group.get("versions").and_then(Value::as_array).into_iter().flatten();
            let versions: Vec<&str> = versions.filter_map(|version| version.get("version")?.as_str()).collect();
            if !versions.contains(&"v1") {
                known.not_found();
                return known;
            }
            known.leader_worker_set_version = Some(versions.join(", "));
            known.leader_worker_set = Fact::yes(Reason::Available, "");
            known.in_doubt = false;
            if let Err(failure) = find_release(client, &mut known).await {
                tracing::debug!(failure = failure.message(), "the release of LeaderWorkerSet in a member can't be found out now");
            }
        }
        Err(Failure::NotFound(_)) => known.not_found(),
        Err(failure) => tracing::debug!(failure = failure.message(), "the kinds of a member can't be found out now"),
    }
    known
}

/// Reads the definition of `LeaderWorkerSet`, unless it is the one that was read before.
async fn find_release(client: &Client, known: &mut Discovery) -> Result<(), Failure> {
    let index = rest::get(client, "/openapi/v3").await?;
    let Some(document) = document(&index) else { return Ok(()) };
    if known.document.as_deref() != Some(document) {
        known.leader_worker_set_release = release(&rest::get(client, document).await?);
        known.document = Some(document.to_owned());
    }
    Ok(())
}

/// Where the definitions of the group are.
fn document(index: &Value) -> Option<&str> {
    let path = index.get("paths")?.get("apis/leaderworkerset.x-k8s.io/v1")?.get("serverRelativeURL")?.as_str()?;
    // It comes from the member, and nothing but its own API may be asked.
    Some(path).filter(|path| path.starts_with("/openapi/v3/"))
}

/// The release whose fields the definition of `LeaderWorkerSet` has.
fn release(document: &Value) -> Option<Release> {
    let schemas = document.pointer("/components/schemas")?.as_object()?;
    let is_lws = |schema: &&Value| {
        let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
        kinds.into_iter().flatten().any(|kind| kind.get("kind").is_some_and(|kind| kind == "LeaderWorkerSet"))
    };
    let schema = schemas.values().find(is_lws)?;
    let has = |path: &[&str]| {
        let mut schema = Some(schema);
        for field in path {
            schema = schema.and_then(|schema| schema.get("properties")?.get(field));
        }
        schema.is_some()
    };
    has(&["spec"]).then(|| {
        if has(&["status", "observedGeneration"]) {
            Release::V0_9
        } else if has(&["spec", "leaderWorkerTemplate", "volumeClaimTemplates"]) {
            Release::V0_8
        } else if has(&["spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition"]) {
            Release::V0_7
        } else {
            Release::Before0_7
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::condition::Truth;

    fn definition(template: &Value, rollout: &Value, status: &Value) -> Value {
        let object = |properties: Value| json!({"type": "object", "properties": properties});
        let rollout = object(json!({"rollingUpdateConfiguration": object(rollout.clone())}));
        let spec = object(json!({"leaderWorkerTemplate": object(template.clone()), "rolloutStrategy": rollout}));
        let mut schema = object(json!({"spec": spec, "status": object(status.clone())}));
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": "leaderworkerset.x-k8s.io", "kind": "LeaderWorkerSet", "version": "v1"}]);
        json!({"components": {"schemas": {
            "io.x-k8s.leaderworkerset.v1.LeaderWorkerSet": schema,
            "io.x-k8s.leaderworkerset.v1.LeaderWorkerSetList": {"properties": {"items": {}}},
        }}})
    }

    #[test]
    fn releases_are_told_apart_by_their_fields() {
        let (none, partition, claims, observed) =
            (json!({}), json!({"partition": {}}), json!({"volumeClaimTemplates": {}}), json!({"observedGeneration": {}}));
        for (document, want) in [
            (definition(&none, &none, &none), Some(Release::Before0_7)),
            (definition(&none, &partition, &none), Some(Release::V0_7)),
            (definition(&claims, &partition, &none), Some(Release::V0_8)),
            (definition(&claims, &partition, &observed), Some(Release::V0_9)),
            (json!({"components": {"schemas": {}}}), None),
            (json!({}), None),
        ] {
            assert_eq!(release(&document), want, "{document}");
        }
    }

    #[test]
    fn what_was_there_is_absent_when_that_is_said_twice() {
        let mut known = Discovery::default();
        known.not_found();
        assert_eq!((known.leader_worker_set.truth, known.in_doubt), (Truth::False, false), "it never was");
        known.leader_worker_set = Fact::yes(Reason::Available, "");
        known.not_found();
        assert!(known.leader_worker_set.holds() && known.in_doubt);
        known.not_found();
        assert_eq!((known.leader_worker_set.truth, known.in_doubt), (Truth::False, false));
    }

    #[test]
    fn the_document_is_one_of_the_member_s_own_api() {
        let index = |url: &str| json!({"paths": {"apis/leaderworkerset.x-k8s.io/v1": {"serverRelativeURL": url}}});
        let path = "/openapi/v3/apis/leaderworkerset.x-k8s.io/v1?hash=A1";
        assert_eq!(document(&index(path)), Some(path));
        assert_eq!(document(&index("//elsewhere/x")), None);
        assert_eq!(document(&json!({"paths": {}})), None);
    }

    #[test]
    fn the_version_is_shown_with_the_release() {
        let mut known = Discovery::default();
        assert_eq!(known.shown_version(), None);
        known.leader_worker_set_version = Some("v1".to_owned());
        assert_eq!(known.shown_version().as_deref(), Some("v1"));
        for (release, want) in [
            (Release::Before0_7, "v1 (before 0.7)"),
            (Release::V0_7, "v1 (0.7)"),
            (Release::V0_8, "v1 (0.8)"),
            (Release::V0_9, "v1 (0.9+)"),
        ] {
            known.leader_worker_set_release = Some(release);
            assert_eq!(known.shown_version().as_deref(), Some(want));
        }
    }
}
