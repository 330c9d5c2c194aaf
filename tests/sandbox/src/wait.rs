//! Waiting for a condition.

use std::future::Future;
use std::time::Duration;

use anyhow::{Result, anyhow};
use tokio::time::{Instant, sleep, timeout_at};

/// How often a condition is looked at.
const STEP: Duration = Duration::from_millis(100);

/// Polls `check` until it gives `Ok`, and gives that value.
///
/// `Err` means "not yet" and says what was seen instead; after `limit` the error is `what` with the last
/// of those. A check that hangs counts as not yet. `limit` is a generous bound, never a measurement.
///
/// ```no_run
/// # use std::time::Duration;
/// # async fn f(ready: impl AsyncFn() -> anyhow::Result<i32>) -> anyhow::Result<()> {
/// sandbox::eventually("two replicas are ready", Duration::from_secs(60), async || {
///     let seen = ready().await?;
///     anyhow::ensure!(seen == 2, "{seen} are ready");
///     Ok(())
/// })
/// .await
/// # }
/// ```
pub async fn eventually<T, F, Fut>(what: &str, limit: Duration, mut check: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let end = Instant::now() + limit;
    let mut seen: Option<anyhow::Error> = None;
    loop {
        match timeout_at(end, check()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => seen = Some(error),
            Err(_) => {
                let seen = seen.unwrap_or_else(|| anyhow!("nothing: the check itself did not end"));
                return Err(anyhow!("{what}: not so within {} s; last seen: {seen:#}", limit.as_secs_f32()));
            }
        }
        if Instant::now() + STEP < end {
            sleep(STEP).await;
        } else {
            let seen = seen.unwrap_or_else(|| anyhow!("nothing"));
            return Err(anyhow!("{what}: not so within {} s; last seen: {seen:#}", limit.as_secs_f32()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn gives_the_value_once_it_is_there() {
        let mut n = 0;
        let value = eventually("three", Duration::from_secs(5), || {
            n += 1;
            let now = n;
            async move { if now == 3 { Ok(now) } else { Err(anyhow!("{now}")) } }
        });
        assert_eq!(value.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn tells_the_last_state_seen() {
        let error =
            eventually::<(), _, _>("never", Duration::from_millis(250), || async { Err(anyhow!("0 of 2 ready")) }).await.unwrap_err();
        assert_eq!(error.to_string(), "never: not so within 0.25 s; last seen: 0 of 2 ready");
    }

    #[tokio::test]
    async fn a_hanging_check_ends_with_the_limit() {
        let error = eventually::<(), _, _>("never", Duration::from_millis(50), std::future::pending).await.unwrap_err();
        assert!(error.to_string().contains("did not end"), "{error}");
    }
}
