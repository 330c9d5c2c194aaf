//! The pods of one group as a member gets them, and what they ask for.

use serde_json::Value;

use super::pools::Pools;
use super::{Owner, meta, present, quantities, refuse};
use crate::api::lws::EXCLUSIVE_TOPOLOGY;
use crate::api::names::is_label_key;
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;
use crate::capacity::{GroupRequest, PodSet, PodShape};
use crate::render::Refusal;

/// The pods of one group.
pub(super) struct Group {
    /// `LeaderWorkerSet` as soon as there is a worker template, however small the group.
    pub(super) kind: WorkloadKind,
    /// Pods of a group, the leader included.
    pub(super) size: u32,
    /// The template of the leader, or of all pods.
    pub(super) first: PodTemplate,
    /// The template of the workers, where it is written apart.
    pub(super) workers: Option<PodTemplate>,
}

/// A pod template with its labels.
pub(super) struct PodTemplate {
    /// The template.
    pub(super) value: Value,
    /// Where it stands in the service.
    pub(super) path: &'static str,
    /// Whether its pods are behind the service.
    pub(super) served: bool,
}

/// Which pods of a group are behind the service.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Leader,
    Workers,
    All,
}

const TEMPLATE: &str = "spec.template";
const WORKER_TEMPLATE: &str = "spec.workerTemplate";

impl Group {
    /// Reads the group from a rendered spec.
    ///
    /// # Errors
    /// A group without a template or a size, a target that doesn't exist, and what `quantities` and `meta` refuse.
    pub(super) fn of(owner: &Owner<'_>, spec: &Value, pools: &Pools<'_>) -> Result<Self, Refusal> {
        let own = present(spec, "template");
        let target = target(spec, own.is_some())?;
        let make = |template: &Value, path, served| PodTemplate::of(owner, template, path, served, pools);
        let Some(workers) = present(spec, "workerTemplate") else {
            let template = own.ok_or_else(|| {
                refuse(Reason::NoPodTemplate, "no layer sets template: set it in the service or in a template that it names")
            })?;
            return Ok(Self { kind: WorkloadKind::Deployment, size: 1, first: make(template, TEMPLATE, true)?, workers: None });
        };
        let size = size(spec).ok_or_else(|| {
            refuse(
                Reason::WorkerNeedsParallelism,
                "spec.parallelism gives no size to the groups that spec.workerTemplate makes: set data or pipeline",
            )
        })?;
        let (leader, leader_path) = own.map_or((workers, WORKER_TEMPLATE), |own| (own, TEMPLATE));
        // Without a template of its own the leader has the workers', and needs a copy only where labels tell them apart.
        let apart = own.is_some() || target != Target::All;
        Ok(Self {
            kind: WorkloadKind::LeaderWorkerSet,
            size,
            first: make(leader, leader_path, target != Target::Workers)?,
            workers: if apart { Some(make(workers, WORKER_TEMPLATE, target != Target::Leader)?) } else { None },
        })
    }

    /// Its templates, the leader's first.
    pub(super) fn templates(&self) -> impl Iterator<Item = &PodTemplate> {
        std::iter::once(&self.first).chain(&self.workers)
    }

    /// What the group asks of a member.
    ///
    /// # Errors
    /// `InvalidRendered` for a template that can't be read.
    pub(super) fn request(&self, exclusive_topology: Option<&str>) -> Result<GroupRequest, Refusal> {
        let first = self.first.shape()?;
        let workers = self.workers.as_ref().map(PodTemplate::shape).transpose()?;
        let pods = match workers {
            Some(workers) if self.size > 1 && workers != first => {
                vec![PodSet { shape: first, count: 1 }, PodSet { shape: workers, count: self.size.saturating_sub(1) }]
            }
            _ => vec![PodSet { shape: first, count: self.size }],
        };
        Ok(GroupRequest { kind: self.kind, pods, exclusive_topology: exclusive_topology.map(ToOwned::to_owned) })
    }

    /// What is allowed of it but hardly meant.
    pub(super) fn warnings(&self, owner: &Owner<'_>) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.size == 1 && !self.first.served {
            warnings.push(
                "spec.service.target is workers, but a group is one pod, its leader: the service has no pods; use leader or all".to_owned(),
            );
        }
        if self.kind == WorkloadKind::Deployment && owner.annotations.contains_key(EXCLUSIVE_TOPOLOGY) {
            warnings.push(format!(
                "the annotation {EXCLUSIVE_TOPOLOGY} does nothing without spec.workerTemplate: a Deployment has no groups that exclude each \
                 other"
            ));
        }
        warnings
    }
}

impl PodTemplate {
    fn of(owner: &Owner<'_>, template: &Value, path: &'static str, served: bool, pools: &Pools<'_>) -> Result<Self, Refusal> {
        let mut value = template.clone();
        quantities::canonicalise(&mut value, path)?;
        meta::label_pods(owner, &mut value, path, served.then_some(pools))?;
        Ok(Self { value, path, served })
    }

    fn shape(&self) -> Result<PodShape, Refusal> {
        PodShape::from_template(&self.value).map_err(|message| {
            // The message begins with a field of the template, or with a verb.
            let between = if message.starts_with("spec.") { "." } else { " " };
            refuse(Reason::InvalidRendered, format!("{}{between}{message}", self.path))
        })
    }
}

/// Pods of a group by its parallelism, if that gives at least one.
fn size(spec: &Value) -> Option<u32> {
    let number = |name: &str| spec.get("parallelism")?.get(name)?.as_u64();
    let size = match number("data") {
        Some(data) => data.checked_div(number("dataLocal").unwrap_or(data))?,
        None => number("pipeline")?,
    };
    u32::try_from(size).ok().filter(|size| *size > 0)
}

fn target(spec: &Value, leader_differs: bool) -> Result<Target, Refusal> {
    let auto = if leader_differs { Target::Leader } else { Target::All };
    let Some(target) = present(spec, "service").and_then(|service| present(service, "target")) else { return Ok(auto) };
    match target.as_str() {
        Some("leader") => Ok(Target::Leader),
        Some("workers") => Ok(Target::Workers),
        Some("all") => Ok(Target::All),
        Some("auto") => Ok(auto),
        _ => Err(refuse(Reason::InvalidRendered, "spec.service.target must be leader, workers, all or auto")),
    }
}

/// The topology that a service's groups exclude each other from; only groups of a `LeaderWorkerSet` can.
///
/// # Errors
/// `InvalidRendered` for an annotation that no node label can have as its key.
pub(super) fn exclusive_topology<'a>(owner: &Owner<'a>, kind: WorkloadKind) -> Result<Option<&'a str>, Refusal> {
    match owner.annotations.get(EXCLUSIVE_TOPOLOGY) {
        Some(key) if kind == WorkloadKind::LeaderWorkerSet => {
            if !is_label_key(key) {
                return Err(refuse(
                    Reason::InvalidRendered,
                    format!(
                        "the annotation {EXCLUSIVE_TOPOLOGY} of the service is {key:?}, which can't be the key of a node label: use one such \
                         as topology.kubernetes.io/zone, or remove the annotation"
                    ),
                ));
            }
            Ok(Some(key))
        }
        _ => Ok(None),
    }
}
