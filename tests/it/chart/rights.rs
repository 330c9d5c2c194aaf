//! What a real API server says to the chart: of its objects, of the hub's rights, and of those of people.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result, anyhow, ensure};
use k8s_openapi::api::authorization::v1::{SelfSubjectRulesReview, SelfSubjectRulesReviewSpec};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use odin_hub::api::federation::MemberCluster;
use odin_hub::api::odin::{InferenceService, RuntimeBase};
use sandbox::apply::{apply_values, documents};
use sandbox::cluster::client_of;
use sandbox::hub::{ACCOUNT, NAMESPACE, repository};
use sandbox::{ApplyOptions, Cluster, eventually};
use serde_json::{Value, json};

use super::{Offline, full, one, strings};
use crate::world::{LIMIT, world};

#[tokio::test]
async fn an_api_server_takes_every_object_in_strict_mode() -> Result<()> {
    let (world, offline) = (world().await, Offline::new().await?);
    let client = world.fleet.hub().client().await?;
    for (release, values) in [("dry", json!({})), ("dry-full", full())] {
        let mut objects = offline.template(release, NAMESPACE, &values).await?;
        // Its kind is the Prometheus Operator's.
        objects.retain(|object| object["kind"] != "ServiceMonitor");
        let dry = ApplyOptions { dry_run: true, ..ApplyOptions::default() };
        apply_values(&client, objects, &dry).await.with_context(|| format!("{values}"))?;
    }
    Ok(())
}

#[tokio::test]
async fn the_pod_may_run_where_pod_security_is_restricted() -> Result<()> {
    let (world, namespace) = (world().await, "chart-restricted");
    let restricted = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let place = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": restricted}});
    let objects = Offline::new().await?.template("odin-hub", namespace, &json!({})).await?;
    let client = world.fleet.hub().client().await?;
    apply_values(&client, vec![place, one(&objects, "ServiceAccount").clone()], &ApplyOptions::default()).await?;
    let template = &one(&objects, "Deployment")["spec"]["template"];
    let create = async |spec: &Value| {
        let pod = json!({"metadata": {"name": "hub", "labels": template["metadata"]["labels"]}, "spec": spec});
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        Api::<Pod>::namespaced(client.clone(), namespace).create(&dry, &serde_json::from_value(pod)?).await?;
        anyhow::Ok(())
    };
    create(&template["spec"]).await?;
    let mut lax = template["spec"].clone();
    lax["containers"][0]["securityContext"] = json!({});
    let refused = create(&lax).await.map_or_else(|error| format!("{error:#}"), |()| "taken".to_owned());
    ensure!(refused.contains("allowPrivilegeEscalation"), "{refused}");
    Ok(())
}

/// Verbs by `resource.group`, with the names that they are limited to.
type Rights = BTreeMap<String, BTreeSet<String>>;

/// What whoever has this kubeconfig may do in a namespace.
async fn rights(kubeconfig: &str, namespace: &str) -> Result<Rights> {
    let review = SelfSubjectRulesReview {
        spec: SelfSubjectRulesReviewSpec { namespace: Some(namespace.to_owned()) },
        ..SelfSubjectRulesReview::default()
    };
    let api: Api<SelfSubjectRulesReview> = Api::all(client_of(kubeconfig).await?);
    let status = api.create(&PostParams::default(), &review).await?.status.context("no status")?;
    ensure!(!status.incomplete, "{:?}", status.evaluation_error);
    let mut rights = Rights::new();
    for rule in status.resource_rules {
        for resource in rule.resources.iter().flatten() {
            for group in rule.api_groups.iter().flatten() {
                let mut name = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
                if let Some(names) = rule.resource_names.as_ref().filter(|names| !names.is_empty()) {
                    name = format!("{name} {}", names.join(","));
                }
                rights.entry(name).or_default().extend(rule.verbs.iter().cloned());
            }
        }
    }
    Ok(rights)
}

