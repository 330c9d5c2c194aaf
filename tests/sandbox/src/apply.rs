//! Applying YAML as `kubectl apply --server-side` does.

use std::collections::HashMap;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{GroupVersionKind, Status};
use kube::discovery::{ApiCapabilities, ApiResource, Scope, pinned_kind};
use serde_json::Value;

use crate::wait::eventually;

/// How long a new CRD may take until its kinds can be used.
const ESTABLISHED: Duration = Duration::from_secs(30);

/// How [`apply_yaml`] applies.
#[derive(Clone, Debug)]
pub struct ApplyOptions {
    /// Field manager.
    pub manager: String,
    /// Take fields over from other managers.
    pub force: bool,
    /// `fieldValidation=Strict`: unknown and duplicate fields are errors, not warnings.
    pub strict: bool,
    /// Namespace of objects that name none; without it such an object goes to `default`.
    pub namespace: Option<String>,
    /// Only ask: nothing is kept.
    pub dry_run: bool,
}

impl Default for ApplyOptions {
    /// Manager `sandbox`, force, strict.
    fn default() -> Self {
        Self { manager: "sandbox".to_owned(), force: true, strict: true, namespace: None, dry_run: false }
    }
}

impl ApplyOptions {
    /// The defaults with a namespace for objects that name none.
    pub fn namespace(namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..Self::default() }
    }
}

/// Why a text could not be applied. Documents before the one that failed have been applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The text is no YAML, or a document is no object with apiVersion, kind and name.
    #[error("{0}")]
    Text(String),
    /// The API server refused the object (or its kind).
    #[error("{object}: {} (HTTP {})", status.message, status.code)]
    Refused {
        /// `Kind namespace/name`
        object: String,
        /// What the API server said.
        status: Box<Status>,
    },
    /// The API server could not be asked, or gave no answer that can be read.
    #[error("{object}: {source}")]
    Failed {
        /// `Kind namespace/name`
        object: String,
        /// The client's error.
        source: Box<kube::Error>,
    },
    /// A CRD was kept but its kinds did not come into service.
    #[error("{0}")]
    NotEstablished(String),
}

impl ApplyError {
    /// What the API server said, when it was asked and refused.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused { status, .. } => Some(status),
            _ => None,
        }
    }

    fn new(object: &str, error: kube::Error) -> Self {
        let object = object.to_owned();
        match error {
            kube::Error::Api(status) => Self::Refused { object, status },
            other => Self::Failed { object, source: Box::new(other) },
        }
    }
}

/// Splits a text into its documents; empty ones are left out.
pub fn documents(text: &str) -> Result<Vec<Value>, ApplyError> {
    // Our own files: CRDs are larger than a reader's guard against hostile input lets through.
    // Booleans as in YAML 1.2: `n`, `yes` and `on` are words.
    let options = serde_saphyr::options! { budget: None, strict_booleans: true };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| ApplyError::Text(error.to_string()))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Applies each document of `text`, in order, and gives what the API server kept.
///
/// After a `CustomResourceDefinition` it waits until the new kind is served, so that objects of it may follow in the same text.
pub async fn apply_yaml(client: &Client, text: &str, options: &ApplyOptions) -> Result<Vec<DynamicObject>, ApplyError> {
    apply_values(client, documents(text)?, options).await
}

