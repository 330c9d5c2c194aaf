//! The command line: one file per subcommand.

mod connection;
mod controller;
mod crds;
mod join;
mod output;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

pub use self::output::Told;

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
    match Cli::parse().command {
        Command::Controller(args) => runtime()?.block_on(controller::run(args)),
        Command::Crds(args) => runtime()?.block_on(crds::run(args)),
        Command::Join(args) => runtime()?.block_on(join::run(args)),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "odin-hub", &mut script);
            Ok(output::print(String::from_utf8_lossy(&script))?)
        }
    }
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
