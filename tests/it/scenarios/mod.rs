//! Scenarios: what users of such systems have met, each with a number. `README.md` beside this file maps the numbers to
//! tests, which bear them in their names wherever they stand.

mod layers;
mod lost;
mod room;
mod truth;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use regex::Regex;

/// All Rust sources below a folder, as paths from the repository's root.
fn sources(root: &Path, folder: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(root.join(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().expect("a type").is_dir() {
            sources(root, &path, found);
        } else if Path::new(&path).extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The numbers in the name of a test, as the map writes them: `f8_i11_…` has F8 and I11.
fn numbers(name: &str) -> impl Iterator<Item = String> {
    let is_number = |part: &&str| {
        let digits = part.strip_prefix(['f', 'i']).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    name.split('_').take_while(is_number).map(str::to_uppercase)
}

#[test]
fn the_map_lists_each_numbered_test_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "tests"] {
        sources(root, folder, &mut files);
    }
    let functions = Regex::new(r"\bfn ([fi][0-9]+_[a-z0-9_]+)\(").expect("a pattern");
    let mut there = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(root.join(&file)).expect("a source");
        for found in functions.captures_iter(&text) {
            there.extend(numbers(&found[1]).map(|number| (number, file.clone(), found[1].to_owned())));
        }
    }
    let map = fs::read_to_string(root.join("tests/it/scenarios/README.md")).expect("the map");
    let row = Regex::new(r"(?m)^\| ([FI][0-9]+) \| `([^`]+)` \| `([^`]+)` \| [^|]+ \|$").expect("a pattern");
    let mut listed = BTreeSet::new();
    for found in row.captures_iter(&map) {
        assert!(listed.insert((found[1].to_owned(), found[2].to_owned(), found[3].to_owned())), "twice: {}", &found[0]);
    }
    let rows = map.lines().filter(|line| line.starts_with("| F") || line.starts_with("| I")).count();
    assert_eq!(rows, listed.len(), "a row isn't written as the others");
    let missing: Vec<_> = there.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&there).collect();
    assert!(missing.is_empty() && gone.is_empty(), "not in the map: {missing:#?}\nonly in the map: {gone:#?}");
}
