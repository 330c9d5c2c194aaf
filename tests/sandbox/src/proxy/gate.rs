//! The gate: lets requests pass until a chosen write is answered, then holds everything.

use std::{collections::BTreeMap, fmt, future::Future, sync::Arc};

use http::{Method, Uri};
use tokio::sync::watch;

use super::Matcher;

/// Stands in front of one or more API servers and can be told to close right after the n-th write.
///
/// Clones are the same gate: given to several proxies it counts writes over all of them, in the order of their answers.
#[derive(Clone, Debug)]
pub struct Gate(Arc<watch::Sender<State>>);

/// A write that was answered by an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The proxy that it went through.
    pub proxy: String,
    /// Its method.
    pub method: Method,
    /// Its path, without the query.
    pub path: String,
    /// The status of the answer.
    pub status: u16,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} → {}", self.proxy, self.method, self.path, self.status)
    }
}

#[derive(Debug, Default)]
struct State {
    stop: Option<Stop>,
    closed: bool,
    /// Raised by each cut: what began before it ends with an error.
    cuts: u64,
    /// Stops that were reached, by their number.
    stops: u64,
    reached: u64,
    log: Vec<Write>,
}

#[derive(Debug)]
struct Stop {
    id: u64,
    counts: Matcher,
    /// How many more of these requests may go to a server, and how many of those that went have no answer yet.
    admit: u64,
    unanswered: u64,
}

/// The connection was cut while the request or its answer was held.
#[derive(Debug)]
pub(super) struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cut by the gate")
    }
}

impl std::error::Error for Cut {}

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }
}

impl Gate {
    /// An open gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Closes the gate when `n` writes ([`Matcher::writes`]) from now on have been answered by an API server; see
    /// [`Gate::after`]. Where a client renews a Lease meanwhile, leave that out:
    /// `gate.after(n, Matcher::writes().and(Matcher::path("/leases").negated()))`.
    pub fn after_writes(&self, n: u64) -> impl Future<Output = bool> + Send + use<> {
        self.after(n, Matcher::writes())
    }

    /// Closes the gate when `n` requests of a set have been answered by an API server from now on.
    ///
    /// Exactly `n` of them reach a server: further ones wait before it, even if they come while an earlier one is still
    /// without an answer. When the last of the `n` is answered the gate closes: that answer, every later answer, every
    /// further piece of an open watch and every new request are held until [`Gate::release`] or [`Gate::cut`]. A
    /// request that gets no answer (no connection, client gone) does not count.
    ///
    /// The future gives `true` once the gate has closed, `false` if it was released, cut or told another stop before.
    /// The count starts with the call, not when the future is polled. With `n` = 0 it closes at once. A closed gate opens
    /// by the call, so that one can go on write by write.
    pub fn after(&self, n: u64, counts: Matcher) -> impl Future<Output = bool> + Send + use<> {
        let mut id = 0;
        self.0.send_modify(|state| {
            state.stops += 1;
            id = state.stops;
            state.closed = n == 0;
            state.stop = (n > 0).then_some(Stop { id, counts, admit: n, unanswered: 0 });
            if n == 0 {
                state.reached = id;
            }
        });
        let mut state = self.0.subscribe();
        async move {
            let settled = |state: &State| state.reached == id || state.stop.as_ref().is_none_or(|stop| stop.id != id);
            state.wait_for(settled).await.is_ok_and(|state| state.reached == id)
        }
    }

    /// Opens the gate: what was held goes on, and a stop that was not reached is forgotten.
    pub fn release(&self) {
        self.0.send_modify(State::open);
    }

    /// Closes all connections of the gate's proxies, so that nothing held ever reaches a server or a client, and opens
    /// the gate for new ones. The way to go on after a client was killed at a stop: its held requests die with it.
    pub fn cut(&self) {
        self.0.send_modify(|state| {
            state.open();
            state.cuts += 1;
        });
    }

    /// Whether the gate holds everything now.
    pub fn is_closed(&self) -> bool {
        self.0.borrow().closed
    }

    /// All writes so far, in the order of their answers.
    pub fn writes(&self) -> Vec<Write> {
        self.0.borrow().log.clone()
    }

    /// The writes so far by method and path.
    pub fn writes_by_path(&self) -> BTreeMap<(String, String), usize> {
        let mut out = BTreeMap::new();
        for write in &self.0.borrow().log {
            *out.entry((write.method.to_string(), write.path.clone())).or_default() += 1;
        }
        out
    }

    /// The part of the gate that one connection goes through.
    pub(super) fn connection(&self) -> Passage {
        Passage { gate: self.clone(), cuts: self.0.borrow().cuts }
    }
}

impl State {
    fn open(&mut self) {
        self.closed = false;
        self.stop = None;
    }

    fn admits(&self, method: &Method, uri: &Uri) -> bool {
        !self.closed && self.stop.as_ref().is_none_or(|stop| stop.admit > 0 || !stop.counts.matches(method, uri))
    }
}

/// One connection's way through the gate.
#[derive(Clone, Debug)]
pub(super) struct Passage {
    gate: Gate,
    cuts: u64,
}

