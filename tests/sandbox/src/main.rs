//! `cargo sandbox`: a hub and two members on this machine, with odin-hub at work.

mod up;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Real Kubernetes control planes on this machine, with simulated GPU nodes and odin-hub at work
#[derive(Parser)]
#[command(name = "cargo sandbox", bin_name = "cargo sandbox", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a hub and two members, serve examples/quickstart on them, and stay until Ctrl-C
    #[command(long_about = UP)]
    Up(Up),
}

const UP: &str = "\
Start a hub and two members, serve examples/quickstart on them, and stay until Ctrl-C

Everything runs on 127.0.0.1 and in a temp folder; it is gone when this command ends, in whatever way. The hub is installed \
by its chart. The first run builds the control planes and Helm with Go, which takes some minutes; they are kept in $ODIN_SANDBOX_CACHE, by default in the user's cache folder.";

/// How to run.
#[derive(clap::Args)]
struct Up {
    /// Take all down once every service is in its expected state: exit 0, or 1 with the reason
    #[arg(long)]
    check: bool,
    /// Keep the logs of all processes in this folder
    #[arg(long, value_name = "DIR")]
    keep_logs: Option<PathBuf>,
    /// Folder of a preset library; one service is made from it [default: ../shared/presets beside the repository, if it is there]
    #[arg(long, value_name = "DIR", env = "ODIN_PRESETS_DIR")]
    presets: Option<PathBuf>,
    /// Seconds that the services may take to reach their expected states
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
}

fn main() -> ExitCode {
    let Cli { command: Command::Up(args) } = Cli::parse();
    let runtime = match Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    let code = runtime.block_on(async {
        tokio::select! {
            outcome = up::run(&args) => match outcome {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => failed(&error),
            },
            () = told_to_stop() => {
                println!("\nstopped");
                // Ctrl-C is how `up` is meant to end; a check that was cut short has shown nothing.
                if args.check { ExitCode::FAILURE } else { ExitCode::SUCCESS }
            }
        }
    });
    // A build that was cut short may still be under way in a blocking task; its processes end with this one.
    runtime.shutdown_timeout(Duration::from_millis(100));
    code
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("\nfailed: {error:#}");
    ExitCode::FAILURE
}

/// Ctrl-C, SIGTERM, or a terminal that went away.
async fn told_to_stop() {
    let wait = async |kind| match signal(kind) {
        Ok(mut signals) => drop(signals.recv().await),
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = wait(SignalKind::interrupt()) => {}
        () = wait(SignalKind::terminate()) => {}
        () = wait(SignalKind::hangup()) => {}
    }
}
