//! What the vectors don't show: places and words of errors, limits, and that no text can do harm.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::{Budget, Error, ErrorKind, Field, Shape, Template, Type, Value};

fn data() -> Value {
    let pool = Shape::new("Pool", vec![Field::new("Name", "name", Type::String)]);
    let parallelism = Shape::new(
        "Parallelism",
        vec![Field::new("Tensor", "tensor", Type::pointer(Type::Int32)), Field::new("DataLocal", "dataLocal", Type::pointer(Type::Int32))],
    );
    let spec = Shape::new(
        "Spec",
        vec![
            Field::new("Pools", "pools", Type::list(Type::Record(pool))),
            Field::new("Parallelism", "parallelism", Type::pointer(Type::Record(parallelism))),
            Field::new("Parent", "parent", Type::pointer(Type::String)),
        ],
    );
    let root = Shape::new(
        "Data",
        vec![
            Field::new("Name", "name", Type::String),
            Field::new("Labels", "labels", Type::map(Type::String)),
            Field::new("Spec", "spec", Type::Record(spec)),
            Field::new("Any", "any", Type::Any),
        ],
    );
    let json = json!({
        "name": "chat", "labels": {"app": "x"}, "any": {"list": [1, null], "nothing": null},
        "spec": {"pools": [{"name": "a"}, {"name": "b"}], "parallelism": {"tensor": 0}, "parent": "root"},
    });
    Value::from_json_as(&json, &Type::Record(root)).unwrap()
}

fn render(text: &str) -> Result<String, Error> {
    Template::parse(text)?.render(&data(), &mut Budget::default())
}

fn failure(text: &str) -> Error {
    match render(text) {
        Ok(output) => panic!("{text} prints {output:?}"),
        Err(error) => error,
    }
}

#[test]
fn a_template_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Template>();
    shared::<Value>();
}

#[test]
fn a_text_without_actions_is_literal() {
    assert!(Template::parse("$(VAR) }} { {x}").unwrap().is_literal());
    assert!(!Template::parse("a{{/* note */}}").unwrap().is_literal());
}

