//! The `odin-hub` program: parse the command line and dispatch.

use std::process::ExitCode;

fn main() -> ExitCode {
    match odin_hub::cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<odin_hub::cli::Logged>() => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{}: {}", odin_hub::cli::program(), odin_hub::cli::Told(&error));
            ExitCode::FAILURE
        }
    }
}
