//! The merge against vectors that were recorded from Kubernetes' own implementation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::schema::{Field, Kind, ListMerge, Schema};
use super::{MergeError, pod_template, service_spec, strategic_merge};

fn folder() -> PathBuf {
    std::env::var_os("ODIN_GOLDEN_DIR").map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")), PathBuf::from)
}

fn read(file: &str) -> String {
    let path = folder().join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Equal as JSON values: `1` is `1.0`.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64())),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|other| equal(v, other))),
        (a, b) => a == b,
    }
}

fn check(file: &str, least: usize, run: impl Fn(&Value) -> Result<Value, (Option<usize>, MergeError)>) {
    let text = read(file);
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: Value = serde_json::from_str(line).expect("a line is a JSON object");
        let expected = &case["expected"];
        count += 1;
        let good = match (run(&case["input"]), expected.get("error_kind")) {
            (Ok(result), None) => {
                if equal(&result, &expected["result"]) {
                    None
                } else {
                    Some(format!("got {result}\n  want {}", expected["result"]))
                }
            }
            (Ok(result), Some(kind)) => Some(format!("got {result}\n  want error {kind}")),
            (Err((_, error)), None) => Some(format!("got error {error}")),
            (Err((layer, error)), Some(kind)) => {
                let same_layer = layer.is_none() || expected["error_layer"].as_u64() == layer.map(|layer| layer as u64);
                (kind != error.kind.as_str() || !same_layer).then(|| format!("got {error:?} in layer {layer:?}\n  want {expected}"))
            }
        };
        wrong.extend(good.map(|text| format!("{} {}: {text}", case["id"], case["about"])));
    }
    assert!(wrong.is_empty(), "{} of {count} cases of {file} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= least || std::env::var_os("ODIN_GOLDEN_DIR").is_some(), "{file} holds only {count} cases");
}

#[test]
fn golden_smp() {
    check("smp.jsonl", 302, |input| strategic_merge(input["base"].clone(), &input["patch"], pod_template()).map_err(|error| (None, error)));
}

#[test]
fn golden_layers() {
    check("layers.jsonl", 56, |input| {
        let layers = input["layers"].as_array().expect("layers");
        let mut layers = layers.iter().enumerate();
        let (_, base) = layers.next().expect("a base");
        layers.try_fold(base.clone(), |merged, (index, patch)| {
            strategic_merge(merged, patch, service_spec()).map_err(|error| (Some(index), error))
        })
    });
}

fn collect(schema: &'static Schema, into: &mut BTreeMap<&'static str, &'static Schema>) {
    if into.insert(schema.name, schema).is_some() {
        return;
    }
    for field in schema.fields {
        if let Kind::Struct(inner) | Kind::Structs(inner) = field.kind {
            collect(inner, into);
        }
    }
}

fn type_name(field: &Field) -> String {
    match field.kind {
        Kind::String => "string".into(),
        Kind::Bool => "bool".into(),
        Kind::Int32 => "int32".into(),
        Kind::Int64 => "int64".into(),
        Kind::Quantity => "Quantity".into(),
        Kind::IntOrString => "IntOrString".into(),
        Kind::Time => "Time".into(),
        Kind::Opaque => "FieldsV1".into(),
        Kind::Struct(schema) => schema.name.into(),
        Kind::Strings => "[]string".into(),
        Kind::Int32s => "[]int32".into(),
        Kind::Int64s => "[]int64".into(),
        Kind::Structs(schema) => format!("[]{}", schema.name),
        Kind::StringMap => "map[string]string".into(),
        Kind::QuantityMap => "map[string]Quantity".into(),
    }
}

