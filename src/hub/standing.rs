//! Whether a member as a whole may take services and be written to: pure, over all registrations at one moment.

use std::collections::HashMap;

use jiff::Timestamp;
use kube::ResourceExt as _;

use super::members::NoClient;
use crate::api::condition::Truth;
use crate::api::federation::MemberCluster;
use crate::api::reason::Reason;
use crate::member::Fact;

/// Annotation on a `MemberCluster`: UID of the cluster that may take the place of the one before.
const ACCEPT_CLUSTER_UID: &str = "federation.odin.moreh.io/accept-cluster-uid";

/// The condition Ready of a member, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) truth: Truth,
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// Whether the hub may write in it. Only what a person has to settle forbids that; a silent member just doesn't
    /// answer.
    pub(crate) writable: bool,
    /// Whether what is there counts as this member's. The cluster behind a second registration is looked at through the
    /// first, and what a replaced cluster holds is not what was put there.
    pub(crate) counts: bool,
}

impl Standing {
    fn forbidden(reason: Reason, message: String) -> Self {
        Self { truth: Truth::False, reason, message, writable: false, counts: true }
    }

    fn of_no_account(reason: Reason, message: String) -> Self {
        Self { counts: false, ..Self::forbidden(reason, message) }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.truth == Truth::True
    }
}

/// What decides the standing of one registration.
pub(crate) struct Registration<'a> {
    pub(crate) cluster: &'a MemberCluster,
    /// UID of the cluster that answers and whether it is ready, or why there is no client.
    pub(crate) seen: Result<(Option<&'a str>, &'a Fact), &'a NoClient>,
}

