//! What the kubelet of one node reports next. Nothing here talks to a server or looks at a clock.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, NodeCondition},
    apimachinery::pkg::apis::meta::v1::Time,
};
use serde_json::{Value, json};

use super::{
    annotations::{self, NOT_READY, SILENT},
    pod::address,
};

/// A kubelet whose node does not change posts its status this often; the lease is its heartbeat.
const REPORT_PERIOD: Duration = Duration::from_secs(300);

/// Whether the node's kubelet is dead.
pub(super) fn is_silent(node: &Node) -> bool {
    annotations::flag(node.metadata.annotations.as_ref(), SILENT)
}

/// A strategic merge patch of the node's status, if there is something to report, and when to look again.
pub(super) fn next(node: &Node, now: Timestamp, kubelet_version: &str) -> (Option<Value>, Option<Duration>) {
    if is_silent(node) {
        return (None, None);
    }
    let not_ready = annotations::flag(node.metadata.annotations.as_ref(), NOT_READY);
    let ready = if not_ready {
        ("Ready", "False", "KubeletNotReady", "container runtime is down")
    } else {
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
    };
    let wanted = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ready,
    ];
    let status = node.status.clone().unwrap_or_default();
    let current = |type_: &str, wanted: &str| -> Option<&NodeCondition> {
        status.conditions.iter().flatten().find(|c| c.type_ == type_ && c.status == wanted)
    };
    // How long each condition's last report is good for; none when it is missing or another one is due.
    let left = wanted.iter().map(|(type_, wanted, ..)| {
        let reported = current(type_, wanted)?.last_heartbeat_time.as_ref()?;
        let age = Duration::try_from(now.duration_since(reported.0)).unwrap_or_default();
        REPORT_PERIOD.checked_sub(age).filter(|left| !left.is_zero())
    });
    let left: Option<Vec<Duration>> = left.collect();
    if let Some(left) = left.filter(|_| status.addresses.as_ref().is_some_and(|a| !a.is_empty())) {
        return (None, left.into_iter().min());
    }

    let conditions: Vec<_> = wanted
        .iter()
        .map(|(type_, wanted, reason, message)| NodeCondition {
            type_: (*type_).to_owned(),
            status: (*wanted).to_owned(),
            reason: Some((*reason).to_owned()),
            message: Some((*message).to_owned()),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: current(type_, wanted).and_then(|c| c.last_transition_time.clone()).or(Some(Time(now))),
        })
        .collect();
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let mut report = json!({
        "conditions": conditions,
        "addresses": [{"type": "InternalIP", "address": address(250, name)}, {"type": "Hostname", "address": name}],
        "nodeInfo": {
            "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "sim://1", "kernelVersion": "", "kubeProxyVersion": "",
            "kubeletVersion": kubelet_version, "machineID": "", "operatingSystem": "linux", "osImage": "sim", "systemUUID": "",
        },
    });
    if let (None, Some(capacity), Some(report)) = (status.allocatable, status.capacity, report.as_object_mut()) {
        report.insert("allocatable".to_owned(), json!(capacity));
    }
    (Some(json!({ "status": report })), Some(REPORT_PERIOD))
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Timestamp = Timestamp::UNIX_EPOCH;

    fn node(annotations: &Value, status: &Value) -> Node {
        serde_json::from_value(json!({"metadata": {"name": "n", "annotations": annotations}, "status": status})).unwrap()
    }

    fn seconds(s: i64) -> Timestamp {
        Timestamp::from_second(s).unwrap()
    }

    fn ready(patch: &Value) -> (&str, &str, &str) {
        let ready = patch["status"]["conditions"].as_array().unwrap().iter().find(|c| c["type"] == "Ready").unwrap();
        let text = |key: &str| ready[key].as_str().unwrap();
        (text("status"), text("reason"), text("lastTransitionTime"))
    }

    #[test]
    fn a_node_reports_once_and_then_every_five_minutes() {
        let (patch, _) = next(&node(&json!({}), &json!({"capacity": {"cpu": "4"}})), T, "v1");
        let patch = patch.unwrap();
        assert_eq!(ready(&patch), ("True", "KubeletReady", "1970-01-01T00:00:00Z"));
        assert_eq!(patch["status"]["allocatable"], json!({"cpu": "4"}));

        let reported = node(&json!({}), &patch["status"]);
        assert_eq!(next(&reported, seconds(100), "v1"), (None, Some(Duration::from_secs(200))));
        let (again, _) = next(&reported, seconds(300), "v1");
        assert_eq!(ready(&again.unwrap()), ("True", "KubeletReady", "1970-01-01T00:00:00Z"), "the transition stays");
    }

    #[test]
    fn what_the_control_plane_wrote_is_set_right() {
        let (patch, _) = next(&node(&json!({}), &json!({})), T, "v1");
        let mut status = patch.unwrap()["status"].clone();
        status["conditions"][3]["status"] = json!("Unknown");
        let (patch, _) = next(&node(&json!({}), &status), seconds(60), "v1");
        assert_eq!(ready(&patch.unwrap()), ("True", "KubeletReady", "1970-01-01T00:01:00Z"));
    }

    #[test]
    fn faults() {
        assert_eq!(next(&node(&json!({SILENT: "true"}), &json!({})), T, "v1"), (None, None));
        let (patch, _) = next(&node(&json!({NOT_READY: "true"}), &json!({})), T, "v1");
        assert_eq!(ready(&patch.unwrap()), ("False", "KubeletNotReady", "1970-01-01T00:00:00Z"));
    }
}
