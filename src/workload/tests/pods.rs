//! Pod templates: their labels, which of them are behind the service, and what they ask for.

use super::*;
use crate::api::lws::EXCLUSIVE_TOPOLOGY;

const SERVED: &str = "mif.moreh.io/inferenceservice";

fn labels_at<'v>(object: &'v Value, template: &str) -> Option<&'v Value> {
    object["spec"]["leaderWorkerTemplate"].get(template).map(|template| &template["metadata"]["labels"])
}

#[test]
fn the_target_decides_which_templates_are_written_and_which_pods_are_served() {
    // For each target, with and without a template of the leader: whether there is a leader template, and whether
    // leader and workers are behind the service.
    for (target, leader_differs, written, leader, workers) in [
        (Some("leader"), true, true, true, false),
        (Some("workers"), true, true, false, true),
        (Some("all"), true, true, true, true),
        (Some("auto"), true, true, true, false),
        (None, true, true, true, false),
        (Some("leader"), false, true, true, false),
        (Some("workers"), false, true, false, true),
        (Some("all"), false, false, true, true),
        (Some("auto"), false, false, true, true),
        (None, false, false, true, true),
    ] {
        for size in [1, 2, 5] {
            let what = format!("{target:?}, template {leader_differs}, size {size}");
            let mut spec = group(size);
            if leader_differs {
                spec["template"] = minimal()["template"].clone();
                spec["template"]["spec"]["containers"][0]["args"] = json!(["--leader"]);
            }
            if let Some(target) = target {
                spec["service"] = json!({"target": target});
            }
            let workload = build(&owner("chat", &NONE), &rendered(spec)).unwrap();
            let object = workload.manifest(3);
            let template = &object["spec"]["leaderWorkerTemplate"];
            assert_eq!(template["size"], size, "{what}");
            let own = labels_at(&object, "leaderTemplate");
            assert_eq!(own.is_some(), written, "{what}");
            let of_workers = labels_at(&object, "workerTemplate").unwrap();
            let of_leader = own.unwrap_or(of_workers);
            assert_eq!((of_leader.get(SERVED).is_some(), of_workers.get(SERVED).is_some()), (leader, workers), "{what}");
            for labels in [of_leader, of_workers] {
                assert_eq!(labels["app.kubernetes.io/instance"], "chat", "{what}");
                assert_eq!(labels["app.kubernetes.io/name"], "chat", "{what}");
            }
            if written && !leader_differs {
                assert_eq!(template["leaderTemplate"]["spec"], template["workerTemplate"]["spec"], "{what}");
            }
            assert_eq!(workload.request.size(), size, "{what}");
            assert_eq!(workload.request.pods.len(), 1, "{what}: leader and workers ask for the same");
            let empty = workload.warnings.iter().any(|warning| warning.contains("the service has no pods"));
            assert_eq!(empty, size == 1 && target == Some("workers"), "{what}: {:?}", workload.warnings);
        }
    }
    let mut spec = minimal();
    spec["service"] = json!({"target": "workers"});
    let workload = build(&owner("chat", &NONE), &rendered(spec)).unwrap();
    assert_eq!(workload.manifest(1)["spec"]["template"]["metadata"]["labels"][SERVED], "chat", "a Deployment's always are");
    assert!(workload.warnings.is_empty());
}

#[test]
fn fields_that_the_hub_does_not_set_are_left_to_the_member() {
    let fields = |object: &Value| object.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut spec = minimal();
    let object = build(&owner("chat", &NONE), &rendered(spec.clone())).unwrap().manifest(0);
    assert_eq!(fields(&object["spec"]), ["replicas", "selector", "template"]);
    assert_eq!(object["spec"]["replicas"], 0);
    spec["revisionHistoryLimit"] = json!(0);
    assert_eq!(build(&owner("chat", &NONE), &rendered(spec)).unwrap().manifest(0)["spec"]["revisionHistoryLimit"], 0);

    let mut spec = group(2);
    spec["revisionHistoryLimit"] = json!(3);
    let object = build(&owner("chat", &NONE), &rendered(spec)).unwrap().manifest(1);
    assert_eq!(fields(&object["spec"]), ["leaderWorkerTemplate", "replicas", "startupPolicy"]);
    assert_eq!(fields(&object["spec"]["leaderWorkerTemplate"]), ["restartPolicy", "size", "workerTemplate"]);
}

