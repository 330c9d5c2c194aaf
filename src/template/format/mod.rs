//! Printing as Go's `fmt` does.
//!
//! Pointers are the exception: Go prints their address, which differs from run to run; here what they point to is
//! printed.

mod float;
mod quote;
mod verbs;

use std::fmt::Write;

use super::budget::Budget;
use super::error::{ErrorKind, Fault};
use super::value::Value;

pub(super) use quote::{characters, is_letter_or_digit, is_printable, replace_unsound};

/// Values nested more deeply than this are not printed.
const MAX_DEPTH: usize = 200;

/// `print`: a space between two values of which neither is a string.
pub(super) fn print(values: &[Value], budget: &mut Budget) -> Result<Vec<u8>, Fault> {
    let mut printer = Printer::new(budget.max_output());
    let mut after_string = true;
    for value in values {
        let is_string = matches!(value, Value::Str(_));
        if !is_string && !after_string {
            printer.put(b" ");
        }
        printer.value(value, 'v', 0);
        after_string = is_string;
    }
    printer.finish(budget)
}

/// `println`: a space between all values, and a newline.
pub(super) fn println(values: &[Value], budget: &mut Budget) -> Result<Vec<u8>, Fault> {
    let mut printer = Printer::new(budget.max_output());
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            printer.put(b" ");
        }
        printer.value(value, 'v', 0);
    }
    printer.put(b"\n");
    printer.finish(budget)
}

/// A text in double quotes.
pub(super) fn quoted(text: &[u8]) -> String {
    quote::double_quoted(text, false)
}

/// `printf`.
pub(super) fn printf(format: &[u8], values: &[Value], budget: &mut Budget) -> Result<Vec<u8>, Fault> {
    let mut printer = Printer::new(budget.max_output());
    verbs::format(&mut printer, format, values);
    printer.finish(budget)
}

/// The flags, width and precision of a verb.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    /// `%+v`: names of fields.
    plus_v: bool,
    /// `%#v`: Go syntax.
    sharp_v: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// Collects what is printed, up to a limit.
struct Printer {
    out: Vec<u8>,
    limit: usize,
    full: bool,
    too_deep: bool,
    flags: Flags,
}

impl Printer {
    fn new(limit: usize) -> Self {
        Self { out: Vec::new(), limit, full: false, too_deep: false, flags: Flags::default() }
    }

    fn finish(self, budget: &mut Budget) -> Result<Vec<u8>, Fault> {
        if self.too_deep {
            return Err(Fault::new(ErrorKind::Depth, format!("a value that is nested more than {MAX_DEPTH} deep can't be printed")));
        }
        budget.build(if self.full { usize::MAX } else { self.out.len() })?;
        Ok(self.out)
    }

    /// Appends bytes. From the first bytes on that don't fit nothing is appended any more.
    fn put(&mut self, bytes: &[u8]) {
        self.full |= self.out.len() + bytes.len() > self.limit;
        if !self.full {
            self.out.extend_from_slice(bytes);
        }
    }

    fn put_str(&mut self, text: &str) {
        self.put(text.as_bytes());
    }

    fn padding(&mut self, count: usize) {
        // Zeros only pad to the left.
        let fill = if self.flags.zero && !self.flags.minus { b'0' } else { b' ' };
        self.full |= self.out.len() + count > self.limit;
        if !self.full {
            self.out.resize(self.out.len() + count, fill);
        }
    }

    /// Appends text, padded to the width, which counts characters.
    fn pad(&mut self, bytes: &[u8]) {
        let missing = self.flags.width.map_or(0, |width| width.saturating_sub(quote::count_characters(bytes)));
        if self.flags.minus {
            self.put(bytes);
            self.padding(missing);
        } else {
            self.padding(missing);
            self.put(bytes);
        }
    }

    /// Pads without zeros, whatever the flag says.
    fn pad_with_spaces(&mut self, bytes: &[u8]) {
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(bytes);
        self.flags.zero = zero;
    }

