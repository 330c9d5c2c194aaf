//! Values: each is documented, and what isn't one is refused.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, ensure};
use odin_hub::member::PROTECTED_NAMESPACES;
use sandbox::hub::repository;
use serde_json::{Value, json};

use super::Offline;

fn file(name: &str) -> Result<String> {
    let path = repository().join("charts/odin-hub").join(name);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// The schema of each value that has a fixed form, by its path; below an open map there are none.
fn known(path: &str, schema: &Value, found: &mut Vec<(String, Value)>) {
    for (key, value) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        found.push((path.clone(), value.clone()));
        known(&path, value, found);
    }
}

/// Paths of the keys of a YAML text in block form, each with whether a comment stands right above it.
fn keys(text: &str) -> Vec<(String, bool)> {
    let (mut stack, mut found, mut comment) = (Vec::<(usize, &str)>::new(), Vec::new(), false);
    for line in text.lines() {
        let word = line.trim_start();
        let indent = line.len() - word.len();
        if let Some((key, _)) = word.split_once(':').filter(|(key, _)| !key.starts_with(['#', '-'])) {
            stack.retain(|(outer, _)| *outer < indent);
            stack.push((indent, key));
            found.push((stack.iter().map(|(_, key)| *key).collect::<Vec<_>>().join("."), comment));
        }
        comment = word.starts_with('#');
    }
    found
}

#[test]
fn each_value_has_a_comment_a_default_and_a_schema() -> Result<()> {
    let (schema, text): (Value, String) = (serde_json::from_str(&file("values.schema.json")?)?, file("values.yaml")?);
    ensure!(schema["$schema"] == "http://json-schema.org/draft-07/schema#", "{}", schema["$schema"]);
    let mut wanted = Vec::new();
    known("", &schema, &mut wanted);
    // Helm puts it there for charts that are part of another.
    wanted.retain(|(path, _)| path != "global");
    ensure!(wanted.len() > 30, "{wanted:?}");
    let commented = keys(&text);
    for (path, schema) in &wanted {
        ensure!(schema["description"].as_str().is_some_and(|text| !text.is_empty()), "{path} has no description in values.schema.json");
        ensure!(commented.contains(&(path.clone(), true)), "{path} is not in values.yaml with a comment above it");
        let open = schema["type"] == "object" && schema.get("properties").is_some() && schema["additionalProperties"] != false;
        ensure!(!open, "{path} takes keys that values.schema.json doesn't name");
    }
    let paths: BTreeSet<&str> = wanted.iter().map(|(path, _)| path.as_str()).collect();
    let values: Value = serde_saphyr::from_str(&text)?;
    ensure!(values["protectedNamespaces"] == json!(PROTECTED_NAMESPACES), "the program protects {PROTECTED_NAMESPACES:?} by default");
    for (path, _) in commented {
        let known = (0..=path.len()).filter(|end| path.is_char_boundary(*end)).any(|end| {
            let outer = &path[..end];
            // The keys of a map of texts are anybody's.
            paths.contains(outer) && (end == path.len() || outer.ends_with("annotations") || outer.starts_with("resources."))
        });
        ensure!(known, "{path} is not in values.schema.json");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_no_value_is_refused_with_its_place() -> Result<()> {
    let offline = Offline::new().await?;
    for (values, told) in [
        (json!({"alowSelf": true}), "at '': additional properties 'alowSelf' not allowed"),
        (json!({"metrics": {"prt": 1}}), "at '/metrics': additional properties 'prt' not allowed"),
        (json!({"replicas": 2}), "additional properties 'replicas' not allowed"),
        (json!({"metrics": {"port": "8080"}}), "at '/metrics/port': got string, want integer"),
        (json!({"metrics": {"port": 8081}}), "at '/metrics/port'"),
        (json!({"allowSelf": "yes"}), "at '/allowSelf': got string, want boolean"),
        (json!({"logFormat": "xml"}), "at '/logFormat': value must be one of 'text', 'json'"),
        (json!({"logLevel": "loud"}), "at '/logLevel': value must be one of 'error', 'warn', 'info', 'debug', 'trace'"),
        (json!({"hubId": "-a"}), "at '/hubId'"),
        (json!({"systemNamespace": ""}), "at '/systemNamespace'"),
        (json!({"systemNamespace": "team-hub"}), "systemNamespace must differ from the release's namespace team-hub"),
        (json!({"protectedNamespaces": []}), "at '/protectedNamespaces': minItems"),
        (json!({"protectedNamespaces": ["a,b"]}), "at '/protectedNamespaces/0'"),
        (json!({"image": {"digest": "0a0a"}}), "at '/image/digest'"),
        (json!({"image": {"tag": "a b"}}), "at '/image/tag'"),
        (json!({"fullnameOverride": "Capital"}), "at '/fullnameOverride'"),
        (json!({"podLabels": {"a": 1}}), "at '/podLabels/a': got number, want string"),
        (json!({"resources": {"memory": "1Gi"}}), "at '/resources': additional properties 'memory' not allowed"),
        (json!({"serviceAccount": {"create": false}}), "serviceAccount.name must say which account the hub runs as"),
    ] {
        let error = match offline.template("prod", "team-hub", &values).await {
            Ok(_) => anyhow::bail!("{values} is taken"),
            Err(error) => format!("{error:#}"),
        };
        ensure!(error.contains(told), "{values}: {error}");
    }
    // A chart that has this one as a part hands down its own.
    offline.template("prod", "team-hub", &json!({"global": {"anything": 1}})).await?;
    Ok(())
}
