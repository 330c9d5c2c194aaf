//! Go's text/template.
//!
//! A [`Template`] is parsed once and can be rendered many times, with any [`Value`] as dot. The language, the types
//! and the printing are those of Go 1.26; functions come from a closed table. Two things differ on purpose: an action
//! whose value is nil is an error instead of the text `<no value>`, and everything that can be checked without data is
//! checked when parsing, in branches that are never taken as well.
//!
//! | file | job |
//! | --- | --- |
//! | `lex`, `literal`, `ast`, `parse` | text → tree |
//! | `types`, `value`, `json` | the values that templates work on |
//! | `exec`, `fields` | tree and values → text |
//! | `format` | printing as Go's `fmt` does |
//! | `functions`, `builtins`, `compare`, `sprig` | what templates can call |
//! | `budget`, `error` | limits and faults |

mod ast;
mod budget;
mod builtins;
mod compare;
mod error;
mod exec;
mod fields;
mod format;
mod functions;
#[cfg(test)]
mod golden;
mod json;
mod lex;
mod literal;
mod parse;
mod sprig;
#[cfg(test)]
mod tests;
mod types;
mod value;

use std::sync::Arc;

pub use budget::{Budget, MAX_TEXT};
pub use error::{Error, ErrorKind};
pub use types::{Field, Shape, Type};
pub use value::{IntType, List, Map, Pointer, Record, Text, UintType, Value};

/// A parsed template. It never changes, and cloning it is cheap.
#[derive(Clone, Debug)]
pub struct Template {
    text: Arc<str>,
    definitions: Arc<ast::Definitions>,
}

impl Template {
    /// Parses a text.
    ///
    /// # Errors
    /// Malformed actions and literals, blocks that aren't closed, functions that don't exist or are forbidden,
    /// variables that aren't declared, and texts of more than [`MAX_TEXT`] bytes.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let definitions = parse::parse(text).map_err(Error::from)?;
        Ok(Self { text: text.into(), definitions: Arc::new(definitions) })
    }

    /// Whether the text has no action at all, so that every render gives the text itself.
    pub fn is_literal(&self) -> bool {
        !self.text.contains("{{")
    }

    /// The text that was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Renders the template with `dot`. Bytes that are no UTF-8 become U+FFFD, one for each byte.
    ///
    /// # Errors
    /// Whatever goes wrong while running, with the place in the text. What was spent of the budget stays spent.
    pub fn render(&self, dot: &Value, budget: &mut Budget) -> Result<String, Error> {
        let output = exec::render(&self.text, &self.definitions, dot, budget).map_err(Error::from)?;
        Ok(String::from_utf8(output).unwrap_or_else(|error| format::replace_unsound(error.as_bytes())))
    }
}
