//! What the definitions must say, told by tables that were written by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::name;

/// `kubectl apply` without `--server-side` keeps a copy of the object in an annotation, and all annotations of an
/// object may have this many bytes.
const MAX_ANNOTATIONS: usize = 262_144;

static CRDS: LazyLock<Vec<Value>> = LazyLock::new(|| super::crds().unwrap());

fn crd(kind: &str) -> &'static Value {
    CRDS.iter().find(|crd| crd["spec"]["names"]["kind"] == kind).unwrap()
}

fn schema(kind: &str) -> &'static Value {
    &crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Calls `visit` with each field's path (`spec.templateRefs[].name`) and schema.
fn walk(path: &str, schema: &Value, visit: &mut dyn FnMut(&str, &Value)) {
    visit(path, schema);
    if let Some(fields) = schema["properties"].as_object() {
        for (field, schema) in fields {
            let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
            walk(&path, schema, visit);
        }
    }
    for (inner, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[inner].is_object() {
            walk(&format!("{path}{suffix}"), &schema[inner], visit);
        }
    }
}

#[test]
fn names_scopes_and_columns() {
    struct Case {
        kind: &'static str,
        name: &'static str,
        short: &'static [&'static str],
        scope: &'static str,
        columns: &'static str,
        subresources: &'static [&'static str],
    }
    let cases = [
        Case {
            kind: "InferenceService",
            name: "inferenceservices.odin.moreh.io",
            short: &["is", "isvc"],
            scope: "Namespaced",
            columns: "Ready Desired Up-to-date Serving Clusters Reason Age | Workload Model Unplaced",
            subresources: &["scale", "status"],
        },
        Case {
            kind: "InferenceServiceTemplate",
            name: "inferenceservicetemplates.odin.moreh.io",
            short: &["ist", "isvctmpl"],
            scope: "Namespaced",
            columns: "Framework Model Age |",
            subresources: &[],
        },
        Case {
            kind: "ClusterInferenceServiceTemplate",
            name: "clusterinferenceservicetemplates.odin.moreh.io",
            short: &["cist", "cisvctmpl"],
            scope: "Cluster",
            columns: "Framework Model Age |",
            subresources: &[],
        },
        Case {
            kind: "RuntimeBase",
            name: "runtimebases.odin.moreh.io",
            short: &["rb"],
            scope: "Cluster",
            columns: "Framework Age |",
            subresources: &[],
        },
        Case {
            kind: "MemberCluster",
            name: "memberclusters.federation.odin.moreh.io",
            short: &["mcl"],
            scope: "Cluster",
            columns: "Ready Version Accelerators Services Age | LWS Reason Credential",
            subresources: &["status"],
        },
    ];
    assert_eq!(CRDS.iter().map(name).collect::<Vec<_>>(), cases.iter().map(|case| case.name).collect::<Vec<_>>());
    for case in cases {
        let spec = &crd(case.kind)["spec"];
        assert_eq!(spec["names"]["shortNames"], json!(case.short), "{}", case.kind);
        assert_eq!(spec["names"]["categories"], json!(["odin"]), "{}", case.kind);
        assert_eq!(spec["scope"], case.scope, "{}", case.kind);
        let version = &spec["versions"][0];
        let (mut plain, mut wide) = (Vec::new(), Vec::new());
        for column in version["additionalPrinterColumns"].as_array().unwrap() {
            if column["priority"] == 1 { &mut wide } else { &mut plain }.push(column["name"].as_str().unwrap().to_owned());
        }
        assert_eq!(format!("{} | {}", plain.join(" "), wide.join(" ")).trim_end(), case.columns, "{}", case.kind);
        let subresources: Vec<&String> = version["subresources"].as_object().map(|all| all.keys().collect()).unwrap_or_default();
        assert_eq!(subresources, case.subresources, "{}", case.kind);
        assert_eq!(schema(case.kind)["required"], json!(["spec"]), "{}", case.kind);
    }
    assert_eq!(
        crd("InferenceService")["spec"]["versions"][0]["subresources"]["scale"],
        json!({"labelSelectorPath": ".status.hpaPodSelector", "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"})
    );
}

