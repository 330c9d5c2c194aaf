//! Upper, lower and title case of single characters. Go maps one character to one, where Rust may give several.

/// The characters of text; what is none becomes U+FFFD.
pub(super) fn characters(text: &[u8]) -> Vec<char> {
    super::super::format::replace_unsound(text).chars().collect()
}

pub(super) fn upper(character: char) -> char {
    let mut mapped = character.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(upper), None) => upper,
        // Greek letters with a small iota below: the one with a big iota beside it, which is their title case.
        _ => match u32::from(character) {
            code @ (0x1f80..=0x1f87 | 0x1f90..=0x1f97 | 0x1fa0..=0x1fa7) => char::from_u32(code + 8).unwrap_or(character),
            code @ (0x1fb3 | 0x1fc3 | 0x1ff3) => char::from_u32(code + 9).unwrap_or(character),
            _ => character,
        },
    }
}

pub(super) fn lower(character: char) -> char {
    // Only the capital I with a dot maps to two characters; the first of them is the letter.
    character.to_lowercase().next().unwrap_or(character)
}

/// The form at the start of a word: for most characters the upper case.
pub(super) fn title(character: char) -> char {
    match u32::from(character) {
        0x1c4..=0x1c6 => '\u{1c5}',
        0x1c7..=0x1c9 => '\u{1c8}',
        0x1ca..=0x1cc => '\u{1cb}',
        0x1f1..=0x1f3 => '\u{1f2}',
        // Georgian has capitals, but no title case.
        0x10d0..=0x10fa | 0x10fd..=0x10ff => character,
        _ => upper(character),
    }
}

/// Whether a character is a title case letter, such as one that is a capital and a small letter in one.
pub(super) fn is_title(character: char) -> bool {
    matches!(
        u32::from(character),
        0x1c5 | 0x1c8 | 0x1cb | 0x1f2 | 0x1f88..=0x1f8f | 0x1f98..=0x1f9f | 0x1fa8..=0x1faf | 0x1fbc | 0x1fcc | 0x1ffc
    )
}
