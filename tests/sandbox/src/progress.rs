//! Telling people how far a long build is: a line that changes on a terminal, else a line now and then.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

use crate::process::{own_group, spawn};

/// Without a terminal, one line in this time.
const QUIET_STEP: Duration = Duration::from_secs(15);

/// Tells of the tasks that are under way, until it is dropped.
#[derive(Debug)]
pub struct Progress {
    tasks: Tasks,
    /// Dropped to end the thread that speaks.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

type Tasks = Arc<Mutex<Vec<Arc<Counter>>>>;

#[derive(Debug)]
struct Counter {
    what: String,
    steps: AtomicUsize,
}

/// A task under way, until it is dropped.
#[derive(Debug)]
pub struct Task {
    counter: Arc<Counter>,
    tasks: Tasks,
}

impl Progress {
    /// Starts to speak, on stderr.
    pub fn start() -> Self {
        let tasks = Tasks::default();
        let (stop, stopped) = mpsc::channel::<()>();
        let shared = Arc::clone(&tasks);
        let thread = thread::Builder::new().name("sandbox-progress".to_owned()).spawn(move || tell(&shared, &stopped)).ok();
        Self { tasks, stop: Some(stop), thread }
    }

    /// A task has begun.
    pub fn task(&self, what: &str) -> Task {
        let counter = Arc::new(Counter { what: what.to_owned(), steps: AtomicUsize::new(0) });
        self.tasks.lock().push(Arc::clone(&counter));
        Task { counter, tasks: Arc::clone(&self.tasks) }
    }
}

impl Task {
    /// One more package is done.
    pub fn count(&self) {
        self.counter.steps.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.tasks.lock().retain(|counter| !Arc::ptr_eq(counter, &self.counter));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn tell(tasks: &Tasks, stopped: &mpsc::Receiver<()>) {
    let (began, terminal) = (Instant::now(), io::stderr().is_terminal());
    let bar = ProgressBar::with_draw_target(None, if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() });
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    let step = if terminal { Duration::from_millis(200) } else { QUIET_STEP };
    while let Err(mpsc::RecvTimeoutError::Timeout) = stopped.recv_timeout(step) {
        match line(tasks, began.elapsed()) {
            Some(line) if terminal => {
                bar.set_message(line);
                bar.tick();
            }
            Some(line) => say(&line),
            None => {}
        }
    }
    bar.finish_and_clear();
}

fn line(tasks: &Tasks, elapsed: Duration) -> Option<String> {
    let tasks = tasks.lock();
    let mut line = format!("{} s", elapsed.as_secs());
    for (n, task) in tasks.iter().enumerate() {
        let steps = task.steps.load(Ordering::Relaxed);
        let _ = write!(line, "{} building the {}: {steps} packages", if n == 0 { ":" } else { ";" }, task.what);
    }
    (!tasks.is_empty()).then_some(line)
}

/// Runs a build, counting the lines that it says on stderr (one for each package); a failure shows the last of them.
/// Its stdout goes where `command` says.
pub fn run_counted(mut command: Command, task: &Task) -> Result<()> {
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    own_group(&mut command);
    let mut child = spawn(command).context("cannot start the build")?;
    let mut last = VecDeque::with_capacity(20);
    if let Some(lines) = child.stderr.take() {
        for line in BufReader::new(lines).lines() {
            task.count();
            last.truncate(19);
            last.push_front(line?);
        }
    }
    let status = child.wait()?;
    let tail: Vec<String> = last.into_iter().rev().collect();
    ensure!(status.success(), "{status}\n{}", tail.join("\n"));
    Ok(())
}

/// A line for people, on stderr itself: `cargo test` keeps what goes through `eprintln!` to itself.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "sandbox: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_of_each_task_under_way() {
        let progress = Progress::start();
        let (one, two) = (progress.task("hub"), progress.task("control plane"));
        two.count();
        let elapsed = Duration::from_secs(7);
        assert_eq!(line(&progress.tasks, elapsed).unwrap(), "7 s: building the hub: 0 packages; building the control plane: 1 packages");
        drop(one);
        assert_eq!(line(&progress.tasks, elapsed).unwrap(), "7 s: building the control plane: 1 packages");
        drop(two);
        assert_eq!(line(&progress.tasks, elapsed), None);
    }

    #[test]
    fn a_failed_build_shows_its_last_lines() {
        let progress = Progress::start();
        let mut command = Command::new("sh");
        command.args(["-c", "echo first >&2; echo second >&2; exit 3"]);
        let error = run_counted(command, &progress.task("thing")).unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.ends_with("first\nsecond"), "{error}");
    }
}
