//! From layers to a rendered spec, and what is refused on the way.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::api::odin::Source;
use crate::api::reason::Reason;

/// A layer of a kind; services stand in namespace `demo`, namespaced templates in `mif`.
pub(super) fn layer(kind: &str, name: &str, spec: Value) -> Layer {
    let namespace = match kind {
        "InferenceService" => Some("demo".to_owned()),
        "InferenceServiceTemplate" => Some("mif".to_owned()),
        _ => None,
    };
    Layer { source: Source { kind: kind.to_owned(), namespace, name: name.to_owned(), generation: 1 }, spec }
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

fn service(spec: Value) -> Layer {
    layer("InferenceService", "chat", spec)
}

fn try_render(layers: &[Layer]) -> Result<Rendered, Refusal> {
    let labels = BTreeMap::from([("team".to_owned(), "search".to_owned())]);
    render(&ServiceIdentity { name: "chat", namespace: "demo", labels: &labels }, layers)
}

/// The smallest pod template that is valid, with something more in its container.
fn pod(more: &Value) -> Value {
    let mut container = json!({"name": "main", "image": "registry.example/engine:1.4", "resources": {"limits": {"nvidia.com/gpu": 1}}});
    container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"spec": {"containers": [container]}})
}

fn engine() -> Layer {
    layer("RuntimeBase", "engine", yaml(include_str!("testdata/engine.yaml")))
}

#[test]
fn a_base_and_a_service() {
    let own = yaml(include_str!("testdata/chat-small.yaml"));
    let rendered = try_render(&[engine(), service(own)]).unwrap();
    assert_eq!(rendered.spec, yaml(include_str!("testdata/chat-small.rendered.yaml")));
    let sources: Vec<String> = rendered.sources.iter().map(ToString::to_string).collect();
    assert_eq!(sources, ["RuntimeBase engine", "InferenceService demo/chat"]);
    assert_eq!((rendered.hash.len(), rendered.warnings.len()), (16, 0));
}

#[test]
fn a_base_a_template_and_a_service() {
    let template = layer("ClusterInferenceServiceTemplate", "chat-70b-mi300x", yaml(include_str!("testdata/chat-70b-mi300x.yaml")));
    let own = yaml(include_str!("testdata/chat-70b.yaml"));
    let rendered = try_render(&[engine(), template, service(own)]).unwrap();
    assert_eq!(rendered.spec, yaml(include_str!("testdata/chat-70b.rendered.yaml")));
}

#[test]
fn every_string_of_a_pod_template_is_rendered_and_nothing_else() {
    let layers = [service(json!({
        "framework": "{{ .Name }}",
        "model": {"name": "{{ .Name }}"},
        "template": {
            "metadata": {"labels": {"svc": "{{ .Name }}-{{ .Labels.team }}"}, "annotations": {"note": "{{ .Namespace }}/{{ .Name }}"}},
            "spec": {
                "nodeSelector": {"{{ .Name }}": "{{ .Name }}"},
                "containers": [{"name": "main", "image": "engine:{{ .Name }}", "args": ["}}", "$(A) ${B} $$", "{{ \"{{\" }} x }}"], "env": [
                    {"name": "A", "value": "{{ .Spec.Framework }}"}], "ports": [{"containerPort": 80}]}],
            },
        },
    }))];
    let spec = try_render(&layers).unwrap().spec;
    let expected = json!({
        "metadata": {"labels": {"svc": "chat-search"}, "annotations": {"note": "demo/chat"}},
        "spec": {
            "nodeSelector": {"{{ .Name }}": "chat"},
            "containers": [{"name": "main", "image": "engine:chat", "args": ["}}", "$(A) ${B} $$", "{{ x }}"], "env": [
                {"name": "A", "value": "{{ .Name }}"}], "ports": [{"containerPort": 80}]}],
        },
    });
    assert_eq!(spec["template"], expected);
    assert_eq!((&spec["framework"], &spec["model"]["name"]), (&json!("{{ .Name }}"), &json!("{{ .Name }}")));
}

