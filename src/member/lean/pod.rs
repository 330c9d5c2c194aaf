//! Pods: what they take, and what is wrong with those of services.

use serde::Deserialize;

use super::meta::same;
use super::{Lean, event, list};
use crate::api::lws;
use crate::api::nullable;
use crate::capacity::PodView;
use crate::status::PodStatusView;

/// A pod: what it takes, and what is wrong with it if it is one of a service or of a `LeaderWorkerSet`, whose workers
/// need not bear the label of the service.
#[derive(Debug)]
pub(in crate::member) struct Pod {
    pub(in crate::member) view: PodView,
    pub(in crate::member) status: Option<PodStatusView>,
    pub(in crate::member) place: Option<Place>,
}

/// The place of a pod in a `LeaderWorkerSet`, as its labels tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::member) struct Place {
    /// Number of its group.
    pub(in crate::member) group: Option<u32>,
    /// It leads the group.
    pub(in crate::member) leads: bool,
    /// The revision of the `LeaderWorkerSet` that it was made from.
    pub(in crate::member) revision: String,
}

/// A pod of which only the labels of its place are read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Placed {
    #[serde(deserialize_with = "nullable")]
    metadata: PlacedMeta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PlacedMeta {
    #[serde(deserialize_with = "nullable")]
    labels: PlaceLabels,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PlaceLabels {
    #[serde(rename = "leaderworkerset.sigs.k8s.io/name")]
    set: Option<String>,
    #[serde(rename = "leaderworkerset.sigs.k8s.io/group-index")]
    group: Option<String>,
    #[serde(rename = "leaderworkerset.sigs.k8s.io/worker-index")]
    index: Option<String>,
    #[serde(rename = "leaderworkerset.sigs.k8s.io/template-revision-hash")]
    revision: Option<String>,
}

const _: () = {
    assert!(same(lws::NAME, "leaderworkerset.sigs.k8s.io/name"));
    assert!(same(lws::GROUP_INDEX, "leaderworkerset.sigs.k8s.io/group-index"));
    assert!(same(lws::WORKER_INDEX, "leaderworkerset.sigs.k8s.io/worker-index"));
};

impl Placed {
    fn place(self) -> Option<Place> {
        let labels = self.metadata.labels;
        labels.set?;
        Some(Place {
            group: labels.group.and_then(|group| group.parse().ok()),
            leads: labels.index.as_deref() == Some("0"),
            revision: labels.revision.unwrap_or_default(),
        })
    }
}

impl Pod {
    fn is_explained(view: &PodView, place: Option<&Place>) -> bool {
        view.service.is_some() || place.is_some()
    }
}

impl Lean for Pod {
    fn of_event(line: &[u8]) -> serde_json::Result<Self> {
        let view: PodView = event(line)?;
        let place = event::<Placed>(line)?.place();
        let status = if Self::is_explained(&view, place.as_ref()) { Some(event(line)?) } else { None };
        Ok(Self { view, status, place })
    }

    fn of_list(page: &[u8]) -> serde_json::Result<Vec<Self>> {
        let views: Vec<PodView> = list(page)?;
        let places: Vec<Option<Place>> = list::<Placed>(page)?.into_iter().map(Placed::place).collect();
        let mut pods: Vec<Self> = views.into_iter().zip(places).map(|(view, place)| Self { view, status: None, place }).collect();
        if pods.iter().any(|pod| Self::is_explained(&pod.view, pod.place.as_ref())) {
            for (pod, status) in pods.iter_mut().zip(list(page)?) {
                pod.status = Some(status).filter(|_| Self::is_explained(&pod.view, pod.place.as_ref()));
            }
        }
        Ok(pods)
    }

    fn resource_version(&self) -> &str {
        &self.view.resource_version
    }
}
