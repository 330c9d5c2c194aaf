//! What excludes a member before its room is asked for.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::api::federation::{MemberClusterSpec, TaintEffect};
use crate::api::lws::Release;
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;

/// The oldest minor version of Kubernetes 1 that a member may have.
const OLDEST_MINOR: u32 = 27;

/// Why a member takes nothing new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exclusion {
    /// The rule.
    pub reason: Reason,
    /// The rule for people, with what was found.
    pub message: String,
}

impl Exclusion {
    /// An exclusion by this rule.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// What is known of a member apart from its room.
#[derive(Clone, Copy, Debug)]
pub struct MemberFacts<'a> {
    /// What its administrator wants.
    pub spec: &'a MemberClusterSpec,
    /// It can be reached, and all it needs is there; the error says what is wrong.
    pub ready: Result<(), &'a str>,
    /// Version of its API server, if known.
    pub kubernetes_version: Option<&'a str>,
    /// Whether it serves `LeaderWorkerSet`.
    pub leader_worker_set: LwsSupport,
}

/// Whether a member serves `LeaderWorkerSet`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LwsSupport {
    /// It was not found out yet.
    #[default]
    Unknown,
    /// The member surely has no such API.
    Absent,
    /// It has; which release is known or not.
    Served(Option<Release>),
}

/// What of a service decides which members may hold it.
#[derive(Clone, Copy, Debug)]
pub struct ServiceFacts<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Labels of its namespace on the hub.
    pub namespace_labels: &'a BTreeMap<String, String>,
    /// The workload that it needs.
    pub kind: WorkloadKind,
}

