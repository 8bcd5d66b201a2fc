//! `namehop p4 test`: sends packets through a program and compares the output.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use namehop_p4_compile::emit::Options;
use namehop_p4_lang::{load, stf};
use namehop_p4_runtime::run;
use namehop_p4_runtime::workshop::{Build, Sanitize, Speed, Workshop};
use serde_json::json;

use super::compile::compiled;
use crate::common::{Common, print_json, report};

/// Arguments of the command.
#[derive(Args)]
pub(crate) struct TestArgs {
    /// The program
    file: PathBuf,
    /// The test
    test: PathBuf,
    /// Print the program's log_msg and digest output
    #[arg(long)]
    log: bool,
    /// Run the program only on the reference interpreter, which needs no C compiler
    #[arg(long)]
    interpreter: bool,
    /// Build the compiled program with checks of memory accesses and undefined behaviour
    #[arg(long, conflicts_with = "interpreter")]
    sanitize: bool,
    #[command(flatten)]
    common: Common,
}

/// Runs the command. Returns false if any output differs.
pub(crate) fn run(args: &TestArgs) -> io::Result<bool> {
    let TestArgs { file, test, common, .. } = args;
    let mut loaded = load::file(file, &common.include).map_err(io::Error::other)?;
    let mut code = None;
    if !args.interpreter && loaded.program.is_some() {
        code = compiled(&mut loaded, file, &Options::default());
    }
    let (Some(program), true) = (&loaded.program, code.is_some() || args.interpreter) else {
        report(&loaded)?;
        return Ok(false);
    };
    let text = std::fs::read_to_string(test)
        .map_err(|error| io::Error::other(format!("cannot read {}: {error}", test.display())))?;
    let (mut outcome, switch) =
        stf::run(program, &text).map_err(|reason| io::Error::other(format!("{}: {reason}", test.display())))?;
    if let Some(code) = &code {
        outcome.notes.extend(code.emitted.notes.iter().cloned());
        let sanitize = if args.sanitize { Sanitize::Memory } else { Sanitize::Nothing };
        let workshop = Workshop::with_player(Build { sanitize, speed: Speed::Some, native: false })?;
        let played = run::Played { operations: &outcome.operations, switch: &switch, types: &program.types };
        let differences = run::compare(&workshop, "program", code, &played, &run::VARIANTS)?;
        outcome.failures.extend(differences);
    }
    let passed = outcome.failures.is_empty();
    if common.json {
        print_json(&json!({
            "passed": passed, "packets": outcome.packets, "expected": outcome.expected,
            "failures": outcome.failures, "log": outcome.notes, "compiled": code.is_some(),
        }))?;
        return Ok(passed);
    }
    let mut output = io::stdout().lock();
    for note in outcome.notes.iter().filter(|_| args.log || !passed) {
        writeln!(output, "log: {note}")?;
    }
    for failure in &outcome.failures {
        writeln!(output, "{failure}")?;
    }
    let word = if passed { "passed" } else { "FAILED" };
    writeln!(output, "{word}: {} packets sent, {} expected", outcome.packets, outcome.expected)?;
    Ok(passed)
}
