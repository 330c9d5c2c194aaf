//! The kinds that the hub adds, group `federation.odin.moreh.io`, version `v1alpha1`.

mod member_cluster;

pub use member_cluster::{
    Accelerator, CredentialStatus, FreeNodes, MemberCluster, MemberClusterSpec, MemberClusterStatus, RequestLimits, SecretRef, Taint,
    TaintEffect,
};
