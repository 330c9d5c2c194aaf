//! What capacity is computed from: nodes, pods and quotas of a member.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;

use super::{Cache, Change, Sink};
use crate::capacity::{NodeView, PodView, QuotaView, Snapshot, Store};

/// The prints tell whether an event changed anything that capacity looks at: most events of nodes and pods don't.
#[derive(Debug, Default)]
pub(super) struct Capacity {
    store: Store,
    nodes: HashMap<String, u64>,
    pods: HashMap<String, u64>,
    quotas: HashMap<String, u64>,
}

impl Capacity {
    pub(super) fn snapshot(&mut self) -> Arc<Snapshot> {
        self.store.snapshot()
    }

    fn put_node(&mut self, mut node: NodeView) -> bool {
        node.resource_version.clear();
        let print = print_of(&node);
        if self.nodes.insert(node.name.clone(), print) == Some(print) {
            return false;
        }
        self.store.upsert_node(node);
        true
    }

    fn put_pod(&mut self, mut view: PodView) -> bool {
        view.resource_version.clear();
        let print = print_of(&view);
        if self.pods.insert(view.uid.clone(), print) == Some(print) {
            return false;
        }
        self.store.upsert_pod(view);
        true
    }

    fn put_quota(&mut self, mut quota: QuotaView) -> bool {
        quota.resource_version.clear();
        let print = print_of(&quota);
        if self.quotas.insert(quota.uid.clone(), print) == Some(print) {
            return false;
        }
        self.store.upsert_quota(quota);
        true
    }
}

/// A hash of all that Debug prints, without making the text.
fn print_of(value: &impl fmt::Debug) -> u64 {
    struct Print(DefaultHasher);
    impl fmt::Write for Print {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut print = Print(DefaultHasher::new());
    // Writing into a hasher can't fail.
    let _ = write!(print, "{value:?}");
    print.0.finish()
}

impl Sink<NodeView> for Cache {
    fn apply(&self, change: Change<NodeView>) {
        let mut capacity = self.capacity.lock();
        let changed = match change {
            Change::All(nodes) => {
                capacity.store.clear_nodes();
                capacity.nodes.clear();
                for node in nodes {
                    capacity.put_node(node);
                }
                true
            }
            Change::Put(node) => capacity.put_node(node),
            Change::Gone(node) => {
                capacity.nodes.remove(&node.name);
                capacity.store.remove_node(&node.name);
                true
            }
        };
        drop(capacity);
        if changed {
            self.notifier.capacity(true);
        }
    }
}

impl Sink<QuotaView> for Cache {
    fn apply(&self, change: Change<QuotaView>) {
        let mut capacity = self.capacity.lock();
        let changed = match change {
            Change::All(quotas) => {
                let before = std::mem::take(&mut capacity.quotas);
                capacity.store.clear_quotas();
                for quota in quotas {
                    capacity.put_quota(quota);
                }
                before != capacity.quotas
            }
            Change::Put(quota) => capacity.put_quota(quota),
            Change::Gone(quota) => {
                capacity.quotas.remove(&quota.uid);
                capacity.store.remove_quota(&quota.uid);
                true
            }
        };
        drop(capacity);
        if changed {
            self.notifier.capacity(true);
        }
    }
}

impl Cache {
    pub(super) fn all_pods(&self, views: Vec<PodView>) {
        let mut capacity = self.capacity.lock();
        capacity.store.clear_pods();
        capacity.pods.clear();
        for view in views {
            capacity.put_pod(view);
        }
        drop(capacity);
        self.notifier.capacity(true);
    }

    pub(super) fn put_pod(&self, view: PodView) {
        let ended = view.finished;
        let changed = self.capacity.lock().put_pod(view);
        if changed {
            self.notifier.capacity(ended);
        }
    }

    pub(super) fn drop_pod(&self, view: &PodView) {
        let mut capacity = self.capacity.lock();
        capacity.pods.remove(&view.uid);
        capacity.store.remove_pod(&view.uid);
        drop(capacity);
        self.notifier.capacity(view.node.is_some());
    }
}
