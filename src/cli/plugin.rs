//! The program as a plugin of kubectl: `kubectl odin …` runs an executable `kubectl-odin` on PATH, and to complete a
//! command line `kubectl_complete-odin` with its words.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

use clap::Command;

/// The last line of kubectl's protocol for completion: these are all, offer no names of files beside them.
const NO_FILES: u8 = 4;
/// The same, but names of files are offered.
const FILES: u8 = 0;

/// The name under which the program was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Program,
    Plugin,
    PluginCompletion,
}

impl Name {
    /// By the first word of a command line.
    pub(super) fn of(word: Option<&OsStr>) -> Self {
        match word.and_then(|word| Path::new(word).file_stem()).and_then(OsStr::to_str) {
            Some("kubectl-odin") => Self::Plugin,
            Some("kubectl_complete-odin") => Self::PluginCompletion,
            _ => Self::Program,
        }
    }

    /// As people write it.
    pub(super) const fn as_written(self) -> &'static str {
        match self {
            Self::Program => "odin-hub",
            Self::Plugin | Self::PluginCompletion => "kubectl odin",
        }
    }
}

/// What may stand in place of the last word, which is not finished: one a line, with a description after a tab.
pub(super) fn complete(command: &Command, words: &[String]) -> String {
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut command = command.clone();
    for word in before {
        if let Some(deeper) = command.find_subcommand(word).cloned() {
            command = deeper;
        }
    }
    let option = before.last().and_then(|word| {
        let is = |arg: &&clap::Arg| {
            let short = arg.get_short().is_some_and(|short| *word == format!("-{short}"));
            short || arg.get_long().is_some_and(|long| *word == format!("--{long}"))
        };
        command.get_arguments().find(is).filter(|arg| arg.get_action().takes_values())
    });
    let mut offers: Vec<(String, String)> = Vec::new();
    if let Some(option) = option {
        offers.extend(option.get_possible_values().iter().map(|value| described(value.get_name(), value.get_help())));
    } else if last.starts_with('-') {
        let flags = command.get_arguments().filter(|arg| !arg.is_hide_set());
        offers.extend(flags.filter_map(|arg| Some(described(&format!("--{}", arg.get_long()?), arg.get_help()))));
    } else {
        offers.extend(command.get_subcommands().map(|deeper| described(deeper.get_name(), deeper.get_about())));
        let values = command.get_positionals().flat_map(clap::Arg::get_possible_values);
        offers.extend(values.map(|value| described(value.get_name(), value.get_help())));
    }
    let directive = if offers.is_empty() && option.is_some() { FILES } else { NO_FILES };
    let mut text = String::new();
    for (value, description) in offers.iter().filter(|(value, _)| value.starts_with(last)) {
        // Writing into a string never fails.
        let _ = writeln!(text, "{value}\t{description}");
    }
    let _ = writeln!(text, ":{directive}");
    text
}

fn described(value: &str, help: Option<&clap::builder::StyledStr>) -> (String, String) {
    let help = help.map(ToString::to_string).unwrap_or_default();
    (value.to_owned(), help.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_decides() {
        for (word, wanted) in [
            ("odin-hub", Name::Program),
            ("/usr/local/bin/kubectl-odin", Name::Plugin),
            ("kubectl-odin.exe", Name::Plugin),
            ("/opt/kubectl_complete-odin", Name::PluginCompletion),
            ("/kubectl-odin/odin-hub", Name::Program),
            ("", Name::Program),
        ] {
            assert_eq!(Name::of(Some(OsStr::new(word))), wanted, "{word}");
        }
        assert_eq!(Name::of(None), Name::Program);
    }

    #[test]
    fn words_are_completed() {
        let command = super::super::command(Name::Plugin);
        let complete = |words: &[&str]| {
            let text = complete(&command, &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
            let values = text.lines().map(|line| line.split('\t').next().unwrap().to_owned());
            values.collect::<Vec<String>>().join(" ")
        };
        for (words, wanted) in [
            (&["cl"][..], "clusters :4"),
            (&["clusters", ""], ":4"),
            (&["clusters", "--o"], "--output :4"),
            (&["clusters", "-o", ""], "wide json yaml name :4"),
            (&["services", "--output", "j"], "json :4"),
            (&["services", "--all-namespaces", "-o", "w"], "wide :4"),
            (&["render", "-f", ""], ":0"),
            (&["completion", "z"], "zsh :4"),
        ] {
            assert_eq!(complete(words), wanted, "{words:?}");
        }
        assert!(complete(&[]).starts_with("controller "));
    }
}
