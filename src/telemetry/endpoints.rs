//! `/livez`, `/readyz` and `/metrics`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Health;
use super::metrics::{Form, Metrics};

/// Serves `/livez` and `/readyz` until `shutdown`.
///
/// # Errors
/// When the address can't be bound.
pub async fn serve_health(address: SocketAddr, health: Arc<Health>, shutdown: CancellationToken) -> anyhow::Result<()> {
    let routes = Router::new().route("/livez", get(|| async { "ok\n" })).route("/readyz", get(readyz)).with_state(health);
    serve(address, routes, "health endpoints", "--health-addr", shutdown).await
}

/// Serves `/metrics` until `shutdown`.
///
/// # Errors
/// When the address can't be bound.
pub async fn serve_metrics(address: SocketAddr, metrics: Arc<Metrics>, shutdown: CancellationToken) -> anyhow::Result<()> {
    let routes = Router::new().route("/metrics", get(scrape)).with_state(metrics);
    serve(address, routes, "metrics", "--metrics-addr", shutdown).await
}

async fn serve(address: SocketAddr, routes: Router, what: &str, flag: &str, shutdown: CancellationToken) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| anyhow::anyhow!("{what} can't be served on {address}: {error}; choose another {flag}"))?;
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

async fn scrape(State(metrics): State<Arc<Metrics>>, headers: HeaderMap) -> Response {
    let form = Form::accepted(headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default());
    // Of a large fleet it is a long text: nothing else shall wait for it.
    match tokio::task::spawn_blocking(move || metrics.exposition(form)).await {
        Ok(Ok(text)) => ([(CONTENT_TYPE, form.content_type())], text).into_response(),
        Ok(Err(_)) | Err(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "a figure can't be made, which is a mistake in this program\n").into_response()
        }
    }
}