#[test]
fn a_template_may_name_the_application_and_the_service_names_the_gateway() {
    let labels = labels_of(&[("mif.moreh.io/aigateway", "of-service"), ("team", "search")]);
    let mut spec = minimal();
    spec["template"]["metadata"] =
        json!({"labels": {"app.kubernetes.io/name": "engine", "mif.moreh.io/aigateway": "of-template"}, "annotations": {"a": "b"}});
    let expected = json!({
        "app.kubernetes.io/instance": "chat",
        "app.kubernetes.io/name": "engine",
        "mif.moreh.io/aigateway": "of-service",
        "mif.moreh.io/inferenceservice": "chat",
    });
    let object = build(&owner("chat", &labels), &rendered(spec.clone())).unwrap().manifest(1);
    assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/name"], "engine");
    assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/instance"], "chat");
    let pod = &object["spec"]["template"]["metadata"];
    assert_eq!((&pod["labels"], &pod["annotations"]), (&expected, &json!({"a": "b"})));

    let mut both = group(2);
    both["workerTemplate"]["metadata"] = json!({"labels": {"app.kubernetes.io/name": "worker", "mif.moreh.io/role": "decode"}});
    let workers_name_it = build(&owner("chat", &labels), &rendered(both.clone())).unwrap().manifest(1);
    assert_eq!(workers_name_it["metadata"]["labels"]["app.kubernetes.io/name"], "worker");
    both["template"] = spec["template"].clone();
    let object = build(&owner("chat", &labels), &rendered(both)).unwrap().manifest(1);
    assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/name"], "engine");
    assert_eq!(labels_at(&object, "leaderTemplate"), Some(&expected));
    assert_eq!(
        labels_at(&object, "workerTemplate"),
        Some(&json!({
            "app.kubernetes.io/instance": "chat",
            "app.kubernetes.io/name": "worker",
            "mif.moreh.io/aigateway": "of-service",
            "mif.moreh.io/role": "decode",
        }))
    );
}

#[test]
fn f54_a_long_name_keeps_its_object_name_and_is_cut_in_labels() {
    let name = format!("{}.example", "long".repeat(20));
    let workload = build(&owner(&name, &NONE), &rendered(minimal())).unwrap();
    let object = workload.manifest(1);
    let value = crate::api::labels::label_value(&name);
    assert_eq!(object["metadata"]["name"], name.as_str());
    assert_eq!(object["spec"]["selector"]["matchLabels"], json!({SERVED: value}));
    assert_eq!(object["spec"]["template"]["metadata"]["labels"][SERVED], value.as_str());
    assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/instance"], value.as_str());
    assert_eq!(workload.service().object["spec"]["selector"], json!({SERVED: value}));
    assert_eq!(hpa_pod_selector(WorkloadKind::Deployment, &name), format!("{SERVED}={value}"));
    assert_eq!(
        hpa_pod_selector(WorkloadKind::LeaderWorkerSet, "chat"),
        "leaderworkerset.sigs.k8s.io/name=chat,leaderworkerset.sigs.k8s.io/worker-index=0"
    );
}

#[test]
fn i32_leader_and_workers_keep_their_own_nodes_and_requests() {
    let pod = |model: &str, gpus: &str| {
        json!({"spec": {
            "nodeSelector": {"moai.moreh.io/accelerator.model": model},
            "containers": [{"name": "main", "image": "i", "resources": {"limits": {"amd.com/gpu": gpus, "memory": "1024Mi"}}}],
        }})
    };
    let spec = json!({"parallelism": {"pipeline": 4}, "template": pod("mi210", "1000m"), "workerTemplate": pod("mi300x", "8")});
    let workload = build(&owner("chat", &NONE), &rendered(spec.clone())).unwrap();
    let template = &workload.manifest(1)["spec"]["leaderWorkerTemplate"];
    for (field, model, gpus) in [("leaderTemplate", "mi210", "1"), ("workerTemplate", "mi300x", "8")] {
        let pod = &template[field]["spec"];
        assert_eq!(pod["nodeSelector"], json!({"moai.moreh.io/accelerator.model": model}), "{field}");
        assert_eq!(pod["containers"][0]["resources"]["limits"], json!({"amd.com/gpu": gpus, "memory": "1Gi"}), "{field}");
    }
    let sets: Vec<_> = workload.request.pods.iter().map(|set| (set.count, set.shape.requests.get("amd.com/gpu"))).collect();
    assert_eq!(sets, [(1, 1), (3, 8)], "the leader comes first");
    assert_eq!(workload.request.kind, WorkloadKind::LeaderWorkerSet);
    assert_eq!(request_of(&owner("chat", &NONE), &spec).unwrap(), *workload.request);

    let mut single = spec;
    single["parallelism"] = json!({"pipeline": 1});
    let sets: Vec<_> = build(&owner("chat", &NONE), &rendered(single)).unwrap().request.pods.iter().map(|set| set.count).collect();
    assert_eq!(sets, [1], "a group of one is its leader");
}

