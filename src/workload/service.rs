//! The Kubernetes Service before the pods of a service.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::group::Group;
use super::{Owner, items};
use crate::api::labels;
use crate::api::names::{is_dns_1035_label, is_port_name};

/// The Kubernetes Service of a service. It is the same in every member.
#[derive(Clone, Debug, PartialEq)]
pub struct KubeService {
    /// Its name.
    pub name: String,
    /// The complete object, with the hub's own labels and annotations.
    pub object: Value,
}

/// Port of a Service before pods that declare none.
const DEFAULT_PORT: u16 = 8000;

/// What the Kubernetes Service of a service is called: `NAME-service`, or, where that isn't a DNS-1035 label, which
/// older members ask for, a cut form of the name with a hash of it. The bare name is that of a `LeaderWorkerSet`'s own
/// headless Service.
pub fn service_name(name: &str) -> String {
    const KEPT: usize = 40;
    let plain = format!("{name}-service");
    if is_dns_1035_label(&plain) {
        return plain;
    }
    // A service's name is ASCII.
    let kept: String = name.replace('.', "-").chars().take(KEPT).collect();
    format!("svc-{kept}-{}", labels::digest(name, 5))
}

/// The object without the hub's own marks. It has no type, which means `ClusterIP`, and is not headless.
pub(super) fn object(owner: &Owner<'_>, group: &Group, labels: &BTreeMap<String, String>) -> Value {
    let served = group.templates().filter(|template| template.served).map(|template| &template.value);
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service_name(owner.name), "namespace": owner.namespace, "labels": labels, "annotations": {}},
        "spec": {
            "selector": {labels::INFERENCE_SERVICE: labels::label_value(owner.name)},
            "ports": ports(served),
        },
    })
}

/// Declared ports of pods: containers in order, then sidecars; the first of each number and protocol.
fn ports<'a>(templates: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let mut ports = Vec::new();
    let (mut seen, mut names) = (BTreeSet::new(), BTreeSet::new());
    for port in templates.filter_map(|template| template.get("spec")).flat_map(declared) {
        let Some(number) = port.get("containerPort").and_then(Value::as_u64).and_then(|n| u16::try_from(n).ok()).filter(|n| *n > 0) else {
            // No pod can have it, which the member says about the pod template.
            continue;
        };
        let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
        if seen.insert((number, protocol)) {
            let name = free_name(port.get("name").and_then(Value::as_str), number, protocol, &names);
            ports.push(service_port(&name, number, protocol));
            names.insert(name);
        }
    }
    if ports.is_empty() {
        ports.push(service_port("http", DEFAULT_PORT, "TCP"));
    }
    ports
}

fn declared(pod: &Value) -> impl Iterator<Item = &Value> {
    let sidecars = items(pod, "initContainers").iter().filter(|c| c.get("restartPolicy").and_then(Value::as_str) == Some("Always"));
    items(pod, "containers").iter().chain(sidecars).flat_map(|container| items(container, "ports"))
}

/// A name that no other port of the Service has. Pods may have one port name in two containers.
fn free_name(own: Option<&str>, number: u16, protocol: &str, taken: &BTreeSet<String>) -> String {
    let long = format!("port-{number}-{}", protocol.to_ascii_lowercase());
    let first = match own {
        None => format!("port-{number}"),
        Some(name) if is_port_name(name) => name.to_owned(),
        Some(_) => long.clone(),
    };
    let further = (2..).map(|n: u32| format!("{long}-{n}"));
    [first, long.clone()].into_iter().chain(further).find(|name| !taken.contains(name)).unwrap_or(long)
}

fn service_port(name: &str, number: u16, protocol: &str) -> Value {
    json!({"name": name, "port": number, "targetPort": number, "protocol": protocol})
}
