//! The controllers: what is in the hub's API server and in members goes through the pure modules, and what they decide
//! is carried out.

mod context;
mod dispatch;
mod identity;
mod layers;
mod member;
mod members;
mod pass;
mod placer;
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
use kube::runtime::controller::{Config as ControllerConfig, Controller};
use kube::runtime::reflector::ObjectRef;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::context::Context;
use self::placer::Ended;
use self::tasks::Tasks;
use self::watch::Watches;
use crate::telemetry::{self, Health};

pub(crate) use identity::{CONFIG_MAP as HUB_ID_CONFIG_MAP, KEY as HUB_ID_KEY};

/// Services that are worked on at once.
const SERVICE_WORKERS: u16 = 16;
/// Members that are worked on at once.
const MEMBER_WORKERS: u16 = 8;
/// Events of members that may wait.
const EVENTS: usize = 4096;
/// How long a stop waits for passes that run.
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
}

/// Runs the hub until `shutdown`.
///
/// # Errors
/// When it can't start: no API server, no rights, no address for the health endpoints.
pub async fn run(client: Client, settings: Settings, shutdown: CancellationToken) -> anyhow::Result<()> {
    let health = Arc::new(Health::default());
    let endpoints = tokio::spawn(telemetry::serve(settings.health_address, health.clone(), shutdown.clone()));
    let endpoints_fail = async {
        match endpoints.await {
            Ok(Ok(())) => std::future::pending().await,
            Ok(Err(error)) => error,
            Err(error) => error.into(),
        }
    };
    let stopped = async {
        shutdown.cancelled().await;
        tokio::time::sleep(STOP).await;
    };
    tokio::select! {
        error = endpoints_fail => Err(error),
        ended = control(client, settings, &health, shutdown.clone()) => ended,
        () = stopped => Ok(()),
    }
}

async fn control(client: Client, settings: Settings, health: &Health, shutdown: CancellationToken) -> anyhow::Result<()> {
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
    let context = Context::new(client, settings, hub_id, own_cluster, watches, events)?;
    health.set_synced();
    seed::ledger(&context).await?;
    dispatch::start(&context, inbox, &mut tasks);
    tracing::info!(services = context.services.len(), members = context.clusters.len(), "synced");

    let services = Controller::for_stream(futures::stream::pending(), context.services.clone())
        .with_config(ControllerConfig::default().concurrency(SERVICE_WORKERS))
        .reconcile_on(context.service_trigger.clone().stream().map(|key| ObjectRef::new(&key.name).within(&key.namespace)))
        .graceful_shutdown_on(shutdown.clone().cancelled_owned())
        .run(service::reconcile, service::retry, context.clone())
        .for_each(|_| std::future::ready(()));
    let members = Controller::for_stream(futures::stream::pending(), context.clusters.clone())
        .with_config(ControllerConfig::default().concurrency(MEMBER_WORKERS))
        .reconcile_on(context.member_trigger.clone().stream().map(|name| ObjectRef::new(&name)))
        .graceful_shutdown_on(shutdown.clone().cancelled_owned())
        .run(member::reconcile, member::retry, context.clone())
        .for_each(|_| std::future::ready(()));
    tokio::select! {
        _ = futures::future::join(services, members) => Ok(()),
        error = tasks.failed() => Err(error),
        () = context.placer.ended() => Err(Ended.into()),
    }
}
