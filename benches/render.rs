//! How long it takes to render a service: `cargo bench --bench render`.
//!
//! The quickstart's service is always measured, a service of the public preset library when it is found in
//! `ODIN_PRESETS_DIR`, else in `../shared/presets` beside the repository.

mod common;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, Result, anyhow};
use odin_hub::api::odin::{InferenceService, Source};
use odin_hub::render::{Catalog, Layer, Renderer, ServiceIdentity, lookup};
use serde_json::{Value, json};

use self::common::{figure, percentile, times};

const ROUNDS: usize = 3_000;
const SYSTEM_NAMESPACE: &str = "mif";

/// The layers of files, by kind and name.
#[derive(Default)]
struct Files {
    layers: HashMap<(String, String), Layer>,
    services: Vec<InferenceService>,
}

impl Files {
    fn read(folder: &Path) -> Result<Self> {
        let mut files = Self::default();
        files.add(folder)?;
        Ok(files)
    }

    fn add(&mut self, folder: &Path) -> Result<()> {
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                self.add(&path)?;
            } else if path.extension().is_some_and(|end| end == "yaml") {
                let text = fs::read_to_string(&path)?;
                let objects: Vec<Value> = serde_saphyr::from_multiple(&text).with_context(|| path.display().to_string())?;
                objects.into_iter().try_for_each(|object| self.add_object(object))?;
            }
        }
        Ok(())
    }

    fn add_object(&mut self, mut object: Value) -> Result<()> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        if kind == "InferenceService" {
            self.services.push(serde_json::from_value(object)?);
        } else {
            let spec = object.get_mut("spec").map(Value::take).unwrap_or_default();
            let source = Source { kind: kind.clone(), name: name.clone(), generation: 1, ..Source::default() };
            self.layers.insert((kind, name), Layer { source, spec });
        }
        Ok(())
    }

    fn get(&self, kind: &str, name: &str) -> Option<Layer> {
        self.layers.get(&(kind.to_owned(), name.to_owned())).cloned()
    }
}

impl Catalog for Files {
    fn template(&self, _: &str, name: &str) -> Option<Layer> {
        self.get("InferenceServiceTemplate", name)
    }

    fn cluster_template(&self, name: &str) -> Option<Layer> {
        self.get("ClusterInferenceServiceTemplate", name)
    }

    fn runtime_base(&self, name: &str) -> Option<Layer> {
        self.get("RuntimeBase", name)
    }
}

/// Renders with parsed templates at hand, as the hub does for all services but the first.
fn measure(what: &str, files: &Files, service: &InferenceService) -> Result<()> {
    let layers = lookup(files, SYSTEM_NAMESPACE, service)?;
    let labels = service.metadata.labels.clone().unwrap_or_default();
    let identity = ServiceIdentity {
        name: service.metadata.name.as_deref().unwrap_or_default(),
        namespace: service.metadata.namespace.as_deref().unwrap_or_default(),
        labels: &labels,
    };
    let renderer = Renderer::default();
    let rendered = renderer.render(&identity, &layers)?;
    let size = format!("{}layers,{}B", layers.len(), rendered.spec.to_string().len());
    let times = times(ROUNDS, |_| {
        std::hint::black_box(renderer.render(&identity, &layers)).ok();
    });
    for percent in [50, 99] {
        figure(&format!("render_p{percent}_us_{what}"), percentile(&times, percent).as_secs_f64() * 1e6, "us", &size);
    }
    Ok(())
}

/// The library's plain engine, which its presets lie on.
const ENGINE: &str = "vllm";

/// A service of the library's first preset, in the order of their names, that makes a valid service on the engine.
fn preset_service(files: &Files) -> Result<InferenceService> {
    let mut names: Vec<&str> = files.layers.keys().map(|(_, name)| name.as_str()).filter(|name| *name != ENGINE).collect();
    names.sort_unstable();
    for name in names {
        let spec = json!({"replicas": 1, "templateRefs": [{"name": ENGINE}, {"name": name}]});
        let service: InferenceService = serde_json::from_value(json!({"metadata": {"name": "chat", "namespace": "demo"}, "spec": spec}))?;
        let identity = ServiceIdentity { name: "chat", namespace: "demo", labels: &BTreeMap::new() };
        if lookup(files, SYSTEM_NAMESPACE, &service).is_ok_and(|layers| Renderer::default().render(&identity, &layers).is_ok()) {
            return Ok(service);
        }
    }
    Err(anyhow!("no preset makes a valid service on {ENGINE}"))
}

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let quickstart = Files::read(&root.join("examples/quickstart"))?;
    let named = |service: &&InferenceService| service.metadata.name.as_deref() == Some("chat-70b");
    let chat = quickstart.services.iter().find(named).context("the quickstart has no service chat-70b")?;
    measure("quickstart", &quickstart, chat)?;

    let presets = env::var_os("ODIN_PRESETS_DIR").map_or_else(|| root.join("../shared/presets"), PathBuf::from);
    if presets.is_dir() {
        let files = Files::read(&presets)?;
        measure("preset", &files, &preset_service(&files)?)?;
    } else {
        println!("no preset library in {}: its service is not measured", presets.display());
    }
    Ok(())
}
