//! Which nodes a pod may use, and how many of its kind fit into what is free.

use std::collections::HashMap;
use std::sync::Arc;

use super::resources::is_extended;
use super::room::Options;
use super::selection::Taint;
use super::shape::PodShape;
use super::snapshot::{Class, Named};

/// Set on a node while it is cordoned.
const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// What keeps a pod off a node, whatever is free there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Usable,
    /// Selector or affinity asks for other nodes.
    NotSelected,
    /// It offers none of this extended resource.
    NoDevices(String),
    NotReady,
    Cordoned,
    /// These are not tolerated.
    Tainted(Vec<Taint>),
}

impl Verdict {
    pub(super) fn is_usable(&self) -> bool {
        *self == Self::Usable
    }

    /// Whether pods that run on such a node stay, though it takes no new ones.
    pub(super) fn keeps(&self) -> bool {
        match self {
            Self::Usable | Self::Cordoned => true,
            // What a taint drives away doesn't stay.
            Self::Tainted(taints) => taints.iter().all(|taint| taint.effect == "NoSchedule"),
            _ => false,
        }
    }
}

/// Whether a pod may use a node of this class and name.
pub(super) fn verdict(class: &Class, name: &str, shape: &PodShape, options: Options) -> Verdict {
    if let Some(bound) = &shape.node_name {
        // Past the scheduler no other rule applies.
        return match (bound == name, class.ready) {
            (false, _) => Verdict::NotSelected,
            (true, false) => Verdict::NotReady,
            (true, true) => Verdict::Usable,
        };
    }
    if !shape.selection.matches(&Named { class, name }) {
        return Verdict::NotSelected;
    }
    if let Some((missing, _)) = shape.requests.iter().find(|(name, _)| is_extended(name) && class.allocatable.get(name) == 0) {
        return Verdict::NoDevices(missing.to_owned());
    }
    if !class.ready {
        return Verdict::NotReady;
    }
    let tolerated = |taint: &Taint| {
        shape.tolerations.iter().any(|toleration| toleration.covers(taint))
            || (options.extended_resource_toleration && taint.effect == "NoSchedule" && shape.tolerated_resources.contains(&taint.key))
    };
    let cordon = Taint { key: CORDONED.to_owned(), value: String::new(), effect: "NoSchedule".to_owned() };
    if class.unschedulable && !tolerated(&cordon) {
        return Verdict::Cordoned;
    }
    let hard = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    let (conditions, taints): (Vec<&Taint>, Vec<&Taint>) =
        class.taints.iter().filter(hard).filter(|taint| !tolerated(taint)).partition(|taint| taint.key.starts_with("node.kubernetes.io/"));
    if conditions.iter().any(|taint| taint.key == CORDONED) {
        Verdict::Cordoned
    } else if !conditions.is_empty() {
        Verdict::NotReady
    } else if !taints.is_empty() {
        Verdict::Tainted(taints.into_iter().cloned().collect())
    } else {
        Verdict::Usable
    }
}

/// Verdicts, asked for once per class of nodes.
pub(super) struct Verdicts<'a> {
    shape: &'a PodShape,
    options: Options,
    known: HashMap<*const Class, Verdict>,
}

impl<'a> Verdicts<'a> {
    pub(super) fn new(shape: &'a PodShape, options: Options) -> Self {
        Self { shape, options, known: HashMap::new() }
    }

    /// Whether nodes of one class differ for this shape.
    pub(super) fn by_name(&self, class: &Class) -> bool {
        self.shape.node_name.is_some() || self.shape.selection.looks_at_name(&class.name_labels)
    }

    pub(super) fn of(&mut self, class: &Arc<Class>, name: &str) -> Verdict {
        if self.by_name(class) {
            return verdict(class, name, self.shape, self.options);
        }
        self.known.entry(Arc::as_ptr(class)).or_insert_with(|| verdict(class, name, self.shape, self.options)).clone()
    }
}

/// How many pods with this request fit into what is free.
pub(super) fn units(free: &[i64], request: &[i64]) -> u64 {
    let rooms = free.iter().zip(request).filter(|(_, request)| **request > 0).map(|(free, request)| free / request);
    rooms.min().map_or(0, |room| u64::try_from(room).unwrap_or(0))
}
