//! `namehop p4 check`: reports the errors and warnings of a program.

use std::io;
use std::path::PathBuf;

use clap::Args;
use namehop_p4_lang::load;
use serde_json::json;

use crate::common::{Common, print_json, report};

/// Arguments of the command.
#[derive(Args)]
pub(crate) struct CheckArgs {
    /// The program
    file: PathBuf,
    #[command(flatten)]
    common: Common,
}

/// Runs the command. Returns false if there are errors in the program.
pub(crate) fn run(args: &CheckArgs) -> io::Result<bool> {
    let CheckArgs { file, common } = args;
    let loaded = load::file(file, &common.include).map_err(io::Error::other)?;
    if common.json {
        print_json(&json!({
            "errors": loaded.diagnostics.errors(),
            "warnings": loaded.diagnostics.warnings(),
            "diagnostics": loaded.diagnostics.json(&loaded.sources),
        }))?;
    } else {
        report(&loaded)?;
    }
    Ok(loaded.program.is_some())
}
