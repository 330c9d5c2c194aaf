//! Which layers a service names.

use std::collections::BTreeSet;

use super::{Layer, Refusal};
use crate::api::odin::{GROUP, InferenceService, Source, TemplateRef};
use crate::api::reason::Reason;

const TEMPLATE: &str = "InferenceServiceTemplate";
const CLUSTER_TEMPLATE: &str = "ClusterInferenceServiceTemplate";
const SERVICE: &str = "InferenceService";

/// The layers that exist.
pub trait Catalog {
    /// The `InferenceServiceTemplate` of this namespace and name.
    fn template(&self, namespace: &str, name: &str) -> Option<Layer>;
    /// The `ClusterInferenceServiceTemplate` of this name.
    fn cluster_template(&self, name: &str) -> Option<Layer>;
    /// The `RuntimeBase` of this name.
    fn runtime_base(&self, name: &str) -> Option<Layer>;
}

/// The layers of a service, lowest first: runtime base, templates in the order of `templateRefs`, the service's own spec.
///
/// A template is looked for as its `kind` says; without one a cluster template of that name comes first. Namespaced
/// templates come from the service's namespace, else from the system namespace. The runtime base may be named in one
/// place only: by the service or by one of its templates.
///
/// # Errors
/// `TemplateNotFound`, `RuntimeBaseNotFound` or `RuntimeBaseConflict`. The message says what was looked for and where.
pub fn lookup(catalog: &dyn Catalog, system_namespace: &str, service: &InferenceService) -> Result<Vec<Layer>, Refusal> {
    let own = own_layer(service)?;
    let finder = Finder { catalog, system_namespace, namespace: service.metadata.namespace.as_deref().unwrap_or_default() };
    let mut templates = Vec::new();
    let mut missing = Vec::new();
    for (index, reference) in service.spec.template_refs.iter().flatten().enumerate() {
        match finder.find(reference) {
            Ok(layer) => templates.push(layer),
            Err(message) => missing.push(format!("spec.templateRefs[{index}]: {message}")),
        }
    }
    if !missing.is_empty() {
        return Err(Refusal::new(Reason::TemplateNotFound, missing.join("; ")));
    }
    let mut layers: Vec<Layer> = base(catalog, &own, &templates)?.into_iter().collect();
    layers.append(&mut templates);
    layers.push(own);
    Ok(layers)
}

/// The bare names of all layers that a service depends on, also of those that don't exist: when an object of such a name
/// appears, changes or goes, the service has to be looked at again.
pub fn layer_names(catalog: &dyn Catalog, system_namespace: &str, service: &InferenceService) -> BTreeSet<String> {
    let finder = Finder { catalog, system_namespace, namespace: service.metadata.namespace.as_deref().unwrap_or_default() };
    let mut names: BTreeSet<String> = service.spec.runtime_base_ref.iter().map(|base| base.name.clone()).collect();
    for reference in service.spec.template_refs.iter().flatten() {
        names.insert(reference.name.clone());
        names.extend(finder.find(reference).ok().as_ref().and_then(named_base).map(str::to_owned));
    }
    names
}

fn own_layer(service: &InferenceService) -> Result<Layer, Refusal> {
    let source = Source {
        kind: SERVICE.to_owned(),
        namespace: service.metadata.namespace.clone(),
        name: service.metadata.name.clone().unwrap_or_default(),
        generation: service.metadata.generation.unwrap_or_default(),
    };
    match serde_json::to_value(&service.spec) {
        Ok(spec) => Ok(Layer { source, spec }),
        Err(error) => Err(Refusal::new(Reason::MergeFailed, format!("the spec of {source} can't be written as JSON: {error}"))),
    }
}

struct Finder<'a> {
    catalog: &'a dyn Catalog,
    system_namespace: &'a str,
    namespace: &'a str,
}

impl Finder<'_> {
    fn find(&self, reference: &TemplateRef) -> Result<Layer, String> {
        let name = reference.name.as_str();
        if let Some(group) = reference.group.as_deref().filter(|group| !group.is_empty() && *group != GROUP) {
            return Err(format!("group {group:?} has no templates: leave group out, or write {GROUP}"));
        }
        match reference.kind.as_deref().filter(|kind| !kind.is_empty()) {
            None => match self.catalog.cluster_template(name).or_else(|| self.namespaced(name)) {
                Some(layer) => Ok(layer),
                None => Err(format!("there is no {CLUSTER_TEMPLATE} {name:?} and no {TEMPLATE} {name:?} in {}", self.namespaces())),
            },
            Some(TEMPLATE) => self.namespaced(name).ok_or_else(|| format!("there is no {TEMPLATE} {name:?} in {}", self.namespaces())),
            Some(CLUSTER_TEMPLATE) => self.catalog.cluster_template(name).ok_or_else(|| format!("there is no {CLUSTER_TEMPLATE} {name:?}")),
            Some(kind) => Err(format!("{kind:?} is no kind of template: use {TEMPLATE} or {CLUSTER_TEMPLATE}, or leave kind out")),
        }
    }

    fn namespaced(&self, name: &str) -> Option<Layer> {
        self.catalog.template(self.namespace, name).or_else(|| {
            let elsewhere = self.system_namespace != self.namespace;
            elsewhere.then(|| self.catalog.template(self.system_namespace, name)).flatten()
        })
    }

    fn namespaces(&self) -> String {
        if self.system_namespace == self.namespace {
            format!("namespace {}", self.namespace)
        } else {
            format!("namespace {} or {}", self.namespace, self.system_namespace)
        }
    }
}

