//! A service from a real preset, where a preset library is at hand.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sandbox::apply::documents;
use serde_json::{Value, json};

/// Namespace of the service.
const NAMESPACE: &str = "presets";

/// What is applied.
pub(super) struct Preset {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    /// Templates, namespace and service.
    pub(super) manifests: String,
}

/// The preset for one H200, its runtime base and a service of them; `None` when there is no library.
/// A folder that was asked for must be there.
pub(super) fn find(asked: Option<&Path>, repository: &Path) -> Result<Option<Preset>> {
    let folder = match asked {
        Some(folder) => folder.to_owned(),
        None => repository.join("../shared/presets"),
    };
    if asked.is_none() && !folder.join("presets").is_dir() {
        return Ok(None);
    }
    let preset = |labels: &dyn Fn(&str) -> Option<String>| {
        let is = |key: &str, value: &str| labels(key).as_deref() == Some(value);
        is("role", "e2e") && is("accelerator.vendor", "nvidia") && is("accelerator.model", "h200-sxm") && is("parallelism", "1")
    };
    let base = |labels: &dyn Fn(&str) -> Option<String>| labels("role").as_deref() == Some("e2e") && labels("parallelism").is_none();
    let (preset, preset_text) = first(&folder.join("presets"), preset)?;
    let (base, base_text) = first(&folder.join("runtime-bases"), base)?;
    let service = json!({
        "apiVersion": "odin.moreh.io/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": "from-preset", "namespace": NAMESPACE},
        "spec": {"replicas": 1, "templateRefs": [{"name": base}, {"name": preset}]},
    });
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let mut manifests = format!("{base_text}\n---\n{preset_text}\n");
    for object in [namespace, service] {
        writeln!(manifests, "---\n{object}")?;
    }
    Ok(Some(Preset { name: preset, folder, manifests }))
}

/// Name and text of the first template (by file name) whose labels `mif.moreh.io/…` fit.
fn first(folder: &Path, fits: impl Fn(&dyn Fn(&str) -> Option<String>) -> bool) -> Result<(String, String)> {
    let listing = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<PathBuf> = listing.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    for path in paths {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for object in documents(&text).with_context(|| path.display().to_string())? {
            let label = |key: &str| object.get("metadata")?.get("labels")?.get(format!("mif.moreh.io/{key}"))?.as_str().map(str::to_owned);
            if fits(&label)
                && let Some(name) = object.pointer("/metadata/name").and_then(Value::as_str)
            {
                return Ok((name.to_owned(), text));
            }
        }
    }
    anyhow::bail!("{}: no template with the labels that are looked for", folder.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(name: &str, labels: &str) -> String {
        format!(
            "{{apiVersion: odin.moreh.io/v1alpha1, kind: InferenceServiceTemplate, metadata: {{name: {name}, namespace: mif, labels: {labels}}}, spec: {{}}}}\n"
        )
    }

    #[test]
    fn one_preset_for_one_device_and_the_plain_base_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: String| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let labels = |model: &str, parallelism: &str| {
            format!(
                "{{mif.moreh.io/role: e2e, mif.moreh.io/accelerator.vendor: nvidia, mif.moreh.io/accelerator.model: {model}, mif.moreh.io/parallelism: '{parallelism}'}}"
            )
        };
        write("presets/a.yaml", template("other-model", &labels("h100-sxm", "1")));
        write("presets/b.yaml", template("too-wide", &labels("h200-sxm", "tp8")));
        write("presets/c.yaml", template("right", &labels("h200-sxm", "1")));
        write("runtime-bases/a.yaml", template("dp", "{mif.moreh.io/role: e2e, mif.moreh.io/parallelism: dp}"));
        write("runtime-bases/b.yaml", template("plain", "{mif.moreh.io/role: e2e}"));
        let preset = find(Some(folder.path()), Path::new("/")).unwrap().unwrap();
        assert_eq!(preset.name, "right");
        let objects = documents(&preset.manifests).unwrap();
        assert_eq!(objects.last().unwrap()["spec"]["templateRefs"], json!([{"name": "plain"}, {"name": "right"}]));
        assert_eq!(objects.len(), 4);
    }

    #[test]
    fn without_a_library_there_is_no_preset_but_one_that_was_asked_for_must_be_there() {
        let folder = tempfile::tempdir().unwrap();
        assert!(find(None, &folder.path().join("repository")).unwrap().is_none());
        assert!(find(Some(folder.path()), folder.path()).is_err());
    }
}