/// The rights of the hub's account in a namespace, beyond those that every account has.
async fn rights_of_the_hub(hub: &Cluster, namespace: &str) -> Result<Vec<String>> {
    let anybody = rights(&hub.kubeconfig_for_service_account("default", "default").await?, namespace).await?;
    let mut rights = rights(&hub.kubeconfig_for_service_account(NAMESPACE, ACCOUNT).await?, namespace).await?;
    rights.retain(|resource, verbs| anybody.get(resource) != Some(verbs));
    Ok(rights.iter().map(|(resource, verbs)| format!("{resource}: {}", verbs.iter().cloned().collect::<Vec<_>>().join(" "))).collect())
}

/// Everything, so that whoever widens the chart's roles has to say so here.
#[tokio::test]
async fn the_hubs_account_may_do_this_and_nothing_else() -> Result<()> {
    let world = world().await;
    let hub = world.fleet.hub();
    let everywhere = [
        "clusterinferenceservicetemplates.odin.moreh.io: list watch",
        "events.events.k8s.io: create",
        "inferencepools.inference.networking.k8s.io: list watch",
        "inferencepools.inference.networking.x-k8s.io: list watch",
        "inferenceservices.odin.moreh.io: list patch watch",
        "inferenceservices/status.odin.moreh.io: patch",
        "inferenceservicetemplates.odin.moreh.io: list watch",
        "memberclusters.federation.odin.moreh.io: create list watch",
        "memberclusters/status.federation.odin.moreh.io: patch",
        "namespaces: get list watch",
        "runtimebases.odin.moreh.io: list watch",
    ];
    assert_eq!(rights_of_the_hub(hub, "default").await?, everywhere);
    let own = ["configmaps: create", "configmaps odin-hub-id: get", "secrets: list watch"];
    let at_home: BTreeSet<String> = everywhere.into_iter().chain(own).map(str::to_owned).collect();
    assert_eq!(rights_of_the_hub(hub, NAMESPACE).await?.into_iter().collect::<BTreeSet<_>>(), at_home);

    // The same by deed, where it matters most.
    let client = client_of(&hub.kubeconfig_for_service_account(NAMESPACE, ACCOUNT).await?).await?;
    Api::<Secret>::namespaced(client.clone(), NAMESPACE).list(&ListParams::default()).await?;
    for namespace in ["default", "kube-system"] {
        refused(Api::<Secret>::namespaced(client.clone(), namespace).list(&ListParams::default()).await)?;
    }
    refused(Api::<Secret>::all(client.clone()).list(&ListParams::default()).await)?;
    refused(Api::<Pod>::namespaced(client, NAMESPACE).list(&ListParams::default()).await)
}

fn refused<T>(answer: kube::Result<T>) -> Result<()> {
    match answer {
        Ok(_) => Err(anyhow!("it was allowed")),
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(()),
        Err(other) => Err(other.into()),
    }
}