#[test]
fn what_can_be_known_without_data_is_refused_when_parsing() {
    for (text, kind, message) in [
        ("{{if false}}{{nosuch 1}}{{end}}", ErrorKind::UnknownFunction, "function \"nosuch\" does not exist"),
        ("{{if false}}{{now}}{{end}}", ErrorKind::UnknownFunction, "function \"now\" is forbidden: its result depends on the time"),
        ("{{env \"HOME\"}}", ErrorKind::UnknownFunction, "function \"env\" is forbidden: it reads the environment"),
        ("{{if false}}{{$x}}{{end}}", ErrorKind::UndefinedVariable, "undefined variable $x"),
        ("{{if .Name}}a", ErrorKind::Parse, "{{ if }} is never closed; {{ end }} is missing"),
        ("{{range .Any}}{{with .}}{{end}}", ErrorKind::Parse, "{{ range }} is never closed"),
        ("{{define \"t\"}}", ErrorKind::Parse, "{{ define }} is never closed"),
        ("{{end}}", ErrorKind::Parse, "{{ end }} without an open"),
        ("{{else}}", ErrorKind::Parse, "{{ else }} without an open"),
        ("{{if 1}}{{else}}{{else}}{{end}}", ErrorKind::Parse, "expected {{ end }}"),
        ("{{break}}", ErrorKind::Parse, "{{ break }} outside of a range"),
        ("{{range .Any}}{{define \"t\"}}{{end}}{{end}}", ErrorKind::Parse, "define must not stand inside a block"),
        ("{{range .Any}}{{block \"b\" .}}{{break}}{{end}}{{end}}", ErrorKind::Parse, "{{ break }} outside of a range"),
        ("{{if false}}{{\"\\q\"}}{{end}}", ErrorKind::Parse, "malformed escape"),
        ("{{if false}}{{1__0}}{{end}}", ErrorKind::Parse, "malformed number 1__0"),
        ("{{'ab'}}", ErrorKind::Parse, "text needs double quotes"),
        ("{{.Name", ErrorKind::Parse, "unclosed action"),
        ("{{1 | .}}", ErrorKind::Parse, "only a function can stand behind |"),
    ] {
        let error = Template::parse(text).expect_err(text);
        assert_eq!(error.kind, kind, "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
}

#[test]
fn errors_tell_their_place_and_what_to_do() {
    for (text, line, column, action, message) in [
        (
            "a\n b {{ .Spec.Parallelism.DataLocal }}",
            2,
            7,
            "{{ .Spec.Parallelism.DataLocal }}",
            "`.Spec.Parallelism.DataLocal` has no value",
        ),
        ("{{ .Spec.Parallelism.dataLocal }}", 1, 4, "{{ .Spec.Parallelism.dataLocal }}", "it is called DataLocal"),
        ("{{ .Spec.Pods }}", 1, 4, "{{ .Spec.Pods }}", "Spec has no field Pods; it has Parallelism, Parent, Pools"),
        (
            "{{- if eq .Spec.Parallelism.Tensor 2 -}}{{ end }}",
            1,
            8,
            "{{- if eq .Spec.Parallelism.Tensor 2 -}}",
            "read optional fields with `deref`",
        ),
        (
            "{{ (index .Spec.Pools 2).Name }}",
            1,
            5,
            "{{ (index .Spec.Pools 2).Name }}",
            "index 2 is out of range: `.Spec.Pools` has 2 elements",
        ),
        ("{{range .Labels}}\n{{$.Nope}}{{end}}", 2, 3, "{{$.Nope}}", "Data has no field Nope"),
        ("{{ deref .Spec \"Paralelism\" }}", 1, 4, "{{ deref .Spec \"Paralelism\" }}", "Spec has no field Paralelism"),
        ("{{ template \"x\" }}", 1, 13, "{{ template \"x\" }}", "template \"x\" is not defined"),
        ("é {{ nope }}", 1, 6, "{{ nope }}", "does not exist"),
    ] {
        let error = failure(text);
        assert_eq!((error.line, error.column, error.action.as_str()), (line, column, action), "{error}");
        assert!(error.message.contains(message), "{error}");
    }
}

/// Nil in a list has no fields, while a missing key has missing ones.
#[test]
fn nil_elements_differ_from_missing_keys() {
    assert_eq!(failure("{{ (index .Any.list 1) }}").kind, ErrorKind::NoValue);
    assert_eq!(failure("{{ .Any.nothing.x }}").kind, ErrorKind::Nil);
    assert_eq!(failure("{{ range .Any.list }}{{ if eq . 1.0 }}{{ else }}{{ .x }}{{ end }}{{ end }}").kind, ErrorKind::Nil);
    assert_eq!(failure("{{ .Any.missing.x }}").kind, ErrorKind::NoValue);
    assert_eq!(render("{{ with $x := .Any.nothing }}{{ else }}{{ eq $x nil }}{{ end }}").unwrap(), "true");
}

#[test]
fn a_string_behind_a_pointer_is_a_string() {
    assert_eq!(render("{{ printf .Spec.Parent }}").unwrap(), "root");
    assert_eq!(failure("{{ printf .Spec.Parallelism }}").kind, ErrorKind::Type);
    assert_eq!(failure("{{ printf .Any.missing }}").kind, ErrorKind::Nil);
}

/// Variables of a branch are known to its `else` when parsing, though they were never set.
#[test]
fn a_variable_of_a_branch_that_was_not_taken_fails_when_used() {
    assert_eq!(failure("{{ if false }}{{ $x := 1 }}{{ else }}{{ $x }}{{ end }}").kind, ErrorKind::UndefinedVariable);
    assert_eq!(render("{{ if true }}{{ $x := 1 }}{{ else }}{{ $x }}{{ end }}").unwrap(), "");
}

#[test]
fn bytes_that_are_no_text_are_replaced_one_by_one() {
    assert_eq!(render(r#"{{ print "a\xff\xfeb" }}"#).unwrap(), "a\u{fffd}\u{fffd}b");
    assert_eq!(render(r#"{{ printf "%q" "a\xff" }}"#).unwrap(), r#""a\xff""#);
}

#[test]
fn a_map_from_json_is_a_map_of_anything() {
    assert_eq!(render(r#"{{ printf "%T %T" .Any .Labels }}"#).unwrap(), "map[string]interface {} map[string]string");
    assert_eq!(render(r#"{{ printf "%T" (index .Any.list 0) }}"#).unwrap(), "float64");
}

#[test]
fn each_limit_has_its_message() {
    let endless = "{{ define \"t\" }}{{ template \"t\" }}{{ end }}{{ template \"t\" }}";
    let loops = "{{ range 2000 }}{{ range 2000 }}{{ end }}{{ end }}";
    let long = format!("{{{{ range 100 }}}}{}{{{{ end }}}}", "x".repeat(20_000));
    for (text, kind, message) in [
        (endless, ErrorKind::Depth, "templates call each other more than 100 deep"),
        (loops, ErrorKind::Budget, "more than 1000000 steps"),
        (&long, ErrorKind::Budget, "write more than 1048576 bytes"),
        ("{{ printf \"%999999d%999999d\" 1 2 }}", ErrorKind::Budget, "a text of more than 1048576 bytes"),
        ("{{ $x := \"\" }}{{ range 1000000 }}{{ $x = printf \"%s%60000d\" $x . }}{{ end }}", ErrorKind::Budget, "a text of more than"),
    ] {
        let error = failure(text);
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(message), "{error}");
    }
    let error = Template::parse(&"x".repeat(64 * 1024 + 1)).expect_err("too long");
    assert_eq!(error.kind, ErrorKind::Budget);
    assert!(error.message.contains("the text has 65537 bytes"), "{error}");
}

#[test]
fn precision_and_width_may_be_larger_than_any_number() {
    let zeros = "0".repeat(69_999);
    for (format, printed) in [
        ("%.70000f", format!("1.5{zeros}")),
        ("%.70000e", format!("1.5{zeros}e+00")),
        ("%.70000g", "1.5".to_owned()),
        ("%#.70000g", format!("1.5{}", "0".repeat(69_998))),
        ("%.70000x", format!("0x1.8{zeros}p+00")),
        ("%070003f", format!("{}1.500000", "0".repeat(69_995))),
    ] {
        let output = render(&format!("{{{{ printf {format:?} 1.5 }}}}")).unwrap();
        assert!(output == printed, "{format}: {} characters, not {}", output.len(), printed.len());
    }
    assert_eq!(render("{{ printf \"%.70000U\" 65 }}").unwrap(), format!("U+{}41", "0".repeat(69_998)));
    for verb in "vbcdoOqxXUeEfFgGtsTp".chars() {
        for value in ["1.5", "1e-320", "-7", "\"text\"", ".Any", "true"] {
            for digits in ["70000", "1000000", ".70000", "#.1000000", "+#070000.70000"] {
                let _ = render(&format!("{{{{ printf \"%{digits}{verb}\" {value} }}}}"));
            }
        }
    }
}

#[test]
fn a_budget_covers_all_templates_of_a_service() {
    let template = Template::parse("{{ range 400 }}{{ end }}").unwrap();
    let mut budget = Budget::new(700, 100, 1000);
    assert!(template.render(&Value::Nil, &mut budget).is_ok());
    assert!(budget.steps() > 400);
    let error = template.render(&Value::Nil, &mut budget).expect_err("the second render goes beyond the budget");
    assert_eq!(error.kind, ErrorKind::Budget);
}

#[test]
fn a_failed_render_leaves_no_depth_behind() {
    let endless = Template::parse("{{ define \"t\" }}{{ template \"t\" }}{{ end }}{{ template \"t\" }}").unwrap();
    let sound = Template::parse("{{ define \"t\" }}x{{ end }}{{ template \"t\" }}").unwrap();
    let mut budget = Budget::default();
    assert!(endless.render(&Value::Nil, &mut budget).is_err());
    assert_eq!(sound.render(&Value::Nil, &mut budget).unwrap(), "x");
}

/// Runs `work` on a stack of the size that worker threads have.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(work).unwrap().join().unwrap();
}

#[test]
fn nesting_ends_before_the_stack_does() {
    on_a_small_stack(|| {
        let parens = format!("{{{{ {}1{} }}}}", "(".repeat(20_000), ")".repeat(20_000));
        assert_eq!(failure(&parens).kind, ErrorKind::Depth);
        let blocks = format!("{}{}", "{{if 1}}".repeat(4000), "{{end}}".repeat(4000));
        assert_eq!(failure(&blocks).kind, ErrorKind::Depth);
        let chain = format!("{{{{if 0}}}}{}{{{{else}}}}x{{{{end}}}}", "{{else if 0}}".repeat(3000));
        assert_eq!(render(&chain).unwrap(), "x");
        // Parentheses, which take the most stack, as deep as they may be within a template that calls itself.
        let parens = format!("{{{{ print {}1{} }}}}", "(print ".repeat(98), ")".repeat(98));
        let body = format!("{}{{{{ template \"t\" }}}}{}", "{{range 1}}".repeat(35), "{{end}}".repeat(35));
        assert_eq!(failure(&format!("{{{{ define \"t\" }}}}{parens}{body}{{{{ end }}}}{{{{ template \"t\" }}}}")).kind, ErrorKind::Depth);
    });
}

#[test]
fn templates_may_call_each_other_a_hundred_deep_from_within_a_block() {
    let text = "{{ define \"t\" }}{{ if index . 0 }}{{ template \"t\" (index . 1) }}{{ else }}end{{ end }}{{ end }}{{ template \"t\" . }}";
    let mut value = Value::list(vec![Value::Bool(false)]);
    for _ in 0..99 {
        value = Value::list(vec![Value::Bool(true), value]);
    }
    assert_eq!(Template::parse(text).unwrap().render(&value, &mut Budget::default()).unwrap(), "end");
}

#[test]
fn a_value_that_is_nested_too_deeply_is_not_printed() {
    on_a_small_stack(|| {
        let mut value = Value::list(Vec::new());
        for _ in 0..1000 {
            value = Value::list(vec![value]);
        }
        let template = Template::parse("{{ . }}").unwrap();
        assert_eq!(template.render(&value, &mut Budget::default()).expect_err("too deep").kind, ErrorKind::Depth);
    });
}

#[test]
fn records_are_built_by_field_name() {
    let shape = Shape::new("Model", vec![Field::new("Name", "name", Type::String), Field::new("Size", "size", Type::pointer(Type::Int32))]);
    let record = Value::record(&shape, BTreeMap::from([("Name", Value::string("m")), ("Nope", Value::Nil)]));
    let text = "{{ .Name }} {{ deref . \"Size\" | default 7 }}";
    assert_eq!(Template::parse(text).unwrap().render(&record, &mut Budget::default()).unwrap(), "m 7");
}

/// Pieces of templates, so that random texts are more than noise.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{{"),
        Just("}}"),
        Just("{{- "),
        Just(" -}}"),
        Just("("),
        Just(")"),
        Just("if "),
        Just("{{end}}"),
        Just("{{else}}"),
        Just("range "),
        Just("with "),
        Just("define \"t\""),
        Just("template \"t\" "),
        Just("{{template \"t\"}}"),
        Just("$x := "),
        Just("$x "),
        Just(".Spec"),
        Just(".Any"),
        Just(" . "),
        Just("1"),
        Just("1e"),
        Just("\"a\" "),
        Just("`"),
        Just("'x'"),
        Just("|"),
        Just("index "),
        Just("printf \"%*d %[1]v\" "),
        Just("deref "),
        Just("/*"),
        Just("*/"),
        Just("é"),
        Just("\n"),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_text_panics_or_runs_forever(text in prop_oneof![pieces(), "\\PC{0,60}", "\\{\\{\\PC{0,40}\\}\\}"]) {
        let mut budget = Budget::new(5000, 10, 5000);
        if let Ok(template) = Template::parse(&text) {
            let result = template.render(&data(), &mut budget);
            if let Ok(output) = result {
                prop_assert!(output.len() <= 3 * 5000, "unsound bytes grow, everything else is counted");
            }
            prop_assert!(template.is_literal() || budget.steps() <= 5000 + 5000);
        }
    }

    #[test]
    fn text_without_actions_is_left_alone(text in "[^{]{0,80}") {
        prop_assert_eq!(render(&text).unwrap(), text);
    }

    #[test]
    fn no_format_panics(format in "(%[-+# 0]{0,2}[0-9*]{0,3}(\\.[0-9*]{0,3})?(\\[[0-9]{1,2}\\])?[a-zA-Z%])|.{0,3}", number in any::<i64>(), float in any::<f64>()) {
        let values = Value::list(vec![Value::int(number), Value::Float(float), Value::string("é\u{0}"), Value::Nil]);
        for argument in ["0", "1", "2", "3"] {
            let text = format!("{{{{ printf {} (index . {argument}) (index . 0) }}}}", serde_json::to_string(&format).unwrap());
            if let Ok(template) = Template::parse(&text) {
                let _ = template.render(&values, &mut Budget::default());
            }
        }
    }
}
