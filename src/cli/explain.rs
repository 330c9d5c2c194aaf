//! `odin-hub explain`: why a service or a member is as it is, in words.

mod cluster;
mod service;
mod state;

use anyhow::Context as _;
use jiff::Timestamp;

use super::connection::Connection;
use super::fetch::{Reader, typed};
use super::output::{self, Form};
use crate::api::federation::MemberCluster;
use crate::api::odin::InferenceService;

/// Explain a service: what is wanted, where it is, the one cause of trouble and what to do about it
///
/// `explain cluster/NAME` explains a member.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// Name of a service, or service/NAME or cluster/NAME
    #[arg(value_name = "[TYPE/]NAME", value_parser = Subject::parse)]
    subject: Subject,
    /// Namespace of the service; else that of the kubeconfig's context
    #[arg(short, long)]
    namespace: Option<String>,
    /// The same as data
    #[arg(short, long, value_enum)]
    output: Option<Form>,
    #[command(flatten)]
    connection: Connection,
}

/// What is to be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    Service(String),
    Cluster(String),
}

impl Subject {
    /// `NAME` is a service. The types are the names that kubectl takes too, and `service`, `cluster` and `member` for short.
    fn parse(text: &str) -> Result<Self, String> {
        let (type_, name) = text.split_once('/').unwrap_or(("service", text));
        if name.is_empty() || name.contains('/') {
            return Err("must be NAME, service/NAME or cluster/NAME".to_owned());
        }
        let bare = type_.to_ascii_lowercase();
        let bare = bare.trim_end_matches(".odin.moreh.io").trim_end_matches(".federation");
        match bare {
            "service" | "services" | "inferenceservice" | "inferenceservices" | "isvc" | "is" => Ok(Self::Service(name.to_owned())),
            "cluster" | "clusters" | "member" | "members" | "membercluster" | "memberclusters" | "mcl" => {
                Ok(Self::Cluster(name.to_owned()))
            }
            _ => Err(format!("{type_} is no type that can be explained: use service/{name} or cluster/{name}")),
        }
    }
}

/// Runs the command.
pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let client = args.connection.client().await?;
    let now = Timestamp::now();
    let text = match &args.subject {
        Subject::Service(name) => {
            let namespace = args.namespace.as_deref().unwrap_or_else(|| client.default_namespace());
            let service = Reader::<InferenceService>::namespaced(&client, namespace).get(name).await?;
            let told = service::explain(&service);
            args.output.map_or_else(|| Ok(service::text(&told, now)), |form| output::text(form, &told))?
        }
        Subject::Cluster(name) => {
            let member = Reader::<MemberCluster>::all(&client).get(name).await?;
            let services = Reader::<InferenceService>::all(&client).list().await.context("services in the member")?;
            let services: Vec<InferenceService> = services.iter().map(typed).collect::<Result<_, _>>()?;
            let told = cluster::explain(&member, &services);
            args.output.map_or_else(|| Ok(cluster::text(&told, now)), |form| output::text(form, &told))?
        }
    };
    Ok(output::print(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_explained() {
        let service = || Ok(Subject::Service("chat".to_owned()));
        let cluster = || Ok(Subject::Cluster("gpu-a".to_owned()));
        for (text, wanted) in [
            ("chat", service()),
            ("service/chat", service()),
            ("isvc/chat", service()),
            ("InferenceService/chat", service()),
            ("inferenceservice.odin.moreh.io/chat", service()),
            ("cluster/gpu-a", cluster()),
            ("membercluster.federation.odin.moreh.io/gpu-a", cluster()),
            ("mcl/gpu-a", cluster()),
        ] {
            assert_eq!(Subject::parse(text), wanted, "{text}");
        }
        for (text, wanted) in
            [("", "must be NAME"), ("service/", "must be NAME"), ("demo/a/b", "must be NAME"), ("pod/a", "use service/a or cluster/a")]
        {
            assert!(Subject::parse(text).is_err_and(|error| error.contains(wanted)), "{text}");
        }
    }
}
