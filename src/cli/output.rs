//! What commands print.

use std::fmt::{self, Display};
use std::io::{self, ErrorKind, Write as _};

/// Prints a text on standard output. A reader that has gone, as in `odin-hub crds | head`, is no failure and ends no
/// work: the rest is for nobody.
pub(super) fn print(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// [`print`], and the end of a line.
pub(super) fn line(text: impl Display) -> io::Result<()> {
    print(format_args!("{text}\n"))
}

/// An error with its causes, each told once: some name their own cause in their text.
pub struct Told<'a>(pub &'a anyhow::Error);

impl Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for cause in self.0.chain().map(ToString::to_string) {
            if text.is_empty() {
                text = cause;
            } else if !text.contains(&cause) {
                text = format!("{text}: {cause}");
            }
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let missing = || anyhow!("no such file");
        for (error, told) in [
            (missing(), "no such file"),
            (missing().context("reading f"), "reading f: no such file"),
            (missing().context("reading f: no such file"), "reading f: no such file"),
            (missing().context("reading f: no such file").context("--kubeconfig f"), "--kubeconfig f: reading f: no such file"),
        ] {
            assert_eq!(Told(&error).to_string(), told);
        }
    }
}
