//! `odin-hub unjoin`: takes a member off the hub again, and the hub's account out of the member.

mod hub;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::config::Kubeconfig;
use kube::{Api, Client};

use self::hub::{Gone, Registration};
use super::connection::{self, Connection};
use super::fetch::{Reader, typed};
use super::join::account;
use super::output;
use crate::api::labels::{HUB, MEMBER};
use crate::api::odin::InferenceService;

/// Services that are listed one by one.
const LISTED: usize = 20;

/// Take a member off the hub: the opposite of join
///
/// It refuses while services have replicas in the member. With the kubeconfig of an administrator of the member it also
/// removes the account that join made there; another hub that joined the same cluster uses the same account. Namespaces of
/// services are never removed. It may be run again.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// Name of the member on the hub
    name: String,
    /// Take it off even if services have replicas there; what runs there stays there
    #[arg(long)]
    force: bool,
    /// Kubeconfig of an administrator of the member, to remove the hub's account there
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context in that kubeconfig; else its current one
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,
    /// Namespace of the hub, on the hub
    #[arg(long, default_value = "odin-hub", env = "ODIN_HUB_NAMESPACE")]
    namespace: String,
    /// Kubeconfig of the hub; else the files in KUBECONFIG, else ~/.kube/config
    #[arg(long, value_name = "FILE")]
    hub_kubeconfig: Option<PathBuf>,
    /// Context in the hub's kubeconfig; else its current one
    #[arg(long, value_name = "NAME")]
    hub_context: Option<String>,
    /// Seconds to wait until the member is gone from the hub
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
}

/// Runs the command.
pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let name = args.name.as_str();
    let connection = Connection { kubeconfig: args.hub_kubeconfig.clone(), context: args.hub_context.clone() };
    let client = connection.client().await.context("the hub")?;
    let registration = Registration::of(client.clone(), &args.namespace, name).await?;
    let member = match &args.kubeconfig {
        Some(file) => Some(administrator(file, args.context.as_deref(), &registration).await?),
        None => None,
    };

    let held = holders(&client, name).await?;
    if !held.is_empty() && registration.is_there() && !args.force {
        bail!("{}", refusal(name, &held));
    }

    output::line(format_args!("member {name}"))?;
    match registration.secret() {
        Gone::Deleted => {
            registration.delete_secret().await?;
            output::line(format_args!("  Secret {}/{name} deleted on the hub", args.namespace))?;
        }
        Gone::Unlabelled => {
            registration.unlabel_secret().await?;
            output::line(format_args!("  Secret {}/{name} was not written by join: it stays, without the label {MEMBER}", args.namespace))?;
        }
        Gone::Absent => output::line(format_args!("  no Secret {}/{name} registers it", args.namespace))?,
    }
    if let Some(other) = registration.other_secret() {
        output::line(format_args!("  Secret {}/{other}, which it took its kubeconfig from, stays as it is", args.namespace))?;
    }
    if registration.is_registered() {
        registration.delete_member(Duration::from_secs(args.timeout)).await?;
        output::line(format_args!("  MemberCluster {name} deleted on the hub"))?;
    } else {
        output::line(format_args!("  no MemberCluster {name} on the hub"))?;
    }

    match &member {
        None => output::line("  the hub's account in the member stays: --kubeconfig of its administrator removes it")?,
        Some((client, uid)) => match registration.others_of(uid).as_slice() {
            [] => {
                for outcome in account::remove(client).await? {
                    output::line(format_args!("  {outcome}"))?;
                }
            }
            others => output::line(format_args!(
                "  the hub's account in the member stays: the cluster is also registered as {}",
                others.join(", ")
            ))?,
        },
    }
    if !held.is_empty() {
        output::line(left_behind(name, &held, registration.has_leader_worker_sets(), registration.hub_id().await?.as_deref()))?;
    }
    Ok(())
}

/// A client of the member's administrator, and the UID of the cluster that it leads to, which must be the one that the hub
/// knows under the name.
async fn administrator(file: &Path, context: Option<&str>, registration: &Registration) -> anyhow::Result<(Client, String)> {
    let told = || format!("kubeconfig {}", file.display());
    let kubeconfig = Kubeconfig::read_from(file).with_context(told)?;
    let client = connection::client(connection::config(kubeconfig, context).await.with_context(told)?).with_context(told)?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let uid = namespaces.get_metadata("kube-system").await.with_context(told)?.metadata.uid.unwrap_or_default();
    if let Some(known) = registration.cluster_uid() {
        ensure!(
            uid == known,
            "{} leads to another cluster than the member's, whose namespace kube-system has the UID {known}: name the member's context \
             with --context",
            told()
        );
    }
    Ok((client, uid))
}

