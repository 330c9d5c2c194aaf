//! The one thread that spawns child processes.
//!
//! A parent-death signal fires when the spawning thread ends, and threads of tests and runtimes come
//! and go; this one lives as long as the process.

use std::io;
use std::process::{Child, Command};
use std::sync::{OnceLock, mpsc};
use std::thread;

use super::sys;

struct Job {
    command: Command,
    answer: mpsc::Sender<io::Result<Child>>,
}

/// Spawns `command` so that it ends with this process, in whatever way this process ends.
pub(crate) fn spawn(mut command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Option<mpsc::Sender<Job>>> = OnceLock::new();
    sys::die_with_spawner(&mut command);
    let gone = || io::Error::other("the sandbox's spawner thread is gone");
    let spawner = SPAWNER.get_or_init(start).as_ref().ok_or_else(gone)?;
    let (answer, result) = mpsc::channel();
    spawner.send(Job { command, answer }).map_err(|_| gone())?;
    result.recv().map_err(|_| gone())?
}

fn start() -> Option<mpsc::Sender<Job>> {
    let (jobs, queue) = mpsc::channel::<Job>();
    let work = move || {
        for mut job in queue {
            // Who asked may have gone away meanwhile: then the child is ended, not leaked.
            if let Err(mpsc::SendError(Ok(mut child))) = job.answer.send(job.command.spawn()) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    };
    thread::Builder::new().name("sandbox-spawner".to_owned()).spawn(work).ok()?;
    Some(jobs)
}
