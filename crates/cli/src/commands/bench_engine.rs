//! `namehop bench engine`: what packets cost in the forwarding engine, schedule by schedule.

use std::time::Duration;

use clap::Args;
use namehop_bench::counters::{CounterFigures, WhyNot};
use namehop_bench::engine::{EngineBench, EngineBenchError, floor_ns};
use namehop_bench::machine::Machine;
use namehop_bench::memory::{self, DramFigures, MemoryOptions};
use namehop_bench::schedule::{ByPacket, EngineParameters, FloodFigures, FloodParameters, ScheduleFigures, Spread};
use namehop_bench::workload::WorkloadParameters;
use namehop_forward::schedule::ScheduleKind;
use namehop_table::{HugePages, PageKind, table_memory_by_pages};
use namehop_wire::MAX_NAME_COMPONENTS;
use serde::Serialize;

use super::bench_memory::progress_bar;
use crate::failure::Failure;
use crate::output::{self, Align, Table, properties};
use crate::units::parse_duration;

/// Measure what packets cost in the forwarding engine
///
/// Complete frames go from one Ethernet port in memory through a worker of the router to another, with the whole protocol
/// on. Interests that the cache does not answer, those that it answers, and Data are measured separately, in ticks of the
/// time-stamp counter per packet. The schedules differ in how far the engine fetches memory ahead: four are published
/// techniques, 'burst' is what the router uses.
///
/// The published 13,548,815 prefixes take 2 GiB of memory and about half a minute to fill in. Huge pages, when they
/// are reserved, are used; other programs on the machine disturb.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop bench engine
  namehop bench engine --schedule naive,burst --runs 5
  namehop bench engine --fib 1000000 --in-flight 65536 --cs 0 --json
  namehop bench engine --workers 2 --schedule burst
  namehop bench engine --fib 1000000 --flood 0.5")]
pub struct EngineArgs {
    /// Schedules to measure [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    schedule: Vec<ScheduleKind>,
    /// Prefixes in the FIB
    #[arg(long, value_name = "N", default_value_t = 13_548_815, value_parser = clap::value_parser!(u64).range(1..))]
    fib: u64,
    /// Different names that Interests ask for; 0 = never the same again
    #[arg(long, value_name = "N", default_value_t = 0)]
    names: u64,
    /// Components of each name
    #[arg(long, value_name = "N", default_value_t = 7)]
    components: usize,
    /// Bytes of each component
    #[arg(long, value_name = "N", default_value_t = 9)]
    component_bytes: usize,
    /// Components of each prefix in the FIB
    #[arg(long, value_name = "N", default_value_t = 4)]
    prefix_components: usize,
    /// Bytes of content in each Data
    #[arg(long, value_name = "N", default_value_t = 128)]
    payload_bytes: usize,
    /// Pending Interests
    #[arg(long, value_name = "N", default_value_t = 4_096)]
    in_flight: usize,
    /// Packets that the Content Store may hold; 0 = no cache
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    cs: usize,
    /// Share of Interests that the Content Store answers, from 0 to below 1
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    hit_ratio: f64,
    /// Packets that a worker gets at a time, at most 64
    #[arg(long, value_name = "N", default_value_t = 64)]
    burst: usize,
    /// Packets of a group that are looked at together ahead of their turn; the router measures at start how many suit the
    /// machine [default: 8]
    #[arg(long, value_name = "N")]
    lookahead: Option<usize>,
    /// Workers, each on a core of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: usize,
    /// Time for each schedule in each run
    #[arg(long, value_name = "S", default_value = "2s", value_parser = parse_seconds)]
    seconds: Duration,
    /// Runs through all schedules; more than one shows the spread
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: usize,
    /// Measure a flood instead: this share of the packets of every burst, above 0 and below 1, are Interests with random
    /// names that nobody answers, from a face of their own [default schedule: burst]
    #[arg(long, value_name = "SHARE")]
    flood: Option<f64>,
    /// Components of the flood's names
    #[arg(long, value_name = "N", default_value_t = MAX_NAME_COMPONENTS, requires = "flood")]
    flood_components: usize,
    /// Bytes of each component of the flood's names
    #[arg(long, value_name = "N", default_value_t = 9, requires = "flood")]
    flood_component_bytes: usize,
    /// The flood's Interests carry CanBePrefix and have names of any length up to that
    #[arg(long, requires = "flood")]
    flood_can_be_prefix: bool,
    /// Do not measure the memory's rate, which the floor follows from
    #[arg(long)]
    no_floor: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A number of seconds, or a duration with a unit.
fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|error| format!("'{text}': {error}")),
        Err(_) => parse_duration(text),
    }
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    fib_prefixes: u64,
    fib_bytes_per_prefix: f64,
    workers: usize,
    table_pages: Vec<String>,
    dram: Option<DramFigures>,
    schedules: Vec<ScheduleRow>,
    /// Why there is nothing of hardware counters.
    #[serde(skip)]
    no_counters: Option<String>,
}

