//! Kubernetes quantities, exactly: `8`, `500m`, `1.5Gi`, `2e3`.
//!
//! Amounts are whole billionths, the smallest step that Kubernetes keeps; anything finer is rounded up, because who
//! asks for a little should get a little. No floating point is used anywhere.

use std::fmt;

const NANOS: i128 = 1_000_000_000;
/// Binary quantities stop here, as they do in Kubernetes.
const BINARY_MAX: i128 = i64::MAX as i128 * NANOS;
/// Digits of a fraction that are told apart; what follows only decides whether to round up.
const FRACTION_DIGITS: usize = 18;

/// Text that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not of the form number and suffix.
    #[error("{0:?} is not a quantity: write a number such as 8, 500m or 16Gi")]
    Format(String),
    /// The suffix is unknown.
    #[error("{0:?} has an unknown suffix: use one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei or an exponent such as e3")]
    Suffix(String),
    /// Beyond what can be counted.
    #[error("{0:?} is too large")]
    TooLarge(String),
}

/// How a quantity was written, which decides how it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Decimal,
    Exponent,
    Binary,
}

/// An exact amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    nanos: i128,
    form: Form,
}

impl Quantity {
    /// Reads every form that Kubernetes accepts.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        Parts::split(text)?.amount(text)
    }

    /// A whole number.
    pub fn whole(value: i64) -> Self {
        Self { nanos: i128::from(value) * NANOS, form: Form::Decimal }
    }

    /// A whole number of bytes, printed with binary suffixes.
    pub fn bytes(value: i64) -> Self {
        Self { nanos: i128::from(value) * NANOS, form: Form::Binary }
    }

    /// Thousandths.
    pub fn thousandths(value: i64) -> Self {
        Self { nanos: i128::from(value) * (NANOS / 1000), form: Form::Decimal }
    }

    /// Whole units, rounded up (away from zero) and kept within 64 bits.
    pub fn value(self) -> i64 {
        self.in_units_of(NANOS)
    }

    /// Thousandths, rounded up (away from zero) and kept within 64 bits.
    pub fn milli_value(self) -> i64 {
        self.in_units_of(NANOS / 1000)
    }

    fn in_units_of(self, unit: i128) -> i64 {
        let whole = self.nanos / unit + (self.nanos % unit).signum();
        i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
    }
}

impl fmt::Display for Quantity {
    /// Prints as Kubernetes does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let whole = self.nanos / NANOS;
        if self.form == Form::Binary && self.nanos % NANOS == 0 && whole.abs() >= 1024 {
            let (mut number, mut power) = (whole, 0_usize);
            while number % 1024 == 0 && power < 6 {
                number /= 1024;
                power += 1;
            }
            let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(power).unwrap_or(&"");
            return write!(f, "{number}{suffix}");
        }
        let (mut number, mut exponent) = (self.nanos, -9_i32);
        while number % 1000 == 0 {
            number /= 1000;
            exponent += 3;
        }
        let suffix = match exponent {
            0 => "",
            -9 => "n",
            -6 => "u",
            -3 => "m",
            3 => "k",
            6 => "M",
            9 => "G",
            12 => "T",
            15 => "P",
            18 => "E",
            _ => return write!(f, "{number}e{exponent}"),
        };
        if self.form == Form::Exponent && exponent != 0 { write!(f, "{number}e{exponent}") } else { write!(f, "{number}{suffix}") }
    }
}

/// The form in which Kubernetes prints this quantity after it has read it: `1024Mi` is `1Gi`, `0.5` is `500m`.
pub fn canonical(text: &str) -> Result<String, QuantityError> {
    let parts = Parts::split(text)?;
    let quantity = parts.amount(text)?;
    Ok(if parts.is_kept_as_written() { text.to_owned() } else { quantity.to_string() })
}

