//! What the kubelet does next for one pod. Nothing here talks to a server or looks at a clock.

use std::time::Duration;

use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use k8s_openapi::{
    api::core::v1::{ContainerState, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};

use super::{
    annotations::{self, Fault, FaultKind},
    container::{Container, Moment, PodName},
};

/// A `ContainerCreating` that lasts shorter than this is not written: it would only cost two writes per pod.
const WORTH_A_WRITE: Duration = Duration::from_secs(1);
/// Never look again sooner than this.
const SOONEST: Duration = Duration::from_millis(20);

/// How fast pods move where their annotations say nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) ready_after: Duration,
    pub(super) back_off: Duration,
}

/// What is done for a pod now, and when it is looked at again.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Step {
    pub(super) action: Action,
    /// Told after the action has succeeded.
    pub(super) events: Vec<PodEvent>,
    pub(super) after: Option<Duration>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) enum Action {
    #[default]
    Nothing,
    /// Write this status.
    Write(Box<PodStatus>),
    /// Its containers have ended: confirm its deletion.
    Delete,
}

/// An event of the kubelet about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodEvent {
    pub(super) warning: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The next step of a pod that was first seen on its node at `seen`.
pub(super) fn next(pod: &Pod, seen: Timestamp, now: Timestamp, timing: &Timing) -> Step {
    if let Some(Time(deadline)) = pod.metadata.deletion_timestamp {
        return terminate(pod, deadline, now);
    }
    let (Some(spec), None | Some("Pending" | "Running" | "Unknown")) =
        (&pod.spec, pod.status.as_ref().and_then(|status| status.phase.as_deref()))
    else {
        return Step::default();
    };
    let notes = pod.metadata.annotations.as_ref();
    let age = elapsed(seen, now);
    let ready_after = annotations::duration(notes, annotations::READY_AFTER).unwrap_or(timing.ready_after);
    // A fault that cannot be read is reported by the caller.
    let fault = Fault::from_annotations(notes).ok().flatten();
    let fault_after = fault.as_ref().map_or(Duration::ZERO, |fault| fault.after);
    let kind = fault.as_ref().filter(|_| age >= fault_after).map(|fault| fault.kind);
    let victim = fault.as_ref().and_then(|fault| fault.container.as_deref()).or_else(|| spec.containers.first().map(|c| c.name.as_str()));

    let mut wake = Wake::default();
    wake.at(fault_after.checked_sub(age).filter(|left| !left.is_zero()));
    wake.at(ready_after.checked_sub(age).filter(|left| !left.is_zero()));

    let mut status = pod.status.clone().unwrap_or_default();
    let (old, old_init) = (status.container_statuses.take(), status.init_container_statuses.take());
    let name = pod_name(pod);
    // Kubernetes keeps whole seconds; a finer time would differ from what comes back.
    let stamp = whole_second(now);
    let moment = Moment { pod: name, now, stamp, back_off: timing.back_off };
    let creating = age < ready_after;
    let mut events = vec![];

    let mut initialized = !creating;
    let mut init_statuses = vec![];
    for c in spec.init_containers.iter().flatten() {
        let view = Container::new(c, old_init.as_deref(), moment);
        if !initialized {
            init_statuses.push(view.waiting("PodInitializing", String::new()));
        } else if view.image_is_missing() {
            initialized = false;
            let turn = view.next(None);
            wake.at(turn.after);
            events.extend(turn.events);
            init_statuses.push(turn.status);
        } else if c.restart_policy.as_deref() == Some("Always") {
            init_statuses.push(view.running(true));
        } else {
            init_statuses.push(view.completed());
        }
    }

    let has_init = !init_statuses.is_empty();
    let mut statuses = vec![];
    for c in &spec.containers {
        let view = Container::new(c, old.as_deref(), moment);
        if !initialized {
            let reason = if has_init { "PodInitializing" } else { "ContainerCreating" };
            statuses.push(view.waiting(reason, String::new()));
            continue;
        }
        // An eviction strikes the pod, every other fault one container.
        let turn = view.next(kind.filter(|kind| *kind == FaultKind::Evict || Some(c.name.as_str()) == victim));
        wake.at(turn.after);
        events.extend(turn.events);
        statuses.push(turn.status);
    }

    status.start_time.get_or_insert(Time(stamp));
    let host = address(250, spec.node_name.as_deref().unwrap_or_default());
    let ip = address(200, name.uid);
    status.host_ips = Some(vec![HostIP { ip: host.clone() }]);
    status.host_ip = Some(host);
    status.pod_ips = Some(vec![PodIP { ip: ip.clone() }]);
    status.pod_ip = Some(ip);
    status.observed_generation = pod.metadata.generation;

    let evicted = initialized && kind == Some(FaultKind::Evict);
    // A pod has begun when one of its containers ever ran; one that waits for its restart counts.
    let ran = |state: &ContainerState| state.running.is_some() || state.terminated.is_some();
    let started = |c: &ContainerStatus| c.state.iter().chain(&c.last_state).any(ran);
    let phase = match () {
        () if evicted => "Failed",
        () if statuses.iter().any(started) => "Running",
        () => "Pending",
    };
    status.phase = Some(phase.to_owned());
    let mut conditions = Conditions { list: status.conditions.take().unwrap_or_default(), generation: pod.metadata.generation, stamp };
    if evicted {
        let message = "The node was low on resource: ephemeral-storage.";
        status.reason = Some("Evicted".to_owned());
        status.message = Some(message.to_owned());
        conditions.set("DisruptionTarget", true, "TerminationByKubelet", message);
        events.push(PodEvent { warning: true, reason: "Evicted", message: message.to_owned() });
    }
    let unready: Vec<_> = statuses.iter().filter(|c| !c.ready).map(|c| c.name.as_str()).collect();
    let all_ready = phase == "Running" && unready.is_empty();
    let unready = format!("containers with unready status: [{}]", unready.join(" "));
    conditions.set("PodReadyToStartContainers", !creating, "", "");
    conditions.set("Initialized", initialized || !has_init, "ContainersNotInitialized", "containers with incomplete status");
    conditions.set("Ready", all_ready, "ContainersNotReady", &unready);
    conditions.set("ContainersReady", all_ready, "ContainersNotReady", &unready);
    status.conditions = Some(conditions.list);
    status.container_statuses = Some(statuses);
    status.init_container_statuses = Some(init_statuses).filter(|list| !list.is_empty());

    let after = if evicted { None } else { wake.0.map(|after| after.max(SOONEST)) };
    if Some(&status) == pod.status.as_ref() || (creating && ready_after < WORTH_A_WRITE) {
        return Step { after, ..Step::default() };
    }
    Step { action: Action::Write(Box::new(status)), events, after }
}

