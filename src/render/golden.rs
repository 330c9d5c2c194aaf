//! Merge and rendering against vectors that were recorded from Kubernetes' merge and Go's templates.
//!
//! They hold text of a published library that has no licence, so they aren't part of this repository: they are read from
//! `ODIN_GOLDEN_DIR`, else from `../shared/conformance` beside it; the library from `ODIN_PRESETS_DIR`, else
//! `../shared/presets`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::provenance::Provenance;
use super::*;
use crate::merge::{service_spec, strategic_merge};
use crate::template::{ErrorKind, Template};

fn folder(variable: &str, default: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared").join(default), PathBuf::from)
}

/// The spec of one layer of a case.
fn spec(layer: &Value, presets: &Path) -> Value {
    let Some(file) = layer["preset"].as_str() else { return layer["spec"].clone() };
    let path = presets.join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut object: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    object["spec"].take()
}

/// The vectors hold nulls and directives, which a service can't have, and no defaults: so the parts are put together
/// here without the checks of [`Renderer::render`].
fn run(input: &Value, specs: Vec<Value>, templates: &TemplateCache) -> Result<Value, String> {
    let layers: Vec<Layer> = specs
        .into_iter()
        .enumerate()
        .map(|(index, spec)| Layer { source: Source { kind: "Layer".to_owned(), name: index.to_string(), ..Source::default() }, spec })
        .collect();
    let mut merged = json!({});
    for layer in &layers {
        merged = strategic_merge(merged, &layer.spec, service_spec()).map_err(|error| error.kind.as_str().to_owned())?;
    }
    let labels: BTreeMap<String, String> = serde_json::from_value(input["labels"].clone()).expect("labels");
    let identity = ServiceIdentity {
        name: input["name"].as_str().expect("name"),
        namespace: input["namespace"].as_str().expect("namespace"),
        labels: &labels,
    };
    let provenance = Provenance::new(&merged, &layers);
    let mut rendered = merged.clone();
    match expressions::run(&mut rendered, &identity, &provenance, templates) {
        Ok(()) => Ok(rendered),
        Err((_, expressions::Fault::Template(error))) => Err(error.kind.as_str().to_owned()),
        Err((_, expressions::Fault::Spec(message))) => panic!("{message}"),
    }
}

/// Whether some string of the layers calls a function that isn't built in yet; such a case must be refused as that.
fn calls_what_is_not_there(value: &Value) -> bool {
    match value {
        Value::String(text) => Template::parse(text).is_err_and(|error| error.kind == ErrorKind::UnknownFunction),
        Value::Array(items) => items.iter().any(calls_what_is_not_there),
        Value::Object(fields) => fields.values().any(calls_what_is_not_there),
        _ => false,
    }
}

#[test]
fn golden_render() {
    let path = folder("ODIN_GOLDEN_DIR", "conformance").join("render.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: {} isn't there; set ODIN_GOLDEN_DIR to the folder of the conformance vectors", path.display());
        return;
    };
    let presets = folder("ODIN_PRESETS_DIR", "presets");
    if !presets.is_dir() {
        eprintln!("skipped: {} isn't there; set ODIN_PRESETS_DIR to the folder of the preset library", presets.display());
        return;
    }
    let templates = TemplateCache::default();
    let (mut right, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: Value = serde_json::from_str(line).expect("a line is a JSON object");
        let (input, expected) = (&case["input"], &case["expected"]);
        let specs: Vec<Value> = input["layers"].as_array().expect("layers").iter().map(|layer| spec(layer, &presets)).collect();
        let refusable = specs.iter().any(calls_what_is_not_there);
        let result = run(input, specs, &templates);
        match (&result, expected["error_kind"].as_str()) {
            (Ok(rendered), None) if *rendered == expected["result"] => right += 1,
            (Err(kind), Some(wanted)) if kind == wanted => right += 1,
            (Err(kind), _) if refusable && kind == ErrorKind::UnknownFunction.as_str() => refused.push(case["id"].to_string()),
            _ => wrong.push(format!("{} {}: got {result:?}\n  want {expected}", case["id"], case["about"])),
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases differ:\n{}", wrong.len(), right + refused.len() + wrong.len(), wrong.join("\n"));
    assert!(right > 0, "{} holds no case", path.display());
    eprintln!("{right} cases as recorded; refused for functions that aren't built in: {}", refused.join(", "));
}

/// Every preset over the base of its role, through all checks.
#[test]
fn presets_render_without_a_fault() {
    let presets = folder("ODIN_PRESETS_DIR", "presets");
    let Ok(files) = std::fs::read_dir(presets.join("presets")) else {
        eprintln!("skipped: {} isn't there; set ODIN_PRESETS_DIR to the folder of the preset library", presets.display());
        return;
    };
    let labels = BTreeMap::new();
    let identity = ServiceIdentity { name: "chat", namespace: "demo", labels: &labels };
    let renderer = Renderer::default();
    let mut count = 0;
    for file in files {
        let file = format!("presets/{}", file.expect("a readable folder").file_name().display());
        let preset = spec(&json!({"preset": file}), &presets);
        let role = ["decode", "prefill"].iter().find(|role| file.contains(&format!("-{role}-"))).map(|role| format!("-{role}"));
        let workers = if preset.get("workerTemplate").is_some() { "-dp" } else { "" };
        let base = format!("runtime-bases/vllm{}{workers}.yaml", role.unwrap_or_default());
        let below = [spec(&json!({"preset": base}), &presets), preset];
        let mut layers: Vec<Layer> = below.into_iter().map(|spec| super::tests::layer("InferenceServiceTemplate", &file, spec)).collect();
        layers.push(super::tests::layer("InferenceService", "chat", json!({"replicas": 1})));
        let rendered = renderer.render(&identity, &layers).unwrap_or_else(|refusal| panic!("{file} over {base}: {refusal}"));
        let text = rendered.spec.to_string();
        // The library has one preset that leaves devices to the service; that it runs on none is worth a warning.
        assert_eq!(rendered.warnings.is_empty(), text.contains("\"limits\""), "{file}: {:?}", rendered.warnings);
        assert!(!text.contains("{{ "), "{file} keeps an expression");
        count += 1;
    }
    assert!(count > 0, "{} holds no preset", presets.display());
}
