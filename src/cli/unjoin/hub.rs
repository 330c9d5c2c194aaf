//! The hub's side of unjoining: what registers the member, and its end.

use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::{Api, Client, Error, ResourceExt as _};
use serde_json::json;

use crate::api::federation::MemberCluster;
use crate::api::labels::{JOINED, MEMBER};
use crate::cli::fetch::{Reader, typed};
use crate::cli::join::MANAGER;
use crate::cli::join::registration::{Hub, Waiting};

/// What becomes of the Secret of a member's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// Join wrote it.
    Deleted,
    /// Another wrote it: it only stops to register a member.
    Unlabelled,
    /// It isn't there, or registers nothing.
    Absent,
}

/// What the hub has of a member.
pub(super) struct Registration {
    client: Client,
    namespace: String,
    name: String,
    member: Option<MemberCluster>,
    others: Vec<MemberCluster>,
    secret: Option<SecretFacts>,
}

/// What is read of a Secret: never its content.
struct SecretFacts {
    uid: Option<String>,
    registers: bool,
    joined: bool,
}

impl SecretFacts {
    fn fate(&self) -> Gone {
        match (self.joined, self.registers) {
            (true, _) => Gone::Deleted,
            (false, true) => Gone::Unlabelled,
            (false, false) => Gone::Absent,
        }
    }
}

impl Registration {
    /// Reads it.
    pub(super) async fn of(client: Client, namespace: &str, name: &str) -> anyhow::Result<Self> {
        let members = Reader::<MemberCluster>::all(&client).list().await?;
        let members: Vec<MemberCluster> = members.iter().map(typed).collect::<Result<_, _>>()?;
        let (mut named, others): (Vec<_>, Vec<_>) = members.into_iter().partition(|member| member.metadata.name.as_deref() == Some(name));
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let secret = secrets.get_metadata_opt(name).await.with_context(|| format!("reading Secret {namespace}/{name} of the hub"))?;
        let secret = secret.map(|secret| {
            let is_true = |value: Option<&String>| value.is_some_and(|value| value == "true");
            SecretFacts {
                uid: secret.uid(),
                registers: is_true(secret.labels().get(MEMBER)),
                joined: is_true(secret.annotations().get(JOINED)),
            }
        });
        Ok(Self { client, namespace: namespace.to_owned(), name: name.to_owned(), member: named.pop(), others, secret })
    }

    /// Whether there is anything to take off.
    pub(super) fn is_there(&self) -> bool {
        self.is_registered() || self.secret() != Gone::Absent
    }

    pub(super) fn is_registered(&self) -> bool {
        self.member.is_some()
    }

    /// What tells the member's cluster from others, if the hub has seen it.
    pub(super) fn cluster_uid(&self) -> Option<&str> {
        cluster_uid(self.member.as_ref()?)
    }

    /// Whether the member serves `LeaderWorkerSets`, as far as the hub knows.
    pub(super) fn has_leader_worker_sets(&self) -> bool {
        self.member.as_ref().and_then(|member| member.status.as_ref()).is_some_and(|status| status.leader_worker_set_version.is_some())
    }

    /// Other members that are the cluster with this UID.
    pub(super) fn others_of(&self, cluster_uid: &str) -> Vec<String> {
        others_of(&self.others, cluster_uid)
    }

    pub(super) fn secret(&self) -> Gone {
        self.secret.as_ref().map_or(Gone::Absent, SecretFacts::fate)
    }

    /// The Secret that the member takes its kubeconfig from, if that isn't the one of its name.
    pub(super) fn other_secret(&self) -> Option<&str> {
        self.member.as_ref().map(|member| member.spec.secret_ref.name.as_str()).filter(|secret| *secret != self.name)
    }

    pub(super) async fn delete_secret(&self) -> anyhow::Result<()> {
        // Only the one that was looked at.
        let uid = self.secret.as_ref().and_then(|secret| secret.uid.clone());
        let params = DeleteParams { preconditions: Some(Preconditions { uid, resource_version: None }), ..DeleteParams::default() };
        match self.secrets().delete(&self.name, &params).await {
            Ok(_) => Ok(()),
            Err(Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error).with_context(|| format!("deleting Secret {}/{} of the hub", self.namespace, self.name)),
        }
    }

    pub(super) async fn unlabel_secret(&self) -> anyhow::Result<()> {
        let patch = json!({"metadata": {"labels": {MEMBER: null}}});
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        self.secrets()
            .patch_metadata(&self.name, &params, &Patch::Merge(&patch))
            .await
            .with_context(|| format!("taking the label {MEMBER} off Secret {}/{} of the hub", self.namespace, self.name))?;
        Ok(())
    }

    /// Deletes the `MemberCluster` and waits until it is gone.
    pub(super) async fn delete_member(&self, timeout: Duration) -> anyhow::Result<()> {
        let api: Api<MemberCluster> = Api::all(self.client.clone());
        let params = DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
        match api.delete(&self.name, &params).await {
            Ok(_) => {}
            Err(Error::Api(status)) if status.is_not_found() => return Ok(()),
            Err(error) => return Err(error).with_context(|| format!("deleting MemberCluster {}", self.name)),
        }
        let mut waiting = Waiting::new(timeout);
        while let Some(member) = api.get_opt(&self.name).await.context("reading the MemberCluster")? {
            if member.metadata.deletion_timestamp.is_none() {
                bail!("MemberCluster {} is there again: something on the hub registers it", self.name);
            }
            let holders = member.metadata.finalizers.unwrap_or_default().join(", ");
            let news = format!("MemberCluster {} is being deleted; finalizers that hold it: {holders}", self.name);
            if !waiting.more(&news).await? {
                bail!("{news}; not gone after {} s", timeout.as_secs());
            }
        }
        Ok(())
    }

    /// The hub's id, if the hub ever ran.
    pub(super) async fn hub_id(&self) -> anyhow::Result<Option<String>> {
        Hub::new(self.client.clone(), &self.namespace).known_id().await
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

fn cluster_uid(member: &MemberCluster) -> Option<&str> {
    member.status.as_ref()?.cluster_uid.as_deref()
}

fn others_of(others: &[MemberCluster], uid: &str) -> Vec<String> {
    others.iter().filter(|member| cluster_uid(member) == Some(uid)).filter_map(|member| member.metadata.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_join_wrote_is_deleted() {
        for (joined, registers, wanted) in [
            (true, true, Gone::Deleted),
            // What an interrupted run left behind.
            (true, false, Gone::Deleted),
            (false, true, Gone::Unlabelled),
            (false, false, Gone::Absent),
        ] {
            assert_eq!(SecretFacts { uid: None, registers, joined }.fate(), wanted, "{joined} {registers}");
        }
    }

    #[test]
    fn registrations_of_one_cluster_are_found() {
        let member = |name: &str, uid: Option<&str>| -> MemberCluster {
            serde_json::from_value(json!({
                "metadata": {"name": name}, "spec": {"secretRef": {"name": name}}, "status": {"clusterUID": uid},
            }))
            .unwrap()
        };
        let members = [member("b", Some("2")), member("c", Some("1")), member("d", None)];
        assert_eq!(others_of(&members, "1"), ["c"]);
        assert!(others_of(&members, "").is_empty());
    }
}
