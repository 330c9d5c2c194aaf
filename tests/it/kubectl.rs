//! kubectl, as far as the READMEs of the examples use it: so that what stands there can be run, and fails when it is
//! wrong. A verb, flag or kind that isn't known here is an error.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client, ResourceExt as _};
use sandbox::apply::{ApplyOptions, apply_values, documents};
use sandbox::{Fleet, eventually, hub};
use serde_json::{Value, json};

use crate::world::LIMIT;

/// Kinds by the names that people type.
const KINDS: [(&str, &str, &str, &str); 7] = [
    ("isvc", "odin.moreh.io", "v1alpha1", "InferenceService"),
    ("rb", "odin.moreh.io", "v1alpha1", "RuntimeBase"),
    ("mcl", "federation.odin.moreh.io", "v1alpha1", "MemberCluster"),
    ("deployment", "apps", "v1", "Deployment"),
    ("leaderworkerset", "leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"),
    ("service", "", "v1", "Service"),
    ("pod", "", "v1", "Pod"),
];

/// A command line.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_subcommand = true)]
struct Line {
    #[arg(long, global = true)]
    kubeconfig: Option<PathBuf>,
    #[arg(short, long, global = true)]
    namespace: Option<String>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Apply {
        #[arg(long, required = true)]
        server_side: bool,
        #[arg(short)]
        file: PathBuf,
    },
    Get {
        kinds: String,
        name: Option<String>,
        #[arg(short)]
        output: Option<String>,
    },
    Wait {
        kind: String,
        names: Vec<String>,
        #[arg(short = 'l')]
        selector: Option<String>,
        #[arg(long = "for")]
        condition: String,
        #[arg(long)]
        timeout: String,
    },
    Scale {
        kind: String,
        name: String,
        #[arg(long)]
        replicas: u32,
    },
    Patch {
        kind: String,
        name: String,
        #[arg(long = "type", value_parser = ["json"])]
        _type: String,
        #[arg(short)]
        patch: String,
    },
    Delete {
        #[arg(required_unless_present = "file")]
        kind: Option<String>,
        names: Vec<String>,
        #[arg(short)]
        file: Option<PathBuf>,
        #[arg(long)]
        ignore_not_found: bool,
    },
}

/// The commands in the code blocks of a README, in order.
pub(crate) fn commands(readme: &str) -> Vec<&str> {
    let blocks = readme.split("```").skip(1).step_by(2);
    blocks.flat_map(str::lines).map(str::trim).filter(|line| line.starts_with("kubectl ")).collect()
}

