//! Runs a load in cachegrind, and reads its counts.

use std::env;
use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::load::Load;

/// Simulated caches, the same on every host. The last level is as large as a core's private cache, so its misses are
/// the lines that a packet fetches from the shared cache or memory. The simulation ignores prefetching: a prefetched
/// line counts as a miss. The caches have more ways than real ones, so that the addresses of data, which change with
/// the length of a path, do not affect the counts.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,64,64", "--LL=524288,64,64"];

/// Counts of cachegrind, in total or per packet. Misses of the first-level instruction cache are left out, because the
/// placement of functions by the linker changes them many times over.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Counts {
    /// Instructions.
    pub instructions: f64,
    /// Loads and stores.
    pub data_references: f64,
    /// Loads and stores that miss the first-level cache.
    pub data_misses: f64,
    /// Loads, stores and instruction fetches that miss all caches.
    pub last_level_misses: f64,
}

impl Counts {
    /// Parses cachegrind's output file: `events:` names the columns, `summary:` has their sums.
    fn parse(text: &str) -> Option<Counts> {
        let line = |label: &str| text.lines().find_map(|line| line.strip_prefix(label));
        let events: Vec<&str> = line("events:")?.split_whitespace().collect();
        let sums: Vec<f64> = line("summary:")?.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        let sum = |event: &str| sums.get(events.iter().position(|name| *name == event)?).copied();
        Some(Counts {
            instructions: sum("Ir")?,
            data_references: sum("Dr")? + sum("Dw")?,
            data_misses: sum("D1mr")? + sum("D1mw")?,
            last_level_misses: sum("ILmr")? + sum("DLmr")? + sum("DLmw")?,
        })
    }

    /// Returns the counts since `before`, per packet.
    pub fn per_packet_since(&self, before: &Counts, packets: f64) -> Counts {
        let per_packet = |count: fn(&Counts) -> f64| (count(self) - count(before)) / packets;
        Counts {
            instructions: per_packet(|counts| counts.instructions),
            data_references: per_packet(|counts| counts.data_references),
            data_misses: per_packet(|counts| counts.data_misses),
            last_level_misses: per_packet(|counts| counts.last_level_misses),
        }
    }
}

/// Results of one run.
pub struct Run {
    /// Counts of the run.
    pub counts: Counts,
    /// Output of the program.
    pub output: String,
}

impl Run {
    /// Runs the first `parts` parts of a load, in the program that handles it.
    pub fn of(load: Load, parts: usize) -> Result<Run, Failure> {
        let this = env::current_exe()?;
        let program = if load.is_naive() { this.with_file_name("naive_cost") } else { this };
        let file = tempfile::NamedTempFile::new()?;
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=cachegrind", "--cache-sim=yes", "--quiet"])
            .args(CACHES)
            .arg(format!("--cachegrind-out-file={}", file.path().display()))
            .arg(program)
            .args(["run", load.name(), &parts.to_string()])
            // The environment is on the stack and shifts the addresses after it.
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        let output = command.output().map_err(|error| format!("valgrind: {error}; 'make cost-test' installs it"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("part {parts} of {} failed: {}", load.name(), said.trim()).into());
        }
        let counts = Counts::parse(&fs::read_to_string(file.path())?).ok_or("cachegrind wrote no summary")?;
        Ok(Run { counts, output: String::from_utf8_lossy(&output.stdout).trim().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "desc: I1 cache: 32768 B\ncmd: run\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw\nfl=a\nfn=b\n\
                        1 2 3\nsummary: 1000 9 8 300 30 20 100 10 5\n";

    #[test]
    fn sums_are_read_by_the_names_of_events() {
        let counts =
            Counts { instructions: 1000.0, data_references: 400.0, data_misses: 40.0, last_level_misses: 33.0 };
        assert_eq!(Counts::parse(TEXT), Some(counts));
        assert_eq!(Counts::parse(&TEXT.replace("DLmw", "other")), None);
        assert_eq!(Counts::parse(&TEXT.replace("summary: 1000", "summary: many")), None);
        assert_eq!(Counts::parse(""), None);
    }

    #[test]
    fn what_came_before_does_not_count() {
        let after = Counts::parse(TEXT).expect("counts");
        let before = Counts { instructions: 200.0, data_misses: 20.0, ..Counts::default() };
        let costs = after.per_packet_since(&before, 4.0);
        assert_eq!((costs.instructions, costs.data_references, costs.data_misses), (200.0, 100.0, 5.0));
    }
}
