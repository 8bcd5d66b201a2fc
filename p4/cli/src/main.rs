//! The program `namehop-p4`, which `namehop p4` executes: checks, compiles, tests, runs, controls and measures P4
//! programs.
#![forbid(unsafe_code)]

mod commands;
mod common;
mod control;
mod load_entries;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run()
}
