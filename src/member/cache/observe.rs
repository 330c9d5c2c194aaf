//! What a member shows of one service.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::Cache;
use super::objects::{Objects, Unready};
use crate::api::lws::Release;
use crate::api::odin::{ObjectRef, WorkloadKind};
use crate::api::reason::Reason;
use crate::capacity::ServiceKey;
use crate::member::lean::{Event, StatefulSet, Workload};
use crate::status::{PodSignal, WorkloadView};

/// The controller of `LeaderWorkerSets` tries again at most this late; an older event tells of something that is over.
const LWS_EVENT_IS_NEWS: SignedDuration = SignedDuration::from_mins(20);

/// What a member shows of one service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The workload of the kind that the service has, else what is left of the other kind.
    pub workload: Option<WorkloadView>,
    /// The workload of the other kind, beside that one.
    pub previous: Option<WorkloadView>,
    /// Trouble of its pods and of what makes them: one signal an object at most, sorted by object.
    pub signals: Vec<PodSignal>,
    /// Name of its Kubernetes Service.
    pub service: Option<String>,
}

impl Observed {
    /// The member holds nothing of the service.
    pub fn is_empty(&self) -> bool {
        self.workload.is_none() && self.service.is_none()
    }
}

impl Cache {
    /// What the member shows of a service whose workload is to be of this kind; `None` while workloads of the kind were
    /// never listed.
    pub(in crate::member) fn observe(
        &self,
        service: &ServiceKey,
        service_uid: &str,
        kind: WorkloadKind,
        now: Timestamp,
    ) -> Option<Observed> {
        if !self.knows(kind.into()) {
            return None;
        }
        let objects = self.objects.read();
        let of_kind = |kind| objects.workload(kind, service_uid, &service.namespace, &service.name);
        let other = match kind {
            WorkloadKind::Deployment => WorkloadKind::LeaderWorkerSet,
            WorkloadKind::LeaderWorkerSet => WorkloadKind::Deployment,
        };
        let mut there = of_kind(kind).into_iter().chain(of_kind(other));
        let workload = there.next();
        let names = objects.services.of(service_uid).map(|(_, service)| &service.metadata);
        let names = names.filter(|meta| meta.namespace == service.namespace).map(|meta| &meta.name);
        Some(Observed {
            workload: workload.map(|workload| objects.view(workload)),
            previous: there.next().map(|workload| objects.view(workload)),
            signals: workload.map(|workload| objects.signals(workload, now)).unwrap_or_default(),
            service: names.min().cloned(),
        })
    }
}

impl Objects {
    fn view(&self, workload: &Workload) -> WorkloadView {
        let mut view = workload.view();
        if workload.kind == WorkloadKind::LeaderWorkerSet {
            view.release = self.release;
            if self.release.is_none_or(|release| release < Release::V0_9) {
                let leaders = self.leaders_of(&workload.metadata.uid);
                let ready = leaders.filter(|(leader, _)| self.is_ready(workload, leader)).count();
                view.counted_ready = Some(u32::try_from(ready).unwrap_or(u32::MAX));
            }
        }
        view
    }

    /// All trouble of a workload. By kind and name, so that equal state gives equal output.
    fn signals(&self, workload: &Workload, now: Timestamp) -> Vec<PodSignal> {
        let uid = workload.metadata.uid.as_str();
        let mut signals = BTreeMap::new();
        let mut add = |signal: PodSignal| {
            signals.insert((signal.object.kind.clone(), signal.object.name.clone()), signal);
        };
        match workload.kind {
            WorkloadKind::Deployment => {
                let pods = self.replica_sets.of(uid).flat_map(|(set, ())| self.pods.of(set));
                pods.filter_map(|(_, pod)| of_pod(pod, now)).for_each(&mut add);
            }
            WorkloadKind::LeaderWorkerSet => {
                let pods = self.sets_of(uid).flat_map(|(set, _)| self.pods.of(set));
                let mut of_pods: Vec<PodSignal> = pods.filter_map(|(_, pod)| of_pod(pod, now)).collect();
                for crash in self.crashes(workload, now) {
                    // What its pods do now comes after it, unless something keeps them from starting at all.
                    let is_own = |pod: &PodSignal| pod.object.name != crash.object.name && !is_after_a_crash(pod.reason);
                    of_pods.retain(|pod| pod.group != crash.group || keeps_from_starting(pod.reason) || is_own(pod));
                    if !of_pods.iter().any(|pod| pod.object.name == crash.object.name) {
                        add(crash);
                    }
                }
                of_pods.into_iter().for_each(&mut add);
                self.sets_of(uid).filter_map(|(uid, set)| self.of_set(uid, set)).for_each(&mut add);
                self.of_events(workload, now).into_iter().for_each(&mut add);
            }
        }
        signals.into_values().collect()
    }

