//! The worked examples, from the objects that a person writes to those that a member gets; and shapes and refusals in
//! one line each.

use serde_json::{Value, json};

use super::*;
use crate::api::odin::{InferenceService, Source};
use crate::render::{Catalog, Layer, ServiceIdentity, lookup, render};

/// Objects as they lie on the hub.
struct Hub(Vec<Value>);

impl Hub {
    fn of(texts: &[&str]) -> Self {
        Self(texts.iter().flat_map(|text| serde_saphyr::from_multiple::<Value>(text).unwrap()).collect())
    }

    fn find(&self, kind: &str, namespace: Option<&str>, name: &str) -> Option<&Value> {
        let same = |object: &&Value| {
            object["kind"] == kind && object["metadata"]["namespace"].as_str() == namespace && object["metadata"]["name"] == name
        };
        self.0.iter().find(same)
    }

    fn layer(&self, kind: &str, namespace: Option<&str>, name: &str) -> Option<Layer> {
        let object = self.find(kind, namespace, name)?;
        let source =
            Source { kind: kind.to_owned(), namespace: namespace.map(ToOwned::to_owned), name: name.to_owned(), ..Source::default() };
        Some(Layer { source, spec: object["spec"].clone() })
    }

    fn render(&self, service: &InferenceService) -> Result<Rendered, Refusal> {
        let owner = Owner::of(service, &[], "hub-1");
        let identity = ServiceIdentity { name: owner.name, namespace: owner.namespace, labels: owner.labels };
        render(&identity, &lookup(self, "mif", service)?)
    }

    fn build(&self, name: &str) -> Result<Workload, Refusal> {
        let service = self.find("InferenceService", Some("demo"), name).unwrap();
        let service: InferenceService = serde_json::from_value(service.clone()).unwrap();
        build(&Owner::of(&service, &[], "hub-1"), &self.render(&service)?)
    }
}

impl Catalog for Hub {
    fn template(&self, namespace: &str, name: &str) -> Option<Layer> {
        self.layer("InferenceServiceTemplate", Some(namespace), name)
    }

    fn cluster_template(&self, name: &str) -> Option<Layer> {
        self.layer("ClusterInferenceServiceTemplate", None, name)
    }

    fn runtime_base(&self, name: &str) -> Option<Layer> {
        self.layer("RuntimeBase", None, name)
    }
}

const CHAT_SMALL: &str = include_str!("../testdata/chat-small.input.yaml");

#[test]
fn one_pod_per_replica_over_a_runtime_base() {
    let workload = Hub::of(&[CHAT_SMALL]).build("chat-small").unwrap();
    assert_eq!(plain(workload.manifest(2)), yaml(include_str!("../testdata/chat-small.deployment.yaml")));
    assert_eq!(plain(workload.service().object.clone()), yaml(include_str!("../testdata/chat-small.service.yaml")));
    assert_eq!(workload.service().name, "chat-small-service");
}

#[test]
fn tensor_parallel_over_three_layers_with_a_sidecar_and_no_surge() {
    let workload = Hub::of(&[CHAT_SMALL, include_str!("../testdata/chat-70b.input.yaml")]).build("chat-70b").unwrap();
    assert_eq!(plain(workload.manifest(3)), yaml(include_str!("../testdata/chat-70b.deployment.yaml")));
}

#[test]
fn data_parallel_over_two_nodes_with_a_worker_template_only() {
    let workload = Hub::of(&[include_str!("../testdata/moe-dp.input.yaml")]).build("moe-dp").unwrap();
    assert_eq!(plain(workload.manifest(2)), yaml(include_str!("../testdata/moe-dp.lws.yaml")));
    assert_eq!(workload.request.pods.iter().map(|set| set.count).collect::<Vec<_>>(), [2]);
}

#[test]
fn pipeline_parallel_with_both_templates() {
    let workload = Hub::of(&[include_str!("../testdata/big-pp.input.yaml")]).build("big-pp").unwrap();
    assert_eq!(plain(workload.manifest(1)), yaml(include_str!("../testdata/big-pp.lws.yaml")));
    assert_eq!(workload.request.pods.iter().map(|set| set.count).collect::<Vec<_>>(), [4], "leader and workers ask for the same");
}

#[test]
fn prefill_and_decode_as_a_pair() {
    let hub = Hub::of(&[include_str!("../testdata/r1.input.yaml")]);
    let (prefill, decode) = (hub.build("r1-prefill").unwrap(), hub.build("r1-decode").unwrap());
    assert_eq!(plain(prefill.manifest(3)), yaml(include_str!("../testdata/r1-prefill.deployment.yaml")));
    assert_eq!(plain(decode.manifest(5)), yaml(include_str!("../testdata/r1-decode.lws.yaml")));
    assert_eq!(decode.request.size(), 1);
}

/// What comes of a service with this spec over a runtime base `base` and a template `below`.
fn outcome(base: &Value, below: &Value, own: &Value) -> Result<Workload, Refusal> {
    let object = |kind: &str, name: &str, spec: &Value| json!({"kind": kind, "metadata": {"name": name}, "spec": spec});
    let mut service = object("InferenceService", "chat", own);
    service["metadata"]["namespace"] = json!("demo");
    Hub(vec![object("RuntimeBase", "base", base), object("ClusterInferenceServiceTemplate", "below", below), service]).build("chat")
}

