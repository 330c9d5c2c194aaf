//! The program as a command in a shell.

use std::io::Read as _;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::world::PROGRAM;

fn run(args: &[&str]) -> Result<Output> {
    let mut command = Command::new(PROGRAM);
    command.args(args).env_remove("KUBECONFIG").env("HOME", "/nonexistent").stdin(Stdio::null());
    command.output().context("the program starts")
}

#[test]
fn wrong_usage_and_failed_work_have_codes_of_their_own() -> Result<()> {
    for (args, code, text) in [
        (&["--help"][..], 0, ""),
        (&["nonsense"], 2, "unrecognized subcommand"),
        (&["join", "Capital", "--kubeconfig", "f"], 2, "must be 1 to 63 lower-case letters"),
        (&["crds", "--apply"], 1, "no kubeconfig found"),
        (&["crds", "--apply", "--kubeconfig", "/nonexistent/f"], 1, "kubeconfig /nonexistent/f: "),
    ] {
        let output = run(args)?;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.code() == Some(code) && told.contains(text), "{args:?}: {}: {told}", output.status);
        ensure!(told.matches("No such file").count() <= 1, "{args:?} tells a cause twice: {told}");
    }
    Ok(())
}

#[test]
fn a_reader_that_goes_early_is_no_failure() -> Result<()> {
    for args in [&["crds"][..], &["crds", "-o", "json"], &["completion", "bash"]] {
        let mut child = Command::new(PROGRAM).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        drop(child.stdout.take());
        let mut told = String::new();
        child.stderr.take().context("stderr")?.read_to_string(&mut told)?;
        let status = child.wait()?;
        ensure!(status.success() && told.is_empty(), "{args:?}: {status}: {told}");
    }
    Ok(())
}
