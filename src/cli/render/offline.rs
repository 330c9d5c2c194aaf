//! The services and layers of files, as a hub's API server would hold them.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use kube::ResourceExt as _;
use serde_json::Value;

use super::files::Document;
use super::schema::{faults, set_defaults};
use crate::api::odin::{GROUP, InferenceService, Source};
use crate::api::reason::Reason;
use crate::api::schema as definitions;
use crate::hub::pool_of;
use crate::merge::{Path, Step};
use crate::render::{Catalog, Layer, Refusal, Rendered, Renderer, ServiceIdentity, lookup};
use crate::workload::Pool;

const SERVICE: &str = "InferenceService";
const TEMPLATE: &str = "InferenceServiceTemplate";
const CLUSTER_TEMPLATE: &str = "ClusterInferenceServiceTemplate";
const RUNTIME_BASE: &str = "RuntimeBase";
const VERSION: &str = "v1alpha1";
/// The fields of every object.
const TOP: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];

/// Kind, namespace and name.
type Key = (&'static str, Option<String>, String);

/// What files hold.
#[derive(Debug, Default)]
pub(super) struct Offline {
    services: Vec<InferenceService>,
    layers: BTreeMap<Key, Layer>,
    /// `InferencePools` by namespace.
    pools: BTreeMap<String, Vec<Pool>>,
    refused: Vec<Refused>,
    /// What is passed over, for people.
    pub(super) notes: Vec<String>,
}

/// An object that an API server would refuse.
#[derive(Debug)]
struct Refused {
    /// Unknown when it has no name.
    key: Option<Key>,
    /// Where it is, and all that is wrong.
    fault: String,
}

impl Offline {
    /// Sorts the objects of files; those without a namespace are in `namespace`.
    ///
    /// # Errors
    /// When the same object is there twice: which one is meant can't be told.
    pub(super) fn new(documents: Vec<Document>, namespace: &str) -> anyhow::Result<Self> {
        let schemas = schemas()?;
        let mut offline = Self::default();
        let mut places: BTreeMap<Key, String> = BTreeMap::new();
        for Document { place, value } in documents {
            if let Some(pool) = pool_of(&value) {
                offline.pools.entry(namespace_of(&value, namespace)).or_default().push(pool);
                continue;
            }
            let Some(kind) = kind(&value) else {
                offline.notes.push(passed_over(&place, &value));
                continue;
            };
            match object(kind, value, &schemas, namespace) {
                Err((key, faults)) => {
                    let name = key.as_ref().map_or_else(|| kind.to_owned(), shown);
                    offline.refused.push(Refused { key, fault: format!("{place}: {name}: {}", faults.join("; ")) });
                }
                Ok((key, object)) => {
                    if let Some(before) = places.insert(key.clone(), place.clone()) {
                        bail!("{} is in {before} and in {place}: leave one of them", shown(&key));
                    }
                    match object {
                        Object::Service(service) => offline.services.push(*service),
                        Object::Layer(layer) => {
                            offline.layers.insert(key, layer);
                        }
                    }
                }
            }
        }
        Ok(offline)
    }

    /// The services of these names, or all, in the order of the files.
    ///
    /// # Errors
    /// When the files hold no service, or none of a name that is asked for.
    pub(super) fn services(&self, names: &[String]) -> anyhow::Result<Vec<&InferenceService>> {
        let full = |service: &InferenceService| (service.namespace().unwrap_or_default(), service.name_any());
        let known: Vec<(String, String)> = self.services.iter().map(full).collect();
        let refused = || self.refused.iter().filter_map(|refused| service_of(refused.key.as_ref()?));
        if known.is_empty() && self.refused.is_empty() {
            bail!("the files hold no {SERVICE}");
        }
        for name in names {
            let mut all = known.iter().map(|(namespace, name)| (namespace.as_str(), name.as_str())).chain(refused());
            if !all.any(|(namespace, own)| is_named(name, namespace, own)) {
                let known: Vec<String> = known.iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
                bail!("the files hold no {SERVICE} {name}; they hold {}", known.join(", "));
            }
        }
        let asked = |(namespace, own): &(String, String)| names.is_empty() || names.iter().any(|name| is_named(name, namespace, own));
        Ok(self.services.iter().zip(&known).filter(|(_, known)| asked(known)).map(|(service, _)| service).collect())
    }

    /// What an API server would refuse: of the services of these names, or of everything.
    pub(super) fn faults(&self, names: &[String]) -> Vec<&str> {
        let asked = |refused: &&Refused| {
            let service = refused.key.as_ref().and_then(service_of);
            names.is_empty() || service.is_some_and(|(namespace, own)| names.iter().any(|name| is_named(name, namespace, own)))
        };
        self.refused.iter().filter(asked).map(|refused| refused.fault.as_str()).collect()
    }

    /// Renders a service as the hub would.
    pub(super) fn render(&self, renderer: &Renderer, system_namespace: &str, service: &InferenceService) -> Result<Rendered, Refusal> {
        let layers = lookup(self, system_namespace, service).map_err(|refusal| self.with_refused(refusal))?;
        let (name, namespace) = (service.name_any(), service.namespace().unwrap_or_default());
        renderer.render(&ServiceIdentity { name: &name, namespace: &namespace, labels: service.labels() }, &layers)
    }

    /// The `InferencePools` of a namespace.
    pub(super) fn pools(&self, namespace: &str) -> &[Pool] {
        self.pools.get(namespace).map_or(&[], Vec::as_slice)
    }

    /// A layer that isn't there may be in the files, and be refused.
    fn with_refused(&self, refusal: Refusal) -> Refusal {
        let missing = matches!(refusal.reason, Reason::TemplateNotFound | Reason::RuntimeBaseNotFound);
        let is_named = |refused: &&Refused| refused.key.as_ref().is_some_and(|key| refusal.message.contains(&format!("{:?}", key.2)));
        let refused: Vec<&str> = self.refused.iter().filter(is_named).map(|refused| refused.fault.as_str()).collect();
        if !missing || refused.is_empty() {
            return refusal;
        }
        Refusal { message: format!("{}; refused is {}", refusal.message, refused.join("; ")), ..refusal }
    }

    fn layer(&self, kind: &'static str, namespace: Option<&str>, name: &str) -> Option<Layer> {
        self.layers.get(&(kind, namespace.map(ToOwned::to_owned), name.to_owned())).cloned()
    }
}

impl Catalog for Offline {
    fn template(&self, namespace: &str, name: &str) -> Option<Layer> {
        self.layer(TEMPLATE, Some(namespace), name)
    }

    fn cluster_template(&self, name: &str) -> Option<Layer> {
        self.layer(CLUSTER_TEMPLATE, None, name)
    }

    fn runtime_base(&self, name: &str) -> Option<Layer> {
        self.layer(RUNTIME_BASE, None, name)
    }
}

/// An object that an API server would take.
enum Object {
    Service(Box<InferenceService>),
    Layer(Layer),
}

/// Namespace and name, if the key is that of a service.
fn service_of((kind, namespace, name): &Key) -> Option<(&str, &str)> {
    (*kind == SERVICE).then_some((namespace.as_deref()?, name))
}

/// Whether `NAME` or `NAMESPACE/NAME` means a service.
fn is_named(asked: &str, namespace: &str, name: &str) -> bool {
    asked.split_once('/').map_or(asked == name, |asked| asked == (namespace, name))
}

/// Schemas of the specs by kind.
fn schemas() -> anyhow::Result<BTreeMap<String, Value>> {
    let crds = definitions::crds().context("the definitions built into this program are broken")?;
    let schema = |crd: &Value| {
        let kind = crd.pointer("/spec/names/kind")?.as_str()?.to_owned();
        Some((kind, crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec")?.clone()))
    };
    Ok(crds.iter().filter_map(schema).collect())
}

/// The kind of an object, if rendering needs it.
fn kind(value: &Value) -> Option<&'static str> {
    let (group, _) = value.get("apiVersion")?.as_str()?.split_once('/')?;
    let kind = value.get("kind")?.as_str()?;
    [SERVICE, TEMPLATE, CLUSTER_TEMPLATE, RUNTIME_BASE].into_iter().find(|known| group == GROUP && *known == kind)
}

/// The namespace of an object, else that of those without one.
fn namespace_of(value: &Value, default: &str) -> String {
    let own = value.pointer("/metadata/namespace").and_then(Value::as_str).filter(|own| !own.is_empty());
    own.unwrap_or(default).to_owned()
}

fn passed_over(place: &str, value: &Value) -> String {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
    match value.get("kind") {
        Some(_) => format!("note: {place}: {} {} is passed over", text("/kind"), text("/metadata/name")),
        None => format!("note: {place} is no Kubernetes object and is passed over"),
    }
}

fn shown((kind, namespace, name): &Key) -> String {
    Source { kind: (*kind).to_owned(), namespace: namespace.clone(), name: name.clone(), generation: 0 }.to_string()
}

/// An object as the API server would store it, or all that is wrong with it.
fn object(
    kind: &'static str,
    mut value: Value,
    schemas: &BTreeMap<String, Value>,
    namespace: &str,
) -> Result<(Key, Object), (Option<Key>, Vec<String>)> {
    let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err((None, vec!["metadata.name is missing".to_owned()]));
    }
    let scope = matches!(kind, SERVICE | TEMPLATE).then(|| namespace_of(&value, namespace));
    let key = (kind, scope.clone(), name.clone());
    let mut wrong = Vec::new();
    if value.get("apiVersion").is_none_or(|version| version != &format!("{GROUP}/{VERSION}")) {
        wrong.push(format!("apiVersion must be {GROUP}/{VERSION}"));
    }
    let top = value.as_object().into_iter().flat_map(|fields| fields.keys()).filter(|name| !TOP.contains(&name.as_str()));
    wrong.extend(top.map(|name| format!("{name} is unknown: remove it, or correct the name of the field")));
    let schema = schemas.get(kind).unwrap_or(&Value::Null);
    match value.get_mut("spec") {
        None => wrong.push("spec is missing".to_owned()),
        Some(spec) => {
            wrong.extend(faults(schema, spec, &Path::default().then(Step::field("spec"))));
            set_defaults(schema, spec);
        }
    }
    if let (Some(Value::Object(metadata)), Some(scope)) = (value.get_mut("metadata"), &scope) {
        metadata.insert("namespace".to_owned(), Value::from(scope.as_str()));
    }
    if !wrong.is_empty() {
        return Err((Some(key), wrong));
    }
    if kind != SERVICE {
        let spec = value.get_mut("spec").map(Value::take).unwrap_or_default();
        let layer = Layer { source: Source { kind: kind.to_owned(), namespace: scope, name, generation: 0 }, spec };
        return Ok((key, Object::Layer(layer)));
    }
    match serde_json::from_value(value) {
        Ok(service) => Ok((key, Object::Service(Box::new(service)))),
        Err(error) => Err((Some(key), vec![error.to_string()])),
    }
}
