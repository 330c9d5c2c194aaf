//! The controllers: what is in the hub's API server and in members goes through the pure modules, and what they decide
//! is carried out.

mod context;
mod dispatch;
mod gauges;
mod identity;
mod layers;
mod member;
mod members;
mod pass;
mod placer;
mod pools;
mod recorder;
mod roll;
mod seed;
mod service;
mod standing;
mod tasks;
mod trigger;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::Client;
use kube::runtime::controller::{Config as ControllerConfig, Controller, Error as ControllerError};
use kube::runtime::reflector::ObjectRef;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::context::Context;
use self::identity::Identity;
use self::placer::Ended;
use self::tasks::Tasks;
use self::watch::Watches;
use crate::capacity::ServiceKey;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::{self, Health};

pub(crate) use identity::{CONFIG_MAP as HUB_ID_CONFIG_MAP, KEY as HUB_ID_KEY};
pub(crate) use pools::pool_of;

/// Services that are worked on at once.
const SERVICE_WORKERS: u16 = 16;
/// Members that are worked on at once.
const MEMBER_WORKERS: u16 = 8;
/// Events of members that may wait.
const EVENTS: usize = 4096;
/// How long a stop waits for passes and writes that run.
const STOP: Duration = Duration::from_secs(4);

/// What the command line fixes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hub's own namespace: Secrets of members.
    pub namespace: String,
    /// Namespace of templates that services of every namespace may use.
    pub system_namespace: String,
    /// The hub's id, if it is given.
    pub hub_id: Option<String>,
    /// Namespaces that are never created or written in a member, as patterns in which `*` stands for any text.
    pub protected_namespaces: Vec<String>,
    /// A member may be the hub's own cluster.
    pub allow_self: bool,
    /// Where `/livez` and `/readyz` are served.
    pub health_address: SocketAddr,
    /// Where `/metrics` is served, if it is.
    pub metrics_address: Option<SocketAddr>,
}

/// Runs the hub until `shutdown`.
///
/// # Errors
/// When it can't start: no API server, no rights, no address for an endpoint.
pub async fn run(client: Client, settings: Settings, metrics: Arc<Metrics>, shutdown: CancellationToken) -> anyhow::Result<()> {
    let health = Arc::new(Health::default());
    let mut endpoints = JoinSet::new();
    endpoints.spawn(telemetry::serve_health(settings.health_address, health.clone(), shutdown.clone()));
    if let Some(address) = settings.metrics_address {
        endpoints.spawn(telemetry::serve_metrics(address, metrics.clone(), shutdown.clone()));
    }
    let endpoints_fail = async {
        loop {
            match endpoints.join_next().await {
                None => std::future::pending().await,
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(error))) => return error,
                Some(Err(error)) => return error.into(),
            }
        }
    };
    let stopped = async {
        shutdown.cancelled().await;
        tokio::time::sleep(STOP).await;
    };
    tokio::select! {
        error = endpoints_fail => Err(error),
        ended = control(client, settings, &health, metrics, shutdown.clone()) => ended,
        () = stopped => Ok(()),
    }
}

async fn control(
    client: Client,
    settings: Settings,
    health: &Health,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let own_cluster = identity::cluster_uid(&client).await?;
    let hub_id = identity::establish(&client, &settings.namespace, &own_cluster, settings.hub_id.as_deref()).await?;
    tracing::info!(hub_id, namespace = settings.namespace, "starting");

    let (events, inbox) = mpsc::channel(EVENTS);
    let mut tasks = Tasks::new(shutdown.clone());
    let watches = Watches::start(&client, &settings.namespace, &mut tasks);
    tokio::select! {
        ready = watches.wait_until_ready() => ready?,
        error = tasks.failed() => return Err(error),
        () = shutdown.cancelled() => return Ok(()),
    }
    let (recorder, notes) = recorder::start(client.clone(), &hub_id);
    let context = Context::new(client, settings, Identity { hub: hub_id, cluster: own_cluster }, watches, events, notes, metrics)?;
    gauges::offer(&context);
    health.set_synced();
    seed::ledger(&context).await?;
    let follow = pools::follow(context.client.clone(), context.pools.clone(), context.users.clone(), context.service_trigger.clone());
    tasks.spawn("InferencePools", follow);
    tasks.spawn("events", recorder);
    dispatch::start(&context, inbox, &mut tasks);
    tracing::info!(services = context.services.len(), members = context.clusters.len(), "synced");

    let services = Controller::for_stream(futures::stream::pending(), context.services.clone())
        .with_config(ControllerConfig::default().concurrency(SERVICE_WORKERS))
        .reconcile_on(context.service_trigger.clone().hand_over().map(|key| ObjectRef::new(&key.name).within(&key.namespace)))
        .graceful_shutdown_on(shutdown.clone().cancelled_owned())
        .run(service::reconcile, service::retry, context.clone())
        .for_each(|ended| {
            if let Err(ControllerError::ObjectNotFound(gone)) = ended {
                context.service_trigger.begun(&ServiceKey::new(gone.namespace.unwrap_or_default(), gone.name));
            }
            std::future::ready(())
        });
    let members = Controller::for_stream(futures::stream::pending(), context.clusters.clone())
        .with_config(ControllerConfig::default().concurrency(MEMBER_WORKERS))
        .reconcile_on(context.member_trigger.clone().hand_over().map(|name| ObjectRef::new(&name)))
        .graceful_shutdown_on(shutdown.clone().cancelled_owned())
        .run(member::reconcile, member::retry, context.clone())
        .for_each(|ended| {
            if let Err(ControllerError::ObjectNotFound(gone)) = ended {
                context.member_trigger.begun(&gone.name);
            }
            std::future::ready(())
        });
    let writes = async {
        shutdown.cancelled().await;
        let members = context.members.all();
        let connected = members.iter().filter_map(|(_, entry)| entry.runtime.as_ref().ok());
        futures::future::join_all(connected.map(|member| member.close())).await;
    };
    tokio::select! {
        _ = futures::future::join3(services, members, writes) => Ok(()),
        error = tasks.failed() => Err(error),
        () = context.placer.ended() => Err(Ended.into()),
    }
}
