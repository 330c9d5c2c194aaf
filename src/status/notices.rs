//! What a change of a service's status is worth an event.

use std::collections::BTreeMap;

use crate::api::condition::{self, Condition, service};
use crate::api::odin::{InferenceServiceStatus, Phase};
use crate::api::reason::Reason;

/// Something that happened to a service, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What happened.
    pub reason: Reason,
    /// It is trouble.
    pub warning: bool,
    /// The particulars.
    pub message: String,
}

/// What a person would want to have been told between two statuses of a service. It follows from the two alone, so that
/// a restart of the hub neither loses nor repeats any of it.
pub fn notices(before: Option<&InferenceServiceStatus>, after: &InferenceServiceStatus) -> Vec<Notice> {
    let mut notices = Vec::new();
    let find = |status: Option<&InferenceServiceStatus>, type_| status.and_then(|s| condition::find(&s.conditions, type_).cloned());
    let changed = |type_| (find(before, type_), find(Some(after), type_));

    let (was, is) = changed(service::RENDERED);
    if let Some(is) = is {
        let known = was.as_ref().is_some_and(|was| was.status == is.status && was.reason == is.reason && was.message == is.message);
        if is.status == "False" && !known {
            notices.extend(of(&is, true));
        } else if is.status == "True" && was.is_some_and(|was| was.status == "False") {
            notices.push(Notice { reason: Reason::Rendered, warning: false, message: "the service renders again".to_owned() });
        }
    }
    let (was, is) = changed(service::PLACED);
    if let Some(is) = is.filter(|is| is.status == "False")
        && was.is_none_or(|was| was.status != "False")
    {
        notices.extend(of(&is, true));
    }
    notices.extend(placed(before, after));
    let (was, is) = changed(service::APPLIED);
    if let Some(is) = is.filter(|is| is.status == "False")
        && [Reason::ApplyDenied, Reason::ObjectConflict, Reason::NamespaceNotAllowed].iter().any(|reason| reason.as_str() == is.reason)
        && was.is_none_or(|was| was.reason != is.reason || was.message != is.message)
    {
        notices.extend(of(&is, true));
    }
    notices
}

/// A condition as a notice; nothing for a reason that this version doesn't know.
fn of(condition: &Condition, warning: bool) -> Option<Notice> {
    let reason = Reason::ALL.iter().copied().find(|reason| reason.as_str() == condition.reason)?;
    Some(Notice { reason, warning, message: condition.message.clone() })
}

/// What was decided: where the service went, or how its shares changed.
fn placed(before: Option<&InferenceServiceStatus>, after: &InferenceServiceStatus) -> Option<Notice> {
    let shares = |status: &InferenceServiceStatus| -> BTreeMap<String, i32> {
        let planned = status.placements.iter().filter(|placement| placement.phase != Phase::Leaving);
        planned.map(|placement| (placement.cluster.clone(), placement.replicas)).collect()
    };
    let (was, is) = (before.map(shares).unwrap_or_default(), shares(after));
    if was == is || is.is_empty() {
        return None;
    }
    let text = |cluster: &String| match (was.get(cluster), is.get(cluster)) {
        (Some(was), Some(is)) if was == is => None,
        (Some(was), is) => Some(format!("{cluster} from {was} to {}", is.copied().unwrap_or_default())),
        (None, is) => Some(format!("{cluster} to {}", is.copied().unwrap_or_default())),
    };
    let clusters: std::collections::BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let changes: Vec<String> = clusters.into_iter().filter_map(text).collect();
    if was.is_empty() {
        let list: Vec<String> = is.iter().map(|(cluster, groups)| format!("{cluster}:{groups}")).collect();
        return Some(Notice { reason: Reason::Placed, warning: false, message: format!("placed in {}", list.join(",")) });
    }
    Some(Notice { reason: Reason::ScaledMember, warning: false, message: format!("groups change: {}", changes.join(", ")) })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::api::odin::Placement;

    fn status(conditions: &[(&str, &str, Reason, &str)], placements: &[(&str, i32)]) -> InferenceServiceStatus {
        let condition = |(type_, status, reason, message): &(&str, &str, Reason, &str)| Condition {
            type_: (*type_).to_owned(),
            status: (*status).to_owned(),
            reason: reason.to_string(),
            message: (*message).to_owned(),
            last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
            observed_generation: None,
        };
        let placement =
            |(cluster, replicas): &(&str, i32)| Placement { cluster: (*cluster).to_owned(), replicas: *replicas, ..Placement::default() };
        InferenceServiceStatus {
            conditions: conditions.iter().map(condition).collect(),
            placements: placements.iter().map(placement).collect(),
            ..InferenceServiceStatus::default()
        }
    }

    #[test]
    fn what_is_news_is_told_once() {
        use Reason as R;
        let rendered = (service::RENDERED, "True", R::Rendered, "rendered from 2 layers");
        let broken = (service::RENDERED, "False", R::RenderFailed, "no such field");
        let other = (service::RENDERED, "False", R::TemplateNotFound, "no base");
        let placed = (service::PLACED, "True", R::AllPlaced, "2 of 2");
        let unplaced = (service::PLACED, "False", R::Unplaced, "1 of 2");
        let unplaced_more = (service::PLACED, "False", R::Unplaced, "0 of 2");
        let denied = (service::APPLIED, "False", R::ApplyDenied, "webhook says no");
        let waiting = (service::APPLIED, "False", R::Reconciling, "1 of 2 applied");
        for (name, before, after, want) in [
            ("first decision", None, status(&[rendered, placed], &[("a", 2)]), vec![(R::Placed, "placed in a:2")]),
            ("nothing new", Some(status(&[rendered, placed], &[("a", 2)])), status(&[rendered, placed], &[("a", 2)]), vec![]),
            (
                "scaled",
                Some(status(&[], &[("a", 2), ("b", 1)])),
                status(&[], &[("a", 3)]),
                vec![(R::ScaledMember, "groups change: a from 2 to 3, b from 1 to 0")],
            ),
            ("breaks", Some(status(&[rendered], &[])), status(&[broken], &[]), vec![(R::RenderFailed, "no such field")]),
            ("still broken", Some(status(&[broken], &[])), status(&[broken], &[]), vec![]),
            ("breaks otherwise", Some(status(&[broken], &[])), status(&[other], &[]), vec![(R::TemplateNotFound, "no base")]),
            ("mended", Some(status(&[broken], &[])), status(&[rendered], &[]), vec![(R::Rendered, "the service renders again")]),
            ("no place", None, status(&[rendered, unplaced], &[]), vec![(R::Unplaced, "1 of 2")]),
            ("numbers change", Some(status(&[unplaced], &[])), status(&[unplaced_more], &[]), vec![]),
            ("denied", Some(status(&[waiting], &[])), status(&[denied], &[]), vec![(R::ApplyDenied, "webhook says no")]),
            ("on its way", None, status(&[waiting], &[]), vec![]),
        ] {
            let told: Vec<(R, String)> = notices(before.as_ref(), &after).into_iter().map(|n| (n.reason, n.message)).collect();
            let want: Vec<(R, String)> = want.into_iter().map(|(reason, message)| (reason, message.to_owned())).collect();
            assert_eq!(told, want, "{name}");
        }
    }
}