#[test]
fn layers_below_the_service_bring_only_shared_fields() {
    let below =
        layer("InferenceServiceTemplate", "t", json!({"runtimeBaseRef": {"name": "x"}, "replicas": 7, "template": pod(&json!({}))}));
    let own = json!({"templateRefs": [{"name": "t"}], "inferencePoolRefs": [{"name": "p"}], "revisionHistoryLimit": 0});
    let spec = try_render(&[below, service(own)]).unwrap().spec;
    assert_eq!(
        spec,
        json!({
            "inferencePoolRefs": [{"name": "p"}], "replicas": 1, "revisionHistoryLimit": 0, "service": {"target": "auto"},
            "template": pod(&json!({})), "templateRefs": [{"name": "t"}],
        })
    );
}

#[test]
fn the_hash_follows_the_spec() {
    let hash = |own: Value| try_render(&[engine(), service(own)]).unwrap().hash;
    let own = yaml(include_str!("testdata/chat-small.yaml"));
    let mut other = own.clone();
    other["replicas"] = json!(3);
    assert_eq!(hash(own.clone()), hash(own.clone()));
    assert_ne!(hash(own), hash(other));
}

#[test]
fn shapes_that_are_allowed() {
    let with = |parallelism: Value, more: Value| {
        let mut spec = json!({"parallelism": parallelism});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        try_render(&[service(spec)])
    };
    let arg = |text: &str| json!({"template": pod(&json!({"args": [text]}))});
    let first_arg = |rendered: Result<Rendered, Refusal>| rendered.unwrap().spec["template"]["spec"]["containers"][0]["args"][0].clone();

    let data_local = with(json!({"data": 2}), arg("{{ deref .Spec \"Parallelism\" \"DataLocal\" }}"));
    assert_eq!(first_arg(data_local), "2");
    assert_eq!(first_arg(with(json!({}), arg("{{ or .Spec.Parallelism.Tensor 1 }}"))), "1");
    for parallelism in [json!({"tensor": 2, "data": 1}), json!({"pipeline": 1}), json!({"data": 16, "dataLocal": 8})] {
        with(parallelism.clone(), json!({"workerTemplate": pod(&json!({}))})).unwrap_or_else(|refusal| panic!("{parallelism}: {refusal}"));
    }
    let update = |update: Value| json!({"template": pod(&json!({})), "rolloutStrategy": {"rollingUpdate": update}});
    // By default a Deployment may have a quarter more.
    with(json!({}), update(json!({"maxUnavailable": 0}))).unwrap();
    let zero = with(json!({}), json!({"replicas": 0, "template": pod(&json!({}))})).unwrap();
    assert_eq!(zero.spec["replicas"], 0);
}

