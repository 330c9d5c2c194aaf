//! `odin-hub crds`: the definitions of all kinds, printed, written to files or applied.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::connection::Connection;
use super::output;
use crate::api::labels::FIELD_MANAGER;
use crate::api::schema;

/// How often the state of a definition is read while it is waited for.
const POLL: Duration = Duration::from_millis(200);

/// Print the definitions of all kinds, or apply them to the hub
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// Apply them server-side to the hub, and wait until they are served
    #[arg(long)]
    apply: bool,
    /// Write one YAML file per kind into this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["apply", "output"])]
    dir: Option<PathBuf>,
    /// Form of what is printed
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Seconds to wait, with --apply, until all are served
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// Where the hub is, for --apply
    #[command(flatten)]
    connection: Connection,
}

/// Form of what is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Output {
    /// YAML; with --apply one line per definition.
    #[default]
    #[value(name = "yaml")]
    Text,
    /// JSON: a List of the definitions; with --apply what became of each.
    Json,
}

/// Runs the command.
pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let crds = schema::crds().context("the definitions built into this program are broken")?;
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir).with_context(|| format!("folder {}", dir.display()))?;
        for crd in &crds {
            let file = dir.join(file_name(crd));
            std::fs::write(&file, file_text(crd)?).with_context(|| format!("file {}", file.display()))?;
        }
        return Ok(());
    }
    if args.apply {
        return apply(&crds, &args).await;
    }
    match args.output {
        Output::Text => {
            let mut text = String::new();
            for crd in &crds {
                write!(text, "---\n{}", serde_saphyr::to_string(crd)?)?;
            }
            output::print(text)?;
        }
        Output::Json => output::line(format_args!("{:#}", json!({"apiVersion": "v1", "kind": "List", "items": crds})))?,
    }
    Ok(())
}

/// Name of the file that holds a definition.
fn file_name(crd: &Value) -> String {
    format!("{}.yaml", schema::name(crd))
}

/// Content of the file that holds a definition.
fn file_text(crd: &Value) -> anyhow::Result<String> {
    Ok(format!(
        "# Written by `odin-hub crds --dir charts/odin-hub/crds`; change the types in src/api, not this file.\n{}",
        serde_saphyr::to_string(crd)?
    ))
}

async fn apply(crds: &[Value], args: &Args) -> anyhow::Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(args.connection.client().await?);
    let until = Instant::now() + Duration::from_secs(args.timeout);
    let mut outcomes = Vec::new();
    for crd in crds {
        let name = schema::name(crd);
        let before = api.get_metadata_opt(name).await.with_context(|| format!("reading {name}"))?;
        let after = api
            .patch(name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(crd))
            .await
            .with_context(|| format!("applying {name}"))?;
        let outcome = match before {
            None => "created",
            Some(before) if before.metadata.resource_version == after.metadata.resource_version => "unchanged",
            Some(_) => "configured",
        };
        if args.output == Output::Text {
            output::line(format_args!("customresourcedefinition.apiextensions.k8s.io/{name} {outcome}"))?;
        }
        outcomes.push(json!({"name": name, "outcome": outcome}));
    }
    for crd in crds {
        established(&api, schema::name(crd), until).await?;
    }
    if args.output == Output::Json {
        output::line(format_args!("{:#}", Value::Array(outcomes)))?;
    }
    Ok(())
}

/// Waits until the API server serves the kind.
async fn established(api: &Api<CustomResourceDefinition>, name: &str, until: Instant) -> anyhow::Result<()> {
    loop {
        let conditions = api.get(name).await?.status.and_then(|status| status.conditions).unwrap_or_default();
        if conditions.iter().any(|condition| condition.type_ == "Established" && condition.status == "True") {
            return Ok(());
        }
        if Instant::now() >= until {
            let why = conditions.iter().find(|condition| condition.status == "False").and_then(|condition| condition.message.as_deref());
            bail!("{name} is applied but not served: {}", why.unwrap_or("the API server has not said why; wait longer with --timeout"));
        }
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_files_in_the_repository_are_fresh() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/odin-hub/crds");
        let wanted: BTreeMap<String, String> =
            schema::crds().unwrap().iter().map(|crd| (file_name(crd), file_text(crd).unwrap())).collect();
        let present: BTreeMap<String, String> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&path).unwrap()))
            .collect();
        let stale: Vec<&String> = wanted.keys().chain(present.keys()).filter(|file| wanted.get(*file) != present.get(*file)).collect();
        assert!(
            stale.is_empty(),
            "stale in charts/odin-hub/crds: {stale:?}; mend with: cargo run -- crds --dir charts/odin-hub/crds (and remove what has no kind)"
        );
    }

    #[test]
    fn the_text_reads_back_as_the_same_definition() {
        for crd in schema::crds().unwrap() {
            let back: Value = serde_saphyr::from_str(&file_text(&crd).unwrap()).unwrap();
            assert_eq!(back, crd, "{}", schema::name(&crd));
        }
    }
}
