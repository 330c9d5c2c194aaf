//! The worked examples: from a merged and rendered spec to the object in a member.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

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
    Owner { name, namespace: "demo", uid: "7d3c", generation: 4, labels, hub_id: "hub-1" }
}

/// The object without what the hub adds for itself.
fn plain(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("annotations");
    metadata["labels"].as_object_mut().unwrap().retain(|key, _| !key.starts_with("federation.odin.moreh.io/"));
    object
}

fn minimal() -> Value {
    json!({"replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "registry.example/engine:1.4"}]}}})
}

#[test]
fn one_pod_per_replica_over_a_runtime_base() {
    let labels = labels_of(&[("mif.moreh.io/aigateway", "main-gw"), ("team", "search")]);
    let spec = yaml(include_str!("../render/testdata/chat-small.rendered.yaml"));
    let workload = build(&owner("chat-small", &labels), &rendered(spec)).unwrap();
    assert_eq!(plain(workload.manifest(2)), yaml(include_str!("testdata/chat-small.deployment.yaml")));
}

#[test]
fn tensor_parallel_with_a_sidecar_and_no_surge() {
    let spec = yaml(include_str!("../render/testdata/chat-70b.rendered.yaml"));
    let workload = build(&owner("chat-70b", &BTreeMap::new()), &rendered(spec)).unwrap();
    assert_eq!(plain(workload.manifest(3)), yaml(include_str!("testdata/chat-70b.deployment.yaml")));
}

#[test]
fn the_prefill_half_of_a_pair() {
    let labels = labels_of(&[("mif.moreh.io/aigateway", "main-gw")]);
    let spec = yaml(include_str!("testdata/r1-prefill.spec.yaml"));
    let workload = build(&owner("r1-prefill", &labels), &rendered(spec)).unwrap();
    assert_eq!(plain(workload.manifest(3)), yaml(include_str!("testdata/r1-prefill.deployment.yaml")));
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
    let labels = BTreeMap::new();
    let base = owner("chat", &labels);
    let hash = |owner: &Owner<'_>, spec: Value| build(owner, &rendered(spec)).unwrap().hash;
    let first = hash(&base, minimal());

    let mut more = minimal();
    more["replicas"] = json!(7);
    for (what, owner, spec) in [
        ("replicas", base, more),
        ("generation", Owner { generation: 5, ..base }, minimal()),
        ("uid", Owner { uid: "other", ..base }, minimal()),
        ("hub", Owner { hub_id: "hub-2", ..base }, minimal()),
    ] {
        assert_eq!(hash(&owner, spec), first, "{what} must not change the hash");
    }

    let gateway = labels_of(&[("mif.moreh.io/aigateway", "main-gw")]);
    let mut image = minimal();
    image["template"]["spec"]["containers"][0]["image"] = json!("registry.example/engine:1.5");
    let mut surge = minimal();
    surge["rolloutStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "10%"}});
    for (what, owner, spec) in [
        ("a copied label", Owner { labels: &gateway, ..base }, minimal()),
        ("the image", base, image),
        ("the strategy", base, surge),
        ("the namespace", Owner { namespace: "other", ..base }, minimal()),
    ] {
        assert_ne!(hash(&owner, spec), first, "{what} must change the hash");
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
fn percentages_become_whole_groups_of_the_share() {
    let labels = BTreeMap::new();
    let update = |surge: Value, unavailable: Value| json!({"maxSurge": surge, "maxUnavailable": unavailable});
    for (written, share, want) in [
        (update(json!("25%"), json!("25%")), 1, update(json!(1), json!(0))),
        (update(json!("25%"), json!("25%")), 4, update(json!(1), json!(1))),
        (update(json!("25%"), json!("25%")), 5, update(json!(2), json!(1))),
        (update(json!("25%"), json!("25%")), 8, update(json!(2), json!(2))),
        (update(json!(0), json!("25%")), 3, update(json!(0), json!(1))),
        (update(json!("25%"), json!("25%")), 0, update(json!(0), json!(1))),
        (update(json!("0%"), json!("100%")), 3, update(json!(0), json!(3))),
        (update(json!(2), json!(0)), 1, update(json!(2), json!(0))),
        (json!({"maxUnavailable": "50%"}), 3, json!({"maxUnavailable": 1})),
        (json!({"maxSurge": "50%"}), 3, json!({"maxSurge": 2})),
    ] {
        let mut spec = minimal();
        spec["rolloutStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": written});
        let object = build(&owner("chat", &labels), &rendered(spec)).unwrap().manifest(share);
        assert_eq!(object["spec"]["strategy"], json!({"type": "RollingUpdate", "rollingUpdate": want}), "{written} of {share}");
    }
    let mut spec = minimal();
    spec["rolloutStrategy"] = json!({"type": "Recreate"});
    let object = build(&owner("chat", &labels), &rendered(spec)).unwrap().manifest(2);
    assert_eq!(object["spec"]["strategy"], json!({"type": "Recreate"}));
}

#[test]
fn what_the_service_does_not_set_is_left_to_the_member() {
    let object = build(&owner("chat", &BTreeMap::new()), &rendered(minimal())).unwrap().manifest(0);
    let fields: Vec<_> = object["spec"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields, ["replicas", "selector", "template"]);
    assert_eq!(object["spec"]["replicas"], 0);
}

#[test]
fn a_template_may_name_the_application_and_the_service_names_the_gateway() {
    let labels = labels_of(&[("mif.moreh.io/aigateway", "of-service")]);
    let mut spec = minimal();
    spec["template"]["metadata"] =
        json!({"labels": {"app.kubernetes.io/name": "engine", "mif.moreh.io/aigateway": "of-template"}, "annotations": {"a": "b"}});
    let object = build(&owner("chat", &labels), &rendered(spec)).unwrap().manifest(1);
    assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/name"], "engine");
    assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/instance"], "chat");
    let pod = &object["spec"]["template"]["metadata"];
    assert_eq!(
        pod["labels"],
        json!({
            "app.kubernetes.io/instance": "chat",
            "app.kubernetes.io/name": "engine",
            "mif.moreh.io/aigateway": "of-service",
            "mif.moreh.io/inferenceservice": "chat"
        })
    );
    assert_eq!(pod["annotations"], json!({"a": "b"}));
}

#[test]
fn a_long_name_keeps_its_object_name_and_is_cut_in_labels() {
    let name = format!("{}.example", "long".repeat(20));
    let object = build(&owner(&name, &BTreeMap::new()), &rendered(minimal())).unwrap().manifest(1);
    let value = crate::api::labels::label_value(&name);
    assert_eq!(object["metadata"]["name"], name.as_str());
    assert_eq!(object["spec"]["selector"]["matchLabels"], json!({"mif.moreh.io/inferenceservice": value}));
    assert_eq!(object["spec"]["template"]["metadata"]["labels"]["mif.moreh.io/inferenceservice"], value.as_str());
    assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/instance"], value.as_str());
    assert_eq!(hpa_pod_selector(WorkloadKind::Deployment, &name), format!("mif.moreh.io/inferenceservice={value}"));
}

#[test]
fn what_can_not_be_built_is_refused_with_the_place() {
    let set = |pointer: &str, value: Value| {
        let mut spec = minimal();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        spec.pointer_mut(parent).unwrap()[key] = value;
        spec
    };
    for (name, spec, reason, part) in [
        ("chat", set("/workerTemplate", json!({"spec": {}})), Reason::WorkloadNotSupported, "LeaderWorkerSet"),
        ("chat", json!({"replicas": 1}), Reason::NoPodTemplate, "template"),
        ("Chat", minimal(), Reason::NameNotAllowed, "\"Chat\""),
        ("a..b", minimal(), Reason::NameNotAllowed, "\"a..b\""),
        ("-a", minimal(), Reason::NameNotAllowed, "\"-a\""),
        ("", minimal(), Reason::NameNotAllowed, "\"\""),
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
        ("chat", set("/rolloutStrategy", json!({"rollingUpdate": {"partition": 1}})), Reason::RolloutNotSupported, "partition"),
    ] {
        let refusal = build(&owner(name, &BTreeMap::new()), &rendered(spec)).unwrap_err();
        assert_eq!(refusal.reason, reason, "{}", refusal.message);
        assert!(refusal.message.contains(part), "{}", refusal.message);
    }
}
