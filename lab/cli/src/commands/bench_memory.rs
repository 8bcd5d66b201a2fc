//! `namehop bench memory`: measures the speed of this host's memory.

use std::time::Duration;

use clap::Args;
use namehop_bench::memory::{self, MemoryOptions, MemoryReport, PageFigures};

use crate::steps::show;
use namehop_cli::failure::Failure;
use namehop_cli::output::{self, Align, Table, properties};
use namehop_cli::progress::Progress;
use namehop_cli::units::{parse_bytes, parse_duration, show_bytes};

/// Measure DRAM latency and random cache lines per second
///
/// Reads cache lines of an area far larger than any cache in random order, with 1 to 64 lines in flight, on every
/// available kind of page. Reports which kinds are missing and how to get them. Takes about a minute. Other programs on
/// the host, and other virtual machines on the same processor, slow it down.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop bench memory
  namehop bench memory --area 16GiB --time 1s
  namehop bench memory --json > memory.json")]
pub struct MemoryArgs {
    #[command(flatten)]
    memory: MeasuredMemoryArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options of all commands that measure memory.
#[derive(Args, Debug)]
pub struct MeasuredMemoryArgs {
    /// Size of the memory area to measure, rounded down to a power of two [default: 4GiB, or what half of the free
    /// memory allows]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    area: Option<u64>,
    /// Time per figure
    #[arg(long, value_name = "DURATION", default_value = "300ms", value_parser = parse_duration)]
    time: Duration,
}

impl MeasuredMemoryArgs {
    pub fn options(&self) -> Result<MemoryOptions, Failure> {
        let mut options = MemoryOptions { time: self.time, ..MemoryOptions::default() };
        if let Some(bytes) = self.area {
            options.area_bytes = usize::try_from(bytes).map_err(Failure::usage)?;
        }
        Ok(options)
    }
}

impl MemoryArgs {
    pub fn run(self) -> Result<(), Failure> {
        let options = self.memory.options()?;
        let progress = Progress::of_steps();
        let report = memory::measure(&options, &|step| show(&progress, step)).map_err(failure)?;
        drop(progress);
        if self.json { output::json(&report) } else { output::print(&describe(&report)) }
    }
}

pub(super) fn failure(error: memory::MemoryError) -> Failure {
    match error {
        memory::MemoryError::TooSmall | memory::MemoryError::TooLarge { .. } => Failure::usage(error),
        memory::MemoryError::Table(_) => Failure::failed(error),
    }
}

fn millions(rate: f64) -> String {
    format!("{:.1}", rate / 1e6)
}

fn describe(report: &MemoryReport) -> String {
    let machine = &report.machine;
    let cache = machine.last_level_cache_bytes.map_or_else(|| "unknown".to_owned(), show_bytes);
    let mut text = properties(&[
        ("CPU", format!("{}, {} cores, {:.2} GHz counter", machine.processor, machine.cores, machine.cycles_hz / 1e9)),
        ("Last-level cache", cache),
        ("Area", show_bytes(report.area_bytes as u64)),
        ("Sequential reading", format!("{:.1} GB/s, all cores", report.sequential_bytes_per_second / 1e9)),
    ]);
    for figures in &report.by_pages {
        text.push_str(&describe_pages(figures));
    }
    text.push_str("\nEffect of the area's size, on the first kind of pages\n");
    let mut table =
        Table::new(&[("AREA", Align::Right), ("DEPENDENT ns", Align::Right), ("32 IN FLIGHT M/s", Align::Right)]);
    for area in &report.by_area {
        table.row([
            show_bytes(area.area_bytes as u64),
            format!("{:.1}", area.dependent_ns),
            millions(area.lines_per_second),
        ]);
    }
    text.push_str(&table.render());
    if !report.missing.is_empty() {
        text.push_str("\nNot available\n");
        for missing in &report.missing {
            text.push_str(&format!("  {}: {}\n", missing.kind, missing.remedy));
        }
    }
    text
}

fn describe_pages(figures: &PageFigures) -> String {
    let PageFigures { pages, dram, lines_per_second_by_threads } = figures;
    let share = pages.huge_share.map_or_else(String::new, |share| format!(", {:.0}% huge", 100.0 * share));
    let mut text = format!("\n{pages}{share}\n");
    let best = dram.best_lines_per_second();
    text.push_str(&properties(&[
        ("  Dependent access", format!("{:.1} ns", dram.dependent_ns)),
        ("  Best rate", format!("{} million lines/s, {:.2} ns per line", millions(best), dram.floor_ns(1.0))),
        ("  Sufficient", format!("{} lines in flight reach 95% of the best rate", dram.sufficient_in_flight())),
    ]));
    let mut table =
        Table::new(&[("IN FLIGHT", Align::Right), ("CHAINS M/s", Align::Right), ("PREFETCHED M/s", Align::Right)]);
    for rate in &dram.lines_per_second_by_in_flight {
        table.row([
            rate.in_flight.to_string(),
            millions(rate.chains_lines_per_second),
            millions(rate.sweep_lines_per_second),
        ]);
    }
    text.push_str(&table.render());
    for rate in lines_per_second_by_threads.iter().filter(|rate| rate.threads > 1) {
        let all = millions(rate.lines_per_second);
        text.push_str(&format!("  {} threads in total: {all} million lines/s\n", rate.threads));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_area_is_measured_and_described() {
        let options = MemoryOptions { area_bytes: 2 << 20, time: Duration::from_millis(1) };
        let report = memory::measure(&options, &|_| ()).expect("memory");
        let text = describe(&report);
        for part in ["CPU", "Area                2.0 MiB", "IN FLIGHT", "Dependent access", "ordinary pages"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }
}
