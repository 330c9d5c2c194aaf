//! A condition with what the documentation says of its reason, and how texts of all explanations look.

use std::fmt::Write as _;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;

use crate::api::condition::Condition;
use crate::cli::reasons::{Explained, explained};
use crate::cli::table::{age, shown};

/// Columns of a text. Terminals are rarely narrower.
const WIDTH: usize = 100;

/// A condition, explained.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct State {
    #[serde(rename = "type")]
    pub(super) type_: String,
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) since: Time,
    #[serde(flatten)]
    pub(super) explained: Option<Explained>,
}

impl State {
    pub(super) fn of(condition: &Condition) -> Self {
        Self {
            type_: condition.type_.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: condition.last_transition_time.clone(),
            explained: explained(&condition.reason),
        }
    }

    /// The first lines of an explanation: how it is, and since when.
    pub(super) fn headline(&self, what: &str, now: Timestamp) -> String {
        let ready = match self.status.as_str() {
            "True" => "ready",
            "False" => "not ready",
            _ => "perhaps not ready",
        };
        format!("{what} is {ready} ({}), since {}\n", self.reason, age(Some(&self.since), now))
    }
}

/// One line of facts: label and value, aligned.
pub(super) fn fact(text: &mut String, label: &str, value: &str) {
    // Writing into a string never fails.
    let _ = writeln!(text, "{label:<12}{}", shown(value).trim_end());
}

/// The begin of a part.
pub(super) fn part(text: &mut String, title: &str) {
    let _ = writeln!(text, "\n{title}");
}

/// A paragraph that begins with a label and is broken between words.
pub(super) fn paragraph(text: &mut String, label: &str, words: &str) {
    let mut line = if label.is_empty() { "  ".to_owned() } else { format!("  {label} ") };
    let mut begun = false;
    for word in shown(words).split_whitespace() {
        if begun && line.chars().count() + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{}", line.trim_end());
            line.replace_range(.., "    ");
        }
        line.push_str(word);
        line.push(' ');
        begun = true;
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

/// What the documentation says, below what it is about.
pub(super) fn advice(text: &mut String, explained: Option<&Explained>) {
    let Some(explained) = explained else { return };
    paragraph(text, "Meaning:", &explained.meaning);
    if let Some(what_to_do) = &explained.what_to_do {
        paragraph(text, "What to do:", what_to_do);
    }
}

/// A table inside a part.
pub(super) fn indented(text: &mut String, lines: &str) {
    for line in lines.lines() {
        let _ = writeln!(text, "  {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_is_broken_between_words() {
        let mut text = String::new();
        paragraph(&mut text, "Meaning:", &"word ".repeat(30));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].starts_with("  Meaning: word word") && lines[1].starts_with("    word"), "{text}");
        assert!(lines.iter().all(|line| line.len() <= WIDTH && !line.ends_with(' ')), "{text}");
        assert_eq!(text.matches("word").count(), 30);

        let mut text = String::new();
        let long = "x".repeat(WIDTH * 2);
        paragraph(&mut text, "Meaning:", &long);
        assert_eq!(text, format!("  Meaning: {long}\n"), "a word is never broken");

        let mut text = String::new();
        paragraph(&mut text, "", "one\u{1b} word");
        assert_eq!(text, "  one word\n");
    }
}
