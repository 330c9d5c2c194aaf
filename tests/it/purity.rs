//! The modules that decide have no way to do I/O.

use std::fs;
use std::path::{Path, PathBuf};

const PURE: [&str; 8] = ["api", "template", "merge", "render", "workload", "capacity", "placement", "status"];
/// Names that only I/O, clocks and tasks need.
const FORBIDDEN: [&str; 8] = ["kube::Client", "kube::Api", "tokio::", "std::fs", "std::net", "std::env", "Timestamp::now", "Instant::now"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Code without the parts that only tests compile: those may read files of vectors.
fn product(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or_default()
}

#[test]
fn modules_that_decide_do_no_io() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for module in PURE {
        let mut files = Vec::new();
        sources(&root.join(module), &mut files);
        assert!(!files.is_empty(), "src/{module} has no sources");
        for file in files {
            let is_test = file.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| stem.contains("tests") || stem == "golden");
            if is_test {
                continue;
            }
            let text = fs::read_to_string(&file).expect("a source");
            for (number, line) in product(&text).lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                if let Some(name) = FORBIDDEN.iter().find(|name| code.contains(**name)) {
                    wrong.push(format!("{}:{}: {name}", file.display(), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
