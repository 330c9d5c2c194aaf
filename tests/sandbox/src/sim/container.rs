//! One container's next status.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{
        Container as Spec, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

use super::{annotations::FaultKind, pod::PodEvent};

/// Images whose name starts with this cannot be pulled, with no annotation at all.
pub const MISSING_IMAGE: &str = "sim.invalid/missing";

/// How long a container that crashes runs, and how long its end shows before the back-off begins.
const CRASH_RUNS: Duration = Duration::from_secs(1);
const CRASH_SHOWS: Duration = Duration::from_millis(300);

/// A container as it is, and the moment it is looked at.
pub(super) struct Container<'a> {
    name: &'a str,
    image: &'a str,
    old: Option<&'a ContainerStatus>,
    moment: Moment<'a>,
}

/// What all containers of a pod share when it is looked at.
#[derive(Clone, Copy)]
pub(super) struct Moment<'a> {
    pub(super) pod: PodName<'a>,
    /// The time, to measure with.
    pub(super) now: Timestamp,
    /// The time in whole seconds, to write down.
    pub(super) stamp: Timestamp,
    /// The first restart waits this long; each further one twice as long, up to thirty times this.
    pub(super) back_off: Duration,
}

/// How the kubelet writes a pod in messages: `name_namespace(uid)`.
#[derive(Clone, Copy)]
pub(super) struct PodName<'a> {
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    pub(super) uid: &'a str,
}

/// What comes next: the status, what is told about it, and when to look again.
pub(super) struct Turn {
    pub(super) status: ContainerStatus,
    pub(super) events: Vec<PodEvent>,
    pub(super) after: Option<Duration>,
}

impl From<ContainerStatus> for Turn {
    fn from(status: ContainerStatus) -> Self {
        Self { status, events: vec![], after: None }
    }
}

impl Turn {
    fn event(mut self, warning: bool, reason: &'static str, message: String) -> Self {
        self.events.push(PodEvent { warning, reason, message });
        self
    }

    fn after(self, after: Duration) -> Self {
        Self { after: Some(after), ..self }
    }
}

impl<'a> Container<'a> {
    pub(super) fn new(container: &'a Spec, statuses: Option<&'a [ContainerStatus]>, moment: Moment<'a>) -> Self {
        Self {
            name: &container.name,
            image: container.image.as_deref().unwrap_or_default(),
            old: statuses.into_iter().flatten().find(|status| status.name == container.name),
            moment,
        }
    }

    pub(super) fn image_is_missing(&self) -> bool {
        self.image.starts_with(MISSING_IMAGE)
    }

    /// The next status of a container whose pod has started.
    pub(super) fn next(&self, fault: Option<FaultKind>) -> Turn {
        match fault {
            _ if self.image_is_missing() => self.image_missing(),
            None => self.running(true).into(),
            Some(FaultKind::Image) => self.image_missing(),
            Some(FaultKind::Unready) => self.unready(),
            Some(FaultKind::Once) => self.restart_once().into(),
            Some(FaultKind::Config) => self.config_missing(),
            Some(FaultKind::Crash) => self.crash(1, "Error"),
            Some(FaultKind::Oom) => self.crash(137, "OOMKilled"),
            Some(FaultKind::Evict) => self.killed().into(),
        }
    }

