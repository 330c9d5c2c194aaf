//! `odin-hub join`: makes the hub's account in a member and registers the member on the hub.

pub(super) mod account;
mod kubeconfig;
mod namespaces;
pub(super) mod registration;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use kube::config::Kubeconfig;
use secrecy::ExposeSecret as _;

use self::kubeconfig::Endpoint;
use self::registration::Hub;
use super::connection::{self, Connection};
use super::output;

/// Field manager of what join writes, in the member and on the hub.
pub(super) const MANAGER: &str = "odin-hub-join";

/// Register a cluster as a member: make the hub's account in it, and a Secret with that account's kubeconfig on the hub
///
/// The member's kubeconfig is used on this machine only, by join itself, and may use exec plugins. What the hub gets is a
/// token of an account that may do what the hub needs and nothing else. Run it again to renew the token.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// Name of the member on the hub: lower-case letters, digits and `-`
    #[arg(value_parser = dns_label)]
    name: String,
    /// Kubeconfig of an administrator of the member
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Context in that kubeconfig; else its current one
    #[arg(long, value_name = "NAME")]
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
    /// Use a token that doesn't end, for a hub that may be down for longer than the member lets tokens live
    #[arg(long)]
    long_lived: bool,
    /// Existing namespaces of the member that the hub may write in, by name or pattern with `*`
    #[arg(long, value_name = "PATTERN", num_args = 1.., value_delimiter = ',')]
    allow_namespace: Vec<String>,
    /// Look at both clusters and print what would be written, but write nothing
    #[arg(long)]
    dry_run: bool,
    /// Wait until the hub says that the member is ready
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = clap::ArgAction::Set)]
    wait: bool,
    /// Seconds to wait
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
}

/// Runs the command.
pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let name = args.name.as_str();
    let file = || format!("kubeconfig {}", args.kubeconfig.display());
    let administrator = Kubeconfig::read_from(&args.kubeconfig).with_context(file)?;
    let endpoint = Endpoint::of(&administrator, args.context.as_deref()).with_context(file)?;

    let connection = Connection { kubeconfig: args.hub_kubeconfig.clone(), context: args.hub_context.clone() };
    let hub = Hub::new(connection.client().await.context("the hub")?, &args.namespace);
    let known = hub.check(name).await?;
    let hub_id = if args.allow_namespace.is_empty() { String::new() } else { hub.id().await? };

    let config = connection::config(administrator, args.context.as_deref()).await.with_context(file)?;
    let member = connection::client(config).with_context(file)?;
    let version = member.apiserver_version().await.with_context(|| format!("asking {} for its version", endpoint.server))?;
    let plan = match args.allow_namespace.as_slice() {
        [] => namespaces::Plan::default(),
        patterns => namespaces::plan(&member, patterns, &hub_id).await?,
    };
    output::line(format_args!("member {name}: {}, Kubernetes {}", endpoint.server, version.git_version))?;
    if endpoint.authority.is_none() {
        output::line("  no CA in the kubeconfig: the hub will trust public CAs for it")?;
    }
    for (namespace, reason) in &plan.skipped {
        output::line(format_args!("  namespace {namespace} left alone: {reason}"))?;
    }

    if args.dry_run {
        output::line("would apply in the member:")?;
        for object in account::manifest()? {
            let kind = object.types.map(|types| types.kind).unwrap_or_default();
            output::line(format_args!("  {kind} {}", object.metadata.name.unwrap_or_default()))?;
        }
        for namespace in &plan.label {
            output::line(format_args!("  label {}={hub_id} on Namespace {namespace}", crate::api::labels::ALLOW))?;
        }
        output::line(format_args!("would {} on the hub:\n  Secret {}/{name}", if known { "renew" } else { "create" }, args.namespace))?;
        return Ok(());
    }

    account::apply(&member).await?;
    output::line("  account applied")?;
    for namespace in &plan.label {
        namespaces::allow(&member, namespace, &hub_id).await?;
        output::line(format_args!("  namespace {namespace} allowed"))?;
    }
    let token = if args.long_lived { account::long_lived_token(&member).await? } else { account::request_token(&member).await? };
    let text = endpoint.kubeconfig(name, &token.secret);
    let as_hub = connection::config(Kubeconfig::from_yaml(text.expose_secret())?, None).await?;
    account::check(&connection::client(as_hub)?).await?;
    output::line(format_args!("  {}", lifetime(token.expires_at, Timestamp::now())))?;
    hub.register(name, &text).await?;
    output::line(format_args!("  Secret {}/{name} {} on the hub", args.namespace, if known { "renewed" } else { "created" }))?;
    if args.wait {
        hub.wait(name, Duration::from_secs(args.timeout)).await?;
        output::line("  ready")?;
    }
    Ok(())
}

/// How long a token lives, for people.
fn lifetime(expires_at: Option<Timestamp>, now: Timestamp) -> String {
    match expires_at {
        None => "token does not expire".to_owned(),
        Some(at) => match at.duration_since(now).as_hours() {
            // A year that was granted a second ago is 365 days, not 364.
            hours @ 48.. => format!("token expires {at}, in {} days, as the member granted it", (hours + 12) / 24),
            hours => format!("token expires {at}, in {hours} hours, as the member granted it"),
        },
    }
}

/// The name becomes part of object names, and stands in short lists of clusters.
fn dns_label(name: &str) -> anyhow::Result<String> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    ensure!(
        (1..=63).contains(&name.len()) && name.chars().all(inner) && !name.starts_with('-') && !name.ends_with('-'),
        "must be 1 to 63 lower-case letters, digits or '-', and neither start nor end with '-'"
    );
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let long = "a".repeat(63);
        for (name, good) in
            [("gpu-a", true), ("1", true), (&long, true), ("", false), ("-a", false), ("a-", false), ("A", false), ("a.b", false)]
        {
            assert_eq!(dns_label(name).is_ok(), good, "{name:?}");
        }
        assert!(dns_label(&format!("{long}a")).is_err());
    }

    #[test]
    fn lifetimes() {
        let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        for (at, wanted) in [
            (None, "token does not expire"),
            (Some("2031-01-01T00:00:00Z"), "token expires 2031-01-01T00:00:00Z, in 365 days, as the member granted it"),
            (Some("2030-01-02T12:00:00Z"), "token expires 2030-01-02T12:00:00Z, in 36 hours, as the member granted it"),
        ] {
            assert_eq!(lifetime(at.map(|at| at.parse().unwrap()), now), wanted);
        }
    }
}
