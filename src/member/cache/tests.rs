use serde_json::{Value, json};

use super::*;
use crate::api::labels::{HUB, INFERENCE_SERVICE, SERVICE_UID, SOURCE};
use crate::api::odin::WorkloadKind;
use crate::api::reason::Reason;
use crate::capacity::{NodeView, QuotaView, ServiceKey};
use crate::member::lean::{Deployment, LeaderWorkerSet, Lean as _, LwsEvent, Pod, ReplicaSet, Service, SetEvent, StatefulSet};

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
    let seen = cache.observe(&chat(), "s", WorkloadKind::Deployment, "2026-01-01T01:00:00Z".parse().unwrap())?;
    Some((seen.workload.map(|w| w.uid), seen.signals.into_iter().map(|signal| signal.object.name).collect()))
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

    cache.notifier.take(true);
    cache.apply(Change::Put(pod("a", "r", true, 2)));
    assert_eq!(observed(&cache), Some((Some("d".into()), vec!["b".into()])));
    assert!(cache.notifier.take(true).services.contains(&chat()));
    cache.apply(Change::All(vec![pod("c", "r", false, 1)]));
    assert_eq!(observed(&cache), Some((Some("d".into()), vec!["c".into()])));

    cache.notifier.take(true);
    cache.apply(Change::Gone(deployment("d", "chat")));
    assert_eq!(observed(&cache), Some((None, vec![])));
    let changes = cache.notifier.take(true);
    assert!(changes.services.contains(&chat()) && changes.gone.contains(&chat()));
}

#[test]
fn an_event_that_changes_nothing_is_no_news() {
    let cache = Cache::default();
    cache.apply(Change::Put(node(1, false)));
    cache.apply(Change::Put(deployment("d", "chat")));
    cache.apply(Change::Put(replica_set("r", "d")));
    cache.apply(Change::Put(pod("a", "r", false, 1)));
    let first = cache.notifier.take(true);
    assert!(first.capacity && first.room);

    cache.apply(Change::Put(node(2, false)));
    cache.apply(Change::Put(replica_set("r", "d")));
    cache.apply(Change::Put(pod("a", "r", false, 2)));
    assert_eq!(cache.notifier.take(true), crate::member::notify::Changes::default());

    cache.apply(Change::Put(node(3, true)));
    assert!(cache.notifier.take(true).room, "cordoned, or the other way round");
    cache.apply(Change::Gone(pod("a", "r", false, 3)));
    assert!(cache.notifier.take(true).room);
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

const LWS: WorkloadKind = WorkloadKind::LeaderWorkerSet;

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

fn lws(uid: &str, version: u32, status: &Value) -> LeaderWorkerSet {
    let object = json!({
        "metadata": {
            "namespace": "team", "name": "chat", "uid": uid, "resourceVersion": version.to_string(), "generation": 1,
            "labels": {HUB: "h", SERVICE_UID: "s"}, "annotations": {SOURCE: "team/chat"},
        },
        "spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 2}},
        "status": status,
    });
    LeaderWorkerSet::of_event(&line(&object)).unwrap()
}

/// A `StatefulSet` with one pod wanted, that many there, and all of those available.
fn set(uid: &str, name: &str, owner: &str, group: Option<u32>, pods: i64) -> StatefulSet {
    let labels = group.map_or(json!({}), |group| json!({crate::api::lws::GROUP_INDEX: group.to_string()}));
    let object = json!({
        "metadata": {
            "namespace": "team", "name": name, "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels,
            "ownerReferences": [{"uid": owner, "controller": true}],
        },
        "spec": {"replicas": 1}, "status": {"replicas": pods, "availableReplicas": pods, "currentRevision": "r", "updateRevision": "r"},
    });
    StatefulSet::of_event(&line(&object)).unwrap()
}

struct Placed<'a> {
    uid: &'a str,
    name: &'a str,
    owner: &'a str,
    group: u32,
    index: u32,
    status: Value,
}

fn placed(pod: &Placed<'_>) -> Pod {
    let scheduled = pod.status["conditions"][0]["reason"] != "Unschedulable";
    let spec = if scheduled { json!({"nodeName": "n"}) } else { json!({}) };
    let object = json!({
        "metadata": {
            "namespace": "team", "name": pod.name, "uid": pod.uid, "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                crate::api::lws::NAME: "chat", crate::api::lws::GROUP_INDEX: pod.group.to_string(),
                crate::api::lws::WORKER_INDEX: pod.index.to_string(), "leaderworkerset.sigs.k8s.io/template-revision-hash": "r",
            },
            "ownerReferences": [{"kind": "StatefulSet", "name": "x", "uid": pod.owner, "controller": true}],
        },
        "spec": spec,
        "status": pod.status,
    });
    Pod::of_event(&line(&object)).unwrap()
}