/// Keys of lists as Kubernetes has them for server-side apply. `set` and keys in one table; all other lists are atomic.
#[test]
fn list_types_and_map_keys() {
    let keyed = BTreeMap::from([
        ("bindMountOptions", "set"),
        ("conditions", "type"),
        ("containers", "name"),
        ("env", "name"),
        ("evictionResponders", "name"),
        ("exitCodes.values", "set"),
        ("finalizers", "set"),
        ("hostAliases", "ip"),
        ("imagePullSecrets", "name"),
        ("initContainers", "name"),
        ("placements", "cluster"),
        ("ports", "containerPort,protocol"),
        ("resourceClaims", "name"),
        ("resources.claims", "name"),
        ("schedulingGates", "name"),
        ("taints", "key,effect"),
        ("topologySpreadConstraints", "topologyKey,whenUnsatisfiable"),
        ("volumeDevices", "devicePath"),
        ("volumeMounts", "mountPath"),
        ("volumes", "name"),
        ("workload.conditions", "atomic"),
    ]);
    let mut seen = BTreeSet::new();
    for kind in ["InferenceService", "InferenceServiceTemplate", "ClusterInferenceServiceTemplate", "RuntimeBase", "MemberCluster"] {
        walk("", schema(kind), &mut |path, schema| {
            if schema["type"] != "array" {
                return;
            }
            let mut names = path.rsplitn(3, '.');
            let (last, parent) = (names.next().unwrap(), names.next().unwrap_or_default());
            let long = format!("{parent}.{last}");
            let list = if keyed.contains_key(long.as_str()) { long.as_str() } else { last };
            let is = match schema["x-kubernetes-list-type"].as_str() {
                None | Some("atomic") => "atomic".to_owned(),
                Some("set") => "set".to_owned(),
                Some("map") => {
                    let keys = schema["x-kubernetes-list-map-keys"].as_array().unwrap();
                    let items = &schema["items"];
                    for key in keys {
                        let key = key.as_str().unwrap();
                        let required = items["required"].as_array().is_some_and(|all| all.contains(&json!(key)));
                        assert!(required != items["properties"][key].get("default").is_some(), "{kind} {path}: key {key}");
                    }
                    keys.iter().map(|key| key.as_str().unwrap()).collect::<Vec<_>>().join(",")
                }
                Some(other) => panic!("{path}: {other}"),
            };
            assert_eq!(is, *keyed.get(list).unwrap_or(&"atomic"), "{kind} {path}");
            seen.insert(list.to_owned());
        });
    }
    for list in keyed.keys() {
        assert!(seen.contains(*list), "no list {list} in any kind");
    }
}

#[test]
fn no_defaults_but_the_documented() {
    let mut defaults = BTreeMap::new();
    for crd in CRDS.iter() {
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
        walk("", schema(kind), &mut |path, schema| {
            if let Some(default) = schema.get("default") {
                let path = path.replace("workerTemplate", "template").replace("initContainers", "containers");
                defaults.insert((kind.to_owned(), path), default.clone());
            }
        });
    }
    let protocol = "spec.template.spec.containers[].ports[].protocol";
    let wanted = [
        ("ClusterInferenceServiceTemplate", protocol, json!("TCP")),
        ("InferenceService", "spec.inferencePoolRefs[].name", json!("")),
        ("InferenceService", "spec.replicas", json!(1)),
        ("InferenceService", protocol, json!("TCP")),
        ("InferenceServiceTemplate", protocol, json!("TCP")),
        ("RuntimeBase", protocol, json!("TCP")),
    ];
    let wanted: BTreeMap<_, _> = wanted.into_iter().map(|(kind, path, value)| ((kind.to_owned(), path.to_owned()), value)).collect();
    assert_eq!(defaults, wanted);
}

#[test]
fn every_schema_is_structural_and_small() {
    for crd in CRDS.iter() {
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
        let bytes = serde_json::to_string(crd).unwrap().len();
        assert!(bytes < MAX_ANNOTATIONS * 2 / 3, "{kind}: {bytes} bytes");
        walk("", schema(kind), &mut |path, schema| {
            for unwanted in ["nullable", "title", "$ref", "allOf", "oneOf"] {
                assert!(schema.get(unwanted).is_none(), "{kind} {path}: {unwanted}");
            }
            if schema["x-kubernetes-int-or-string"] == true {
                assert_eq!(schema["anyOf"], json!([{"type": "integer"}, {"type": "string"}]), "{kind} {path}");
            } else {
                assert!(schema["type"].is_string(), "{kind} {path}: a type is missing");
            }
            let own = !path.contains("emplate.");
            let field = !path.is_empty() && !path.ends_with("[]") && !path.ends_with("{}");
            assert!(!own || !field || schema["description"].is_string(), "{kind} {path}: a description is missing");
        });
    }
}