/// The pieces of the text of a quantity.
struct Parts<'a> {
    negative: bool,
    /// Digits before the point, without leading zeros.
    whole: &'a str,
    /// Digits after the point.
    fraction: &'a str,
    base: u32,
    exponent: i32,
    form: Form,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format(text.to_owned()));
        }
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, rest) = digits(rest.trim_start_matches('0'));
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        let (base, exponent, form) = match suffix {
            "" => (10, 0, Form::Decimal),
            "n" => (10, -9, Form::Decimal),
            "u" => (10, -6, Form::Decimal),
            "m" => (10, -3, Form::Decimal),
            "k" => (10, 3, Form::Decimal),
            "M" => (10, 6, Form::Decimal),
            "G" => (10, 9, Form::Decimal),
            "T" => (10, 12, Form::Decimal),
            "P" => (10, 15, Form::Decimal),
            "E" => (10, 18, Form::Decimal),
            "Ki" => (2, 10, Form::Binary),
            "Mi" => (2, 20, Form::Binary),
            "Gi" => (2, 30, Form::Binary),
            "Ti" => (2, 40, Form::Binary),
            "Pi" => (2, 50, Form::Binary),
            "Ei" => (2, 60, Form::Binary),
            other => match other.strip_prefix(['e', 'E']).map(str::parse::<i32>) {
                Some(Ok(exponent)) => (10, exponent, Form::Exponent),
                _ if other.starts_with(|c: char| c.is_ascii_alphabetic()) => return Err(QuantityError::Suffix(text.to_owned())),
                _ => return Err(QuantityError::Format(text.to_owned())),
            },
        };
        Ok(Self { negative, whole, fraction, base, exponent, form })
    }

    fn amount(&self, text: &str) -> Result<Quantity, QuantityError> {
        let kept = self.fraction.get(..FRACTION_DIGITS).unwrap_or(self.fraction);
        let dropped = self.fraction.get(kept.len()..).unwrap_or_default().bytes().any(|digit| digit != b'0');
        let scale = i32::try_from(kept.len()).unwrap_or_default();
        let nanos = number(self.whole)
            .and_then(|whole| self.shift(whole, 0))
            .and_then(|whole| whole.checked_add(self.shift(number(kept)?, scale)?))
            .and_then(|nanos| nanos.checked_add(i128::from(dropped)));
        let (nanos, form) = match (nanos, self.form) {
            (Some(nanos), Form::Binary) if nanos <= BINARY_MAX => (nanos, if nanos < NANOS { Form::Decimal } else { Form::Binary }),
            (_, Form::Binary) => (BINARY_MAX, Form::Binary),
            (Some(nanos), form) => (nanos, form),
            (None, _) => return Err(QuantityError::TooLarge(text.to_owned())),
        };
        Ok(Quantity { nanos: if self.negative { -nanos } else { nanos }, form })
    }

    /// `digits` shifted right by `scale` decimal places and by the suffix, in billionths, rounded up.
    fn shift(&self, digits: i128, scale: i32) -> Option<i128> {
        if digits == 0 {
            return Some(0);
        }
        let (digits, places) = if self.base == 2 {
            (digits.checked_mul(1_i128 << self.exponent.clamp(0, 60))?, 9 - scale)
        } else {
            (digits, self.exponent.checked_add(9 - scale)?)
        };
        let power = 10_i128.checked_pow(places.unsigned_abs());
        if places >= 0 {
            return digits.checked_mul(power?);
        }
        // A divisor too large to write down leaves the smallest amount.
        Some(power.map_or(1, |power| digits / power + i128::from(digits % power != 0)))
    }

    /// Kubernetes prints some texts as they were read, though it would choose another form by itself (`1.500`).
    fn is_kept_as_written(&self) -> bool {
        let digits = self.whole.len().max(1) + self.fraction.len();
        match self.form {
            // The canonical form is the same text.
            Form::Binary => false,
            Form::Decimal | Form::Exponent => {
                let scale = self.exponent.saturating_sub(i32::try_from(self.fraction.len()).unwrap_or(i32::MAX));
                let zeros = self.fraction.bytes().rev().chain(self.whole.bytes().rev()).take_while(|digit| *digit == b'0').count();
                digits <= 18 && scale >= -9 && scale % 3 == 0 && zeros < 3 && !self.whole.is_empty()
            }
        }
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn number(digits: &str) -> Option<i128> {
    if digits.is_empty() { Some(0) } else { digits.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_kubernetes_does() {
        for (text, printed) in [
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("0.5", "500m"),
            ("0.5Gi", "512Mi"),
            ("1500m", "1500m"),
            ("1.5", "1500m"),
            ("1.500", "1.500"),
            ("0.500", "500m"),
            ("8", "8"),
            ("08", "08"),
            ("+8", "+8"),
            ("-8", "-8"),
            ("-0.5", "-500m"),
            ("0", "0"),
            ("0.0", "0"),
            ("0Gi", "0"),
            ("1000", "1k"),
            ("1000000", "1M"),
            ("100", "100"),
            ("12345", "12345"),
            ("1024", "1024"),
            ("1000Ki", "1000Ki"),
            ("1024Ki", "1Mi"),
            ("512Ki", "512Ki"),
            ("1.1Ki", "1126400m"),
            ("0.1Ki", "102400m"),
            ("1e3", "1e3"),
            ("1E3", "1E3"),
            ("10e2", "1e3"),
            ("1e0", "1e0"),
            ("1.5e3", "1500"),
            ("1e-3", "1e-3"),
            ("1E", "1E"),
            ("1000E", "1e21"),
            ("0.1n", "1n"),
            ("0.0000000001", "1n"),
            ("100u", "100u"),
            ("16Ei", "9223372036854775807"),
            ("7Ei", "7Ei"),
            ("1.", "1."),
            (".5", "500m"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(printed), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_quantity() {
        for (text, error) in [
            ("", QuantityError::Format(String::new())),
            ("8 Gi", QuantityError::Format("8 Gi".to_owned())),
            ("1.2.3", QuantityError::Format("1.2.3".to_owned())),
            ("--1", QuantityError::Format("--1".to_owned())),
            ("8GB", QuantityError::Suffix("8GB".to_owned())),
            ("8gi", QuantityError::Suffix("8gi".to_owned())),
            ("1e", QuantityError::Suffix("1e".to_owned())),
            ("1K", QuantityError::Suffix("1K".to_owned())),
            ("1e99", QuantityError::TooLarge("1e99".to_owned())),
            ("1e99999999999", QuantityError::Suffix("1e99999999999".to_owned())),
        ] {
            assert_eq!(Quantity::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn counts_exactly_and_rounds_up() {
        for (text, value, milli) in [
            ("8", 8, 8000),
            ("100m", 1, 100),
            ("0.1", 1, 100),
            ("1u", 1, 1),
            ("1.0000000000000000000001", 2, 1001),
            ("1Gi", 1 << 30, 1000 << 30),
            ("0.1Gi", 107_374_183, 107_374_182_400),
            ("-1500m", -2, -1500),
            ("9223372036854775807", i64::MAX, i64::MAX),
            ("1e28", i64::MAX, i64::MAX),
            ("1e-99", 1, 1),
        ] {
            let quantity = Quantity::parse(text).unwrap();
            assert_eq!((quantity.value(), quantity.milli_value()), (value, milli), "{text}");
        }
    }
}
