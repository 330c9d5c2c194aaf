//! What a member gets of a service.

mod examples;
mod names;
mod pods;
mod rollout;
mod service;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

static NONE: BTreeMap<String, String> = BTreeMap::new();

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

fn rendered(spec: Value) -> Rendered {
    Rendered { spec, sources: Vec::new(), hash: String::new(), warnings: Vec::new() }
}

fn labels_of(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn owner<'a>(name: &'a str, labels: &'a BTreeMap<String, String>) -> Owner<'a> {
    Owner { name, namespace: "demo", uid: "7d3c", generation: 4, labels, annotations: &NONE, pools: &[], hub_id: "hub-1" }
}

/// The object without what the hub adds for itself.
fn plain(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["labels", "annotations"] {
        let entries = metadata[field].as_object_mut().unwrap();
        entries.retain(|key, _| !key.starts_with("federation.odin.moreh.io/"));
        if entries.is_empty() {
            metadata.remove(field);
        }
    }
    object
}

fn minimal() -> Value {
    json!({"replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "registry.example/engine:1.4"}]}}})
}

/// The smallest group of so many pods.
fn group(size: u32) -> Value {
    json!({"replicas": 1, "workerTemplate": minimal()["template"], "parallelism": {"pipeline": size}})
}

#[test]
fn the_hubs_own_marks_stand_on_the_object_and_never_on_pods() {
    let labels = BTreeMap::new();
    let workload = build(&owner("chat", &labels), &rendered(minimal())).unwrap();
    let object = workload.manifest(1);
    let metadata = &object["metadata"];
    assert_eq!(metadata["labels"]["federation.odin.moreh.io/hub"], "hub-1");
    assert_eq!(metadata["labels"]["federation.odin.moreh.io/service-uid"], "7d3c");
    assert_eq!(metadata["annotations"]["federation.odin.moreh.io/source"], "demo/chat");
    assert_eq!(metadata["annotations"]["federation.odin.moreh.io/rendered-hash"], workload.hash.as_str());
    assert_eq!(metadata["annotations"]["federation.odin.moreh.io/generation"], "4");
    let template = object["spec"]["template"].to_string();
    for mark in ["federation.odin.moreh.io", "hub-1", "7d3c", workload.hash.as_str()] {
        assert!(!template.contains(mark), "{mark} in {template}");
    }
}

#[test]
fn the_hash_covers_what_is_rendered_and_nothing_else() {
    let annotations = labels_of(&[("note", "x"), ("team", "y")]);
    let (team, gateway) = (labels_of(&[("team", "search")]), labels_of(&[("mif.moreh.io/aigateway", "main-gw")]));
    let pools = [Pool { name: "p".into(), labels: labels_of(&[("pool", "chat")]) }];
    let topology = labels_of(&[("leaderworkerset.sigs.k8s.io/exclusive-topology", "rack")]);
    for minimal in [minimal(), group(2)] {
        let template = if minimal.get("template").is_some() { "template" } else { "workerTemplate" };
        let base = owner("chat", &NONE);
        let hash = |owner: &Owner<'_>, spec: Value| build(owner, &rendered(spec)).unwrap().hash;
        let set = |pointer: &str, value: Value| {
            let mut spec = minimal.clone();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            spec.pointer_mut(parent).unwrap()[key] = value;
            spec
        };
        let container = |field: &str, value: Value| set(&format!("/{template}/spec/containers/0/{field}"), value);
        let first = hash(&base, minimal.clone());

        for (what, owner, spec) in [
            ("replicas", base, set("/replicas", json!(7))),
            ("generation", Owner { generation: 5, ..base }, minimal.clone()),
            ("uid", Owner { uid: "other", ..base }, minimal.clone()),
            ("hub", Owner { hub_id: "hub-2", ..base }, minimal.clone()),
            ("a label that isn't copied", Owner { labels: &team, ..base }, minimal.clone()),
            ("an annotation that isn't copied", Owner { annotations: &annotations, ..base }, minimal.clone()),
            ("a pool that isn't named", Owner { pools: &pools, ..base }, minimal.clone()),
            ("what only expressions read", base, set("/model", json!({"name": "m"}))),
        ] {
            assert_eq!(hash(&owner, spec), first, "{template}: {what} must not change the hash");
        }
        let workload = build(&base, &rendered(minimal.clone())).unwrap();
        for share in [0, 1, 9] {
            assert_eq!(workload.manifest(share)["metadata"]["annotations"]["federation.odin.moreh.io/rendered-hash"], first.as_str());
        }

        let mut changes = vec![
            ("a copied label", Owner { labels: &gateway, ..base }, minimal.clone()),
            ("a pool", Owner { pools: &pools, ..base }, set("/inferencePoolRefs", json!([{"name": "p"}]))),
            ("the image", base, container("image", json!("registry.example/engine:1.5"))),
            ("a port", base, container("ports", json!([{"containerPort": 80}]))),
            ("a label of the pods", base, set(&format!("/{template}/metadata"), json!({"labels": {"a": "b"}}))),
            ("the strategy", base, set("/rolloutStrategy", json!({"rollingUpdate": {"maxSurge": "10%"}}))),
            ("the namespace", Owner { namespace: "other", ..base }, minimal.clone()),
            ("the name", Owner { name: "other", ..base }, minimal.clone()),
        ];
        if template == "workerTemplate" {
            changes.extend([
                ("the size", base, set("/parallelism", json!({"pipeline": 3}))),
                ("the target", base, set("/service", json!({"target": "leader"}))),
                ("the leader", base, set("/template", minimal[template].clone())),
                ("the topology", Owner { annotations: &topology, ..base }, minimal.clone()),
            ]);
        }
        let hashes: std::collections::BTreeSet<String> = changes.iter().map(|(_, owner, spec)| hash(owner, spec.clone())).collect();
        for (what, owner, spec) in &changes {
            assert_ne!(hash(owner, spec.clone()), first, "{template}: {what} must change the hash");
        }
        // A target of leader and a leader template that equals the workers' are one object.
        assert!(hashes.len() >= changes.len() - 1, "{template}: different changes have different hashes");
    }
}

#[test]
fn equal_quantities_in_other_words_are_one_object() {
    let labels = BTreeMap::new();
    let with = |resources: Value| {
        let mut spec = minimal();
        spec["template"]["spec"]["containers"][0]["resources"] = resources;
        build(&owner("chat", &labels), &rendered(spec)).unwrap()
    };
    let one = with(json!({"limits": {"amd.com/gpu": 1, "memory": "1024Mi", "cpu": 0.5}}));
    let two = with(json!({"limits": {"amd.com/gpu": "1000m", "memory": "1Gi", "cpu": "500m"}}));
    assert_eq!(one.manifest(1), two.manifest(1));
    assert_eq!(
        one.manifest(1)["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"],
        json!({"amd.com/gpu": "1", "memory": "1Gi", "cpu": "500m"})
    );
}

#[test]
fn quantities_are_found_wherever_a_pod_has_them() {
    let labels = BTreeMap::new();
    let mut spec = minimal();
    spec["template"]["spec"] = json!({
        "overhead": {"cpu": "1000m"},
        "resources": {"requests": {"cpu": "2000m"}},
        "initContainers": [{"name": "warm", "image": "i", "resources": {"requests": {"cpu": "3000m"}}}],
        "containers": [{"name": "main", "image": "i", "env": [
            {"name": "PLAIN", "value": "1000m"},
            {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1000m"}}}
        ]}],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1024Mi"}},
            {"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1024Gi"}}}}}}
        ]
    });
    let pod = build(&owner("chat", &labels), &rendered(spec)).unwrap().manifest(1)["spec"]["template"]["spec"].clone();
    for (pointer, want) in [
        ("/overhead/cpu", "1"),
        ("/resources/requests/cpu", "2"),
        ("/initContainers/0/resources/requests/cpu", "3"),
        ("/containers/0/env/0/value", "1000m"),
        ("/containers/0/env/1/valueFrom/resourceFieldRef/divisor", "1"),
        ("/volumes/0/emptyDir/sizeLimit", "1Gi"),
        ("/volumes/1/ephemeral/volumeClaimTemplate/spec/resources/requests/storage", "1Ti"),
    ] {
        assert_eq!(pod.pointer(pointer), Some(&json!(want)), "{pointer}");
    }
}

