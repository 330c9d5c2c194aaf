//! Child processes: each ends with this process, logs to a file, and can be frozen, killed and started again.

mod janitor;
mod spawner;
mod sys;

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;

pub(crate) use janitor::Janitor;
pub(crate) use spawner::spawn;

/// A child process that belongs to the sandbox.
///
/// It is ended by SIGKILL when this value is dropped, and by the kernel when this process ends.
#[derive(Debug)]
pub struct Process {
    name: String,
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    log: PathBuf,
    child: Mutex<Child>,
}

impl Process {
    /// Starts `program`; its output goes to `log` (appended, so that a restart keeps what was there).
    pub fn start(name: &str, program: &Path, args: &[OsString], env: &[(OsString, OsString)], log: &Path) -> Result<Self> {
        let child = launch(name, program, args, env, log)?;
        Ok(Self {
            name: name.to_owned(),
            program: program.to_owned(),
            args: args.to_vec(),
            env: env.to_vec(),
            log: log.to_owned(),
            child: Mutex::new(child),
        })
    }

    /// The process' name in messages, such as `member-1-apiserver`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id; a restart changes it.
    pub fn pid(&self) -> u32 {
        self.child.lock().id()
    }

    /// The file that holds its output.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// The last `lines` lines of its log; empty when there is none.
    pub fn log_tail(&self, lines: usize) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let mut tail: Vec<&str> = text.lines().rev().take(lines).collect();
        tail.reverse();
        tail.join("\n")
    }

    /// How the process ended; `None` while it runs (or is frozen).
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.child.lock().try_wait().ok().flatten()
    }

    /// Whether the process exists; a frozen one does.
    pub fn is_alive(&self) -> bool {
        self.exit_status().is_none()
    }

    /// Freezes the process (SIGSTOP): its sockets stay open and silent.
    pub fn pause(&self) -> Result<()> {
        self.send(sys::Signal::Stop)
    }

    /// Lets a frozen process go on (SIGCONT).
    pub fn resume(&self) -> Result<()> {
        self.send(sys::Signal::Continue)
    }

    /// Ends the process at once (SIGKILL) and waits until it is gone. Nothing happens when it is gone already.
    pub fn kill(&self) {
        let mut child = self.child.lock();
        // Both fail only for a child that was waited for already.
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Asks the process to end (SIGTERM) and waits for it, at most `limit`; then it is killed, which is an error.
    pub async fn terminate(&self, limit: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.exit_status() {
            return Ok(status);
        }
        self.send(sys::Signal::Terminate)?;
        self.send(sys::Signal::Continue)?;
        let end = Instant::now() + limit;
        while Instant::now() < end {
            if let Some(status) = self.exit_status() {
                return Ok(status);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.kill();
        bail!("{} did not end within {} s of SIGTERM; killed", self.name, limit.as_secs())
    }

    /// Starts the process again with the same program, arguments (so the same port) and environment,
    /// after killing it when it still runs. Returns at once: wait for it to serve.
    pub fn restart(&self) -> Result<()> {
        let mut child = self.child.lock();
        let _ = child.kill();
        let _ = child.wait();
        *child = launch(&self.name, &self.program, &self.args, &self.env, &self.log)?;
        Ok(())
    }

    fn send(&self, signal: sys::Signal) -> Result<()> {
        let mut child = self.child.lock();
        if let Some(status) = child.try_wait()? {
            bail!("{} has ended: {status}", self.name);
        }
        sys::send(child.id(), signal).with_context(|| format!("{signal:?} to {}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn launch(name: &str, program: &Path, args: &[OsString], env: &[(OsString, OsString)], log: &Path) -> Result<Child> {
    let open = || -> io::Result<_> {
        if let Some(folder) = log.parent() {
            fs::create_dir_all(folder)?;
        }
        let out = OpenOptions::new().create(true).append(true).open(log)?;
        Ok((out.try_clone()?, out))
    };
    let (out, err) = open().with_context(|| format!("log file {}", log.display()))?;
    let mut command = Command::new(program);
    for (variable, _) in std::env::vars_os().filter(|(name, _)| leads_astray(name)) {
        command.env_remove(variable);
    }
    command.args(args).envs(env.iter().cloned()).stdin(Stdio::null()).stdout(out).stderr(err);
    own_group(&mut command);
    spawn(command).with_context(|| format!("cannot start {name} ({})", program.display()))
}

/// Variables of this process that would lead a child out of the sandbox: to a proxy or another cluster, or to other settings of the hub.
fn leads_astray(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy().to_ascii_uppercase();
    name.ends_with("_PROXY") || name == "KUBECONFIG" || name.starts_with("ODIN_HUB_")
}

/// Takes the command out of the terminal's process group: Ctrl-C is for the sandbox, which then ends its children in order.
pub(crate) fn own_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}