/// A pod that is being deleted: its containers take as long to end as they are told to, at most the grace period.
fn terminate(pod: &Pod, deadline: Timestamp, now: Timestamp) -> Step {
    let grace = pod.metadata.deletion_grace_period_seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or_default();
    // Without grace the deletion is confirmed already; only finalizers keep the object.
    if grace == 0 {
        return Step::default();
    }
    let grace = Duration::from_secs(grace);
    let linger = annotations::duration(pod.metadata.annotations.as_ref(), annotations::LINGER).unwrap_or_default().min(grace);
    // The deadline is when the deletion was asked for, plus the grace period.
    let ended = (deadline - SignedDuration::try_from(grace).unwrap_or_default()) + SignedDuration::try_from(linger).unwrap_or_default();
    match Duration::try_from(ended.duration_since(now)) {
        Ok(left) if !left.is_zero() => Step { after: Some(left.max(SOONEST)), ..Step::default() },
        _ => Step { action: Action::Delete, ..Step::default() },
    }
}

/// The earliest time asked for.
#[derive(Default)]
struct Wake(Option<Duration>);

impl Wake {
    fn at(&mut self, after: Option<Duration>) {
        self.0 = self.0.into_iter().chain(after).min();
    }
}

struct Conditions {
    list: Vec<PodCondition>,
    generation: Option<i64>,
    stamp: Timestamp,
}

impl Conditions {
    fn set(&mut self, type_: &str, holds: bool, reason: &str, message: &str) {
        let status = if holds { "True" } else { "False" };
        // The kubelet explains what does not hold; a disruption is explained when it does.
        let explain = holds == (type_ == "DisruptionTarget");
        let text = |text: &str| Some(text.to_owned()).filter(|text| explain && !text.is_empty());
        let old = self.list.iter_mut().find(|c| c.type_ == type_);
        let since = old.as_ref().filter(|c| c.status == status).and_then(|c| c.last_transition_time.clone());
        let condition = PodCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: text(reason),
            message: text(message),
            last_transition_time: since.or(Some(Time(self.stamp))),
            observed_generation: self.generation,
            last_probe_time: None,
        };
        match old {
            Some(old) => *old = condition,
            None => self.list.push(condition),
        }
    }
}

fn pod_name(pod: &Pod) -> PodName<'_> {
    let meta = &pod.metadata;
    PodName {
        name: meta.name.as_deref().unwrap_or_default(),
        namespace: meta.namespace.as_deref().unwrap_or_default(),
        uid: meta.uid.as_deref().unwrap_or_default(),
    }
}

/// An address that is always the same for the same key: `10.NET.x.y`.
pub(super) fn address(net: u8, key: &str) -> String {
    let hash = key.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("10.{net}.{}.{}", hash >> 8 & 255, hash % 254 + 1)
}

fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

fn whole_second(time: Timestamp) -> Timestamp {
    time.round(TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Trunc)).unwrap_or(time)
}

#[cfg(test)]
mod tests;
