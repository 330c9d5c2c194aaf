//! Kubernetes' rules for names, and for keys and values of labels.

/// What Kubernetes allows as a label's value, and as one part of a name.
const LABEL: usize = 63;

fn is_small_alphanumeric(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

/// Lowercase letters, digits and inner dashes, at least one.
fn is_part(text: &str) -> bool {
    text.bytes().all(|b| is_small_alphanumeric(b) || b == b'-')
        && text.bytes().next().is_some_and(is_small_alphanumeric)
        && text.bytes().next_back().is_some_and(is_small_alphanumeric)
}

/// A DNS-1123 subdomain of at most 253 bytes: what most objects may be called.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

/// A DNS-1035 label of at most 63 bytes: as a part of a subdomain, with a letter first.
pub(crate) fn is_dns_1035_label(text: &str) -> bool {
    text.len() <= LABEL && is_part(text) && text.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
}

/// The name of a service by IANA's rule (RFC 6335), which is what a port of a pod may be called.
pub(crate) fn is_port_name(text: &str) -> bool {
    text.len() <= 15 && is_part(text) && !text.contains("--") && text.bytes().any(|b| b.is_ascii_lowercase())
}

/// The key of a label: a name, if need be after a DNS subdomain and a slash.
pub(crate) fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        None => !key.is_empty() && is_label_value(key),
        Some((domain, name)) => is_subdomain(domain) && !name.is_empty() && is_label_value(name),
    }
}

/// The value of a label; it may be empty.
pub(crate) fn is_label_value(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_none_or(|b| b.is_ascii_alphanumeric());
    text.len() <= LABEL
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && edge(text.bytes().next())
        && edge(text.bytes().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_kubernetes() {
        let (label, too_long) = ("a".repeat(63), "a".repeat(64));
        let (domain, too_long_domain) = (["a"; 127].join("."), ["a"; 128].join("."));
        // The text, and whether it is a subdomain, a DNS-1035 label, and the name of a port.
        for (text, expected) in [
            ("chat", [true, true, true]),
            ("chat-70b", [true, true, true]),
            ("70b-chat", [true, false, true]),
            ("8080", [true, false, false]),
            ("a.b", [true, false, false]),
            ("a--b", [true, true, false]),
            ("exactly-15-long", [true, true, true]),
            ("now-16-long-name", [true, true, false]),
            (&label, [true, true, false]),
            (&too_long, [true, false, false]),
            (&domain, [true, false, false]),
            (&too_long_domain, [false, false, false]),
            ("", [false, false, false]),
            ("a..b", [false, false, false]),
            ("-a", [false, false, false]),
            ("a-", [false, false, false]),
            ("Chat", [false, false, false]),
            ("a_b", [false, false, false]),
            ("ä", [false, false, false]),
        ] {
            assert_eq!([is_subdomain(text), is_dns_1035_label(text), is_port_name(text)], expected, "{text:?}");
        }
    }
}