impl Passage {
    /// Waits until the request may go to the server.
    pub(super) async fn enter(&self, proxy: &str, method: &Method, uri: &Uri) -> Result<Ticket, Cut> {
        let mut states = self.gate.0.subscribe();
        loop {
            let state = states.wait_for(|state| state.cuts != self.cuts || state.admits(method, uri)).await;
            if state.map_err(|_| Cut)?.cuts != self.cuts {
                return Err(Cut);
            }
            // Another request may have taken the place meanwhile.
            let mut admitted = None;
            self.gate.0.send_if_modified(|state| {
                if state.cuts == self.cuts && state.admits(method, uri) {
                    let stop = state.stop.as_mut().filter(|stop| stop.counts.matches(method, uri));
                    admitted = Some(stop.map(|stop| {
                        stop.admit -= 1;
                        stop.unanswered += 1;
                        stop.id
                    }));
                }
                matches!(admitted, Some(Some(_)))
            });
            if let Some(stop) = admitted {
                let write = Matcher::writes().matches(method, uri).then(|| (proxy.to_owned(), method.clone(), uri.path().to_owned()));
                return Ok(Ticket { gate: self.gate.clone(), stop, write });
            }
        }
    }

    /// Waits until an answer, or a piece of one, may go to the client.
    pub(super) async fn pass(&self) -> Result<(), Cut> {
        let mut states = self.gate.0.subscribe();
        let state = states.wait_for(|state| state.cuts != self.cuts || !state.closed).await.map_err(|_| Cut)?;
        if state.cuts == self.cuts { Ok(()) } else { Err(Cut) }
    }

    /// Waits until the connection is cut.
    pub(super) async fn until_cut(&self) {
        let _ = self.gate.0.subscribe().wait_for(|state| state.cuts != self.cuts).await;
    }
}

/// A request on its way to a server; dropped without an answer it gives its place back.
pub(super) struct Ticket {
    gate: Gate,
    stop: Option<u64>,
    write: Option<(String, Method, String)>,
}

impl Ticket {
    /// The server has answered.
    pub(super) fn answered(mut self, status: u16) {
        let (id, write) = (self.stop.take(), self.write.take());
        if id.is_none() && write.is_none() {
            return;
        }
        self.gate.0.send_modify(|state| {
            state.log.extend(write.map(|(proxy, method, path)| Write { proxy, method, path, status }));
            let Some(stop) = state.stop.as_mut().filter(|stop| Some(stop.id) == id) else { return };
            stop.unanswered -= 1;
            if stop.admit == 0 && stop.unanswered == 0 {
                state.reached = stop.id;
                state.stop = None;
                state.closed = true;
            }
        });
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some(id) = self.stop else { return };
        self.gate.0.send_modify(|state| {
            if let Some(stop) = state.stop.as_mut().filter(|stop| stop.id == id) {
                stop.unanswered -= 1;
                stop.admit += 1;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    const POST: Method = Method::POST;

    fn enter(gate: &Gate, method: &Method) -> Option<Result<Ticket, Cut>> {
        gate.connection().enter("p", method, &"/x".parse().unwrap()).now_or_never()
    }

    fn admit(gate: &Gate, method: &Method) -> Ticket {
        enter(gate, method).expect("held").unwrap()
    }

    #[test]
    fn exactly_n_writes_reach_a_server() {
        let gate = Gate::new();
        let stop = gate.after_writes(2);
        tokio_test(async {
            let (first, second) = (admit(&gate, &POST), admit(&gate, &POST));
            assert!(enter(&gate, &POST).is_none(), "a third write went through");
            admit(&gate, &Method::GET).answered(200);
            second.answered(201);
            assert!(!gate.is_closed(), "closed before both were answered");
            assert!(gate.connection().pass().now_or_never().is_some());
            first.answered(200);
            assert!(gate.is_closed());
            assert!(gate.connection().pass().now_or_never().is_none(), "an answer went through a closed gate");
            assert!(enter(&gate, &Method::GET).is_none(), "a read went through a closed gate");
            assert!(stop.await);
            gate.release();
            admit(&gate, &POST).answered(200);
            assert_eq!(gate.writes().iter().map(|w| w.status).collect::<Vec<_>>(), [201, 200, 200]);
        });
    }

    #[test]
    fn a_write_without_an_answer_does_not_count() {
        let gate = Gate::new();
        let stop = gate.after_writes(1);
        tokio_test(async {
            drop(admit(&gate, &POST));
            assert!(!gate.is_closed());
            admit(&gate, &POST).answered(409);
            assert!(stop.await);
        });
    }

    #[test]
    fn a_stop_that_is_given_up_says_so() {
        let gate = Gate::new();
        tokio_test(async {
            let stop = gate.after_writes(1);
            gate.release();
            assert!(!stop.await, "released");
            let stop = gate.after_writes(1);
            let other = gate.after_writes(1);
            assert!(!stop.await, "replaced");
            gate.cut();
            assert!(!other.await, "cut");
            assert!(gate.after_writes(0).await, "nothing to wait for");
            assert!(gate.is_closed());
        });
    }

    #[test]
    fn a_cut_ends_what_was_held_and_lets_new_connections_in() {
        let gate = Gate::new();
        tokio_test(async {
            let old = gate.connection();
            assert!(gate.after_writes(0).await);
            let held = old.pass();
            let entering = old.enter("p", &POST, &"/x".parse().unwrap()).now_or_never();
            assert!(entering.is_none());
            gate.cut();
            assert!(held.await.is_err());
            assert!(old.enter("p", &POST, &"/x".parse().unwrap()).await.is_err(), "an old connection goes on");
            old.until_cut().await;
            assert!(gate.connection().pass().now_or_never().is_some());
        });
    }

    fn tokio_test(future: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
    }
}
