//! The program `namehop-p4`, which `namehop p4` executes.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use serde_json::json;

use crate::load::{self, Loaded};
use crate::stf::{self, Outcome};

/// P4 programs: check them, and test them with packets
///
/// Programs are in P4_16 for the architecture v1model. The files core.p4 and v1model.p4 are built in.
#[derive(Parser)]
#[command(name = "namehop p4", bin_name = "namehop p4", version)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say what is wrong with a program
    ///
    /// Errors and warnings come with the text that they are about and, where there is one, a remedy. The exit code is 1 when
    /// there are errors.
    Check {
        /// The program
        file: PathBuf,
        #[command(flatten)]
        common: Common,
    },
    /// Send packets through a program and compare what comes out
    ///
    /// Tests are in the format of p4c's "simple test framework" (STF): they fill tables, send packets and name those that
    /// are expected. The program runs on the reference interpreter. The exit code is 1 when something differs.
    Test {
        /// The program
        file: PathBuf,
        /// The test
        test: PathBuf,
        /// Print what the program logs with log_msg and digest
        #[arg(long)]
        log: bool,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Args)]
struct Common {
    /// Write JSON to the standard output
    #[arg(long)]
    json: bool,
    /// Look for files to include in this folder too
    #[arg(long, short = 'I', value_name = "FOLDER")]
    include: Vec<PathBuf>,
}

/// Runs the program with the arguments of the process.
pub fn run() -> ExitCode {
    let command = CommandLine::parse().command;
    let result = load::on_deep_stack(|| match command {
        Command::Check { file, common } => check(&file, &common),
        Command::Test { file, test, log, common } => run_test(&file, &test, log, &common),
    });
    match result.and_then(|result| result) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Nothing is left to do when the error output is closed.
            let _ = writeln!(io::stderr(), "namehop p4: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check(file: &Path, common: &Common) -> io::Result<bool> {
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

fn report(loaded: &Loaded) -> io::Result<()> {
    loaded.diagnostics.print(&loaded.sources, io::stderr().is_terminal())?;
    let (errors, warnings) = (loaded.diagnostics.errors(), loaded.diagnostics.warnings());
    if errors + warnings > 0 {
        writeln!(io::stderr(), "{errors} errors, {warnings} warnings")?;
    }
    Ok(())
}

fn run_test(file: &Path, test: &Path, log: bool, common: &Common) -> io::Result<bool> {
    let loaded = load::file(file, &common.include).map_err(io::Error::other)?;
    let Some(program) = &loaded.program else {
        report(&loaded)?;
        return Ok(false);
    };
    let text = std::fs::read_to_string(test)
        .map_err(|error| io::Error::other(format!("cannot read {}: {error}", test.display())))?;
    let outcome =
        stf::run(program, &text).map_err(|reason| io::Error::other(format!("{}: {reason}", test.display())))?;
    let passed = outcome.failures.is_empty();
    if common.json {
        let Outcome { failures, packets, expected, notes } = outcome;
        print_json(&json!({
            "passed": passed, "packets": packets, "expected": expected, "failures": failures, "log": notes,
        }))?;
        return Ok(passed);
    }
    let mut output = io::stdout().lock();
    for note in outcome.notes.iter().filter(|_| log || !passed) {
        writeln!(output, "log: {note}")?;
    }
    for failure in &outcome.failures {
        writeln!(output, "{failure}")?;
    }
    let word = if passed { "passed" } else { "FAILED" };
    writeln!(output, "{word}: {} packets sent, {} expected", outcome.packets, outcome.expected)?;
    Ok(passed)
}

fn print_json(value: &serde_json::Value) -> io::Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer_pretty(&mut output, value)?;
    writeln!(output)
}