#[test]
fn what_the_pod_template_leaves_open() {
    for field in ["template", "workerTemplate"] {
        let template = &schema("InferenceService")["properties"]["spec"]["properties"][field];
        assert!(!template["description"].as_str().unwrap().starts_with("See "), "{field} keeps its own description");
        assert!(template.get("required").is_none());
        let pod = &template["properties"]["spec"];
        assert_eq!(pod["description"], "See pod.spec.");
        assert!(pod.get("required").is_none(), "a layer may be a fragment without containers");
        assert!(pod["properties"].get("ephemeralContainers").is_none());
        assert_eq!(pod["properties"]["imagePullSecrets"]["items"]["required"], json!(["name"]));
        let fields: Vec<&String> = template["properties"]["metadata"]["properties"].as_object().unwrap().keys().collect();
        assert_eq!(fields, ["annotations", "finalizers", "labels", "name", "namespace"]);
        let limits = &pod["properties"]["containers"]["items"]["properties"]["resources"]["properties"]["limits"];
        assert_eq!(limits["additionalProperties"]["x-kubernetes-int-or-string"], true);
        assert!(limits["additionalProperties"]["pattern"].is_string());
    }
    let status = &schema("InferenceService")["properties"]["status"]["properties"];
    assert_eq!(status["renderedSpec"]["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(
        status["workload"]["properties"]["conditions"]["items"],
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    );
}

/// The fields of Kubernetes' and Odin's Go types, from `fields.json` of the golden vectors.
fn go_fields() -> Option<Value> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folders = std::env::var_os("ODIN_GOLDEN_DIR")
        .map_or_else(|| vec![here.join("tests/golden"), here.join("../shared/conformance")], |folder| vec![PathBuf::from(folder)]);
    let text = folders.iter().find_map(|folder| std::fs::read_to_string(folder.join("fields.json")).ok());
    if text.is_none() {
        println!("not compared with Go's fields: fields.json is in none of {folders:?}; set ODIN_GOLDEN_DIR");
    }
    text.map(|text| serde_json::from_str(&text).unwrap())
}

#[test]
fn every_field_of_the_go_types_is_there() {
    let Some(structs) = go_fields() else { return };
    let mut compared = 0;
    compare(&structs, "InferenceServiceSpec", "spec", &schema("InferenceService")["properties"]["spec"], &mut compared);
    assert!(compared > 1000, "only {compared} fields were compared");
}

fn compare(structs: &Value, go: &str, path: &str, schema: &Value, compared: &mut usize) {
    for field in structs[go].as_array().unwrap() {
        let json = field["json"].as_str().unwrap();
        let left_out = match go {
            "ObjectMeta" => !super::pod_template::META_FIELDS.contains(&json),
            "PodSpec" => json == "ephemeralContainers",
            _ => false,
        };
        let found = schema["properties"].get(json);
        assert_eq!(found.is_none(), left_out, "{path}.{json}");
        let Some(found) = found else { continue };
        *compared += 1;
        let path = format!("{path}.{json}");
        let mut go = field["type"].as_str().unwrap();
        let mut found = found;
        if let Some(item) = go.strip_prefix("[]") {
            assert_eq!(found["type"], "array", "{path}");
            (go, found) = (item, &found["items"]);
        } else if let Some(value) = go.strip_prefix("map[string]") {
            assert_eq!(found["type"], "object", "{path}");
            (go, found) = (value, &found["additionalProperties"]);
        }
        match go {
            "string" | "Time" => assert_eq!(found["type"], "string", "{path}"),
            "bool" => assert_eq!(found["type"], "boolean", "{path}"),
            "int32" | "int64" => assert_eq!((&found["type"], &found["format"]), (&json!("integer"), &json!(go)), "{path}"),
            "IntOrString" | "Quantity" => assert_eq!(found["x-kubernetes-int-or-string"], true, "{path}"),
            object => compare(structs, object, &path, found, compared),
        }
    }
}
