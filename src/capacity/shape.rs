//! What the pods of a service need.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::request::{self, Demands};
use super::resources::{Resources, is_extended};
use super::selection::{Selection, Term, Toleration};
use crate::api::nullable;
use crate::api::odin::WorkloadKind;

/// Spreads pods over nodes one by one.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The pods of one group, which serve together or not at all: one pod of a Deployment, a leader and its workers of a
/// `LeaderWorkerSet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupRequest {
    /// The workload that the group is one replica of.
    pub kind: WorkloadKind,
    /// Pods of equal shape. The leader is the first pod of the first set; where leader and workers have one shape they
    /// are one set.
    pub pods: Vec<PodSet>,
    /// Key of a node label: nodes of one value hold one group at most, and all of it.
    pub exclusive_topology: Option<String>,
}

impl GroupRequest {
    /// A group of one pod.
    pub fn one(shape: PodShape) -> Self {
        Self { pods: vec![PodSet { shape, count: 1 }], ..Self::default() }
    }

    /// Pods of one group.
    pub fn size(&self) -> u32 {
        self.pods.iter().fold(0, |sum, set| sum.saturating_add(set.count))
    }
}

/// Pods of one shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodSet {
    /// What each needs.
    pub shape: PodShape,
    /// How many of them are in a group.
    pub count: u32,
}

/// Everything about a pod that decides where it fits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodShape {
    /// What it asks for, a place among the node's pods included.
    pub requests: Resources,
    /// The nodes that it selects.
    pub selection: Selection,
    /// The taints that it tolerates.
    pub tolerations: Vec<Toleration>,
    /// Extended resources to which the admission plugin `ExtendedResourceToleration` adds tolerations.
    pub tolerated_resources: Vec<String>,
    /// The one node that it is bound to, past the scheduler.
    pub node_name: Option<String>,
    /// A node takes at most one of them: anti-affinity to their own labels, or a host port.
    pub one_per_node: bool,
    /// Devices are claimed by `resourceClaims`, which are not counted.
    pub claims_devices: bool,
    /// Constraints that count in a member but are not simulated here.
    pub unsimulated: Vec<String>,
    /// What only quotas look at.
    pub quota: QuotaFacts,
}

/// What of a pod decides which quotas count it, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct QuotaFacts {
    /// What it is limited to, where it is.
    pub limits: Resources,
    /// Which of `requests.cpu`, `requests.memory`, `limits.cpu`, `limits.memory` a container of it doesn't set, with the
    /// name of the first one.
    pub unset: BTreeMap<String, String>,
    /// It asks for no cpu and no memory.
    pub best_effort: bool,
    /// The priority class that it names.
    pub priority_class: Option<String>,
    /// It looks at pods of other namespaces.
    pub other_namespaces: bool,
}

impl QuotaFacts {
    fn read(template: &Value, demands: &Demands) -> Result<Self, String> {
        let spec = template.get("spec");
        let pod_terms = ["/affinity/podAffinity", "/affinity/podAntiAffinity"];
        let named = spec.and_then(|spec| spec.get("priorityClassName")).and_then(Value::as_str);
        Ok(Self {
            limits: request::limits_of_template(demands)?,
            unset: request::unset(demands),
            best_effort: request::is_best_effort(demands),
            priority_class: named.filter(|name| !name.is_empty()).map(str::to_owned),
            other_namespaces: pod_terms.iter().filter_map(|path| spec?.pointer(path)).any(names_namespaces),
        })
    }
}

/// Whether a term anywhere in this names namespaces.
fn names_namespaces(terms: &Value) -> bool {
    match terms {
        Value::Object(map) => {
            map.get("namespaces").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
                || map.get("namespaceSelector").is_some_and(Value::is_object)
                || map.values().any(names_namespaces)
        }
        Value::Array(list) => list.iter().any(names_namespaces),
        _ => false,
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    #[serde(deserialize_with = "nullable")]
    metadata: Metadata,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
}

type Labels = BTreeMap<String, String>;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    #[serde(deserialize_with = "nullable")]
    labels: Labels,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "nullable")]
    node_selector: Labels,
    #[serde(deserialize_with = "nullable")]
    affinity: Affinity,
    #[serde(deserialize_with = "nullable")]
    tolerations: Vec<Toleration>,
    #[serde(deserialize_with = "nullable")]
    host_network: bool,
    #[serde(deserialize_with = "nullable")]
    topology_spread_constraints: Vec<Spread>,
    #[serde(deserialize_with = "nullable")]
    volumes: Vec<Volume>,
    #[serde(deserialize_with = "nullable")]
    resource_claims: Vec<Value>,
}

