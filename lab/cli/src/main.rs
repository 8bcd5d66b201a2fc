//! The program `namehop-lab`: measurements, models, simulations, and publications regenerated on this host. `namehop`
//! executes it for `namehop bench`, `cache`, `power`, `plan` and `reproduce`.
#![forbid(unsafe_code)]

mod commands;
mod steps;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::Lab::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
