//! The `namehop` command: one binary, one file per subcommand under `commands/`.
#![forbid(unsafe_code)]

mod api;
mod commands;
mod connection;
mod failure;
mod manager;
mod output;
mod output_file;
mod pcapng;
mod printable;
mod progress;
mod units;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
