//! Strings: trimming, case, cutting, searching, quoting.
//!
//! Where Go counts bytes these count bytes, so that a result may end within a character.
#![allow(clippy::unnecessary_wraps, reason = "the functions of the table have one signature")]

use super::super::error::{ErrorKind, Fault};
use super::super::format;
use super::super::functions::{Call, Function, Param, plain};
use super::super::value::Value;
use super::case;

type Outcome = Result<Value, Fault>;

const STRING: &[Param] = &[Param::Str];
const STRINGS: &[Param] = &[Param::Str, Param::Str];
const INT_STRING: &[Param] = &[Param::Int, Param::Str];
const MANY: Option<Param> = Some(Param::Any);

pub(super) static FUNCTIONS: &[Function] = &[
    plain("abbrev", INT_STRING, None, abbrev),
    plain("abbrevboth", &[Param::Int, Param::Int, Param::Str], None, abbrevboth),
    plain("cat", &[], MANY, cat),
    plain("contains", STRINGS, None, contains),
    plain("hasPrefix", STRINGS, None, has_prefix),
    plain("hasSuffix", STRINGS, None, has_suffix),
    plain("indent", INT_STRING, None, indent),
    plain("initials", STRING, None, initials),
    plain("lower", STRING, None, lower),
    plain("nindent", INT_STRING, None, nindent),
    plain("nospace", STRING, None, nospace),
    plain("plural", &[Param::Str, Param::Str, Param::Int], None, plural),
    plain("quote", &[], MANY, quote),
    plain("repeat", INT_STRING, None, repeat),
    plain("replace", &[Param::Str, Param::Str, Param::Str], None, replace),
    plain("squote", &[], MANY, squote),
    plain("substr", &[Param::Int, Param::Int, Param::Str], None, substr),
    plain("swapcase", STRING, None, swapcase),
    plain("title", STRING, None, title),
    plain("toString", &[Param::Any], None, to_string),
    plain("trim", STRING, None, trim),
    plain("trimAll", STRINGS, None, trim_all),
    plain("trimPrefix", STRINGS, None, trim_prefix),
    plain("trimSuffix", STRINGS, None, trim_suffix),
    plain("trimall", STRINGS, None, trim_all),
    plain("trunc", INT_STRING, None, trunc),
    plain("untitle", STRING, None, untitle),
    plain("upper", STRING, None, upper),
    plain("wrap", INT_STRING, None, wrap),
    plain("wrapWith", &[Param::Int, Param::Str, Param::Str], None, wrap_with),
];

/// The text of an argument whose type was checked.
fn text<'a>(call: &'a Call<'_>, index: usize) -> &'a [u8] {
    match call.argument(index) {
        Value::Str(text) => text,
        _ => b"",
    }
}

fn int(call: &Call<'_>, index: usize) -> i64 {
    match call.argument(index) {
        Value::Int(_, number) => *number,
        _ => 0,
    }
}

/// A result that a function built.
fn built(call: &mut Call<'_>, text: impl AsRef<[u8]>) -> Outcome {
    call.budget.build(text.as_ref().len())?;
    Ok(Value::string(text))
}

/// The text of any value, as it is printed.
pub(super) fn text_of(call: &mut Call<'_>, value: &Value) -> Result<Vec<u8>, Fault> {
    match value {
        Value::Str(text) => Ok(text.to_vec()),
        other => format::print(std::slice::from_ref(other), call.budget),
    }
}

// Trimming.

/// `text` without the characters at its ends for which `cut` holds. Bytes that are no character count as U+FFFD.
fn trimmed(text: &[u8], cut: impl Fn(char) -> bool) -> &[u8] {
    let cuts = |character: Option<char>| cut(character.unwrap_or(char::REPLACEMENT_CHARACTER));
    let leading: usize = format::characters(text).take_while(|(character, _)| cuts(*character)).map(|(_, bytes)| bytes.len()).sum();
    let rest = text.get(leading..).unwrap_or_default();
    let kept = format::characters(rest).scan(0, |end, (character, bytes)| {
        *end += bytes.len();
        Some((cuts(character), *end))
    });
    let end = kept.filter(|(cut, _)| !cut).map(|(_, end)| end).last().unwrap_or(0);
    rest.get(..end).unwrap_or_default()
}

