//! Hash of a JSON value: a rendered spec, a workload, a manifest.

use std::fmt::Write as _;

use serde_json::Value;

use crate::api::labels::digest;

/// Bytes of the hash that are kept. It tells revisions of one service apart; nothing relies on it against an attacker.
const LENGTH: usize = 8;

/// SHA-256 over the JSON text with sorted keys and without spaces, cut to 16 hexadecimal digits.
pub(crate) fn of(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    digest(&text, LENGTH)
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (index, (name, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                // Writing into a string never fails.
                let _ = write!(text, "{}:", Value::from(name.as_str()));
                write(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        scalar => {
            let _ = write!(text, "{scalar}");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_text_is_canonical_and_its_hash_never_changes() {
        let value = json!({"b": [1, "x\n", null], "a": {"d": true, "c": 0.5}});
        let mut text = String::new();
        write(&value, &mut text);
        assert_eq!(text, r#"{"a":{"c":0.5,"d":true},"b":[1,"x\n",null]}"#);
        assert_eq!(of(&value), "cf748cffb3957a41");
    }
}
