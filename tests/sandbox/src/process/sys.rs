//! The two system calls that std has no safe form of.
#![allow(unsafe_code, reason = "a parent-death signal is set between fork and exec, and only libc sends SIGSTOP, SIGCONT and SIGTERM")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A signal that the sandbox sends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Signal {
    /// SIGSTOP
    Stop,
    /// SIGCONT
    Continue,
    /// SIGTERM
    Terminate,
}

/// Makes the child end (SIGKILL) when the thread that spawns it ends, in whatever way that happens.
///
/// The kernel binds the signal to the spawning *thread*, so only the spawner's long-lived thread
/// may spawn such a command.
pub(super) fn die_with_spawner(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        let parent = std::process::id();
        let set = move || {
            // SAFETY: prctl and getppid take no pointers here and are async-signal-safe.
            let (failed, now) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) != 0, libc::getppid()) };
            if failed {
                return Err(io::Error::last_os_error());
            }
            // The parent may have ended before the signal was asked for.
            if u32::try_from(now) == Ok(parent) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
        };
        // SAFETY: the closure allocates nothing, takes no lock and makes only async-signal-safe calls.
        unsafe { command.pre_exec(set) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// Sends `signal` to the process `pid`, which the caller has not reaped yet (so that the number can't be another's).
pub(super) fn send(pid: u32, signal: Signal) -> io::Result<()> {
    let number = match signal {
        Signal::Stop => libc::SIGSTOP,
        Signal::Continue => libc::SIGCONT,
        Signal::Terminate => libc::SIGTERM,
    };
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    // SAFETY: kill takes two numbers and touches no memory of ours.
    if unsafe { libc::kill(pid, number) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