/// The first rule that keeps the service away from the member, in an order that never changes.
pub fn exclude(member: &MemberFacts<'_>, service: &ServiceFacts<'_>) -> Option<Exclusion> {
    if let Err(text) = member.ready {
        return Some(Exclusion::new(Reason::NotReady, text));
    }
    if member.spec.suspend {
        return Some(Exclusion::new(Reason::Suspended, "the member is suspended: the hub writes nothing there"));
    }
    // PreferNoSchedule only makes a member the last choice.
    let taint = member.spec.taints.iter().find(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    if let Some(taint) = taint {
        let value = taint.value.as_ref().map(|value| format!("={value}")).unwrap_or_default();
        let message = format!("the member has the taint {}{value}:{:?}, which the service doesn't tolerate", taint.key, taint.effect);
        return Some(Exclusion::new(Reason::TaintNotTolerated, message));
    }
    if service.kind == WorkloadKind::LeaderWorkerSet {
        match member.leader_worker_set {
            LwsSupport::Unknown => {
                let message = "whether the member has the LeaderWorkerSet API is not found out yet";
                return Some(Exclusion::new(Reason::CapacityUnknown, message));
            }
            LwsSupport::Absent => {
                let message = "the member doesn't have the LeaderWorkerSet API, which the service needs";
                return Some(Exclusion::new(Reason::NoLeaderWorkerSet, message));
            }
            LwsSupport::Served(Some(Release::Before0_7)) => {
                let message = "the member has LeaderWorkerSet before 0.7; 0.7 or later is needed";
                return Some(Exclusion::new(Reason::VersionTooOld, message));
            }
            LwsSupport::Served(_) => {}
        }
    }
    if let Some(version) = member.kubernetes_version
        && is_too_old(version)
    {
        let message = format!("the member runs Kubernetes {version}; 1.{OLDEST_MINOR} or later is needed");
        return Some(Exclusion::new(Reason::VersionTooOld, message));
    }
    if member.spec.namespace_selector.as_ref().is_some_and(|selector| !selects(selector, service.namespace_labels)) {
        let message = format!("the member's namespaceSelector doesn't select the namespace {}", service.namespace);
        return Some(Exclusion::new(Reason::NamespaceNotAllowed, message));
    }
    None
}

/// Whether a version such as `v1.36.3` is below what the hub needs. One that can't be read isn't.
fn is_too_old(version: &str) -> bool {
    let mut parts = version.trim_start_matches('v').split('.');
    // Some distributions write the minor version as `27+`.
    let mut next = || parts.next().and_then(|part| part.trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<u32>().ok());
    match (next(), next()) {
        (Some(major), Some(minor)) => (major, minor) < (1, OLDEST_MINOR),
        _ => false,
    }
}

/// Whether a selector of Kubernetes matches these labels. An operator that isn't known matches nothing.
fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let pairs = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    pairs
        && selector.match_expressions.iter().flatten().all(|requirement| {
            let found = labels.get(&requirement.key);
            let listed = found.is_some_and(|value| requirement.values.iter().flatten().any(|other| other == value));
            match requirement.operator.as_str() {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(more: &Value) -> MemberClusterSpec {
        let mut spec = json!({"secretRef": {"name": "x"}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn rules_in_their_order() {
        let labels = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
        let service = ServiceFacts { namespace: "chat", namespace_labels: &labels, kind: WorkloadKind::Deployment };
        let all_wrong = json!({
            "suspend": true,
            "taints": [{"key": "gpu", "value": "x", "effect": "NoSchedule"}],
            "namespaceSelector": {"matchLabels": {"team": "b"}},
        });
        let ready = Ok(());
        for (more, ready, version, expected) in [
            (json!({}), ready, None, None),
            (all_wrong.clone(), Err("gone"), Some("v1.20.0"), Some((Reason::NotReady, "gone"))),
            (all_wrong.clone(), ready, Some("v1.20.0"), Some((Reason::Suspended, "the member is suspended: the hub writes nothing there"))),
            (
                json!({"taints": all_wrong["taints"], "namespaceSelector": all_wrong["namespaceSelector"]}),
                ready,
                Some("v1.20.0"),
                Some((Reason::TaintNotTolerated, "the member has the taint gpu=x:NoSchedule, which the service doesn't tolerate")),
            ),
            (json!({"taints": [{"key": "gpu", "effect": "PreferNoSchedule"}]}), ready, None, None),
            (
                json!({"namespaceSelector": all_wrong["namespaceSelector"]}),
                ready,
                Some("v1.26+"),
                Some((Reason::VersionTooOld, "the member runs Kubernetes v1.26+; 1.27 or later is needed")),
            ),
            (
                json!({"namespaceSelector": all_wrong["namespaceSelector"]}),
                ready,
                Some("v1.27.0"),
                Some((Reason::NamespaceNotAllowed, "the member's namespaceSelector doesn't select the namespace chat")),
            ),
            (json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}), ready, Some("odd"), None),
            (
                json!({"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]}}),
                ready,
                Some("v2.0.0"),
                None,
            ),
        ] {
            let spec = spec(&more);
            let member = MemberFacts { spec: &spec, ready, kubernetes_version: version, leader_worker_set: LwsSupport::Absent };
            let found = exclude(&member, &service);
            assert_eq!(found.as_ref().map(|found| (found.reason, found.message.as_str())), expected, "{more} {version:?}");
        }
    }

    #[test]
    fn i30_only_services_that_need_leader_worker_sets_look_for_them() {
        let labels = BTreeMap::new();
        let too_old = Some((Reason::VersionTooOld, "the member has LeaderWorkerSet before 0.7; 0.7 or later is needed"));
        let absent = Some((Reason::NoLeaderWorkerSet, "the member doesn't have the LeaderWorkerSet API, which the service needs"));
        let unknown = Some((Reason::CapacityUnknown, "whether the member has the LeaderWorkerSet API is not found out yet"));
        let not_allowed = Some((Reason::NamespaceNotAllowed, "the member's namespaceSelector doesn't select the namespace chat"));
        for (support, expected) in [
            (LwsSupport::Unknown, unknown),
            (LwsSupport::Absent, absent),
            (LwsSupport::Served(Some(Release::Before0_7)), too_old),
            (LwsSupport::Served(Some(Release::V0_7)), not_allowed),
            (LwsSupport::Served(Some(Release::V0_9)), not_allowed),
            (LwsSupport::Served(None), not_allowed),
        ] {
            for (kind, expected) in [(WorkloadKind::LeaderWorkerSet, expected), (WorkloadKind::Deployment, not_allowed)] {
                let spec = spec(&json!({"namespaceSelector": {"matchLabels": {"team": "b"}}}));
                let member = MemberFacts { spec: &spec, ready: Ok(()), kubernetes_version: None, leader_worker_set: support };
                let found = exclude(&member, &ServiceFacts { namespace: "chat", namespace_labels: &labels, kind });
                assert_eq!(found.as_ref().map(|found| (found.reason, found.message.as_str())), expected, "{kind:?} {support:?}");
            }
        }
    }

    #[test]
    fn selectors() {
        let labels = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        for (expression, expected) in [
            (json!({"key": "a", "operator": "In", "values": ["1", "2"]}), true),
            (json!({"key": "a", "operator": "NotIn", "values": ["1"]}), false),
            (json!({"key": "b", "operator": "NotIn", "values": ["1"]}), true),
            (json!({"key": "a", "operator": "Exists"}), true),
            (json!({"key": "b", "operator": "Exists"}), false),
            (json!({"key": "b", "operator": "DoesNotExist"}), true),
            (json!({"key": "a", "operator": "Like"}), false),
        ] {
            let selector: LabelSelector = serde_json::from_value(json!({"matchExpressions": [expression]})).unwrap();
            assert_eq!(selects(&selector, &labels), expected, "{expression}");
        }
        assert!(selects(&LabelSelector::default(), &labels));
    }
}
