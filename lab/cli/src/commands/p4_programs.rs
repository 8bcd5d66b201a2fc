//! Measurements of compiled P4 programs, which `namehop-p4` makes.

use std::error::Error;
use std::process::Command;

use namehop_cli::programs;
use namehop_reproduce::{ProgramMeasurements, ProgramOutcome};
use serde_json::Value;

/// Measures compiled programs by `namehop-p4 bench --json`.
#[derive(Debug, Default)]
pub struct CompiledPrograms;

impl ProgramMeasurements for CompiledPrograms {
    fn measure(&mut self, program: &str, entries: u64) -> Result<ProgramOutcome, Box<dyn Error + Send + Sync>> {
        let path = programs::beside(programs::P4);
        let output = Command::new(&path).args(["bench", program, "--json", "--entries", &entries.to_string()]).output();
        let output = output.map_err(|error| programs::explain(&path, &error))?;
        // A program with missing requirements is in the list, too, and makes the command fail.
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