#[derive(Serialize)]
struct ScheduleRow {
    #[serde(flatten)]
    figures: ScheduleFigures,
    /// Cost of a pair by that of `naive` in the same run; absent when that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pair_vs_naive: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    floor_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    floor_ratio: Option<f64>,
}

/// What a flood does under one schedule.
#[derive(Serialize)]
struct FloodRow {
    schedule: &'static str,
    #[serde(flatten)]
    figures: FloodFigures,
}

impl From<EngineBenchError> for Failure {
    fn from(error: EngineBenchError) -> Self {
        match error {
            EngineBenchError::Flood(_) | EngineBenchError::Workload(_) | EngineBenchError::TooFewCores { .. } => {
                Failure::usage(error)
            }
            _ => Failure::failed(error),
        }
    }
}

impl EngineArgs {
    pub fn run(self) -> Result<(), Failure> {
        let parameters = self.parameters()?;
        HugePages::Auto.use_from_now_on();
        let bar = progress_bar();
        bar.set_length(self.fib);
        bar.set_message("prefixes");
        let bench = EngineBench::new(&parameters, &mut |number| bar.set_position(number))?;
        if let Some(flood) = self.flood() {
            bar.finish_and_clear();
            let figures = bench.run_flood(&parameters, &flood)?;
            let row = |(schedule, figures): (ScheduleKind, _)| FloodRow { schedule: schedule.name(), figures };
            let rows: Vec<_> = figures.into_iter().map(row).collect();
            return if self.json { output::json(&rows) } else { output::print(&describe_flood(&rows)) };
        }
        let total = parameters.schedules.len() * parameters.runs;
        bar.set_length(total as u64);
        let mut done = 0;
        let figures = bench.run(&parameters, &mut |schedule, _| {
            bar.set_position(done);
            bar.set_message(schedule.name());
            done += 1;
        })?;
        bar.set_message("memory");
        let dram = if self.no_floor { None } else { Some(dram_figures()?) };
        bar.finish_and_clear();
        let statistics = bench.fib_statistics();
        let naive = figures.iter().find(|figures| figures.schedule == ScheduleKind::Naive).map(|naive| naive.pair_ns);
        let row = |figures: ScheduleFigures| {
            let floor = dram.as_ref().map(|dram| floor_ns(&figures.lines, dram));
            ScheduleRow {
                pair_vs_naive: naive.map(|naive| figures.pair_ns / naive),
                floor_ns: floor,
                floor_ratio: floor.map(|floor| figures.pair_ns / floor),
                figures,
            }
        };
        if let Some(reason) = bench.why_no_counters().filter(|_| self.json) {
            eprintln!("{reason}");
        }
        let report = Report {
            no_counters: bench.why_no_counters().map(WhyNot::to_string),
            machine: Machine::detect(),
            fib_prefixes: self.fib,
            fib_bytes_per_prefix: statistics.bytes as f64 / self.fib as f64,
            workers: self.workers,
            table_pages: table_memory_by_pages().into_iter().map(|(pages, ..)| pages.to_string()).collect(),
            schedules: figures.into_iter().map(row).collect(),
            dram,
        };
        if self.json { output::json(&report) } else { output::print(&describe(&report)) }
    }

