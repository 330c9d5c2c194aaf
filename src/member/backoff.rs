//! Growing pauses between tries.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Pauses that double from `least` to `most`, each shortened by up to a third so that many members, or many objects,
/// that failed together don't try again together.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    least: Duration,
    most: Duration,
    tries: u32,
}

impl Backoff {
    pub(super) const fn new(least: Duration, most: Duration) -> Self {
        Self { least, most, tries: 0 }
    }

    pub(super) fn reset(&mut self) {
        self.tries = 0;
    }

    /// Failures in a row.
    pub(super) fn tries(&self) -> u32 {
        self.tries
    }

    /// The pause after one more failure.
    pub(super) fn next(&mut self) -> Duration {
        let pause = self.least.saturating_mul(1_u32.checked_shl(self.tries).unwrap_or(u32::MAX)).min(self.most);
        self.tries = self.tries.saturating_add(1);
        // Each RandomState has its own keys: a source of randomness that needs no other crate.
        let random = RandomState::new().hash_one(self.tries) % 1000;
        pause.saturating_sub(pause.mul_f64(random as f64 / 3000.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_most() {
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new(second, 60 * second);
        for want in [1, 2, 4, 8, 16, 32, 60, 60] {
            let pause = backoff.next();
            assert!(pause <= want * second && pause >= want * second * 66 / 100, "{pause:?} for {want} s");
        }
        for _ in 0..100 {
            assert!(backoff.next() <= 60 * second);
        }
        assert_eq!(backoff.tries(), 108);
        backoff.reset();
        assert!(backoff.next() <= second);
    }
}
