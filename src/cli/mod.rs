//! The command line: one file per subcommand.

mod clusters;
mod connection;
mod controller;
mod crds;
mod explain;
mod fetch;
mod join;
mod output;
mod plugin;
mod reasons;
mod render;
mod services;
mod table;
mod unjoin;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

pub use self::output::{Logged, Told};
use self::plugin::Name;

/// Serves models over many Kubernetes clusters.
#[derive(Debug, Parser)]
#[command(name = "odin-hub", version, about, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the hub: place, apply and report InferenceServices
    Controller(controller::Args),
    /// Print the definitions of the hub's kinds, or apply them to a cluster
    Crds(crds::Args),
    /// Register a cluster as a member: make the hub's account in it, and a Secret on the hub
    Join(join::Args),
    Unjoin(unjoin::Args),
    Clusters(clusters::Args),
    Services(services::Args),
    Explain(explain::Args),
    Render(render::Args),
    /// Print a script that completes commands in your shell
    Completion {
        /// The shell: `source <(odin-hub completion bash)`
        shell: Shell,
    },
}

/// Parses the command line and runs what it names. Wrong usage ends the process with code 2.
///
/// # Errors
/// When the work failed; the message says what to do.
pub fn run() -> anyhow::Result<()> {
    if name() == Name::PluginCompletion {
        let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        return Ok(output::print(plugin::complete(&command(Name::Plugin), &words))?);
    }
    let matches = command(name()).get_matches();
    match Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).command {
        Command::Controller(args) => {
            let runtime = runtime()?;
            let ended = runtime.block_on(controller::run(args));
            // Looking up a name may block for long, and nothing else that still runs is waited for either.
            runtime.shutdown_background();
            ended
        }
        Command::Crds(args) => runtime()?.block_on(crds::run(args)),
        Command::Join(args) => runtime()?.block_on(join::run(args)),
        Command::Unjoin(args) => runtime()?.block_on(unjoin::run(args)),
        Command::Clusters(args) => runtime()?.block_on(clusters::run(args)),
        Command::Services(args) => runtime()?.block_on(services::run(args)),
        Command::Explain(args) => runtime()?.block_on(explain::run(args)),
        Command::Render(args) => render::run(&args),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "odin-hub", &mut script);
            Ok(output::print(String::from_utf8_lossy(&script))?)
        }
    }
}

/// How the program was called, as people write it: `odin-hub`, or `kubectl odin` when it is called as kubectl's plugin.
pub fn program() -> &'static str {
    name().as_written()
}

fn name() -> Name {
    Name::of(std::env::args_os().next().as_deref())
}

fn command(name: Name) -> clap::Command {
    Cli::command().bin_name(name.as_written())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
