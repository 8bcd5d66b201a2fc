//! Measures the cost of packets in the forwarding engine in instructions and simulated cache misses, and compares it
//! with recorded costs.
//!
//! Times depend on the host and on its other load; these counts depend only on the program, so that a test can check
//! them. `make cost-test` compares, `make cost-record` records new costs. The program runs itself in valgrind's
//! cachegrind: once with a fixed load up to some point, and once up to a later point. The difference is the cost of the
//! packets in between, without the preparation.
//!
//! This program handles bursts as a router does and contains no other order of the engine's steps, because the compiler
//! would inline less of the router's. The loads without prefetching run in a program of their own, `naive_cost`.
//!
//! | file | what |
//! |---|---|
//! | `load` | the fixed load: the order of packets |
//! | `packets` | the packets |
//! | `cachegrind` | running and reading cachegrind |
//! | `record` | the recorded costs, and what counts as growth |
#![forbid(unsafe_code)]

mod cachegrind;
mod load;
mod packets;
mod record;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::{env, fs, thread};

use cachegrind::{Counts, Run};
use load::{Load, PACKETS};
use namehop_engine::Engine;
use record::{Build, Record};

/// File with the recorded costs.
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/packet-costs.toml");
const USAGE: &str = "usage: packet_cost test|record, or packet_cost run LOAD PARTS (in valgrind)";

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["run", load, parts] => Load::run(load, parts, Engine::process),
        ["test"] => compare(),
        ["record"] => measure().and_then(|record| Ok(fs::write(RECORD, record.to_string())?)),
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("packet_cost: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compare() -> Result<(), Failure> {
    let recorded = Record::parse(&fs::read_to_string(Path::new(RECORD))?)?;
    let now = measure()?;
    let comparison = recorded.compare(&now)?;
    print!("{comparison}");
    match comparison.growth() {
        0 => Ok(()),
        grown => Err(format!(
            "{grown} counts grew by more than {:.0} %; to accept the new counts, run 'make cost-record'",
            record::TOLERANCE * 100.0
        )
        .into()),
    }
}

/// Measures all loads. They run in parallel, which does not change their counts.
fn measure() -> Result<Record, Failure> {
    let results = thread::scope(|scope| {
        let threads = Load::ALL.map(|load| (load, scope.spawn(move || costs(load))));
        threads.map(|(load, thread)| {
            let result = thread.join().unwrap_or_else(|_| Err("a thread panicked".into()));
            result.map(|(costs, lanes)| (load.name().to_owned(), costs, lanes))
        })
    });
    let mut lanes = String::new();
    let mut costs = BTreeMap::new();
    for result in results {
        let (load, of_load, its_lanes) = result?;
        costs.insert(load, of_load);
        lanes = its_lanes;
    }
    Ok(Record { build: Build { rustc: version("rustc")?, valgrind: version("valgrind")?, lanes }, costs })
}

/// Returns the counts per packet for each kind of packet of a load, and the SIMD lanes used to hash names.
fn costs(load: Load) -> Result<(BTreeMap<String, Counts>, String), Failure> {
    let mut lanes = String::new();
    let mut costs = BTreeMap::new();
    for (index, kind) in load.kinds().iter().enumerate() {
        // Each kind has two parts: making the packets, and handling them.
        let before = Run::of(load, 2 * index + 1)?;
        let after = Run::of(load, 2 * index + 2)?;
        costs.insert(kind.name().to_owned(), after.counts.per_packet_since(&before.counts, PACKETS as f64));
        lanes = after.output;
    }
    Ok((costs, lanes))
}

/// Returns the version line that a program prints.
fn version(program: &str) -> Result<String, Failure> {
    let output = Command::new(program).arg("--version").output().map_err(|error| format!("{program}: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
