//! What pods may not ask of a node, whoever wrote it.
//!
//! The check is of the rendered templates, in which no expression hides anything. A value of another type than the
//! field has counts as forbidden: what a member would make of it isn't known here. Capabilities are those of the
//! baseline Pod Security Standard, and `IPC_LOCK`, without which RDMA can't pin memory.

use serde_json::Value;

use super::{present, refuse};
use crate::api::labels::POD_POLICY;
use crate::api::reason::Reason;
use crate::render::Refusal;

/// A part of a pod: rules for its own fields, and the lists of further parts in it.
struct Part {
    rules: &'static [Rule],
    lists: &'static [(&'static str, &'static Part)],
}

/// A field and what it may hold; it may always be absent.
struct Rule {
    field: &'static [&'static str],
    allows: fn(&Value) -> bool,
    why: &'static str,
}

static POD: Part = Part {
    rules: &[
        Rule { field: &["hostNetwork"], allows: is_false, why: "pods can't share the node's network" },
        Rule { field: &["hostPID"], allows: is_false, why: "pods can't share the node's processes" },
        Rule { field: &["hostIPC"], allows: is_false, why: "pods can't share the node's IPC" },
        Rule { field: &["nodeName"], allows: is_empty, why: "pods can't be put on a node past the scheduler" },
        Rule { field: &["priorityClassName"], allows: is_no_system_class, why: "system classes are for the cluster's own pods" },
        HOST_PROCESS,
    ],
    lists: &[
        ("containers", &CONTAINER),
        ("initContainers", &CONTAINER),
        ("ephemeralContainers", &CONTAINER),
        (
            "volumes",
            &Part { rules: &[Rule { field: &["hostPath"], allows: never, why: "pods can't mount files of the node" }], lists: &[] },
        ),
    ],
};

static CONTAINER: Part = Part {
    rules: &[
        Rule { field: &["securityContext", "privileged"], allows: is_false, why: "containers can't be privileged" },
        HOST_PROCESS,
        Rule {
            field: &["securityContext", "capabilities", "add"],
            allows: are_capabilities,
            why: "only capabilities of the baseline Pod Security Standard and IPC_LOCK can be added",
        },
    ],
    lists: &[(
        "ports",
        &Part { rules: &[Rule { field: &["hostPort"], allows: is_zero, why: "containers can't take ports of the node" }], lists: &[] },
    )],
};

const HOST_PROCESS: Rule =
    Rule { field: &["securityContext", "windowsOptions", "hostProcess"], allows: is_false, why: "containers can't be privileged" };

const CAPABILITIES: [&str; 14] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

fn never(_: &Value) -> bool {
    false
}

fn is_false(value: &Value) -> bool {
    *value == Value::Bool(false)
}

fn is_zero(value: &Value) -> bool {
    value.as_i64() == Some(0)
}

fn is_empty(value: &Value) -> bool {
    value.as_str() == Some("")
}

fn is_no_system_class(value: &Value) -> bool {
    value.as_str().is_some_and(|class| !class.starts_with("system-"))
}

fn are_capabilities(value: &Value) -> bool {
    value.as_array().is_some_and(|added| added.iter().all(|name| name.as_str().is_some_and(|name| CAPABILITIES.contains(&name))))
}

