//! Constants: strings, characters and numbers as Go writes them.

use super::ast::Number;

/// The bytes of a `"..."` or a raw string, quotes included; None when an escape is malformed.
pub(super) fn unquote(literal: &str) -> Option<Vec<u8>> {
    if let Some(raw) = literal.strip_prefix('`') {
        let inner = raw.strip_suffix('`')?;
        return Some(inner.bytes().filter(|byte| *byte != b'\r').collect());
    }
    let mut rest = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let (unit, tail) = unit(rest, '"')?;
        match unit {
            Unit::Character(character) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Byte(byte) => bytes.push(byte),
        }
        rest = tail;
    }
    Some(bytes)
}

/// A piece of a quoted literal.
enum Unit {
    Character(char),
    /// From `\x` or an octal escape.
    Byte(u8),
}

/// The first unit of `text` and what follows it.
fn unit(text: &str, quote: char) -> Option<(Unit, &str)> {
    let mut characters = text.chars();
    let first = characters.next()?;
    if first == quote || first == '\n' {
        return None;
    }
    if first != '\\' {
        return Some((Unit::Character(first), characters.as_str()));
    }
    let escape = characters.next()?;
    let rest = characters.as_str();
    let plain = |character| Some((Unit::Character(character), rest));
    match escape {
        'a' => plain('\u{7}'),
        'b' => plain('\u{8}'),
        'f' => plain('\u{c}'),
        'n' => plain('\n'),
        'r' => plain('\r'),
        't' => plain('\t'),
        'v' => plain('\u{b}'),
        '\\' => plain('\\'),
        '\'' | '"' if escape == quote => plain(escape),
        'x' => digits(rest, 2, 16).and_then(|(value, tail)| Some((Unit::Byte(u8::try_from(value).ok()?), tail))),
        'u' => digits(rest, 4, 16).and_then(|(value, tail)| Some((Unit::Character(char::from_u32(value)?), tail))),
        'U' => digits(rest, 8, 16).and_then(|(value, tail)| Some((Unit::Character(char::from_u32(value)?), tail))),
        '0'..='7' => {
            let (value, tail) = digits(text.get(1..)?, 3, 8)?;
            Some((Unit::Byte(u8::try_from(value).ok()?), tail))
        }
        _ => None,
    }
}

fn digits(text: &str, count: usize, radix: u32) -> Option<(u32, &str)> {
    let (number, tail) = text.split_at_checked(count)?;
    let sound = number.chars().all(|digit| digit.is_digit(radix));
    Some((u32::from_str_radix(number, radix).ok().filter(|_| sound)?, tail))
}

/// A constant in single quotes; its value is the number of the character.
pub(super) fn character(literal: &str) -> Result<Number, String> {
    let inner = literal.strip_prefix('\'').unwrap_or(literal);
    let (unit, tail) = unit(inner, '\'').ok_or_else(|| format!("malformed character constant {literal}"))?;
    if tail != "'" {
        return Err(format!("malformed character constant {literal}; text needs double quotes"));
    }
    let value = match unit {
        Unit::Character(character) => u32::from(character),
        Unit::Byte(byte) => u32::from(byte),
    };
    Ok(Number { int: Some(i64::from(value)), uint: Some(u64::from(value)), float: Some(f64::from(value)), ..Number::default() })
}

/// A complex constant such as `1+2i`.
pub(super) fn complex(literal: &str) -> Result<Number, String> {
    let malformed = || format!("malformed number {literal}");
    let inner = literal.strip_suffix('i').ok_or_else(malformed)?;
    let split = inner
        .char_indices()
        .zip(inner.chars().skip(1).map(Some).chain([None]))
        .find_map(|((at, current), next)| {
            let sign = matches!(next, Some('+' | '-')) && !matches!(current, 'e' | 'E' | 'p' | 'P');
            sign.then_some(at + current.len_utf8())
        })
        .ok_or_else(malformed)?;
    let (real, imaginary) = inner.split_at_checked(split).ok_or_else(malformed)?;
    let real = parse_float(real).ok_or_else(malformed)?;
    let imaginary = parse_float(imaginary).ok_or_else(malformed)?;
    Ok(simplified(real, imaginary))
}

/// A complex number that is also usable as a real one when it has no imaginary part.
fn simplified(real: f64, imaginary: f64) -> Number {
    let whole = Some(real).filter(|_| imaginary == 0.0);
    Number {
        complex: Some((real, imaginary)),
        float: whole,
        int: whole.and_then(float_to_int),
        uint: whole.and_then(float_to_uint),
        looks_float: false,
    }
}

/// Any other numeric constant.
pub(super) fn number(literal: &str) -> Result<Number, String> {
    if let Some(imaginary) = literal.strip_suffix('i').and_then(parse_float) {
        return Ok(simplified(0.0, imaginary));
    }
    let mut uint = parse_uint(literal);
    let int = parse_int(literal);
    if int == Some(0) {
        // For -0.
        uint = Some(0);
    }
    let has_float_sign = literal.contains(['.', 'e', 'E', 'p', 'P']);
    let is_hex_integer = (literal.starts_with("0x") || literal.starts_with("0X")) && !literal.contains(['p', 'P']);
    let looks_float = has_float_sign && !is_hex_integer;
    if let Some(float) = int.map(|value| value as f64).or(uint.map(|value| value as f64)) {
        return Ok(Number { int, uint, float: Some(float), complex: None, looks_float });
    }
    match parse_float(literal) {
        Some(_) if !has_float_sign => Err(format!("the integer {literal} is too large or has digits that its prefix doesn't allow")),
        Some(float) => Ok(Number { int: float_to_int(float), uint: float_to_uint(float), float: Some(float), complex: None, looks_float }),
        None => Err(format!("malformed number {literal}")),
    }
}

