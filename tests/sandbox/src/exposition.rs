//! What a program serves to Prometheus, read more strictly than Prometheus does: text format 0.0.4.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};

/// Metrics by name.
#[derive(Clone, Debug, Default)]
pub struct Exposition(pub BTreeMap<String, Metric>);

/// One metric.
#[derive(Clone, Debug, Default)]
pub struct Metric {
    /// `counter`, `gauge` or `histogram`.
    pub type_: String,
    /// What it says of itself.
    pub help: String,
    /// Its samples, those of the parts of a histogram too.
    pub samples: Vec<Sample>,
}

/// One line with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The metric's name, with `_bucket`, `_sum` or `_count` for a part of a histogram.
    pub name: String,
    /// Labels, `le` of a bucket included.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: f64,
}

impl Exposition {
    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self> {
        let mut all = Self::default();
        // Lines of one metric come together.
        let mut current = String::new();
        ensure!(text.is_empty() || text.ends_with('\n'), "the last line has no end");
        for (index, line) in text.lines().enumerate() {
            all.line(line, &mut current).with_context(|| format!("line {}: {line}", index + 1))?;
        }
        for (name, metric) in &all.0 {
            metric.check(name).with_context(|| name.clone())?;
        }
        Ok(all)
    }

    fn line(&mut self, line: &str, current: &mut String) -> Result<()> {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').context("no text")?;
            ensure!(is_name(name), "{name} is no name");
            let known = self.0.insert(name.to_owned(), Metric { help: help.to_owned(), ..Metric::default() });
            ensure!(known.is_none(), "{name} comes twice");
            name.clone_into(current);
            return Ok(());
        }
        let metric = self.0.get_mut(current).context("nothing says which metric this is")?;
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, type_) = rest.split_once(' ').context("no type")?;
            ensure!(name == current && metric.type_.is_empty(), "a type of another metric, or a second one");
            ensure!(["counter", "gauge", "histogram"].contains(&type_), "{type_} is no type");
            type_.clone_into(&mut metric.type_);
            return Ok(());
        }
        let sample = sample(line)?;
        let part = sample.name.strip_prefix(current.as_str()).context("of another metric")?;
        let parts: &[&str] = if metric.type_ == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        ensure!(!metric.type_.is_empty() && parts.contains(&part), "not of this metric, or before its type");
        ensure!(part == "_bucket" || !sample.labels.contains_key("le"), "le without a bucket");
        metric.samples.push(sample);
        Ok(())
    }

    /// Values of the series of a metric that have these labels and perhaps more.
    pub fn values(&self, name: &str, labels: &[(&str, &str)]) -> Vec<f64> {
        let has = |sample: &&Sample| labels.iter().all(|(key, value)| sample.labels.get(*key).is_some_and(|has| has == value));
        let metric =
            ["_bucket", "_sum", "_count"].iter().find_map(|part| self.0.get(name.strip_suffix(part)?)).or_else(|| self.0.get(name));
        metric.into_iter().flat_map(|metric| &metric.samples).filter(|sample| sample.name == name).filter(has).map(|s| s.value).collect()
    }

    /// All samples.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.0.values().flat_map(|metric| &metric.samples)
    }
}

impl Metric {
    fn check(&self, name: &str) -> Result<()> {
        ensure!(!self.type_.is_empty() && !self.help.is_empty(), "no type or no help");
        ensure!((self.type_ == "counter") == name.ends_with("_total"), "a counter, and nothing else, ends with _total");
        let mut seen = BTreeSet::new();
        // Bounds and counts of buckets by the other labels.
        let mut buckets: BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>> = BTreeMap::new();
        for sample in &self.samples {
            ensure!(seen.insert((&sample.name, &sample.labels)), "twice: {sample:?}");
            ensure!(self.type_ == "gauge" || sample.value >= 0.0, "less than nothing: {sample:?}");
            if sample.name.ends_with("_bucket") {
                let mut labels = sample.labels.clone();
                let bound = number(&labels.remove("le").context("a bucket without le")?)?;
                buckets.entry(labels).or_default().push((bound, sample.value));
            }
        }
        for (labels, buckets) in buckets {
            let grow = buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1);
            let count = self.samples.iter().find(|sample| sample.name.ends_with("_count") && sample.labels == labels);
            let last = buckets.last().copied();
            ensure!(grow && last == count.map(|count| (f64::INFINITY, count.value)), "buckets of {labels:?}: {buckets:?}");
        }
        Ok(())
    }
}

