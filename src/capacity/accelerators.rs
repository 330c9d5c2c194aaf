//! The accelerators of a member, for its status.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::fit::{Verdict, verdict};
use super::reservation::unassigned;
use super::resources::is_extended;
use super::room::{Options, Promise};
use super::snapshot::{Class, Snapshot};
use crate::api::federation::{Accelerator, FreeNodes};
use crate::api::labels::{ACCELERATOR_MODEL, ACCELERATOR_VENDOR};

/// Models that the short form names.
const SUMMARY: usize = 6;

/// A vendor's resources and the labels by which it names its products.
struct Vendor {
    name: &'static str,
    /// Prefixes of resource names.
    resources: &'static [&'static str],
    product_labels: &'static [&'static str],
}

/// Resources of network cards are extended too, but no accelerators.
const VENDORS: &[Vendor] = &[
    Vendor {
        name: "nvidia",
        resources: &["nvidia.com/gpu", "nvidia.com/mig-"],
        product_labels: &["nvidia.com/gpu.product", "gpu.nvidia.com/model"],
    },
    Vendor { name: "amd", resources: &["amd.com/"], product_labels: &["amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"] },
    Vendor { name: "intel", resources: &["gpu.intel.com/"], product_labels: &["gpu.intel.com/product"] },
    Vendor { name: "habana", resources: &["habana.ai/gaudi"], product_labels: &[] },
    Vendor { name: "google", resources: &["google.com/tpu"], product_labels: &["cloud.google.com/gke-tpu-accelerator"] },
    Vendor { name: "aws", resources: &["aws.amazon.com/neuron"], product_labels: &[] },
    Vendor { name: "furiosa", resources: &["furiosa.ai/", "beta.furiosa.ai/npu"], product_labels: &[] },
    Vendor { name: "rebellions", resources: &["rebellions.ai/"], product_labels: &[] },
    Vendor { name: "huawei", resources: &["huawei.com/Ascend"], product_labels: &[] },
    Vendor { name: "tenstorrent", resources: &["tenstorrent.com/"], product_labels: &[] },
];

/// Labels of clouds, which name the accelerator of a node whatever its vendor.
const CLOUD_LABELS: &[&str] = &["cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator", "karpenter.k8s.aws/instance-gpu-name"];

fn vendor(resource: &str) -> Option<&'static Vendor> {
    // Monitors of devices are offered beside them.
    let device = is_extended(resource) && !resource.ends_with("_monitoring");
    VENDORS.iter().find(|vendor| device && vendor.resources.iter().any(|prefix| resource.starts_with(prefix)))
}

/// The first label that says which accelerator a node has.
pub(super) fn label(class: &Class) -> Option<(&str, &str)> {
    let products = VENDORS.iter().flat_map(|vendor| vendor.product_labels);
    std::iter::once(&ACCELERATOR_MODEL).chain(products).chain(CLOUD_LABELS).find_map(|key| Some((*key, filled(class, key)?)))
}

/// Whether nodes of this class offer any accelerator.
pub(super) fn offered(class: &Class) -> bool {
    class.allocatable.iter().any(|(name, _)| vendor(name).is_some())
}

/// The value of a label unless it is empty.
fn filled<'a>(class: &'a Class, key: &str) -> Option<&'a str> {
    class.label(key).filter(|value| !value.is_empty())
}

type Key = (String, Option<String>, Option<String>);

