//! What the chart's Deployment says of the hub's process.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::EnvVar;

use super::NAMESPACE;

/// Ports on 127.0.0.1 by the names of the container's ports.
pub(super) type Ports = BTreeMap<String, u16>;

/// What the chart's Deployment says of the hub's container, with ports of this machine in place of its own.
#[derive(Debug)]
pub(super) struct Pod {
    /// Its `ServiceAccount`.
    pub(super) account: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) ports: Ports,
}

impl Pod {
    /// # Errors
    /// When the Deployment has what means nothing outside a pod.
    pub(super) fn of(deployment: &Deployment, free_port: impl Fn() -> Result<u16>) -> Result<Self> {
        let spec = deployment.spec.template.spec.as_ref().context("the Deployment has no pod")?;
        let [container] = spec.containers.as_slice() else { bail!("the Deployment has {} containers", spec.containers.len()) };
        let mut taken: BTreeMap<u16, u16> = BTreeMap::new();
        // A value that is an address is where the hub listens.
        let mut local = |value: &str| -> Result<String> {
            let Ok(address) = value.parse::<SocketAddr>() else { return Ok(value.to_owned()) };
            let port = free_port()?;
            taken.insert(address.port(), port);
            Ok(format!("127.0.0.1:{port}"))
        };
        let args = container.args.iter().flatten().map(|arg| match arg.split_once('=') {
            Some((flag, value)) => Ok(format!("{flag}={}", local(value)?)),
            None => Ok(arg.clone()),
        });
        let args = args.collect::<Result<_>>()?;
        let env = container.env.iter().flatten().map(|variable| Ok((variable.name.clone(), local(&value(variable)?)?)));
        let env = env.collect::<Result<_>>()?;
        let named = container.ports.iter().flatten().map(|port| {
            let (name, number) = (port.name.clone().unwrap_or_default(), u16::try_from(port.container_port)?);
            let local =
                taken.get(&number).copied().with_context(|| format!("nothing listens on the container's port {name} ({number})"))?;
            Ok((name, local))
        });
        let ports = named.collect::<Result<_>>()?;
        Ok(Self { account: spec.service_account_name.clone().context("the pod names no account")?, args, env, ports })
    }
}

/// The value that a pod in [`NAMESPACE`] would see.
fn value(variable: &EnvVar) -> Result<String> {
    let Some(source) = &variable.value_from else { return Ok(variable.value.clone().unwrap_or_default()) };
    let field = source.field_ref.as_ref().map(|field| field.field_path.as_str());
    ensure!(field == Some("metadata.namespace"), "{}: only metadata.namespace can be filled in here", variable.name);
    Ok(NAMESPACE.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(container: &Value) -> Result<Pod> {
        let pod = json!({"serviceAccountName": "account", "containers": [container]});
        let spec = json!({"selector": {}, "template": {"spec": pod}});
        Pod::of(&serde_json::from_value(json!({"spec": spec})).unwrap(), || Ok(1234))
    }

    #[test]
    fn a_container_is_taken_as_it_is_but_for_addresses() {
        let found = pod(&json!({
            "name": "hub",
            "args": ["controller", "--flag=a=b", "--health-addr=0.0.0.0:8081"],
            "env": [{"name": "A", "value": "b"}, {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
            "ports": [{"name": "health", "containerPort": 8081}],
        }))
        .unwrap();
        assert_eq!(found.account, "account");
        assert_eq!(found.args, ["controller", "--flag=a=b", "--health-addr=127.0.0.1:1234"]);
        assert_eq!(found.env, [("A".to_owned(), "b".to_owned()), ("N".to_owned(), NAMESPACE.to_owned())]);
        assert_eq!(found.ports, BTreeMap::from([("health".to_owned(), 1234)]));
    }

    #[test]
    fn what_has_no_meaning_outside_a_pod_is_refused() {
        let env = json!({"name": "hub", "env": [{"name": "P", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]});
        assert!(pod(&env).unwrap_err().to_string().starts_with("P: only metadata.namespace"));
        let ports = json!({"name": "hub", "args": ["--a=0.0.0.0:1"], "ports": [{"name": "health", "containerPort": 2}]});
        assert!(pod(&ports).unwrap_err().to_string().contains("port health (2)"));
    }
}
