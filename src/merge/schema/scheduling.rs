//! Where a pod may run: affinity, tolerations, spread and gates.

use super::Kind::{Int32, Int64, String, Strings, Struct, Structs};
use super::meta::LABEL_SELECTOR;
use super::{Schema, field, pointer};

pub(super) static AFFINITY: Schema = Schema {
    name: "Affinity",
    fields: &[
        pointer("nodeAffinity", "NodeAffinity", Struct(&NODE_AFFINITY)),
        pointer("podAffinity", "PodAffinity", Struct(&POD_AFFINITY)),
        pointer("podAntiAffinity", "PodAntiAffinity", Struct(&POD_ANTI_AFFINITY)),
    ],
};

static NODE_AFFINITY: Schema = Schema {
    name: "NodeAffinity",
    fields: &[
        pointer("requiredDuringSchedulingIgnoredDuringExecution", "RequiredDuringSchedulingIgnoredDuringExecution", Struct(&NODE_SELECTOR)),
        field(
            "preferredDuringSchedulingIgnoredDuringExecution",
            "PreferredDuringSchedulingIgnoredDuringExecution",
            Structs(&PREFERRED_SCHEDULING_TERM),
        ),
    ],
};

static NODE_SELECTOR: Schema =
    Schema { name: "NodeSelector", fields: &[field("nodeSelectorTerms", "NodeSelectorTerms", Structs(&NODE_SELECTOR_TERM))] };

static NODE_SELECTOR_REQUIREMENT: Schema = Schema {
    name: "NodeSelectorRequirement",
    fields: &[field("key", "Key", String), field("operator", "Operator", String), field("values", "Values", Strings)],
};

static NODE_SELECTOR_TERM: Schema = Schema {
    name: "NodeSelectorTerm",
    fields: &[
        field("matchExpressions", "MatchExpressions", Structs(&NODE_SELECTOR_REQUIREMENT)),
        field("matchFields", "MatchFields", Structs(&NODE_SELECTOR_REQUIREMENT)),
    ],
};

static POD_AFFINITY: Schema = Schema {
    name: "PodAffinity",
    fields: &[
        field(
            "requiredDuringSchedulingIgnoredDuringExecution",
            "RequiredDuringSchedulingIgnoredDuringExecution",
            Structs(&POD_AFFINITY_TERM),
        ),
        field(
            "preferredDuringSchedulingIgnoredDuringExecution",
            "PreferredDuringSchedulingIgnoredDuringExecution",
            Structs(&WEIGHTED_POD_AFFINITY_TERM),
        ),
    ],
};

static POD_AFFINITY_TERM: Schema = Schema {
    name: "PodAffinityTerm",
    fields: &[
        pointer("labelSelector", "LabelSelector", Struct(&LABEL_SELECTOR)),
        field("namespaces", "Namespaces", Strings),
        field("topologyKey", "TopologyKey", String),
        pointer("namespaceSelector", "NamespaceSelector", Struct(&LABEL_SELECTOR)),
        field("matchLabelKeys", "MatchLabelKeys", Strings),
        field("mismatchLabelKeys", "MismatchLabelKeys", Strings),
    ],
};

static POD_ANTI_AFFINITY: Schema = Schema {
    name: "PodAntiAffinity",
    fields: &[
        field(
            "requiredDuringSchedulingIgnoredDuringExecution",
            "RequiredDuringSchedulingIgnoredDuringExecution",
            Structs(&POD_AFFINITY_TERM),
        ),
        field(
            "preferredDuringSchedulingIgnoredDuringExecution",
            "PreferredDuringSchedulingIgnoredDuringExecution",
            Structs(&WEIGHTED_POD_AFFINITY_TERM),
        ),
    ],
};

pub(super) static POD_SCHEDULING_GATE: Schema = Schema { name: "PodSchedulingGate", fields: &[field("name", "Name", String)] };

pub(super) static POD_SCHEDULING_GROUP: Schema =
    Schema { name: "PodSchedulingGroup", fields: &[pointer("podGroupName", "PodGroupName", String)] };

static PREFERRED_SCHEDULING_TERM: Schema = Schema {
    name: "PreferredSchedulingTerm",
    fields: &[field("weight", "Weight", Int32), field("preference", "Preference", Struct(&NODE_SELECTOR_TERM))],
};

pub(super) static TOLERATION: Schema = Schema {
    name: "Toleration",
    fields: &[
        field("key", "Key", String),
        field("operator", "Operator", String),
        field("value", "Value", String),
        field("effect", "Effect", String),
        pointer("tolerationSeconds", "TolerationSeconds", Int64),
    ],
};

pub(super) static TOPOLOGY_SPREAD_CONSTRAINT: Schema = Schema {
    name: "TopologySpreadConstraint",
    fields: &[
        field("maxSkew", "MaxSkew", Int32),
        field("topologyKey", "TopologyKey", String),
        field("whenUnsatisfiable", "WhenUnsatisfiable", String),
        pointer("labelSelector", "LabelSelector", Struct(&LABEL_SELECTOR)),
        pointer("minDomains", "MinDomains", Int32),
        pointer("nodeAffinityPolicy", "NodeAffinityPolicy", String),
        pointer("nodeTaintsPolicy", "NodeTaintsPolicy", String),
        field("matchLabelKeys", "MatchLabelKeys", Strings),
    ],
};

static WEIGHTED_POD_AFFINITY_TERM: Schema = Schema {
    name: "WeightedPodAffinityTerm",
    fields: &[field("weight", "Weight", Int32), field("podAffinityTerm", "PodAffinityTerm", Struct(&POD_AFFINITY_TERM))],
};