/// Checks the pod templates of a rendered spec. Namespaces that an administrator exempted are the caller's affair.
///
/// # Errors
/// `PodNotAllowed` with all that isn't allowed.
pub fn check(spec: &Value) -> Result<(), Refusal> {
    let mut found = Vec::new();
    for template in ["template", "workerTemplate"] {
        if let Some(pod) = present(spec, template).and_then(|template| present(template, "spec")) {
            examine(&POD, pod, &format!("spec.{template}.spec"), &mut found);
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(refuse(
        Reason::PodNotAllowed,
        format!(
            "{}: remove it, or ask an administrator to exempt the namespace by the label {POD_POLICY}=privileged on the hub",
            found.join("; ")
        ),
    ))
}

fn examine(part: &Part, value: &Value, path: &str, found: &mut Vec<String>) {
    for rule in part.rules {
        if let Some(value) = follow(value, rule.field).filter(|value| !(rule.allows)(value)) {
            found.push(format!("{path}.{} is {value}: {}", rule.field.join("."), rule.why));
        }
    }
    for (list, part) in part.lists {
        match present(value, list) {
            None => {}
            Some(Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    let name = item.get("name").and_then(Value::as_str).map_or_else(|| index.to_string(), ToOwned::to_owned);
                    examine(part, item, &format!("{path}.{list}[{name}]"), found);
                }
            }
            Some(_) => found.push(format!("{path}.{list} is no list")),
        }
    }
}

/// The value of a field, or of what stands in the way to it and is no object.
fn follow<'v>(value: &'v Value, field: &[&str]) -> Option<&'v Value> {
    let mut value = value;
    for name in field {
        match value {
            Value::Object(_) => value = present(value, name)?,
            _ => return Some(value),
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(field: &str, value: Value) -> Value {
        let mut spec = json!({"containers": [{"name": "main", "image": "i"}]});
        spec[field] = value;
        spec
    }

    fn container(field: &str, value: Value) -> Value {
        let mut spec = pod("volumes", json!([{"name": "shm", "emptyDir": {}}]));
        spec["containers"][0][field] = value;
        spec
    }

    fn security(value: Value) -> Value {
        container("securityContext", value)
    }

    #[test]
    fn what_is_not_allowed_is_named_with_its_path_in_each_template() {
        let added = |names: Value| security(json!({"capabilities": {"add": names}}));
        let host_process = json!({"windowsOptions": {"hostProcess": true}});
        let cases = [
            (pod("hostNetwork", json!(true)), "hostNetwork is true"),
            (pod("hostNetwork", json!("false")), "hostNetwork is \"false\""),
            (pod("hostPID", json!(true)), "hostPID"),
            (pod("hostIPC", json!(1)), "hostIPC"),
            (pod("nodeName", json!("node-1")), "nodeName"),
            (pod("nodeName", json!(["node-1"])), "nodeName"),
            (pod("priorityClassName", json!("system-node-critical")), "priorityClassName"),
            (pod("priorityClassName", json!("system-")), "priorityClassName"),
            (pod("priorityClassName", json!({"a": 1})), "priorityClassName"),
            (pod("securityContext", host_process.clone()), "securityContext.windowsOptions.hostProcess"),
            (pod("securityContext", json!("all")), "securityContext.windowsOptions.hostProcess is \"all\""),
            (pod("volumes", json!([{"name": "v", "emptyDir": {}}, {"name": "w", "hostPath": {"path": "/"}}])), "volumes[w].hostPath"),
            (pod("volumes", json!([{"hostPath": {}}])), "volumes[0].hostPath"),
            (pod("volumes", json!({"name": "w", "hostPath": {"path": "/"}})), "volumes is no list"),
            (
                pod("initContainers", json!([{"name": "first", "securityContext": {"privileged": true}}])),
                "initContainers[first].securityContext.privileged",
            ),
            (pod("ephemeralContainers", json!([{"name": "shell", "securityContext": {"privileged": true}}])), "ephemeralContainers[shell]"),
            (
                pod("initContainers", json!([{"name": "first", "ports": [{"containerPort": 80, "hostPort": 80}]}])),
                "initContainers[first].ports[0].hostPort",
            ),
            (security(json!({"privileged": true})), "containers[main].securityContext.privileged is true"),
            (security(json!({"privileged": "yes"})), "containers[main].securityContext.privileged"),
            (security(host_process), "containers[main].securityContext.windowsOptions.hostProcess"),
            (security(json!({"capabilities": ["SYS_ADMIN"]})), "containers[main].securityContext.capabilities.add"),
            (added(json!(["ALL"])), "capabilities.add"),
            (added(json!(["IPC_LOCK", "SYS_ADMIN"])), "capabilities.add"),
            (added(json!(["CAP_CHOWN"])), "capabilities.add"),
            (added(json!(["chown"])), "capabilities.add"),
            (added(json!("CHOWN")), "capabilities.add"),
            (added(json!([null])), "capabilities.add"),
            (
                container("ports", json!([{"name": "http", "containerPort": 80, "hostPort": 8080}])),
                "containers[main].ports[http].hostPort is 8080",
            ),
            (container("ports", json!([{"containerPort": 80, "hostPort": "80"}])), "hostPort"),
            (container("ports", json!([{"containerPort": 80, "hostPort": 0.5}])), "hostPort"),
            (container("ports", json!({"hostPort": 80})), "containers[main].ports is no list"),
        ];
        for (spec, part) in cases {
            for template in ["template", "workerTemplate"] {
                let refusal = check(&json!({template: {"spec": spec}})).expect_err(part);
                assert_eq!(refusal.reason, Reason::PodNotAllowed);
                let path = format!("spec.{template}.spec.");
                assert!(refusal.message.contains(&path) && refusal.message.contains(part), "{}", refusal.message);
            }
        }
    }

    #[test]
    fn ordinary_pods_are_allowed() {
        for spec in [
            pod("hostNetwork", json!(false)),
            pod("hostPID", Value::Null),
            pod("nodeName", json!("")),
            pod("priorityClassName", json!("high-system-")),
            pod("volumes", json!([{"name": "v", "hostPath": null, "emptyDir": {}}])),
            pod("volumes", Value::Null),
            pod("securityContext", json!({"runAsUser": 0, "windowsOptions": {"hostProcess": false}})),
            security(json!({"privileged": false, "allowPrivilegeEscalation": true})),
            security(json!({"capabilities": {"add": CAPABILITIES, "drop": ["ALL"]}})),
            security(json!({"capabilities": {"add": []}})),
            security(json!({"capabilities": null})),
            container(
                "ports",
                json!([{"containerPort": 80}, {"containerPort": 81, "hostPort": 0}, {"containerPort": 82, "hostPort": null}]),
            ),
        ] {
            assert_eq!(check(&json!({"template": {"spec": spec}, "workerTemplate": null})), Ok(()), "{spec}");
        }
        assert_eq!(check(&json!({})), Ok(()));
    }

    #[test]
    fn all_findings_are_in_one_message() {
        let spec = json!({
            "template": {"spec": {"hostNetwork": true, "containers": [{"name": "main", "securityContext": {"privileged": true}}]}},
            "workerTemplate": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}},
        });
        let message = check(&spec).unwrap_err().message;
        for part in [
            "spec.template.spec.hostNetwork",
            "spec.template.spec.containers[main].securityContext.privileged",
            "spec.workerTemplate.spec.volumes[v].hostPath",
            "federation.odin.moreh.io/pod-policy=privileged",
        ] {
            assert!(message.contains(part), "{part} is not in {message}");
        }
    }
}
