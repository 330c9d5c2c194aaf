//! Odin's own four kinds, group `odin.moreh.io`, version `v1alpha1`.

mod service;
mod spec;
mod status;
mod template;

pub use service::{InferenceService, InferenceServiceSpec, RollingUpdate, RolloutStrategy, TemplateRef};
pub use spec::{Model, NameRef, Parallelism, PoolRef, ServiceExposure};
pub use status::{
    Diagnostic, InferenceServiceStatus, ObjectRef, Phase, Placement, PlacementWorkload, Rejection, Source, WorkloadKind, WorkloadStatus,
};
pub use template::{
    ClusterInferenceServiceTemplate, ClusterInferenceServiceTemplateSpec, InferenceServiceTemplate, InferenceServiceTemplateSpec,
    RuntimeBase, RuntimeBaseSpec,
};

/// API group of Odin's kinds.
pub const GROUP: &str = "odin.moreh.io";
