//! In which namespaces of a member the hub may write. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::owner::is_leaving;
use crate::api::labels::{ALLOW, HUB};
use crate::api::reason::Reason;

/// What is to be done about a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The hub may write in it.
    Use,
    /// It isn't there: make it.
    Create,
    /// The hub may not write in it, now or at all.
    Refuse(Reason, String),
}

/// What the hub may do in the namespace `name`, which looks like `found` in the member.
pub(super) fn judge(name: &str, found: Option<&Value>, hub_id: &str) -> Verdict {
    let Some(found) = found else { return Verdict::Create };
    if is_leaving(found) {
        return Verdict::Refuse(
            Reason::WaitingForDeletion,
            format!("namespace {name} of the member is being deleted; the hub makes it again once it is gone"),
        );
    }
    let labels = found.pointer("/metadata/labels");
    if [HUB, ALLOW].iter().any(|key| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str) == Some(hub_id)) {
        return Verdict::Use;
    }
    Verdict::Refuse(
        Reason::NamespaceNotAllowed,
        format!("namespace {name} of the member is not this hub's; to allow it there: kubectl label namespace {name} {ALLOW}={hub_id}"),
    )
}

/// Why a namespace is out of bounds whatever its labels say.
pub(super) fn protected(name: &str, patterns: &[String]) -> Option<String> {
    let pattern = patterns.iter().find(|pattern| matches(pattern, name))?;
    Some(format!("namespace {name} is protected ({pattern}): the hub never writes there; move the service to another namespace"))
}

/// Whether `text` is what `pattern` says, in which `*` stands for any text.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

/// The namespace as the hub makes it, with these labels beside its own.
pub(super) fn manifest(name: &str, hub_id: &str, labels: &BTreeMap<String, String>) -> Value {
    let mut labels = labels.clone();
    labels.insert(HUB.to_owned(), hub_id.to_owned());
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_labels(labels: &Value) -> Value {
        json!({"metadata": {"name": "team", "labels": labels}})
    }

    #[test]
    fn only_namespaces_that_bear_the_hub_s_id_are_used() {
        assert_eq!(judge("team", None, "h1"), Verdict::Create);
        for (labels, want) in [
            (json!({HUB: "h1"}), true),
            (json!({ALLOW: "h1"}), true),
            (json!({ALLOW: "h1", HUB: "h2"}), true),
            (json!({HUB: "h2"}), false),
            (json!({ALLOW: "true"}), false),
            (json!(null), false),
        ] {
            let verdict = judge("team", Some(&with_labels(&labels)), "h1");
            if want {
                assert_eq!(verdict, Verdict::Use, "{labels}");
            } else {
                let Verdict::Refuse(reason, message) = verdict else { panic!("{labels}") };
                assert_eq!(reason, Reason::NamespaceNotAllowed);
                assert!(message.contains("kubectl label namespace team federation.odin.moreh.io/allow=h1"), "{message}");
            }
        }
        let leaving = json!({"metadata": {"labels": {HUB: "h1"}, "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert!(matches!(judge("team", Some(&leaving), "h1"), Verdict::Refuse(Reason::WaitingForDeletion, _)));
    }

    #[test]
    fn a_namespace_that_the_hub_makes_bears_its_id_whatever_the_other_labels_are() {
        let labels =
            BTreeMap::from([("pod-security.kubernetes.io/enforce".to_owned(), "baseline".to_owned()), (HUB.to_owned(), "x".to_owned())]);
        let made = manifest("team", "h1", &labels);
        assert_eq!(made["metadata"]["labels"], json!({"pod-security.kubernetes.io/enforce": "baseline", HUB: "h1"}));
        assert_eq!(judge("team", Some(&made), "h1"), Verdict::Use);
    }

    #[test]
    fn patterns_stand_for_any_text() {
        for (pattern, name, want) in [
            ("kube-*", "kube-system", true),
            ("kube-*", "kube", false),
            ("kube-*", "kube-", true),
            ("kube-*", "a-kube-b", false),
            ("*-system", "kube-system", true),
            ("*-system", "system", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a*a", "a", false),
            ("*", "anything", true),
            ("team", "team", true),
            ("team", "team-a", false),
            ("", "team", false),
        ] {
            assert_eq!(protected(name, &[pattern.to_owned()]).is_some(), want, "{pattern} {name}");
        }
    }
}
