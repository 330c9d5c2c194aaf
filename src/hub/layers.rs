//! The layers of services as the hub's API server has them, and who uses which.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kube::runtime::reflector::{ObjectRef, Store};
use parking_lot::Mutex;
use serde::Serialize;

use crate::api::odin::{ClusterInferenceServiceTemplate, InferenceServiceTemplate, RuntimeBase, Source};
use crate::capacity::ServiceKey;
use crate::render::{Catalog, Layer};

/// Caches of the three kinds of layers.
#[derive(Clone)]
pub(crate) struct LayerStores {
    pub(crate) templates: Store<InferenceServiceTemplate>,
    pub(crate) cluster_templates: Store<ClusterInferenceServiceTemplate>,
    pub(crate) runtime_bases: Store<RuntimeBase>,
}

impl LayerStores {
    /// Waits until all of them have been listed once.
    pub(crate) async fn wait_until_ready(&self) -> anyhow::Result<()> {
        tokio::try_join!(
            self.templates.wait_until_ready(),
            self.cluster_templates.wait_until_ready(),
            self.runtime_bases.wait_until_ready()
        )
        .map(|_| ())
        .map_err(Into::into)
    }
}

impl Catalog for LayerStores {
    fn template(&self, namespace: &str, name: &str) -> Option<Layer> {
        let found = self.templates.get(&ObjectRef::new(name).within(namespace))?;
        layer("InferenceServiceTemplate", &*found, &found.spec)
    }

    fn cluster_template(&self, name: &str) -> Option<Layer> {
        let found = self.cluster_templates.get(&ObjectRef::new(name))?;
        layer("ClusterInferenceServiceTemplate", &*found, &found.spec)
    }

    fn runtime_base(&self, name: &str) -> Option<Layer> {
        let found = self.runtime_bases.get(&ObjectRef::new(name))?;
        layer("RuntimeBase", &*found, &found.spec)
    }
}

fn layer<K: kube::ResourceExt>(kind: &str, object: &K, spec: &impl Serialize) -> Option<Layer> {
    let source = Source {
        kind: kind.to_owned(),
        namespace: object.namespace(),
        name: object.name_any(),
        generation: object.meta().generation.unwrap_or_default(),
    };
    Some(Layer { source, spec: serde_json::to_value(spec).ok()? })
}

/// Which services name a layer, by the layer's bare name: a template that appears may hide another of the same name in
/// another scope, so every service that names it has to look again.
#[derive(Default)]
pub(crate) struct LayerUsers {
    names: Mutex<Names>,
}

#[derive(Default)]
struct Names {
    users: HashMap<Arc<str>, BTreeSet<ServiceKey>>,
    used: HashMap<ServiceKey, BTreeSet<Arc<str>>>,
}

impl LayerUsers {
    /// Notes the bare names of the layers that a service depends on.
    pub(crate) fn record(&self, key: &ServiceKey, used: impl IntoIterator<Item = String>) {
        let used: BTreeSet<Arc<str>> = used.into_iter().map(Arc::from).collect();
        let mut names = self.names.lock();
        if names.used.get(key) == Some(&used) {
            return;
        }
        names.forget(key);
        for name in &used {
            names.users.entry(name.clone()).or_default().insert(key.clone());
        }
        names.used.insert(key.clone(), used);
    }

    /// Forgets a service that is gone.
    pub(crate) fn forget(&self, service: &ServiceKey) {
        self.names.lock().forget(service);
    }

    /// The services that name a layer of this name.
    pub(crate) fn of(&self, layer: &str) -> Vec<ServiceKey> {
        self.names.lock().users.get(layer).into_iter().flatten().cloned().collect()
    }
}

impl Names {
    fn forget(&mut self, service: &ServiceKey) {
        for name in self.used.remove(service).into_iter().flatten() {
            if let Some(users) = self.users.get_mut(&name) {
                users.remove(service);
                if users.is_empty() {
                    self.users.remove(&name);
                }
            }
        }
    }
}
