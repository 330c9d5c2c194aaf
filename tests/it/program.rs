//! The program as a command in a shell.

use std::io::Read as _;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

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
        (&["services", "chat", "-A"], 2, "cannot be used with"),
        (&["services", "-n", "demo", "-A"], 2, "cannot be used with"),
        (&["clusters", "-o", "table"], 2, "possible values: wide, json, yaml, name"),
        (&["explain", "pod/chat"], 2, "use service/chat or cluster/chat"),
        (&["unjoin"], 2, "<NAME>"),
        (&["unjoin", "a", "--context", "c"], 2, "--kubeconfig <FILE>"),
        (&["render"], 2, "--filename <FILE>"),
        (&["render", "-f", "/nonexistent/f"], 1, "/nonexistent/f: No such file"),
        (&["render", "-f", "-"], 1, "the files hold no InferenceService"),
        (&["clusters"], 1, "no kubeconfig found"),
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
fn a_hub_that_can_not_start_says_so_in_its_log() -> Result<()> {
    let controller = |args: &[&str], env: &[(&str, &str)]| {
        let mut command = Command::new(PROGRAM);
        command.args(["controller", "--kubeconfig", "/nonexistent/f"]).args(args).env_remove("RUST_LOG").stdin(Stdio::null());
        command.envs(env.iter().copied()).output().context("the program starts")
    };
    let failed = |output: &Output| output.status.code() == Some(1);
    for (args, env) in [
        (&[][..], &[][..]),
        (&["--log-level", "error"], &[]),
        (&[], &[("RUST_LOG", "off")]),
        (&["--log-format", "json"], &[("RUST_LOG", "other=trace")]),
        (&[], &[("ODIN_HUB_LOG_LEVEL", "debug")]),
    ] {
        let output = controller(args, env)?;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(failed(&output) && told.matches("No such file").count() == 1, "{args:?} {env:?}: {}: {told}", output.status);
    }
    let output = controller(&["--log-format", "json"], &[])?;
    let line: Value = serde_json::from_slice(&output.stderr).with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    ensure!(
        failed(&output) && line["level"] == "ERROR" && line["message"].as_str().is_some_and(|m| m.contains("/nonexistent/f")),
        "{line}"
    );
    for (args, env, text) in [
        (&["--log-level", "loud"][..], &[][..], "[possible values: error, warn, info, debug, trace]"),
        (&["--metrics-addr", ":8080"], &[], "0 for nowhere"),
        (&[], &[("ODIN_HUB_METRICS_ADDR", "no")], "0 for nowhere"),
    ] {
        let output = controller(args, env)?;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.code() == Some(2) && told.contains(text), "{args:?} {env:?}: {}: {told}", output.status);
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

#[test]
fn some_of_what_is_rendered_may_be_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("all.yaml");
    let service = |name: &str, spec: &str| {
        format!("{{apiVersion: odin.moreh.io/v1alpha1, kind: InferenceService, metadata: {{name: {name}}}, spec: {spec}}}\n---\n")
    };
    let good = "{template: {spec: {containers: [{name: main, image: a, resources: {limits: {amd.com/gpu: 1}}}]}}}";
    std::fs::write(&file, [service("good", good), service("bare", "{}"), service("typo", "{replcas: 1}")].concat())?;
    let file = file.display().to_string();
    let output = run(&["render", "-f", &file])?;
    let (told, text) = (String::from_utf8_lossy(&output.stderr).into_owned(), String::from_utf8_lossy(&output.stdout).into_owned());
    ensure!(output.status.code() == Some(1) && text.contains("name: good") && !text.contains("bare"), "{told}{text}");
    for wanted in ["InferenceService default/bare: NoPodTemplate: ", "default/typo: spec.replcas is unknown", "2 objects are refused"] {
        ensure!(told.contains(wanted), "{wanted}: {told}");
    }
    let output = run(&["render", "-f", &file, "good", "-n", "demo"])?;
    let (told, text) = (String::from_utf8_lossy(&output.stderr).into_owned(), String::from_utf8_lossy(&output.stdout).into_owned());
    ensure!(output.status.success() && told.is_empty() && text.contains("namespace: demo"), "{told}{text}");
    Ok(())
}

#[test]
fn kubectl_finds_a_plugin() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let run = |name: &str, args: &[&str]| -> Result<(Option<i32>, String)> {
        let link = folder.path().join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(PROGRAM, &link)?;
        }
        let output = Command::new(link).args(args).env_remove("KUBECONFIG").env("HOME", "/nonexistent").output()?;
        Ok((output.status.code(), format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))))
    };
    for (name, args, code, wanted) in [
        ("kubectl-odin", &["--help"][..], 0, "Usage: kubectl odin <COMMAND>"),
        ("kubectl-odin", &["services", "--help"], 0, "Usage: kubectl odin services [OPTIONS] [NAMES]..."),
        ("kubectl-odin", &["clusters"], 1, "kubectl odin: no kubeconfig found"),
        ("kubectl_complete-odin", &["cl"], 0, "clusters\tList the member clusters"),
        ("elsewhere", &["--help"], 0, "Usage: odin-hub <COMMAND>"),
    ] {
        let (status, told) = run(name, args)?;
        ensure!(status == Some(code) && told.contains(wanted), "{name} {args:?}: {status:?}: {told}");
    }
    Ok(())
}
