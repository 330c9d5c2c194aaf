//! All members at one moment: how they stand, and how placement sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{ObjectRef, Store};

use super::members::{Entry, Members, NoClient};
use super::standing::{Registration, Standing, standings};
use crate::api::condition::Truth;
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;
use crate::capacity::{Options, Snapshot};
use crate::member::{self, MemberView};
use crate::placement::{Exclusion, LwsSupport, Member, MemberFacts, ServiceFacts, exclude};

/// What a [`Roll`] is made from.
#[derive(Clone)]
pub(crate) struct Fleet {
    pub(crate) members: Arc<Members>,
    pub(crate) namespaces: Store<PartialObjectMeta<Namespace>>,
    /// UID of the hub's cluster, unless that may be a member too.
    pub(crate) own_cluster: Option<String>,
}

/// All members at one moment, by name.
pub(crate) struct Roll(BTreeMap<String, Listed>);

/// One member at one moment.
pub(crate) struct Listed {
    pub(crate) entry: Arc<Entry>,
    pub(crate) seen: Result<Connected, NoClient>,
    pub(crate) standing: Standing,
}

/// The client of a member and what it knows.
pub(crate) struct Connected {
    pub(crate) member: Arc<member::Member>,
    pub(crate) view: MemberView,
}

impl Fleet {
    /// Looks at all members once.
    pub(crate) fn roll(&self) -> Roll {
        let seen: Vec<_> = self
            .members
            .all()
            .into_iter()
            .map(|(name, entry)| {
                let seen = entry.runtime.clone().map(|member| Connected { view: member.view(), member });
                (name, entry, seen)
            })
            .collect();
        let registrations: Vec<_> = seen
            .iter()
            .map(|(_, entry, seen)| Registration {
                cluster: &entry.cluster,
                seen: seen.as_ref().map(|seen| (seen.view.cluster_uid.as_deref(), &seen.view.ready)),
            })
            .collect();
        let standings = standings(&registrations, self.own_cluster.as_deref());
        let listed = seen.into_iter().zip(standings).map(|((name, entry, seen), standing)| (name, Listed { entry, seen, standing }));
        Roll(listed.collect())
    }

    /// All members as candidates for a service of this namespace that is such a workload.
    pub(crate) fn candidates(&self, namespace: &str, kind: WorkloadKind) -> Vec<Candidate> {
        let labels = self.namespaces.get(&ObjectRef::new(namespace)).map(|found| found.labels().clone()).unwrap_or_default();
        let service = ServiceFacts { namespace, namespace_labels: &labels, kind };
        self.roll().0.into_iter().map(|(name, listed)| candidate(name, listed, &service)).collect()
    }
}

impl Roll {
    pub(crate) fn get(&self, name: &str) -> Option<&Listed> {
        self.0.get(name)
    }

    /// All of them, sorted by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Listed)> {
        self.0.iter().map(|(name, listed)| (name.as_str(), listed))
    }

    /// The member's client and watches, if the hub may write there.
    pub(crate) fn writable(&self, name: &str) -> Option<&Arc<member::Member>> {
        let listed = self.get(name)?;
        listed.seen.as_ref().ok().filter(|_| listed.standing.writable).map(|seen| &seen.member)
    }
}

/// One member as placement sees it, with what it borrows from.
pub(crate) struct Candidate {
    name: String,
    uid: String,
    excluded: Option<Exclusion>,
    snapshot: Option<Arc<Snapshot>>,
    options: Options,
}

impl Candidate {
    pub(crate) fn as_member(&self) -> Member<'_> {
        Member {
            name: &self.name,
            uid: &self.uid,
            excluded: self.excluded.clone(),
            snapshot: self.snapshot.as_deref(),
            options: self.options,
        }
    }
}

fn candidate(name: String, listed: Listed, service: &ServiceFacts<'_>) -> Candidate {
    let spec = &listed.entry.cluster.spec;
    let facts = MemberFacts {
        spec,
        // That it is suspended is a rule of its own.
        ready: if listed.standing.is_ready() || listed.standing.reason == Reason::Suspended {
            Ok(())
        } else {
            Err(&listed.standing.message)
        },
        kubernetes_version: listed.seen.as_ref().ok().and_then(|seen| seen.view.kubernetes_version.as_deref()),
        leader_worker_set: listed.seen.as_ref().map_or(LwsSupport::Unknown, |seen| lws_support(&seen.view)),
    };
    let excluded = exclude(&facts, service);
    let options = Options { extended_resource_toleration: spec.extended_resource_toleration, ignore_quotas: spec.ignore_resource_quota };
    let (uid, snapshot) = match listed.seen {
        Ok(Connected { view, .. }) => (view.cluster_uid.unwrap_or_default(), view.snapshot.filter(|_| view.capacity_known)),
        Err(_) => (String::new(), None),
    };
    Candidate { name, uid, excluded, snapshot, options }
}

fn lws_support(view: &MemberView) -> LwsSupport {
    match view.leader_worker_set.truth {
        Truth::True => LwsSupport::Served(view.leader_worker_set_release),
        Truth::False => LwsSupport::Absent,
        Truth::Unknown => LwsSupport::Unknown,
    }
}
