//! What a pod asks for, by the formula of the scheduler.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::resources::{Amounts, CPU, MEMORY, PODS, Resources};
use crate::api::nullable;

/// The part of a pod's spec that says what it asks for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Demands {
    /// The node that it is assigned to.
    pub(super) node_name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    init_containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    resources: ContainerResources,
    #[serde(deserialize_with = "nullable")]
    overhead: Amounts,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    restart_policy: String,
    #[serde(deserialize_with = "nullable")]
    resources: ContainerResources,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerResources {
    #[serde(deserialize_with = "nullable")]
    requests: Amounts,
    #[serde(deserialize_with = "nullable")]
    limits: Amounts,
}

/// The part of a pod's status that tells what it holds, also while a container is resized.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Granted {
    #[serde(deserialize_with = "nullable")]
    pub(super) phase: String,
    /// The node that waits for it until others have gone.
    pub(super) nominated_node_name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "nullable")]
    init_container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    #[serde(deserialize_with = "nullable")]
    name: String,
    #[serde(deserialize_with = "nullable")]
    allocated_resources: Amounts,
    #[serde(deserialize_with = "nullable")]
    resources: ContainerResources,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type", deserialize_with = "nullable")]
    type_: String,
    #[serde(deserialize_with = "nullable")]
    reason: String,
}

impl Granted {
    fn of(&self, name: &str) -> Option<&ContainerStatus> {
        self.container_statuses.iter().chain(&self.init_container_statuses).find(|status| status.name == name)
    }

    fn resize_is_infeasible(&self) -> bool {
        self.conditions.iter().any(|condition| condition.type_ == "PodResizePending" && condition.reason == "Infeasible")
    }
}

/// What to do with an amount that is no quantity.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unreadable {
    /// In a template: say where it stands.
    Refuse,
    /// In a pod that runs already: take it for everything there is, so that room is never made up.
    Everything,
}

/// Request of a pod made from a template; the error says which field can't be read.
pub(super) fn of_template(demands: &Demands) -> Result<Resources, String> {
    request(demands, &Granted::default(), Unreadable::Refuse)
}

/// Request of a pod that exists.
pub(super) fn of_pod(demands: &Demands, granted: &Granted) -> Resources {
    request(demands, granted, Unreadable::Everything).unwrap_or_default()
}

/// Limits of a pod made from a template, by the same formula as its request.
pub(super) fn limits_of_template(demands: &Demands) -> Result<Resources, String> {
    amounts(demands, &Granted::default(), Unreadable::Refuse, Side::Limits)
}

/// Which of `requests.cpu`, `requests.memory`, `limits.cpu` and `limits.memory` a container doesn't set, and the first
/// such container. A quota on one of them makes the member refuse the pod.
pub(super) fn unset(demands: &Demands) -> BTreeMap<String, String> {
    let mut unset = BTreeMap::new();
    for container in demands.containers.iter().chain(&demands.init_containers) {
        for name in [CPU, MEMORY] {
            let sets = |resources: &ContainerResources| (resources.requests.get(name).is_some(), resources.limits.get(name).is_some());
            let ((own_request, own_limit), (request, limit)) = (sets(&container.resources), sets(&demands.resources));
            let limited = own_limit || limit;
            for (key, set) in [("requests", own_request || request || limited), ("limits", limited)] {
                if !set {
                    unset.entry(format!("{key}.{name}")).or_insert_with(|| container.name.clone());
                }
            }
        }
    }
    unset
}

/// Whether no container, nor the pod, asks for cpu or memory or limits them.
pub(super) fn is_best_effort(demands: &Demands) -> bool {
    let containers = demands.containers.iter().chain(&demands.init_containers).map(|container| &container.resources);
    let mut amounts = containers.chain([&demands.resources]).flat_map(|resources| [&resources.requests, &resources.limits]);
    !amounts.any(|amounts| [CPU, MEMORY].iter().any(|name| matches!(amounts.get(name), Some(Ok(amount)) if amount > 0)))
}

/// The names of the extended resources in requests of containers, to which the admission plugin
/// `ExtendedResourceToleration` adds tolerations.
pub(super) fn requested_names(demands: &Demands) -> impl Iterator<Item = &Arc<str>> {
    demands.containers.iter().chain(&demands.init_containers).flat_map(|c| c.resources.requests.names().chain(c.resources.limits.names()))
}

