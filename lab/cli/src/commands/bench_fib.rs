//! `namehop bench fib`: measures loading, memory and lookups of a large FIB.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use namehop_bench::fib::{Effort, FibOptions, FibReport, measure};
use namehop_bench::workload::WorkloadParameters;
use namehop_table::HugePages;

use crate::steps::show;
use namehop_cli::failure::Failure;
use namehop_cli::output::{self, properties};
use namehop_cli::progress::Progress;
use namehop_cli::units::parse_duration;

/// Load a large FIB and look up names in it
///
/// Generates the prefixes, adds them from memory, a text file or a snapshot, and reports times, memory and the cost of
/// a lookup. Missing files are created first. Needs 90 bytes of memory per prefix.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop bench fib --fib 1000000
  namehop bench fib --text /var/tmp/fib.txt --snapshot /var/tmp/fib.snapshot --json
  namehop bench fib --fib 100000000 --snapshot /var/tmp/large.snapshot")]
pub struct FibBenchArgs {
    /// Prefixes in the FIB
    #[arg(long, value_name = "N", default_value_t = WorkloadParameters::default().prefixes)]
    fib: u64,
    /// Components per prefix
    #[arg(long, value_name = "N", default_value_t = WorkloadParameters::default().prefix_components)]
    prefix_components: usize,
    /// Components of the names to look up
    #[arg(long, value_name = "N", default_value_t = WorkloadParameters::default().components)]
    components: usize,
    /// Bytes per component
    #[arg(long, value_name = "N", default_value_t = WorkloadParameters::default().component_bytes)]
    component_bytes: usize,
    /// Text file to load from
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Snapshot to load from
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Time per lookup measurement
    #[arg(short = 'd', long, value_name = "DURATION", default_value = "3s", value_parser = parse_duration)]
    duration: Duration,
    /// Also change a strategy and grow the table, and report how long other changes are blocked
    #[arg(long)]
    grow: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl FibBenchArgs {
    pub fn run(self) -> Result<(), Failure> {
        let workload = WorkloadParameters {
            prefixes: self.fib,
            prefix_components: self.prefix_components,
            components: self.components,
            component_bytes: self.component_bytes,
            ..WorkloadParameters::default()
        };
        let options = FibOptions {
            workload,
            text: self.text,
            snapshot: self.snapshot,
            lookup_time: self.duration,
            grow: self.grow,
        };
        // As in a router with the default configuration.
        HugePages::Auto.use_from_now_on();
        let progress = Progress::of_steps();
        let report = measure(&options, &|step| show(&progress, step)).map_err(Failure::failed)?;
        drop(progress);
        if self.json { output::json(&report) } else { output::print(&describe(&report)) }
    }
}

fn describe(report: &FibReport) -> String {
    let shape = &report.workload;
    let mut pairs = vec![(
        "Prefixes",
        format!("{} of {} components of {} bytes", shape.prefixes, shape.prefix_components, shape.component_bytes),
    )];
    if let Some(load) = report.load_average {
        pairs.push(("Load average", format!("{load:.1} at start")));
    }
    let efforts = [
        ("From text", &report.text),
        ("From memory", &report.memory),
        ("Saving", &report.save),
        ("From snapshot", &report.snapshot),
    ];
    pairs.extend(efforts.into_iter().filter_map(|(what, effort)| Some((what, show_effort(effort.as_ref()?)))));
    let resident = report.resident_bytes_per_prefix.map(|bytes| format!(", {bytes:.1} in the process"));
    let huge = report.huge_pages.map(|share| format!(", {:.0} % on huge pages", 100.0 * share));
    let (resident, huge) = (resident.unwrap_or_default(), huge.unwrap_or_default());
    pairs.push(("Memory", format!("{:.1} bytes per prefix{resident}{huge}", report.bytes_per_prefix)));
    pairs.push(("Buckets", format!("{:.1} % overflow", 100.0 * report.overflow)));
    let lookup = &report.lookup;
    pairs.push((
        "Lookup",
        format!("{:.0} ns one at a time, {:.0} ns in groups with prefetching", lookup.plain_ns, lookup.prefetched_ns),
    ));
    if let Some(strategy) = &report.strategy {
        pairs.push((
            "Strategy",
            format!("in effect after {:.0} ms, longest step {:.2} ms", strategy.total_ms, strategy.longest_ms),
        ));
    }
    if let Some(growth) = &report.growth {
        pairs.push((
            "Growth",
            format!(
                "{:.0} ms for {} prefixes, longest insertion {:.2} ms, {:.1} ms to free the old buckets",
                growth.total_ms, growth.prefixes, growth.longest_ms, growth.reclaim_ms
            ),
        ));
    }
    properties(&pairs)
}

fn show_effort(effort: &Effort) -> String {
    let size = effort.file_bytes.map(|bytes| format!(", {:.0} MB", bytes as f64 / 1e6)).unwrap_or_default();
    format!("{:.2} s, {:.2} s of CPU time{size}", effort.wall_s, effort.cpu_s)
}
