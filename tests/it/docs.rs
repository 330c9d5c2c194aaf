//! What the README and the examples show is so.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use sandbox::apply::documents;
use serde_json::Value;

use crate::world::{Space, condition_of, world};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn manifests(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<_> = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|end| end == "yaml"));
    files.sort();
    Ok(files)
}

/// Label of a service in an example that is not meant to become ready.
const EXPECT: &str = "odin-hub.sandbox/expect";

#[tokio::test]
async fn every_example_does_what_it_says() -> Result<()> {
    let world = world().await;
    let mut services = Vec::new();
    for folder in fs::read_dir(root().join("examples"))? {
        let folder = folder?.path();
        if !folder.is_dir() {
            continue;
        }
        ensure!(folder.join("README.md").exists(), "{} has no README.md", folder.display());
        for file in manifests(&folder)? {
            let text = fs::read_to_string(&file)?;
            world.fleet.hub().apply_yaml(&text).await.with_context(|| file.display().to_string())?;
            services.extend(documents(&text)?.into_iter().filter(|object| object["kind"] == "InferenceService"));
        }
    }
    ensure!(services.len() >= 4, "the examples hold {} services", services.len());
    for service in services {
        let text = |pointer: &str| service.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let space = Space { client: world.fleet.hub().client().await?, namespace };
        match service["metadata"]["labels"][EXPECT].as_str().unwrap_or("ready") {
            "ready" => {
                let replicas = service["spec"]["replicas"].as_i64().unwrap_or(1);
                space.until_ready(&name, i32::try_from(replicas)?).await?;
            }
            "unplaced" => {
                let status = space.until(&name, "every member is rejected", |status| status.rejections.len() >= 2).await?;
                ensure!(condition_of(&status, "Placed").status == "False", "{status:?}");
            }
            other => anyhow::bail!("{name}: {EXPECT}: {other} is not known"),
        }
    }
    Ok(())
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
