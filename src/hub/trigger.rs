//! Keys that wait for a controller: a set, so that a thousand events about one object cost one entry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures::Stream;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::telemetry::metrics::Backlog;

/// A set of keys that a stream empties.
pub(crate) struct Trigger<K> {
    keys: Mutex<Keys<K>>,
    wake: Notify,
}

/// Keys with the time since which they have waited.
struct Keys<K> {
    pending: BTreeMap<K, Instant>,
    /// Handed to a controller that has not begun with them.
    handed: BTreeMap<K, Instant>,
}

impl<K> Default for Trigger<K> {
    fn default() -> Self {
        Self { keys: Mutex::new(Keys { pending: BTreeMap::new(), handed: BTreeMap::new() }), wake: Notify::new() }
    }
}

impl<K: Clone + Ord + Send + 'static> Trigger<K> {
    /// Adds one key.
    pub(crate) fn push(&self, key: K) {
        self.extend([key]);
    }

    /// Adds many keys.
    pub(crate) fn extend(&self, keys: impl IntoIterator<Item = K>) {
        let now = Instant::now();
        let mut all = self.keys.lock();
        for key in keys {
            all.pending.entry(key).or_insert(now);
        }
        drop(all);
        self.wake.notify_one();
    }

    /// Takes the keys out, lowest first; never ends. Meant for one reader.
    pub(crate) fn stream(self: Arc<Self>) -> impl Stream<Item = K> + Send + 'static {
        self.take(|_, _, _| {})
    }

    /// [`Trigger::stream`] for a controller, which has a line of its own: a key waits until [`Trigger::begun`].
    pub(crate) fn hand_over(self: Arc<Self>) -> impl Stream<Item = K> + Send + 'static {
        self.take(|handed, key, since| {
            handed.entry(key.clone()).or_insert(since);
        })
    }

    fn take(
        self: Arc<Self>,
        on_taken: impl Fn(&mut BTreeMap<K, Instant>, &K, Instant) + Copy + Send + 'static,
    ) -> impl Stream<Item = K> + Send + 'static {
        futures::stream::unfold(self, move |trigger| async move {
            loop {
                let next = {
                    let mut keys = trigger.keys.lock();
                    let next = keys.pending.pop_first();
                    next.map(|(key, since)| {
                        on_taken(&mut keys.handed, &key, since);
                        key
                    })
                };
                match next {
                    Some(key) => return Some((key, trigger)),
                    None => trigger.wake.notified().await,
                }
            }
        })
    }

    /// The controller begins with a key, or drops it. Returns since when the key has waited, which is no time at all if
    /// the controller came back to it by itself.
    pub(crate) fn begun(&self, key: &K) -> Instant {
        self.keys.lock().handed.remove(key).unwrap_or_else(Instant::now)
    }

    /// What waits.
    pub(crate) fn backlog(&self) -> Backlog {
        let keys = self.keys.lock();
        let pending = keys.pending.iter().filter(|(key, _)| !keys.handed.contains_key(key));
        let waiting = keys.handed.iter().chain(pending).map(|(_, since)| *since);
        let (items, oldest) = waiting.fold((0, None), |(items, oldest): (usize, Option<Instant>), since| {
            (items + 1, Some(oldest.map_or(since, |oldest| oldest.min(since))))
        });
        Backlog { items, oldest: oldest.map(|since| since.elapsed()).unwrap_or_default() }
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
    #[tokio::test]
    async fn a_key_waits_until_the_controller_begins_with_it() {
        let trigger = Arc::new(Trigger::default());
        trigger.extend([1, 2]);
        assert_eq!(trigger.backlog().items, 2);
        let pushed = Instant::now();
        let mut stream = Box::pin(trigger.clone().hand_over());
        assert_eq!((stream.next().await, stream.next().await), (Some(1), Some(2)));
        // Pushed again meanwhile: the first time counts.
        trigger.push(1);
        assert_eq!(trigger.backlog().items, 2);
        assert!(trigger.begun(&1) <= pushed);
        assert_eq!(trigger.backlog().items, 2, "it waits once more");
        assert_eq!(stream.next().await, Some(1));
        assert!(trigger.begun(&1) >= pushed && trigger.begun(&2) <= pushed);
        assert_eq!(trigger.backlog(), Backlog::default());
        assert!(trigger.begun(&2) >= pushed, "a pass that nothing triggered");
    }

    #[tokio::test]
    async fn what_no_controller_takes_waits_only_until_it_is_taken() {
        let trigger = Arc::new(Trigger::default());
        trigger.push(1);
        let mut stream = Box::pin(trigger.clone().stream());
        assert_eq!((stream.next().await, trigger.backlog().items), (Some(1), 0));
    }
}
