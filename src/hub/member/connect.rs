//! One client for each credential of a member.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::reflector::ObjectRef;
use sha2::{Digest as _, Sha256};

use crate::api::federation::{MemberCluster, RequestLimits};
use crate::api::labels::MEMBER;
use crate::api::reason::Reason;
use crate::hub::context::Context;
use crate::hub::members::{Entry, NoClient};
use crate::member::{Limits, Member, Settings, parse_kubeconfig};

/// Keys under which a kubeconfig is looked for when none is named.
const KEYS: [&str; 2] = ["kubeconfig", "value"];

/// Makes sure that the member runs, with the credential that its Secret holds now. Returns whether anything changed.
pub(super) fn ensure(name: &str, cluster: &Arc<MemberCluster>, context: &Arc<Context>) -> bool {
    let secret = context.secrets.get(&ObjectRef::new(&cluster.spec.secret_ref.name).within(&context.settings.namespace));
    let limits = limits(cluster.spec.request_limits.as_ref());
    let kubeconfig = kubeconfig(cluster, secret.as_deref(), &context.settings.namespace);
    let fingerprint = fingerprint(&kubeconfig, &limits);
    let known = context.members.get(name);
    if let Some(known) = &known
        && known.fingerprint == fingerprint
        && known.runtime.as_ref().map_or(true, |member| member.is_running())
    {
        if !Arc::ptr_eq(&known.cluster, cluster) {
            context.members.put(name, Entry { cluster: cluster.clone(), ..(**known).clone() });
        }
        return known.cluster.spec != cluster.spec || known.cluster.metadata.annotations != cluster.metadata.annotations;
    }
    let runtime = kubeconfig.and_then(|bytes| start(name, bytes, limits, context));
    match &runtime {
        Ok(_) => tracing::info!(member = name, "connecting"),
        Err(none) => tracing::warn!(member = name, reason = %none.reason, message = none.message, "can't be connected"),
    }
    let entry = Entry { cluster: cluster.clone(), fingerprint, runtime, since: Instant::now(), since_time: Timestamp::now() };
    if let Some(before) = context.members.put(name, entry)
        && let Ok(member) = before.runtime.clone()
    {
        tokio::spawn(async move { member.stop().await });
    }
    true
}

fn start(name: &str, kubeconfig: &[u8], limits: Limits, context: &Context) -> Result<Arc<Member>, NoClient> {
    let refused = |message: String| NoClient { reason: Reason::CredentialRefused, message };
    let credential = parse_kubeconfig(kubeconfig).map_err(|error| refused(error.to_string()))?;
    let settings = Settings {
        limits,
        protected_namespaces: context.settings.protected_namespaces.clone(),
        metrics: context.metrics.member(name),
        ..Settings::new(context.hub_id.clone())
    };
    Member::start(name, &credential, settings, context.events.clone())
        .map_err(|error| refused(format!("no client can be made from it: {error}")))
}

/// Bytes of the kubeconfig, or what is missing.
fn kubeconfig<'a>(cluster: &MemberCluster, secret: Option<&'a Secret>, namespace: &str) -> Result<&'a [u8], NoClient> {
    let reference = &cluster.spec.secret_ref;
    let missing = |message: String| NoClient { reason: Reason::CredentialMissing, message };
    let secret = secret.ok_or_else(|| {
        missing(format!(
            "there is no Secret {namespace}/{} with the label {MEMBER}=true; what runs in the member stays there",
            reference.name
        ))
    })?;
    let data = secret.data.as_ref();
    let get = |key: &str| data.and_then(|data| data.get(key)).map(|bytes| bytes.0.as_slice());
    match &reference.key {
        Some(key) => get(key).ok_or_else(|| missing(format!("Secret {namespace}/{} has no key {key}", reference.name))),
        None => KEYS
            .iter()
            .find_map(|key| get(key))
            .ok_or_else(|| missing(format!("Secret {namespace}/{} has neither a key kubeconfig nor value", reference.name))),
    }
}

fn limits(wanted: Option<&RequestLimits>) -> Limits {
    let default = Limits::default();
    let positive = |value: Option<i32>| value.and_then(|value| u32::try_from(value).ok()).filter(|value| *value > 0);
    let Some(wanted) = wanted else { return default };
    Limits {
        qps: positive(wanted.qps).map_or(default.qps, f64::from),
        burst: positive(wanted.burst).unwrap_or(default.burst),
        max_in_flight: positive(wanted.max_in_flight).map_or(default.max_in_flight, |value| value as usize),
        ..default
    }
}

/// Tells credentials and bounds apart without holding them.
fn fingerprint(kubeconfig: &Result<&[u8], NoClient>, limits: &Limits) -> [u8; 32] {
    let mut hash = Sha256::new();
    match kubeconfig {
        Ok(bytes) => hash.update(bytes),
        Err(none) => hash.update(&none.message),
    }
    hash.update(format!("{limits:?}"));
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;
    use crate::api::federation::{MemberClusterSpec, SecretRef};

    fn cluster(key: Option<&str>) -> MemberCluster {
        let secret_ref = SecretRef { name: "gpu-a".to_owned(), key: key.map(str::to_owned) };
        MemberCluster::new("gpu-a", MemberClusterSpec { secret_ref, ..MemberClusterSpec::default() })
    }

    fn secret(keys: &[(&str, &str)]) -> Secret {
        let data = keys.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec()))).collect();
        Secret { data: Some(data), ..Secret::default() }
    }

    #[test]
    fn the_named_key_is_taken_or_else_kubeconfig_or_else_value() {
        for (key, keys, want) in [
            (None, &[("value", "v"), ("kubeconfig", "k")][..], Ok("k")),
            (None, &[("value", "v")], Ok("v")),
            (None, &[("other", "o")], Err("Secret odin-hub/gpu-a has neither a key kubeconfig nor value")),
            (Some("other"), &[("other", "o"), ("kubeconfig", "k")], Ok("o")),
            (Some("other"), &[("kubeconfig", "k")], Err("Secret odin-hub/gpu-a has no key other")),
        ] {
            let secret = secret(keys);
            let got = kubeconfig(&cluster(key), Some(&secret), "odin-hub").map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            assert_eq!(got.map_err(|none| none.message), want.map(str::to_owned).map_err(str::to_owned));
        }
        let none = kubeconfig(&cluster(None), None, "odin-hub").expect_err("no Secret");
        assert_eq!(none.reason, Reason::CredentialMissing);
    }

    #[test]
    fn limits_that_make_no_sense_give_the_default() {
        let wanted = RequestLimits { qps: Some(0), burst: Some(-1), max_in_flight: Some(3) };
        let got = limits(Some(&wanted));
        let default = Limits::default();
        assert_eq!((got.qps, got.burst, got.max_in_flight), (default.qps, default.burst, 3));
    }

    #[test]
    fn the_fingerprint_changes_with_the_credential_and_the_limits() {
        let default = Limits::default();
        let of = |bytes: &[u8], limits: &Limits| fingerprint(&Ok(bytes), limits);
        assert_eq!(of(b"a", &default), of(b"a", &default));
        assert_ne!(of(b"a", &default), of(b"b", &default));
        assert_ne!(of(b"a", &default), of(b"a", &Limits { burst: 1, ..default.clone() }));
    }
}