    fn flood(&self) -> Option<FloodParameters> {
        self.flood.map(|share| FloodParameters {
            share,
            components: self.flood_components,
            component_bytes: self.flood_component_bytes,
            can_be_prefix: self.flood_can_be_prefix,
        })
    }

    fn parameters(&self) -> Result<EngineParameters, Failure> {
        if !(0.0..1.0).contains(&self.hit_ratio) {
            return Err(Failure::usage("--hit-ratio is a share from 0 to below 1"));
        }
        if !(1..=64).contains(&self.burst) || self.in_flight < self.burst {
            return Err(Failure::usage("--burst is from 1 to 64, and at most --in-flight"));
        }
        if self.workers == 0 || self.runs == 0 {
            return Err(Failure::usage("--workers and --runs are at least 1"));
        }
        let defaults = EngineParameters::default();
        Ok(EngineParameters {
            schedules: match (&self.schedule[..], self.flood) {
                ([], None) => defaults.schedules.clone(),
                ([], Some(_)) => vec![ScheduleKind::Burst],
                (chosen, _) => chosen.to_vec(),
            },
            workload: WorkloadParameters {
                prefixes: self.fib,
                prefix_components: self.prefix_components,
                components: self.components,
                component_bytes: self.component_bytes,
                ..WorkloadParameters::default()
            },
            names: self.names,
            payload_bytes: self.payload_bytes,
            in_flight: self.in_flight,
            hit_ratio: self.hit_ratio,
            cs_capacity: self.cs,
            burst: self.burst,
            lookahead: self.lookahead,
            workers: self.workers,
            time: self.seconds,
            runs: self.runs,
            ..defaults
        })
    }
}

/// The memory's rate on the largest pages to be had for an area far larger than caches.
fn dram_figures() -> Result<DramFigures, Failure> {
    let options = MemoryOptions::default();
    let kinds = PageKind::ALL.into_iter();
    let figures = kinds.map(|kind| memory::measure_dram(kind, &options, &mut |_| ())).find_map(Result::ok);
    figures
        .map(|(_, figures)| figures)
        .ok_or_else(|| Failure::failed("no memory to measure the memory's rate on; --no-floor does without"))
}

fn describe(report: &Report) -> String {
    let machine = &report.machine;
    let mut text = properties(&[
        (
            "Processor",
            format!("{}, {} cores, {:.2} GHz counter", machine.processor, machine.cores, machine.cycles_hz / 1e9),
        ),
        ("FIB", format!("{} prefixes, {:.1} bytes each", report.fib_prefixes, report.fib_bytes_per_prefix)),
        ("Tables on", report.table_pages.join(", ")),
        ("Workers", report.workers.to_string()),
    ]);
    if let Some(row) = report.schedules.first() {
        let ByPacket { interest_miss, data, .. } = row.figures.lines;
        let floor = row.floor_ns.map_or_else(String::new, |floor| format!(", DRAM floor {floor:.0} ns"));
        text.push_str(&properties(&[(
            "Lines per pair",
            format!("{} (Interest {interest_miss}, Data {data}){floor}", interest_miss + data),
        )]));
    }
    text.push('\n');
    let mut table = Table::new(&[
        ("SCHEDULE", Align::Left),
        ("I-MISS cycles", Align::Right),
        ("I-HIT", Align::Right),
        ("DATA", Align::Right),
        ("PAIR ns", Align::Right),
        ("SPREAD", Align::Right),
        ("VS NAIVE", Align::Right),
        ("VS FLOOR", Align::Right),
        ("Mpps", Align::Right),
    ]);
    let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
    for row in &report.schedules {
        let figures = &row.figures;
        let Spread { least, most } = figures.pair_ns_spread;
        table.row([
            figures.schedule.to_string(),
            format!("{:.0}", figures.imiss_cycles),
            format!("{:.0}", figures.ihit_cycles),
            format!("{:.0}", figures.data_cycles),
            format!("{:.0}", figures.pair_ns),
            format!("{least:.0} to {most:.0}"),
            ratio(row.pair_vs_naive),
            ratio(row.floor_ratio),
            format!("{:.2}", figures.mpps),
        ]);
    }
    text.push_str(&table.render());
    text.push('\n');
    match &report.no_counters {
        Some(reason) => text.push_str(&format!("Without columns of hardware counters: {reason}\n")),
        None => text.push_str(&describe_counters(report)),
    }
    text
}