    /// Groups that were made anew since a container of theirs ended.
    fn crashes(&self, workload: &Workload, now: Timestamp) -> impl Iterator<Item = PodSignal> {
        self.groups.crashes(&workload.metadata.uid, now).map(|(group, crash)| PodSignal {
            reason: crash.reason,
            message: crash.message,
            at: crash.end.how.finished_at.unwrap_or(Timestamp::UNIX_EPOCH),
            object: ObjectRef { kind: "Pod".to_owned(), namespace: Some(workload.metadata.namespace.clone()), name: crash.end.pod.clone() },
            container: Some(crash.end.container.clone()),
            group: Some(group),
        })
    }

    /// Why a `StatefulSet` has fewer pods than it wants. Once it has them all, its events are of the past.
    fn of_set(&self, uid: &str, set: &StatefulSet) -> Option<PodSignal> {
        let event = self.newest_event(uid).filter(|_| set.is_short())?;
        let object =
            ObjectRef { kind: "StatefulSet".to_owned(), namespace: Some(set.metadata.namespace.clone()), name: set.metadata.name.clone() };
        Some(not_made(event, event.message.clone(), object, set.group()))
    }

    /// Why a `LeaderWorkerSet` can't make or change what makes its pods. What was made since shows that it can.
    fn of_events(&self, workload: &Workload, now: Timestamp) -> Option<PodSignal> {
        let meta = &workload.metadata;
        let event = self.newest_event(&meta.uid).filter(|_| !workload.is_settled())?;
        let made = self.sets_of(&meta.uid).filter_map(|(_, set)| set.metadata.creation_timestamp).max();
        let at = event.at()?;
        if made.is_some_and(|made| made > at) || now.duration_since(at) > LWS_EVENT_IS_NEWS {
            return None;
        }
        let object =
            ObjectRef { kind: workload.kind.as_str().to_owned(), namespace: Some(meta.namespace.clone()), name: meta.name.clone() };
        let message =
            if event.reason == FAILED_UPDATE { format!("an update is refused: {}", event.message) } else { event.message.clone() };
        Some(not_made(event, message, object, None))
    }

    fn newest_event(&self, about: &str) -> Option<&Event> {
        let events = self.events.of(about).map(|(_, (_, event))| event);
        let events = events.filter(|event| event.reason == FAILED_CREATE || event.reason == FAILED_UPDATE);
        events.max_by_key(|event| (event.at(), &event.metadata.name))
    }
}

/// Reasons of events that something could not be made, or changed.
const FAILED_CREATE: &str = "FailedCreate";
const FAILED_UPDATE: &str = "FailedUpdate";

fn of_pod(pod: &Unready, now: Timestamp) -> Option<PodSignal> {
    let signal = PodSignal::from_pod(&pod.status, now)?;
    Some(PodSignal { group: pod.group, ..signal })
}

fn not_made(event: &Event, message: String, object: ObjectRef, group: Option<u32>) -> PodSignal {
    PodSignal { reason: Reason::FailedCreate, message, at: event.at().unwrap_or(Timestamp::UNIX_EPOCH), object, container: None, group }
}

/// What pods of a group show while it is made anew.
fn is_after_a_crash(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Error | Reason::CrashLoopBackOff | Reason::OomKilled | Reason::RunContainerError | Reason::Starting | Reason::ProbeFailing
    )
}

/// What has to be mended before a container can end again.
fn keeps_from_starting(reason: Reason) -> bool {
    matches!(reason, Reason::ImagePullBackOff | Reason::ErrImagePull | Reason::InvalidImageName | Reason::CreateContainerConfigError)
}
