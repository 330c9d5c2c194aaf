//! What has been promised: the decisions on all services, written or about to be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::capacity::{GroupRequest, Promise, ServiceKey};

/// Groups by member.
type Placements = BTreeMap<String, u32>;

/// The placements of all services. A decision counts from the moment it is assumed, before it is written. What pods
/// take that have a node already is told apart by [`crate::capacity::room`], so a promise stays as long as the
/// placement does.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// By UID of the service.
    services: BTreeMap<String, Entry>,
    /// Services with something in each member, in the order of their names.
    members: BTreeMap<String, BTreeSet<(ServiceKey, String)>>,
}

#[derive(Clone, Debug)]
struct Entry {
    service: ServiceKey,
    request: Arc<GroupRequest>,
    observed: Placements,
    assumed: Option<Placements>,
}

impl Entry {
    fn groups(&self, member: &str) -> u32 {
        let held = |placements: &Placements| placements.get(member).copied().unwrap_or_default();
        held(&self.observed).max(self.assumed.as_ref().map(held).unwrap_or_default())
    }
}

impl Ledger {
    /// Nothing is promised.
    pub fn new() -> Self {
        Self::default()
    }

    /// The status of a service on the hub holds these placements. A decision that is still to be written stays assumed.
    pub fn observe(&mut self, uid: &str, service: &ServiceKey, request: Arc<GroupRequest>, placements: &BTreeMap<String, u32>) {
        self.change(uid, service, request, |entry| {
            entry.observed.clone_from(placements);
            if entry.assumed.as_ref() == Some(placements) {
                entry.assumed = None;
            }
        });
    }

    /// A decision is about to be written. Until it is observed, both it and what was observed before are promised.
    pub fn assume(&mut self, uid: &str, service: &ServiceKey, request: Arc<GroupRequest>, placements: &BTreeMap<String, u32>) {
        self.change(uid, service, request, |entry| {
            entry.assumed = (&entry.observed != placements).then(|| placements.clone());
        });
    }

    /// An assumed decision was not written.
    pub fn forget(&mut self, uid: &str) {
        if let Some(mut entry) = self.take(uid) {
            entry.assumed = None;
            self.put(uid, entry);
        }
    }

    /// The service is gone, and with it all that was promised to it.
    pub fn remove(&mut self, uid: &str) {
        self.take(uid);
    }

    /// What a member has been promised for all services but one, in the order of their names.
    pub fn promises(&self, member: &str, except_uid: &str) -> Vec<Promise> {
        let uids = self.members.get(member).into_iter().flatten().map(|(_, uid)| uid).filter(|uid| *uid != except_uid);
        uids.filter_map(|uid| self.services.get(uid))
            .map(|entry| Promise { service: entry.service.clone(), request: entry.request.clone(), groups: entry.groups(member) })
            .filter(|promise| promise.groups > 0)
            .collect()
    }

    /// Services with a placement in a member, also one of no groups, and groups promised there.
    pub fn totals(&self, member: &str) -> (u32, u32) {
        let entries = self.members.get(member).into_iter().flatten().filter_map(|(_, uid)| self.services.get(uid));
        entries.fold((0, 0), |(services, groups), entry| (services + 1, groups.saturating_add(entry.groups(member))))
    }

    fn change(&mut self, uid: &str, service: &ServiceKey, request: Arc<GroupRequest>, change: impl FnOnce(&mut Entry)) {
        let mut entry = self.take(uid).unwrap_or_else(|| Entry {
            service: service.clone(),
            request: request.clone(),
            observed: Placements::new(),
            assumed: None,
        });
        entry.request = request;
        change(&mut entry);
        self.put(uid, entry);
    }

    fn take(&mut self, uid: &str) -> Option<Entry> {
        let entry = self.services.remove(uid)?;
        let key = (entry.service.clone(), uid.to_owned());
        for member in entry.observed.keys().chain(entry.assumed.iter().flat_map(BTreeMap::keys)) {
            if let Some(services) = self.members.get_mut(member) {
                services.remove(&key);
                if services.is_empty() {
                    self.members.remove(member);
                }
            }
        }
        Some(entry)
    }

    fn put(&mut self, uid: &str, entry: Entry) {
        for member in entry.observed.keys().chain(entry.assumed.iter().flat_map(BTreeMap::keys)) {
            self.members.entry(member.clone()).or_default().insert((entry.service.clone(), uid.to_owned()));
        }
        self.services.insert(uid.to_owned(), entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placements(list: &[(&str, u32)]) -> BTreeMap<String, u32> {
        list.iter().map(|(member, groups)| ((*member).to_owned(), *groups)).collect()
    }

    #[test]
    fn a_decision_counts_from_before_it_is_written() {
        let mut ledger = Ledger::new();
        let (service, request) = (ServiceKey::new("ns", "one"), Arc::new(GroupRequest::default()));
        let groups = |ledger: &Ledger| -> Vec<u32> {
            ["a", "b"].map(|member| ledger.promises(member, "other").iter().map(|promise| promise.groups).sum()).to_vec()
        };
        ledger.assume("1", &service, request.clone(), &placements(&[("a", 2)]));
        assert_eq!(groups(&ledger), [2, 0], "assumed");
        ledger.observe("1", &service, request.clone(), &placements(&[]));
        assert_eq!(groups(&ledger), [2, 0], "an older version of the status doesn't take it back");
        ledger.observe("1", &service, request.clone(), &placements(&[("a", 2)]));
        ledger.forget("1");
        assert_eq!(groups(&ledger), [2, 0], "written");
        ledger.assume("1", &service, request.clone(), &placements(&[("b", 1)]));
        assert_eq!(groups(&ledger), [2, 1], "both until the move is written");
        ledger.forget("1");
        assert_eq!(groups(&ledger), [2, 0], "a lost race");
        assert_eq!(ledger.promises("a", "1"), [], "not against itself");
        assert_eq!(ledger.totals("a"), (1, 2));
        ledger.observe("2", &ServiceKey::new("ns", "two"), request, &placements(&[("a", 0)]));
        assert_eq!((ledger.totals("a"), ledger.promises("a", "").len()), ((2, 2), 1), "one rests there");
        ledger.remove("1");
        ledger.remove("2");
        assert_eq!(groups(&ledger), [0, 0]);
        assert!(ledger.members.is_empty());
    }
}