/// Devices by resource, vendor and model.
pub(super) fn of(snapshot: &Snapshot, promises: &[Promise]) -> Vec<Accelerator> {
    let mut found: BTreeMap<Key, (Accelerator, BTreeMap<i64, i64>)> = BTreeMap::new();
    for bucket in &snapshot.buckets {
        let class = &bucket.class;
        let nodes = i64::try_from(bucket.nodes.len()).unwrap_or(i64::MAX);
        for (resource, allocatable) in class.allocatable.iter() {
            let Some(key) = key(class, resource) else { continue };
            let (accelerator, free_by_node) = found.entry(key).or_default();
            let used = bucket.used.get(resource);
            accelerator.nodes += nodes;
            accelerator.allocatable = accelerator.allocatable.saturating_add(allocatable.saturating_mul(nodes));
            accelerator.used = accelerator.used.saturating_add(used.saturating_mul(nodes));
            if class.ready && !class.unschedulable {
                let free = allocatable.saturating_sub(used).max(0);
                accelerator.free = accelerator.free.saturating_add(free.saturating_mul(nodes));
                accelerator.largest_free_node = accelerator.largest_free_node.max(free);
                *free_by_node.entry(free).or_default() += nodes;
            }
        }
    }
    reserve(snapshot, promises, &mut found);
    let finish = |((resource, vendor, model), (accelerator, free_by_node)): (Key, (Accelerator, BTreeMap<i64, i64>))| Accelerator {
        resource,
        vendor,
        model,
        free_by_node: free_by_node.into_iter().rev().map(|(free, nodes)| FreeNodes { free, nodes }).collect(),
        ..accelerator
    };
    found.into_iter().map(finish).collect()
}

fn key(class: &Class, resource: &str) -> Option<Key> {
    let maker = vendor(resource)?;
    let vendor = filled(class, ACCELERATOR_VENDOR).unwrap_or(maker.name);
    let model = std::iter::once(&ACCELERATOR_MODEL).chain(maker.product_labels).chain(CLOUD_LABELS).find_map(|key| filled(class, key));
    Some((resource.to_owned(), Some(vendor.to_owned()), model.map(str::to_owned)))
}

/// Counts what is promised and not assigned yet where the pods could go: at the first model that they select.
fn reserve(snapshot: &Snapshot, promises: &[Promise], found: &mut BTreeMap<Key, (Accelerator, BTreeMap<i64, i64>)>) {
    for promise in promises {
        let assigned = snapshot.tally(&promise.service).map(|tally| tally.assigned).unwrap_or_default();
        for (shape, pods) in unassigned(promise, assigned) {
            let waiting = i64::try_from(pods).unwrap_or(i64::MAX);
            for (resource, request) in shape.requests.iter().filter(|(resource, _)| vendor(resource).is_some()) {
                let may_go = |class: &Class, name: &str| {
                    !matches!(verdict(class, name, shape, Options::default()), Verdict::NotSelected | Verdict::NoDevices(_))
                };
                let place = snapshot
                    .buckets
                    .iter()
                    .filter(|bucket| may_go(&bucket.class, bucket.first_name()))
                    .find_map(|bucket| key(&bucket.class, resource).filter(|key| found.contains_key(key)));
                if let Some((accelerator, _)) = place.and_then(|key| found.get_mut(&key)) {
                    accelerator.reserved = accelerator.reserved.saturating_add(request.saturating_mul(waiting));
                }
            }
        }
    }
}

/// Free and allocatable devices by model, for people: `24/64 mi300x, 8/8 h200`.
pub fn summary(accelerators: &[Accelerator]) -> String {
    let mut models: BTreeMap<(&str, &str), (i64, i64)> = BTreeMap::new();
    for accelerator in accelerators {
        let model = accelerator.model.as_deref().unwrap_or(&accelerator.resource);
        let (free, allocatable) = models.entry((model, &accelerator.resource)).or_default();
        *free = free.saturating_add(accelerator.free);
        *allocatable = allocatable.saturating_add(accelerator.allocatable);
    }
    let ambiguous = |model: &str| models.keys().filter(|(other, _)| *other == model).count() > 1;
    let mut lines: Vec<(i64, String)> = models
        .iter()
        .map(|((model, resource), (free, allocatable))| {
            let resource = if ambiguous(model) { format!(" ({resource})") } else { String::new() };
            (*allocatable, format!("{free}/{allocatable} {model}{resource}"))
        })
        .collect();
    // The largest stock first; the sort is stable, so that equals keep the order of their names.
    lines.sort_by_key(|(allocatable, _)| std::cmp::Reverse(*allocatable));
    let mut text = lines.iter().take(SUMMARY).map(|(_, line)| line.as_str()).collect::<Vec<_>>().join(", ");
    if lines.len() > SUMMARY {
        let _ = write!(text, " +{} more", lines.len() - SUMMARY);
    }
    text
}
