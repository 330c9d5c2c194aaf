//! How many requests one API server gets: in flight, and per second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lets so many requests a second pass, and a burst before that. Who comes gets a turn and is told how long to wait
/// for it.
#[derive(Debug)]
struct Rate {
    interval: Duration,
    tolerance: Duration,
    next: Option<Instant>,
}

impl Rate {
    /// A rate of zero or less, or none at all, counts as one in 1,000 s.
    fn new(qps: f64, burst: u32) -> Self {
        let qps = if qps.is_finite() { qps.max(0.001) } else { 0.001 };
        let interval = Duration::from_secs_f64(1.0 / qps);
        Self { interval, tolerance: interval.saturating_mul(burst.saturating_sub(1)), next: None }
    }

    /// Takes a turn; it comes after this time.
    fn turn(&mut self, now: Instant) -> Duration {
        let turn = self.next.map_or(now, |next| next.max(now));
        self.next = Some(turn + self.interval);
        turn.saturating_duration_since(now).saturating_sub(self.tolerance)
    }
}

/// The gate in front of one API server.
#[derive(Debug)]
pub(super) struct Gate {
    rate: Mutex<Rate>,
    in_flight: Arc<Semaphore>,
}

impl Gate {
    pub(super) fn new(qps: f64, burst: u32, in_flight: usize) -> Self {
        let in_flight = Arc::new(Semaphore::new(in_flight.clamp(1, Semaphore::MAX_PERMITS)));
        Self { rate: Mutex::new(Rate::new(qps, burst)), in_flight }
    }

    /// Waits for a turn. The request is in flight until what is returned is dropped; `None` never happens, since the
    /// semaphore is never closed.
    pub(super) async fn pass(&self) -> Option<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.in_flight).acquire_owned().await.ok();
        let wait = self.rate.lock().turn(Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        permit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_at_once_and_the_rest_at_the_rate() {
        let start = Instant::now();
        let mut rate = Rate::new(10.0, 3);
        let waits: Vec<u128> = (0..5).map(|_| rate.turn(start).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
        assert_eq!(rate.turn(start + Duration::from_millis(500)).as_millis(), 0, "one token is back");
        assert_eq!(rate.turn(start + Duration::from_secs(60)).as_millis(), 0);
        assert_eq!((0..3).map(|_| rate.turn(start + Duration::from_secs(60)).as_millis()).collect::<Vec<_>>(), [0, 0, 100]);
    }

    #[test]
    fn absurd_rates_are_no_panic() {
        for (qps, burst) in [(0.0, 0), (-1.0, 1), (f64::NAN, 1), (f64::INFINITY, 1), (f64::MAX, u32::MAX)] {
            let mut rate = Rate::new(qps, burst);
            rate.turn(Instant::now());
        }
    }

    #[tokio::test]
    async fn no_more_are_in_flight_than_allowed() {
        let gate = Gate::new(1e6, 1000, 2);
        let first = gate.pass().await;
        let _second = gate.pass().await;
        assert!(tokio::time::timeout(Duration::from_millis(20), gate.pass()).await.is_err());
        drop(first);
        assert!(tokio::time::timeout(Duration::from_secs(5), gate.pass()).await.is_ok());
    }
}
