//! Which kinds of a member are followed, and when: some always, some only where the member serves them, and events only
//! while something isn't as it should be.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::watch;
use tokio::time::timeout;

use super::cache::{Cache, Sink};
use super::lean::{Deployment, Kind, LeaderWorkerSet, Lean, LwsEvent, Pod, ReplicaSet, Service, SetEvent, StatefulSet};
use super::watch::{Watch, encode};
use crate::api::labels::{HUB, INFERENCE_SERVICE};
use crate::api::lws;
use crate::capacity::{NodeView, QuotaView};
use crate::telemetry::metrics::MemberMetrics;

/// How long events are followed after the last one was of use: what comes and goes doesn't open a watch each time.
const EVENTS_LINGER: Duration = Duration::from_secs(60);

/// A watch, once it is started.
pub(super) type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What all watches of a member have in common.
#[derive(Clone)]
pub(super) struct Follow {
    pub(super) client: Client,
    pub(super) cache: Arc<Cache>,
    pub(super) hub_id: String,
    /// Changes when the member came back.
    pub(super) returned: watch::Receiver<u64>,
    pub(super) metrics: Arc<MemberMetrics>,
}

impl Follow {
    /// All watches; `lws_served` tells whether the member serves `LeaderWorkerSets`.
    pub(super) fn all(&self, lws_served: &watch::Receiver<bool>) -> Vec<Running> {
        let ours = labels(&format!("{HUB}={}", self.hub_id));
        // They don't bear the hub's label, but that of the LeaderWorkerSet that they belong to.
        let of_lws = labels(lws::NAME);
        // Those that are no longer there take no room.
        let running = fields("status.phase!=Succeeded,status.phase!=Failed");
        let refused_pods = fields("involvedObject.kind=StatefulSet,reason=FailedCreate");
        let refused_sets = fields("involvedObject.kind=LeaderWorkerSet,type=Warning");
        let events_wanted = self.cache.events_wanted.subscribe();
        let at_once = Duration::ZERO;
        vec![
            self.always::<NodeView>(Kind::Node, String::new()),
            self.always::<Pod>(Kind::Pod, running),
            self.always::<Deployment>(Kind::Deployment, ours.clone()),
            self.always::<ReplicaSet>(Kind::ReplicaSet, labels(INFERENCE_SERVICE)),
            self.always::<Service>(Kind::Service, ours.clone()),
            self.always::<QuotaView>(Kind::ResourceQuota, String::new()),
            self.during::<LeaderWorkerSet>(Kind::LeaderWorkerSet, ours, lws_served.clone(), at_once),
            self.during::<StatefulSet>(Kind::StatefulSet, of_lws, lws_served.clone(), at_once),
            self.during::<SetEvent>(Kind::SetEvent, refused_pods, events_wanted.clone(), EVENTS_LINGER),
            self.during::<LwsEvent>(Kind::LwsEvent, refused_sets, events_wanted, EVENTS_LINGER),
        ]
    }

    /// Follows a kind for ever.
    fn always<T: Lean>(&self, kind: Kind, selector: String) -> Running
    where
        Cache: Sink<T>,
    {
        Box::pin(self.clone().run::<T>(kind, selector))
    }

    /// Follows a kind while it is wanted, and for some time after.
    fn during<T: Lean>(&self, kind: Kind, selector: String, mut wanted: watch::Receiver<bool>, linger: Duration) -> Running
    where
        Cache: Sink<T>,
    {
        let follow = self.clone();
        Box::pin(async move {
            // Without a sender the member is being stopped.
            while wanted.wait_for(|wanted| *wanted).await.is_ok() {
                tokio::select! {
                    () = follow.clone().run::<T>(kind, selector.clone()) => {}
                    () = unwanted(&mut wanted, linger) => {}
                }
                follow.cache.unfollowed::<T>(kind);
            }
        })
    }

    async fn run<T: Lean>(self, kind: Kind, selector: String)
    where
        Cache: Sink<T>,
    {
        let Self { client, cache, returned, metrics, .. } = self;
        Watch { client: &client, kind, selector, cache: &cache, returned, metrics: &metrics }.run::<T>().await;
    }
}

/// Waits until something has been unwanted for so long.
async fn unwanted(wanted: &mut watch::Receiver<bool>, linger: Duration) {
    while wanted.wait_for(|wanted| !wanted).await.is_ok() {
        if !matches!(timeout(linger, wanted.wait_for(|wanted| *wanted)).await, Ok(Ok(_))) {
            return;
        }
    }
}

fn labels(selector: &str) -> String {
    format!("labelSelector={}", encode(selector))
}

fn fields(selector: &str) -> String {
    format!("fieldSelector={}", encode(selector))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn what_is_wanted_again_soon_goes_on() {
        let (sender, mut wanted) = watch::channel(true);
        let mut waits = Box::pin(unwanted(&mut wanted, Duration::from_secs(3600)));
        for still in [true, false, true, false] {
            sender.send_replace(still);
            assert!((&mut waits).now_or_never().is_none(), "{still}");
        }
        drop(waits);
        unwanted(&mut wanted, Duration::ZERO).await;
    }
}
