//! Text from members, made fit to be shown.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Characters of a diagnostic's message at most.
pub(super) const MESSAGE_LIMIT: usize = 1024;
/// Bytes of a placement's message at most.
pub(super) const PLACEMENT_LIMIT: usize = 256;

/// What stands for what is not shown.
const HIDDEN: &str = "…";
/// Shorter values of environment variables are words that occur anywhere.
const SHORTEST_SECRET: usize = 6;

/// Cuts a text to so many characters; the last one then is an ellipsis.
pub(super) fn cut(text: &mut String, characters: usize) {
    if text.len() <= characters {
        return;
    }
    if let Some((end, _)) = text.char_indices().nth(characters) {
        let keep = text.char_indices().nth(characters.saturating_sub(1)).map_or(end, |(at, _)| at);
        text.truncate(keep);
        text.push('…');
    }
}

/// Cuts a text to so many bytes, at a character; the end then is an ellipsis.
pub(super) fn cut_bytes(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        let mut keep = bytes.saturating_sub('…'.len_utf8());
        while !text.is_char_boundary(keep) {
            keep -= 1;
        }
        text.truncate(keep);
        text.push('…');
    }
    text
}

/// `before`, as much of `text` as fits, and `after`: at most [`MESSAGE_LIMIT`] characters.
pub(super) fn compose(before: &str, text: &str, after: &str) -> String {
    let room = MESSAGE_LIMIT.saturating_sub(before.chars().count() + after.chars().count());
    let mut text = text.to_owned();
    cut(&mut text, room);
    let mut message = format!("{before}{text}{after}");
    cut(&mut message, MESSAGE_LIMIT);
    message
}

/// Things that look like a secret wherever they stand: credentials of a request, of a URL, of an assignment, and
/// tokens that are known by their form.
static SECRETS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}", "$1 …"),
        (r"(://)[^/\s@:]+:[^/\s@]+@", "$1…@"),
        (r#"(?i)([a-z0-9_-]*(?:token|passw(?:or)?d|secret|api[_-]?key|access[_-]?key)[a-z0-9_-]*"?(?:=|":)\s*"?)[^\s"',;&]{4,}"#, "$1…"),
        (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+", HIDDEN),
        (r"\bhf_[A-Za-z0-9]{16,}", HIDDEN),
    ]
    .into_iter()
    .filter_map(|(pattern, shown)| Some((Regex::new(pattern).ok()?, shown)))
    .collect()
});

/// Makes text from members fit to be shown: what may be secret is left out, and control characters become blanks.
#[derive(Debug, Default)]
pub(super) struct Cleaner {
    secrets: Vec<String>,
}

impl Cleaner {
    /// Knows the values that a rendered spec gives to variables whose names speak of secrets.
    pub(super) fn new(spec: Option<&Value>) -> Self {
        let mut secrets = Vec::new();
        for template in spec.into_iter().flat_map(|s| [s.get("template"), s.get("workerTemplate")]).flatten() {
            for list in ["containers", "initContainers"] {
                let containers = template.pointer(&format!("/spec/{list}")).and_then(Value::as_array);
                for container in containers.into_iter().flatten() {
                    let env = container.get("env").and_then(Value::as_array);
                    secrets.extend(env.into_iter().flatten().filter_map(secret_value));
                }
            }
        }
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self { secrets }
    }

    /// The text, fit to be shown.
    pub(super) fn clean(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        for character in text.chars() {
            let character = if hides(character) { ' ' } else { character };
            if character != ' ' || !clean.ends_with(' ') {
                clean.push(character);
            }
        }
        let mut clean = clean.trim().to_owned();
        for secret in &self.secrets {
            if clean.contains(secret.as_str()) {
                clean = clean.replace(secret.as_str(), HIDDEN);
            }
        }
        for (pattern, shown) in SECRETS.iter() {
            if let Cow::Owned(replaced) = pattern.replace_all(&clean, *shown) {
                clean = replaced;
            }
        }
        clean
    }
}

/// Characters that move the cursor, end a line, or turn the direction of what follows.
fn hides(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn secret_value(env: &Value) -> Option<String> {
    const WORDS: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY"];
    let name = env.get("name")?.as_str()?.to_ascii_uppercase();
    let value = env.get("value")?.as_str()?;
    (value.len() >= SHORTEST_SECRET && WORDS.iter().any(|word| name.contains(word))).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_may_be_secret_is_not_shown() {
        let spec = json!({"template": {"spec": {"containers": [{"env": [
            {"name": "LICENSE_KEY", "value": "open-sesame"},
            {"name": "MODEL", "value": "example/chat"},
            {"name": "SHORT_KEY", "value": "no"},
        ]}]}}});
        let cleaner = Cleaner::new(Some(&spec));
        for (text, shown) in [
            ("license open-sesame is over, no mercy", "license … is over, no mercy"),
            ("can't load example/chat", "can't load example/chat"),
            ("Authorization: Bearer abcdefgh.ijkl", "Authorization: Bearer …"),
            ("GET https://me:pass@host/x failed", "GET https://…@host/x failed"),
            ("HF_TOKEN=abcdef is wrong", "HF_TOKEN=… is wrong"),
            (r#"{"password":"abcdef","user":"me"}"#, r#"{"password":"…","user":"me"}"#),
            ("couldn't find key token in Secret demo/hf", "couldn't find key token in Secret demo/hf"),
            ("hf_abcdefghijklmnopqrst refused", "… refused"),
        ] {
            assert_eq!(cleaner.clean(text), shown);
        }
    }

    #[test]
    fn every_pattern_is_a_regular_expression() {
        assert_eq!(SECRETS.len(), 5);
    }

    #[test]
    fn control_characters_become_blanks() {
        for (text, shown) in [("a\nb\r\n\tc", "a b c"), ("\u{1b}[31mred", "[31mred"), ("x\u{202e}y", "x y"), (" ok ", "ok")] {
            assert_eq!(Cleaner::default().clean(text), shown);
        }
    }

    #[test]
    fn cuts_count_characters_or_bytes_and_never_split_one() {
        let mut text = "äöü".to_owned();
        cut(&mut text, 3);
        assert_eq!(text, "äöü");
        cut(&mut text, 2);
        assert_eq!(text, "ä…");
        assert_eq!(cut_bytes("ä".repeat(200), PLACEMENT_LIMIT).len(), 255);
        assert_eq!(cut_bytes("short".to_owned(), PLACEMENT_LIMIT), "short");
        let message = compose("a/b: ", &"x".repeat(3000), " (2 groups affected)");
        assert_eq!(message.chars().count(), MESSAGE_LIMIT);
        assert!(message.starts_with("a/b: xxx") && message.ends_with("x… (2 groups affected)"), "{message}");
    }
}