/// Runs a command line against the hub of `fleet`, or against the cluster whose kubeconfig it names. Gives what it prints:
/// of objects, kind and name in a line for each.
pub(crate) async fn run(fleet: &Fleet, line: &str) -> Result<String> {
    let folder = fleet.folder().display().to_string();
    let words = words(&line.replace("${KUBECONFIG%/*}", &folder))?;
    let line = Line::try_parse_from(words.iter().skip(1))?;
    let kubeconfig = line.kubeconfig.unwrap_or_else(|| fleet.hub().kubeconfig_path().to_owned());
    let client = sandbox::cluster::client_of(&fs::read_to_string(kubeconfig)?).await?;
    let namespace = line.namespace.as_deref();
    match line.verb {
        Verb::Apply { file, .. } => {
            let options = ApplyOptions { manager: "kubectl".to_owned(), force: false, ..ApplyOptions::default() };
            Ok(listed(&apply_values(&client, objects(&file)?, &options).await?))
        }
        Verb::Get { kinds, name, output } => {
            let mut found = Vec::new();
            for kind in kinds.split(',') {
                found.extend(get(&typed(&client, kind, namespace).await?, name.as_slice(), None).await?);
            }
            match output.as_deref() {
                None | Some("wide") => Ok(listed(&found)),
                Some(output) => {
                    let template = output.strip_prefix("jsonpath=").with_context(|| format!("-o {output}"))?;
                    let [object] = found.as_slice() else { bail!("{} objects for one jsonpath", found.len()) };
                    let printed = jsonpath(template, &serde_json::to_value(object)?)?;
                    ensure!(!printed.trim().is_empty(), "it prints nothing of {}", serde_json::to_value(object)?);
                    Ok(printed)
                }
            }
        }
        Verb::Wait { kind, names, selector, condition, timeout } => {
            ensure!(timeout.ends_with(['m', 's']), "--timeout {timeout}");
            let api = typed(&client, &kind, namespace).await?;
            eventually(&condition, LIMIT, async || {
                let found = get(&api, &names, selector.as_deref()).await?;
                ensure!(!found.is_empty(), "nothing is there");
                found.iter().try_for_each(|object| holds(&condition, &serde_json::to_value(object)?))?;
                Ok(listed(&found))
            })
            .await
        }
        Verb::Scale { kind, name, replicas } => {
            let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
            typed(&client, &kind, namespace).await?.patch_scale(&name, &PatchParams::default(), &patch).await?;
            Ok(String::new())
        }
        Verb::Patch { kind, name, patch, .. } => {
            let patch: Patch<()> = Patch::Json(serde_json::from_str(&patch)?);
            typed(&client, &kind, namespace).await?.patch(&name, &PatchParams::default(), &patch).await?;
            Ok(String::new())
        }
        Verb::Delete { kind, names, file, ignore_not_found } => {
            let mut doomed = match file {
                Some(file) => targets(&client, &objects(&file)?).await?,
                None => Vec::new(),
            };
            if let Some(kind) = kind {
                let api = typed(&client, &kind, namespace).await?;
                doomed.extend(names.into_iter().map(|name| (api.clone(), name)));
            }
            delete(&doomed, ignore_not_found).await?;
            Ok(String::new())
        }
    }
}

/// Where objects are, for [`delete`].
pub(crate) async fn targets(client: &Client, objects: &[Value]) -> Result<Vec<(Api<DynamicObject>, String)>> {
    let mut targets = Vec::new();
    for object in objects {
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        let kind = GroupVersionKind::try_from(object.types.as_ref().context("a kind")?)?;
        targets.push((of(client, &kind, object.namespace().as_deref()).await?, object.name_any()));
    }
    Ok(targets)
}

/// Deletes objects and waits until they are gone, as kubectl does.
pub(crate) async fn delete(objects: &[(Api<DynamicObject>, String)], ignore_not_found: bool) -> Result<()> {
    for (api, name) in objects {
        match api.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if ignore_not_found && status.is_not_found() => {}
            other => drop(other.with_context(|| name.clone())?),
        }
    }
    for (api, name) in objects {
        eventually(&format!("{name} is gone"), LIMIT, async || match api.get_opt(name).await? {
            Some(left) => bail!("it is there: {}", left.data),
            None => Ok(()),
        })
        .await?;
    }
    Ok(())
}

/// The objects of a file, or of all YAML files of a folder in the order of their names.
pub(crate) fn objects(path: &Path) -> Result<Vec<Value>> {
    let path = hub::repository().join(path);
    let mut files = vec![path.clone()];
    if path.is_dir() {
        files = fs::read_dir(&path)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        files.retain(|file| file.extension().is_some_and(|end| end == "yaml"));
        files.sort();
    }
    let mut all = Vec::new();
    for file in files {
        let read = fs::read_to_string(&file).map_err(anyhow::Error::from).and_then(|text| Ok(documents(&text)?));
        all.extend(read.with_context(|| file.display().to_string())?);
    }
    Ok(all)
}

async fn typed(client: &Client, kind: &str, namespace: Option<&str>) -> Result<Api<DynamicObject>> {
    let (_, group, version, kind) = KINDS.iter().find(|known| known.0 == kind).with_context(|| format!("kind {kind}"))?;
    of(client, &GroupVersionKind::gvk(group, version, kind), namespace).await
}

