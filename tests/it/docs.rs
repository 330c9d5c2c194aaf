//! What the README shows is so.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::world::world;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Header of the table that kubectl prints, from the API server's own columns.
async fn header(client: &kube::Client, path: &str) -> Result<String> {
    let request = http::Request::get(path).header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").body(Vec::new())?;
    let table: Value = client.request(request).await?;
    let columns = table["columnDefinitions"].as_array().context("columns")?;
    let shown = columns.iter().filter(|column| column["priority"] == 0).filter_map(|column| column["name"].as_str());
    Ok(shown.map(str::to_uppercase).collect::<Vec<_>>().join(" "))
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn the_tables_in_the_readme_have_the_columns_of_the_real_ones() -> Result<()> {
    let world = world().await;
    let readme = fs::read_to_string(root().join("README.md"))?;
    let lines: Vec<_> = readme.lines().map(squeezed).collect();
    let client = world.fleet.hub().client().await?;
    for path in ["/apis/odin.moreh.io/v1alpha1/namespaces/demo/inferenceservices", "/apis/federation.odin.moreh.io/v1alpha1/memberclusters"]
    {
        let header = header(&client, path).await?;
        ensure!(lines.contains(&header), "the README doesn't show: {header}");
    }
    Ok(())
}

/// `kubectl get odin`, and the names that people type.
#[tokio::test]
async fn the_kinds_have_their_short_names_and_category() -> Result<()> {
    let world = world().await;
    let client = world.fleet.hub().client().await?;
    for (group, plural, short) in [
        ("odin.moreh.io", "inferenceservices", "isvc"),
        ("odin.moreh.io", "inferenceservicetemplates", "isvctmpl"),
        ("odin.moreh.io", "clusterinferenceservicetemplates", "cisvctmpl"),
        ("odin.moreh.io", "runtimebases", "rb"),
        ("federation.odin.moreh.io", "memberclusters", "mcl"),
    ] {
        let path = format!("/apis/{group}/v1alpha1");
        let resources: Value = client.request(http::Request::get(&path).body(Vec::new())?).await?;
        let found = resources["resources"].as_array().into_iter().flatten().find(|r| r["name"] == plural).context(plural)?.clone();
        let has = |key: &str, value: &str| found[key].as_array().is_some_and(|all| all.iter().any(|one| one == value));
        ensure!(has("shortNames", short) && has("categories", "odin"), "{found}");
    }
    Ok(())
}