/// [`apply_yaml`] for objects that are values already.
pub async fn apply_values(client: &Client, objects: Vec<Value>, options: &ApplyOptions) -> Result<Vec<DynamicObject>, ApplyError> {
    let mut kinds: HashMap<GroupVersionKind, (ApiResource, ApiCapabilities)> = HashMap::new();
    let mut kept = Vec::new();
    for object in objects {
        let (kind, namespace, name) = identity(&object)?;
        let label = match &namespace {
            Some(namespace) => format!("{} {namespace}/{name}", kind.kind),
            None => format!("{} {name}", kind.kind),
        };
        let (resource, capabilities) = match kinds.get(&kind) {
            Some(known) => known.clone(),
            None => pinned_kind(client, &kind).await.map_err(|error| ApplyError::new(&label, error))?,
        };
        kinds.insert(kind.clone(), (resource.clone(), capabilities.clone()));
        let api: Api<DynamicObject> = match capabilities.scope {
            Scope::Cluster => Api::all_with(client.clone(), &resource),
            Scope::Namespaced => {
                let namespace = namespace.or_else(|| options.namespace.clone());
                Api::namespaced_with(client.clone(), namespace.as_deref().unwrap_or("default"), &resource)
            }
        };
        let params = PatchParams {
            field_manager: Some(options.manager.clone()),
            force: options.force,
            dry_run: options.dry_run,
            field_validation: None,
        };
        let params = if options.strict { params.validation_strict() } else { params };
        let answer = api.patch(&name, &params, &Patch::Apply(&object)).await.map_err(|error| ApplyError::new(&label, error))?;
        if kind.kind == "CustomResourceDefinition" && !options.dry_run {
            served(client, &object).await.map_err(|error| ApplyError::NotEstablished(format!("{error:#}")))?;
        }
        kept.push(answer);
    }
    Ok(kept)
}

fn identity(object: &Value) -> Result<(GroupVersionKind, Option<String>, String), ApplyError> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let need = |pointer: &str| {
        text(pointer).ok_or_else(|| {
            let shown: String = object.to_string().chars().take(120).collect();
            ApplyError::Text(format!("a document has no {}: {shown}", pointer.trim_start_matches('/').replace('/', ".")))
        })
    };
    let (version, kind, name) = (need("/apiVersion")?, need("/kind")?, need("/metadata/name")?);
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    Ok((GroupVersionKind::gvk(group, version, &kind), text("/metadata/namespace"), name))
}

/// Waits until every served version of a CRD can be discovered, which comes after the condition Established.
async fn served(client: &Client, crd: &Value) -> anyhow::Result<()> {
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let served = versions.iter().filter(|version| version.get("served") == Some(&Value::Bool(true)));
    for version in served.filter_map(|version| version.get("name")?.as_str()) {
        let wanted = GroupVersionKind::gvk(group, version, kind);
        let what = format!("kind {kind} of {group}/{version} is served");
        eventually(&what, ESTABLISHED, async || Ok(pinned_kind(client, &wanted).await?)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_documents_are_left_out() {
        let found = documents("# a comment\n---\nkind: A\n---\n---\nkind: B\n").unwrap();
        let kinds: Vec<_> = found.iter().map(|document| document["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["A", "B"]);
    }

    #[test]
    fn words_stay_words() {
        let [document] = documents("{a: n, b: yes, c: on, d: true}").unwrap().try_into().unwrap();
        assert_eq!(document, serde_json::json!({"a": "n", "b": "yes", "c": "on", "d": true}));
    }

    #[test]
    fn a_document_without_identity_is_named() {
        let cases = [
            ("{kind: A, metadata: {name: a}}", "no apiVersion"),
            ("{apiVersion: v1, metadata: {name: a}}", "no kind"),
            ("{apiVersion: v1, kind: A}", "no metadata.name"),
            ("[]", "no apiVersion"),
        ];
        for (text, expected) in cases {
            let [document] = documents(text).unwrap().try_into().unwrap();
            let error = identity(&document).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn groups_and_versions_are_told_apart() {
        let [core, apps] = documents("{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: b, namespace: n}}\n")
            .unwrap()
            .try_into()
            .unwrap();
        assert_eq!(identity(&core).unwrap(), (GroupVersionKind::gvk("", "v1", "Pod"), None, "a".to_owned()));
        assert_eq!(identity(&apps).unwrap(), (GroupVersionKind::gvk("apps", "v1", "Deployment"), Some("n".to_owned()), "b".to_owned()));
    }
}