/// RBAC by `kubectl create rolebinding`, as an administrator gives it to people.
fn bind(kind: &str, user: &str, role: &str, namespace: Option<&str>) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "metadata": {"name": format!("{user}-{role}"), "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

#[tokio::test]
async fn tenants_write_services_in_their_namespace_and_nothing_of_the_federation() -> Result<()> {
    let (world, namespace) = (world().await, "chart-tenants");
    let hub = world.fleet.hub();
    let place = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let mut objects = vec![place, bind("ClusterRoleBinding", "chart-reader", "odin-hub-catalog-viewer", None)];
    for role in ["view", "edit", "admin"] {
        objects.push(bind("RoleBinding", &format!("chart-{role}"), role, Some(namespace)));
    }
    apply_values(&hub.client().await?, objects, &ApplyOptions::default()).await?;
    let client_of_user = async |user: &str| -> Result<Client> { client_of(&hub.kubeconfig_for_user(user, &[])?).await };
    let service = |name: &str| -> Result<InferenceService> {
        let metadata = json!({"name": name, "namespace": namespace});
        let suspended =
            json!({"apiVersion": "odin.moreh.io/v1alpha1", "kind": "InferenceService", "metadata": metadata, "spec": {"replicas": 0}});
        Ok(serde_json::from_value(suspended)?)
    };
    for user in ["chart-edit", "chart-admin"] {
        let client = client_of_user(user).await?;
        let services: Api<InferenceService> = Api::namespaced(client.clone(), namespace);
        // The roles are put together by a controller, and the API server reads them from a cache.
        eventually("a tenant may make a service", LIMIT, || async {
            Ok(services.create(&PostParams::default(), &service(user)?).await.map(drop)?)
        })
        .await?;
        services.patch_scale(user, &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 0}}))).await?;
        services.list(&ListParams::default()).await?;
        refused(services.patch_status(user, &PatchParams::default(), &Patch::Merge(json!({"status": {"replicas": 9}}))).await)?;
        refused(Api::<InferenceService>::namespaced(client.clone(), "default").list(&ListParams::default()).await)?;
        let member = serde_json::from_value(json!({"apiVersion": "federation.odin.moreh.io/v1alpha1", "kind": "MemberCluster",
            "metadata": {"name": "chart-tenant"}, "spec": {"secretRef": {"name": "x"}}}))?;
        refused(Api::<MemberCluster>::all(client.clone()).create(&PostParams::default(), &member).await)?;
        refused(Api::<MemberCluster>::all(client.clone()).list(&ListParams::default()).await)?;
        refused(Api::<RuntimeBase>::all(client).list(&ListParams::default()).await)?;
    }
    let services: Api<InferenceService> = Api::namespaced(client_of_user("chart-view").await?, namespace);
    ensure!(services.list(&ListParams::default()).await?.items.len() == 2, "a viewer sees both services");
    services.get_scale("chart-edit").await?;
    refused(services.create(&PostParams::default(), &service("by-a-viewer")?).await)?;
    refused(services.patch_scale("chart-edit", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 1}}))).await)?;

    let reader = client_of_user("chart-reader").await?;
    Api::<RuntimeBase>::all(reader.clone()).list(&ListParams::default()).await?;
    let base = serde_json::from_value(
        json!({"apiVersion": "odin.moreh.io/v1alpha1", "kind": "RuntimeBase", "metadata": {"name": "x"}, "spec": {}}),
    )?;
    refused(Api::<RuntimeBase>::all(reader.clone()).create(&PostParams::default(), &base).await)?;
    refused(Api::<MemberCluster>::all(reader).list(&ListParams::default()).await)
}

/// What is added to view and edit holds in each namespace, so a cluster-scoped kind among it would be dead words, or a leak
/// to whoever has view in the whole cluster.
#[tokio::test]
async fn only_namespaced_kinds_are_added_to_view_and_edit() -> Result<()> {
    let mut namespaced = BTreeSet::new();
    for file in fs::read_dir(repository().join("charts/odin-hub/crds"))? {
        for crd in documents(&fs::read_to_string(file?.path())?)? {
            if crd["spec"]["scope"] == "Namespaced" && crd["spec"]["group"] == "odin.moreh.io" {
                namespaced.insert(crd["spec"]["names"]["plural"].as_str().context("plural")?.to_owned());
            }
        }
    }
    let objects = Offline::new().await?.template("odin-hub", "odin-hub", &json!({})).await?;
    let mut added = BTreeSet::new();
    for role in objects.iter().filter(|object| object["kind"] == "ClusterRole") {
        let labels = role["metadata"]["labels"].as_object().context("labels")?;
        if labels.keys().any(|label| label.starts_with("rbac.authorization.k8s.io/aggregate-to-")) {
            for rule in role["rules"].as_array().context("rules")? {
                ensure!(strings(&rule["apiGroups"]) == ["odin.moreh.io"], "{rule}");
                added.extend(strings(&rule["resources"]).iter().filter_map(|name| name.split('/').next()).map(str::to_owned));
            }
        }
    }
    assert_eq!(added, namespaced);
    Ok(())
}
