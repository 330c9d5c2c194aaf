//! What the hub follows in its own API server: one watch for each kind, a cache of it, and whom a change concerns.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use super::layers::{LayerStores, LayerUsers};
use super::tasks::Tasks;
use super::trigger::Trigger;
use crate::api::federation::MemberCluster;
use crate::api::labels::MEMBER;
use crate::api::odin::{ClusterInferenceServiceTemplate, InferenceService, InferenceServiceTemplate, RuntimeBase};
use crate::capacity::ServiceKey;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

/// Caches of the hub's own objects, and the keys that a change in them wakes.
pub(crate) struct Watches {
    pub(crate) layers: LayerStores,
    pub(crate) users: Arc<LayerUsers>,
    pub(crate) services: Store<InferenceService>,
    pub(crate) clusters: Store<MemberCluster>,
    pub(crate) secrets: Store<Secret>,
    pub(crate) namespaces: Store<PartialObjectMeta<Namespace>>,
    pub(crate) service_trigger: Arc<Trigger<ServiceKey>>,
    pub(crate) member_trigger: Arc<Trigger<String>>,
    pub(crate) secret_trigger: Arc<Trigger<String>>,
    pub(crate) gone_services: Arc<Trigger<(ServiceKey, String)>>,
    pub(crate) gone_members: Arc<Trigger<(String, String)>>,
}

/// What happened to an object.
enum Change<'a, K> {
    /// It is there, or changed.
    Seen(&'a K),
    /// It is gone.
    Gone(&'a K),
}

impl<K> Change<'_, K> {
    fn object(&self) -> &K {
        match self {
            Self::Seen(object) | Self::Gone(object) => object,
        }
    }
}

impl Watches {
    /// Starts all watches.
    pub(crate) fn start(client: &Client, namespace: &str, tasks: &mut Tasks) -> Self {
        let users = Arc::new(LayerUsers::default());
        let service_trigger = Arc::new(Trigger::default());
        let member_trigger = Arc::new(Trigger::default());
        let secret_trigger = Arc::new(Trigger::default());
        let gone_services = Arc::new(Trigger::default());
        let gone_members = Arc::new(Trigger::default());

        let layers = LayerStores {
            templates: follow_layers::<InferenceServiceTemplate>(client, &users, &service_trigger, tasks),
            cluster_templates: follow_layers::<ClusterInferenceServiceTemplate>(client, &users, &service_trigger, tasks),
            runtime_bases: follow_layers::<RuntimeBase>(client, &users, &service_trigger, tasks),
        };
        let services = {
            let (wake, gone) = (service_trigger.clone(), gone_services.clone());
            follow(Api::all(client.clone()), Config::default(), tasks, move |change: Change<'_, InferenceService>| match change {
                Change::Seen(service) => wake.push(ServiceKey::from(service)),
                Change::Gone(service) => gone.push((ServiceKey::from(service), service.uid().unwrap_or_default())),
            })
        };
        let clusters = {
            let (wake, gone) = (member_trigger.clone(), gone_members.clone());
            follow(Api::all(client.clone()), Config::default(), tasks, move |change: Change<'_, MemberCluster>| match change {
                Change::Seen(cluster) => wake.push(cluster.name_any()),
                Change::Gone(cluster) => gone.push((cluster.name_any(), cluster.uid().unwrap_or_default())),
            })
        };
        let secrets = {
            let (wake, members, clusters) = (secret_trigger.clone(), member_trigger.clone(), clusters.clone());
            let labelled = Config::default().labels(&format!("{MEMBER}=true"));
            follow(Api::namespaced(client.clone(), namespace), labelled, tasks, move |change: Change<'_, Secret>| {
                let name = change.object().name_any();
                let users = clusters.state().into_iter().filter(|cluster| cluster.spec.secret_ref.name == name);
                members.extend(users.map(|cluster| cluster.name_any()));
                wake.push(name);
            })
        };
        let namespaces = {
            let (wake, services) = (service_trigger.clone(), services.clone());
            follow(Api::all(client.clone()), Config::default(), tasks, move |change: Change<'_, PartialObjectMeta<Namespace>>| {
                let name = change.object().name_any();
                let inside = services.state().into_iter().filter(|service| service.namespace().as_ref() == Some(&name));
                wake.extend(inside.map(|service| ServiceKey::from(&*service)));
            })
        };
        Self {
            layers,
            users,
            services,
            clusters,
            secrets,
            namespaces,
            service_trigger,
            member_trigger,
            secret_trigger,
            gone_services,
            gone_members,
        }
    }

    /// Waits until every kind has been listed once.
    pub(crate) async fn wait_until_ready(&self) -> anyhow::Result<()> {
        self.layers.wait_until_ready().await?;
        self.services.wait_until_ready().await?;
        self.clusters.wait_until_ready().await?;
        self.secrets.wait_until_ready().await?;
        self.namespaces.wait_until_ready().await?;
        Ok(())
    }
}

fn follow_layers<K>(client: &Client, users: &Arc<LayerUsers>, wake: &Arc<Trigger<ServiceKey>>, tasks: &mut Tasks) -> Store<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (users, wake) = (users.clone(), wake.clone());
    follow(Api::all(client.clone()), Config::default(), tasks, move |change: Change<'_, K>| {
        wake.extend(users.of(&change.object().name_any()));
    })
}

/// Whether an object is gone, be it that one of the same name is there now.
fn is_gone<K: Resource>(object: &K, now: Option<&K>) -> bool {
    now.is_none_or(|now| now.meta().uid != object.meta().uid)
}

/// Keeps a cache of the objects of one API and tells `on_change` of each change, after the cache has it.
fn follow<K>(api: Api<K>, config: Config, tasks: &mut Tasks, on_change: impl Fn(Change<'_, K>) + Send + 'static) -> Store<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Default + Eq + Hash + Clone + Debug + Send + Sync,
{
    let (reader, writer) = store();
    let stream = watcher(api, config).default_backoff().reflect(writer);
    let cache = reader.clone();
    let task = async move {
        let mut stream = std::pin::pin!(stream);
        // What was there before the watch was made anew: objects that the new list lacks are gone, and nothing else
        // tells of them.
        let mut before: Vec<Arc<K>> = Vec::new();
        while let Some(event) = stream.next().await {
            match event {
                Ok(Event::Apply(object)) => on_change(Change::Seen(&object)),
                Ok(Event::Delete(object)) => on_change(Change::Gone(&object)),
                Ok(Event::Init) => before = cache.state(),
                // The cache takes the objects of a list when it is complete.
                Ok(Event::InitApply(_)) => {}
                Ok(Event::InitDone) => {
                    for object in before.drain(..) {
                        if is_gone(&*object, cache.get(&ObjectRef::from_obj(&*object)).as_deref()) {
                            on_change(Change::Gone(&object));
                        }
                    }
                    for object in cache.state() {
                        on_change(Change::Seen(&object));
                    }
                }
                Err(error) => {
                    tracing::warn!(kind = %K::kind(&K::DynamicType::default()), %error, "a watch on the hub failed and is made anew");
                }
            }
        }
    };
    tasks.spawn("a watch", task);
    reader
}
