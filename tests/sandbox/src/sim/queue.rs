//! A queue of keys: each key is worked on by one worker at a time, at once or after a delay.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    hash::Hash,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

/// Keys that wait for a worker. A key that is added while it is worked on comes again when that work is done.
pub(super) struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

struct State<K> {
    ready: VecDeque<K>,
    queued: HashSet<K>,
    working: HashSet<K>,
    again: HashSet<K>,
    due: HashMap<K, Instant>,
    delayed: BTreeSet<(Instant, K)>,
}

impl<K: Clone + Eq + Hash + Ord> State<K> {
    fn add(&mut self, key: &K) {
        if let Some(at) = self.due.remove(key) {
            self.delayed.remove(&(at, key.clone()));
        }
        if self.working.contains(key) {
            self.again.insert(key.clone());
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key.clone());
        }
    }

    fn pop(&mut self, now: Instant) -> Option<K> {
        while let Some((_, key)) = self.delayed.first().filter(|(at, _)| *at <= now).cloned() {
            self.add(&key);
        }
        let key = self.ready.pop_front()?;
        self.queued.remove(&key);
        self.working.insert(key.clone());
        Some(key)
    }
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    pub(super) fn new() -> Self {
        let state = State {
            ready: VecDeque::new(),
            queued: HashSet::new(),
            working: HashSet::new(),
            again: HashSet::new(),
            due: HashMap::new(),
            delayed: BTreeSet::new(),
        };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Has the key worked on as soon as a worker is free; a delay that it waited for is forgotten.
    pub(super) fn add(&self, key: &K) {
        self.state.lock().add(key);
        self.changed.notify_one();
    }

    /// Has the key worked on after a delay, or earlier if an earlier time was asked for already.
    pub(super) fn add_after(&self, key: &K, delay: Duration) {
        let at = Instant::now() + delay;
        {
            let mut state = self.state.lock();
            match state.due.get(key).copied() {
                Some(earlier) if earlier <= at => return,
                Some(later) => state.delayed.remove(&(later, key.clone())),
                None => false,
            };
            state.due.insert(key.clone(), at);
            state.delayed.insert((at, key.clone()));
        }
        self.changed.notify_one();
    }

    /// Waits for the next key. The caller owns it until [`Queue::done`].
    pub(super) async fn take(&self) -> K {
        loop {
            let next = {
                let mut state = self.state.lock();
                if let Some(key) = state.pop(Instant::now()) {
                    // A notification wakes one worker; whoever takes a key hands the rest on.
                    if !state.ready.is_empty() || !state.delayed.is_empty() {
                        self.changed.notify_one();
                    }
                    return key;
                }
                state.delayed.first().map(|(at, _)| *at)
            };
            match next {
                Some(at) => tokio::select! {
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => self.changed.notified().await,
            }
        }
    }

    /// Gives a key back.
    pub(super) fn done(&self, key: &K) {
        let mut state = self.state.lock();
        state.working.remove(key);
        if state.again.remove(key) {
            state.add(key);
            self.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(keys: &[&'static str]) -> Queue<&'static str> {
        let queue = Queue::new();
        for key in keys {
            queue.add(key);
        }
        queue
    }

    async fn is_empty(queue: &Queue<&'static str>) -> bool {
        tokio::time::timeout(Duration::ZERO, queue.take()).await.is_err()
    }

    #[tokio::test]
    async fn a_key_waits_once_and_in_order() {
        let queue = queue(&["a", "b", "a"]);
        assert_eq!([queue.take().await, queue.take().await], ["a", "b"]);
        assert!(is_empty(&queue).await);
    }

    #[tokio::test]
    async fn a_key_that_is_worked_on_comes_again_afterwards() {
        let queue = queue(&["a"]);
        assert_eq!(queue.take().await, "a");
        queue.add(&"a");
        assert!(is_empty(&queue).await, "two workers on one key");
        queue.done(&"a");
        assert_eq!(queue.take().await, "a");
    }

    #[tokio::test]
    async fn the_earliest_of_several_delays_counts() {
        let queue = queue(&[]);
        let start = Instant::now();
        queue.add_after(&"a", Duration::from_secs(50));
        queue.add_after(&"a", Duration::from_millis(20));
        queue.add_after(&"a", Duration::from_secs(90));
        assert_eq!(queue.take().await, "a");
        assert!((20..10_000).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
        queue.done(&"a");
        assert!(queue.state.lock().delayed.is_empty(), "a later delay was kept");
    }

    #[tokio::test]
    async fn work_at_once_replaces_a_delay() {
        let queue = queue(&[]);
        queue.add_after(&"a", Duration::from_millis(20));
        queue.add(&"a");
        assert_eq!(queue.take().await, "a");
        queue.done(&"a");
        assert!(tokio::time::timeout(Duration::from_millis(60), queue.take()).await.is_err(), "the delay came all the same");
    }

    #[tokio::test]
    async fn every_waiting_worker_is_woken() {
        let queue = std::sync::Arc::new(queue(&[]));
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.take().await })
            })
            .collect();
        tokio::task::yield_now().await;
        for key in ["a", "b", "c", "d"] {
            queue.add(&key);
        }
        let mut taken = vec![];
        for worker in workers {
            taken.push(tokio::time::timeout(Duration::from_secs(10), worker).await.unwrap().unwrap());
        }
        taken.sort_unstable();
        assert_eq!(taken, ["a", "b", "c", "d"]);
    }
}
