//! Characters within bytes, and quoted text.

use std::fmt::Write;
use std::sync::LazyLock;

use regex::Regex;

/// Whether Go prints the character as it is: letters, marks, numbers, punctuation, symbols and the plain space.
pub(in super::super) fn is_printable(character: char) -> bool {
    static PRINTABLE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\p{L}\p{M}\p{N}\p{P}\p{S}]$").ok());
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    PRINTABLE.as_ref().is_some_and(|class| class.is_match(character.encode_utf8(&mut [0; 4])))
}

/// Whether the character is a letter or a decimal digit.
pub(in super::super) fn is_letter_or_digit(character: char) -> bool {
    static LETTER_OR_DIGIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\p{L}\p{Nd}]$").ok());
    if character.is_ascii() {
        return character.is_ascii_alphanumeric();
    }
    LETTER_OR_DIGIT.as_ref().is_some_and(|class| class.is_match(character.encode_utf8(&mut [0; 4])))
}

/// The characters of bytes: each with its bytes; a byte that belongs to none comes alone, without a character.
pub(in super::super) fn characters(bytes: &[u8]) -> impl Iterator<Item = (Option<char>, &[u8])> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid();
        let sound = valid.char_indices().map(move |(at, character)| {
            let bytes = valid.as_bytes().get(at..at + character.len_utf8()).unwrap_or_default();
            (Some(character), bytes)
        });
        sound.chain(chunk.invalid().chunks(1).map(|byte| (None, byte)))
    })
}

pub(super) fn count_characters(bytes: &[u8]) -> usize {
    if bytes.is_ascii() { bytes.len() } else { characters(bytes).count() }
}

/// The first `count` characters.
pub(super) fn first_characters(bytes: &[u8], count: usize) -> &[u8] {
    let length: usize = characters(bytes).take(count).map(|(_, bytes)| bytes.len()).sum();
    bytes.get(..length).unwrap_or(bytes)
}

/// The text with U+FFFD for each byte that is part of no character.
pub(in super::super) fn replace_unsound(bytes: &[u8]) -> String {
    characters(bytes).map(|(character, _)| character.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Text in backquotes, when it can be written so.
pub(super) fn backquoted(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let plain = |character: char| !matches!(character, '`' | '\u{7f}' | '\u{feff}') && (character >= ' ' || character == '\t');
    text.chars().all(plain).then(|| format!("`{text}`"))
}

/// Text in double quotes.
pub(super) fn double_quoted(bytes: &[u8], ascii: bool) -> String {
    let mut out = String::from("\"");
    for (character, bytes) in characters(bytes) {
        match (character, bytes.first()) {
            (Some(character), _) => escape(&mut out, character, '"', ascii),
            (None, Some(byte)) => hex(&mut out, *byte),
            (None, None) => {}
        }
    }
    out.push('"');
    out
}

/// A character in single quotes.
pub(super) fn single_quoted(character: char, ascii: bool) -> String {
    let mut out = String::from("'");
    escape(&mut out, character, '\'', ascii);
    out.push('\'');
    out
}

fn hex(out: &mut String, byte: u8) {
    // Writing to a string never fails.
    let _ = write!(out, "\\x{byte:02x}");
}

fn escape(out: &mut String, character: char, quote: char, ascii: bool) {
    let number = u32::from(character);
    match character {
        '\\' => out.push_str("\\\\"),
        _ if character == quote => {
            out.push('\\');
            out.push(quote);
        }
        _ if is_printable(character) && (character.is_ascii() || !ascii) => out.push(character),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        '\0'..='\u{1f}' | '\u{7f}' => hex(out, number as u8),
        '\0'..='\u{ffff}' => {
            let _ = write!(out, "\\u{number:04x}");
        }
        _ => {
            let _ = write!(out, "\\U{number:08x}");
        }
    }
}
