//! The hub's side of joining: the Secret that registers a member, and waiting for what the hub makes of it.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use secrecy::{ExposeSecret as _, SecretString};

use super::MANAGER;
use crate::api::condition::{self, member::READY};
use crate::api::federation::MemberCluster;
use crate::api::labels::{JOINED, MEMBER};
use crate::hub::{HUB_ID_CONFIG_MAP, HUB_ID_KEY};

/// Key in the Secret.
const KEY: &str = "kubeconfig";
const POLL: Duration = Duration::from_millis(500);

/// A hub, by the namespace in which it keeps its members' Secrets.
pub(in crate::cli) struct Hub {
    client: Client,
    namespace: String,
}

impl Hub {
    pub(in crate::cli) fn new(client: Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.to_owned() }
    }

    /// Whether a member of this name may be registered by join. Returns whether it is registered by join already.
    pub(super) async fn check(&self, member: &str) -> anyhow::Result<bool> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        if namespaces.get_metadata_opt(&self.namespace).await.context("reading the hub's namespace")?.is_none() {
            bail!("the hub has no namespace {}: install odin-hub first, or name its namespace with --namespace", self.namespace);
        }
        let members: Api<MemberCluster> = Api::all(self.client.clone());
        // A list of one, since a get answers the same, not found, whether the object is missing or the kind.
        let found = members.list(&ListParams::default().fields(&format!("metadata.name={member}"))).await;
        match found.context("listing MemberClusters of the hub; `odin-hub crds --apply` installs the kind")?.items.first() {
            Some(found) if found.metadata.deletion_timestamp.is_some() => {
                bail!("MemberCluster {member} is being removed: wait until it is gone, or take another name");
            }
            Some(found) if found.spec.secret_ref.name != member => {
                bail!(
                    "MemberCluster {member} exists and takes its kubeconfig from Secret {}: take another name",
                    found.spec.secret_ref.name
                );
            }
            _ => {}
        }
        let Some(secret) = self.secrets().get_metadata_opt(member).await.context("reading Secrets of the hub")? else {
            return Ok(false);
        };
        if secret.annotations().get(JOINED).is_none_or(|joined| joined != "true") {
            bail!(
                "Secret {}/{member} exists and was not written by join: change it where it comes from, or delete it and join again",
                self.namespace
            );
        }
        Ok(true)
    }

    /// The hub's id, if it has one already: the hub makes it when it first starts.
    pub(in crate::cli) async fn known_id(&self) -> anyhow::Result<Option<String>> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        let map = api.get_opt(HUB_ID_CONFIG_MAP).await.context("reading the hub's id")?;
        Ok(map.and_then(|map| map.data?.remove(HUB_ID_KEY)))
    }

    /// The hub's id, which is what a namespace of a member allows.
    pub(super) async fn id(&self) -> anyhow::Result<String> {
        self.known_id().await?.with_context(|| {
            format!(
                "ConfigMap {}/{HUB_ID_CONFIG_MAP} with the hub's id is missing: start the hub once, it makes it; then join again",
                self.namespace
            )
        })
    }

    /// Writes the Secret that registers the member.
    pub(super) async fn register(&self, member: &str, kubeconfig: &SecretString) -> anyhow::Result<()> {
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(member.to_owned()),
                namespace: Some(self.namespace.clone()),
                labels: Some([(MEMBER.to_owned(), "true".to_owned())].into()),
                annotations: Some([(JOINED.to_owned(), "true".to_owned())].into()),
                ..ObjectMeta::default()
            },
            data: Some([(KEY.to_owned(), ByteString(kubeconfig.expose_secret().as_bytes().to_vec()))].into()),
            type_: Some("Opaque".to_owned()),
            ..Secret::default()
        };
        self.secrets()
            .patch(member, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&secret))
            .await
            .with_context(|| format!("writing Secret {}/{member} on the hub", self.namespace))?;
        Ok(())
    }

    /// Waits until the hub says that the member is ready. On a terminal each news is shown.
    pub(super) async fn wait(&self, member: &str, timeout: Duration) -> anyhow::Result<()> {
        let api: Api<MemberCluster> = Api::all(self.client.clone());
        let mut waiting = Waiting::new(timeout);
        loop {
            let found = api.get_opt(member).await.context("reading the MemberCluster")?;
            let conditions = found.and_then(|found| found.status).map(|status| status.conditions);
            if conditions.as_ref().is_some_and(|conditions| condition::is_true(conditions, READY)) {
                return Ok(());
            }
            let news = match conditions.as_ref().map(|conditions| condition::find(conditions, READY)) {
                None => format!("the hub has not made MemberCluster {member} yet: is it running, with --namespace {}?", self.namespace),
                Some(None) => format!("the hub has not looked at MemberCluster {member} yet"),
                Some(Some(ready)) => format!("{}: {}", ready.reason, ready.message),
            };
            if !waiting.more(&news).await? {
                bail!("{member} is registered but not ready after {} s: {news}", timeout.as_secs());
            }
        }
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

/// Waiting for something on the hub.
pub(in crate::cli) struct Waiting {
    until: Instant,
    shown: String,
}

impl Waiting {
    pub(in crate::cli) fn new(timeout: Duration) -> Self {
        Self { until: Instant::now() + timeout, shown: String::new() }
    }

    /// Waits a moment longer; false when it has been long enough. On a terminal each news is shown.
    pub(in crate::cli) async fn more(&mut self, news: &str) -> std::io::Result<bool> {
        if Instant::now() >= self.until {
            return Ok(false);
        }
        if news != self.shown && std::io::stderr().is_terminal() {
            writeln!(std::io::stderr(), "waiting: {news}")?;
        }
        news.clone_into(&mut self.shown);
        tokio::time::sleep(POLL).await;
        Ok(true)
    }
}