fn float_to_int(float: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (float.fract() == 0.0 && (-LIMIT..LIMIT).contains(&float)).then_some(float as i64)
}

fn float_to_uint(float: f64) -> Option<u64> {
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    (float.fract() == 0.0 && (0.0..LIMIT).contains(&float)).then_some(float as u64)
}

/// An unsigned integer with an optional base prefix and underscores between digits.
pub(super) fn parse_uint(text: &str) -> Option<u64> {
    if !underscores_are_sound(text) {
        return None;
    }
    let prefix = text.get(..2).filter(|_| text.len() >= 3).map(str::to_ascii_lowercase);
    let (radix, digits) = match prefix.as_deref() {
        Some("0x") => (16, text.get(2..)?),
        Some("0o") => (8, text.get(2..)?),
        Some("0b") => (2, text.get(2..)?),
        _ if text.len() > 1 && text.starts_with('0') => (8, text.get(1..)?),
        _ => (10, text),
    };
    let digits: String = digits.chars().filter(|digit| *digit != '_').collect();
    // from_str_radix would take a sign.
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    u64::from_str_radix(&digits, radix).ok()
}

/// A signed integer with an optional base prefix and underscores between digits.
pub(super) fn parse_int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = i128::from(parse_uint(digits)?);
    i64::try_from(if negative { -value } else { value }).ok()
}

/// Underscores must stand between digits; a base prefix counts as a digit.
fn underscores_are_sound(text: &str) -> bool {
    if !text.contains('_') {
        return true;
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let prefixed = unsigned.get(..2).is_some_and(|prefix| matches!(prefix, "0x" | "0X" | "0o" | "0O" | "0b" | "0B"));
    let hex = unsigned.get(..2).is_some_and(|prefix| matches!(prefix, "0x" | "0X"));
    let mut before = if prefixed { '0' } else { '^' };
    for character in unsigned.chars().skip(if prefixed { 2 } else { 0 }) {
        let digit = character.is_ascii_digit() || hex && character.is_ascii_hexdigit();
        before = match character {
            _ if digit => '0',
            '_' if before != '0' => return false,
            '_' => '_',
            _ if before == '_' => return false,
            _ => '!',
        };
    }
    before != '_'
}

/// A decimal or hexadecimal floating point number; None when it is malformed or too large.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.starts_with("0x") || unsigned.starts_with("0X") {
        if !underscores_are_sound(text) {
            return None;
        }
        let digits: String = unsigned.chars().skip(2).filter(|digit| *digit != '_').collect();
        let value = parse_hex_float(&digits)?;
        return Some(if text.starts_with('-') { -value } else { value }).filter(|value| value.is_finite());
    }
    let sound = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    text.parse::<f64>().ok().filter(|value| sound && value.is_finite())
}

/// `1.8p3` without sign and prefix; the exponent is required.
fn parse_hex_float(digits: &str) -> Option<f64> {
    let (mantissa, exponent) = digits.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut exponent: i32 = exponent.parse().ok()?;
    let mut value = 0u64;
    for (digit, is_fraction) in whole.chars().map(|digit| (digit, false)).chain(fraction.chars().map(|digit| (digit, true))) {
        let digit = u64::from(digit.to_digit(16)?);
        if value >> 60 == 0 {
            value = value << 4 | digit;
            exponent = exponent.checked_sub(if is_fraction { 4 } else { 0 })?;
        } else {
            // The last bit remembers that something was cut off, for rounding.
            value |= u64::from(digit != 0);
            exponent = exponent.checked_add(if is_fraction { 0 } else { 4 })?;
        }
    }
    Some(value as f64 * 2f64.powi(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_follow_the_escapes_of_go() {
        for (literal, expected) in [
            (r#""a\tb""#, Some(&b"a\tb"[..])),
            (r#""\x41\102\u00e9""#, Some("AB\u{e9}".as_bytes())),
            (r#""\xff""#, Some(&[0xff][..])),
            (r#""\'""#, None),
            (r#""\q""#, None),
            (r#""\ud800""#, None),
            (r#""\400""#, None),
            ("`a\\n\r`", Some(&b"a\\n"[..])),
        ] {
            assert_eq!(unquote(literal).as_deref(), expected, "{literal}");
        }
    }

    #[test]
    fn numbers_know_what_they_may_become() {
        for (literal, int, float, looks_float) in [
            ("42", Some(42), Some(42.0), false),
            ("-0x10", Some(-16), Some(-16.0), false),
            ("0x1E", Some(30), Some(30.0), false),
            ("017", Some(15), Some(15.0), false),
            ("1_000", Some(1000), Some(1000.0), false),
            ("2.0", Some(2), Some(2.0), true),
            ("1e3", Some(1000), Some(1000.0), true),
            ("2.5", None, Some(2.5), true),
            ("0x1.8p1", Some(3), Some(3.0), true),
        ] {
            let number = number(literal).unwrap();
            assert_eq!((number.int, number.float, number.looks_float), (int, float, looks_float), "{literal}");
        }
        for literal in ["1__0", "089", "99999999999999999999", "+", "1e400", "0x1.8", "_1"] {
            assert!(number(literal).is_err(), "{literal}");
        }
    }

    #[test]
    fn complex_constants_split_at_the_inner_sign() {
        assert_eq!(complex("1e+2-2i").unwrap().complex, Some((100.0, -2.0)));
        assert!(complex("1i+2i").is_err());
    }
}