fn is_ready() -> Value {
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "main", "ready": true}]})
}

fn has_ended(code: i32, finished: &str) -> Value {
    json!({
        "phase": "Running",
        "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
        "containerStatuses": [{"name": "main", "restartCount": 1, "state": {"terminated": {"exitCode": code, "reason": "Error", "message": "no peer", "finishedAt": finished}}}],
    })
}

fn starts() -> Value {
    json!({
        "phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}],
    })
}

fn leader(uid: &str, status: Value) -> Pod {
    placed(&Placed { uid, name: "chat-0", owner: "leaders", group: 0, index: 0, status })
}

fn worker(uid: &str, owner: &str, status: Value) -> Pod {
    placed(&Placed { uid, name: "chat-0-1", owner, group: 0, index: 1, status })
}

/// A cache that knows a `LeaderWorkerSet` of one group.
fn groups() -> Cache {
    let cache = Cache::default();
    cache.listed(Kind::LeaderWorkerSet);
    cache.apply(Change::Put(lws("l", 1, &json!({}))));
    cache.apply(Change::Put(set("leaders", "chat", "l", None, 1)));
    cache.apply(Change::Put(leader("leader-1", is_ready())));
    cache.apply(Change::Put(set("workers-1", "chat-0", "leader-1", Some(0), 1)));
    cache
}

/// Kind, name, reason and group of each signal.
fn told(cache: &Cache) -> Vec<(String, String, Reason, Option<u32>)> {
    let seen = cache.observe(&chat(), "s", LWS, now()).unwrap();
    seen.signals.into_iter().map(|signal| (signal.object.kind, signal.object.name, signal.reason, signal.group)).collect()
}

fn signal(kind: &str, name: &str, reason: Reason, group: Option<u32>) -> (String, String, Reason, Option<u32>) {
    (kind.to_owned(), name.to_owned(), reason, group)
}

#[test]
fn pods_of_groups_are_joined_through_their_sets_and_leaders() {
    let cache = groups();
    cache.apply(Change::Put(worker("w", "workers-1", starts())));
    cache.apply(Change::Put(worker("copy", "someone-else-s", starts())));
    assert_eq!(told(&cache), [signal("Pod", "chat-0-1", Reason::Starting, Some(0))]);
    cache.notifier.take(true);
    cache.apply(Change::Put(worker("w", "workers-1", is_ready())));
    assert_eq!(told(&cache), []);
    assert!(cache.notifier.take(true).services.contains(&chat()));
    cache.apply(Change::All(vec![leader("leader-1", starts())]));
    assert_eq!(told(&cache), [signal("Pod", "chat-0", Reason::Starting, Some(0))]);
    assert!(cache.notifier.take(true).services.contains(&chat()));
}

/// `LeaderWorkerSet` up to 0.8 counts workers as ready when they exist.
#[test]
fn f63_ready_groups_are_counted_where_the_member_counts_them_wrongly() {
    let cache = groups();
    let counted = || cache.observe(&chat(), "s", LWS, now()).unwrap().workload.unwrap().counted_ready;
    assert_eq!(counted(), Some(1), "the release isn't known");
    for (release, want) in [(Release::V0_8, Some(1)), (Release::V0_9, None), (Release::Before0_7, Some(1))] {
        cache.set_release(Some(release));
        assert_eq!(counted(), want, "{release:?}");
    }
    cache.apply(Change::Put(set("workers-1", "chat-0", "leader-1", Some(0), 0)));
    assert_eq!(counted(), Some(0));
    cache.apply(Change::Put(set("workers-1", "chat-0", "leader-1", Some(0), 1)));
    cache.apply(Change::Put(leader("leader-1", starts())));
    assert_eq!(counted(), Some(0));
    cache.notifier.take(true);
    cache.apply(Change::Put(leader("leader-1", is_ready())));
    assert_eq!(counted(), Some(1));
    assert!(cache.notifier.take(true).services.contains(&chat()));
    cache.apply(Change::Gone(leader("leader-1", is_ready())));
    assert_eq!(counted(), Some(0));
}