/// The runtime base, whoever names it.
fn base(catalog: &dyn Catalog, own: &Layer, templates: &[Layer]) -> Result<Option<Layer>, Refusal> {
    let own_place = ("spec.runtimeBaseRef".to_owned(), own);
    let others = templates.iter().enumerate().map(|(index, layer)| (format!("spec.templateRefs[{index}]"), layer));
    let places = std::iter::once(own_place).chain(others);
    let named: Vec<_> = places.filter_map(|(place, layer)| Some((place, layer, named_base(layer)?))).collect();
    let (layer, name) = match named.as_slice() {
        [] => return Ok(None),
        [(_, layer, name)] => (layer, *name),
        several => {
            let places: Vec<String> =
                several.iter().map(|(place, layer, name)| format!("{} ({place}) names {name:?}", layer.source)).collect();
            let message = format!(
                "the runtime base may be named in one place only, but {}: leave one runtimeBaseRef, or don't use these layers together",
                places.join(" and ")
            );
            return Err(Refusal::new(Reason::RuntimeBaseConflict, message));
        }
    };
    catalog.runtime_base(name).map(Some).ok_or_else(|| {
        let message = format!("there is no RuntimeBase {name:?}, which {} names in spec.runtimeBaseRef", layer.source);
        Refusal::new(Reason::RuntimeBaseNotFound, message)
    })
}

