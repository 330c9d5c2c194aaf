use super::*;

const FILES: &str = "
apiVersion: odin.moreh.io/v1alpha1
kind: RuntimeBase
metadata: {name: engine}
spec:
  template: {spec: {containers: [{name: main, image: 'registry.example/engine:1', args: ['{{ .Name }}']}]}}
---
apiVersion: odin.moreh.io/v1alpha1
kind: InferenceServiceTemplate
metadata: {name: shared, namespace: mif}
spec: {runtimeBaseRef: {name: engine}}
---
apiVersion: odin.moreh.io/v1alpha1
kind: InferenceService
metadata: {name: chat, labels: {a: b}}
spec: {replicas: 2, templateRefs: [{name: shared}]}
---
apiVersion: odin.moreh.io/v1alpha1
kind: InferenceService
metadata: {name: chat, namespace: other}
spec: {templateRefs: [{name: absent}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: other}
";

fn offline(text: &str) -> anyhow::Result<Offline> {
    let values: Vec<Value> = serde_saphyr::from_multiple(text)?;
    let documents = values.into_iter().enumerate().map(|(index, value)| Document { place: format!("f{index}"), value });
    Offline::new(documents.collect(), "demo")
}

fn rendered(offline: &Offline, name: &str) -> Result<Rendered, Refusal> {
    let services = offline.services(&[name.to_owned()]).unwrap();
    offline.render(&Renderer::default(), "mif", services[0])
}

#[test]
fn a_service_is_rendered_as_by_the_hub() {
    let offline = offline(FILES).unwrap();
    assert_eq!(offline.notes, ["note: f4: Namespace other is passed over"]);
    assert!(offline.faults(&[]).is_empty());
    let rendering = rendered(&offline, "demo/chat").unwrap();
    let sources: Vec<String> = rendering.sources.iter().map(ToString::to_string).collect();
    assert_eq!(sources, ["RuntimeBase engine", "InferenceServiceTemplate mif/shared", "InferenceService demo/chat"]);

    let service = offline.services(&["demo/chat".to_owned()]).unwrap()[0];
    let objects = member_objects(service, &rendering, &offline).unwrap();
    let workload = &objects[0];
    assert_eq!(workload.pointer("/spec/replicas"), Some(&json!(2)), "{workload}");
    assert_eq!(workload.pointer("/spec/template/spec/containers/0/args/0"), Some(&json!("chat")), "{workload}");
    assert_eq!(workload.pointer("/metadata/namespace"), Some(&json!("demo")), "{workload}");
    assert!(!workload.to_string().contains(OF_THE_HUB), "{workload}");
    assert_eq!(spec_of(service, &rendering).pointer("/status/renderedSpec/replicas"), Some(&json!(2)));

    let refusal = rendered(&offline, "other/chat").unwrap_err();
    assert!(refusal.to_string().starts_with("TemplateNotFound: spec.templateRefs[0]"), "{refusal}");
}

#[test]
fn pods_get_the_labels_of_pools_of_their_namespace() {
    let pool = |namespace: &str, app: &str| {
        format!(
            "---\n{{apiVersion: inference.networking.k8s.io/v1, kind: InferencePool, metadata: {{name: pool, namespace: {namespace}}}, \
             spec: {{selector: {{matchLabels: {{app: {app}}}}}}}}}\n"
        )
    };
    let files = FILES.replace("replicas: 2,", "replicas: 2, inferencePoolRefs: [{name: pool}],");
    let offline = offline(&[&files, pool("demo", "ours").as_str(), pool("other", "theirs").as_str()].concat()).unwrap();
    assert_eq!(offline.notes.len(), 1, "{:?}", offline.notes);
    let service = offline.services(&["demo/chat".to_owned()]).unwrap()[0];
    let objects = member_objects(service, &rendered(&offline, "demo/chat").unwrap(), &offline).unwrap();
    assert_eq!(objects[0].pointer("/spec/template/metadata/labels/app"), Some(&json!("ours")), "{}", objects[0]);
}

#[test]
fn only_the_services_that_are_asked_for() {
    let offline = offline(FILES).unwrap();
    let names =
        |asked: &[&str]| offline.services(&asked.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).map(|found| found.len());
    for (asked, wanted) in [(&[][..], 2), (&["chat"], 2), (&["demo/chat"], 1), (&["demo/chat", "chat"], 2)] {
        assert_eq!(names(asked).unwrap(), wanted, "{asked:?}");
    }
    for asked in [&["caht"][..], &["third/chat"], &["chat", "third/chat"]] {
        let error = names(asked).unwrap_err().to_string();
        assert!(error.contains("they hold demo/chat, other/chat"), "{error}");
    }
}

#[test]
fn what_an_api_server_would_refuse_is_named() {
    let refused = offline(&FILES.replace("runtimeBaseRef: {name: engine}", "runtimeBaseRef: {nam: engine}, template: null")).unwrap();
    let [fault] = refused.faults(&[])[..] else { panic!("{:?}", refused.faults(&[])) };
    for wanted in [
        "f1: InferenceServiceTemplate mif/shared: ",
        "spec.runtimeBaseRef.nam is unknown",
        "spec.runtimeBaseRef.name is missing",
        "spec.template is null",
    ] {
        assert!(fault.contains(wanted), "{wanted} in {fault}");
    }
    // The service is refused as well, and says which of the two is the cause.
    let refusal = rendered(&refused, "demo/chat").unwrap_err();
    assert!(refusal.message.contains("; refused is f1: InferenceServiceTemplate mif/shared: "), "{refusal}");
    // Who asks for a service is told of that one only.
    assert!(refused.faults(&["demo/chat".to_owned()]).is_empty());

    for (from, to, wanted) in [
        ("replicas: 2", "replcas: 2", "f2: InferenceService demo/chat: spec.replcas is unknown"),
        ("{name: chat, labels: {a: b}}", "{labels: {a: b}}", "f2: InferenceService: metadata.name is missing"),
        ("labels: {a: b}", "labels: {a: 1}", "f2: InferenceService demo/chat: invalid type: integer `1`, expected a string"),
        ("spec: {replicas: 2, templateRefs: [{name: shared}]}", "sepc: {}", "f2: InferenceService demo/chat: sepc is unknown"),
    ] {
        let offline = offline(&FILES.replace(from, to)).unwrap();
        let told = offline.faults(&[]);
        assert!(told.len() == 1 && told[0].starts_with(wanted), "{told:?}");
    }
    let replicas = offline(&FILES.replace("replicas: 2", "replicas: -2")).unwrap();
    let asked = ["demo/chat".to_owned()];
    assert_eq!((replicas.services(&asked).unwrap().len(), replicas.faults(&asked).len()), (0, 1));
    let old = offline(&FILES.replacen("odin.moreh.io/v1alpha1", "odin.moreh.io/v1", 1)).unwrap();
    assert_eq!(old.faults(&[]), ["f0: RuntimeBase engine: apiVersion must be odin.moreh.io/v1alpha1"]);
}

#[test]
fn what_cannot_be_told_apart_or_is_not_there_ends_the_work() {
    let twice = format!("{FILES}---\n{}", "{apiVersion: odin.moreh.io/v1alpha1, kind: RuntimeBase, metadata: {name: engine}, spec: {}}");
    let error = offline(&twice).unwrap_err().to_string();
    assert_eq!(error, "RuntimeBase engine is in f0 and in f5: leave one of them");
    let error = offline("{apiVersion: v1, kind: Secret, metadata: {name: a}}").unwrap().services(&[]).unwrap_err().to_string();
    assert_eq!(error, "the files hold no InferenceService");
}

#[test]
fn objects_are_documents_or_a_list() {
    let objects = [json!({"kind": "A"}), json!({"kind": "B"})];
    assert_eq!(text(Form::Yaml, &objects).unwrap(), "kind: A\n---\nkind: B\n");
    let list: Value = serde_json::from_str(&text(Form::Json, &objects).unwrap()).unwrap();
    assert_eq!((&list["kind"], &list["items"]), (&json!("List"), &json!(objects)));
    assert_eq!(text(Form::Yaml, &[]).unwrap(), "");
}
