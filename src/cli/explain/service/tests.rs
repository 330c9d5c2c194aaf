use serde_json::{Value, json};

use super::*;

fn told(status: &Value) -> String {
    let service: InferenceService = serde_json::from_value(json!({
        "metadata": {"name": "chat", "namespace": "demo", "generation": 2}, "spec": {"replicas": 3}, "status": status,
    }))
    .unwrap();
    text(&explain(&service), "2030-01-01T00:00:00Z".parse().unwrap())
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2029-12-31T23:57:00Z"})
}

#[test]
fn one_that_is_well() {
    let status = json!({
        "conditions": [
            condition("Progressing", "False", "Complete", "nothing is being changed"),
            condition("Ready", "True", "AllReplicasReady", "3 of 3"),
            condition("Rendered", "True", "Rendered", "rendered from 2 layers; spec.template: no probe"),
        ],
        "replicas": 3, "readyReplicas": 3, "updatedReplicas": 3, "unplacedReplicas": 0, "observedGeneration": 2,
        "placements": [
            {"cluster": "gpu-a", "replicas": 2, "phase": "Ready", "currentReplicas": 2, "readyReplicas": 2, "updatedReplicas": 2},
            {"cluster": "gpu-b", "replicas": 1, "phase": "Ready", "currentReplicas": 1, "readyReplicas": 1, "updatedReplicas": 1},
        ],
        "sources": [
            {"kind": "RuntimeBase", "name": "engine", "generation": 4},
            {"kind": "InferenceService", "namespace": "demo", "name": "chat", "generation": 2},
        ],
    });
    assert_eq!(
        told(&status),
        "\
InferenceService demo/chat is ready (AllReplicasReady), since 3m
Wanted      3 replicas
There are   3: 3 ready, 3 up to date, 0 without a place

Where it is:
  CLUSTER   PHASE   WANTED   THERE   READY   UP-TO-DATE   REASON
  gpu-a     Ready   2        2       2       2            <none>
  gpu-b     Ready   1        1       1       1            <none>

Layers, the lowest first:
  RuntimeBase engine, generation 4
  InferenceService demo/chat, generation 2

Warnings:
  spec.template: no probe
"
    );
}

