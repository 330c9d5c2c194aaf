//! `odin-hub services`: the services of the hub.

use jiff::Timestamp;
use serde_json::Value;

use super::connection::Connection;
use super::fetch::{Reader, typed};
use super::output::{self, Listing};
use super::table::{Table, age};
use crate::api::condition::{self, service::READY};
use crate::api::odin::InferenceService;

/// List services: what is wanted, what serves, and where
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// Only these services
    #[arg(conflicts_with = "all_namespaces")]
    names: Vec<String>,
    /// Namespace of the services; else that of the kubeconfig's context
    #[arg(short, long)]
    namespace: Option<String>,
    /// Services of all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Form of what is printed: a table with more columns, or the objects
    #[arg(short, long, value_enum)]
    output: Option<Listing>,
    #[command(flatten)]
    connection: Connection,
}

/// Runs the command.
pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let client = args.connection.client().await?;
    let namespace = args.namespace.as_deref().unwrap_or_else(|| client.default_namespace());
    let (reader, none) = if args.all_namespaces {
        (Reader::<InferenceService>::all(&client), "there are no services on the hub".to_owned())
    } else {
        let none = format!("there are no services in namespace {namespace}: -n names another one, -A shows all");
        (Reader::namespaced(&client, namespace), none)
    };
    let table = |objects: &[_]| {
        let services: Vec<InferenceService> = objects.iter().map(typed).collect::<Result<_, _>>()?;
        Ok(table(&services, args.all_namespaces, args.output == Some(Listing::Wide), Timestamp::now()))
    };
    output::listing(&reader, &args.names, args.output, &none, table).await
}

fn table(services: &[InferenceService], namespaces: bool, wide: bool, now: Timestamp) -> Table {
    let mut headers = if namespaces { vec!["NAMESPACE"] } else { Vec::new() };
    headers.extend(["NAME", "READY", "DESIRED", "UP-TO-DATE", "SERVING", "CLUSTERS", "REASON", "AGE"]);
    if wide {
        headers.extend(["WORKLOAD", "MODEL", "UNPLACED", "MESSAGE"]);
    }
    let mut table = Table::new(headers);
    for service in services {
        let status = service.status.clone().unwrap_or_default();
        let ready = condition::find(&status.conditions, READY);
        let count = |count: Option<i32>| count.map(|count| count.to_string());
        let mut cells = if namespaces { vec![service.metadata.namespace.clone()] } else { Vec::new() };
        cells.extend([
            service.metadata.name.clone(),
            ready.map(|ready| ready.status.clone()),
            count(service.spec.replicas),
            count(status.updated_replicas),
            count(status.ready_replicas),
            status.clusters.clone(),
            ready.map(|ready| ready.reason.clone()),
            Some(age(service.metadata.creation_timestamp.as_ref(), now)),
        ]);
        if wide {
            let model = status.rendered_spec.as_ref().and_then(|spec| spec.pointer("/model/name")).and_then(Value::as_str);
            cells.extend([
                status.workload.as_ref().map(|workload| workload.kind.as_str().to_owned()),
                model.map(ToOwned::to_owned),
                count(status.unplaced_replicas),
                ready.map(|ready| ready.message.clone()),
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
        let services: Vec<InferenceService> = serde_json::from_value(json!([
            {
                "metadata": {"name": "chat", "namespace": "demo", "creationTimestamp": "2029-12-31T20:00:00Z"}, "spec": {"replicas": 3},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True", "reason": "AllReplicasReady", "message": "3 of 3",
                                    "lastTransitionTime": "2029-12-31T20:00:00Z"}],
                    "updatedReplicas": 3, "readyReplicas": 3, "clusters": "gpu-a:2,gpu-b:1", "unplacedReplicas": 0,
                    "renderedSpec": {"model": {"name": "example/chat"}}, "workload": {"kind": "Deployment", "name": "chat"},
                },
            },
            {"metadata": {"name": "new", "namespace": "other", "creationTimestamp": "2029-12-31T23:59:58Z"}, "spec": {"replicas": 1}},
        ]))
        .unwrap();
        let now = "2030-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(
            table(&services, false, false, now).to_string(),
            "\
NAME   READY    DESIRED   UP-TO-DATE   SERVING   CLUSTERS          REASON             AGE
chat   True     3         3            3         gpu-a:2,gpu-b:1   AllReplicasReady   4h
new    <none>   1         <none>       <none>    <none>            <none>             2s
"
        );
        let wide = table(&services, true, true, now).to_string();
        let lines: Vec<&str> = wide.lines().collect();
        assert!(
            lines[0].starts_with("NAMESPACE   NAME   READY") && lines[0].ends_with("WORKLOAD     MODEL          UNPLACED   MESSAGE"),
            "{wide}"
        );
        assert!(lines[1].starts_with("demo        chat") && lines[1].ends_with("Deployment   example/chat   0          3 of 3"), "{wide}");
    }
}
