//! When a credential ends: read from the credential itself, without checking who signed it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// `exp` of a JSON Web Token; `None` for a token of another form or one that doesn't end.
pub(super) fn of_token(token: &str) -> Option<Timestamp> {
    let mut parts = token.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&payload).ok()?;
    let exp = claims.get("exp")?;
    let seconds = exp.as_i64().or_else(|| exp.as_f64().map(|s| s as i64))?;
    Timestamp::from_second(seconds).ok()
}

/// `notAfter` of an X.509 certificate in DER (RFC 5280, 4.1).
pub(super) fn of_certificate(der: &[u8]) -> Option<Timestamp> {
    const SEQUENCE: u8 = 0x30;
    const EXPLICIT_VERSION: u8 = 0xa0;
    let (certificate, _) = element(der, SEQUENCE)?;
    let (mut fields, _) = element(certificate, SEQUENCE)?;
    if fields.first() == Some(&EXPLICIT_VERSION) {
        fields = skip(fields)?;
    }
    // serialNumber, signature, issuer
    for _ in 0..3 {
        fields = skip(fields)?;
    }
    let (validity, _) = element(fields, SEQUENCE)?;
    time(skip(validity)?)
}

/// Content of the first element, which must have this tag, and what follows it.
fn element(input: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = input.split_first()?;
    if first != tag {
        return None;
    }
    let (&length, mut rest) = rest.split_first()?;
    let mut size = usize::from(length);
    if length & 0x80 != 0 {
        let digits = usize::from(length & 0x7f);
        if digits == 0 || digits > 4 {
            return None;
        }
        let (bytes, after) = rest.split_at_checked(digits)?;
        size = bytes.iter().fold(0, |size, byte| size << 8 | usize::from(*byte));
        rest = after;
    }
    rest.split_at_checked(size)
}

/// What follows the first element.
fn skip(input: &[u8]) -> Option<&[u8]> {
    element(input, *input.first()?).map(|(_, rest)| rest)
}

/// A `UTCTime` or `GeneralizedTime`.
fn time(input: &[u8]) -> Option<Timestamp> {
    const UTC_TIME: u8 = 0x17;
    const GENERALIZED_TIME: u8 = 0x18;
    let tag = *input.first()?;
    let text = std::str::from_utf8(element(input, tag)?.0).ok()?.strip_suffix('Z')?;
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i16>().ok();
    let (year, at) = match tag {
        UTC_TIME => {
            let year = number(0, 2)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, 2)
        }
        GENERALIZED_TIME => (number(0, 4)?, 4),
        _ => return None,
    };
    let part = |i: usize| number(at + 2 * i, at + 2 * i + 2).and_then(|n| i8::try_from(n).ok());
    let civil = DateTime::new(year, part(0)?, part(1)?, part(2)?, part(3)?, part(4)?, 0).ok()?;
    civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jwt(claims: &str) -> String {
        format!("{}.{}.{}", URL_SAFE_NO_PAD.encode("{}"), URL_SAFE_NO_PAD.encode(claims), URL_SAFE_NO_PAD.encode("signature"))
    }

    #[test]
    fn a_token_ends_when_its_exp_says() {
        let cases = [
            (jwt(r#"{"exp":1767225600}"#), Some("2026-01-01T00:00:00Z")),
            (jwt(r#"{"exp":1767225600.5}"#), Some("2026-01-01T00:00:00Z")),
            (jwt(r#"{"sub":"a"}"#), None),
            (jwt(r#"{"exp":"soon"}"#), None),
            (jwt("no JSON"), None),
            ("abcdef.0123456789abcdef".to_owned(), None),
            ("a.b.c.d".to_owned(), None),
            (String::new(), None),
        ];
        for (token, want) in cases {
            assert_eq!(of_token(&token), want.map(|t| t.parse().unwrap()), "{token}");
        }
    }

    /// The part of a certificate before its subject, around this validity.
    fn certificate(version: bool, not_after: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, content: &[u8]| {
            let mut out = vec![tag, 0x82, (content.len() >> 8) as u8, content.len() as u8];
            out.extend_from_slice(content);
            out
        };
        let mut fields = if version { wrap(0xa0, &[2, 1, 2]) } else { Vec::new() };
        fields.extend_from_slice(&[2, 1, 7]);
        fields.extend(wrap(0x30, &[5, 0]));
        fields.extend(wrap(0x30, &[]));
        let mut validity = b"\x17\x0d250101000000Z".to_vec();
        validity.extend_from_slice(not_after);
        fields.extend(wrap(0x30, &validity));
        wrap(0x30, &wrap(0x30, &fields))
    }

    #[test]
    fn a_certificate_ends_at_not_after() {
        let cases: [(Vec<u8>, Option<&str>); 7] = [
            (certificate(true, b"\x17\x0d260102030405Z"), Some("2026-01-02T03:04:05Z")),
            (certificate(false, b"\x17\x0d490102030405Z"), Some("2049-01-02T03:04:05Z")),
            (certificate(true, b"\x17\x0d500102030405Z"), Some("1950-01-02T03:04:05Z")),
            (certificate(true, b"\x18\x0f20600102030405Z"), Some("2060-01-02T03:04:05Z")),
            (certificate(true, b"\x17\x0d261302030405Z"), None),
            (certificate(true, b"\x17\x7f26"), None),
            (Vec::new(), None),
        ];
        for (der, want) in cases {
            assert_eq!(of_certificate(&der), want.map(|t| t.parse().unwrap()), "{der:?}");
        }
    }

    #[test]
    fn a_certificate_cut_anywhere_is_no_panic() {
        let whole = certificate(true, b"\x17\x0d260102030405Z");
        for end in 0..whole.len() {
            assert_eq!(of_certificate(whole.get(..end).unwrap()), None, "cut at {end}");
        }
    }
}
