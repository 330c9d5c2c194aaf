//! What the controllers share.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Client, ResourceExt as _};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::Settings;
use super::identity::Identity;
use super::layers::{LayerStores, LayerUsers};
use super::member::Written;
use super::members::Members;
use super::placer::{Ended, Placer};
use super::pools::Pools;
use super::recorder::Recorder;
use super::roll::Fleet;
use super::service::Memos;
use super::trigger::Trigger;
use super::watch::Watches;
use crate::api::federation::MemberCluster;
use crate::api::odin::InferenceService;
use crate::capacity::ServiceKey;
use crate::member::Event;
use crate::placement::Plan;
use crate::render::Renderer;
use crate::telemetry::metrics::Metrics;

/// What the controllers share.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) settings: Settings,
    pub(crate) hub_id: String,
    pub(crate) started: Timestamp,
    pub(crate) layers: LayerStores,
    pub(crate) renderer: Renderer,
    pub(crate) users: Arc<LayerUsers>,
    pub(crate) pools: Arc<Pools>,
    pub(crate) recorder: Recorder,
    pub(crate) services: Store<InferenceService>,
    pub(crate) clusters: Store<MemberCluster>,
    pub(crate) secrets: Store<Secret>,
    pub(crate) fleet: Fleet,
    pub(crate) members: Arc<Members>,
    pub(crate) placer: Placer,
    pub(crate) memos: Memos,
    /// When the status of each member was last written.
    pub(crate) written: Written,
    pub(crate) service_trigger: Arc<Trigger<ServiceKey>>,
    pub(crate) member_trigger: Arc<Trigger<String>>,
    /// Secrets that may register a member.
    pub(crate) secret_trigger: Arc<Trigger<String>>,
    /// Services that are gone, with their UID.
    pub(crate) gone_services: Arc<Trigger<(ServiceKey, String)>>,
    /// Members that are no longer registered, with the UID of the registration.
    pub(crate) gone_members: Arc<Trigger<(String, String)>>,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) metrics: Arc<Metrics>,
    waiting: Mutex<BTreeSet<ServiceKey>>,
}

impl Context {
    /// Puts the parts together and starts the placement actor.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn new(
        client: Client,
        settings: Settings,
        identity: Identity,
        watches: Watches,
        events: mpsc::Sender<Event>,
        recorder: Recorder,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<Arc<Self>> {
        let members = Arc::new(Members::default());
        let own_cluster = (!settings.allow_self).then_some(identity.cluster);
        let fleet = Fleet { members: members.clone(), namespaces: watches.namespaces, own_cluster };
        Ok(Arc::new(Self {
            client,
            settings,
            hub_id: identity.hub,
            started: Timestamp::now(),
            layers: watches.layers,
            renderer: Renderer::default(),
            users: watches.users,
            pools: Arc::default(),
            recorder,
            services: watches.services,
            clusters: watches.clusters,
            secrets: watches.secrets,
            placer: Placer::start(fleet.clone(), metrics.clone())?,
            fleet,
            members,
            memos: Memos::default(),
            written: Written::default(),
            service_trigger: watches.service_trigger,
            member_trigger: watches.member_trigger,
            secret_trigger: watches.secret_trigger,
            gone_services: watches.gone_services,
            gone_members: watches.gone_members,
            events,
            metrics,
            waiting: Mutex::default(),
        }))
    }

    /// Whether a `MemberCluster` of this name exists.
    pub(crate) fn is_registered(&self, cluster: &str) -> bool {
        self.clusters.get(&ObjectRef::new(cluster)).is_some()
    }

    /// Whether every registered member has been listed, or is known to be out of reach, or took too long.
    pub(crate) fn are_members_settled(&self) -> bool {
        let registered = self.clusters.state();
        self.members.are_settled(registered.iter().filter_map(|cluster| cluster.metadata.name.as_deref()))
    }

    /// Takes back what was decided for a service, when it could not be written.
    pub(crate) async fn forget_decision(&self, service: &InferenceService, plan: Option<&Plan>, decided: bool) -> Result<(), Ended> {
        if plan.is_some() && decided {
            self.placer.forget(&service.uid().unwrap_or_default()).await?;
        }
        Ok(())
    }

    /// Notes whether a service waits for room.
    pub(crate) fn note_waiting(&self, service: &ServiceKey, waits: bool) {
        let mut waiting = self.waiting.lock();
        if waits {
            waiting.insert(service.clone());
        } else {
            waiting.remove(service);
        }
    }

    /// Starts a pass for every service that waits for room.
    pub(crate) fn retry_waiting(&self) {
        let waiting: Vec<_> = self.waiting.lock().iter().cloned().collect();
        self.service_trigger.extend(waiting);
    }

    /// Starts a pass for every service that has a placement in the member.
    pub(crate) fn touch_services_in(&self, cluster: &str) {
        let placed =
            self.services.state().into_iter().filter(|service| {
                service.status.iter().flat_map(|status| &status.placements).any(|placement| placement.cluster == cluster)
            });
        self.service_trigger.extend(placed.map(|service| ServiceKey::from(&*service)));
    }

    /// Forgets a service that is gone.
    pub(crate) async fn forget(&self, service: &ServiceKey, uid: &str) -> Result<(), Ended> {
        self.placer.remove(uid).await?;
        for (_, entry) in self.members.all() {
            if let Ok(member) = &entry.runtime {
                member.forget(uid);
            }
        }
        // One of the same name may have taken its place already.
        let now = self.services.get(&ObjectRef::new(&service.name).within(&service.namespace));
        if now.is_none_or(|now| now.metadata.uid.as_deref() == Some(uid)) {
            self.memos.forget(service);
            self.users.forget(service);
            self.note_waiting(service, false);
        }
        Ok(())
    }
}
