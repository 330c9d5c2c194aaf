//! `cargo sandbox up`.

mod build;
mod presets;
mod services;
mod stages;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use sandbox::programs::Programs;
use sandbox::progress::Progress;
use sandbox::{Fleet, FleetSpec, Hub, HubOptions, hub};

use self::stages::Stages;
use self::table::Columns;
use crate::Up;

/// Lines of the hub's log that a failure shows.
const TAIL: usize = 40;

/// Does all of it. Dropped in the middle, it takes down what it started.
pub(crate) async fn run(args: &Up) -> Result<()> {
    let stages = Arc::new(Stages::start());
    let repository = hub::repository();

    stages.begin("build", "odin-hub, the control planes and Helm");
    let (binary, programs) = programs(&repository).await?;
    stages.end("programs are there");

    stages.begin("control planes", "a hub and two members, with their nodes");
    let news = Arc::clone(&stages);
    let spec =
        FleetSpec { keep_logs: args.keep_logs.clone(), observer: Some(Arc::new(move |line: &str| news.say(line))), ..FleetSpec::default() };
    let fleet = Fleet::start_with(spec, programs).await?;
    stages.end("control planes are up");

    let mut running = None;
    if let Err(error) = serve(args, &stages, &fleet, HubOptions::new(binary), &mut running).await {
        return Err(match &running {
            Some(hub) => anyhow!("{error:#}\n\nthe hub's log ends with:\n{}", hub.process().log_tail(TAIL)),
            None => error,
        });
    }

    stages.print_summary();
    if args.check {
        stages.begin("end", "stopping");
        if let Some(hub) = &running {
            let status = hub.stop().await?;
            ensure!(status.success(), "the hub answered SIGTERM with {status}; its log ends with:\n{}", hub.process().log_tail(TAIL));
        }
        drop(running);
        drop(fleet);
        stages.end("every service was in its expected state; all is down again");
        return Ok(());
    }
    println!("\nLook around in another terminal (an administrator's credentials, of this fleet only):");
    for cluster in std::iter::once(fleet.hub().clone()).chain(fleet.members()) {
        println!("  export KUBECONFIG={}   # {}", cluster.kubeconfig_path().display(), cluster.name());
    }
    println!("\nLogs: {}\nCtrl-C stops everything.", fleet.folder().join("logs").display());
    if let Some(hub) = &running {
        while hub.process().exit_status().is_none() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        // The clusters stay, so that what happened can be looked at.
        eprintln!("\nodin-hub has ended, nothing works in the fleet now; its log ends with:\n{}", hub.process().log_tail(TAIL));
    }
    std::future::pending().await
}

/// odin-hub by cargo, the control planes and Helm by Go, side by side.
async fn programs(repository: &Path) -> Result<(PathBuf, Programs)> {
    let progress = Arc::new(Progress::start());
    let (one, two, repository) = (Arc::clone(&progress), Arc::clone(&progress), repository.to_owned());
    let binary = tokio::task::spawn_blocking(move || build::odin_hub(&repository, &one));
    let programs = tokio::task::spawn_blocking(move || Programs::ensure_with(&two));
    // The first that fails is told at once, not when the other is done.
    let (binary, programs) = tokio::try_join!(async { binary.await? }, async { programs.await? })?;
    Ok((binary, programs))
}

/// Installs the hub, registers the members and brings all services to their expected states.
async fn serve(args: &Up, stages: &Stages, fleet: &Fleet, options: HubOptions, running: &mut Option<Hub>) -> Result<()> {
    let limit = Duration::from_secs(args.timeout);
    stages.begin("hub", "helm install of charts/odin-hub; odin-hub as its Deployment says and as its account");
    *running = Some(Hub::install(fleet, &options).await?);
    stages.end("odin-hub is ready");

    stages.begin("members", "an account of config/rbac/member.yaml in each member, and a Secret on the hub");
    for member in fleet.members() {
        hub::join(fleet, &member, &options.repository).await?;
    }
    let client = fleet.hub().client().await?;
    services::members_ready(&client, &fleet.members(), limit, |line| stages.say(line)).await?;
    stages.end("members are Ready");

    stages.begin("services", "examples/quickstart");
    for (name, text) in manifests(&options.repository.join("examples/quickstart"))? {
        fleet.hub().apply_yaml(&text).await.with_context(|| format!("examples/quickstart/{name}"))?;
    }
    services::expected(&client, limit, |line| stages.say(line)).await?;
    stages.end("every service is in its expected state");

    stages.begin("preset", "a service from a library of real templates");
    let told = match presets::find(args.presets.as_deref(), &options.repository)? {
        Some(preset) => {
            stages.say(&format!("preset {} of {}", preset.name, preset.folder.display()));
            // Only now: its device could be on a node that the quickstart needs whole.
            fleet.hub().apply_yaml(&preset.manifests).await.with_context(|| format!("presets of {}", preset.folder.display()))?;
            services::expected(&client, limit, |line| stages.say(line)).await?;
            "it is Ready"
        }
        None => "there is no library (ODIN_PRESETS_DIR or ../shared/presets)",
    };
    services::counted(&client, limit).await?;
    stages.end(told);

    println!("\n$ kubectl get isvc -A -o wide");
    print!("{}", table::of(&client, "/apis/odin.moreh.io/v1alpha1/inferenceservices", Columns::Wide).await?);
    println!("\n$ kubectl get mcl");
    print!("{}", table::of(&client, "/apis/federation.odin.moreh.io/v1alpha1/memberclusters", Columns::Plain).await?);
    print!("{}", services::rejections(&client).await?);
    Ok(())
}

/// The YAML files of a folder in order of their names.
fn manifests(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            files.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text));
        }
    }
    ensure!(!files.is_empty(), "{} holds no manifests (*.yaml)", folder.display());
    files.sort();
    Ok(files)
}