type ByName = BTreeMap<Arc<str>, i64>;

/// Which amounts of a pod are summed up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Requests,
    Limits,
}

fn request(demands: &Demands, granted: &Granted, unreadable: Unreadable) -> Result<Resources, String> {
    amounts(demands, granted, unreadable, Side::Requests)
}

fn amounts(demands: &Demands, granted: &Granted, unreadable: Unreadable, side: Side) -> Result<Resources, String> {
    let read = |amounts: &Amounts, name: &str, place: &dyn Fn() -> String| match amounts.get(name) {
        None => Ok(None),
        Some(Ok(amount)) => Ok(Some(amount)),
        Some(Err(_)) if unreadable == Unreadable::Everything => Ok(Some(i64::MAX)),
        Some(Err(error)) => Err(format!("{}.{name}: {error}", place())),
    };
    let infeasible = granted.resize_is_infeasible();
    let own = |container: &Container, list: &str| -> Result<ByName, String> {
        let resources = &container.resources;
        let mut own = ByName::new();
        // A limit without a request is the request; the API server does this to pods, not to templates.
        let lists = [(&resources.limits, "limits"), (&resources.requests, "requests")];
        for (amounts, field) in lists.into_iter().filter(|(_, field)| side == Side::Requests || *field == "limits") {
            for name in amounts.names() {
                let place = || format!("spec.{list}[{}].resources.{field}", container.name);
                if let Some(amount) = read(amounts, name, &place)? {
                    own.insert(name.clone(), amount);
                }
            }
        }
        if let Some(status) = granted.of(&container.name) {
            for name in [CPU, MEMORY] {
                let place = String::new;
                let allocated = read(&status.allocated_resources, name, &place)?;
                let actual = read(&status.resources.requests, name, &place)?;
                if let Some(held) = allocated.max(actual) {
                    let asked = own.get(name).copied().filter(|_| !infeasible);
                    own.insert(Arc::from(name), asked.map_or(held, |asked| asked.max(held)));
                }
            }
        }
        Ok(own)
    };

    let mut run = ByName::new();
    for container in &demands.containers {
        add(&mut run, &own(container, "containers")?);
    }
    let (mut sidecars, mut start) = (ByName::new(), ByName::new());
    for container in &demands.init_containers {
        let own = own(container, "initContainers")?;
        let mut peak = sidecars.clone();
        add(&mut peak, &own);
        raise(&mut start, &peak);
        if container.restart_policy == "Always" {
            sidecars = peak;
        }
    }
    add(&mut run, &sidecars);
    raise(&mut run, &start);

    let pod = &demands.resources;
    for name in pod.limits.names().chain(pod.requests.names()) {
        if [CPU, MEMORY].contains(&name.as_ref()) || name.starts_with("hugepages-") {
            let asked = read(&pod.requests, name, &|| "spec.resources.requests".to_owned())?.filter(|_| side == Side::Requests);
            // A limit of the pod stands in for its request only where no container asks for any.
            let stands = |_: &i64| side == Side::Limits || !run.contains_key(name);
            let limit = read(&pod.limits, name, &|| "spec.resources.limits".to_owned())?.filter(stands);
            if let Some(amount) = asked.or(limit) {
                run.insert(name.clone(), amount);
            }
        }
    }
    for name in demands.overhead.names() {
        // What isn't limited is not limited by its overhead either.
        let counts = side == Side::Requests || run.contains_key(name);
        if let Some(amount) = read(&demands.overhead, name, &|| "spec.overhead".to_owned())?.filter(|_| counts) {
            let sum = run.entry(name.clone()).or_default();
            *sum = sum.saturating_add(amount);
        }
    }
    if side == Side::Requests {
        run.insert(Arc::from(PODS), 1);
    }
    Ok(run.into_iter().collect())
}

fn add(sums: &mut ByName, more: &ByName) {
    for (name, amount) in more {
        let sum = sums.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

fn raise(peaks: &mut ByName, others: &ByName) {
    for (name, amount) in others {
        let peak = peaks.entry(name.clone()).or_default();
        *peak = (*peak).max(*amount);
    }
}
