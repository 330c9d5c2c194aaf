//! Objects in files.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::Value;

/// Ends of the names of files that a folder is searched for, as kubectl does.
const ENDS: [&str; 3] = ["json", "yaml", "yml"];

/// One object, and where it was found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Document {
    /// The file, and which of its objects.
    pub(super) place: String,
    pub(super) value: Value,
}

/// Reads files, the files of folders, and standard input for `-`.
pub(super) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Document>> {
    let mut documents = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("standard input")?;
            documents.extend(parse("standard input", &text)?);
            continue;
        }
        let told = || path.display().to_string();
        for file in if path.is_dir() { folder(path).with_context(told)? } else { vec![path.clone()] } {
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            documents.extend(parse(&file.display().to_string(), &text)?);
        }
    }
    Ok(documents)
}

/// The files of a folder that hold objects, in the order of their names.
fn folder(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|file| file.is_file() && file.extension().is_some_and(|end| ENDS.iter().any(|known| end == *known)));
    files.sort();
    if files.is_empty() {
        bail!("the folder holds no file that ends in .yaml, .yml or .json");
    }
    Ok(files)
}

/// The objects of a text, those of a List one by one.
fn parse(place: &str, text: &str) -> anyhow::Result<Vec<Document>> {
    let values = values(text).with_context(|| format!("{place} holds no YAML or JSON"))?;
    let several = values.len() > 1;
    let mut documents = Vec::new();
    for (index, value) in values.into_iter().enumerate().filter(|(_, value)| !value.is_null()) {
        let place = if several { format!("{place}, object {}", index + 1) } else { place.to_owned() };
        match value {
            Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") => {
                let Some(Value::Array(items)) = list.remove("items") else { bail!("{place}: a List without items") };
                let items = items.into_iter().enumerate();
                documents.extend(items.map(|(index, value)| Document { place: format!("{place}, item {}", index + 1), value }));
            }
            value => documents.push(Document { place, value }),
        }
    }
    Ok(documents)
}

fn values(text: &str) -> anyhow::Result<Vec<Value>> {
    // JSON is read as what it is: YAML knows other escapes in strings. What begins like it may be YAML all the same.
    if text.trim_start().starts_with(['{', '['])
        && let Ok(values) = serde_json::Deserializer::from_str(text).into_iter().collect()
    {
        return Ok(values);
    }
    Ok(serde_saphyr::from_multiple(text)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(text: &str) -> Vec<(String, Value)> {
        parse("f", text).unwrap().into_iter().map(|document| (document.place, document.value)).collect()
    }

    #[test]
    fn objects_are_found_in_all_forms() {
        let one = || ("f".to_owned(), json!({"a": 1}));
        for (text, wanted) in [
            ("a: 1\n", vec![one()]),
            ("{\"a\": 1}", vec![one()]),
            ("{a: 1}", vec![one()]),
            ("", vec![]),
            ("# nothing\n", vec![]),
            ("{\"a\": \"\\ud83d\\ude00\\/\"}", vec![("f".to_owned(), json!({"a": "😀/"}))]),
            (
                "---\na: 1\n---\n# nothing\n---\nb: 2\n",
                vec![("f, object 1".to_owned(), json!({"a": 1})), ("f, object 2".to_owned(), json!({"b": 2}))],
            ),
            ("{\"a\": 1}\n{\"b\": 2}\n", vec![("f, object 1".to_owned(), json!({"a": 1})), ("f, object 2".to_owned(), json!({"b": 2}))]),
            (
                "kind: List\nitems: [{a: 1}, {b: 2}]\n",
                vec![("f, item 1".to_owned(), json!({"a": 1})), ("f, item 2".to_owned(), json!({"b": 2}))],
            ),
        ] {
            assert_eq!(parsed(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_broken_is_named() {
        for (text, wanted) in [("a: [", "f holds no YAML or JSON"), ("a: 1\na: 2\n", "a"), ("kind: List\n", "f: a List without items")] {
            let error = format!("{:#}", parse("f", text).unwrap_err());
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn a_folder_gives_its_files_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(&[folder.path().to_owned()]).unwrap_err();
        assert!(format!("{error:#}").contains("no file that ends in .yaml"), "{error:#}");
        for (file, text) in [("b.yaml", "n: 2"), ("a.json", "{\"n\": 1}"), ("c.txt", "n: 3"), ("d.yml", "n: 4")] {
            fs::write(folder.path().join(file), text).unwrap();
        }
        fs::create_dir(folder.path().join("deeper.yaml")).unwrap();
        let numbers: Vec<Value> = read(&[folder.path().to_owned()]).unwrap().iter().map(|document| document.value["n"].clone()).collect();
        assert_eq!(numbers, [json!(1), json!(2), json!(4)]);
        let missing = folder.path().join("none.yaml");
        assert!(read(&[missing]).unwrap_err().to_string().contains("none.yaml"));
    }
}
