//! Tables and ages as kubectl prints them.

use std::fmt::{self, Write as _};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// What stands for a value that isn't there: an empty cell would move the others for programs that split at spaces.
const NONE: &str = "<none>";
/// Between two columns.
const GAP: usize = 3;

/// Rows under upper-case headers, each column as wide as its widest cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new<'a>(headers: impl IntoIterator<Item = &'a str>) -> Self {
        Self { rows: vec![headers.into_iter().map(ToOwned::to_owned).collect()] }
    }

    /// Adds a row. Cells come in the order of the headers.
    pub(super) fn push(&mut self, cells: impl IntoIterator<Item = Option<String>>) {
        self.rows.push(cells.into_iter().map(|cell| cell.filter(|text| !text.is_empty()).map_or(NONE.to_owned(), |t| shown(&t))).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                write!(line, "{cell:<width$}", width = width + GAP)?;
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A text from a cluster on one line, without what could steer a terminal.
pub(super) fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// How long ago a time was: two units while the larger one is a small number, else one.
pub(super) fn age(since: Option<&Time>, now: Timestamp) -> String {
    let Some(since) = since else { return "<unknown>".to_owned() };
    // The clocks of two machines differ by a little.
    let seconds = now.duration_since(since.0).as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let years = days / 365;
    let two = |large: i64, unit: char, small: i64, small_unit: char| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{small_unit}") }
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, 'd', hours % 24, 'h'),
        () if years < 2 => format!("{days}d"),
        () if years < 8 => two(years, 'y', days % 365, 'd'),
        () => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_their_headers() {
        let mut table = Table::new(["NAME", "READY", "AGE"]);
        table.push([Some("a-long-name".to_owned()), None, Some("5m".to_owned())]);
        table.push([Some("é".to_owned()), Some("True".to_owned()), Some(String::new())]);
        assert_eq!(
            table.to_string(),
            "\
NAME          READY    AGE
a-long-name   <none>   5m
é             True     <none>
"
        );
    }

    #[test]
    fn what_steers_a_terminal_is_not_printed() {
        let mut table = Table::new(["MESSAGE"]);
        table.push([Some("one\ntwo\u{1b}[31m\u{9b}red".to_owned())]);
        assert_eq!(table.to_string(), "MESSAGE\none two [31m red\n");
    }

    /// The steps are those of kubectl.
    #[test]
    fn ages() {
        let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let (minute, hour, day) = (60, 3600, 86400);
        for (seconds, wanted) in [
            (-3, "0s"),
            (0, "0s"),
            (119, "119s"),
            (2 * minute, "2m"),
            (5 * minute + 7, "5m7s"),
            (10 * minute + 7, "10m"),
            (179 * minute, "179m"),
            (3 * hour, "3h"),
            (3 * hour + 4 * minute, "3h4m"),
            (8 * hour + 4 * minute, "8h"),
            (47 * hour, "47h"),
            (3 * day + 4 * hour, "3d4h"),
            (8 * day + 4 * hour, "8d"),
            (700 * day, "700d"),
            (800 * day, "2y70d"),
            (8 * 365 * day + day, "8y"),
        ] {
            let since = Time(now - jiff::SignedDuration::from_secs(seconds));
            assert_eq!(age(Some(&since), now), wanted, "{seconds} s");
        }
        assert_eq!(age(None, now), "<unknown>");
    }
}
