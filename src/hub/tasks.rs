//! Work that goes on for as long as the hub does.

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Tasks without which the hub would only seem to work: when one of them ends, the hub does, and is started anew by
/// whoever runs it. All of them end with the hub, or when this is dropped.
pub(crate) struct Tasks {
    running: JoinSet<&'static str>,
    shutdown: CancellationToken,
}

impl Tasks {
    pub(crate) fn new(shutdown: CancellationToken) -> Self {
        Self { running: JoinSet::new(), shutdown }
    }

    /// Starts a task that never ends by itself.
    pub(crate) fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let shutdown = self.shutdown.clone();
        self.running.spawn(async move {
            shutdown.run_until_cancelled(task).await;
            name
        });
    }

    /// Waits until a task has ended although the hub isn't stopping.
    pub(crate) async fn failed(&mut self) -> anyhow::Error {
        loop {
            match self.running.join_next().await {
                Some(Err(error)) => return anyhow::anyhow!("a task of the hub ended, which is a mistake in this program: {error}"),
                Some(Ok(name)) if !self.shutdown.is_cancelled() => {
                    return anyhow::anyhow!("the task of the hub for {name} ended, which is a mistake in this program");
                }
                Some(Ok(_)) => {}
                None => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_or_ends_is_told_unless_the_hub_stops() {
        let shutdown = CancellationToken::new();
        let mut tasks = Tasks::new(shutdown.clone());
        tasks.spawn("odd", async { panic!("odd event") });
        assert!(tasks.failed().await.to_string().contains("odd event"));
        tasks.spawn("short", async {});
        assert!(tasks.failed().await.to_string().contains("short"));

        tasks.spawn("long", std::future::pending());
        shutdown.cancel();
        let told = tokio::time::timeout(std::time::Duration::from_millis(50), tasks.failed()).await;
        assert!(told.is_err(), "a stop is no failure");
    }
}
