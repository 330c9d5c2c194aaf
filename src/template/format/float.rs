//! Floating point numbers in all of Go's notations, without sign.

/// More digits than any number has behind the point (1074) or in all (767): what follows is zeros. The standard library
/// can't format with more than 65,535, and panics.
const EXACT: usize = 1100;

/// Formats a number that isn't negative. Without a precision the digits are the fewest that read back as the number.
pub(super) fn format(number: f64, verb: char, precision: Option<usize>) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return "Inf".to_owned();
    }
    match verb {
        'e' | 'E' => exponent(&Digits::new(number, precision.map(|digits| digits + 1)), precision, verb),
        'f' => match precision {
            Some(precision) => {
                let exact = precision.min(EXACT);
                format!("{number:.exact$}{}", "0".repeat(precision - exact))
            }
            None => format!("{number}"),
        },
        'b' => binary(number),
        'x' | 'X' => hexadecimal(number, verb, precision),
        _ => general(number, verb, precision),
    }
}

/// The sign to print for a number that isn't negative.
pub(super) fn sign(plus: bool, space: bool) -> &'static str {
    match (plus, space) {
        (true, _) => "+",
        (false, true) => " ",
        (false, false) => "",
    }
}

/// Significant decimal digits without trailing zeros; the point stands behind `point` of them.
struct Digits {
    digits: String,
    point: i32,
}

impl Digits {
    fn new(number: f64, count: Option<usize>) -> Self {
        let text = match count {
            Some(count) => format!("{number:.*e}", count.saturating_sub(1).min(EXACT)),
            None => format!("{number:e}"),
        };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits: String = mantissa.chars().filter(|digit| *digit != '.').collect();
        let digits = digits.trim_end_matches('0').to_owned();
        let point = if digits.is_empty() { 1 } else { exponent.parse::<i32>().unwrap_or_default() + 1 };
        Self { digits, point }
    }
}

/// `d.ddde±dd`
fn exponent(digits: &Digits, precision: Option<usize>, verb: char) -> String {
    let all = digits.digits.as_str();
    let (first, rest) = all.split_at_checked(1).unwrap_or(("0", ""));
    let mut text = first.to_owned();
    let wanted = precision.unwrap_or(rest.len());
    if wanted > 0 {
        text.push('.');
        text.push_str(rest);
        text.push_str(&"0".repeat(wanted.saturating_sub(rest.len())));
    }
    let power = digits.point - 1;
    let sign = if power < 0 { '-' } else { '+' };
    format!("{text}{verb}{sign}{:02}", power.unsigned_abs())
}

/// `%g`: an exponent only where it is shorter.
fn general(number: f64, verb: char, precision: Option<usize>) -> String {
    let precision = precision.map(|precision| precision.max(1));
    let digits = Digits::new(number, precision);
    let count = digits.digits.len().max(1);
    let mut limit = precision.unwrap_or(6);
    if precision.is_some() && limit > count && count as i32 >= digits.point {
        limit = count;
    }
    let power = digits.point - 1;
    if power < -4 || power >= i32::try_from(limit).unwrap_or(i32::MAX) {
        return exponent(&digits, None, if verb == 'G' { 'E' } else { 'e' });
    }
    if digits.point <= 0 {
        return format!("0.{}{}", "0".repeat(digits.point.unsigned_abs() as usize), digits.digits);
    }
    let point = digits.point.unsigned_abs() as usize;
    match digits.digits.split_at_checked(point) {
        Some((whole, "")) => whole.to_owned(),
        Some((whole, fraction)) => format!("{whole}.{fraction}"),
        None => format!("{:0<point$}", digits.digits),
    }
}

/// The mantissa as an integer and the power of two, as stored.
fn parts(number: f64) -> (u64, i32) {
    const MANTISSA_BITS: u32 = 52;
    const BIAS: i32 = 1023;
    let bits = number.to_bits();
    let mantissa = bits & ((1 << MANTISSA_BITS) - 1);
    let exponent = (bits >> MANTISSA_BITS & 0x7ff) as i32;
    if exponent == 0 { (mantissa, 1 - BIAS) } else { (mantissa | 1 << MANTISSA_BITS, exponent - BIAS) }
}