/// `namespace/name` and replicas of the services with a placement in the member, sorted.
async fn holders(client: &Client, member: &str) -> anyhow::Result<Vec<(String, i32)>> {
    let services = Reader::<InferenceService>::all(client).list().await?;
    let services: Vec<InferenceService> = services.iter().map(typed).collect::<Result<_, _>>()?;
    Ok(placed_in(&services, member))
}

/// The services with a placement in a member, with the replicas that are placed there.
pub(super) fn placed_in(services: &[InferenceService], member: &str) -> Vec<(String, i32)> {
    let mut held: Vec<(String, i32)> = services
        .iter()
        .filter_map(|service| {
            let placement = service.status.as_ref()?.placements.iter().find(|placement| placement.cluster == member)?;
            let metadata = &service.metadata;
            let (namespace, name) = (metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default());
            Some((format!("{namespace}/{name}"), placement.replicas))
        })
        .collect();
    held.sort();
    held
}

fn count(held: &[(String, i32)]) -> String {
    if held.len() == 1 { "1 service".to_owned() } else { format!("{} services", held.len()) }
}

fn refusal(member: &str, held: &[(String, i32)]) -> String {
    let mut lines = vec![format!("{member} holds replicas of {}:", count(held))];
    lines.extend(held.iter().take(LISTED).map(|(service, replicas)| format!("  {service}: {replicas}")));
    if held.len() > LISTED {
        lines.push(format!("  and {} more: `odin-hub explain cluster/{member}` lists all", held.len() - LISTED));
    }
    lines.push(
        "move them to other members or delete them first; --force takes the member off the hub and leaves there what runs there".to_owned(),
    );
    lines.join("\n")
}

fn left_behind(member: &str, held: &[(String, i32)], leader_worker_sets: bool, hub_id: Option<&str>) -> String {
    // kubectl refuses to list a kind that isn't installed.
    let kinds = if leader_worker_sets { "deployments,leaderworkersets,services" } else { "deployments,services" };
    let selector = hub_id.map_or_else(|| HUB.to_owned(), |id| format!("{HUB}={}", crate::api::labels::label_value(id)));
    format!(
        "  what {} had in {member} stays there and nobody looks after it; as the member's administrator find it with\n    \
         kubectl get {kinds} -A -l {selector}",
        count(held)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_is_in_the_way_is_listed() {
        let services: Vec<InferenceService> = serde_json::from_value(json!([
            {"metadata": {"namespace": "demo", "name": "elsewhere"}, "spec": {},
             "status": {"placements": [{"cluster": "gpu-b", "replicas": 1, "phase": "Ready"}]}},
            {"metadata": {"namespace": "demo", "name": "leaving"}, "spec": {},
             "status": {"placements": [{"cluster": "gpu-a", "replicas": 0, "phase": "Leaving"}]}},
            {"metadata": {"namespace": "demo", "name": "chat"}, "spec": {},
             "status": {"placements": [{"cluster": "gpu-a", "replicas": 2, "phase": "Ready"}, {"cluster": "gpu-b", "replicas": 1, "phase": "Ready"}]}},
            {"metadata": {"namespace": "demo", "name": "new"}, "spec": {}},
        ]))
        .unwrap();
        let held = placed_in(&services, "gpu-a");
        assert_eq!(held, [("demo/chat".to_owned(), 2), ("demo/leaving".to_owned(), 0)]);
        let text = refusal("gpu-a", &held);
        assert!(text.starts_with("gpu-a holds replicas of 2 services:\n  demo/chat: 2\n  demo/leaving: 0\n"), "{text}");
        assert!(text.contains("--force"), "{text}");
    }

    #[test]
    fn a_long_list_is_cut() {
        let held: Vec<(String, i32)> = (0..1000).map(|i| (format!("demo/s{i:04}"), 1)).collect();
        let text = refusal("gpu-a", &held);
        assert!(text.lines().count() < 25 && text.contains("and 980 more"), "{text}");
    }

    #[test]
    fn what_stays_can_be_found() {
        let held = [("demo/chat".to_owned(), 2)];
        let text = left_behind("gpu-a", &held, true, Some("hub-1"));
        assert!(
            text.contains("what 1 service had in gpu-a")
                && text.ends_with("get deployments,leaderworkersets,services -A -l federation.odin.moreh.io/hub=hub-1"),
            "{text}"
        );
        assert!(left_behind("gpu-a", &held, false, None).ends_with("get deployments,services -A -l federation.odin.moreh.io/hub"));
    }
}
