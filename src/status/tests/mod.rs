//! Facts to status, as tables.

mod cause;
mod crash;
mod form;
mod lws;
mod members;
mod property;
mod ready;
mod switch;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::api::condition;
use crate::api::lws::Release;
use crate::api::odin::{Diagnostic, InferenceService, InferenceServiceStatus, ObjectRef, Placement, Rejection, Source, WorkloadKind};
use crate::api::reason::Reason;
use crate::placement::Plan;
use crate::render::{Refusal, Rendered};
use crate::workload::{Owner, Workload};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_772_000_000 + seconds).unwrap()
}

/// A world in which one service is rendered, placed, and at work; tests break what they are about.
#[derive(Debug)]
struct World {
    service: InferenceService,
    rendered: Result<Rendered, Refusal>,
    workload: Option<Workload>,
    plan: Option<Plan>,
    members: Vec<MemberObservation>,
    leaving: Vec<MemberObservation>,
    all_ready_since: Option<Timestamp>,
    now: Timestamp,
}

impl World {
    /// `placements` with that many groups each, all ready for long.
    fn healthy(placements: &[(&str, u32)]) -> Self {
        let mut service = InferenceService::default();
        service.metadata.name = Some("chat".into());
        service.metadata.namespace = Some("demo".into());
        service.metadata.generation = Some(1);
        service.spec.replicas = Some(placements.iter().map(|(_, n)| i32::try_from(*n).unwrap()).sum());
        let spec = json!({"template": {"spec": {"containers": [{"name": "main", "image": "x"}]}}});
        let source = Source { kind: "RuntimeBase".into(), name: "engine".into(), generation: 3, ..Source::default() };
        let rendered = Rendered { spec, sources: vec![source], hash: "spec-hash".into(), warnings: Vec::new() };
        let labels = std::collections::BTreeMap::new();
        let owner = Owner {
            name: "chat",
            namespace: "demo",
            uid: "u",
            generation: 1,
            labels: &labels,
            annotations: &labels,
            pools: &[],
            hub_id: "h",
        };
        let workload = crate::workload::build(&owner, &rendered).unwrap();
        let members = placements.iter().map(|(cluster, n)| member(cluster, *n, &workload.hash)).collect();
        let plan = Plan { placements: placements.iter().map(|(c, n)| ((*c).to_owned(), *n)).collect(), ..Plan::default() };
        Self {
            service,
            rendered: Ok(rendered),
            workload: Some(workload),
            plan: Some(plan),
            members,
            leaving: Vec::new(),
            all_ready_since: Some(at(-60)),
            now: at(0),
        }
    }

    /// The same with `LeaderWorkerSets`, of release 0.9.
    fn lws(placements: &[(&str, u32)]) -> Self {
        let mut world = Self::healthy(placements);
        if let Some(workload) = &mut world.workload {
            workload.kind = WorkloadKind::LeaderWorkerSet;
        }
        for view in world.members.iter_mut().filter_map(|m| m.workload.as_mut()) {
            view.kind = WorkloadKind::LeaderWorkerSet;
            view.release = Some(Release::V0_9);
            view.conditions = lws_conditions(Some(true), Some(false), None);
        }
        world
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            service: &self.service,
            rendered: self.rendered.as_ref(),
            workload: self.workload.as_ref(),
            plan: self.plan.as_ref(),
            members: &self.members,
            leaving: &self.leaving,
            all_ready_since: self.all_ready_since,
            now: self.now,
        }
    }

    /// One pass: the status becomes the service's own.
    fn pass(&mut self) -> Report {
        let report = report(&self.facts());
        let again = {
            let mut service = self.service.clone();
            // As the API server would give it back.
            service.status = serde_json::from_value(serde_json::to_value(&report.status).unwrap()).unwrap();
            super::report(&Facts { service: &service, ..self.facts() })
        };
        assert_eq!(again.status, report.status, "a status that is fed back must come out unchanged");
        self.service.status = Some(report.status.clone());
        report
    }

    fn status(&mut self) -> InferenceServiceStatus {
        self.pass().status
    }

    fn view(&mut self, i: usize) -> &mut WorkloadView {
        self.members[i].workload.as_mut().unwrap()
    }

    fn refuse(&mut self, reason: Reason, message: &str) {
        self.rendered = Err(Refusal { reason, message: message.into() });
        self.workload = None;
        self.plan = None;
    }

    /// A new generation that nobody has applied yet.
    fn edit(&mut self, image: &str) {
        self.service.metadata.generation = self.service.metadata.generation.map(|g| g + 1);
        let rendered = self.rendered.as_mut().unwrap();
        rendered.spec["template"]["spec"]["containers"][0]["image"] = json!(image);
        let labels = std::collections::BTreeMap::new();
        let owner = Owner {
            name: "chat",
            namespace: "demo",
            uid: "u",
            generation: 2,
            labels: &labels,
            annotations: &labels,
            pools: &[],
            hub_id: "h",
        };
        let mut workload = crate::workload::build(&owner, rendered).unwrap();
        if let Some(before) = &self.workload {
            (workload.kind, workload.partition) = (before.kind, before.partition);
        }
        self.workload = Some(workload);
    }

    /// The member has accepted the present generation; its child's status is still that of before.
    fn apply(&mut self, i: usize) {
        let (hash, generation) = (self.workload.as_ref().unwrap().hash.clone(), self.service.metadata.generation.unwrap());
        self.view(i).generation += 1;
        let object_generation = self.view(i).generation;
        self.members[i].applied = ApplyState::Applied { generation, object_generation, hash };
    }
}