#[test]
fn one_with_a_cause_in_a_member() {
    let status = json!({
        "conditions": [condition("Ready", "False", "ImagePullBackOff", "gpu-a/pod: back-off")],
        "replicas": 3, "readyReplicas": 0, "updatedReplicas": 3, "unplacedReplicas": 0, "observedGeneration": 1,
        "placements": [{"cluster": "gpu-a", "replicas": 3, "phase": "Applied", "currentReplicas": 3, "readyReplicas": 0, "updatedReplicas": 3,
                        "reason": "ImagePullBackOff", "message": "back-off"}],
        "workload": {"kind": "Deployment", "name": "chat", "diagnostic": {
            "reason": "ImagePullBackOff", "message": "gpu-a/chat-1: back-off\u{1b}[2J pulling x; 3 groups", "observedAt": "2029-12-31T23:58:00Z",
            "involvedObject": {"kind": "Pod", "namespace": "demo", "name": "chat-1"}, "cluster": "gpu-a", "container": "main"}},
    });
    let told = told(&status);
    let wanted = "\
InferenceService demo/chat is not ready (ImagePullBackOff), since 3m
Wanted      3 replicas
There are   3: 0 ready, 3 up to date, 0 without a place
Generation  2; 1 is at work

Because: ImagePullBackOff
  gpu-a/chat-1: back-off [2J pulling x; 3 groups
  Seen at: Pod demo/chat-1, container main, in gpu-a, since 2m
  Meaning: The image can't be pulled.
  What to do: Correct the image, or give the member a pull secret.

Where it is:
";
    assert!(told.starts_with(wanted), "{told}");
    assert!(told.ends_with("ImagePullBackOff\n  gpu-a: back-off\n"), "{told}");
}

#[test]
fn one_without_a_place() {
    let mut rejections: Vec<Value> =
        (0..19).map(|i| json!({"cluster": format!("cpu-{i:02}"), "reason": "NoSuchAccelerator", "message": "no amd.com/gpu"})).collect();
    rejections.insert(0, json!({"cluster": "gpu-a", "reason": "Fragmented", "message": "needs 16, largest free 8,8,8"}));
    let status = json!({
        "conditions": [
            condition("Placed", "False", "Unplaced", "0 of 3 groups placed"),
            condition("Ready", "False", "Unplaced", "gpu-a: Fragmented"),
        ],
        "workload": {"kind": "Deployment", "name": "chat", "diagnostic": {
            "reason": "Unplaced", "message": "gpu-a/chat: Fragmented", "observedAt": "2029-12-31T23:57:00Z",
            "involvedObject": {"kind": "InferenceService", "namespace": "demo", "name": "chat"}, "cluster": "gpu-a"}},
        "replicas": 0, "unplacedReplicas": 3, "rejections": rejections, "rejectionSummary": {"Fragmented": 1, "NoSuchAccelerator": 40},
    });
    let told = told(&status);
    assert!(told.contains("Seen at: InferenceService demo/chat, on the hub, since 3m\n"), "{told}");
    assert_eq!(told.matches("Some replicas have no member").count(), 1, "the cause is explained once: {told}");
    assert_eq!(told.matches("No node has the resource that is asked for.").count(), 1, "a reason is explained once: {told}");
    assert!(told.contains("  gpu-a     Fragmented          needs 16, largest free 8,8,8\n"), "{told}");
    assert!(told.contains("20 of 41 members are shown; all by reason: Fragmented 1, NoSuchAccelerator 40\n"), "{told}");
    assert!(told.contains("Generation  2; none is at work everywhere yet\n"), "{told}");
}

#[test]
fn one_that_cannot_be_rendered_or_seen() {
    let status = json!({
        "conditions": [
            condition("Ready", "Unknown", "MemberUnreachable", "gpu-a"),
            condition("Rendered", "False", "RenderFailed", "x; y"),
        ],
        "placements": [{"cluster": "gpu-a", "replicas": 3, "phase": "Unknown", "readyReplicas": 3, "stale": true,
                        "lastSeen": "2029-12-31T23:50:00Z"}],
    });
    let told = told(&status);
    assert!(told.starts_with("InferenceService demo/chat is perhaps not ready (MemberUnreachable)"), "{told}");
    assert!(told.contains("Rendered is False: RenderFailed\n  x; y\n  Meaning: An expression"), "{told}");
    assert!(told.contains("gpu-a: can't be seen; the counts are the last known ones, last seen 10m ago"), "{told}");
    assert!(!told.contains("Warnings"), "a refusal is no warning: {told}");
}

#[test]
fn one_that_the_hub_has_not_seen() {
    let told = told(&Value::Null);
    assert_eq!(
        told,
        "\
InferenceService demo/chat: the hub has not looked at it yet. Is the hub running?
Wanted      3 replicas
Generation  2; none is at work everywhere yet
"
    );
}

#[test]
fn the_data_says_the_same() {
    let service: InferenceService = serde_json::from_value(json!({
        "metadata": {"name": "chat", "namespace": "demo", "generation": 2}, "spec": {},
        "status": {"conditions": [condition("Ready", "False", "Unplaced", "nowhere")],
                   "rejections": [{"cluster": "gpu-a", "reason": "Fragmented", "message": "8,8"}]},
    }))
    .unwrap();
    let data = serde_json::to_value(explain(&service)).unwrap();
    for (pointer, wanted) in [
        ("/wanted", json!(1)),
        ("/cause/reason", json!("Unplaced")),
        ("/cause/meaning", json!("Some replicas have no member; the message names the best rejection.")),
        ("/ready/since", json!("2029-12-31T23:57:00Z")),
        ("/rejections/0/cluster", json!("gpu-a")),
        ("/rejections/0/whatToDo", json!("Ask for fewer devices a replica, or move what runs there.")),
    ] {
        assert_eq!(data.pointer(pointer), Some(&wanted), "{pointer} in {data}");
    }
}
