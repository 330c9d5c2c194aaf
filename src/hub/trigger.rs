//! Keys that wait for a controller: a set, so that a thousand events about one object cost one entry.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::Stream;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// A set of keys that a stream empties.
pub(crate) struct Trigger<K> {
    pending: Mutex<BTreeSet<K>>,
    wake: Notify,
}

impl<K> Default for Trigger<K> {
    fn default() -> Self {
        Self { pending: Mutex::default(), wake: Notify::new() }
    }
}

impl<K: Ord + Send + 'static> Trigger<K> {
    /// Adds one key.
    pub(crate) fn push(&self, key: K) {
        self.extend([key]);
    }

    /// Adds many keys.
    pub(crate) fn extend(&self, keys: impl IntoIterator<Item = K>) {
        self.pending.lock().extend(keys);
        self.wake.notify_one();
    }

    /// Takes the keys out, lowest first; never ends. Meant for one reader.
    pub(crate) fn stream(self: Arc<Self>) -> impl Stream<Item = K> + Send + 'static {
        futures::stream::unfold(self, |trigger| async move {
            loop {
                let next = trigger.pending.lock().pop_first();
                match next {
                    Some(key) => return Some((key, trigger)),
                    None => trigger.wake.notified().await,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn a_key_that_was_pushed_twice_comes_once_and_one_pushed_later_wakes_the_reader() {
        let trigger = Arc::new(Trigger::default());
        trigger.extend([2, 1, 2]);
        let mut stream = Box::pin(trigger.clone().stream());
        assert_eq!((stream.next().await, stream.next().await), (Some(1), Some(2)));
        let (next, ()) = tokio::join!(stream.next(), async { trigger.push(3) });
        assert_eq!(next, Some(3));
    }
}
