//! Events of a member: why something could not be made.

use jiff::Timestamp;
use serde::Deserialize;

use super::Plain;
use super::meta::Metadata;
use crate::api::nullable;
use crate::member::client::shorten;

/// An Event, in the form of core/v1, in which those of the newer API can be read too.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::member) struct Event {
    #[serde(deserialize_with = "nullable")]
    pub(in crate::member) metadata: Metadata,
    #[serde(deserialize_with = "nullable")]
    involved_object: InvolvedObject,
    #[serde(deserialize_with = "nullable")]
    pub(in crate::member) reason: String,
    #[serde(deserialize_with = "nullable")]
    pub(in crate::member) message: String,
    #[serde(deserialize_with = "nullable")]
    series: Series,
    #[serde(rename = "eventTime")]
    time: Option<String>,
    last_timestamp: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct InvolvedObject {
    #[serde(deserialize_with = "nullable")]
    uid: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Series {
    last_observed_time: Option<String>,
}

impl Event {
    /// UID of the object that it is about.
    pub(in crate::member) fn about(&self) -> &str {
        &self.involved_object.uid
    }

    /// When it was last observed. Of these times only some are set, depending on the API that it was written by.
    pub(in crate::member) fn at(&self) -> Option<Timestamp> {
        let times = [&self.series.last_observed_time, &self.time, &self.last_timestamp];
        times.into_iter().find_map(|time| time.as_ref()?.parse().ok()).or(self.metadata.creation_timestamp)
    }

    fn shortened(mut self) -> Self {
        self.message = shorten(&self.message);
        self.reason = shorten(&self.reason);
        self
    }
}

/// An Event about a `StatefulSet`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(in crate::member) struct SetEvent(pub(in crate::member) Event);

impl Plain for SetEvent {
    fn resource_version(&self) -> &str {
        &self.0.metadata.resource_version
    }

    fn capped(self) -> Self {
        Self(self.0.shortened())
    }
}

/// An Event about a `LeaderWorkerSet`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(in crate::member) struct LwsEvent(pub(in crate::member) Event);

impl Plain for LwsEvent {
    fn resource_version(&self) -> &str {
        &self.0.metadata.resource_version
    }

    fn capped(self) -> Self {
        Self(self.0.shortened())
    }
}