/// Layers that are refused, with the reason and what the message must say.
#[test]
fn what_is_refused_says_where_and_how_to_mend_it() {
    let template = |more: Value| json!({"template": pod(&more)});
    let workers = |parallelism: Value| json!({"workerTemplate": pod(&json!({})), "parallelism": parallelism});
    let arg = |text: &str| json!({"template": pod(&json!({"args": [text]}))});
    let rollout = |strategy: Value| json!({"template": pod(&json!({})), "rolloutStrategy": strategy});
    let cases: Vec<(&str, Vec<Layer>, Reason, Vec<&str>)> = vec![
        ("no template", vec![service(json!({}))], Reason::NoPodTemplate, vec!["spec.template", "spec.workerTemplate"]),
        (
            "data 8, dataLocal 3",
            vec![service(workers(json!({"data": 8, "dataLocal": 3})))],
            Reason::ParallelismRemainder,
            vec!["spec.parallelism.data of InferenceService demo/chat is 8", "3"],
        ),
        ("data 4, dataLocal 8", vec![service(workers(json!({"data": 4, "dataLocal": 8})))], Reason::ParallelismRemainder, vec!["4", "8"]),
        ("dataLocal 0", vec![service(workers(json!({"data": 4, "dataLocal": 0})))], Reason::ParallelismRemainder, vec!["dataLocal"]),
        (
            "tensor alone",
            vec![service(workers(json!({"tensor": 8})))],
            Reason::WorkerNeedsParallelism,
            vec!["spec.workerTemplate of InferenceService demo/chat", "spec.parallelism.data or spec.parallelism.pipeline"],
        ),
        (
            "pipeline below, data above",
            vec![layer("InferenceServiceTemplate", "pp", workers(json!({"pipeline": 2}))), service(json!({"parallelism": {"data": 2}}))],
            Reason::ParallelismConflict,
            vec!["spec.parallelism.pipeline of InferenceServiceTemplate mif/pp", "spec.parallelism.data of InferenceService demo/chat"],
        ),
        (
            "dataLocal without data",
            vec![service(json!({"template": pod(&json!({})), "parallelism": {"dataLocal": 2}}))],
            Reason::ParallelismConflict,
            vec!["spec.parallelism.dataLocal of InferenceService demo/chat", "spec.parallelism.data"],
        ),
        (
            "the service overrides under template what the base has under workerTemplate",
            vec![
                layer("RuntimeBase", "dp", workers(json!({"data": 2}))),
                service(json!({"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]}}})),
            ],
            Reason::InvalidRendered,
            vec!["spec.template.spec.containers[main] of InferenceService demo/chat has no image", "write this under workerTemplate"],
        ),
        (
            "a group that is recreated",
            vec![service({
                let mut spec = workers(json!({"data": 2}));
                spec["rolloutStrategy"] = json!({"type": "Recreate"});
                spec
            })],
            Reason::RolloutNotSupported,
            vec!["spec.rolloutStrategy.type of InferenceService demo/chat is Recreate", "RollingUpdate"],
        ),
        (
            "partition of a Deployment",
            vec![service(rollout(json!({"rollingUpdate": {"partition": 1}})))],
            Reason::RolloutNotSupported,
            vec!["partition"],
        ),
        (
            "recreate with bounds",
            vec![service(rollout(json!({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}})))],
            Reason::RolloutNotSupported,
            vec!["spec.rolloutStrategy.rollingUpdate", "Recreate"],
        ),
        (
            "both bounds zero",
            vec![service(rollout(json!({"rollingUpdate": {"maxSurge": "0%", "maxUnavailable": 0}})))],
            Reason::RolloutStuck,
            vec!["maxSurge or maxUnavailable above 0"],
        ),
        (
            "no missing group, and by default none in addition, in groups of pods",
            vec![service({
                let mut spec = workers(json!({"data": 2}));
                spec["rolloutStrategy"] = json!({"rollingUpdate": {"maxUnavailable": "0%"}});
                spec
            })],
            Reason::RolloutStuck,
            vec!["spec.rolloutStrategy.rollingUpdate of InferenceService demo/chat", "maxSurge or maxUnavailable above 0"],
        ),
        (
            "no container",
            vec![service(json!({"template": {"spec": {"nodeSelector": {}}}}))],
            Reason::InvalidRendered,
            vec!["spec.template.spec has no container"],
        ),
        (
            "one name twice",
            vec![service(json!({"template": {"spec": {
                "containers": [{"name": "main", "image": "a"}], "initContainers": [{"name": "main", "image": "b"}]}}}))],
            Reason::InvalidRendered,
            vec!["spec.template.spec.containers[main]", "spec.template.spec.initContainers[main]", "must differ in name"],
        ),
        (
            "one port twice",
            vec![
                layer("RuntimeBase", "b", template(json!({"ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "TCP"}]}))),
                service(json!({})),
            ],
            Reason::InvalidRendered,
            vec!["spec.template.spec.containers[main].ports[53] of RuntimeBase b is there 2 times", "53/TCP", "containerPort or protocol"],
        ),
        (
            "two names that are rendered alike",
            vec![
                layer("RuntimeBase", "b", template(json!({"env": [{"name": "{{ .Name }}", "value": "1"}]}))),
                service(json!({"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "chat", "value": "2"}]}]}}})),
            ],
            Reason::InvalidRendered,
            vec!["env[chat] of InferenceService demo/chat", "env[{{ .Name }}] of RuntimeBase b", "\"chat\""],
        ),
        (
            "one layer with two sources",
            vec![
                layer(
                    "RuntimeBase",
                    "b",
                    json!({"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]}}}),
                ),
                service(json!({})),
            ],
            Reason::InvalidRendered,
            vec!["RuntimeBase b: spec.template.spec.volumes[v] sets emptyDir and hostPath"],
        ),
        (
            "a finalizer",
            vec![service(json!({"template": {"metadata": {"finalizers": ["x"]}, "spec": pod(&json!({}))["spec"]}}))],
            Reason::InvalidRendered,
            vec!["spec.template.metadata.finalizers of InferenceService demo/chat"],
        ),
        (
            "a rendered label that is none",
            vec![service(
                json!({"template": {"metadata": {"labels": {"a": "{{ .Namespace }}/{{ .Name }}"}}, "spec": pod(&json!({}))["spec"]}}),
            )],
            Reason::InvalidRendered,
            vec!["spec.template.metadata.labels.a of InferenceService demo/chat", "\"demo/chat\" is no valid label value"],
        ),
        (
            "a label of ours",
            vec![
                layer("RuntimeBase", "b", json!({"template": {"metadata": {"labels": {"mif.moreh.io/inferenceservice": "x"}}}})),
                service(template(json!({}))),
            ],
            Reason::InvalidRendered,
            vec!["spec.template.metadata.labels[\"mif.moreh.io/inferenceservice\"] of RuntimeBase b", "remove it"],
        ),
        (
            "two faults are both named",
            vec![service(json!({"parallelism": {"data": 3, "dataLocal": 2}, "template": {"spec": {"containers": [{"name": "main"}]}}}))],
            Reason::ParallelismRemainder,
            vec!["dataLocal", "has no image"],
        ),
        (
            "no model",
            vec![engine(), service(json!({}))],
            Reason::RenderFailed,
            vec![
                "spec.template.spec.containers[main].env[MODEL_PATH].value of RuntimeBase engine, line 1, column",
                "\"Model\" \"Name\"",
                "no layer sets it",
            ],
        ),
        (
            "a chain through an unset object",
            vec![service(arg("x\n  {{ or .Spec.Parallelism.Tensor 1 }}"))],
            Reason::RenderFailed,
            vec![
                "spec.template.spec.containers[main].args[0] of InferenceService demo/chat, line 2, column",
                "{{ or .Spec.Parallelism.Tensor 1 }}",
                "deref",
            ],
        ),
        ("a field that doesn't exist", vec![service(arg("{{ .Annotations }}"))], Reason::RenderFailed, vec!["args[0]", "Annotations"]),
        (
            "a function of the clock in a branch that isn't taken",
            vec![service(arg("{{ if false }}{{ now }}{{ end }}"))],
            Reason::RenderFailed,
            vec!["now"],
        ),
        ("broken syntax", vec![service(arg("{{ messages[0].content }}"))], Reason::RenderFailed, vec!["args[0]", "line 1"]),
        (
            "an item without its key",
            vec![service(json!({"template": {"spec": {"containers": [{"image": "x"}]}}}))].into_iter().fold(
                vec![engine()],
                |mut all, layer| {
                    all.push(layer);
                    all
                },
            ),
            Reason::MergeFailed,
            vec!["InferenceService demo/chat can't be merged: spec.template.spec.containers[0]", "\"name\""],
        ),
        (
            "null",
            vec![service(json!({"template": {"spec": {"nodeSelector": null}}}))],
            Reason::MergeFailed,
            vec!["spec.template.spec.nodeSelector is null"],
        ),
        (
            "a directive",
            vec![service(json!({"template": {"spec": {"containers": [{"$patch": "replace"}]}}}))],
            Reason::MergeFailed,
            vec!["InferenceService demo/chat: spec.template.spec.containers[0].$patch is a directive"],
        ),
        ("no layers", vec![], Reason::MergeFailed, vec!["at least one layer"]),
    ];
    for (about, layers, reason, parts) in cases {
        let refusal = try_render(&layers).expect_err(about);
        assert_eq!(refusal.reason, reason, "{about}: {refusal}");
        for part in parts {
            assert!(refusal.message.contains(part), "{about}: {part:?} is not in {:?}", refusal.message);
        }
    }
}

#[test]
fn i26_a_chat_template_is_told_from_an_expression() {
    let arg = |text: &str| service(json!({"template": pod(&json!({"args": [text]}))}));
    let refusal = try_render(&[arg("--chat-template={% if system_message %}{{ system_message }}{% endif %}")]).unwrap_err();
    assert_eq!(refusal.reason, Reason::RenderFailed);
    for part in [
        "spec.template.spec.containers[main].args[0] of InferenceService demo/chat",
        "{{ system_message }}",
        "function \"system_message\" does not exist",
        "write {{ \"{{\" }} in place of {{",
    ] {
        assert!(refusal.message.contains(part), "{part:?} is not in {:?}", refusal.message);
    }
    // What the message says to write gives the text that was meant.
    let rendered = try_render(&[arg("{{ \"{{\" }} system_message }}")]).unwrap();
    assert_eq!(rendered.spec["template"]["spec"]["containers"][0]["args"], json!(["{{ system_message }}"]));
}

#[test]
fn what_is_hardly_meant_is_a_warning() {
    let cpu = json!({"spec": {"containers": [{"name": "main", "image": "a", "resources": {"limits": {"cpu": 1, "example.kubernetes.io/x": 1}}}]}});
    let cases = [
        (json!({"template": pod(&json!({}))}), None),
        (json!({"template": cpu}), Some("the service asks for no accelerator")),
        (
            json!({"template": cpu, "workerTemplate": pod(&json!({})), "parallelism": {"data": 2}}),
            Some("spec.template asks for no accelerator"),
        ),
        (json!({"template": pod(&json!({})), "workerTemplate": cpu, "parallelism": {"data": 2}}), None),
        (json!({"workerTemplate": cpu, "parallelism": {"data": 2}}), Some("the service asks for no accelerator")),
    ];
    for (spec, expected) in cases {
        let warnings = try_render(&[service(spec.clone())]).unwrap().warnings;
        match expected {
            None => assert!(warnings.is_empty(), "{spec}: {warnings:?}"),
            Some(text) => assert!(warnings.len() == 1 && warnings[0].contains(text), "{spec}: {warnings:?}"),
        }
    }
}

mod properties {
    use proptest::prelude::*;
    use serde_json::Map;

    use super::*;

    fn document() -> impl Strategy<Value = Value> {
        let texts = vec!["", "main", "x", "RollingUpdate", "{{ .Name }}", "{{ .Spec.Model.Name }}", "{{ if", "0%", "}}"];
        let scalar = prop_oneof![
            prop::sample::select(texts).prop_map(Value::from),
            (-1..3_i64).prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            Just(json!(0.5)),
        ];
        let key = prop::sample::select(vec![
            "template",
            "workerTemplate",
            "spec",
            "metadata",
            "labels",
            "annotations",
            "finalizers",
            "containers",
            "initContainers",
            "name",
            "image",
            "env",
            "value",
            "valueFrom",
            "ports",
            "containerPort",
            "volumes",
            "emptyDir",
            "resources",
            "limits",
            "nvidia.com/gpu",
            "parallelism",
            "data",
            "dataLocal",
            "pipeline",
            "model",
            "service",
            "target",
            "rolloutStrategy",
            "type",
            "rollingUpdate",
            "maxSurge",
            "maxUnavailable",
            "replicas",
            "future",
        ]);
        scalar.prop_recursive(7, 96, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                prop::collection::vec((key.clone(), inner), 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_layer_makes_it_panic(layers in prop::collection::vec(document(), 0..4)) {
            let layers: Vec<Layer> = layers.into_iter().map(service).collect();
            let _ = try_render(&layers);
        }

        #[test]
        fn no_pod_template_makes_it_panic(base in document(), own in document()) {
            let layers = [service(json!({"template": {"spec": base}})), service(json!({"template": {"spec": own}}))];
            let _ = try_render(&layers);
        }
    }
}
