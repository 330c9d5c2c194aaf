//! What a reason means and what to do about it, from the page of the documentation that lists them.

use serde::Serialize;

const PAGE: &str = include_str!("../../docs/reasons.md");

/// What the documentation says of a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explained {
    pub(super) meaning: String,
    /// Nothing when there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) what_to_do: Option<String>,
}

/// The text for a reason, if it is one of the hub's.
pub(super) fn explained(reason: &str) -> Option<Explained> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let mut cells =
        rows.map(cells).find(|cells| cells.first().is_some_and(|words| words.split(", ").any(|word| word == reason)))?.into_iter();
    cells.next();
    Some(Explained { meaning: cells.next()?, what_to_do: cells.next() })
}

/// The cells of a row. A `|` inside one is written `\|`.
fn cells(row: &str) -> Vec<String> {
    row.split(" | ").map(|cell| cell.replace("\\|", "|")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::reason::Reason;

    #[test]
    fn each_reason_has_a_text() {
        for reason in Reason::ALL {
            let text = explained(reason.as_str()).unwrap_or_else(|| panic!("{reason} has no text"));
            assert!(!text.meaning.is_empty() && text.what_to_do.is_none_or(|text| !text.is_empty()), "{reason}");
        }
        assert_eq!(explained("NoSuchReason"), None);
        assert_eq!(explained("Image"), None, "a part of a word is no reason");
    }

    #[test]
    fn cells_are_read_whole() {
        for (reason, meaning, what_to_do) in [
            ("OOMKilled", "A container used more memory than its limit.", Some("Raise the limit, or use less.")),
            ("ErrImagePull", "The image can't be pulled.", Some("Correct the image, or give the member a pull secret.")),
            (
                "RenderFailed",
                "An expression in the pod template fails.",
                Some(
                    "Mend it at the layer, field and position that the message names; `deref … | default …` gives a value to what \
                     may be unset.",
                ),
            ),
            ("Reconciling", "Nothing is known yet.", None),
        ] {
            let wanted = Explained { meaning: meaning.to_owned(), what_to_do: what_to_do.map(ToOwned::to_owned) };
            assert_eq!(explained(reason), Some(wanted));
        }
    }
}