fn trim(call: &mut Call<'_>) -> Outcome {
    Ok(Value::string(trimmed(text(call, 0), char::is_whitespace)))
}

fn trim_all(call: &mut Call<'_>) -> Outcome {
    let cutset = case::characters(text(call, 0));
    Ok(Value::string(trimmed(text(call, 1), |character| cutset.contains(&character))))
}

fn trim_prefix(call: &mut Call<'_>) -> Outcome {
    let whole = text(call, 1);
    Ok(Value::string(whole.strip_prefix(text(call, 0)).unwrap_or(whole)))
}

fn trim_suffix(call: &mut Call<'_>) -> Outcome {
    let whole = text(call, 1);
    Ok(Value::string(whole.strip_suffix(text(call, 0)).unwrap_or(whole)))
}

/// Removes white space. Each byte becomes a character when there is any, which garbles all but ASCII.
fn nospace(call: &mut Call<'_>) -> Outcome {
    let whole = text(call, 0);
    let kept: String = whole.iter().map(|byte| char::from(*byte)).filter(|character| !character.is_whitespace()).collect();
    if kept.chars().count() == whole.len() {
        return Ok(call.argument(0).clone());
    }
    built(call, kept)
}

// Case.

fn mapped(call: &mut Call<'_>, map: impl FnMut(char) -> char) -> Outcome {
    let result: String = case::characters(text(call, 0)).into_iter().map(map).collect();
    built(call, result)
}

fn upper(call: &mut Call<'_>) -> Outcome {
    mapped(call, case::upper)
}

fn lower(call: &mut Call<'_>) -> Outcome {
    mapped(call, case::lower)
}

/// The first letter of each word in title case. Letters, digits and underscores make words.
fn title(call: &mut Call<'_>) -> Outcome {
    let mut before = ' ';
    mapped(call, |character| {
        let starts = if before.is_ascii() {
            !(before == '_' || before.is_ascii_alphanumeric())
        } else {
            !format::is_letter_or_digit(before) && before.is_whitespace()
        };
        before = character;
        if starts { case::title(character) } else { character }
    })
}

fn untitle(call: &mut Call<'_>) -> Outcome {
    let mut starts = true;
    mapped(call, |character| {
        if character.is_whitespace() {
            starts = true;
            return character;
        }
        if std::mem::take(&mut starts) { case::lower(character) } else { character }
    })
}

fn swapcase(call: &mut Call<'_>) -> Outcome {
    let mut starts = true;
    mapped(call, |character| {
        if character.is_uppercase() || case::is_title(character) {
            starts = false;
            case::lower(character)
        } else if character.is_lowercase() {
            if std::mem::take(&mut starts) { case::title(character) } else { case::upper(character) }
        } else {
            starts = character.is_whitespace();
            character
        }
    })
}

/// The first byte of each word, as a character.
fn initials(call: &mut Call<'_>) -> Outcome {
    let mut starts = true;
    let mut result = String::new();
    for byte in text(call, 0) {
        let character = char::from(*byte);
        if character.is_whitespace() {
            starts = true;
        } else if std::mem::take(&mut starts) {
            result.push(character);
        }
    }
    built(call, result)
}

// Cutting.

fn out_of_range(start: i64, end: i64, length: usize) -> Fault {
    Fault::new(ErrorKind::Range, format!("there is no part from {start} to {end} in a string of {length} bytes"))
}

/// Bytes from `start` to `end`. A negative start means the beginning; a negative end, or one behind the end, the end.
fn substr(call: &mut Call<'_>) -> Outcome {
    let (start, end, whole) = (int(call, 0), int(call, 1), text(call, 2));
    let length = whole.len();
    let part = if start < 0 {
        usize::try_from(end).ok().and_then(|end| whole.get(..end))
    } else {
        let first = usize::try_from(start).unwrap_or(usize::MAX);
        let last = usize::try_from(end).unwrap_or(length).min(length);
        whole.get(first..last)
    };
    part.map(Value::string).ok_or_else(|| out_of_range(start, end, length))
}