#[test]
fn shapes_in_one_line_each() {
    use WorkloadKind::{Deployment, LeaderWorkerSet};
    let pod = &minimal()["template"];
    for (own, kind, size) in [
        (json!({"template": pod, "parallelism": {"data": 2}}), Deployment, 1),
        (json!({"template": pod, "parallelism": {"pipeline": 4}}), Deployment, 1),
        (json!({"workerTemplate": pod, "parallelism": {"tensor": 2, "data": 1}}), LeaderWorkerSet, 1),
        (json!({"workerTemplate": pod, "parallelism": {"data": 8}}), LeaderWorkerSet, 1),
        (json!({"workerTemplate": pod, "parallelism": {"data": 8, "dataLocal": 2}}), LeaderWorkerSet, 4),
        (json!({"workerTemplate": pod, "parallelism": {"pipeline": 1}}), LeaderWorkerSet, 1),
        (json!({"template": pod, "workerTemplate": pod, "parallelism": {"pipeline": 3, "tensor": 8}}), LeaderWorkerSet, 3),
    ] {
        let workload = outcome(&json!({}), &json!({}), &own).unwrap();
        assert_eq!((workload.kind, workload.request.kind, workload.request.size()), (kind, kind, size), "{own}");
    }

    let arg = |text: &str| json!({"spec": {"containers": [{"name": "main", "image": "i", "args": [text]}]}});
    let first_arg = |own: Value| {
        outcome(&json!({}), &json!({}), &own).unwrap().manifest(1)["spec"]["template"]["spec"]["containers"][0]["args"][0].clone()
    };
    assert_eq!(first_arg(json!({"parallelism": {"data": 2}, "template": arg("{{ deref .Spec \"Parallelism\" \"DataLocal\" }}")})), "2");
    assert_eq!(first_arg(json!({"parallelism": {}, "template": arg("{{ or .Spec.Parallelism.Tensor 1 }}")})), "1");

    for own in [json!({"replicas": 0, "template": pod}), json!({"replicas": 0, "workerTemplate": pod, "parallelism": {"pipeline": 2}})] {
        let workload = outcome(&json!({}), &json!({}), &own).unwrap();
        assert_eq!(workload.manifest(0)["spec"]["replicas"], 0);
    }
}

#[test]
fn refusals_in_one_line_each() {
    let pod = &minimal()["template"];
    let none = json!({});
    let workers = |parallelism: Value| json!({"workerTemplate": pod, "parallelism": parallelism});
    let arg = |text: &str| json!({"template": {"spec": {"containers": [{"name": "main", "image": "i", "args": [text]}]}}});
    let mut recreated = workers(json!({"data": 2}));
    recreated["rolloutStrategy"] = json!({"type": "Recreate"});
    let mut partition = minimal();
    partition["rolloutStrategy"] = json!({"rollingUpdate": {"partition": 1}});
    let below = json!([{"name": "below"}]);
    for (base, layer, own, reason, parts) in [
        (&none, &none, workers(json!({"data": 8, "dataLocal": 3})), Reason::ParallelismRemainder, vec!["8", "3"]),
        (&none, &none, workers(json!({"data": 4, "dataLocal": 8})), Reason::ParallelismRemainder, vec!["4", "8"]),
        (&none, &none, workers(json!({"tensor": 8})), Reason::WorkerNeedsParallelism, vec!["data", "pipeline"]),
        (
            &none,
            &workers(json!({"pipeline": 2})),
            json!({"templateRefs": below, "parallelism": {"data": 2}}),
            Reason::ParallelismConflict,
            vec!["ClusterInferenceServiceTemplate below", "InferenceService demo/chat"],
        ),
        (
            &workers(json!({"data": 2})),
            &none,
            json!({"runtimeBaseRef": {"name": "base"}, "template": {"spec": {"containers": [{"name": "main", "env": []}]}}}),
            Reason::InvalidRendered,
            vec!["has no image", "workerTemplate"],
        ),
        (
            &none,
            &json!({"runtimeBaseRef": {"name": "base"}}),
            json!({"runtimeBaseRef": {"name": "base"}, "templateRefs": [{"name": "below"}]}),
            Reason::RuntimeBaseConflict,
            vec!["InferenceService demo/chat", "ClusterInferenceServiceTemplate below"],
        ),
        (&none, &none, recreated, Reason::RolloutNotSupported, vec!["Recreate"]),
        (&none, &none, partition, Reason::RolloutNotSupported, vec!["partition"]),
        (&none, &none, arg("{{ deref .Spec \"Model\" \"Name\" }}"), Reason::RenderFailed, vec!["demo/chat", "main", "args[0]", "Model"]),
        (&none, &none, arg("{{ or .Spec.Parallelism.Tensor 1 }}"), Reason::RenderFailed, vec!["args[0]", "deref"]),
        (&none, &none, none.clone(), Reason::NoPodTemplate, vec!["template"]),
    ] {
        let refusal = outcome(base, layer, &own).expect_err(&own.to_string());
        assert_eq!(refusal.reason, reason, "{refusal}");
        for part in parts {
            assert!(refusal.message.contains(part), "{part:?} is not in {refusal}");
        }
    }
}
