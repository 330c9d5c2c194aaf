//! `InferencePools` of the hub: an optional kind of another project, looked for and followed when it is there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use parking_lot::RwLock;
use serde_json::Value;

use super::layers::LayerUsers;
use super::trigger::Trigger;
use crate::capacity::ServiceKey;
use crate::workload::Pool;

const KIND: &str = "InferencePool";
/// The versions that are known, the best first.
const VERSIONS: [(&str, &str); 2] = [("inference.networking.k8s.io", "v1"), ("inference.networking.x-k8s.io", "v1alpha2")];
/// How often the kind is looked for while it isn't there.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Pause after looking for it failed.
const RETRY: Duration = Duration::from_secs(5);
/// Pause before it is looked for once more when it isn't found.
const CONFIRM: Duration = Duration::from_secs(2);

/// The pools of the hub.
#[derive(Default)]
pub(crate) struct Pools {
    /// Labels that each pool selects by, by namespace and name.
    found: RwLock<BTreeMap<(String, String), BTreeMap<String, String>>>,
    /// Whether it is known which pools there are.
    known: AtomicBool,
}

/// The name under which the users of a pool are recorded beside those of layers.
pub(crate) fn user_key(namespace: &str, name: &str) -> String {
    format!("InferencePool {namespace}/{name}")
}

impl Pools {
    /// The pools of these names in a namespace, as far as they exist; nothing while it isn't known which do: pods would
    /// be made anew without their labels, and again with them.
    pub(crate) fn get(&self, namespace: &str, names: &[String]) -> Option<Vec<Pool>> {
        if names.is_empty() {
            return Some(Vec::new());
        }
        if !self.known.load(Ordering::Acquire) {
            return None;
        }
        let found = self.found.read();
        let pool = |name: &String| {
            let labels = found.get(&(namespace.to_owned(), name.clone()))?;
            Some(Pool { name: name.clone(), labels: labels.clone() })
        };
        Some(names.iter().filter_map(pool).collect())
    }

    fn replace(&self, pools: BTreeMap<(String, String), BTreeMap<String, String>>) -> Vec<(String, String)> {
        let mut found = self.found.write();
        let changed = found.iter().filter(|(key, labels)| pools.get(*key) != Some(*labels)).map(|(key, _)| key.clone());
        let new = pools.keys().filter(|key| !found.contains_key(*key)).cloned();
        let changed = changed.chain(new).collect();
        *found = pools;
        self.known.store(true, Ordering::Release);
        changed
    }
}

