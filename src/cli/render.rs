//! `odin-hub render`: what the hub would apply in members, from files alone.

mod files;
mod offline;
mod schema;

use std::path::PathBuf;

use anyhow::bail;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use self::files::Document;
use self::offline::Offline;
use super::output::{self, Form};
use crate::api::odin::InferenceService;
use crate::render::{Refusal, Rendered, Renderer};
use crate::workload::{self, Owner, policy};

/// Begin of the keys of labels and annotations that tell whose an object is and what was applied. Without a hub they have
/// no values.
const OF_THE_HUB: &str = "federation.odin.moreh.io/";

/// Render services from files, as the hub would, and print what a member would get
///
/// It reads InferenceServices, templates, runtime bases and inference pools, and needs no cluster. Each service is rendered
/// with all of its replicas.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// Only these services: NAME or NAMESPACE/NAME
    names: Vec<String>,
    /// Files with YAML or JSON, folders of such files, or `-` for standard input
    #[arg(short, long = "filename", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Namespace of objects that name none
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Namespace of templates that services of every namespace may use
    #[arg(long, env = "ODIN_HUB_SYSTEM_NAMESPACE", default_value = "mif", value_name = "NAMESPACE")]
    system_namespace: String,
    /// Print the merged and rendered spec of each service, as it stands in its status
    #[arg(long)]
    spec: bool,
    /// Form of what is printed
    #[arg(short, long, value_enum, default_value_t = Form::Yaml)]
    output: Form,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let documents: Vec<Document> = files::read(&args.files)?;
    let offline = Offline::new(documents, &args.namespace)?;
    for note in &offline.notes {
        output::note(note);
    }
    let services = offline.services(&args.names)?;
    let faults = offline.faults(&args.names);
    let mut failed = faults.len();
    for fault in faults {
        output::note(format_args!("error: {fault}"));
    }
    let renderer = Renderer::default();
    let mut objects = Vec::new();
    for service in &services {
        let full_name = format!("{}/{}", service.namespace().unwrap_or_default(), service.name_any());
        let rendered = offline.render(&renderer, &args.system_namespace, service);
        let made = rendered.and_then(|rendered| {
            for warning in &rendered.warnings {
                output::note(format_args!("warning: InferenceService {full_name}: {warning}"));
            }
            if args.spec { Ok(vec![spec_of(service, &rendered)]) } else { member_objects(service, &rendered, &offline) }
        });
        match made {
            Ok(made) => objects.extend(made),
            Err(refusal) => {
                failed += 1;
                output::note(format_args!("error: InferenceService {full_name}: {refusal}"));
            }
        }
    }
    output::print(text(args.output, &objects)?)?;
    match failed {
        0 => Ok(()),
        1 => bail!("one object is refused"),
        failed => bail!("{failed} objects are refused"),
    }
}

/// Documents of YAML, or one List.
fn text(form: Form, objects: &[Value]) -> anyhow::Result<String> {
    if form == Form::Json {
        return output::text(form, &output::list(objects));
    }
    let documents: Vec<String> = objects.iter().map(|object| output::text(form, object)).collect::<Result<_, _>>()?;
    Ok(documents.join("---\n"))
}

/// The rendered spec where it stands in a service on the hub.
fn spec_of(service: &InferenceService, rendered: &Rendered) -> Value {
    json!({
        "apiVersion": "odin.moreh.io/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": service.name_any(), "namespace": service.namespace()},
        "status": {"renderedSpec": rendered.spec},
    })
}

/// What a member gets that holds the whole service.
fn member_objects(service: &InferenceService, rendered: &Rendered, offline: &Offline) -> Result<Vec<Value>, Refusal> {
    let namespace = service.namespace().unwrap_or_default();
    let full_name = format!("{namespace}/{}", service.name_any());
    let workload = workload::build(&Owner::of(service, offline.pools(&namespace), ""), rendered)?;
    // Whether its namespace is exempt stands on the hub.
    let policy = policy::check(&rendered.spec).err().map(|refusal| refusal.to_string());
    for warning in workload.warnings.iter().chain(&policy) {
        output::note(format_args!("warning: InferenceService {full_name}: {warning}"));
    }
    let replicas = u32::try_from(service.spec.replicas.unwrap_or(1)).unwrap_or_default();
    let mut objects = vec![workload.manifest(replicas), workload.service().object.clone()];
    objects.iter_mut().for_each(without_hub_keys);
    Ok(objects)
}

/// Takes off what only a hub can know.
fn without_hub_keys(object: &mut Value) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    for field in ["labels", "annotations"] {
        if let Some(Value::Object(entries)) = metadata.get_mut(field) {
            entries.retain(|key, _| !key.starts_with(OF_THE_HUB));
            if entries.is_empty() {
                metadata.remove(field);
            }
        }
    }
}

#[cfg(test)]
mod tests;