    /// Prints a value with a verb; `depth` is 0 for an argument and more for what it holds.
    fn value(&mut self, value: &Value, verb: char, depth: usize) {
        if depth > MAX_DEPTH {
            self.too_deep = true;
            return;
        }
        if verb == 'T' && depth == 0 && !matches!(value, Value::Nil) {
            let name = value.kind().to_string();
            return self.text(name.as_bytes());
        }
        match value {
            Value::Nil => self.nil(verb, depth),
            Value::Bool(flag) => match verb {
                't' | 'v' => self.pad(if *flag { b"true" } else { b"false" }),
                _ => self.bad_verb(value, verb),
            },
            Value::Int(_, number) => self.integer(value, number.unsigned_abs(), *number < 0, true, verb),
            Value::Uint(_, number) => self.integer(value, *number, false, false, verb),
            Value::Float(number) => self.float(value, *number, verb),
            Value::Complex(real, imaginary) => self.complex(value, *real, *imaginary, verb),
            Value::Str(text) => self.string(value, text, verb),
            Value::List(list) => {
                let items = list.items().iter();
                self.composite(value, "[", "]", list.is_nil(), items, |printer, item| printer.value(item, verb, depth + 1));
            }
            Value::Map(map) => self.composite(value, "map[", "]", map.is_nil(), map.iter(), |printer, (key, item)| {
                printer.value(&Value::Str(key.clone()), verb, depth + 1);
                printer.put(b":");
                printer.value(item, verb, depth + 1);
            }),
            Value::Record(record) => {
                let fields = record.shape().fields().iter().zip(record.values());
                self.composite(value, "{", "}", false, fields, |printer, (field, item)| {
                    if printer.flags.plus_v || printer.flags.sharp_v {
                        printer.put_str(&field.name);
                        printer.put(b":");
                    }
                    printer.value(item, verb, depth + 1);
                });
            }
            Value::Pointer(pointer) => match pointer.target() {
                Some(target) => self.value(target, verb, depth + 1),
                None => self.nil_pointer(value, verb),
            },
        }
    }

    fn nil(&mut self, verb: char, depth: usize) {
        match verb {
            _ if depth > 0 && self.flags.sharp_v => self.put(b"interface {}(nil)"),
            _ if depth > 0 => self.put(b"<nil>"),
            'T' | 'v' => self.pad(b"<nil>"),
            _ => self.bad_verb(&Value::Nil, verb),
        }
    }

    fn nil_pointer(&mut self, value: &Value, verb: char) {
        match verb {
            'v' if self.flags.sharp_v => {
                let text = format!("({})(nil)", value.kind());
                self.put_str(&text);
            }
            'v' => self.pad(b"<nil>"),
            'b' | 'o' | 'd' | 'x' | 'X' => self.integer(value, 0, false, false, verb),
            _ => self.bad_verb(value, verb),
        }
    }

    /// Elements between brackets.
    fn composite<T>(
        &mut self,
        value: &Value,
        open: &str,
        close: &str,
        is_nil: bool,
        items: impl Iterator<Item = T>,
        mut print: impl FnMut(&mut Self, T),
    ) {
        let go_syntax = self.flags.sharp_v;
        if go_syntax {
            let name = value.kind().to_string();
            self.put_str(&name);
            if is_nil {
                return self.put(b"(nil)");
            }
        }
        self.put_str(if go_syntax { "{" } else { open });
        for (index, item) in items.enumerate() {
            if self.full || self.too_deep {
                return;
            }
            if index > 0 {
                self.put(if go_syntax { b", " } else { b" " });
            }
            print(self, item);
        }
        self.put_str(if go_syntax { "}" } else { close });
    }

    /// `%!d(string=text)`: a verb that the type doesn't know.
    fn bad_verb(&mut self, value: &Value, verb: char) {
        self.put_str(&format!("%!{verb}("));
        if matches!(value, Value::Nil) {
            self.put(b"<nil>");
        } else {
            self.put_str(&format!("{}=", value.kind()));
            self.value(value, 'v', 0);
        }
        self.put(b")");
    }