/// The first bytes, or with a negative number the last ones.
fn trunc(call: &mut Call<'_>) -> Outcome {
    let (count, whole) = (int(call, 0), text(call, 1));
    let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let part = match whole.len().checked_sub(size) {
        Some(0) | None => whole,
        Some(rest) if count < 0 => whole.get(rest..).unwrap_or(whole),
        Some(_) => whole.get(..size).unwrap_or(whole),
    };
    Ok(Value::string(part))
}

const MARKER: &[u8] = b"...";

/// `whole`, shortened to `width` bytes with `...` for what is left out at its end, and before `offset`.
fn abbreviated(whole: &[u8], offset: usize, width: usize) -> Vec<u8> {
    let Some(room) = width.checked_sub(MARKER.len()).filter(|room| *room > 0) else { return whole.to_vec() };
    if whole.len() <= width {
        return whole.to_vec();
    }
    let offset = offset.min(whole.len() - room);
    if offset <= 4 {
        return [whole.get(..room).unwrap_or_default(), MARKER].concat();
    }
    // Both markers need some text between them.
    if width < 7 {
        return Vec::new();
    }
    if offset + room < whole.len() {
        let rest = abbreviated(whole.get(offset..).unwrap_or_default(), 0, room);
        return [MARKER, &rest].concat();
    }
    [MARKER, whole.get(whole.len() - room..).unwrap_or_default()].concat()
}

fn abbrev(call: &mut Call<'_>) -> Outcome {
    let (width, whole) = (int(call, 0), text(call, 1));
    let width = usize::try_from(width).unwrap_or(0);
    let result = abbreviated(whole, 0, width);
    built(call, result)
}

fn abbrevboth(call: &mut Call<'_>) -> Outcome {
    let (left, right) = (int(call, 0), int(call, 1));
    if right < 4 || left > 0 && right < 7 {
        return Ok(call.argument(2).clone());
    }
    let offset = usize::try_from(left).unwrap_or(0);
    let result = abbreviated(text(call, 2), offset, usize::try_from(right).unwrap_or(0));
    built(call, result)
}

/// Breaks a text into lines of at most `width` bytes at its spaces; `breaks_words` also breaks words that are longer.
fn wrapped(whole: &[u8], width: i64, newline: &[u8], breaks_words: bool) -> Vec<u8> {
    let width = usize::try_from(width).unwrap_or(0).max(1);
    let newline = if newline.is_empty() { b"\n" } else { newline };
    let mut result = Vec::with_capacity(whole.len());
    let mut rest = whole;
    while rest.len() > width {
        if let Some(tail) = rest.strip_prefix(b" ") {
            rest = tail;
            continue;
        }
        let is_space = |byte: &u8| *byte == b' ';
        // Where the line ends and where the next one starts.
        let (end, next) = match rest.iter().take(width + 1).rposition(is_space) {
            Some(space) => (space, space + 1),
            None if breaks_words => (width, width),
            None => match rest.iter().skip(width).position(is_space) {
                Some(space) => (width + space, width + space + 1),
                None => break,
            },
        };
        result.extend_from_slice(rest.get(..end).unwrap_or_default());
        result.extend_from_slice(newline);
        rest = rest.get(next..).unwrap_or_default();
    }
    result.extend_from_slice(rest);
    result
}

fn wrap(call: &mut Call<'_>) -> Outcome {
    let result = wrapped(text(call, 1), int(call, 0), b"\n", false);
    built(call, result)
}

fn wrap_with(call: &mut Call<'_>) -> Outcome {
    let (width, newline, whole) = (int(call, 0), text(call, 1), text(call, 2));
    let lines = whole.len() / usize::try_from(width).unwrap_or(0).max(1) + 1;
    let size = whole.len().saturating_add(lines.saturating_mul(newline.len()));
    call.budget.build(size)?;
    let result = wrapped(text(call, 2), width, text(call, 1), true);
    built(call, result)
}

// Searching and replacing.

/// Where `part` starts in `whole`.
pub(super) fn find(whole: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() {
        return Some(0);
    }
    whole.windows(part.len()).position(|window| window == part)
}

fn contains(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Bool(find(text(call, 1), text(call, 0)).is_some()))
}

fn has_prefix(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Bool(text(call, 1).starts_with(text(call, 0))))
}

