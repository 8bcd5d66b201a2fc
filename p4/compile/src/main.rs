//! The program `namehop-p4`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    namehop_p4::command_line::run()
}
