//! The hub's id: by it the hub knows its own objects in members again.

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};

/// The ConfigMap in the hub's namespace that keeps the id, under the key `id`.
pub(crate) const CONFIG_MAP: &str = "odin-hub-id";
/// Key in the ConfigMap.
pub(crate) const KEY: &str = "id";

/// Who a hub is.
pub(crate) struct Identity {
    /// Its id.
    pub(crate) hub: String,
    /// UID of the cluster that it runs on.
    pub(crate) cluster: String,
}

/// The id that this hub has, or gives itself at its first start: `wanted`, else the UID of the namespace kube-system.
///
/// # Errors
/// When the ConfigMap can't be read or made, or names another id than `wanted`: objects in members bear the old one,
/// and the hub would take them for another hub's.
pub(crate) async fn establish(client: &Client, namespace: &str, cluster_uid: &str, wanted: Option<&str>) -> anyhow::Result<String> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let of = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get(KEY)).cloned();
    let kept = api.get_opt(CONFIG_MAP).await.with_context(|| {
        format!("the hub's id can't be read from ConfigMap {namespace}/{CONFIG_MAP}: does its account have the rights of the chart?")
    })?;
    let kept = match kept {
        Some(map) => map,
        None => create(&api, namespace, wanted.unwrap_or(cluster_uid)).await?,
    };
    let id = of(&kept).with_context(|| format!("ConfigMap {namespace}/{CONFIG_MAP} has no key {KEY}; delete it, or restore the key"))?;
    if let Some(wanted) = wanted
        && wanted != id
    {
        anyhow::bail!(
            "--hub-id {wanted} differs from the id {id} in ConfigMap {namespace}/{CONFIG_MAP}, which objects in members bear; drop the flag, or delete the ConfigMap if no member holds anything of this hub"
        );
    }
    Ok(id)
}

async fn create(api: &Api<ConfigMap>, namespace: &str, id: &str) -> anyhow::Result<ConfigMap> {
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some(CONFIG_MAP.to_owned()), ..ObjectMeta::default() },
        data: Some([(KEY.to_owned(), id.to_owned())].into()),
        ..ConfigMap::default()
    };
    match api.create(&PostParams::default(), &map).await {
        Ok(map) => Ok(map),
        // Another start was faster.
        Err(kube::Error::Api(status)) if status.is_already_exists() => api.get(CONFIG_MAP).await.map_err(Into::into),
        Err(error) => Err(error).with_context(|| format!("ConfigMap {namespace}/{CONFIG_MAP}, which keeps the hub's id, can't be made")),
    }
}

/// UID of the namespace kube-system, which tells clusters apart.
///
/// # Errors
/// When the API server can't be reached or refuses.
pub(crate) async fn cluster_uid(client: &Client) -> anyhow::Result<String> {
    let namespace = Api::<Namespace>::all(client.clone()).get("kube-system").await.context("the hub's API server can't be read")?;
    namespace.metadata.uid.context("namespace kube-system has no UID")
}