    /// Waits for what stands before it: the image, the network, or the init containers.
    pub(super) fn waiting(&self, reason: &str, message: String) -> ContainerStatus {
        let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message: Some(message).filter(|m| !m.is_empty()) };
        ContainerStatus {
            started: Some(false),
            state: Some(ContainerState { waiting: Some(waiting), ..Default::default() }),
            ..self.base()
        }
    }

    pub(super) fn running(&self, ready: bool) -> ContainerStatus {
        let running = self.old_running().cloned().unwrap_or(ContainerStateRunning { started_at: Some(Time(self.moment.stamp)) });
        self.started(ready, running)
    }

    /// An init container that has done its work.
    pub(super) fn completed(&self) -> ContainerStatus {
        if let Some(old) = self.old.filter(|_| self.old_terminated().is_some()) {
            return old.clone();
        }
        ContainerStatus { ready: true, started: Some(false), ..self.base_with(self.terminated(0, "Completed")) }
    }

    fn base(&self) -> ContainerStatus {
        ContainerStatus {
            name: self.name.to_owned(),
            image: self.image.to_owned(),
            restart_count: self.restarts(),
            last_state: self.old.and_then(|old| old.last_state.clone()),
            ..Default::default()
        }
    }

    fn base_with(&self, terminated: ContainerStateTerminated) -> ContainerStatus {
        ContainerStatus { state: Some(ContainerState { terminated: Some(terminated), ..Default::default() }), ..self.base() }
    }

    fn started(&self, ready: bool, running: ContainerStateRunning) -> ContainerStatus {
        ContainerStatus {
            ready,
            started: Some(true),
            container_id: Some(self.id(self.restarts())),
            image_id: self.image.to_owned(),
            state: Some(ContainerState { running: Some(running), ..Default::default() }),
            ..self.base()
        }
    }

    fn terminated(&self, exit_code: i32, reason: &str) -> ContainerStateTerminated {
        let now = Some(Time(self.moment.stamp));
        ContainerStateTerminated {
            exit_code,
            reason: Some(reason.to_owned()),
            started_at: self.old_running().map_or(now.clone(), |running| running.started_at.clone()),
            finished_at: now,
            container_id: Some(self.id(self.restarts())),
            ..Default::default()
        }
    }

    fn unready(&self) -> Turn {
        let turn = Turn::from(self.running(false));
        if self.old.is_some_and(|old| !old.ready && self.old_running().is_some()) {
            return turn;
        }
        turn.event(true, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503".to_owned())
    }

    fn restart_once(&self) -> ContainerStatus {
        if self.restarts() > 0 {
            return self.running(true);
        }
        let mut status = self.started(true, ContainerStateRunning { started_at: Some(Time(self.moment.stamp)) });
        status.restart_count = 1;
        status.container_id = Some(self.id(1));
        status.last_state = Some(ContainerState { terminated: Some(self.terminated(1, "Error")), ..Default::default() });
        status
    }

    fn image_missing(&self) -> Turn {
        let image = self.image;
        let pull = format!("failed to pull and unpack image {image:?}: not found");
        // A container whose image was changed begins anew.
        let reason = self.old_waiting().filter(|_| self.old.is_some_and(|old| old.image == image));
        match (reason, self.old) {
            (Some("ImagePullBackOff"), Some(old)) => old.clone().into(),
            (Some("ErrImagePull"), _) => {
                let message = format!("Back-off pulling image {image:?}: ErrImagePull: {pull}");
                Turn::from(self.waiting("ImagePullBackOff", message)).event(false, "BackOff", format!("Back-off pulling image {image:?}"))
            }
            _ => Turn::from(self.waiting("ErrImagePull", pull.clone()))
                .event(true, "Failed", format!("Failed to pull image {image:?}: {pull}"))
                .event(true, "Failed", "Error: ErrImagePull".to_owned())
                .after(self.moment.back_off),
        }
    }

    fn config_missing(&self) -> Turn {
        let message = "secret \"missing\" not found";
        match self.old.filter(|_| self.old_waiting() == Some("CreateContainerConfigError")) {
            Some(old) => old.clone().into(),
            None => Turn::from(self.waiting("CreateContainerConfigError", message.to_owned())).event(
                true,
                "Failed",
                format!("Error: {message}"),
            ),
        }
    }

    /// Walks running → terminated → `CrashLoopBackOff` → running.
    fn crash(&self, exit_code: i32, reason: &str) -> Turn {
        let back_off = self.moment.back_off.saturating_mul(1 << self.restarts().clamp(0, 5)).min(self.moment.back_off.saturating_mul(30));
        if let Some(old) = self.old {
            if self.old_waiting() == Some("CrashLoopBackOff") {
                let ended = old.last_state.as_ref().and_then(|state| state.terminated.as_ref()).and_then(|end| end.finished_at.as_ref());
                let waited = ended.map_or(back_off, |at| self.since(at));
                if waited < back_off {
                    return Turn::from(old.clone()).after(back_off.saturating_sub(waited));
                }
                let mut status = self.started(false, ContainerStateRunning { started_at: Some(Time(self.moment.stamp)) });
                status.restart_count += 1;
                status.container_id = Some(self.id(status.restart_count));
                return Turn::from(status).after(CRASH_RUNS);
            }
            if let Some(end) = self.old_terminated() {
                let PodName { name: pod, namespace, uid } = self.moment.pod;
                let whom = format!("{} in pod {pod}_{namespace}({uid})", self.name);
                let message =
                    format!("back-off {}s restarting failed container={} pod={pod}_{namespace}({uid})", back_off.as_secs(), self.name);
                let mut status = self.waiting("CrashLoopBackOff", message);
                status.last_state = Some(ContainerState { terminated: Some(end.clone()), ..Default::default() });
                return Turn::from(status)
                    .event(true, "BackOff", format!("Back-off restarting failed container {whom}"))
                    .after(back_off.saturating_sub(end.finished_at.as_ref().map_or(Duration::ZERO, |at| self.since(at))));
            }
            let ran = self.old_running().and_then(|running| running.started_at.as_ref()).map(|at| self.since(at));
            if let Some(ran) = ran.filter(|ran| *ran < CRASH_RUNS) {
                return Turn::from(old.clone()).after(CRASH_RUNS.saturating_sub(ran));
            }
        }
        let status =
            ContainerStatus { started: Some(false), image_id: self.image.to_owned(), ..self.base_with(self.terminated(exit_code, reason)) };
        Turn::from(status).after(CRASH_SHOWS)
    }

    /// Its pod was evicted.
    fn killed(&self) -> ContainerStatus {
        ContainerStatus { started: Some(false), ..self.base_with(self.terminated(137, "Error")) }
    }

    fn restarts(&self) -> i32 {
        self.old.map_or(0, |old| old.restart_count)
    }

    fn old_state(&self) -> Option<&ContainerState> {
        self.old?.state.as_ref()
    }

    fn old_running(&self) -> Option<&ContainerStateRunning> {
        self.old_state()?.running.as_ref()
    }

    fn old_terminated(&self) -> Option<&ContainerStateTerminated> {
        self.old_state()?.terminated.as_ref()
    }

    fn old_waiting(&self) -> Option<&str> {
        self.old_state()?.waiting.as_ref()?.reason.as_deref()
    }

    fn id(&self, restarts: i32) -> String {
        format!("sim://{}/{}/{restarts}", self.moment.pod.uid, self.name)
    }

    fn since(&self, at: &Time) -> Duration {
        Duration::try_from(self.moment.now.duration_since(at.0)).unwrap_or_default()
    }
}
