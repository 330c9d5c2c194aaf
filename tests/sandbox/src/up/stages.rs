//! What `up` is at, and how long each stage took.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Prints news with the time since the start, and keeps how long each stage took.
pub(super) struct Stages {
    began: Instant,
    state: Mutex<State>,
}

struct State {
    current: (&'static str, Instant),
    done: Vec<(&'static str, Duration)>,
}

impl Stages {
    pub(super) fn start() -> Self {
        let now = Instant::now();
        Self { began: now, state: Mutex::new(State { current: ("", now), done: Vec::new() }) }
    }

    /// A stage begins.
    pub(super) fn begin(&self, name: &'static str, what: &str) {
        self.state.lock().current = (name, Instant::now());
        self.line(&format!("{name}: {what}"));
    }

    /// News of the current stage.
    pub(super) fn say(&self, line: &str) {
        self.line(&format!("  {line}"));
    }

    /// The current stage is over.
    pub(super) fn end(&self, line: &str) {
        let mut state = self.state.lock();
        let (name, began) = state.current;
        let took = began.elapsed();
        state.done.push((name, took));
        drop(state);
        self.line(&format!("  {line} ({:.1} s)", took.as_secs_f64()));
    }

    /// How long each stage took.
    pub(super) fn print_summary(&self) {
        println!("\nStages");
        for (name, took) in &self.state.lock().done {
            println!("  {name:<16} {:>7.1} s", took.as_secs_f64());
        }
        println!("  {:<16} {:>7.1} s", "in all", self.began.elapsed().as_secs_f64());
    }

    fn line(&self, text: &str) {
        println!("{:>7.1} s  {text}", self.began.elapsed().as_secs_f64());
    }
}
