//! One pass of a controller: why it fails, and that it fails alone.

use std::time::Instant;

use tokio::task::JoinError;

use super::placer::Ended;
use crate::telemetry::metrics::{Metrics, Pass};

/// Why a pass failed. It is tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the hub's API server refused a write or could not be reached: {0}")]
    Api(#[from] kube::Error),
    #[error("the status can't be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Ended(#[from] Ended),
    #[error("the pass did not end, which is a mistake in this program: {0}")]
    Broken(#[from] JoinError),
}

impl Error {
    /// The object changed while the pass ran.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if status.is_conflict())
    }

    /// The object is gone.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if status.is_not_found())
    }
}

/// Runs a pass of a controller as a task of its own: passes use all threads, and one that panics harms no other.
pub(crate) async fn alone<T: Send + 'static>(
    controller: &'static str,
    metrics: &Metrics,
    pass: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    let start = Instant::now();
    let ended = tokio::spawn(pass).await.map_err(Error::from).flatten();
    let result = match &ended {
        Ok(_) => "ok",
        Err(error) if error.is_conflict() => "conflict",
        Err(_) => "error",
    };
    metrics.passed(&Pass { controller, result }, start.elapsed());
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_of_its_pass() {
        let result: Result<(), Error> = alone("service", &Metrics::default(), async { panic!("odd object") }).await;
        assert!(result.unwrap_err().to_string().contains("odd object"));
    }
}
