//! What the watches of a member find, put in its place.

use std::collections::HashSet;

use jiff::Timestamp;

use super::objects::{Objects, Unready, controller};
use super::{Cache, Change, Sink};
use crate::api::odin::WorkloadKind;
use crate::capacity::ServiceKey;
use crate::member::lean::{
    Deployment, Event, Kind, LeaderWorkerSet, LwsEvent, Place, Pod, ReplicaSet, Service, SetEvent, StatefulSet, Workload,
};
use crate::status::PodStatusView;

/// Services of which something changed.
type Services = HashSet<ServiceKey>;

impl Cache {
    /// Changes what is known and tells of the services concerned.
    fn change(&self, change: impl FnOnce(&mut Objects, &mut Services)) {
        let mut services = Services::new();
        let mut objects = self.objects.write();
        change(&mut objects, &mut services);
        let wanted = !objects.unsettled.is_empty();
        drop(objects);
        self.notifier.services(services);
        self.events_wanted.send_if_modified(|before| std::mem::replace(before, wanted) != wanted);
    }
}

impl Sink<Pod> for Cache {
    fn apply(&self, change: Change<Pod>) {
        let now = Timestamp::now();
        match change {
            Change::All(pods) => {
                let (views, statuses): (Vec<_>, Vec<_>) =
                    pods.into_iter().map(|pod| (pod.view, pod.status.map(|s| (s, pod.place)))).unzip();
                self.all_pods(views);
                self.change(|objects, services| {
                    let there: HashSet<&str> = statuses.iter().flatten().map(|(pod, _)| pod.metadata.uid.as_str()).collect();
                    let known = objects.pods.iter().map(|(uid, _)| uid).chain(objects.leaders.iter().map(|(uid, _)| uid));
                    let gone: Vec<String> = known.filter(|uid| !there.contains(uid)).map(str::to_owned).collect();
                    for uid in gone {
                        objects.drop_pod(&uid, services);
                    }
                    for (pod, place) in statuses.into_iter().flatten() {
                        objects.put_pod(pod, place.as_ref(), now, services);
                    }
                });
            }
            Change::Put(Pod { view, status, place }) => {
                self.put_pod(view);
                if let Some(pod) = status {
                    self.change(|objects, services| objects.put_pod(pod, place.as_ref(), now, services));
                }
            }
            Change::Gone(Pod { view, .. }) => {
                self.drop_pod(&view);
                self.change(|objects, services| objects.drop_pod(&view.uid, services));
            }
        }
    }
}

impl Objects {
    fn put_pod(&mut self, pod: PodStatusView, place: Option<&Place>, now: Timestamp, services: &mut Services) {
        if let Some(place) = place {
            services.extend(self.put_placed(&pod, place, now));
        }
        let uid = pod.metadata.uid.clone();
        let service = |objects: &Self| objects.service_above(objects.pods.owner(&uid)?);
        if pod.is_ready() {
            services.extend(service(self));
            self.pods.remove(&uid);
            return;
        }
        let group = place.and_then(|place| place.group);
        let owner = controller(&pod).map(str::to_owned);
        let pod = Unready { status: pod, group };
        if self.pods.get(&uid) != Some(&pod) {
            self.pods.put(&uid, owner.as_deref(), pod);
            services.extend(service(self));
        }
    }

    fn drop_pod(&mut self, uid: &str, services: &mut Services) {
        for owner in [self.pods.owner(uid), self.leaders.owner(uid)].into_iter().flatten() {
            services.extend(self.service_above(owner));
        }
        self.pods.remove(uid);
        self.leaders.remove(uid);
    }
}

impl Cache {
    fn workloads(&self, kind: WorkloadKind, change: Change<Workload>) {
        if let Change::Gone(workload) = &change {
            self.notifier.gone(workload.metadata.service());
        }
        self.change(|objects, services| match change {
            Change::All(workloads) => {
                let there: HashSet<&str> = workloads.iter().map(|workload| workload.metadata.uid.as_str()).collect();
                let known = objects.workloads.iter().filter(|(_, workload)| workload.kind == kind);
                let gone = known.filter(|(uid, _)| !there.contains(uid));
                let gone: Vec<String> = gone
                    .map(|(uid, workload)| {
                        services.insert(workload.metadata.service());
                        uid.to_owned()
                    })
                    .collect();
                for uid in gone {
                    objects.drop_workload(&uid);
                }
                for workload in workloads {
                    services.insert(workload.metadata.service());
                    objects.put_workload(workload);
                }
            }
            Change::Put(workload) => {
                services.insert(workload.metadata.service());
                objects.put_workload(workload);
            }
            Change::Gone(workload) => {
                services.insert(workload.metadata.service());
                objects.drop_workload(&workload.metadata.uid);
            }
        });
    }
}

impl<T> Change<T> {
    fn map<U>(self, to: impl Fn(T) -> U) -> Change<U> {
        match self {
            Self::All(all) => Change::All(all.into_iter().map(to).collect()),
            Self::Put(one) => Change::Put(to(one)),
            Self::Gone(one) => Change::Gone(to(one)),
        }
    }
}

impl Sink<Deployment> for Cache {
    fn apply(&self, change: Change<Deployment>) {
        self.workloads(WorkloadKind::Deployment, change.map(|deployment| deployment.0));
    }
}

impl Sink<LeaderWorkerSet> for Cache {
    fn apply(&self, change: Change<LeaderWorkerSet>) {
        self.workloads(WorkloadKind::LeaderWorkerSet, change.map(|set| set.0));
    }
}

