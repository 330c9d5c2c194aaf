//! Removes the temp folder when this process ends, in whatever way it ends.

use std::io;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use super::own_group;

/// Waits for the end of its input, which comes when the holder is gone, then removes the folder.
/// It tries again for a while: the control planes that write there die at the same moment.
const SCRIPT: &str =
    r#"cat >/dev/null; n=0; while [ -e "$1" ] && [ $n -lt 50 ]; do rm -rf "$1" 2>/dev/null && exit; n=$((n+1)); sleep 0.2; done"#;

/// A shell that outlives this process just long enough to remove a folder.
#[derive(Debug)]
pub(crate) struct Janitor {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Janitor {
    /// Starts the janitor of `folder`.
    pub(crate) fn watch(folder: &Path) -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "odin-hub-sandbox-janitor"]).arg(folder).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        own_group(&mut command);
        let mut shell = command.spawn()?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe })
    }
}

impl Drop for Janitor {
    /// Closes the pipe, so the folder is removed now, and waits for that.
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.shell.wait();
    }
}
