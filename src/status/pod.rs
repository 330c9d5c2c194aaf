//! The lean view of a pod: what tells why it isn't ready.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use super::text;
use crate::api::nullable;

/// The parts of a Pod that tell what is wrong with it; it deserializes from the JSON of a whole Pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodStatusView {
    /// `metadata`.
    #[serde(deserialize_with = "nullable")]
    pub metadata: PodMeta,
    /// `spec`.
    #[serde(deserialize_with = "nullable")]
    pub spec: PodSpec,
    /// `status`.
    #[serde(deserialize_with = "nullable")]
    pub status: PodStatus,
}

/// `metadata` of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodMeta {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its UID.
    pub uid: String,
    /// When it was made.
    #[serde(deserialize_with = "time")]
    pub creation_timestamp: Option<Timestamp>,
    /// When it was told to go.
    #[serde(deserialize_with = "time")]
    pub deletion_timestamp: Option<Timestamp>,
    /// Who owns it.
    #[serde(deserialize_with = "nullable")]
    pub owner_references: Vec<PodOwner>,
}

/// One of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodOwner {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Whether it is the one that controls the pod.
    #[serde(deserialize_with = "nullable")]
    pub controller: bool,
}

/// `spec` of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The node that it is bound to.
    pub node_name: Option<String>,
    /// What keeps it from being scheduled.
    #[serde(deserialize_with = "nullable")]
    pub scheduling_gates: Vec<SchedulingGate>,
}

/// One of `spec.schedulingGates`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SchedulingGate {
    /// Its name.
    pub name: String,
}

/// `status` of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    #[serde(deserialize_with = "nullable")]
    pub phase: String,
    /// Why it is in that phase, for example `Evicted`.
    #[serde(deserialize_with = "text")]
    pub reason: String,
    /// The same, for people.
    #[serde(deserialize_with = "text")]
    pub message: String,
    /// When the kubelet took it.
    #[serde(deserialize_with = "time")]
    pub start_time: Option<Timestamp>,
    /// Its conditions.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<PodCondition>,
    /// Its init containers.
    #[serde(deserialize_with = "nullable")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// Its containers.
    #[serde(deserialize_with = "nullable")]
    pub container_statuses: Vec<ContainerStatus>,
}

/// One of `status.conditions`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word.
    #[serde(deserialize_with = "text")]
    pub reason: String,
    /// For people.
    #[serde(deserialize_with = "text")]
    pub message: String,
    /// When its status changed.
    #[serde(deserialize_with = "time")]
    pub last_transition_time: Option<Timestamp>,
}

/// One of the container statuses.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// Name of the container.
    pub name: String,
    /// It passes its readiness probe.
    #[serde(deserialize_with = "nullable")]
    pub ready: bool,
    /// It passed its startup probe.
    pub started: Option<bool>,
    /// How often it was restarted.
    #[serde(deserialize_with = "nullable")]
    pub restart_count: i32,
    /// What it does.
    #[serde(deserialize_with = "nullable")]
    pub state: ContainerState,
    /// How it ended last.
    #[serde(deserialize_with = "nullable")]
    pub last_state: ContainerState,
}

/// State of a container: one of the three is set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It waits.
    pub waiting: Option<Waiting>,
    /// It runs.
    pub running: Option<Running>,
    /// It has ended.
    pub terminated: Option<Terminated>,
}

/// A container that waits.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// For what.
    #[serde(deserialize_with = "text")]
    pub reason: String,
    /// The same, for people.
    #[serde(deserialize_with = "text")]
    pub message: String,
}

/// A container that runs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Running {
    /// Since when.
    #[serde(deserialize_with = "time")]
    pub started_at: Option<Timestamp>,
}

/// A container that has ended.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Terminated {
    /// Its exit code.
    #[serde(deserialize_with = "nullable")]
    pub exit_code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// One word, for example `OOMKilled`.
    #[serde(deserialize_with = "text")]
    pub reason: String,
    /// What it left as its last words.
    #[serde(deserialize_with = "text")]
    pub message: String,
    /// When it ended.
    #[serde(deserialize_with = "time")]
    pub finished_at: Option<Timestamp>,
}

impl PodStatusView {
    /// Whether the pod's condition Ready is True: such a pod has no trouble to tell of.
    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|c| c.status == "True")
    }

    pub(super) fn condition(&self, type_: &str) -> Option<&PodCondition> {
        self.status.conditions.iter().find(|c| c.type_ == type_)
    }
}

/// A text from a member: cut to what a message can hold, so that a large one isn't kept for each pod.
fn text<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let mut text: String = nullable(input)?;
    text::cut(&mut text, text::MESSAGE_LIMIT);
    text.shrink_to_fit();
    Ok(text)
}

/// A time from a member: one that is none counts as missing, or a single odd pod would stop the watch of all.
fn time<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Timestamp>, D::Error> {
    let text: Option<String> = Option::deserialize(input)?;
    Ok(text.and_then(|t| t.parse().ok()))
}
