//! Building odin-hub with the cargo that runs this program.

use std::env;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use sandbox::progress::{Progress, run_counted};
use serde_json::Value;

/// Builds the program and gives its path.
pub(super) fn odin_hub(repository: &Path, progress: &Progress) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut messages = tempfile::tempfile().context("temp file")?;
    let mut command = Command::new(cargo);
    command.current_dir(repository).args(["build", "--bin", "odin-hub", "--message-format", "json-render-diagnostics"]);
    command.stdout(messages.try_clone()?);
    run_counted(command, &progress.task("hub")).context("building odin-hub")?;
    messages.rewind()?;
    let mut text = String::new();
    messages.read_to_string(&mut text)?;
    executable(&text).context("cargo did not say where it put odin-hub")
}

/// The path in cargo's messages, one JSON object a line.
fn executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut artifacts = messages.filter(|message| message.pointer("/target/name").is_some_and(|name| name == "odin-hub"));
    artifacts.find_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_the_one_of_the_program() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"odin_hub"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"odin-hub"},"executable":"/t/debug/odin-hub"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages), Some(PathBuf::from("/t/debug/odin-hub")));
        assert_eq!(executable("{}"), None);
    }
}