#[test]
fn f58_no_group_asks_for_nothing() {
    let mut both = group(4);
    both["template"] = minimal()["template"].clone();
    let mut data = group(1);
    data["parallelism"] = json!({"data": 16, "dataLocal": 8});
    let mut at_rest = group(2);
    at_rest["replicas"] = json!(0);
    let empty = crate::capacity::Store::new().snapshot();
    for (spec, pods) in [(minimal(), 1), (group(1), 1), (group(2), 2), (both, 4), (data, 2), (at_rest, 2)] {
        let request = request_of(&owner("chat", &NONE), &spec).unwrap();
        assert!(request.pods.iter().all(|set| set.count > 0), "{spec}");
        assert_eq!(request.pods.iter().map(|set| set.count).sum::<u32>(), pods, "{spec}");
        let service = crate::capacity::ServiceKey::new("demo", "chat");
        let room = crate::capacity::room(&empty, &request, &service, &[], 3, &crate::capacity::Options::default());
        assert_eq!(room.groups, 0, "a member without nodes holds nothing: {spec}");
        assert!(room.stopped_by.is_some(), "{spec}");
    }
}

#[test]
fn i32_a_copy_of_the_worker_template_has_its_node_selector_too() {
    let mut spec = group(2);
    spec["service"] = json!({"target": "leader"});
    spec["workerTemplate"]["spec"]["nodeSelector"] = json!({"a": "b"});
    let template = build(&owner("chat", &NONE), &rendered(spec)).unwrap().manifest(1)["spec"]["leaderWorkerTemplate"].clone();
    for field in ["leaderTemplate", "workerTemplate"] {
        assert_eq!(template[field]["spec"]["nodeSelector"], json!({"a": "b"}), "{field}");
    }
}

