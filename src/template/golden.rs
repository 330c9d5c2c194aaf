//! The conformance vectors: outcomes of Go's own text/template and Sprig.
//!
//! They lie in `tests/golden`; `ODIN_GOLDEN_DIR` names another folder of the same form.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::functions::{self, Lookup};
use super::{Budget, Error, ErrorKind, Field, Shape, Template, Type, Value};

fn read(name: &str) -> String {
    let folder = match std::env::var_os("ODIN_GOLDEN_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden"),
    };
    let path = folder.join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The struct types of `fields.json`.
struct Types {
    table: Json,
    shapes: BTreeMap<String, Arc<Shape>>,
}

impl Types {
    fn read() -> Self {
        Self { table: serde_json::from_str(&read("fields.json")).unwrap(), shapes: BTreeMap::new() }
    }

    fn shape(&mut self, name: &str) -> Arc<Shape> {
        if let Some(shape) = self.shapes.get(name) {
            return Arc::clone(shape);
        }
        let mut fields = Vec::new();
        let mut inner: Vec<(String, Vec<Field>)> = Vec::new();
        for entry in self.table[name].as_array().unwrap().clone() {
            let (go, json) = (entry["go"].as_str().unwrap(), entry["json"].as_str().unwrap());
            let mut kind = self.kind(entry["type"].as_str().unwrap());
            if entry["pointer"] == json!(true) {
                kind = Type::pointer(kind);
            }
            let field = match (&kind, go) {
                (Type::Record(shape), "ObjectMeta") => Field::embedded(go, json, shape),
                _ => Field::new(go, json, kind),
            };
            match entry["embedded"].as_str() {
                None => fields.push(field),
                Some(outer) => match inner.iter_mut().find(|(name, _)| name == outer) {
                    Some((_, promoted)) => promoted.push(field),
                    None => inner.push((outer.to_owned(), vec![field])),
                },
            }
        }
        for (outer, promoted) in inner {
            fields.push(Field::embedded(&outer, "", &Shape::new(&outer, promoted)));
        }
        let shape = Shape::new(name, fields);
        self.shapes.insert(name.to_owned(), Arc::clone(&shape));
        shape
    }

    fn kind(&mut self, name: &str) -> Type {
        if let Some(element) = name.strip_prefix("[]") {
            return Type::list(self.kind(element));
        }
        if let Some(element) = name.strip_prefix("map[string]") {
            return Type::map(self.kind(element));
        }
        match name {
            "string" => Type::String,
            "bool" => Type::Bool,
            "int32" => Type::Int32,
            "int64" => Type::Int64,
            _ if self.table.get(name).is_some() => Type::Record(self.shape(name)),
            _ => Type::Text(name.into()),
        }
    }

    /// The type of the data behind dot.
    fn data(&mut self) -> Type {
        let spec = self.shape("InferenceServiceSpec");
        let fields = vec![
            Field::new("Name", "name", Type::String),
            Field::new("Namespace", "namespace", Type::String),
            Field::new("Labels", "labels", Type::map(Type::String)),
            Field::new("Spec", "spec", Type::Record(spec)),
        ];
        Type::Record(Shape::new("Data", fields))
    }
}

/// A function of the text that is allowed but not there yet: such a case must be refused for it.
fn refused_for_missing_function(error: &Error, text: &str) -> bool {
    error.kind == ErrorKind::UnknownFunction
        && error
            .message
            .strip_prefix("function \"")
            .and_then(|rest| rest.strip_suffix("\" is not supported yet"))
            .is_some_and(|name| matches!(functions::find(name), Lookup::Missing) && text.contains(name))
}

/// What is wrong with the outcome of a case; None when it is as expected.
fn misfit(case: &Json, data: &Type) -> Option<String> {
    let text = case["input"]["template"].as_str().unwrap();
    let expected = &case["expected"];
    let dot = Value::from_json_as(&case["input"]["data"], data).unwrap();
    let outcome = Template::parse(text).and_then(|template| template.render(&dot, &mut Budget::default()));
    match outcome {
        Err(error) if refused_for_missing_function(&error, text) => None,
        Ok(output) if Some(output.as_str()) == expected["output"].as_str() => None,
        Err(error) if Some(error.kind.as_str()) == expected["error_kind"].as_str() => match expected["no_value_expr"].as_str() {
            Some(expression) if !error.message.contains(&format!("`{expression}`")) => {
                Some(format!("{error}\n    doesn't name {expression}"))
            }
            _ => None,
        },
        Ok(output) => Some(format!("{output:?}")),
        Err(error) => Some(format!("{}: {error}", error.kind.as_str())),
    }
}

fn check(file: &str) {
    let mut types = Types::read();
    let data = types.data();
    let (mut count, mut failures) = (0, Vec::new());
    for line in read(file).lines().filter(|line| !line.trim().is_empty()) {
        let case: Json = serde_json::from_str(line).unwrap();
        count += 1;
        if let Some(misfit) = misfit(&case, &data) {
            let (id, about, text, expected) = (&case["id"], &case["about"], &case["input"]["template"], &case["expected"]);
            failures.push(format!("{id} {about}\n    {text}\n    expected {expected}\n    got {misfit}"));
        }
    }
    assert!(count > 0, "{file} holds no case");
    assert!(failures.is_empty(), "{} of {count} cases of {file} fail\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn golden_template() {
    check("template.jsonl");
}

#[test]
fn golden_sprig() {
    check("sprig.jsonl");
}

/// The table of functions knows each name of the reference, with the same verdict.
#[test]
fn golden_functions() {
    let reference: Json = serde_json::from_str(&read("functions.json")).unwrap();
    let names = |list: &str| reference[list].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>();
    for name in names("builtin") {
        assert!(matches!(functions::find(&name), Lookup::Ready(_)), "{name}");
    }
    for name in names("allowed") {
        assert!(matches!(functions::find(&name), Lookup::Ready(_) | Lookup::Missing), "{name}");
    }
    for name in names("forbidden") {
        assert!(matches!(functions::find(&name), Lookup::Forbidden(_)), "{name}");
    }
    let known = [names("builtin"), names("allowed"), names("forbidden")].concat();
    let (ready, missing, forbidden) = functions::names();
    for name in ready.iter().chain(&missing).chain(&forbidden) {
        assert!(known.iter().any(|known| known == name), "{name} is not in the reference");
    }
    for name in missing {
        assert!(!ready.contains(&name), "{name} is there and missing");
    }
}
