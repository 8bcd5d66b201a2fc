//! The program `namehop`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use namehop_cli::commands::Cli;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
