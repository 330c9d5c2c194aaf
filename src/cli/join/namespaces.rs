//! `--allow-namespace`: namespaces of the member that the hub may use although it didn't make them.

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use super::MANAGER;
use crate::api::labels::ALLOW;
use crate::member::{PROTECTED_NAMESPACES, matches};

/// What is to be done with the namespaces that the patterns match.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// To be labelled, sorted.
    pub(super) label: Vec<String>,
    /// Left alone, each with the reason.
    pub(super) skipped: Vec<(String, String)>,
}

/// Finds the namespaces that the patterns match. A pattern that matches none is taken for a mistake.
pub(super) async fn plan(client: &Client, patterns: &[String], hub_id: &str) -> anyhow::Result<Plan> {
    let api: Api<Namespace> = Api::all(client.clone());
    let namespaces = api.list_metadata(&ListParams::default()).await.context("listing the member's namespaces")?;
    let namespaces: Vec<(String, Option<String>)> =
        namespaces.iter().map(|namespace| (namespace.name_any(), namespace.labels().get(ALLOW).cloned())).collect();
    decide(&namespaces, patterns, hub_id)
}

/// `namespaces` are names with the value of their allow label.
fn decide(namespaces: &[(String, Option<String>)], patterns: &[String], hub_id: &str) -> anyhow::Result<Plan> {
    for pattern in patterns {
        ensure!(
            namespaces.iter().any(|(name, _)| matches(pattern, name)),
            "no namespace of the member matches {pattern:?}; the hub makes missing namespaces itself, only existing ones need to be allowed"
        );
    }
    let mut plan = Plan::default();
    for (name, allowed) in namespaces.iter().filter(|(name, _)| patterns.iter().any(|pattern| matches(pattern, name))) {
        if PROTECTED_NAMESPACES.iter().any(|protected| matches(protected, name)) {
            plan.skipped.push((name.clone(), "a system namespace, where the hub never writes".to_owned()));
        } else if let Some(other) = allowed.as_ref().filter(|id| !id.is_empty() && *id != hub_id) {
            plan.skipped.push((name.clone(), format!("its label {ALLOW} allows another hub, {other}: take that label off first")));
        } else {
            plan.label.push(name.clone());
        }
    }
    plan.label.sort();
    plan.skipped.sort();
    Ok(plan)
}

/// Puts the label on one namespace, and changes nothing else of it.
pub(super) async fn allow(client: &Client, name: &str, hub_id: &str) -> anyhow::Result<()> {
    let api: Api<Namespace> = Api::all(client.clone());
    let labelled = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {ALLOW: hub_id}}});
    api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&labelled))
        .await
        .with_context(|| format!("labelling namespace {name} of the member"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_namespaces_are_labelled() {
        let namespaces: Vec<(String, Option<String>)> =
            [("team-b", None), ("team-a", Some("hub-1")), ("team-c", Some("hub-2")), ("other", None), ("kube-system", None)]
                .into_iter()
                .map(|(name, allowed)| (name.to_owned(), allowed.map(ToOwned::to_owned)))
                .collect();
        let patterns = |all: &[&str]| all.iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>();
        let plan = decide(&namespaces, &patterns(&["team-*", "kube-system"]), "hub-1").unwrap();
        assert_eq!(plan.label, ["team-a", "team-b"]);
        let skipped: Vec<&str> = plan.skipped.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(skipped, ["kube-system", "team-c"]);
        assert!(plan.skipped[1].1.contains("hub-2"));
        let error = decide(&namespaces, &patterns(&["other", "taem-*"]), "hub-1").unwrap_err();
        assert!(error.to_string().contains("\"taem-*\""), "{error}");
        assert_eq!(decide(&namespaces, &[], "hub-1").unwrap(), Plan::default());
    }
}