fn sample(line: &str) -> Result<Sample> {
    let end = line.find(['{', ' ']).context("neither labels nor a value")?;
    let (name, rest) = line.split_at(end);
    ensure!(is_name(name), "{name} is no name");
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let value = value.strip_prefix(' ').context("no space before the value")?;
    Ok(Sample { name: name.to_owned(), labels, value: number(value)? })
}

/// Labels up to the closing brace, and what comes after it.
fn labels(mut rest: &str) -> Result<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        let (key, quoted) = rest.split_once("=\"").context("no label")?;
        ensure!(is_name(key) && !key.contains(':'), "{key} is no name of a label");
        let mut value = String::new();
        let mut chars = quoted.char_indices();
        let end = loop {
            match chars.next().context("a label without an end")? {
                (at, '"') => break at + 1,
                (_, '\\') => value.push(match chars.next().context("half an escape")?.1 {
                    'n' => '\n',
                    same @ ('\\' | '"') => same,
                    other => bail!("\\{other} is no escape"),
                }),
                (_, char) => value.push(char),
            }
        };
        ensure!(labels.insert(key.to_owned(), value).is_none(), "{key} comes twice");
        let after = quoted.get(end..).unwrap_or_default();
        match after.strip_prefix('}') {
            Some(after) => return Ok((labels, after)),
            None => rest = after.strip_prefix(',').context("neither , nor } after a label")?,
        }
    }
}

fn number(text: &str) -> Result<f64> {
    match text {
        "+Inf" => Ok(f64::INFINITY),
        "-Inf" => Ok(f64::NEG_INFINITY),
        // Rust reads more words than Prometheus.
        _ => text.parse::<f64>().ok().filter(|value| value.is_finite()).with_context(|| format!("{text} is no number")),
    }
}

fn is_name(text: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | ':');
    text.chars().next().is_some_and(begins) && text.chars().all(|c| begins(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_name_and_labels() {
        let text = "# HELP a_total Some.\n# TYPE a_total counter\na_total{x=\"1\",y=\"q\\\"\\\\\\n\"} 3\na_total{x=\"2\",y=\"\"} 4.5\n\
                    # HELP h_seconds Times.\n# TYPE h_seconds histogram\nh_seconds_sum 0.5\nh_seconds_count 2\n\
                    h_seconds_bucket{le=\"0.1\"} 1\nh_seconds_bucket{le=\"+Inf\"} 2\n";
        let read = Exposition::parse(text).unwrap();
        assert_eq!(read.values("a_total", &[("x", "1")]), [3.0]);
        assert_eq!(read.values("a_total", &[]), [3.0, 4.5]);
        assert_eq!(read.values("h_seconds_count", &[]), [2.0]);
        assert_eq!(read.samples().next().unwrap().labels["y"], "q\"\\\n");
    }

    #[test]
    fn what_is_not_of_the_format_is_refused() {
        let gauge = "# HELP g Some.\n# TYPE g gauge\n";
        let histogram = "# HELP h Some.\n# TYPE h histogram\n";
        for bad in [
            "g 1\n".to_owned(),
            format!("{gauge}g 1"),
            format!("{gauge}g one\n"),
            format!("{gauge}g NaN\n"),
            format!("{gauge}g 1\ng 2\n"),
            format!("{gauge}other 1\n"),
            format!("{gauge}g{{a=\"1\" 1\n"),
            format!("{gauge}g{{a=\"\\t\"}} 1\n"),
            format!("{gauge}g{{a=\"1\",a=\"2\"}} 1\n"),
            format!("{gauge}g{{1=\"1\"}} 1\n"),
            format!("{gauge}{gauge}"),
            "# HELP g Some.\ng 1\n".to_owned(),
            "# HELP c Some.\n# TYPE c counter\nc 1\n".to_owned(),
            "# HELP c_total Some.\n# TYPE c_total counter\nc_total -1\n".to_owned(),
            format!("{histogram}h_bucket{{le=\"1\"}} 2\nh_bucket{{le=\"+Inf\"}} 1\nh_sum 1\nh_count 1\n"),
            format!("{histogram}h_bucket{{le=\"1\"}} 1\nh_sum 1\nh_count 1\n"),
            format!("{histogram}h_bucket{{le=\"+Inf\"}} 1\nh_sum 1\nh_count 2\n"),
        ] {
            assert!(Exposition::parse(&bad).is_err(), "{bad}");
        }
    }
}