/// Columns that only some processors count, and how they follow from what was counted.
type Column = (&'static str, fn(&CounterFigures) -> Option<f64>);
const COLUMNS: [Column; 10] = [
    ("CYCLES", |counted| Some(counted.cycles)),
    ("INSTRUCTIONS", |counted| Some(counted.instructions)),
    ("FRONTEND", |counted| Some(counted.stages?.frontend)),
    ("BACKEND", |counted| Some(counted.stages?.backend)),
    ("SPECULATION", |counted| Some(counted.stages?.speculation)),
    ("RETIRING", |counted| Some(counted.stages?.retirement)),
    ("L1", |counted| Some(counted.load_stalls?.l1d)),
    ("L2", |counted| Some(counted.load_stalls?.l2)),
    ("L3", |counted| Some(counted.load_stalls?.l3)),
    ("DRAM", |counted| Some(counted.load_stalls?.dram)),
];

fn describe_counters(report: &Report) -> String {
    let rows = report.schedules.iter().filter_map(|row| Some((row.figures.schedule, row.figures.counters.as_ref()?)));
    let rows = rows.flat_map(|(schedule, counted)| {
        let ByPacket { interest_miss, interest_hit, data } = counted;
        [("I-miss", interest_miss), ("I-hit", interest_hit), ("Data", data)]
            .map(|(kind, counted)| (schedule, kind, counted))
    });
    let rows: Vec<_> = rows.collect();
    let columns = COLUMNS.iter().filter(|(_, of)| rows.iter().any(|(_, _, counted)| of(counted).is_some()));
    let columns: Vec<_> = columns.collect();
    let mut titles = vec![("SCHEDULE", Align::Left), ("PACKET", Align::Left)];
    titles.extend(columns.iter().map(|(title, _)| (*title, Align::Right)));
    let mut table = Table::new(&titles);
    for (schedule, kind, counted) in &rows {
        let figures =
            columns.iter().map(|(_, of)| of(counted).map_or_else(|| "-".to_owned(), |value| format!("{value:.0}")));
        table.row([schedule.to_string(), (*kind).to_owned()].into_iter().chain(figures).collect::<Vec<_>>());
    }
    table.render()
}

fn describe_flood(rows: &[FloodRow]) -> String {
    let mut table = Table::new(&[
        ("SCHEDULE", Align::Left),
        ("I-MISS cycles", Align::Right),
        ("in flood", Align::Right),
        ("DATA", Align::Right),
        ("in flood", Align::Right),
        ("FLOOD", Align::Right),
        ("VS ORDINARY", Align::Right),
        ("FORWARDED", Align::Right),
        ("Mpps", Align::Right),
        ("in flood", Align::Right),
        ("LOST", Align::Right),
        ("SHARE", Align::Right),
        ("LOST/SHARE", Align::Right),
    ]);
    for FloodRow { schedule, figures } in rows {
        table.row([
            (*schedule).to_owned(),
            format!("{:.0}", figures.imiss_cycles.without),
            format!("{:.0}", figures.imiss_cycles.with),
            format!("{:.0}", figures.data_cycles.without),
            format!("{:.0}", figures.data_cycles.with),
            format!("{:.0}", figures.flood_cycles),
            format!("{:.2}", figures.flood_vs_ordinary),
            format!("{:.2}", figures.flood_forwarded),
            format!("{:.2}", figures.ordinary_mpps.without),
            format!("{:.2}", figures.ordinary_mpps.with),
            format!("{:.2}", 1.0 - figures.throughput_ratio),
            format!("{:.2}", figures.flood.share),
            format!("{:.2}", figures.slowdown_vs_share),
        ]);
    }
    table.render()
}
