//! What commands print.

use std::fmt::{self, Display};
use std::io::{self, ErrorKind, Write as _};

use anyhow::bail;
use kube::api::DynamicObject;
use kube::core::Status;
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::fetch::{Named, Reader};
use super::table::Table;

/// A form that programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// YAML.
    Yaml,
    /// JSON.
    Json,
}

/// Forms of a list of objects, other than the table that is printed without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Listing {
    /// A table with more columns.
    Wide,
    /// The objects as JSON.
    Json,
    /// The objects as YAML.
    Yaml,
    /// Kind and name of each.
    Name,
}

/// Prints a text on standard output. A reader that has gone, as in `odin-hub crds | head`, is no failure and ends no
/// work: the rest is for nobody.
pub(super) fn print(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

/// [`print`], and the end of a line.
pub(super) fn line(text: impl Display) -> io::Result<()> {
    print(format_args!("{text}\n"))
}

/// [`print`] for a person, beside the output that a program may read.
pub(super) fn note(text: impl Display) {
    // Nobody is there to be told that nobody is there.
    let _ = writeln!(io::stderr(), "{text}");
}

/// A value in a form for programs.
pub(super) fn text(form: Form, value: &impl Serialize) -> anyhow::Result<String> {
    Ok(match form {
        Form::Yaml => serde_saphyr::to_string(value)?,
        Form::Json => format!("{}\n", serde_json::to_string_pretty(value)?),
    })
}

/// Prints the objects of these names, or all: as a table, or in the form that is asked for. One object that is asked for
/// by its name is printed as it is, several as a List.
///
/// # Errors
/// When reading fails, and after the others are printed for names that aren't there.
pub(super) async fn listing<K: Resource<DynamicType = ()> + DeserializeOwned>(
    reader: &Reader<K>,
    names: &[String],
    form: Option<Listing>,
    none: &str,
    table: impl Fn(&[DynamicObject]) -> anyhow::Result<Table>,
) -> anyhow::Result<()> {
    let Named { found, missing } =
        if names.is_empty() { Named { found: reader.list().await?, missing: Vec::new() } } else { reader.named(names).await? };
    match (form, found.as_slice(), names) {
        (None | Some(Listing::Wide), [], _) if missing.is_empty() => note(none),
        (_, [], [_, ..]) => {}
        (None | Some(Listing::Wide), found, _) => print(table(found)?)?,
        (Some(Listing::Name), found, _) => print(found.iter().map(name_line::<K>).collect::<String>())?,
        (Some(Listing::Json), [one], [_]) => print(text(Form::Json, one)?)?,
        (Some(Listing::Yaml), [one], [_]) => print(text(Form::Yaml, one)?)?,
        (Some(Listing::Json), found, _) => print(text(Form::Json, &list(found))?)?,
        (Some(Listing::Yaml), found, _) => print(text(Form::Yaml, &list(found))?)?,
    }
    if !missing.is_empty() {
        bail!(missing.join("\n"));
    }
    Ok(())
}

/// Objects as one.
pub(super) fn list(items: &[impl Serialize]) -> impl Serialize {
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// `inferenceservice.odin.moreh.io/chat`.
fn name_line<K: Resource<DynamicType = ()>>(object: &DynamicObject) -> String {
    format!("{}.{}/{}\n", K::kind(&()).to_lowercase(), K::group(&()), object.name_any())
}

/// An error with its causes, each told once: some name their own cause in their text.
pub struct Told<'a>(pub &'a anyhow::Error);

impl Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for cause in self.0.chain().map(words) {
            if text.is_empty() {
                text = cause;
            } else if !text.contains(&cause) {
                text = format!("{text}: {cause}");
            }
        }
        f.write_str(&text)
    }
}

/// Something failed and its log has told of it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("it failed; the log says why")]
pub struct Logged;

/// One cause. An API server's answer is told in its own words; kube adds the whole answer, in the form of Rust.
fn words(cause: &(dyn std::error::Error + 'static)) -> String {
    let status = match cause.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => Some(&**status),
        _ => cause.downcast_ref::<Box<Status>>().map(|status| &**status),
    };
    status.map(|status| status.message.clone()).filter(|message| !message.is_empty()).unwrap_or_else(|| cause.to_string())
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;
    use serde_json::Value;

    use super::*;
    use crate::api::federation::MemberCluster;

    #[test]
    fn an_api_server_is_told_in_its_own_words() {
        let error = kube::Error::Api(Status::failure("secrets \"a\" is forbidden", "Forbidden").with_code(403).boxed());
        let error = anyhow::Error::new(error).context("reading Secret a");
        assert_eq!(Told(&error).to_string(), "reading Secret a: secrets \"a\" is forbidden");
    }

    #[test]
    fn objects_are_printed_whole() {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "federation.odin.moreh.io/v1alpha1", "kind": "MemberCluster",
            "metadata": {"name": "gpu-a"}, "spec": {"later": [1]},
        }))
        .unwrap();
        assert_eq!(name_line::<MemberCluster>(&object), "membercluster.federation.odin.moreh.io/gpu-a\n");
        for form in [Form::Yaml, Form::Json] {
            let back: Value = serde_saphyr::from_str(&text(form, &list(&[&object])).unwrap()).unwrap();
            assert_eq!(back["items"][0], serde_json::to_value(&object).unwrap(), "{form:?}");
            assert_eq!(back["kind"], "List");
        }
    }

    #[test]
    fn a_cause_is_told_once() {
        let missing = || anyhow!("no such file");
        for (error, told) in [
            (missing(), "no such file"),
            (missing().context("reading f"), "reading f: no such file"),
            (missing().context("reading f: no such file"), "reading f: no such file"),
            (missing().context("reading f: no such file").context("--kubeconfig f"), "--kubeconfig f: reading f: no such file"),
        ] {
            assert_eq!(Told(&error).to_string(), told);
        }
    }
}
