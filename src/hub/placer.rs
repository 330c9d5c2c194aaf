//! The placement actor: decides for one service at a time, so that two decisions never promise the same room. It has a
//! thread of its own, since deciding is computing and would keep everything else on its thread waiting.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use crate::capacity::{GroupRequest, Promise, ServiceKey};
use crate::placement::{Demand, Ledger, Plan, decide};
use crate::telemetry::metrics::Metrics;

use super::roll::{Candidate, Fleet};

/// Decisions that may wait in line.
const QUEUE: usize = 1024;

/// What a service wants.
#[derive(Clone, Debug)]
pub(crate) struct Want {
    pub(crate) service: ServiceKey,
    pub(crate) uid: String,
    /// When the service was created: among decisions that wait together the oldest goes first.
    pub(crate) created: Option<Timestamp>,
    pub(crate) replicas: u32,
    pub(crate) request: Arc<GroupRequest>,
    /// Replicas by member as they stand in the status of the service.
    pub(crate) existing: BTreeMap<String, u32>,
}

/// What a member holds by the decisions on all services.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) promises: Vec<Promise>,
    /// Services with a placement there, also one of no replicas.
    pub(crate) services: u32,
    /// Groups promised there.
    pub(crate) groups: u32,
}

enum Ask {
    Decide(Box<Want>, oneshot::Sender<Plan>),
    /// The status of a service holds these promises, or held them when the hub started.
    Observe {
        uid: String,
        service: ServiceKey,
        request: Arc<GroupRequest>,
        placements: BTreeMap<String, u32>,
    },
    /// A decision was not written.
    Forget(String),
    /// The service is gone.
    Remove(String),
    Held {
        member: String,
        answer: oneshot::Sender<Held>,
    },
}

/// Handle of the actor; cheap to clone.
#[derive(Clone)]
pub(crate) struct Placer {
    asks: mpsc::Sender<Ask>,
}

/// The actor gave no answer: it failed at this one, or has ended.
#[derive(Debug, thiserror::Error)]
#[error("the placement actor gave no answer, which is a mistake in this program")]
pub(crate) struct Ended;

impl Placer {
    /// Starts the actor; it ends with the last handle.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(fleet: Fleet, metrics: Arc<Metrics>) -> io::Result<Self> {
        let (asks, inbox) = mpsc::channel(QUEUE);
        std::thread::Builder::new().name("placement".to_owned()).spawn(move || act(inbox, &fleet, &metrics))?;
        Ok(Self { asks })
    }

    /// Waits until the actor has ended, which it doesn't while all is well.
    pub(crate) async fn ended(&self) {
        self.asks.closed().await;
    }

    /// Decides where the replicas of a service go, and keeps the promise until it is observed or forgotten.
    pub(crate) async fn decide(&self, want: Want) -> Result<Plan, Ended> {
        let (answer, plan) = oneshot::channel();
        self.send(Ask::Decide(Box::new(want), answer)).await?;
        plan.await.map_err(|_| Ended)
    }

    /// Notes what the status of a service promises.
    pub(crate) async fn observe(
        &self,
        uid: &str,
        service: &ServiceKey,
        request: Arc<GroupRequest>,
        placements: BTreeMap<String, u32>,
    ) -> Result<(), Ended> {
        self.send(Ask::Observe { uid: uid.to_owned(), service: service.clone(), request, placements }).await
    }

    /// Takes back a decision that was not written.
    pub(crate) async fn forget(&self, uid: &str) -> Result<(), Ended> {
        self.send(Ask::Forget(uid.to_owned())).await
    }

    /// Releases everything that was promised to a service that is gone.
    pub(crate) async fn remove(&self, uid: &str) -> Result<(), Ended> {
        self.send(Ask::Remove(uid.to_owned())).await
    }

    /// What a member holds by the decisions on all services.
    pub(crate) async fn held(&self, member: &str) -> Result<Held, Ended> {
        let (answer, held) = oneshot::channel();
        self.send(Ask::Held { member: member.to_owned(), answer }).await?;
        held.await.map_err(|_| Ended)
    }

    async fn send(&self, ask: Ask) -> Result<(), Ended> {
        self.asks.send(ask).await.map_err(|_| Ended)
    }
}

/// Answers until all handles are gone.
fn act(mut inbox: mpsc::Receiver<Ask>, fleet: &Fleet, metrics: &Metrics) {
    let mut ledger = Ledger::default();
    let mut batch = Vec::new();
    while inbox.blocking_recv_many(&mut batch, QUEUE) > 0 {
        let mut wants = Vec::new();
        for ask in batch.drain(..) {
            match ask {
                Ask::Decide(want, answer) => wants.push((want, answer)),
                Ask::Observe { uid, service, request, placements } => ledger.observe(&uid, &service, request, &placements),
                Ask::Forget(uid) => ledger.forget(&uid),
                Ask::Remove(uid) => ledger.remove(&uid),
                Ask::Held { member, answer } => {
                    let (services, groups) = ledger.totals(&member);
                    // The asker may have given up.
                    let _ = answer.send(Held { promises: ledger.promises(&member, ""), services, groups });
                }
            }
        }
        wants.sort_by(|(a, _), (b, _)| (a.created, &a.service).cmp(&(b.created, &b.service)));
        for (want, answer) in wants {
            let start = Instant::now();
            // Deciding changes nothing, so that a panic leaves the ledger whole; without an answer the pass fails and is
            // tried again, and all others go on.
            let Ok(plan) = catch_unwind(AssertUnwindSafe(|| plan(&want, fleet, &ledger))) else { continue };
            metrics.decided(start.elapsed());
            ledger.assume(&want.uid, &want.service, want.request.clone(), &plan.placements);
            if answer.send(plan).is_err() {
                ledger.forget(&want.uid);
            }
        }
    }
}

fn plan(want: &Want, fleet: &Fleet, ledger: &Ledger) -> Plan {
    let candidates = fleet.candidates(&want.service.namespace, want.request.kind);
    let demand = Demand {
        service: want.service.clone(),
        uid: &want.uid,
        replicas: want.replicas,
        request: want.request.clone(),
        existing: want.existing.clone(),
    };
    let members: Vec<_> = candidates.iter().map(Candidate::as_member).collect();
    decide(&demand, &members, ledger)
}
