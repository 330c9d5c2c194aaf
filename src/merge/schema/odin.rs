//! A whole layer: the spec of a service, which holds all that a template or a runtime base may hold.

use super::Kind::{Bool, Int32, IntOrString, String, Struct, Structs};
use super::pod::POD_TEMPLATE_SPEC;
use super::{Schema, field, pointer};

pub(super) static INFERENCE_SERVICE_SPEC: Schema = Schema {
    name: "InferenceServiceSpec",
    fields: &[
        field("framework", "Framework", String),
        field("inferencePoolRefs", "InferencePoolRefs", Structs(&NAME)),
        pointer("model", "Model", Struct(&MODEL)),
        pointer("parallelism", "Parallelism", Struct(&PARALLELISM)),
        pointer("replicas", "Replicas", Int32),
        pointer("revisionHistoryLimit", "RevisionHistoryLimit", Int32),
        pointer("rolloutStrategy", "RolloutStrategy", Struct(&ROLLOUT_STRATEGY)),
        pointer("runtimeBaseRef", "RuntimeBaseRef", Struct(&NAME)),
        pointer("service", "Service", Struct(&SERVICE)),
        pointer("template", "Template", Struct(&POD_TEMPLATE_SPEC)),
        field("templateRefs", "TemplateRefs", Structs(&TEMPLATE_REF)),
        pointer("workerTemplate", "WorkerTemplate", Struct(&POD_TEMPLATE_SPEC)),
    ],
};

static MODEL: Schema = Schema { name: "Model", fields: &[field("name", "Name", String)] };

static NAME: Schema = Schema { name: "Name", fields: &[field("name", "Name", String)] };

static PARALLELISM: Schema = Schema {
    name: "Parallelism",
    fields: &[
        pointer("data", "Data", Int32),
        pointer("dataLocal", "DataLocal", Int32),
        pointer("dataRPCPort", "DataRPCPort", Int32),
        pointer("expert", "Expert", Bool),
        pointer("pipeline", "Pipeline", Int32),
        pointer("tensor", "Tensor", Int32),
    ],
};

static ROLLOUT_STRATEGY: Schema = Schema {
    name: "RolloutStrategy",
    fields: &[field("type", "Type", String), pointer("rollingUpdate", "RollingUpdate", Struct(&ROLLING_UPDATE))],
};

static ROLLING_UPDATE: Schema = Schema {
    name: "RollingUpdate",
    fields: &[
        pointer("maxUnavailable", "MaxUnavailable", IntOrString),
        pointer("maxSurge", "MaxSurge", IntOrString),
        pointer("partition", "Partition", Int32),
    ],
};

static SERVICE: Schema = Schema { name: "Service", fields: &[field("target", "Target", String)] };

static TEMPLATE_REF: Schema = Schema {
    name: "TemplateRef",
    fields: &[field("group", "Group", String), field("kind", "Kind", String), field("name", "Name", String)],
};