/// The ports of containers, read apart from their resources.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Ports {
    #[serde(deserialize_with = "nullable")]
    containers: Vec<ContainerPorts>,
    #[serde(deserialize_with = "nullable")]
    init_containers: Vec<ContainerPorts>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerPorts {
    #[serde(deserialize_with = "nullable")]
    ports: Vec<Port>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Port {
    #[serde(deserialize_with = "nullable")]
    host_port: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Affinity {
    #[serde(rename = "nodeAffinity", deserialize_with = "nullable")]
    to_nodes: Required<Option<NodeTerms>>,
    #[serde(rename = "podAffinity", deserialize_with = "nullable")]
    to_pods: Required<Vec<PodTerm>>,
    #[serde(rename = "podAntiAffinity", deserialize_with = "nullable")]
    against_pods: Required<Vec<PodTerm>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound = "T: Deserialize<'de> + Default")]
struct Required<T> {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", deserialize_with = "nullable")]
    required: T,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeTerms {
    #[serde(deserialize_with = "nullable")]
    node_selector_terms: Vec<Term>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodTerm {
    label_selector: Option<Selector>,
    #[serde(deserialize_with = "nullable")]
    topology_key: String,
    #[serde(deserialize_with = "nullable")]
    namespaces: Vec<String>,
    namespace_selector: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Selector {
    #[serde(deserialize_with = "nullable")]
    match_labels: Labels,
    #[serde(deserialize_with = "nullable")]
    match_expressions: Vec<super::selection::Requirement>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spread {
    #[serde(deserialize_with = "nullable")]
    topology_key: String,
    #[serde(deserialize_with = "nullable")]
    when_unsatisfiable: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Volume {
    persistent_volume_claim: Option<Value>,
    ephemeral: Option<Value>,
}

impl PodTerm {
    /// Whether pods with these labels repel each other on one node, and nothing more is said.
    fn is_own_by_hostname(&self, labels: &Labels) -> bool {
        self.topology_key == HOSTNAME
            && self.namespaces.is_empty()
            && self.namespace_selector.is_none()
            && self.label_selector.as_ref().is_some_and(|selector| {
                selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
                    && selector
                        .match_expressions
                        .iter()
                        .all(|requirement| requirement.holds(labels.get(&requirement.key).map(String::as_str)))
            })
    }
}

impl PodShape {
    /// Reads a pod template; the error names the field that can't be read.
    pub fn from_template(template: &Value) -> Result<Self, String> {
        let unreadable = |error: serde_json::Error| format!("can't be read: {error}");
        let Template { metadata, spec } = Template::deserialize(template).map_err(unreadable)?;
        let (demands, ports) = match template.get("spec") {
            Some(spec @ Value::Object(_)) => {
                (Demands::deserialize(spec).map_err(unreadable)?, Ports::deserialize(spec).map_err(unreadable)?)
            }
            _ => (Demands::default(), Ports::default()),
        };

        if let Some(required) = &spec.affinity.to_nodes.required {
            let path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
            if required.node_selector_terms.is_empty() {
                return Err(format!("{path}: is empty, which matches no node: give a term, or remove the affinity"));
            }
            for (index, term) in required.node_selector_terms.iter().enumerate() {
                term.check().map_err(|wrong| format!("{path}[{index}].{wrong}"))?;
            }
        }

        let mut unsimulated = Vec::new();
        let mut containers = ports.containers.iter().chain(&ports.init_containers).flat_map(|container| &container.ports);
        // Without a number of its own a port of the host's network is the container's port.
        let host_ports = containers.any(|port| port.host_port > 0 || spec.host_network);
        if host_ports {
            unsimulated.push("host ports that other pods hold".to_owned());
        }
        let (own, others): (Vec<_>, Vec<_>) =
            spec.affinity.against_pods.required.iter().partition(|term| term.is_own_by_hostname(&metadata.labels));
        if !others.is_empty() {
            unsimulated.push("anti-affinity to other pods".to_owned());
        }
        if !spec.affinity.to_pods.required.is_empty() {
            unsimulated.push("affinity to other pods".to_owned());
        }
        for spread in spec.topology_spread_constraints.iter().filter(|spread| spread.when_unsatisfiable != "ScheduleAnyway") {
            unsimulated.push(format!("topology spread over {}", spread.topology_key));
        }
        if spec.volumes.iter().any(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some()) {
            unsimulated.push("topology and attach limits of volumes".to_owned());
        }

        let mut tolerated_resources: Vec<String> =
            request::requested_names(&demands).filter(|name| is_extended(name)).map(ToString::to_string).collect();
        tolerated_resources.sort_unstable();
        tolerated_resources.dedup();
        Ok(Self {
            requests: request::of_template(&demands)?,
            selection: Selection {
                labels: spec.node_selector.into_iter().collect(),
                terms: spec.affinity.to_nodes.required.map(|terms| terms.node_selector_terms),
            },
            tolerations: spec.tolerations,
            tolerated_resources,
            node_name: demands.node_name.clone().filter(|name| !name.is_empty()),
            one_per_node: host_ports || !own.is_empty(),
            claims_devices: !spec.resource_claims.is_empty(),
            unsimulated,
            quota: QuotaFacts::read(template, &demands)?,
        })
    }
}
