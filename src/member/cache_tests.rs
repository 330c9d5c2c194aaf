use serde_json::{Value, json};

use super::*;
use crate::api::labels::{HUB, INFERENCE_SERVICE, SERVICE_UID, SOURCE};
use crate::member::lean::Lean as _;

fn line(object: &Value) -> Vec<u8> {
    serde_json::to_vec(&json!({"type": "ADDED", "object": object})).unwrap()
}

fn deployment(uid: &str, name: &str) -> Deployment {
    let object = json!({"metadata": {
        "namespace": "team", "name": name, "uid": uid, "resourceVersion": "1", "generation": 1,
        "labels": {HUB: "h", SERVICE_UID: "s"}, "annotations": {SOURCE: "team/chat"},
    }});
    Deployment::of_event(&line(&object)).unwrap()
}

fn replica_set(uid: &str, owner: &str) -> ReplicaSet {
    let object = json!({"metadata": {"uid": uid, "ownerReferences": [{"uid": owner, "controller": true}]}});
    ReplicaSet::of_event(&line(&object)).unwrap()
}

/// A pod that can't pull its image, or is ready.
fn pod(name: &str, owner: &str, ready: bool, version: u32) -> Pod {
    let state = if ready { json!({"running": {}}) } else { json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}) };
    let object = json!({
        "metadata": {
            "namespace": "team", "name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {INFERENCE_SERVICE: "chat"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": owner, "controller": true}],
        },
        "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
        "status": {
            "phase": if ready { "Running" } else { "Pending" },
            "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": if ready { "True" } else { "False" }}],
            "containerStatuses": [{"name": "main", "ready": ready, "state": state}],
        },
    });
    Pod::of_event(&line(&object)).unwrap()
}

fn node(version: u32, unschedulable: bool) -> NodeView {
    let object = json!({
        "metadata": {"name": "n", "uid": "u", "resourceVersion": version.to_string()},
        "spec": {"unschedulable": unschedulable},
        "status": {"allocatable": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": version.to_string()}]},
    });
    NodeView::of_event(&line(&object)).unwrap()
}

fn chat() -> ServiceKey {
    ServiceKey::new("team", "chat")
}

fn observed(cache: &Cache) -> Option<(Option<String>, Vec<String>)> {
    let (workload, pods) = cache.observe(&chat(), "s", "2026-01-01T01:00:00Z".parse().unwrap())?;
    Some((workload.map(|w| w.uid), pods.into_iter().map(|pod| pod.object.name).collect()))
}

#[test]
fn pods_are_joined_to_the_workload_through_their_replica_set() {
    let cache = Cache::default();
    assert_eq!(observed(&cache), None, "not listed");
    cache.apply(Change::All(Vec::<Deployment>::new()));
    cache.listed(Kind::Deployment);
    assert_eq!(observed(&cache), Some((None, vec![])));

    // In any order.
    cache.apply(Change::Put(pod("b", "r", false, 1)));
    cache.apply(Change::Put(pod("a", "r", false, 1)));
    cache.apply(Change::Put(pod("other", "r2", false, 1)));
    cache.apply(Change::Put(replica_set("r", "d")));
    cache.apply(Change::Put(deployment("copy", "copied-by-hand")));
    cache.apply(Change::Put(deployment("d", "chat")));
    assert_eq!(observed(&cache), Some((Some("d".into()), vec!["a".into(), "b".into()])));

    cache.notifier.take();
    cache.apply(Change::Put(pod("a", "r", true, 2)));
    assert_eq!(observed(&cache), Some((Some("d".into()), vec!["b".into()])));
    assert!(cache.notifier.take().services.contains(&chat()));
    cache.apply(Change::All(vec![pod("c", "r", false, 1)]));
    assert_eq!(observed(&cache), Some((Some("d".into()), vec!["c".into()])));

    cache.notifier.take();
    cache.apply(Change::Gone(deployment("d", "chat")));
    assert_eq!(observed(&cache), Some((None, vec![])));
    let changes = cache.notifier.take();
    assert!(changes.services.contains(&chat()) && changes.gone.contains(&chat()));
}

#[test]
fn an_event_that_changes_nothing_is_no_news() {
    let cache = Cache::default();
    cache.apply(Change::Put(node(1, false)));
    cache.apply(Change::Put(deployment("d", "chat")));
    cache.apply(Change::Put(replica_set("r", "d")));
    cache.apply(Change::Put(pod("a", "r", false, 1)));
    let first = cache.notifier.take();
    assert!(first.capacity && first.room);

    cache.apply(Change::Put(node(2, false)));
    cache.apply(Change::Put(replica_set("r", "d")));
    cache.apply(Change::Put(pod("a", "r", false, 2)));
    assert_eq!(cache.notifier.take(), crate::member::notify::Changes::default());

    cache.apply(Change::Put(node(3, true)));
    assert!(cache.notifier.take().room, "cordoned, or the other way round");
    cache.apply(Change::Gone(pod("a", "r", false, 3)));
    assert!(cache.notifier.take().room);
}

#[test]
fn there_is_a_snapshot_once_nodes_and_pods_were_listed() {
    let cache = Cache::default();
    cache.apply(Change::All(vec![node(1, false)]));
    cache.listed(Kind::Node);
    cache.renew_snapshot();
    assert!(cache.snapshot().is_none());
    cache.apply(Change::All(Vec::<Pod>::new()));
    cache.listed(Kind::Pod);
    cache.renew_snapshot();
    assert_eq!(cache.snapshot().unwrap().node_count(), 1);
    assert!(cache.capacity_known(Timestamp::now()));
    cache.apply(Change::All(Vec::<NodeView>::new()));
    cache.renew_snapshot();
    assert_eq!(cache.snapshot().unwrap().node_count(), 0, "a list replaces what was known");
}