/// `%b`: an integer times a power of two.
fn binary(number: f64) -> String {
    let (mantissa, exponent) = parts(number);
    format!("{mantissa}p{:+}", exponent - 52)
}

/// `%x`: hexadecimal digits and a power of two.
fn hexadecimal(number: f64, verb: char, precision: Option<usize>) -> String {
    // The leading digit is kept at this bit, sixty bits of fraction below it.
    const LEAD: u32 = 60;
    let (mantissa, mut exponent) = parts(number);
    let mut mantissa = mantissa << (LEAD - 52);
    if mantissa == 0 {
        exponent = 0;
    }
    while mantissa != 0 && mantissa >> LEAD == 0 {
        mantissa <<= 1;
        exponent -= 1;
    }
    if let Some(precision) = precision.filter(|precision| *precision < 15) {
        let shift = precision as u32 * 4;
        let extra = (mantissa << shift) & ((1 << LEAD) - 1);
        mantissa >>= LEAD - shift;
        if extra | (mantissa & 1) > 1 << (LEAD - 1) {
            mantissa += 1;
        }
        mantissa <<= LEAD - shift;
        if mantissa >> (LEAD + 1) & 1 == 1 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let upper = verb == 'X';
    let fraction = format!("{:015x}", mantissa & ((1 << LEAD) - 1));
    let fraction = match precision {
        Some(precision) => {
            let digits: String = fraction.chars().take(precision).collect();
            let zeros = "0".repeat(precision - digits.len());
            digits + &zeros
        }
        None => fraction.trim_end_matches('0').to_owned(),
    };
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    let text = format!("0x{}{point}{fraction}p{sign}{:02}", mantissa >> LEAD & 1, exponent.unsigned_abs());
    if upper { text.to_ascii_uppercase() } else { text }
}

/// The `#` flag: always a point, and the zeros that `%g` leaves out.
pub(super) fn with_point(text: &str, verb: char, precision: Option<usize>) -> String {
    let is_hex = matches!(verb, 'x' | 'X');
    let tail_at = text.find(|character| matches!(character, 'p' | 'P') || !is_hex && matches!(character, 'e' | 'E'));
    let (number, tail) = text.split_at_checked(tail_at.unwrap_or(text.len())).unwrap_or((text, ""));
    let wanted = if matches!(verb, 'g' | 'G' | 'x') { precision.unwrap_or(6) } else { 0 };
    let digits = number.chars().filter(|character| *character != '.');
    let significant = digits.skip_while(|digit| *digit == '0').count();
    let has_point = number.contains('.');
    // A lone zero counts as a digit.
    let present = significant + usize::from(!has_point && number == "0");
    let zeros = "0".repeat(wanted.saturating_sub(present));
    format!("{number}{}{zeros}{tail}", if has_point { "" } else { "." })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations() {
        for (number, verb, precision, expected) in [
            (1.0, 'g', None, "1"),
            (123_456.0, 'g', None, "123456"),
            (1_234_567.0, 'g', None, "1.234567e+06"),
            (0.0001, 'g', None, "0.0001"),
            (0.00001, 'g', None, "1e-05"),
            (100.0, 'g', Some(2), "1e+02"),
            (100.0, 'g', Some(4), "100"),
            (0.0, 'g', None, "0"),
            (0.0, 'e', Some(2), "0.00e+00"),
            (1234.5, 'e', Some(6), "1.234500e+03"),
            (2.5, 'f', Some(0), "2"),
            (1.5, 'x', None, "0x1.8p+00"),
            (1.0, 'b', None, "4503599627370496p-52"),
            (f64::NAN, 'g', None, "NaN"),
        ] {
            assert_eq!(format(number, verb, precision), expected, "{number} %{verb} {precision:?}");
        }
    }
}