#[test]
fn a_group_that_is_made_anew_says_so_whatever_its_pods_do_now() {
    let cache = groups();
    cache.apply(Change::Put(worker("w1", "workers-1", has_ended(7, "2026-01-01T00:59:00Z"))));
    assert_eq!(told(&cache), [signal("Pod", "chat-0-1", Reason::Error, Some(0))]);
    // The group goes and comes.
    cache.apply(Change::Gone(worker("w1", "workers-1", starts())));
    cache.apply(Change::Gone(leader("leader-1", starts())));
    cache.apply(Change::Put(leader("leader-2", starts())));
    cache.apply(Change::Put(set("workers-2", "chat-0", "leader-2", Some(0), 0)));
    let again = [signal("Pod", "chat-0-1", Reason::CrashLoopBackOff, Some(0))];
    assert_eq!(told(&cache), again);
    let words = cache.observe(&chat(), "s", LWS, now()).unwrap().signals[0].message.clone();
    assert_eq!(words, "container main ended (exit code 7, group 0 recreated 1 time): no peer");
    // The pods of before may hold the devices for a moment.
    let no_room = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    for status in [no_room.clone(), starts(), has_ended(7, "2026-01-01T00:59:30Z"), is_ready()] {
        cache.apply(Change::Put(worker("w2", "workers-2", status)));
        assert_eq!(told(&cache), again);
    }
    cache.apply(Change::Put(leader("leader-2", no_room)));
    let [again] = again;
    assert_eq!(told(&cache), [signal("Pod", "chat-0", Reason::Unschedulable, Some(0)), again]);
    cache.apply(Change::Put(leader("leader-2", starts())));
    // What keeps it from starting at all is nearer.
    let pull = json!({
        "phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}],
    });
    cache.apply(Change::Put(worker("w2", "workers-2", pull)));
    assert_eq!(told(&cache), [signal("Pod", "chat-0-1", Reason::ImagePullBackOff, Some(0))]);
    cache.apply(Change::Gone(lws("l", 2, &json!({}))));
    cache.apply(Change::Put(lws("l2", 1, &json!({}))));
    assert_eq!(told(&cache), []);
}

fn event(uid: &str, about: &str, reason: &str, at: &str) -> Value {
    json!({
        "metadata": {"name": uid, "uid": uid}, "involvedObject": {"uid": about},
        "reason": reason, "message": format!("no {uid}"), "lastTimestamp": at,
    })
}

#[test]
fn events_count_while_what_they_tell_of_is_so() {
    let cache = groups();
    let put = |uid: &str, about: &str, at: &str| {
        cache.apply(Change::Put(SetEvent::of_event(&line(&event(uid, about, "FailedCreate", at))).unwrap()));
    };
    put("a", "workers-1", "2026-01-01T00:50:00Z");
    assert_eq!(told(&cache), [], "all its pods are there");
    cache.apply(Change::Put(set("workers-1", "chat-0", "leader-1", Some(0), 0)));
    put("b", "workers-1", "2026-01-01T00:55:00Z");
    put("c", "workers-1", "2026-01-01T00:40:00Z");
    put("d", "someone-else-s", "2026-01-01T00:59:00Z");
    assert_eq!(told(&cache), [signal("StatefulSet", "chat-0", Reason::FailedCreate, Some(0))]);
    let newest = cache.observe(&chat(), "s", LWS, now()).unwrap().signals.remove(0);
    assert_eq!((newest.message.as_str(), newest.at.to_string().as_str()), ("no b", "2026-01-01T00:55:00Z"));
    cache.apply(Change::All(Vec::<SetEvent>::new()));
    assert_eq!(told(&cache), []);

    let on_lws = |reason: &str, at: &str| {
        cache.apply(Change::All(vec![LwsEvent::of_event(&line(&event("e", "l", reason, at))).unwrap()]));
        told(&cache)
    };
    let refused = [signal("LeaderWorkerSet", "chat", Reason::FailedCreate, None)];
    assert_eq!(on_lws("FailedUpdate", "2026-01-01T00:55:00Z"), refused);
    assert_eq!(on_lws("FailedCreate", "2026-01-01T00:55:00Z"), refused);
    assert_eq!(on_lws("Other", "2026-01-01T00:55:00Z"), []);
    assert_eq!(on_lws("FailedCreate", "2026-01-01T00:30:00Z"), [], "it would have been tried again since");
    assert_eq!(on_lws("FailedCreate", "2025-12-31T23:59:00Z"), [], "sets were made since");
    on_lws("FailedCreate", "2026-01-01T00:55:00Z");
    cache.apply(Change::Put(lws("l", 2, &json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2}))));
    assert_eq!(told(&cache), [], "nothing is missing");
}

