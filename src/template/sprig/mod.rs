//! Functions of Sprig, by category.

mod case;
mod logic;
mod strings;
mod words;

use super::functions::Function;

/// The functions of all categories.
pub(super) fn all() -> impl Iterator<Item = &'static Function> {
    logic::FUNCTIONS.iter().chain(strings::FUNCTIONS).chain(words::FUNCTIONS)
}
