//! Manifests that the API server refuses, with its words.

use anyhow::Result;
use serde_json::json;

use super::{BASE, CLUSTER_TEMPLATE, Kind, MEMBER, SERVICE, TEMPLATE, client, create, send, yaml};

/// Rules across fields need sound fields: this comes along with some errors.
const SKIPPED: &str = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; \
                       correct the existing errors to complete validation";

#[tokio::test]
async fn what_is_refused_and_in_which_words() -> Result<()> {
    let client = client().await?;
    let container = |fields: &str| format!("{{template: {{spec: {{containers: [{{name: a, {fields}}}]}}}}}}");
    let unknown = |kind: &Kind, field: &str| {
        format!("{0} in version \"v1alpha1\" cannot be handled as a {0}: strict decoding error: unknown field \"{field}\"", kind.name)
    };
    let cases: Vec<(&Kind, String, String)> = [
        (
            &SERVICE,
            "{replicas: -1}",
            "[spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0, \
             .spec.replicas: Invalid value: -1: should be a non-negative integer]",
        ),
        (&SERVICE, "{replicas: 1000001}", "spec.replicas: Invalid value: 1000001: spec.replicas in body should be less than or equal to 1000000"),
        (
            &SERVICE,
            "{revisionHistoryLimit: -1}",
            "spec.revisionHistoryLimit: Invalid value: -1: spec.revisionHistoryLimit in body should be greater than or equal to 0",
        ),
        (
            &SERVICE,
            "{framework: -vllm}",
            "spec.framework: Invalid value: \"-vllm\": spec.framework in body should match '^[a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?$'",
        ),
        (&SERVICE, "{model: {name: ''}}", "spec.model.name: Invalid value: \"\": spec.model.name in body should be at least 1 chars long"),
        (
            &SERVICE,
            "{parallelism: {pipeline: 2, data: 2}}",
            "spec.parallelism: Invalid value: pipeline and data exclude each other: set pipeline to split the model into stages, \
             or data to run copies of it",
        ),
        (
            &TEMPLATE,
            "{parallelism: {data: 8, dataLocal: 3}}",
            "spec.parallelism: Invalid value: data must be a multiple of dataLocal, the ranks of one pod: change one of them so that it \
             divides without remainder",
        ),
        (
            &BASE,
            "{parallelism: {data: 8, dataLocal: 0}}",
            "spec.parallelism.dataLocal: Invalid value: 0: spec.parallelism.dataLocal in body should be greater than or equal to 1",
        ),
        (
            &CLUSTER_TEMPLATE,
            "{parallelism: {pipeline: 4097}}",
            "spec.parallelism.pipeline: Invalid value: 4097: spec.parallelism.pipeline in body should be less than or equal to 4096",
        ),
        (
            &SERVICE,
            "{parallelism: {dataRPCPort: 65536}}",
            "spec.parallelism.dataRPCPort: Invalid value: 65536: spec.parallelism.dataRPCPort in body should be less than or equal to 65535",
        ),
        (
            &SERVICE,
            "{templateRefs: [{name: a, kind: Deployment}]}",
            "spec.templateRefs[0].kind: Invalid value: \"Deployment\": kind must be InferenceServiceTemplate or \
             ClusterInferenceServiceTemplate; leave it out to mean whichever exists",
        ),
        (
            &SERVICE,
            "{templateRefs: [{name: a, group: apps}]}",
            "spec.templateRefs[0].group: Invalid value: \"apps\": group must be odin.moreh.io; leave it out, the group of the templates is meant",
        ),
        (
            &SERVICE,
            "{rolloutStrategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}}",
            "spec.rolloutStrategy: Invalid value: rollingUpdate has no meaning with type Recreate: remove rollingUpdate, or set type to \
             RollingUpdate",
        ),
        (
            &SERVICE,
            "{rolloutStrategy: {rollingUpdate: {maxUnavailable: 101%}}}",
            "spec.rolloutStrategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": \
             spec.rolloutStrategy.rollingUpdate.maxUnavailable in body should match '^0*(100|[0-9]{1,2})%$'",
        ),
        (
            &SERVICE,
            "{rolloutStrategy: {rollingUpdate: {maxSurge: -1}}}",
            "spec.rolloutStrategy.rollingUpdate.maxSurge: Invalid value: -1: \
             spec.rolloutStrategy.rollingUpdate.maxSurge in body should be greater than or equal to 0",
        ),
        (
            &SERVICE,
            "{template: {spec: {containers: [{name: a}, {name: a}]}}}",
            "spec.template.spec.containers[1]: Duplicate value: {\"name\":\"a\"}",
        ),
        (&MEMBER, "{}", "spec.secretRef: Required value"),
        (&MEMBER, "{secretRef: {name: ''}}", "spec.secretRef.name: Invalid value: \"\": spec.secretRef.name in body should be at least 1 chars long"),
        (
            &MEMBER,
            "{secretRef: {name: a}, taints: [{key: b, effect: NoExecute}, {key: b, effect: NoExecute}]}",
            "spec.taints[1]: Duplicate value: {\"effect\":\"NoExecute\",\"key\":\"b\"}",
        ),
        (
            &MEMBER,
            "{secretRef: {name: a}, requestLimits: {qps: 0}}",
            "spec.requestLimits.qps: Invalid value: 0: spec.requestLimits.qps in body should be greater than or equal to 1",
        ),
    ]
    .into_iter()
    .map(|(kind, spec, message)| (kind, spec.to_owned(), invalid(kind, message)))
    .chain(
        [
            (&SERVICE, "{service: {target: first}}", "spec.service.target: Unsupported value: \"first\": supported values: \"leader\", \"workers\", \"all\", \"auto\""),
            (&SERVICE, "{rolloutStrategy: {type: Fast}}", "spec.rolloutStrategy.type: Unsupported value: \"Fast\": supported values: \"RollingUpdate\", \"Recreate\""),
            (&SERVICE, "{model: {}}", "spec.model.name: Required value"),
            (&SERVICE, "{templateRefs: [{}]}", "spec.templateRefs[0].name: Required value"),
            (&SERVICE, "{inferencePoolRefs: [{name: a}, {name: b}]}", "spec.inferencePoolRefs: Too many: 2: must have at most 1 item"),
            (&SERVICE, "{template: {spec: {imagePullSecrets: [{}]}}}", "spec.template.spec.imagePullSecrets[0].name: Required value"),
            (&SERVICE, "{workerTemplate: {spec: {containers: [{image: a}]}}}", "spec.workerTemplate.spec.containers[0].name: Required value"),
        ]
        .map(|(kind, spec, message)| (kind, spec.to_owned(), invalid(kind, &format!("[{message}, {SKIPPED}]")))),
    )
    .chain([
        (
            &SERVICE,
            container("ports: [{containerPort: 53}, {containerPort: 53, protocol: TCP}]"),
            invalid(&SERVICE, "spec.template.spec.containers[0].ports[1]: Duplicate value: {\"containerPort\":53,\"protocol\":\"TCP\"}"),
        ),
        (
            &SERVICE,
            container("ports: [{containerPort: '{{ 8000 }}'}]"),
            invalid(
                &SERVICE,
                &format!(
                    "[spec.template.spec.containers[0].ports[0].containerPort: Invalid value: \"string\": \
                     spec.template.spec.containers[0].ports[0].containerPort in body must be of type integer: \"string\", {SKIPPED}]"
                ),
            ),
        ),
        (
            &SERVICE,
            container("env: [{name: A, value: 1}]"),
            invalid(
                &SERVICE,
                &format!(
                    "[spec.template.spec.containers[0].env[0].value: Invalid value: \"integer\": \
                     spec.template.spec.containers[0].env[0].value in body must be of type string: \"integer\", {SKIPPED}]"
                ),
            ),
        ),
        (
            &SERVICE,
            container("resources: {limits: {memory: 64GB}}"),
            invalid(
                &SERVICE,
                "spec.template.spec.containers[0].resources.limits.memory: Invalid value: \"64GB\": \
                 spec.template.spec.containers[0].resources.limits.memory in body should match \
                 '^[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+))?$'",
            ),
        ),
        (&SERVICE, "{template: {spec: {contianers: []}}}".to_owned(), unknown(&SERVICE, "spec.template.spec.contianers")),
        (&SERVICE, "{template: {spec: {ephemeralContainers: []}}}".to_owned(), unknown(&SERVICE, "spec.template.spec.ephemeralContainers")),
        (&SERVICE, container("env: [{name: A, valeu: b}]"), unknown(&SERVICE, "spec.template.spec.containers[0].env[0].valeu")),
        (&SERVICE, container("env: [{name: A, $patch: delete}]"), unknown(&SERVICE, "spec.template.spec.containers[0].env[0].$patch")),
        (&TEMPLATE, "{replicas: 1}".to_owned(), unknown(&TEMPLATE, "spec.replicas")),
        (&TEMPLATE, "{templateRefs: []}".to_owned(), unknown(&TEMPLATE, "spec.templateRefs")),
        (&BASE, "{runtimeBaseRef: {name: a}}".to_owned(), unknown(&BASE, "spec.runtimeBaseRef")),
    ])
    .collect();
    for (kind, spec, message) in cases {
        assert_eq!(create(&client, kind, &yaml(&spec)).await, Err(message), "{} {spec}", kind.name);
    }
    // The server adds what each form of the value lacks; the first line is for the reader.
    let number = create(&client, &SERVICE, &yaml(&container("resources: {limits: {cpu: 0.5}}"))).await.unwrap_err();
    assert!(number.contains("limits.cpu in body must be of type integer,string: \"number\""), "{number}");
    let object = json!({"apiVersion": "odin.moreh.io/v1alpha1", "kind": "RuntimeBase", "metadata": {"name": "x"}});
    let missing = send(&client, "POST", &format!("{}?dryRun=All", BASE.path), "application/json", &object).await.unwrap_err();
    assert_eq!(missing, invalid(&BASE, &format!("[spec: Required value, {SKIPPED}]")));
    Ok(())
}

fn invalid(kind: &Kind, message: &str) -> String {
    let group = if kind.path.contains("federation") { "federation.odin.moreh.io" } else { "odin.moreh.io" };
    format!("{}.{group} \"x\" is invalid: {message}", kind.name)
}