/// Looks for the kind and follows it, for ever; wakes the services that name a pool that changes.
pub(crate) async fn follow(client: Client, pools: Arc<Pools>, users: Arc<LayerUsers>, wake: Arc<Trigger<ServiceKey>>) {
    let tell = |changed: Vec<(String, String)>| {
        for (namespace, name) in changed {
            wake.extend(users.of(&user_key(&namespace, &name)));
        }
    };
    // An API server that has just started may say so of a kind that is there, and all pods would be made anew without the
    // labels of their pools. So it has to say so twice.
    let mut in_doubt = true;
    loop {
        match discover(&client).await {
            Ok(None) if in_doubt => {
                in_doubt = false;
                tokio::time::sleep(CONFIRM).await;
            }
            Ok(None) => {
                tell(pools.replace(BTreeMap::new()));
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            Ok(Some(resource)) => {
                in_doubt = true;
                watch(&client, &resource, |all| tell(pools.replace(all))).await;
            }
            Err(error) => {
                tracing::warn!(%error, "InferencePools of the hub can't be looked for; trying again");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// The version of the kind that the API server has; nothing when it surely has none.
async fn discover(client: &Client) -> kube::Result<Option<ApiResource>> {
    let groups = client.list_api_groups().await?;
    for (group, version) in VERSIONS {
        let served = groups.groups.iter().any(|g| g.name == group && g.versions.iter().any(|v| v.version == version));
        if !served {
            continue;
        }
        let resources = client.list_api_group_resources(&format!("{group}/{version}")).await?;
        if resources.resources.iter().any(|resource| resource.name == "inferencepools") {
            let kind = GroupVersionKind::gvk(group, version, KIND);
            return Ok(Some(ApiResource::from_gvk_with_plural(&kind, "inferencepools")));
        }
    }
    Ok(None)
}

/// Follows the kind until it is gone. `tell` gets all pools, each time that any of them changed.
async fn watch(client: &Client, resource: &ApiResource, tell: impl Fn(BTreeMap<(String, String), BTreeMap<String, String>>)) {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let mut stream = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
    let mut all = BTreeMap::new();
    let mut listing = BTreeMap::new();
    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::Init) => listing = BTreeMap::new(),
            Ok(Event::InitApply(object)) => {
                listing.insert(key(&object), match_labels(&object.data));
            }
            Ok(Event::InitDone) => {
                all = std::mem::take(&mut listing);
                tell(all.clone());
            }
            Ok(Event::Apply(object)) => {
                all.insert(key(&object), match_labels(&object.data));
                tell(all.clone());
            }
            Ok(Event::Delete(object)) => {
                all.remove(&key(&object));
                tell(all.clone());
            }
            Err(
                watcher::Error::InitialListFailed(kube::Error::Api(status)) | watcher::Error::WatchStartFailed(kube::Error::Api(status)),
            ) if status.is_not_found() => {
                return;
            }
            Err(error) => tracing::warn!(kind = "InferencePool", %error, "a watch on the hub failed and is made anew"),
        }
    }
}

fn key(object: &DynamicObject) -> (String, String) {
    (object.metadata.namespace.clone().unwrap_or_default(), object.metadata.name.clone().unwrap_or_default())
}

/// The pool that an object is, if it is one of a version that is known.
pub(crate) fn pool_of(object: &Value) -> Option<Pool> {
    let (group, version) = object.get("apiVersion")?.as_str()?.split_once('/')?;
    let is_pool = object.get("kind")? == KIND && VERSIONS.contains(&(group, version));
    let name = object.pointer("/metadata/name")?.as_str()?.to_owned();
    is_pool.then(|| Pool { name, labels: match_labels(object) })
}

/// The labels that a pool selects by. v1 has them under `matchLabels`, v1alpha2 right in the selector.
fn match_labels(data: &Value) -> BTreeMap<String, String> {
    let selector = data.pointer("/spec/selector");
    let labels = selector.and_then(|s| s.get("matchLabels")).or(selector);
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_read_from_both_versions() {
        let want = BTreeMap::from([("app".to_owned(), "pool-a".to_owned())]);
        for (data, want) in [
            (json!({"spec": {"selector": {"matchLabels": {"app": "pool-a"}}}}), &want),
            (json!({"spec": {"selector": {"app": "pool-a"}}}), &want),
            (json!({"spec": {"selector": {"matchLabels": {"app": 1}}}}), &BTreeMap::new()),
            (json!({"spec": {}}), &BTreeMap::new()),
        ] {
            assert_eq!(&match_labels(&data), want, "{data}");
        }
    }

    #[test]
    fn a_pool_is_known_by_its_kind_and_version() {
        let pool = |version: &str, kind: &str| {
            pool_of(&json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": {"selector": {"app": "x"}}}))
        };
        let wanted = Pool { name: "a".to_owned(), labels: BTreeMap::from([("app".to_owned(), "x".to_owned())]) };
        assert_eq!(pool("inference.networking.x-k8s.io/v1alpha2", "InferencePool"), Some(wanted.clone()));
        assert_eq!(pool("inference.networking.k8s.io/v1", "InferencePool"), Some(wanted));
        for (version, kind) in [
            ("inference.networking.k8s.io/v2", "InferencePool"),
            ("inference.networking.k8s.io/v1", "InferenceObjective"),
            ("v1", "InferencePool"),
        ] {
            assert_eq!(pool(version, kind), None, "{version} {kind}");
        }
    }

    #[test]
    fn nothing_is_told_of_pools_before_they_are_known() {
        let pools = Pools::default();
        let names = ["a".to_owned()];
        assert_eq!(pools.get("team", &[]), Some(Vec::new()), "who names none needn't wait");
        assert_eq!(pools.get("team", &names), None);
        let labels = BTreeMap::from([("app".to_owned(), "x".to_owned())]);
        let key = |name: &str| ("team".to_owned(), name.to_owned());
        assert_eq!(pools.replace(BTreeMap::from([(key("a"), labels.clone())])), [key("a")]);
        assert_eq!(pools.get("team", &names), Some(vec![Pool { name: "a".to_owned(), labels: labels.clone() }]));
        assert_eq!(pools.get("other", &names), Some(Vec::new()));
        assert_eq!(pools.replace(BTreeMap::from([(key("a"), labels)])), [], "the same again is no change");
        assert_eq!(pools.replace(BTreeMap::new()), [key("a")]);
    }
}
