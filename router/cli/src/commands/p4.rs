//! `namehop p4`: executes `namehop-p4`, a separate program, so that a router is built without a compiler.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use namehop_reproduce::{ProgramMeasurements, ProgramOutcome};
use serde_json::Value;

use crate::failure::Failure;

/// Program that is executed.
const PROGRAM: &str = "namehop-p4";

/// Check P4 programs and test them with packets
///
/// Executes the program 'namehop-p4', which is next to 'namehop' or in the PATH. 'namehop p4 --help' shows its
/// commands.
#[derive(Args, Debug)]
#[command(
    disable_help_flag = true,
    after_help = "Examples:\n  namehop p4 --help\n  namehop p4 check switch.p4\n  namehop p4 test switch.p4 switch.stf"
)]
pub struct P4Args {
    /// Command and options of 'namehop-p4'
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl P4Args {
    pub fn run(self) -> Result<(), Failure> {
        let program = beside(env::current_exe().ok().as_deref());
        // Returns only if the program cannot be executed.
        let error = Command::new(&program).args(&self.arguments).exec();
        Err(Failure::failed(explain(&program, &error)))
    }
}

/// Measures compiled programs with 'namehop p4 bench --json'.
#[derive(Debug, Default)]
pub struct Bench;

impl ProgramMeasurements for Bench {
    fn measure(&mut self, program: &str, entries: u64) -> Result<ProgramOutcome, Box<dyn Error + Send + Sync>> {
        let this = beside(env::current_exe().ok().as_deref());
        let output = Command::new(&this).args(["bench", program, "--json", "--entries", &entries.to_string()]).output();
        let output = output.map_err(|error| explain(&this, &error))?;
        // A program with missing requirements is also listed, and makes the command fail.
        let listed: Option<Value> =
            serde_json::from_slice::<Vec<Value>>(&output.stdout).ok().and_then(|mut all| all.pop());
        match listed {
            Some(figures) if output.status.success() => Ok(ProgramOutcome::Measured(serde_json::from_value(figures)?)),
            Some(left_out) if left_out["missing"].is_string() => {
                Ok(ProgramOutcome::Missing(left_out["missing"].as_str().unwrap_or_default().to_owned()))
            }
            _ => Err(String::from_utf8_lossy(&output.stderr).trim().into()),
        }
    }
}

/// Returns the program's path next to this one, or its bare name, which is looked up in the PATH.
fn beside(this: Option<&Path>) -> PathBuf {
    let found = this.and_then(Path::parent).map(|folder| folder.join(PROGRAM)).filter(|path| path.is_file());
    found.unwrap_or_else(|| PathBuf::from(PROGRAM))
}

fn explain(program: &Path, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        return format!("there is no program '{PROGRAM}' beside 'namehop' or in the PATH; 'make build' builds it");
    }
    format!("cannot execute {}: {error}", program.display())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_program_beside_this_one_comes_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let this = folder.path().join("namehop");
        assert_eq!(beside(Some(&this)), PathBuf::from(PROGRAM));
        fs::write(folder.path().join(PROGRAM), "").expect("a file");
        assert_eq!(beside(Some(&this)), folder.path().join(PROGRAM));
        assert_eq!(beside(None), PathBuf::from(PROGRAM));
    }

    #[test]
    fn a_missing_program_is_named_with_a_remedy() {
        let text = explain(Path::new(PROGRAM), &io::Error::from(io::ErrorKind::NotFound));
        assert!(text.contains("make build"), "{text}");
    }
}
