//! Templates by their text.

use std::collections::HashMap;
use std::mem;

use parking_lot::Mutex;

use crate::template::{self, Template};

/// Bytes of text in one generation of the cache. The published library needs about a hundred KiB.
const GENERATION: usize = 4 * 1024 * 1024;

/// Parsed templates, kept by their text. What wasn't used while a generation filled up is dropped with the next one, so
/// it holds at most two generations.
#[derive(Debug, Default)]
pub(super) struct TemplateCache {
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Box<str>, Template>,
    old: HashMap<Box<str>, Template>,
    /// Bytes of text in `young`.
    size: usize,
}

impl TemplateCache {
    /// The template of this text, parsed if it isn't known.
    ///
    /// # Errors
    /// The text is no template; that isn't remembered.
    pub(super) fn get(&self, text: &str) -> Result<Template, template::Error> {
        if let Some(known) = self.generations.lock().find(text) {
            return Ok(known);
        }
        let parsed = Template::parse(text)?;
        self.generations.lock().insert(text.into(), parsed.clone());
        Ok(parsed)
    }
}

impl Generations {
    fn find(&mut self, text: &str) -> Option<Template> {
        if let Some(known) = self.young.get(text) {
            return Some(known.clone());
        }
        let (text, known) = self.old.remove_entry(text)?;
        self.insert(text, known.clone());
        Some(known)
    }

    fn insert(&mut self, text: Box<str>, template: Template) {
        if self.size + text.len() > GENERATION {
            self.old = mem::take(&mut self.young);
            self.size = 0;
        }
        self.size += text.len();
        self.young.insert(text, template);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_two_generations_at_most_and_keeps_what_is_used() {
        let cache = TemplateCache::default();
        let filler = |n: usize| format!("{{{{ .Name }}}} {n} {}", "x".repeat(60 * 1024));
        cache.get("{{ .Name }}").unwrap();
        for n in 0..500 {
            cache.get(&filler(n)).unwrap();
            cache.get("{{ .Name }}").unwrap();
        }
        let held = cache.generations.lock();
        assert!(held.young.contains_key("{{ .Name }}"));
        let bytes: usize = held.young.keys().chain(held.old.keys()).map(|text| text.len()).sum();
        assert!(bytes <= 2 * GENERATION, "{bytes}");
        assert!(bytes > GENERATION / 2, "{bytes}");
    }

    #[test]
    fn what_is_no_template_is_not_remembered() {
        let cache = TemplateCache::default();
        assert!(cache.get("{{ if }}").is_err());
        assert!(cache.get("{{ if }}").is_err());
        assert!(cache.generations.lock().young.is_empty());
    }
}