#[test]
fn events_are_wanted_while_groups_are_missing_and_have_a_bound() {
    let cache = groups();
    let wanted = cache.events_wanted.subscribe();
    assert!(*wanted.borrow());
    cache.apply(Change::Put(lws("l", 2, &json!({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2}))));
    assert!(!*wanted.borrow());
    cache.apply(Change::Put(lws("l", 3, &json!({"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2}))));
    assert!(*wanted.borrow());
    for n in 0..1100 {
        let at = format!("2026-01-01T00:{:02}:{:02}Z", n / 60, n % 60);
        cache.apply(Change::Put(SetEvent::of_event(&line(&event(&format!("e{n}"), "x", "FailedCreate", &at))).unwrap()));
    }
    let objects = cache.objects.read();
    assert_eq!(objects.events.len(), Kind::SetEvent.bound());
    assert!(objects.events.get("e1099").is_some() && objects.events.get("e0").is_none());
    drop(objects);
    cache.apply(Change::Gone(lws("l", 4, &json!({}))));
    assert!(!*wanted.borrow());
}

#[test]
fn a_workload_of_the_other_kind_is_the_one_before() {
    let cache = groups();
    assert_eq!(cache.observe(&chat(), "s", WorkloadKind::Deployment, now()), None, "Deployments are not listed");
    cache.listed(Kind::Deployment);
    let kinds = |kind| {
        let seen = cache.observe(&chat(), "s", kind, now()).unwrap();
        (seen.workload.map(|w| w.kind), seen.previous.map(|w| w.kind))
    };
    assert_eq!(kinds(WorkloadKind::Deployment), (Some(LWS), None));
    cache.apply(Change::Put(deployment("d", "chat")));
    assert_eq!(kinds(WorkloadKind::Deployment), (Some(WorkloadKind::Deployment), Some(LWS)));
    assert_eq!(kinds(LWS), (Some(LWS), Some(WorkloadKind::Deployment)));
    assert!(cache.holds(Kind::Deployment, "s", "team", "chat") && !cache.holds(Kind::Deployment, "s", "team", "other"));
    // Lists of one kind say nothing about the other.
    cache.apply(Change::All(Vec::<Deployment>::new()));
    assert_eq!(kinds(WorkloadKind::Deployment), (Some(LWS), None));
    cache.served(Kind::LeaderWorkerSet, false);
    cache.unfollowed::<LeaderWorkerSet>(Kind::LeaderWorkerSet);
    assert_eq!(kinds(LWS), (None, None), "there can't be any");
}

#[test]
fn a_service_is_seen_and_what_changed_in_it() {
    let cache = Cache::default();
    cache.listed(Kind::Deployment);
    let service = |version: &str, port: u32| {
        json!({
            "metadata": {
                "namespace": "team", "name": "chat-service", "uid": "k", "resourceVersion": version,
                "labels": {HUB: "h", SERVICE_UID: "s"}, "annotations": {SOURCE: "team/chat"},
            },
            "spec": {"ports": [{"port": port}]},
        })
    };
    let put = |object: &Value| cache.apply(Change::Put(Service::of_event(&line(object)).unwrap()));
    let written = service("7", 8000);
    let stamp = Stamp::of(Kind::Service, &written).unwrap();
    let live = || cache.live(Kind::Service, "s", "team", "chat-service", &Marks::of(&written)).unwrap();
    put(&written);
    assert!(live().stamp.is_same(&stamp) && live().bears && live().stamp.version == 7);
    put(&service("8", 9000));
    assert!(!live().stamp.is_same(&stamp) && live().stamp.version == 8);
    let seen = cache.observe(&chat(), "s", WorkloadKind::Deployment, now()).unwrap();
    assert_eq!((seen.service.as_deref(), seen.is_empty()), (Some("chat-service"), false));
    cache.notifier.take(true);
    cache.apply(Change::Gone(Service::of_event(&line(&written)).unwrap()));
    assert!(cache.notifier.take(true).services.contains(&chat()));
    assert!(cache.observe(&chat(), "s", WorkloadKind::Deployment, now()).unwrap().is_empty());
}

#[test]
fn quotas_are_news_when_they_change() {
    let cache = Cache::default();
    let quota = |version: &str, used: &str| {
        let object = json!({
            "metadata": {"namespace": "team", "name": "q", "uid": "q", "resourceVersion": version},
            "status": {"hard": {"pods": "5"}, "used": {"pods": used}},
        });
        QuotaView::of_event(&line(&object)).unwrap()
    };
    let news = || cache.notifier.take(true).room;
    cache.apply(Change::All(vec![quota("1", "1")]));
    assert!(news());
    cache.apply(Change::Put(quota("2", "1")));
    cache.apply(Change::All(vec![quota("3", "1")]));
    assert!(!news(), "only its version");
    cache.apply(Change::Put(quota("4", "2")));
    assert!(news());
    cache.apply(Change::Gone(quota("5", "2")));
    assert!(news());
}
