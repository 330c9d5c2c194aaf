//! What the benches have in common: how a figure is taken and printed.

use std::time::{Duration, Instant};

/// How long `work` takes, as many times as asked for, sorted.
pub(crate) fn times(rounds: usize, mut work: impl FnMut(usize)) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|round| {
            let start = Instant::now();
            work(round);
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}

/// The time below which `percent` of the times are.
pub(crate) fn percentile(times: &[Duration], percent: usize) -> Duration {
    let at = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(at).copied().unwrap_or_default()
}

/// One line for programs: the name stays the same for ever.
pub(crate) fn figure(name: &str, value: f64, unit: &str, size: &str) {
    println!("figure {name} {value:.3} {unit} {size}");
}
