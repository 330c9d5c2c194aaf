//! Objects as kubectl shows them: the API server's own table.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use http::header::ACCEPT;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

/// Asks for a table; without it the answer is the objects.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// Which columns are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    /// As kubectl does by itself.
    Plain,
    /// As `-o wide` does.
    Wide,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    column_definitions: Vec<Column>,
    #[serde(default)]
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
    #[serde(default)]
    priority: i32,
}

#[derive(Deserialize)]
struct Row {
    cells: Vec<Value>,
    #[serde(default)]
    object: Value,
}

/// The table of a list at `path`, with the namespaces of namespaced objects in front.
pub(super) async fn of(client: &Client, path: &str, columns: Columns) -> Result<String> {
    let request = http::Request::get(path).header(ACCEPT, TABLE).body(Vec::new())?;
    let table: Table = client.request(request).await.with_context(|| path.to_owned())?;
    Ok(text(&table, columns))
}

fn text(table: &Table, columns: Columns) -> String {
    let namespace = |row: &Row| row.object.pointer("/metadata/namespace").and_then(Value::as_str).map(str::to_owned);
    let namespaced = table.rows.iter().any(|row| namespace(row).is_some());
    let shown = |n: &usize| table.column_definitions.get(*n).is_some_and(|column| columns == Columns::Wide || column.priority == 0);
    let columns: Vec<usize> = (0..table.column_definitions.len()).filter(shown).collect();
    let mut lines = Vec::with_capacity(table.rows.len() + 1);
    let head = columns.iter().filter_map(|n| table.column_definitions.get(*n)).map(|column| column.name.to_uppercase());
    lines.push(namespaced.then(|| "NAMESPACE".to_owned()).into_iter().chain(head).collect::<Vec<String>>());
    for row in &table.rows {
        let cells = columns.iter().map(|n| cell(row.cells.get(*n)));
        lines.push(namespaced.then(|| namespace(row).unwrap_or_default()).into_iter().chain(cells).collect());
    }
    let count = lines.first().map_or(0, Vec::len);
    let width = |n: usize| lines.iter().filter_map(|line| line.get(n)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let padded = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "{}", padded.collect::<Vec<_>>().join("   ").trim_end());
    }
    text
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_wide_ones_are_there_when_asked_for() {
        let table = r#"{
            "columnDefinitions": [{"name": "Name", "priority": 0}, {"name": "Replicas"}, {"name": "Reason", "priority": 1}, {"name": "Age", "priority": 0}],
            "rows": [
                {"cells": ["a-long-name", 2, "x", "3s"], "object": {"metadata": {"namespace": "demo"}}},
                {"cells": ["b", null, "x", "10m"], "object": {"metadata": {"namespace": "n"}}}
            ]}"#;
        let expected = "\
NAMESPACE   NAME          REPLICAS   AGE
demo        a-long-name   2          3s
n           b                        10m
";
        let table = serde_json::from_str(table).unwrap();
        assert_eq!(text(&table, Columns::Plain), expected);
        let wide = "\
NAMESPACE   NAME          REPLICAS   REASON   AGE
demo        a-long-name   2          x        3s
n           b                        x        10m
";
        assert_eq!(text(&table, Columns::Wide), wide);
    }

    #[test]
    fn an_empty_table_has_its_head() {
        let table = r#"{"columnDefinitions": [{"name": "Name"}], "rows": []}"#;
        assert_eq!(text(&serde_json::from_str(table).unwrap(), Columns::Plain), "NAME\n");
    }
}
