//! The format string of `printf`.

use super::super::value::Value;
use super::{Flags, Printer};

/// Widths, precisions and argument numbers above this are refused.
const LIMIT: usize = 1_000_000;

/// Prints `values` as `format` tells. Faults of the format are printed, as Go does.
pub(super) fn format(printer: &mut Printer, format: &[u8], values: &[Value]) {
    let mut state = State { format, values, at: 0, argument: 0, reordered: false, sound: true };
    while !printer.full && state.step(printer) {}
    if state.reordered {
        return;
    }
    let extra = values.get(state.argument..).unwrap_or_default();
    if extra.is_empty() {
        return;
    }
    printer.flags = Flags::default();
    printer.put(b"%!(EXTRA ");
    for (index, value) in extra.iter().enumerate() {
        if index > 0 {
            printer.put(b", ");
        }
        if !matches!(value, Value::Nil) {
            let name = value.kind().to_string();
            printer.put_str(&name);
            printer.put(b"=");
        }
        printer.value(value, 'v', 0);
    }
    printer.put(b")");
}

struct State<'a> {
    format: &'a [u8],
    values: &'a [Value],
    at: usize,
    /// The argument that the next verb takes.
    argument: usize,
    /// Whether arguments were taken by number.
    reordered: bool,
    /// Whether the argument numbers of the present verb are.
    sound: bool,
}

impl State<'_> {
    fn peek(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Prints text up to a verb, and the verb. False at the end.
    fn step(&mut self, printer: &mut Printer) -> bool {
        let rest = self.format.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|byte| *byte == b'%').unwrap_or(rest.len());
        printer.put(rest.get(..length).unwrap_or_default());
        self.at += length + 1;
        if length == rest.len() {
            return false;
        }
        self.sound = true;
        printer.flags = self.flags();
        let mut numbered = self.number();
        if self.accept(b'*') {
            match self.integer() {
                Some(width) => {
                    printer.flags.width = Some(width.unsigned_abs() as usize);
                    if width < 0 {
                        printer.flags.minus = true;
                        printer.flags.zero = false;
                    }
                }
                None => printer.put(b"%!(BADWIDTH)"),
            }
            numbered = false;
        } else {
            printer.flags.width = self.digits(self.format.len());
            self.sound &= !(numbered && printer.flags.width.is_some());
        }
        if self.accept(b'.') {
            self.sound &= !numbered;
            numbered = self.number();
            if self.accept(b'*') {
                match self.integer().filter(|precision| *precision >= 0) {
                    Some(precision) => printer.flags.precision = Some(precision.unsigned_abs() as usize),
                    None => printer.put(b"%!(BADPREC)"),
                }
                numbered = false;
            } else {
                printer.flags.precision = Some(self.digits(self.format.len()).unwrap_or(0));
            }
        }
        if !numbered {
            self.number();
        }
        self.verb(printer)
    }

    fn flags(&mut self) -> Flags {
        let mut flags = Flags::default();
        loop {
            match self.peek() {
                Some(b'#') => flags.sharp = true,
                Some(b'0') => flags.zero = true,
                Some(b'+') => flags.plus = true,
                Some(b'-') => flags.minus = true,
                Some(b' ') => flags.space = true,
                _ => return flags,
            }
            self.at += 1;
        }
    }

    fn verb(&mut self, printer: &mut Printer) -> bool {
        let rest = self.format.get(self.at..).unwrap_or_default();
        let Some((verb, bytes)) = super::quote::characters(rest).next() else {
            printer.put(b"%!(NOVERB)");
            return false;
        };
        self.at += bytes.len();
        let verb = verb.unwrap_or(char::REPLACEMENT_CHARACTER);
        match self.values.get(self.argument) {
            _ if verb == '%' => printer.put(b"%"),
            _ if !self.sound => printer.put_str(&format!("%!{verb}(BADINDEX)")),
            None => printer.put_str(&format!("%!{verb}(MISSING)")),
            Some(value) => {
                if matches!(verb, 'v' | 'w') {
                    printer.flags.sharp_v = std::mem::take(&mut printer.flags.sharp);
                    printer.flags.plus_v = std::mem::take(&mut printer.flags.plus);
                }
                // Errors, which %w is for, can't be had in a template.
                if verb == 'w' {
                    printer.bad_verb(value, verb);
                } else {
                    printer.value(value, verb, 0);
                }
                self.argument += 1;
            }
        }
        true
    }

    /// A number up to `end`. One that is too large makes the rest of the format void, as in Go.
    fn digits(&mut self, end: usize) -> Option<usize> {
        let mut number: Option<usize> = None;
        while let Some(digit) = self.peek().filter(|byte| byte.is_ascii_digit() && self.at < end) {
            let value = number.unwrap_or(0);
            if value > LIMIT {
                self.at = end;
                return None;
            }
            number = Some(value * 10 + usize::from(digit - b'0'));
            self.at += 1;
        }
        number
    }

    /// `[3]`: which argument comes next. Whether there was such a number.
    fn number(&mut self) -> bool {
        let rest = self.format.get(self.at..).unwrap_or_default();
        if rest.first() != Some(&b'[') {
            return false;
        }
        self.reordered = true;
        let start = self.at;
        let close = rest.iter().position(|byte| *byte == b']').filter(|_| rest.len() >= 3);
        let Some(close) = close else {
            self.sound = false;
            self.at = start + 1;
            return false;
        };
        self.at = start + 1;
        let number = self.digits(start + close);
        let complete = self.at == start + close;
        self.at = start + close + 1;
        match number.filter(|_| complete) {
            Some(number) if number >= 1 && number <= self.values.len() => {
                self.argument = number - 1;
                true
            }
            Some(_) => {
                self.sound = false;
                true
            }
            None => {
                self.sound = false;
                false
            }
        }
    }

    /// The argument for a `*`.
    fn integer(&mut self) -> Option<i64> {
        let value = self.values.get(self.argument)?;
        self.argument += 1;
        let number = match value {
            Value::Int(_, number) => *number,
            Value::Uint(_, number) => i64::try_from(*number).ok()?,
            _ => return None,
        };
        (number.unsigned_abs() <= LIMIT as u64).then_some(number)
    }
}