#[test]
fn what_can_not_be_built_is_refused_with_the_place() {
    let set = |pointer: &str, value: Value| {
        let mut spec = minimal();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        spec.pointer_mut(parent).unwrap()[key] = value;
        spec
    };
    let faulty_workers = |resources: Value| {
        let mut spec = group(2);
        spec["template"] = minimal()["template"].clone();
        spec["workerTemplate"]["spec"]["resources"] = resources;
        spec
    };
    for (name, spec, reason, part) in [
        ("chat", json!({"replicas": 1}), Reason::NoPodTemplate, "template"),
        (
            "chat",
            set("/template/spec/resources", json!({"limits": {"cpu": "much"}})),
            Reason::InvalidRendered,
            "template.spec.resources.limits[cpu]",
        ),
        ("chat", set("/template/spec/overhead", json!({"cpu": true})), Reason::InvalidRendered, "template.spec.overhead[cpu]"),
        ("chat", set("/template/metadata", json!("x")), Reason::InvalidRendered, "template.metadata"),
        ("chat", set("/template/metadata", json!({"labels": 1})), Reason::InvalidRendered, "template.metadata.labels"),
        ("chat", set("/rolloutStrategy", json!({"rollingUpdate": {"maxSurge": "few"}})), Reason::InvalidRendered, "maxSurge"),
        ("chat", set("/rolloutStrategy", json!({"rollingUpdate": {"maxUnavailable": -1}})), Reason::InvalidRendered, "maxUnavailable"),
        ("chat", set("/rolloutStrategy", json!({"rollingUpdate": {"partition": -1}})), Reason::InvalidRendered, "partition"),
        ("chat", set("/rolloutStrategy", json!("fast")), Reason::InvalidRendered, "rolloutStrategy"),
        ("chat", set("/service", json!({"target": "some"})), Reason::InvalidRendered, "service.target"),
        ("chat", set("/service", json!({"target": 1})), Reason::InvalidRendered, "service.target"),
        ("chat", set("/workerTemplate", minimal()["template"].clone()), Reason::WorkerNeedsParallelism, "spec.parallelism"),
        (
            "chat",
            faulty_workers(json!({"limits": {"cpu": "much"}})),
            Reason::InvalidRendered,
            "spec.workerTemplate.spec.resources.limits[cpu]",
        ),
    ] {
        let refusal = build(&owner(name, &BTreeMap::new()), &rendered(spec)).unwrap_err();
        assert_eq!(refusal.reason, reason, "{}", refusal.message);
        assert!(refusal.message.contains(part), "{}", refusal.message);
    }
}