fn named_base(layer: &Layer) -> Option<&str> {
    layer.spec.get("runtimeBaseRef")?.get("name")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::layer;
    use super::*;

    /// Layers by kind, namespace and name.
    struct Fixture(Vec<Layer>);

    impl Fixture {
        fn find(&self, kind: &str, namespace: Option<&str>, name: &str) -> Option<Layer> {
            let same =
                |layer: &&Layer| layer.source.kind == kind && layer.source.namespace.as_deref() == namespace && layer.source.name == name;
            self.0.iter().find(same).cloned()
        }
    }

    impl Catalog for Fixture {
        fn template(&self, namespace: &str, name: &str) -> Option<Layer> {
            self.find(TEMPLATE, Some(namespace), name)
        }

        fn cluster_template(&self, name: &str) -> Option<Layer> {
            self.find(CLUSTER_TEMPLATE, None, name)
        }

        fn runtime_base(&self, name: &str) -> Option<Layer> {
            self.find("RuntimeBase", None, name)
        }
    }

    fn template(namespace: &str, name: &str, spec: Value) -> Layer {
        let mut layer = layer(TEMPLATE, name, spec);
        layer.source.namespace = Some(namespace.to_owned());
        layer
    }

    fn catalog() -> Fixture {
        Fixture(vec![
            template("demo", "both", json!({})),
            layer(CLUSTER_TEMPLATE, "both", json!({})),
            template("demo", "local", json!({})),
            template("mif", "local", json!({})),
            template("mif", "shared", json!({})),
            template("other", "foreign", json!({})),
            layer(CLUSTER_TEMPLATE, "based", json!({"runtimeBaseRef": {"name": "engine"}})),
            template("mif", "lost", json!({"runtimeBaseRef": {"name": "nowhere"}})),
            layer("RuntimeBase", "engine", json!({})),
        ])
    }

    fn service(spec: &Value) -> InferenceService {
        let object = json!({"metadata": {"name": "chat", "namespace": "demo", "generation": 3}, "spec": spec});
        serde_json::from_value(object).unwrap()
    }

    fn found(spec: &Value) -> Vec<String> {
        lookup(&catalog(), "mif", &service(spec)).unwrap().iter().map(|layer| layer.source.to_string()).collect()
    }

    #[test]
    fn i5_references_lead_to_layers_lowest_first() {
        let cases = [
            (json!({}), vec![]),
            (json!({"templateRefs": [{"name": "both"}]}), vec!["ClusterInferenceServiceTemplate both"]),
            (json!({"templateRefs": [{"name": "both", "kind": TEMPLATE}]}), vec!["InferenceServiceTemplate demo/both"]),
            (
                json!({"templateRefs": [{"name": "both", "kind": CLUSTER_TEMPLATE, "group": ""}]}),
                vec!["ClusterInferenceServiceTemplate both"],
            ),
            (json!({"templateRefs": [{"name": "local"}]}), vec!["InferenceServiceTemplate demo/local"]),
            (json!({"templateRefs": [{"name": "shared", "group": "odin.moreh.io"}]}), vec!["InferenceServiceTemplate mif/shared"]),
            (
                json!({"runtimeBaseRef": {"name": "engine"}, "templateRefs": [{"name": "shared"}, {"name": "local"}, {"name": "shared"}]}),
                vec![
                    "RuntimeBase engine",
                    "InferenceServiceTemplate mif/shared",
                    "InferenceServiceTemplate demo/local",
                    "InferenceServiceTemplate mif/shared",
                ],
            ),
            (
                json!({"templateRefs": [{"name": "shared"}, {"name": "based"}]}),
                vec!["RuntimeBase engine", "InferenceServiceTemplate mif/shared", "ClusterInferenceServiceTemplate based"],
            ),
        ];
        for (spec, mut expected) in cases {
            expected.push("InferenceService demo/chat");
            assert_eq!(found(&spec), expected, "{spec}");
        }
    }

    #[test]
    fn the_services_own_layer_is_its_spec_as_written() {
        let spec = json!({"replicas": 0, "templateRefs": [{"name": "both"}], "template": {"spec": {"future": {"a": 1}}}});
        let layers = lookup(&catalog(), "mif", &service(&spec)).unwrap();
        let own = layers.last().unwrap();
        assert_eq!((&own.spec, own.source.generation), (&spec, 3));
    }

    #[test]
    fn i4_a_refusal_says_what_was_looked_for_and_where() {
        let cases = [
            (
                json!({"templateRefs": [{"name": "both"}, {"name": "gone"}]}),
                Reason::TemplateNotFound,
                "spec.templateRefs[1]: there is no ClusterInferenceServiceTemplate \"gone\" and no InferenceServiceTemplate \"gone\" in \
                 namespace demo or mif",
            ),
            (
                json!({"templateRefs": [{"name": "foreign", "kind": TEMPLATE}]}),
                Reason::TemplateNotFound,
                "spec.templateRefs[0]: there is no InferenceServiceTemplate \"foreign\" in namespace demo or mif",
            ),
            (
                json!({"templateRefs": [{"name": "local", "kind": CLUSTER_TEMPLATE}]}),
                Reason::TemplateNotFound,
                "spec.templateRefs[0]: there is no ClusterInferenceServiceTemplate \"local\"",
            ),
            (
                json!({"templateRefs": [{"name": "both", "kind": "Pod"}]}),
                Reason::TemplateNotFound,
                "spec.templateRefs[0]: \"Pod\" is no kind of template: use InferenceServiceTemplate or ClusterInferenceServiceTemplate, or \
                 leave kind out",
            ),
            (
                json!({"templateRefs": [{"name": "both", "group": "apps"}]}),
                Reason::TemplateNotFound,
                "spec.templateRefs[0]: group \"apps\" has no templates: leave group out, or write odin.moreh.io",
            ),
            (
                json!({"runtimeBaseRef": {"name": "gone"}}),
                Reason::RuntimeBaseNotFound,
                "there is no RuntimeBase \"gone\", which InferenceService demo/chat names in spec.runtimeBaseRef",
            ),
            (
                json!({"templateRefs": [{"name": "lost"}]}),
                Reason::RuntimeBaseNotFound,
                "there is no RuntimeBase \"nowhere\", which InferenceServiceTemplate mif/lost names in spec.runtimeBaseRef",
            ),
            (
                json!({"runtimeBaseRef": {"name": "engine"}, "templateRefs": [{"name": "shared"}, {"name": "based"}]}),
                Reason::RuntimeBaseConflict,
                "the runtime base may be named in one place only, but InferenceService demo/chat (spec.runtimeBaseRef) names \"engine\" and \
                 ClusterInferenceServiceTemplate based (spec.templateRefs[1]) names \"engine\": leave one runtimeBaseRef, or don't use these \
                 layers together",
            ),
        ];
        for (spec, reason, message) in cases {
            let refusal = lookup(&catalog(), "mif", &service(&spec)).unwrap_err();
            assert_eq!((refusal.reason, refusal.message.as_str()), (reason, message));
        }
    }

    #[test]
    fn names_of_layers_include_those_that_are_missing() {
        let spec = json!({"templateRefs": [{"name": "gone"}, {"name": "lost"}, {"name": "based"}]});
        let names: Vec<String> = layer_names(&catalog(), "mif", &service(&spec)).into_iter().collect();
        assert_eq!(names, ["based", "engine", "gone", "lost", "nowhere"]);
    }
}
