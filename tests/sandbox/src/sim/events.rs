//! Writes the kubelet's events; one that comes again raises the count of the first.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference, Pod},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use serde_json::json;

use super::pod::PodEvent;

/// Where events go, and which were written for which pod.
pub(super) struct Events {
    client: Client,
    written: Mutex<HashMap<String, OfPod>>,
}

/// What was written about one pod, by reason and message.
type OfPod = HashMap<(&'static str, String), Written>;

#[derive(Clone)]
struct Written {
    name: String,
    count: i32,
}

impl Events {
    pub(super) fn new(client: Client) -> Self {
        Self { client, written: Mutex::default() }
    }

    /// Forgets what was written about a pod that is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.written.lock().remove(uid);
    }

    /// Writes one event. An event is a courtesy: that it cannot be written is logged, no more.
    pub(super) async fn write(&self, pod: &Pod, event: PodEvent) {
        let meta = &pod.metadata;
        let (Some(namespace), Some(uid)) = (meta.namespace.as_deref(), meta.uid.as_deref()) else { return };
        let key = (event.reason, event.message.clone());
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let now = Time(Timestamp::now());
        let before = self.written.lock().get(uid).and_then(|events| events.get(&key)).cloned();
        if let Some(Written { name, count }) = before {
            let patch = Patch::Merge(json!({"count": count + 1, "lastTimestamp": now}));
            if api.patch(&name, &PatchParams::default(), &patch).await.is_ok() {
                self.remember(uid, key, Written { name, count: count + 1 });
                return;
            }
        }
        let name = format!("{}.{:x}", meta.name.as_deref().unwrap_or_default(), now.0.as_nanosecond());
        let host = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let object = Event {
            metadata: ObjectMeta { name: Some(name.clone()), namespace: Some(namespace.to_owned()), ..Default::default() },
            involved_object: ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                namespace: meta.namespace.clone(),
                name: meta.name.clone(),
                uid: meta.uid.clone(),
                resource_version: meta.resource_version.clone(),
                field_path: None,
            },
            type_: Some(if event.warning { "Warning" } else { "Normal" }.to_owned()),
            reason: Some(event.reason.to_owned()),
            message: Some(event.message),
            count: Some(1),
            first_timestamp: Some(now.clone()),
            last_timestamp: Some(now),
            source: Some(EventSource { component: Some("kubelet".to_owned()), host: host.clone() }),
            reporting_component: Some("kubelet".to_owned()),
            reporting_instance: host,
            ..Default::default()
        };
        match api.create(&PostParams::default(), &object).await {
            Ok(_) => self.remember(uid, key, Written { name, count: 1 }),
            Err(error) => tracing::debug!(%error, pod = %object.involved_object.name.as_deref().unwrap_or_default(), "event not written"),
        }
    }

    fn remember(&self, uid: &str, key: (&'static str, String), written: Written) {
        self.written.lock().entry(uid.to_owned()).or_default().insert(key, written);
    }
}