#[test]
fn golden_fields() {
    let recorded: BTreeMap<String, Vec<Value>> = serde_json::from_str(&read("fields.json")).expect("fields.json");
    let mut known = BTreeMap::new();
    collect(service_spec(), &mut known);
    for (name, fields) in &recorded {
        let schema = known.get(name.as_str()).unwrap_or_else(|| panic!("no struct {name}"));
        for field in fields {
            let json = field["json"].as_str().expect("json");
            let ours = schema.fields.iter().find(|f| f.json == json).unwrap_or_else(|| panic!("{name} has no field {json}"));
            assert_eq!(ours.go, field["go"], "{name}.{json}");
            assert_eq!(type_name(ours), field["type"].as_str().unwrap_or_default(), "{name}.{json}");
            assert_eq!(ours.pointer, field["pointer"] == true, "{name}.{json}");
            let merge = match (field["strategy"].as_str(), field["merge_key"].as_str()) {
                (Some(strategy), Some(key)) if strategy.starts_with("merge") => format!("{:?}", ListMerge::Key(Box::leak(key.into()))),
                (Some("merge"), None) => format!("{:?}", ListMerge::Union),
                _ => format!("{:?}", ListMerge::Replace),
            };
            assert_eq!(format!("{:?}", ours.merge), merge, "{name}.{json}");
        }
        let added: Vec<&str> =
            schema.fields.iter().map(|f| f.json).filter(|json| !fields.iter().any(|field| field["json"] == *json)).collect();
        assert!(added.is_empty() || added == ["evictionResponders"], "{name} has {added:?} beyond what was recorded");
    }
}

mod properties {
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    /// Documents that mean something to the schema, with all the ways in which they can be wrong.
    fn document() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3_i64).prop_map(Value::from),
            Just(json!(1.0)),
            "[ab]{0,1}".prop_map(Value::from),
        ];
        let key = prop::sample::select(vec![
            "name",
            "spec",
            "metadata",
            "labels",
            "finalizers",
            "containers",
            "volumes",
            "env",
            "value",
            "ports",
            "containerPort",
            "args",
            "tolerations",
            "emptyDir",
            "future",
            "$patch",
            "$retainKeys",
            "$setElementOrder/containers",
            "$setElementOrder/finalizers",
            "$deleteFromPrimitiveList/finalizers",
            "$deleteFromPrimitiveList",
            "$setElementOrder",
        ]);
        let directive = prop_oneof![Just(json!("replace")), Just(json!("delete")), Just(json!("merge"))];
        prop_oneof![4 => scalar, 1 => directive].prop_recursive(6, 64, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec((key.clone(), inner), 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>())),
            ]
        })
    }

    /// A layer as the API server lets it through: no nulls, no directives, keys unique.
    fn layer() -> impl Strategy<Value = Value> {
        let env = prop::collection::btree_map("[A-D]", "[a-c]{0,2}", 0..4);
        let container = (env, prop::collection::vec("[a-c]", 0..3), prop::option::of("[a-c]"));
        let containers = prop::collection::btree_map("[a-d]", container, 0..4);
        (containers, prop::collection::btree_map("[a-c]", "[a-c]", 0..3), prop::option::of(0..3_i32)).prop_map(
            |(containers, labels, tensor)| {
                let containers: Vec<Value> = containers
                    .into_iter()
                    .map(|(name, (env, args, image))| {
                        let env: Vec<Value> = env.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
                        json!({"name": name, "env": env, "args": args, "image": image.unwrap_or_default()})
                    })
                    .collect();
                json!({
                    "parallelism": {"tensor": tensor.unwrap_or_default()},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
                })
            },
        )
    }

    proptest! {
        #[test]
        fn never_panics(base in document(), patch in document()) {
            let _ = strategic_merge(base.clone(), &patch, pod_template());
            let _ = strategic_merge(json!({"template": base}), &json!({"template": patch}), service_spec());
        }

        #[test]
        fn a_layer_merged_with_itself_stays(one in layer()) {
            prop_assert_eq!(strategic_merge(one.clone(), &one, service_spec()).unwrap(), one);
        }

        #[test]
        fn a_layer_merged_twice_is_a_layer_merged_once(base in layer(), patch in layer()) {
            let once = strategic_merge(base, &patch, service_spec()).unwrap();
            prop_assert_eq!(strategic_merge(once.clone(), &patch, service_spec()).unwrap(), once);
        }

        #[test]
        fn an_empty_layer_changes_nothing(base in layer()) {
            prop_assert_eq!(strategic_merge(base.clone(), &json!({}), service_spec()).unwrap(), base);
        }
    }
}
