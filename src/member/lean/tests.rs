use serde_json::{Value, json};

use super::*;
use crate::api::labels::{GENERATION, HUB, INFERENCE_SERVICE, RENDERED_HASH, SERVICE_UID, SOURCE};
use crate::api::lws;
use crate::capacity::ServiceKey;

fn line(object: &Value) -> Vec<u8> {
    serde_json::to_vec(&json!({"type": "ADDED", "object": object})).unwrap()
}

fn pod(name: &str, service: Option<&str>) -> Value {
    let labels = service.map_or(json!({}), |s| json!({INFERENCE_SERVICE: s}));
    json!({
        "metadata": {"namespace": "team", "name": name, "uid": format!("uid-{name}"), "resourceVersion": "7", "labels": labels},
        "spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Pending"},
    })
}

#[test]
fn the_status_of_a_pod_is_kept_only_for_services() {
    let ours = Pod::of_event(&line(&pod("a", Some("chat")))).unwrap();
    assert_eq!((ours.status.unwrap().metadata.name.as_str(), ours.view.resource_version.as_str()), ("a", "7"));
    assert!(Pod::of_event(&line(&pod("b", None))).unwrap().status.is_none());

    let page = serde_json::to_vec(&json!({"metadata": {}, "items": [pod("a", None), pod("b", Some("chat")), pod("c", None)]})).unwrap();
    let kept: Vec<_> = Pod::of_list(&page).unwrap().into_iter().map(|p| (p.view.name, p.status.map(|s| s.metadata.name))).collect();
    assert_eq!(kept, [("a".into(), None), ("b".into(), Some("b".into())), ("c".into(), None)]);
    assert!(Pod::of_list(br#"{"metadata": {}, "items": null}"#).unwrap().is_empty());
}

#[test]
fn a_deployment_gives_the_view_of_the_workload() {
    let object = json!({
        "metadata": {
            "namespace": "team", "name": "chat", "uid": "u", "resourceVersion": "8", "generation": 3,
            "labels": {HUB: "h", SERVICE_UID: "s"},
            "annotations": {SOURCE: "team/chat-with-a-longer-name", RENDERED_HASH: "abc", GENERATION: "5", "large": "x"},
        },
        "spec": {"replicas": 2},
        "status": {"observedGeneration": 3, "replicas": 2, "readyReplicas": 1, "conditions": [{"type": "Available", "odd": 1}]},
    });
    let deployment = Deployment::of_event(&line(&object)).unwrap();
    let deployment = deployment.0;
    let view = deployment.view();
    assert_eq!((view.generation, view.observed_generation, view.replicas, view.ready, view.updated), (3, Some(3), 2, 1, 0));
    assert_eq!(view.conditions, [json!({"type": "Available", "odd": 1})]);
    assert_eq!((view.rendered_hash.as_deref(), view.service_generation), (Some("abc"), Some(5)));
    assert_eq!(deployment.metadata.service(), ServiceKey::new("team", "chat-with-a-longer-name"));
    let marks = deployment.metadata.marks();
    assert_eq!(marks, Marks::of(&object));
    let wanted = Marks { hub: Some("h"), service_uid: Some("s"), rendered_hash: Some("abc"), generation: Some("5") };
    assert_eq!(marks, wanted);
    for other in [
        Marks { hub: Some("x"), ..wanted },
        Marks { service_uid: None, ..wanted },
        Marks { rendered_hash: Some("x"), ..wanted },
        Marks { generation: Some("4"), ..wanted },
    ] {
        assert_ne!(marks, other);
    }
}

#[test]
fn a_set_names_what_controls_it() {
    let object = json!({"metadata": {"uid": "r", "ownerReferences": [{"uid": "x"}, {"uid": "d", "controller": true}]}});
    assert_eq!(ReplicaSet::of_event(&line(&object)).unwrap().metadata.controller(), Some("d"));
}

#[test]
fn a_pod_of_a_leader_worker_set_tells_its_place() {
    let labels = |index: &str| {
        json!({
            lws::NAME: "chat", lws::GROUP_INDEX: "3", lws::WORKER_INDEX: index, "leaderworkerset.sigs.k8s.io/template-revision-hash": "r1",
        })
    };
    for (index, leads) in [("0", true), ("1", false)] {
        let mut object = pod("a", None);
        object["metadata"]["labels"] = labels(index);
        let pod = Pod::of_event(&line(&object)).unwrap();
        assert_eq!(pod.place, Some(Place { group: Some(3), leads, revision: "r1".into() }));
        // Workers need not bear the label of the service.
        assert!(pod.view.service.is_none() && pod.status.is_some());
    }
}

#[test]
fn a_leader_worker_set_gives_the_view_of_the_workload() {
    let set = |spec: Value, status: Value| {
        let object = json!({
            "metadata": {"name": "chat", "generation": 2, "annotations": {lws::EXCLUSIVE_TOPOLOGY: "rack"}},
            "spec": spec, "status": status,
        });
        LeaderWorkerSet::of_event(&line(&object)).unwrap().0
    };
    let spec = |partition: i64| {
        json!({
            "replicas": 3, "leaderWorkerTemplate": {"size": 2},
            "rolloutStrategy": {"rollingUpdateConfiguration": {"partition": partition}},
        })
    };
    let status = |observed: Value, ready: i64, updated: i64| json!({"observedGeneration": observed, "replicas": 3, "readyReplicas": ready, "updatedReplicas": updated});
    let view = set(spec(0), status(json!(2), 3, 1)).view();
    assert_eq!((view.kind, view.replicas, view.ready, view.updated), (WorkloadKind::LeaderWorkerSet, 3, 3, 1));
    assert_eq!(view.exclusive_topology.as_deref(), Some("rack"));
    for (partition, status, want) in [
        (0, status(json!(2), 3, 3), true),
        (0, status(json!(null), 3, 3), true),
        (0, status(json!(1), 3, 3), false),
        (0, status(json!(2), 2, 3), false),
        (0, status(json!(2), 3, 2), false),
        (1, status(json!(2), 3, 2), true),
        (0, json!(null), false),
    ] {
        assert_eq!(set(spec(partition), status.clone()).is_settled(), want, "{partition} {status}");
    }
    assert!(set(json!({"replicas": 0}), json!({})).is_settled());
    assert_eq!((set(spec(0), json!({})).size(), set(json!({}), json!({})).size()), (2, 1));
}

#[test]
fn a_stateful_set_tells_whether_its_pods_are_there_and_ready() {
    let set = |spec: Value, status: Value| {
        let object = json!({"metadata": {"name": "chat-1", "labels": {lws::GROUP_INDEX: "1"}}, "spec": spec, "status": status});
        StatefulSet::of_event(&line(&object)).unwrap()
    };
    let status = |replicas: i64, available: i64, current: &str| json!({"replicas": replicas, "availableReplicas": available, "currentRevision": current, "updateRevision": "r"});
    for (status, short, ready) in [
        (status(2, 2, "r"), false, true),
        (status(2, 2, "old"), false, false),
        (status(2, 1, "r"), false, false),
        (status(1, 1, "r"), true, false),
        (json!(null), true, false),
    ] {
        let set = set(json!({"replicas": 2}), status.clone());
        assert_eq!((set.is_short(), set.is_ready(), set.group()), (short, ready, Some(1)), "{status}");
    }
}

#[test]
fn a_service_tells_whether_its_spec_changed() {
    let service = |version: &str, port: i64| {
        let object = json!({
            "metadata": {"name": "chat-service", "resourceVersion": version},
            "spec": {"clusterIP": "10.96.0.7", "ports": [{"port": port}]}, "status": {"loadBalancer": {}},
        });
        (Service::of_event(&line(&object)).unwrap().spec_print, spec_print(&object["spec"]))
    };
    let (read, whole) = service("1", 8000);
    assert_eq!(read, whole, "the answer to a write and the watch agree");
    assert_eq!(service("2", 8000).0, read);
    assert_ne!(service("2", 8001).0, read);
    assert_eq!(Service::of_event(&line(&json!({"metadata": {}}))).unwrap().spec_print, "");
}

#[test]
fn an_event_tells_when_it_was_last_seen() {
    let created = "2026-03-01T09:00:00Z";
    let at = |more: Value| {
        let mut object = json!({
            "metadata": {"name": "e", "creationTimestamp": created}, "involvedObject": {"uid": "s"},
            "reason": "FailedCreate", "message": "x".repeat(100_000),
        });
        for (key, value) in more.as_object().unwrap() {
            object[key] = value.clone();
        }
        let event = SetEvent::of_event(&line(&object)).unwrap().0;
        assert!(event.message.len() < 2000 && event.about() == "s");
        event.at().unwrap().to_string()
    };
    let (first, micro, series) = ("2026-03-01T09:10:00Z", "2026-03-01T09:20:00.5Z", "2026-03-01T09:30:00.25Z");
    for (more, want) in [
        (json!({}), created),
        (json!({"eventTime": null, "lastTimestamp": first}), first),
        (json!({"eventTime": micro, "lastTimestamp": null}), micro),
        (json!({"eventTime": micro, "series": {"count": 2, "lastObservedTime": series}}), series),
        (json!({"eventTime": "soon", "series": null, "lastTimestamp": first}), first),
    ] {
        assert_eq!(at(more.clone()), want, "{more}");
    }
}
