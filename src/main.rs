//! The `odin-hub` program: parse the command line and dispatch.

use std::process::ExitCode;

fn main() -> ExitCode {
    match odin_hub::cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("odin-hub: {}", odin_hub::cli::Told(&error));
            ExitCode::FAILURE
        }
    }
}
