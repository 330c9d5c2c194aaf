//! Containers and the lists of a pod.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Faults, Pod, items, present};
use crate::api::reason::Reason;
use crate::capacity::resources::is_extended;
use crate::merge::{Path, Step};

/// Lists of a pod whose items server-side apply tells apart by these fields.
const POD_LISTS: [(&str, &[&str]); 7] = [
    ("volumes", &["name"]),
    ("imagePullSecrets", &["name"]),
    ("hostAliases", &["ip"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("schedulingGates", &["name"]),
    ("resourceClaims", &["name"]),
    ("evictionResponders", &["name"]),
];

/// The same for the lists of a container.
const CONTAINER_LISTS: [(&str, &[&str]); 4] =
    [("env", &["name"]), ("ports", &["containerPort", "protocol"]), ("volumeMounts", &["mountPath"]), ("volumeDevices", &["devicePath"])];

pub(super) fn check(pod: &Pod<'_>, faults: &mut Faults) {
    let spec = pod.template.get("spec").unwrap_or(&Value::Null);
    let place = pod.place([Step::field("spec")]);
    if items(spec, "containers").is_empty() {
        faults.add(
            Reason::InvalidRendered,
            format!("{} has no container: set one in the service or in a layer", pod.provenance.describe(&place)),
        );
    }
    let mut names = Uniques::default();
    for list in ["containers", "initContainers"] {
        for (index, container) in items(spec, list).iter().enumerate() {
            let place = place.clone().then(Step::field(list)).then(Step::Index(index));
            if container.get("image").and_then(Value::as_str).is_none_or(str::is_empty) {
                faults.add(Reason::InvalidRendered, without_image(pod, list, container, &place));
            }
            names.add(container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(), place.clone());
            for (list, keys) in CONTAINER_LISTS {
                unique_items(pod, container, list, keys, &place, faults);
            }
        }
    }
    names.report("containers and initContainers of a pod must differ in name", pod, faults);
    for (list, keys) in POD_LISTS {
        unique_items(pod, spec, list, keys, &place, faults);
    }
}

fn without_image(pod: &Pod<'_>, list: &str, container: &Value, place: &Path) -> String {
    let place = pod.provenance.locate(place);
    let twin = present(pod.spec, "workerTemplate").and_then(|workers| {
        let name = container.get("name");
        items(workers.get("spec")?, list).iter().find(|other| other.get("name") == name && present(other, "image").is_some())
    });
    if pod.name == "template" && twin.is_some() {
        format!("{place} has no image: the container of that name is in spec.workerTemplate, write this under workerTemplate")
    } else {
        format!("{place} has no image: set one, or check the name if it should add to a container of another layer")
    }
}

fn unique_items(pod: &Pod<'_>, holder: &Value, list: &str, keys: &[&str], place: &Path, faults: &mut Faults) {
    let mut seen = Uniques::default();
    for (index, item) in items(holder, list).iter().enumerate() {
        let id = keys.iter().map(|key| match (item.get(key), *key) {
            (Some(Value::String(text)), _) => text.clone(),
            (Some(value), _) => value.to_string(),
            (None, "protocol") => "TCP".to_owned(),
            (None, _) => String::new(),
        });
        seen.add(id.collect::<Vec<_>>().join("/"), place.clone().then(Step::field(list)).then(Step::Index(index)));
    }
    seen.report(&format!("items of {list} must differ in {}", keys.join(" or ")), pod, faults);
}

/// Items by what should tell them apart.
#[derive(Default)]
struct Uniques {
    places: BTreeMap<String, Vec<Path>>,
}

impl Uniques {
    fn add(&mut self, id: String, place: Path) {
        self.places.entry(id).or_default().push(place);
    }

    fn report(self, rule: &str, pod: &Pod<'_>, faults: &mut Faults) {
        for (id, places) in self.places.into_iter().filter(|(_, places)| places.len() > 1) {
            let count = places.len();
            let mut places: Vec<String> = places.iter().map(|place| located(pod, place)).collect();
            places.dedup();
            let what = match places.as_slice() {
                [place] => format!("{place} is there {count} times"),
                places => format!("{} are alike", places.join(" and ")),
            };
            faults.add(Reason::InvalidRendered, format!("{what} ({id:?}): {rule}"));
        }
    }
}

/// A place with all layers that have it: any of them may have brought the double.
fn located(pod: &Pod<'_>, place: &Path) -> String {
    let layers: Vec<String> = pod.provenance.layers_with(place).iter().map(|layer| layer.source.to_string()).collect();
    let place = pod.provenance.describe(place);
    if layers.is_empty() { place } else { format!("{place} of {}", layers.join(" and ")) }
}

/// What is allowed but hardly meant.
pub(super) fn warnings(spec: &Value) -> Vec<String> {
    let asks = |name: &str| present(spec, name).map(asks_for_devices);
    match (asks("template"), asks("workerTemplate")) {
        (Some(false), Some(true)) => vec![
            "spec.template asks for no accelerator while spec.workerTemplate does: the leader of each group would start without devices; \
             set limits under template too"
                .to_owned(),
        ],
        (Some(true), _) | (_, Some(true)) => Vec::new(),
        _ => vec![
            "the service asks for no accelerator: it runs on CPUs alone; set a limit such as nvidia.com/gpu if that isn't meant".to_owned(),
        ],
    }
}

/// Whether any container asks for an extended resource, or the pod for devices by resource claims.
fn asks_for_devices(template: &Value) -> bool {
    let Some(spec) = template.get("spec") else { return false };
    let extended = |container: &Value| {
        ["limits", "requests"].iter().any(|kind| {
            let Some(Value::Object(list)) = container.get("resources").and_then(|r| r.get(*kind)) else { return false };
            list.iter().any(|(name, amount)| is_extended(name) && *amount != 0 && *amount != "0")
        })
    };
    items(spec, "containers").iter().chain(items(spec, "initContainers")).any(extended) || !items(spec, "resourceClaims").is_empty()
}