/// Judges all registrations. `own_cluster` is the UID of the hub's cluster, unless that may be a member too.
pub(crate) fn standings(all: &[Registration<'_>], own_cluster: Option<&str>) -> Vec<Standing> {
    // The registration of a cluster that counts is the oldest, then the first by name. One that can't be asked now stays
    // what it was found to be: it must not lose its cluster to a second one for as long as its credential is broken.
    let mut first: HashMap<&str, (Option<Timestamp>, String)> = HashMap::new();
    for registration in all {
        let seen = registration.seen.ok().and_then(|(uid, _)| uid);
        if let Some(uid) = seen.or_else(|| registration.cluster.status.as_ref()?.cluster_uid.as_deref()) {
            let rank = (registration.cluster.creation_timestamp().map(|time| time.0), registration.cluster.name_any());
            first.entry(uid).and_modify(|best| *best = rank.clone().min(best.clone())).or_insert(rank);
        }
    }
    all.iter().map(|registration| judge(registration, own_cluster, |uid| first.get(uid).map(|(_, name)| name.as_str()))).collect()
}

fn judge<'a>(registration: &Registration<'_>, own_cluster: Option<&str>, first: impl Fn(&str) -> Option<&'a str>) -> Standing {
    let cluster = registration.cluster;
    let name = cluster.name_any();
    let (uid, ready) = match registration.seen {
        Ok(seen) => seen,
        Err(none) => return Standing::forbidden(none.reason, none.message.clone()),
    };
    if let Some(uid) = uid {
        if own_cluster == Some(uid) {
            return Standing::of_no_account(
                Reason::Duplicate,
                "this is the hub's own cluster; start the hub with --allow-self if it shall hold services too".to_owned(),
            );
        }
        if let Some(first) = first(uid)
            && first != name
        {
            return Standing::of_no_account(
                Reason::Duplicate,
                format!("the same cluster is registered as {first}, which counts; delete one of the two registrations"),
            );
        }
        let known = cluster.status.as_ref().and_then(|status| status.cluster_uid.as_deref());
        if let Some(known) = known
            && known != uid
            && cluster.annotations().get(ACCEPT_CLUSTER_UID).is_none_or(|accepted| accepted != uid)
        {
            return Standing::of_no_account(
                Reason::ClusterReplaced,
                format!(
                    "this was cluster {known} and is now {uid}; nothing is written there until you accept it: kubectl annotate mcl {name} {ACCEPT_CLUSTER_UID}={uid}"
                ),
            );
        }
    }
    if cluster.spec.suspend {
        return Standing::forbidden(Reason::Suspended, "spec.suspend is set: the hub reads here and writes nothing".to_owned());
    }
    Standing { truth: ready.truth, reason: ready.reason, message: ready.message.clone(), writable: true, counts: true }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::api::federation::{MemberClusterSpec, MemberClusterStatus};

    fn cluster(name: &str, created: i64) -> MemberCluster {
        let mut cluster = MemberCluster::new(name, MemberClusterSpec::default());
        cluster.metadata.creation_timestamp = Some(Time(Timestamp::from_second(created).expect("a time")));
        cluster
    }

    fn judged(clusters: &[(MemberCluster, Option<&str>)], own: Option<&str>) -> Vec<(Reason, bool, bool)> {
        let ready = Fact::yes(Reason::Connected, "");
        let all: Vec<_> = clusters.iter().map(|(cluster, uid)| Registration { cluster, seen: Ok((*uid, &ready)) }).collect();
        standings(&all, own).into_iter().map(|standing| (standing.reason, standing.writable, standing.counts)).collect()
    }

    #[test]
    fn of_two_registrations_of_one_cluster_the_older_counts_and_then_the_first_by_name() {
        let connected = (Reason::Connected, true, true);
        let duplicate = (Reason::Duplicate, false, false);
        let uid = Some("u");
        for (clusters, want) in [
            (vec![(cluster("a", 2), uid), (cluster("b", 1), uid)], vec![duplicate, connected]),
            (vec![(cluster("a", 1), uid), (cluster("b", 1), uid)], vec![connected, duplicate]),
            (vec![(cluster("a", 1), uid), (cluster("b", 2), Some("v"))], vec![connected, connected]),
            (vec![(cluster("a", 1), uid), (cluster("b", 2), None)], vec![connected, connected]),
        ] {
            assert_eq!(judged(&clusters, None), want);
        }
    }

    #[test]
    fn a_registration_that_cannot_be_asked_keeps_its_cluster() {
        let mut broken = cluster("a", 1);
        broken.status = Some(MemberClusterStatus { cluster_uid: Some("u".to_owned()), ..MemberClusterStatus::default() });
        let (second, ready) = (cluster("b", 2), Fact::yes(Reason::Connected, ""));
        let none = NoClient { reason: Reason::CredentialMissing, message: String::new() };
        let seen = Registration { cluster: &second, seen: Ok((Some("u"), &ready)) };
        let all = [Registration { cluster: &broken, seen: Err(&none) }, seen];
        let reasons: Vec<Reason> = standings(&all, None).into_iter().map(|standing| standing.reason).collect();
        assert_eq!(reasons, [Reason::CredentialMissing, Reason::Duplicate]);
    }

    #[test]
    fn the_hubs_own_cluster_is_no_member_unless_it_may_be() {
        let clusters = [(cluster("a", 1), Some("own"))];
        assert_eq!(judged(&clusters, Some("own")), [(Reason::Duplicate, false, false)]);
        assert_eq!(judged(&clusters, None), [(Reason::Connected, true, true)]);
    }

    #[test]
    fn another_cluster_under_the_same_name_is_left_alone_until_it_is_accepted() {
        let mut replaced = cluster("a", 1);
        replaced.status = Some(MemberClusterStatus { cluster_uid: Some("old".to_owned()), ..MemberClusterStatus::default() });
        assert_eq!(judged(&[(replaced.clone(), Some("new"))], None), [(Reason::ClusterReplaced, false, false)]);
        assert_eq!(judged(&[(replaced.clone(), Some("old"))], None), [(Reason::Connected, true, true)]);
        for (accepted, want) in [("new", Reason::Connected), ("other", Reason::ClusterReplaced)] {
            replaced.annotations_mut().insert(ACCEPT_CLUSTER_UID.to_owned(), accepted.to_owned());
            assert_eq!(judged(&[(replaced.clone(), Some("new"))], None).first().map(|standing| standing.0), Some(want));
        }
    }

    #[test]
    fn a_suspended_member_is_not_written_and_still_counts() {
        let mut suspended = cluster("a", 1);
        suspended.spec.suspend = true;
        assert_eq!(judged(&[(suspended, Some("u"))], None), [(Reason::Suspended, false, true)]);
    }

    #[test]
    fn without_a_client_the_reason_is_that_of_the_credential() {
        let cluster = cluster("a", 1);
        let none = NoClient { reason: Reason::CredentialMissing, message: "no Secret".to_owned() };
        let got = standings(&[Registration { cluster: &cluster, seen: Err(&none) }], None);
        let first = got.first().expect("one");
        assert_eq!((first.reason, first.message.as_str(), first.writable), (Reason::CredentialMissing, "no Secret", false));
    }
}