async fn of(client: &Client, kind: &GroupVersionKind, namespace: Option<&str>) -> Result<Api<DynamicObject>> {
    let (resource, capabilities) = pinned_kind(client, kind).await.with_context(|| kind.kind.clone())?;
    Ok(match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), namespace.unwrap_or("default"), &resource),
    })
}

async fn get(api: &Api<DynamicObject>, names: &[String], selector: Option<&str>) -> Result<Vec<DynamicObject>> {
    if names.is_empty() {
        let params = ListParams { label_selector: selector.map(str::to_owned), ..ListParams::default() };
        let list = api.list(&params).await?;
        let types = list.types;
        let kind = |types: kube::api::TypeMeta| kube::api::TypeMeta { kind: types.kind.trim_end_matches("List").to_owned(), ..types };
        let named = |object: DynamicObject| DynamicObject { types: object.types.or_else(|| Some(kind(types.clone()))), ..object };
        return Ok(list.items.into_iter().map(named).collect());
    }
    let mut found = Vec::new();
    for name in names {
        found.push(api.get(name).await?);
    }
    Ok(found)
}

fn listed(objects: &[DynamicObject]) -> String {
    objects.iter().fold(String::new(), |mut text, object| {
        let kind = object.types.as_ref().map(|types| types.kind.as_str()).unwrap_or_default();
        let _ = writeln!(text, "{kind} {}", object.name_any());
        text
    })
}

/// What `kubectl wait --for` waits for.
fn holds(condition: &str, object: &Value) -> Result<()> {
    if let Some(type_) = condition.strip_prefix("condition=") {
        let all = object.pointer("/status/conditions").and_then(Value::as_array).context("no conditions")?;
        let found = all.iter().find(|condition| condition["type"] == type_).with_context(|| format!("no condition {type_}"))?;
        ensure!(found["status"] == "True" && found["observedGeneration"] == object["metadata"]["generation"], "{found}");
        return Ok(());
    }
    let (template, value) = condition.strip_prefix("jsonpath=").and_then(|rest| rest.rsplit_once('=')).context("--for")?;
    let seen = jsonpath(template, object)?;
    ensure!(seen == value, "{seen}, not {value}");
    Ok(())
}

/// What a template of `jsonpath` prints: paths of fields and indices, `range` over a list, quoted text.
fn jsonpath(template: &str, object: &Value) -> Result<String> {
    if let Some((before, rest)) = template.split_once("{range ") {
        let (list, rest) = rest.split_once("[*]}").context("range without [*]")?;
        let (body, after) = rest.split_once("{end}").context("range without end")?;
        let items = at(list, object).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let each: Result<String> = items.iter().map(|item| jsonpath(body, item)).collect();
        return Ok(jsonpath(before, object)? + &each? + &jsonpath(after, object)?);
    }
    let mut printed = String::new();
    for (index, part) in template.split(['{', '}']).enumerate() {
        match part {
            text if index % 2 == 0 => printed.push_str(text),
            "\"\\n\"" => printed.push('\n'),
            path if path.starts_with('.') => match at(path, object) {
                Some(Value::String(text)) => printed.push_str(text),
                Some(value) => printed.push_str(&value.to_string()),
                None => {}
            },
            other => bail!("jsonpath: {{{other}}}"),
        }
    }
    Ok(printed)
}

fn at<'a>(path: &str, object: &'a Value) -> Option<&'a Value> {
    object.pointer(&path.replace(['.', '['], "/").replace(']', ""))
}

/// Splits a command line as a shell does: at spaces that stand outside quotes.
fn words(line: &str) -> Result<Vec<String>> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for c in line.chars() {
        match (quote, c) {
            (None, ' ') => words.push(String::new()),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => words.last_mut().context("a word")?.push(c),
        }
    }
    ensure!(quote.is_none(), "a quote is open in {line}");
    words.retain(|word| !word.is_empty());
    Ok(words)
}