    fn string(&mut self, value: &Value, text: &[u8], verb: char) {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(text),
            'v' | 's' => self.text(text),
            'q' => self.quoted(text),
            'x' => self.hex(text, false),
            'X' => self.hex(text, true),
            _ => self.bad_verb(value, verb),
        }
    }

    /// Text, cut to the precision and padded to the width.
    fn text(&mut self, text: &[u8]) {
        let cut = self.cut(text);
        self.pad(cut);
    }

    fn cut<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        match self.flags.precision {
            Some(precision) => quote::first_characters(text, precision),
            None => text,
        }
    }

    fn quoted(&mut self, text: &[u8]) {
        let cut = self.cut(text);
        let quoted = match quote::backquoted(cut) {
            Some(raw) if self.flags.sharp => raw,
            _ => quote::double_quoted(cut, self.flags.plus),
        };
        self.pad(quoted.as_bytes());
    }

    /// The bytes of a string in hexadecimal.
    fn hex(&mut self, text: &[u8], upper: bool) {
        let length = self.flags.precision.unwrap_or(usize::MAX).min(text.len());
        let prefix = if upper { "0X" } else { "0x" };
        let mut out = String::new();
        for (index, byte) in text.iter().take(length).enumerate() {
            if self.flags.space && index > 0 {
                out.push(' ');
            }
            if self.flags.sharp && (index == 0 || self.flags.space) {
                out.push_str(prefix);
            }
            // Writing to a string never fails.
            let _ = if upper { write!(out, "{byte:02X}") } else { write!(out, "{byte:02x}") };
        }
        self.pad(out.as_bytes());
    }

    fn integer(&mut self, value: &Value, magnitude: u64, negative: bool, signed: bool, verb: char) {
        match verb {
            'v' if self.flags.sharp_v && !signed => {
                let sharp = std::mem::replace(&mut self.flags.sharp, true);
                self.digits(magnitude, false, 16, 'v');
                self.flags.sharp = sharp;
            }
            'v' | 'd' => self.digits(magnitude, negative, 10, verb),
            'b' => self.digits(magnitude, negative, 2, verb),
            'o' | 'O' => self.digits(magnitude, negative, 8, verb),
            'x' | 'X' => self.digits(magnitude, negative, 16, verb),
            'c' => {
                let character = character(magnitude, negative);
                self.pad(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            'q' => {
                let quoted = quote::single_quoted(character(magnitude, negative), self.flags.plus);
                self.pad(quoted.as_bytes());
            }
            'U' => self.unicode(magnitude, negative),
            _ => self.bad_verb(value, verb),
        }
    }

    fn digits(&mut self, magnitude: u64, negative: bool, base: u32, verb: char) {
        let Flags { precision, width, zero, minus, plus, space, sharp, .. } = self.flags;
        let least = match (precision, width) {
            (Some(0), _) if magnitude == 0 => return self.pad_with_spaces(b""),
            (Some(precision), _) => precision,
            // Zero padding leaves room for the sign.
            (None, Some(width)) if zero && !minus => width.saturating_sub(usize::from(negative || plus || space)),
            _ => 0,
        };
        let mut text = match base {
            2 => format!("{magnitude:b}"),
            8 => format!("{magnitude:o}"),
            16 if verb == 'X' => format!("{magnitude:X}"),
            16 => format!("{magnitude:x}"),
            _ => magnitude.to_string(),
        };
        if text.len() < least {
            text.insert_str(0, &"0".repeat(least - text.len()));
        }
        if sharp {
            match base {
                2 => text.insert_str(0, "0b"),
                8 if !text.starts_with('0') => text.insert(0, '0'),
                16 => text.insert_str(0, if verb == 'X' { "0X" } else { "0x" }),
                _ => {}
            }
        }
        if verb == 'O' {
            text.insert_str(0, "0o");
        }
        if negative {
            text.insert(0, '-');
        } else if plus {
            text.insert(0, '+');
        } else if space {
            text.insert(0, ' ');
        }
        self.pad_with_spaces(text.as_bytes());
    }

    /// `U+0041`, with `#` also the character.
    fn unicode(&mut self, magnitude: u64, negative: bool) {
        let number = if negative { magnitude.wrapping_neg() } else { magnitude };
        let digits = self.flags.precision.unwrap_or(4).max(4);
        let hexadecimal = format!("{number:X}");
        let mut text = format!("U+{}{hexadecimal}", "0".repeat(digits.saturating_sub(hexadecimal.len())));
        let printable = u32::try_from(number).ok().and_then(char::from_u32).filter(|character| is_printable(*character));
        if let (true, Some(character)) = (self.flags.sharp, printable) {
            let _ = write!(text, " '{character}'");
        }
        self.pad_with_spaces(text.as_bytes());
    }

    fn float(&mut self, value: &Value, number: f64, verb: char) {
        match verb {
            'v' => self.decimal(number, 'g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => self.decimal(number, verb, None),
            'f' | 'F' => self.decimal(number, 'f', Some(6)),
            'e' | 'E' => self.decimal(number, verb, Some(6)),
            _ => self.bad_verb(value, verb),
        }
    }

    fn complex(&mut self, value: &Value, real: f64, imaginary: f64, verb: char) {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            return self.bad_verb(value, verb);
        }
        self.put(b"(");
        self.float(value, real, verb);
        let plus = std::mem::replace(&mut self.flags.plus, true);
        self.float(value, imaginary, verb);
        self.put(b"i)");
        self.flags.plus = plus;
    }

    fn decimal(&mut self, number: f64, verb: char, precision: Option<usize>) {
        let Flags { plus, minus, sharp, space, zero, width, .. } = self.flags;
        let precision = self.flags.precision.or(precision);
        let mut text = float::format(number.abs(), verb, precision);
        let negative = number.is_sign_negative() && !number.is_nan();
        if !number.is_finite() {
            let sign = if negative { "-" } else { float::sign(plus, space) };
            return self.pad_with_spaces(format!("{sign}{text}").as_bytes());
        }
        if sharp && verb != 'b' {
            text = float::with_point(&text, verb, precision);
        }
        let sign = if negative { "-" } else { float::sign(plus, space) };
        match width {
            Some(width) if zero && !minus && !sign.is_empty() && width > text.len() + 1 => {
                // The sign goes before the zeros.
                self.put_str(sign);
                self.padding(width - text.len() - 1);
                self.put_str(&text);
            }
            _ => self.pad(format!("{sign}{text}").as_bytes()),
        }
    }
}

/// The character of a number; what is none becomes U+FFFD.
fn character(magnitude: u64, negative: bool) -> char {
    Some(magnitude)
        .filter(|_| !negative)
        .and_then(|number| u32::try_from(number).ok())
        .and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}
