//! Nodes to create.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Node, NodeSpec as KubeNodeSpec, NodeStatus, Taint as KubeTaint},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};

/// A node to create: what it is called, what it holds, how it is labelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// Its CPUs, as a Kubernetes quantity.
    pub cpu: String,
    /// Its memory, as a Kubernetes quantity.
    pub memory: String,
    /// How many pods it may run.
    pub pods: u32,
    /// Its devices by resource name.
    pub extended: BTreeMap<String, u64>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<Taint>,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// The key.
    pub key: String,
    /// The value, or nothing.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

impl NodeSpec {
    /// A big node without devices: 192 CPUs, 2 TiB of memory, 110 pods.
    pub fn new(name: &str) -> Self {
        let labels = [("kubernetes.io/hostname", name), ("kubernetes.io/os", "linux"), ("kubernetes.io/arch", "amd64")];
        Self {
            name: name.to_owned(),
            cpu: "192".to_owned(),
            memory: "2Ti".to_owned(),
            pods: 110,
            extended: BTreeMap::new(),
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            taints: vec![],
        }
    }

    /// A node with `count` devices `<vendor>.com/gpu` of a model such as `mi300x`, labelled and tainted as GPU nodes are.
    pub fn gpu(name: &str, vendor: &str, model: &str, count: u64) -> Self {
        let resource = format!("{vendor}.com/gpu");
        Self::new(name)
            .with(&resource, count)
            .label("moai.moreh.io/accelerator.vendor", vendor)
            .label("moai.moreh.io/accelerator.model", model)
            .taint(&resource, "", "NoSchedule")
    }

    /// Has this many devices of a resource, such as `mellanox/hca`.
    pub fn with(mut self, resource: &str, count: u64) -> Self {
        self.extended.insert(resource.to_owned(), count);
        self
    }

    /// Has these CPUs, as a Kubernetes quantity.
    pub fn cpu(self, quantity: &str) -> Self {
        Self { cpu: quantity.to_owned(), ..self }
    }

    /// Has this memory, as a Kubernetes quantity.
    pub fn memory(self, quantity: &str) -> Self {
        Self { memory: quantity.to_owned(), ..self }
    }

    /// Runs at most this many pods.
    pub fn pods(self, pods: u32) -> Self {
        Self { pods, ..self }
    }

    /// Bears a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Bears a taint; an empty value is none.
    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        self.taints.push(Taint { key: key.to_owned(), value: value.to_owned(), effect: effect.to_owned() });
        self
    }

    /// The object.
    pub fn to_node(&self) -> Node {
        let mut capacity: BTreeMap<String, Quantity> =
            self.extended.iter().map(|(resource, count)| (resource.clone(), Quantity(count.to_string()))).collect();
        for (resource, quantity) in [
            ("cpu", self.cpu.clone()),
            ("memory", self.memory.clone()),
            ("pods", self.pods.to_string()),
            ("ephemeral-storage", "4Ti".to_owned()),
        ] {
            capacity.insert(resource.to_owned(), Quantity(quantity));
        }
        let taint = |taint: &Taint| KubeTaint {
            key: taint.key.clone(),
            value: Some(taint.value.clone()).filter(|value| !value.is_empty()),
            effect: taint.effect.clone(),
            time_added: None,
        };
        Node {
            metadata: ObjectMeta { name: Some(self.name.clone()), labels: Some(self.labels.clone()), ..Default::default() },
            spec: Some(KubeNodeSpec { taints: Some(self.taints.iter().map(taint).collect()), ..Default::default() }),
            status: Some(NodeStatus { allocatable: Some(capacity.clone()), capacity: Some(capacity), ..Default::default() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_gpu_node() {
        let node = serde_json::to_value(NodeSpec::gpu("gpu-0", "amd", "mi300x", 8).with("mellanox/hca", 8).to_node()).unwrap();
        let resources =
            json!({"cpu": "192", "memory": "2Ti", "pods": "110", "ephemeral-storage": "4Ti", "amd.com/gpu": "8", "mellanox/hca": "8"});
        assert_eq!(
            node,
            json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "gpu-0", "labels": {
                    "kubernetes.io/hostname": "gpu-0", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                    "moai.moreh.io/accelerator.vendor": "amd", "moai.moreh.io/accelerator.model": "mi300x",
                }},
                "spec": {"taints": [{"key": "amd.com/gpu", "effect": "NoSchedule"}]},
                "status": {"allocatable": resources, "capacity": resources},
            })
        );
    }
}
