//! `/livez` and `/readyz`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What the endpoints tell.
#[derive(Debug, Default)]
pub struct Health {
    synced: AtomicBool,
}

impl Health {
    /// The hub's own objects have been listed. Members play no part: one that is down must not take the hub out.
    pub fn set_synced(&self) {
        self.synced.store(true, Ordering::Release);
    }

    fn synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }
}

/// Serves the endpoints until `shutdown`.
///
/// # Errors
/// When the address can't be bound.
pub async fn serve(address: SocketAddr, health: Arc<Health>, shutdown: CancellationToken) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| anyhow::anyhow!("health endpoints can't listen on {address}: {error}; choose another --health-addr"))?;
    let routes = Router::new().route("/livez", get(|| async { "ok\n" })).route("/readyz", get(readyz)).with_state(health);
    axum::serve(listener, routes).with_graceful_shutdown(async move { shutdown.cancelled().await }).await?;
    Ok(())
}

async fn readyz(State(health): State<Arc<Health>>) -> (StatusCode, &'static str) {
    if health.synced() {
        (StatusCode::OK, "ok\n")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the hub's own objects are not listed yet: are its CRDs installed, and may its account read them?\n",
        )
    }
}