fn has_suffix(call: &mut Call<'_>) -> Outcome {
    Ok(Value::Bool(text(call, 1).ends_with(text(call, 0))))
}

/// Replaces every `old`. An empty one stands before each character and at the end.
fn replace(call: &mut Call<'_>) -> Outcome {
    let (old, new, whole) = (text(call, 0), text(call, 1), text(call, 2));
    let limit = call.budget.max_output();
    let mut result = Vec::with_capacity(whole.len());
    if old.is_empty() {
        for (_, bytes) in format::characters(whole) {
            result.extend_from_slice(new);
            result.extend_from_slice(bytes);
            if result.len() > limit {
                break;
            }
        }
        result.extend_from_slice(new);
        return built(call, result);
    }
    let mut rest = whole;
    while let Some(at) = find(rest, old).filter(|_| result.len() <= limit) {
        result.extend_from_slice(rest.get(..at).unwrap_or_default());
        result.extend_from_slice(new);
        rest = rest.get(at + old.len()..).unwrap_or_default();
    }
    result.extend_from_slice(rest);
    built(call, result)
}

// Building.

fn repetitions(count: i64) -> Result<usize, Fault> {
    usize::try_from(count).map_err(|_| Fault::new(ErrorKind::Value, format!("the count {count} is negative")))
}

fn repeat(call: &mut Call<'_>) -> Outcome {
    let count = repetitions(int(call, 0))?;
    let size = count.saturating_mul(text(call, 1).len());
    call.budget.build(size)?;
    Ok(Value::string(text(call, 1).repeat(if size == 0 { 0 } else { count })))
}

/// Each line after so many spaces, the first one after `before`.
fn indented(call: &mut Call<'_>, before: &[u8]) -> Outcome {
    let spaces = repetitions(int(call, 0))?;
    let lines = text(call, 1).split(|byte| *byte == b'\n').count();
    let size = spaces.saturating_mul(lines).saturating_add(text(call, 1).len() + before.len());
    call.budget.build(size)?;
    let padding = b" ".repeat(spaces);
    let mut result = Vec::with_capacity(size);
    result.extend_from_slice(before);
    result.extend_from_slice(&padding);
    for byte in text(call, 1) {
        result.push(*byte);
        if *byte == b'\n' {
            result.extend_from_slice(&padding);
        }
    }
    Ok(Value::string(result))
}

fn indent(call: &mut Call<'_>) -> Outcome {
    indented(call, b"")
}

fn nindent(call: &mut Call<'_>) -> Outcome {
    indented(call, b"\n")
}

fn plural(call: &mut Call<'_>) -> Outcome {
    let form = if int(call, 2) == 1 { call.argument(0) } else { call.argument(1) };
    Ok(form.clone())
}

/// The texts of all arguments that aren't nil, each made by `write`, with spaces between them.
fn joined(call: &mut Call<'_>, write: impl Fn(&mut Vec<u8>, &[u8])) -> Outcome {
    let mut result = Vec::new();
    for value in call.arguments.clone() {
        if matches!(value, Value::Nil) {
            continue;
        }
        if !result.is_empty() {
            result.push(b' ');
        }
        let text = text_of(call, &value)?;
        write(&mut result, &text);
        if result.len() > call.budget.max_output() {
            break;
        }
    }
    built(call, result)
}

fn quote(call: &mut Call<'_>) -> Outcome {
    joined(call, |result, text| result.extend_from_slice(format::quoted(text).as_bytes()))
}

fn squote(call: &mut Call<'_>) -> Outcome {
    joined(call, |result, text| {
        result.push(b'\'');
        result.extend_from_slice(text);
        result.push(b'\'');
    })
}

fn cat(call: &mut Call<'_>) -> Outcome {
    let mut result = Vec::new();
    let values: Vec<Value> = call.arguments.iter().filter(|value| !matches!(value, Value::Nil)).cloned().collect();
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            result.push(b' ');
        }
        result.extend_from_slice(&text_of(call, value)?);
        if result.len() > call.budget.max_output() {
            break;
        }
    }
    built(call, result)
}

fn to_string(call: &mut Call<'_>) -> Outcome {
    let value = call.argument(0).clone();
    text_of(call, &value).map(Value::string)
}
