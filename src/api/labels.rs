//! Labels, annotations and other fixed names that the hub reads or writes.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// Field manager of everything that the hub applies.
pub const FIELD_MANAGER: &str = "odin-hub";
/// Finalizer of an `InferenceService`: the hub removes what it made in members first.
pub const FINALIZER: &str = "federation.odin.moreh.io/finalizer";

/// Label on every object and namespace that the hub made in a member: the hub's id. Never in pod templates.
pub const HUB: &str = "federation.odin.moreh.io/hub";
/// Label on every object in a member: UID of the `InferenceService` that owns it.
pub const SERVICE_UID: &str = "federation.odin.moreh.io/service-uid";
/// Annotation on every object in a member: `namespace/name` of the service on the hub.
pub const SOURCE: &str = "federation.odin.moreh.io/source";
/// Annotation on every object in a member: hash of what was rendered for it.
pub const RENDERED_HASH: &str = "federation.odin.moreh.io/rendered-hash";
/// Annotation on every object in a member: generation of the service that was applied.
pub const GENERATION: &str = "federation.odin.moreh.io/generation";
/// Label on a namespace of a member, put there by its administrator: the hub with this id may write here.
pub const ALLOW: &str = "federation.odin.moreh.io/allow";
/// Label (`privileged`) on a namespace of the hub, put there by its administrator: the pod policy doesn't hold for its
/// services.
pub const POD_POLICY: &str = "federation.odin.moreh.io/pod-policy";
/// Label (`"true"`) on a Secret in the hub's namespace: it holds a kubeconfig and registers a member.
pub const MEMBER: &str = "federation.odin.moreh.io/member";
/// Annotation (`"true"`) on such a Secret: `odin-hub join` wrote it, so that join may renew its credential, and unjoin
/// delete it. A Secret without it belongs to someone else.
pub const JOINED: &str = "federation.odin.moreh.io/joined";

/// What the labels of a namespace begin with that tell an API server which pods it takes there.
pub const POD_SECURITY_PREFIX: &str = "pod-security.kubernetes.io/";

/// Label on the pods behind the service: its name. It is also the selector of a Deployment.
pub const INFERENCE_SERVICE: &str = "mif.moreh.io/inferenceservice";
/// Label on pods: the gateway that serves them, copied from the service.
pub const AI_GATEWAY: &str = "mif.moreh.io/aigateway";
/// Label on workload and all pods: name of the service, always.
pub const APP_INSTANCE: &str = "app.kubernetes.io/instance";
/// Label on workload and all pods: name of the service unless a template sets another.
pub const APP_NAME: &str = "app.kubernetes.io/name";

/// Label on a node: vendor of its accelerators.
pub const ACCELERATOR_VENDOR: &str = "moai.moreh.io/accelerator.vendor";
/// Label on a node: model of its accelerators.
pub const ACCELERATOR_MODEL: &str = "moai.moreh.io/accelerator.model";

/// Whether only controllers may set a label or annotation: it names a pod's service, revision or place in a group, or
/// belongs to the hub.
pub fn is_reserved(key: &str) -> bool {
    const KEYS: [&str; 4] = [INFERENCE_SERVICE, APP_INSTANCE, "pod-template-hash", "controller-revision-hash"];
    const DOMAINS: [&str; 2] = ["leaderworkerset.sigs.k8s.io/", "federation.odin.moreh.io/"];
    KEYS.contains(&key) || DOMAINS.iter().any(|domain| key.starts_with(domain))
}

/// A name as a label value: itself while it fits, else its first 52 bytes, `-`, and 10 hex digits of its SHA-256.
/// Names of Kubernetes objects are ASCII and start with a letter or digit, so both forms are valid values.
pub fn label_value(name: &str) -> String {
    const LIMIT: usize = 63;
    const KEPT: usize = 52;
    if name.len() <= LIMIT {
        return name.to_owned();
    }
    let mut kept = KEPT;
    while !name.is_char_boundary(kept) {
        kept -= 1;
    }
    format!("{}-{}", name.get(..kept).unwrap_or_default(), digest(name, 5))
}

/// The first bytes of the SHA-256 of a text, in hexadecimal digits.
pub(crate) fn digest(text: &str, bytes: usize) -> String {
    Sha256::digest(text.as_bytes()).iter().take(bytes).fold(String::new(), |mut digits, byte| {
        // Writing into a string never fails.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f54_long_names_are_cut_to_a_label_value_and_stay_apart() {
        let long = "a".repeat(63);
        assert_eq!(label_value(&long), long);
        let (one, two) = (format!("{}-one", "a".repeat(60)), format!("{}-two", "a".repeat(60)));
        assert_eq!(label_value(&one).len(), 63);
        assert!(label_value(&one).starts_with(&format!("{}-", "a".repeat(52))));
        assert_ne!(label_value(&one), label_value(&two));
        // The digits are what sha256sum says: objects in members are found by them after an upgrade of the hub too.
        assert_eq!(label_value(&"a".repeat(64)), format!("{}-ffe054fe7a", "a".repeat(52)));
        let values: std::collections::BTreeSet<String> = (0..10_000).map(|n| label_value(&format!("{}-{n}", "a".repeat(70)))).collect();
        assert_eq!(values.len(), 10_000, "two names have one value");
    }
}
