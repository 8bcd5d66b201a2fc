//! Options and output that several commands share.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use namehop_p4_lang::load::Loaded;

/// Options of all commands that read a program.
#[derive(Args)]
pub struct Common {
    /// Write JSON to the standard output
    #[arg(long)]
    pub json: bool,
    /// Also search this folder for included files
    #[arg(long, short = 'I', value_name = "FOLDER")]
    pub include: Vec<PathBuf>,
}

/// Prints the errors and warnings of a program to the standard error output, and their numbers.
///
/// # Errors
/// Fails if the output cannot be written.
pub fn report(loaded: &Loaded) -> io::Result<()> {
    loaded.diagnostics.print(&loaded.sources, io::stderr().is_terminal())?;
    let (errors, warnings) = (loaded.diagnostics.errors(), loaded.diagnostics.warnings());
    if errors + warnings > 0 {
        writeln!(io::stderr(), "{errors} errors, {warnings} warnings")?;
    }
    Ok(())
}

/// Prints a value as JSON to the standard output.
///
/// # Errors
/// Fails if the output cannot be written.
pub fn print_json(value: &serde_json::Value) -> io::Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer_pretty(&mut output, value)?;
    writeln!(output)
}
