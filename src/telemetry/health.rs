//! Whether the hub lives and is ready.

use std::sync::atomic::{AtomicBool, Ordering};

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

    pub(super) fn synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }
}