impl Sink<Service> for Cache {
    fn apply(&self, change: Change<Service>) {
        let put = |objects: &mut Objects, services: &mut Services, service: Service| {
            services.insert(service.metadata.service());
            let uid = service.metadata.uid.clone();
            let owner = service.metadata.service_uid().map(str::to_owned);
            objects.services.put(&uid, owner.as_deref(), service);
        };
        self.change(|objects, services| match change {
            Change::All(all) => {
                services.extend(objects.services.iter().map(|(_, service)| service.metadata.service()));
                objects.services = super::owned::Owned::default();
                for service in all {
                    put(objects, services, service);
                }
            }
            Change::Put(service) => put(objects, services, service),
            Change::Gone(service) => {
                services.insert(service.metadata.service());
                objects.services.remove(&service.metadata.uid);
            }
        });
    }
}

impl Sink<ReplicaSet> for Cache {
    fn apply(&self, change: Change<ReplicaSet>) {
        let put = |objects: &mut Objects, services: &mut Services, set: &ReplicaSet| {
            let (uid, owner) = (&set.metadata.uid, set.metadata.controller());
            if owner.is_some() && objects.replica_sets.owner(uid) != owner {
                objects.replica_sets.put(uid, owner, ());
                // Its pods may have come first.
                services.extend(objects.service_above(uid));
            }
        };
        self.change(|objects, services| match change {
            Change::All(sets) => {
                let before = std::mem::take(&mut objects.replica_sets);
                for set in &sets {
                    if let Some(owner) = before.owner(&set.metadata.uid) {
                        objects.replica_sets.put(&set.metadata.uid, Some(owner), ());
                    }
                    put(objects, services, set);
                }
            }
            Change::Put(set) => put(objects, services, &set),
            Change::Gone(set) => {
                objects.replica_sets.remove(&set.metadata.uid);
            }
        });
    }
}

impl Sink<StatefulSet> for Cache {
    fn apply(&self, change: Change<StatefulSet>) {
        self.change(|objects, services| match change {
            Change::All(sets) => {
                let there: HashSet<&str> = sets.iter().map(|set| set.metadata.uid.as_str()).collect();
                let known = objects.stateful_sets.iter().map(|(uid, _)| uid);
                let gone: Vec<String> = known.filter(|uid| !there.contains(uid)).map(str::to_owned).collect();
                for uid in gone {
                    services.extend(objects.service_above(&uid));
                    objects.stateful_sets.remove(&uid);
                }
                for set in sets {
                    services.extend(objects.put_set(set));
                }
            }
            Change::Put(set) => services.extend(objects.put_set(set)),
            Change::Gone(set) => {
                services.extend(objects.service_above(&set.metadata.uid));
                objects.stateful_sets.remove(&set.metadata.uid);
            }
        });
    }
}

impl Objects {
    fn put_set(&mut self, set: StatefulSet) -> Option<ServiceKey> {
        let uid = set.metadata.uid.clone();
        let owner = set.metadata.controller().map(str::to_owned);
        let (group, state) = (set.group(), (set.is_short(), set.is_ready()));
        let before = self.stateful_sets.owner(&uid).map(str::to_owned);
        let old = self.stateful_sets.put(&uid, owner.as_deref(), set);
        let workload = self.workload_above(&uid)?.to_owned();
        if let Some(group) = group {
            self.note_readiness(&workload, group, Timestamp::now());
        }
        let changed = before != owner || old.is_none_or(|old| (old.is_short(), old.is_ready()) != state);
        self.service_of(&workload).filter(|_| changed)
    }
}

impl Cache {
    fn events(&self, kind: Kind, change: Change<Event>) {
        self.change(|objects, services| match change {
            Change::All(events) => {
                let of_kind = objects.events.iter().filter(|(_, (of, _))| *of == kind);
                let gone: Vec<String> = of_kind.map(|(uid, _)| uid.to_owned()).collect();
                for uid in gone {
                    services.extend(objects.drop_event(&uid));
                }
                for event in events {
                    services.extend(objects.put_event(kind, event));
                }
            }
            Change::Put(event) => services.extend(objects.put_event(kind, event)),
            Change::Gone(event) => services.extend(objects.drop_event(&event.metadata.uid)),
        });
    }
}

impl Objects {
    /// The service whose workload, or a set of whose pods, an event is about.
    fn service_told(&self, uid: &str) -> Option<ServiceKey> {
        let about = self.events.owner(uid)?;
        self.service_of(about).or_else(|| self.service_above(about))
    }

    fn put_event(&mut self, kind: Kind, event: Event) -> Option<ServiceKey> {
        let uid = event.metadata.uid.clone();
        if self.events.get(&uid).is_none()
            && self.events.len() >= kind.bound()
            && let Some(oldest) = self.events.iter().min_by_key(|(_, (_, event))| event.at()).map(|(uid, _)| uid.to_owned())
        {
            self.events.remove(&oldest);
        }
        let about = event.about().to_owned();
        self.events.put(&uid, Some(&about), (kind, event));
        self.service_told(&uid)
    }

    fn drop_event(&mut self, uid: &str) -> Option<ServiceKey> {
        let service = self.service_told(uid);
        self.events.remove(uid);
        service
    }
}

impl Sink<SetEvent> for Cache {
    fn apply(&self, change: Change<SetEvent>) {
        self.events(Kind::SetEvent, change.map(|event| event.0));
    }
}

impl Sink<LwsEvent> for Cache {
    fn apply(&self, change: Change<LwsEvent>) {
        self.events(Kind::LwsEvent, change.map(|event| event.0));
    }
}
