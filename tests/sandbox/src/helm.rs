//! Helm as a person runs it, with settings and caches of its own.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use crate::programs::Programs;

/// The program with where it keeps what is its own, and the cluster that it works on.
#[derive(Clone, Debug)]
pub struct Helm {
    program: PathBuf,
    home: PathBuf,
    kubeconfig: Option<PathBuf>,
}

impl Helm {
    /// Helm that keeps its own files below `home`. Without a kubeconfig it can only do what needs no cluster.
    pub fn new(programs: &Programs, home: &Path, kubeconfig: Option<&Path>) -> Self {
        Self { program: programs.helm(), home: home.to_owned(), kubeconfig: kubeconfig.map(Path::to_owned) }
    }

    /// Runs a command and gives what it prints.
    ///
    /// # Errors
    /// When the command fails: with what it says.
    pub async fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<String> {
        let mut command = Command::new(&self.program);
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HELM_")) {
            command.env_remove(name);
        }
        for (name, folder) in [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")] {
            command.env(name, self.home.join(folder));
        }
        // An empty KUBECONFIG would mean the user's own.
        let kubeconfig = self.kubeconfig.clone().unwrap_or_else(|| self.home.join("none"));
        command.env("KUBECONFIG", kubeconfig).env("NO_PROXY", "127.0.0.1").args(args).stdin(Stdio::null()).kill_on_drop(true);
        let line = format!("{:?}", command.as_std().get_args().collect::<Vec<_>>());
        let output = command.output().await.with_context(|| self.program.display().to_string())?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "helm {line}: {}: {}", output.status, told.trim());
        String::from_utf8(output.stdout).context("what Helm prints")
    }
}
