//! The `LeaderWorkerSet` manager of a member: no cert-manager, no Service, no Secret, but its webhooks.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::Client;
use serde_json::{Value, json};

use super::controlplane::{Ground, alive_until, write};
use crate::apply::{ApplyOptions, apply_values, documents};
use crate::certs::Identity;
use crate::ports::free_port;
use crate::process::Process;

/// The user that the manager runs as, bound to the module's own `ClusterRole`.
pub(super) const USER: &str = "lws-manager";

/// Installs the module's manifests, starts the manager and waits until both webhooks answer.
pub(super) async fn start(
    ground: &Ground,
    cluster: &str,
    folder: &Path,
    client: &Client,
    ca_pem: &str,
    webhook: &Identity,
    kubeconfig: &str,
) -> Result<Process> {
    let (port, health) = (free_port()?, free_port()?);
    let certs = folder.join("lws-webhook");
    std::fs::create_dir_all(&certs).with_context(|| certs.display().to_string())?;
    write(&certs, "tls.crt", &webhook.cert)?;
    write(&certs, "tls.key", &webhook.key)?;
    let kubeconfig = write(folder, "lws.kubeconfig", kubeconfig)?;
    let config = json!({
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": false},
        "internalCertManagement": {"enable": false},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": certs},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": format!("127.0.0.1:{health}")},
    });
    let config = write(folder, "lws.yaml", &config.to_string())?;

    let options = ApplyOptions { strict: false, ..ApplyOptions::default() };
    apply_values(client, manifests(ground, port, ca_pem)?, &options).await.with_context(|| format!("{cluster}: manifests of LWS"))?;
    let name = format!("{cluster}-lws");
    let args =
        [format!("--config={}", config.display()), format!("--kubeconfig={}", kubeconfig.display()), "--zap-log-level=info".to_owned()];
    let args: Vec<OsString> = args.into_iter().map(OsString::from).collect();
    let manager = Process::start(&name, &ground.programs.lws_manager(), &args, &[], &ground.log(&name))?;
    // A dry-run create goes through both webhooks: only then is the manager really in service.
    alive_until(&manager, &format!("{cluster}: the LWS webhooks answer"), async || {
        let options = ApplyOptions { dry_run: true, ..ApplyOptions::namespace("default") };
        apply_values(client, vec![probe()], &options).await?;
        Ok(())
    })
    .await?;
    Ok(manager)
}

fn probe() -> Value {
    json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "sandbox-probe"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": [{"name": "c", "image": "c"}]}}}},
    })
}

/// The module's CRDs, role and webhooks, the latter pointed at 127.0.0.1 instead of at a Service.
fn manifests(ground: &Ground, port: u16, ca_pem: &str) -> Result<Vec<Value>> {
    let load = |name: &str| -> Result<Vec<Value>> { documents(&ground.programs.lws_asset(name)?).with_context(|| name.to_owned()) };
    let mut all = load("leaderworkersets.yaml")?;
    for mut crd in load("disaggregatedsets.yaml")? {
        // The manager only needs the kind to exist; its schema of 1.5 MB would cost each API server some 80 MiB.
        for version in crd.pointer_mut("/spec/versions").and_then(Value::as_array_mut).into_iter().flatten() {
            set(version, "schema", json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}));
        }
        all.push(crd);
    }
    for mut role in load("role.yaml")? {
        if let Some(metadata) = role.pointer_mut("/metadata") {
            set(metadata, "name", json!("lws-manager-role"));
        }
        all.push(role);
    }
    all.push(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "lws-manager"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lws-manager-role"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
    }));
    for mut configuration in load("webhooks.yaml")? {
        let name = configuration.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let name = json!(format!("lws-{name}"));
        if let Some(metadata) = configuration.pointer_mut("/metadata") {
            set(metadata, "name", name);
        }
        let hooks = configuration.pointer_mut("/webhooks").and_then(Value::as_array_mut);
        let hooks = hooks.context("webhooks.yaml: no webhooks")?;
        ensure!(!hooks.is_empty(), "webhooks.yaml: no webhooks");
        for hook in hooks {
            let path = hook.pointer("/clientConfig/service/path").and_then(Value::as_str).unwrap_or_default().to_owned();
            let url = format!("https://127.0.0.1:{port}{path}");
            set(hook, "clientConfig", json!({"url": url, "caBundle": STANDARD.encode(ca_pem)}));
            if path.ends_with("-v1-pod") {
                // As the module's own kustomize patches do: other pods are none of its business.
                set(
                    hook,
                    "objectSelector",
                    json!({"matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]}),
                );
            }
        }
        all.push(configuration);
    }
    Ok(all)
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}