fn member(cluster: &str, n: u32, hash: &str) -> MemberObservation {
    MemberObservation {
        cluster: cluster.into(),
        reachable: true,
        last_seen: Some(at(-5)),
        wanted: n,
        applied: ApplyState::Applied { generation: 1, object_generation: 1, hash: hash.into() },
        workload: Some(WorkloadView {
            kind: WorkloadKind::Deployment,
            name: "chat".into(),
            namespace: "demo".into(),
            uid: format!("{cluster}-uid"),
            generation: 1,
            observed_generation: Some(1),
            replicas: n,
            ready: n,
            updated: n,
            conditions: vec![json!({"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "lastUpdateTime": "x"})],
            rendered_hash: Some(hash.into()),
            service_generation: Some(1),
            ..WorkloadView::default()
        }),
        ..MemberObservation::default()
    }
}

/// Conditions as a `LeaderWorkerSet` shows them: the words of each are always those of True, and none is there before it
/// was True once.
fn lws_conditions(available: Option<bool>, progressing: Option<bool>, updating: Option<bool>) -> Vec<Value> {
    [
        ("Progressing", "GroupsProgressing", "Replicas are progressing", progressing),
        ("Available", "AllGroupsReady", "All replicas are ready", available),
        ("UpdateInProgress", "GroupsUpdating", "Rolling Upgrade is in progress", updating),
    ]
    .into_iter()
    .filter_map(|(type_, reason, message, is_true)| {
        let status = if is_true? { "True" } else { "False" };
        Some(json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-02-25T06:13:00Z"}))
    })
    .collect()
}

fn pod(name: &str, reason: Reason, message: &str, seconds: i64) -> PodSignal {
    PodSignal {
        reason,
        message: message.into(),
        at: at(seconds),
        object: ObjectRef { kind: "Pod".into(), namespace: Some("demo".into()), name: name.into() },
        container: Some("main".into()),
        group: None,
    }
}

fn rejection(cluster: &str, message: &str) -> Rejection {
    Rejection { cluster: cluster.into(), reason: "InsufficientRoom".into(), message: message.into() }
}

/// Status and reason of a condition.
fn word(status: &InferenceServiceStatus, type_: &str) -> (String, String) {
    condition::find(&status.conditions, type_).map(|c| (c.status.clone(), c.reason.clone())).unwrap_or_default()
}

fn text(status: &InferenceServiceStatus, type_: &str) -> String {
    condition::find(&status.conditions, type_).map(|c| c.message.clone()).unwrap_or_default()
}

fn words(status: &str, reason: &str) -> (String, String) {
    (status.into(), reason.into())
}

fn diagnostic(status: &InferenceServiceStatus) -> &Diagnostic {
    status.workload.as_ref().and_then(|w| w.diagnostic.as_ref()).unwrap_or_else(|| panic!("no diagnostic in {status:#?}"))
}

fn placement<'a>(status: &'a InferenceServiceStatus, cluster: &str) -> &'a Placement {
    status.placements.iter().find(|p| p.cluster == cluster).unwrap()
}
