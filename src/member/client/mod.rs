//! The HTTP stack under kube's client, for members and for the hub's own API server.
//!
//! HTTP/2 over one connection, so that watches and writes of a member share one socket; pings while idle, since an
//! open watch on a frozen server just stays quiet; a bound in time on everything but the body of a watch; no retries,
//! since who calls knows better when to try again.

mod bounds;
mod connector;
mod failure;
mod limit;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt as _};
use tokio::time::{Instant, timeout, timeout_at};
use tower::{BoxError, Service, ServiceBuilder};

use self::bounds::Bounded;
pub use self::bounds::{Phase, TimedOut, TooLarge};
use self::connector::Connector;
pub use self::failure::{Failure, classify};
pub(super) use self::failure::{of_status, shorten};
use self::limit::Gate;
use super::Credential;
use crate::telemetry::metrics::{Calls, is_watch};

/// Pings on a quiet connection go out this often …
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// … and a server that doesn't answer one for this long is taken for gone.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Bounds of the requests to one API server.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Requests per second.
    pub qps: f64,
    /// Requests at once before the rate applies.
    pub burst: u32,
    /// Requests in flight.
    pub max_in_flight: usize,
    /// TCP and TLS.
    pub connect_timeout: Duration,
    /// From sending a request to the head of its response.
    pub header_timeout: Duration,
    /// The whole of a call other than a watch.
    pub call_timeout: Duration,
    /// Largest response body of a call other than a watch, in bytes.
    pub max_body: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            qps: 500.0,
            burst: 1000,
            max_in_flight: 64,
            connect_timeout: Duration::from_secs(5),
            header_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(30),
            max_body: 64 << 20,
        }
    }
}

/// A client of a member, whose requests are counted in `calls`.
///
/// # Errors
/// When the credential can't be used after all.
pub fn connect(credential: &Credential, limits: &Limits, calls: &Arc<Calls>) -> Result<kube::Client, kube::Error> {
    build_counted(credential.config(), limits, calls)
}

/// A client of the API server that `config` names, within these bounds. It must be called inside a tokio runtime.
///
/// # Errors
/// When TLS, proxy or credential of `config` can't be used.
pub fn build(config: &kube::Config, limits: &Limits) -> Result<kube::Client, kube::Error> {
    build_counted(config, limits, &Arc::default())
}

/// [`build`], with requests counted in `calls`.
///
/// # Errors
/// When TLS, proxy or credential of `config` can't be used.
pub fn build_counted(config: &kube::Config, limits: &Limits, calls: &Arc<Calls>) -> Result<kube::Client, kube::Error> {
    let connector = Connector::new(config, limits.connect_timeout).map_err(kube::Error::Service)?;
    let client = HyperClient::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .build(connector);
    let gate = Arc::new(Gate::new(limits.qps, limits.burst, limits.max_in_flight));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .service(Caller { client, gate, limits: limits.clone(), calls: calls.clone() });
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

/// Sends one request within the bounds.
#[derive(Clone, Debug)]
struct Caller {
    client: HyperClient<Connector, Body>,
    gate: Arc<Gate>,
    limits: Limits,
    calls: Arc<Calls>,
}

impl Service<Request<Body>> for Caller {
    type Response = Response<Bounded<Incoming>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { client, gate, limits, calls } = self.clone();
        Box::pin(async move {
            let late = |phase, limit| TimedOut { phase, limit };
            let turn = timeout(limits.call_timeout, gate.pass()).await.map_err(|_| late(Phase::Turn, limits.call_timeout))?;
            let watch = is_watch(request.uri());
            let mut call = calls.begin(&request);
            let start = Instant::now();
            let response = timeout_at(start + limits.header_timeout, client.request(request))
                .await
                .map_err(|_| late(Phase::Headers, limits.header_timeout))??;
            call.answered(response.status());
            let deadline = start + limits.call_timeout;
            Ok(response.map(|body| {
                if watch { Bounded::watch(body) } else { Bounded::unary(body, deadline, limits.call_timeout, limits.max_body, turn) }
            }))
        })
    }
}