#[test]
fn a_request_counts_labels_that_only_the_hub_sets() {
    let mut spec = minimal();
    spec["template"]["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {SERVED: "chat"}}}]}});
    assert!(request_of(&owner("chat", &NONE), &spec).unwrap().pods[0].shape.one_per_node);
    assert!(!request_of(&owner("other", &NONE), &spec).unwrap().pods[0].shape.one_per_node);
}

#[test]
fn an_exclusive_topology_is_for_groups() {
    let annotations = labels_of(&[(EXCLUSIVE_TOPOLOGY, "topology.kubernetes.io/rack"), ("other", "x")]);
    let exclusive = Owner { annotations: &annotations, ..owner("chat", &NONE) };
    let workload = build(&exclusive, &rendered(group(2))).unwrap();
    let key = Some("topology.kubernetes.io/rack");
    assert_eq!((workload.exclusive_topology.as_deref(), workload.request.exclusive_topology.as_deref()), (key, key));
    let object = workload.manifest(1);
    assert_eq!(object["metadata"]["annotations"][EXCLUSIVE_TOPOLOGY], "topology.kubernetes.io/rack");
    assert_eq!(object["metadata"]["annotations"].get("other"), None);
    assert!(!object["spec"].to_string().contains("exclusive-topology"));
    assert_eq!(request_of(&exclusive, &group(2)).unwrap(), *workload.request);
    assert_eq!(build(&owner("chat", &NONE), &rendered(group(2))).unwrap().exclusive_topology, None);

    let workload = build(&exclusive, &rendered(minimal())).unwrap();
    assert_eq!((workload.exclusive_topology, workload.request.exclusive_topology.clone()), (None, None));
    assert!(workload.warnings.iter().any(|warning| warning.contains(EXCLUSIVE_TOPOLOGY)), "{:?}", workload.warnings);

    for wrong in ["", "a b", "/x", "rack=1"] {
        let annotations = labels_of(&[(EXCLUSIVE_TOPOLOGY, wrong)]);
        let refusal = build(&Owner { annotations: &annotations, ..exclusive }, &rendered(group(2))).unwrap_err();
        assert_eq!(refusal.reason, Reason::InvalidRendered);
        assert!(refusal.message.contains(EXCLUSIVE_TOPOLOGY) && refusal.message.contains(&format!("{wrong:?}")), "{refusal}");
    }
}

mod pools {
    use super::*;

    fn pool(name: &str, labels: &[(&str, &str)]) -> Pool {
        Pool { name: name.to_owned(), labels: labels_of(labels) }
    }

    fn joining(mut spec: Value, names: &[&str]) -> Value {
        spec["inferencePoolRefs"] = names.iter().map(|name| json!({"name": name})).collect();
        spec
    }

    #[test]
    fn labels_go_onto_the_pods_behind_the_service() {
        let pools = [pool("chat-pool", &[("pool", "chat"), ("app.kubernetes.io/name", "engine")]), pool("other", &[("x", "y")])];
        let joined = Owner { pools: &pools, ..owner("chat", &NONE) };
        let mut spec = joining(group(2), &["chat-pool"]);
        spec["service"] = json!({"target": "leader"});
        spec["workerTemplate"]["metadata"] = json!({"labels": {"own": "1"}});
        let workload = build(&joined, &rendered(spec)).unwrap();
        let object = workload.manifest(1);
        let of = |template| labels_at(&object, template).unwrap();
        assert_eq!((&of("leaderTemplate")["pool"], &of("leaderTemplate")["own"]), (&json!("chat"), &json!("1")));
        assert_eq!(of("leaderTemplate")["app.kubernetes.io/name"], "engine");
        assert_eq!(of("leaderTemplate").get("x"), None, "a pool that the service doesn't name");
        assert_eq!((of("workerTemplate").get("pool"), &of("workerTemplate")["app.kubernetes.io/name"]), (None, &json!("chat")));
        assert_eq!(object["metadata"]["labels"].get("pool"), None);
        assert!(workload.warnings.is_empty());

        let object = build(&joined, &rendered(joining(minimal(), &["chat-pool", "other"]))).unwrap().manifest(1);
        let labels = &object["spec"]["template"]["metadata"]["labels"];
        assert_eq!((&labels["pool"], &labels["x"]), (&json!("chat"), &json!("y")));
        assert_eq!(object["spec"]["selector"]["matchLabels"], json!({SERVED: "chat"}));
    }

    #[test]
    fn a_pool_that_is_not_there_is_a_warning() {
        let workload = build(&owner("chat", &NONE), &rendered(joining(minimal(), &["gone"]))).unwrap();
        assert_eq!(workload.warnings.len(), 1);
        assert!(workload.warnings[0].contains("\"gone\"") && workload.warnings[0].contains("namespace demo"), "{:?}", workload.warnings);
    }

    #[test]
    fn disagreement_is_refused_with_both_names() {
        let mut labelled = minimal();
        labelled["template"]["metadata"] = json!({"labels": {"pool": "mine"}});
        let gateway = labels_of(&[("mif.moreh.io/aigateway", "main-gw")]);
        for (pools, service_labels, spec, parts) in [
            (
                vec![pool("p", &[("pool", "chat")])],
                &NONE,
                joining(labelled.clone(), &["p"]),
                vec!["InferencePool p", "\"chat\"", "spec.template.metadata.labels", "\"mine\""],
            ),
            (
                vec![pool("p", &[("a", "1")]), pool("q", &[("a", "2")])],
                &NONE,
                joining(minimal(), &["p", "q"]),
                vec!["InferencePool p", "\"1\"", "InferencePool q", "\"2\""],
            ),
            (
                vec![pool("p", &[("mif.moreh.io/aigateway", "other-gw")])],
                &gateway,
                joining(minimal(), &["p"]),
                vec!["InferencePool p", "\"other-gw\"", "the label of the service", "\"main-gw\""],
            ),
            (
                vec![pool("p", &[("mif.moreh.io/inferenceservice", "chat")])],
                &NONE,
                joining(minimal(), &["p"]),
                vec!["InferencePool p", "mif.moreh.io/inferenceservice", "set by controllers"],
            ),
            (
                vec![pool("p", &[("app.kubernetes.io/instance", "chat")])],
                &NONE,
                joining(minimal(), &["p"]),
                vec!["InferencePool p", "app.kubernetes.io/instance"],
            ),
            (
                vec![pool("p", &[("leaderworkerset.sigs.k8s.io/worker-index", "0")])],
                &NONE,
                joining(minimal(), &["p"]),
                vec!["InferencePool p", "leaderworkerset.sigs.k8s.io/worker-index"],
            ),
        ] {
            let refusal = build(&Owner { pools: &pools, ..owner("chat", service_labels) }, &rendered(spec)).unwrap_err();
            assert_eq!(refusal.reason, Reason::InvalidRendered);
            for part in parts {
                assert!(refusal.message.contains(part), "{part:?} is not in {refusal}");
            }
        }
        let agreeing = [pool("p", &[("pool", "mine")]), pool("q", &[("pool", "mine")])];
        build(&Owner { pools: &agreeing, ..owner("chat", &NONE) }, &rendered(joining(labelled, &["p", "q"]))).unwrap();
    }
}
