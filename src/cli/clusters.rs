//! `odin-hub clusters`: the members of the hub.

use jiff::Timestamp;

use super::connection::Connection;
use super::fetch::{Reader, typed};
use super::output::{self, Listing};
use super::table::{Table, age};
use crate::api::condition::{self, member::READY};
use crate::api::federation::MemberCluster;

/// List the member clusters: what they are, what they have free and what they hold
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// Only these members
    names: Vec<String>,
    /// Form of what is printed: a table with more columns, or the objects
    #[arg(short, long, value_enum)]
    output: Option<Listing>,
    #[command(flatten)]
    connection: Connection,
}

/// Runs the command.
pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let reader = Reader::<MemberCluster>::all(&args.connection.client().await?);
    let table = |objects: &[_]| {
        let members: Vec<MemberCluster> = objects.iter().map(typed).collect::<Result<_, _>>()?;
        Ok(table(&members, args.output == Some(Listing::Wide), Timestamp::now()))
    };
    output::listing(&reader, &args.names, args.output, "the hub has no members: `odin-hub join` registers one", table).await
}

fn table(members: &[MemberCluster], wide: bool, now: Timestamp) -> Table {
    let mut headers = vec!["NAME", "READY", "VERSION", "LWS", "ACCELERATORS", "SERVICES", "REPLICAS", "AGE"];
    if wide {
        headers.extend(["REASON", "MESSAGE", "CREDENTIAL", "LAST SEEN"]);
    }
    let mut table = Table::new(headers);
    for member in members {
        let status = member.status.clone().unwrap_or_default();
        let ready = condition::find(&status.conditions, READY);
        let mut cells = vec![
            member.metadata.name.clone(),
            ready.map(|ready| ready.status.clone()),
            status.kubernetes_version,
            status.leader_worker_set_version,
            status.accelerator_summary,
            status.services.map(|services| services.to_string()),
            status.replicas.map(|replicas| replicas.to_string()),
            Some(age(member.metadata.creation_timestamp.as_ref(), now)),
        ];
        if wide {
            cells.extend([
                ready.map(|ready| ready.reason.clone()),
                ready.map(|ready| ready.message.clone()),
                status.credential.and_then(|credential| credential.expires_in),
                status.last_seen.map(|at| format!("{} ago", age(Some(&at), now))),
            ]);
        }
        table.push(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table() {
        let members: Vec<MemberCluster> = serde_json::from_value(json!([
            {
                "metadata": {"name": "gpu-a", "creationTimestamp": "2029-12-31T20:00:00Z"}, "spec": {"secretRef": {"name": "gpu-a"}},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True", "reason": "Connected", "message": "answers",
                                    "lastTransitionTime": "2029-12-31T20:00:00Z"}],
                    "kubernetesVersion": "v1.36.3", "leaderWorkerSetVersion": "v1", "acceleratorSummary": "24/64 mi300x, 8/8 h200",
                    "services": 2, "replicas": 5, "credential": {"type": "token", "expiresIn": "364 days"},
                },
            },
            {
                "metadata": {"name": "gpu-b", "creationTimestamp": "2029-12-29T20:00:00Z"}, "spec": {"secretRef": {"name": "gpu-b"}},
                "status": {
                    "conditions": [{"type": "Ready", "status": "Unknown", "reason": "Unreachable", "message": "no answer\nat all",
                                    "lastTransitionTime": "2029-12-31T20:00:00Z"}],
                    "lastSeen": "2029-12-31T23:55:00Z",
                },
            },
            {"metadata": {"name": "new"}, "spec": {"secretRef": {"name": "new"}}},
        ]))
        .unwrap();
        let now = "2030-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(
            table(&members, false, now).to_string(),
            "\
NAME    READY     VERSION   LWS      ACCELERATORS             SERVICES   REPLICAS   AGE
gpu-a   True      v1.36.3   v1       24/64 mi300x, 8/8 h200   2          5          4h
gpu-b   Unknown   <none>    <none>   <none>                   <none>     <none>     2d4h
new     <none>    <none>    <none>   <none>                   <none>     <none>     <unknown>
"
        );
        let wide = table(&members, true, now).to_string();
        let ends = ["REASON        MESSAGE            CREDENTIAL   LAST SEEN", "364 days     <none>", "<none>       5m ago", "<none>"];
        for (line, end) in wide.lines().zip(ends) {
            assert!(line.ends_with(end), "{wide}");
        }
        assert!(wide.contains("Unreachable   no answer at all"), "{wide}");
    }
}
