//! `namehop bench engine`: measures the cost of packets in the forwarding engine, by schedule.

mod arguments;
mod division;
mod policies;
mod tables;

use namehop_bench::counters::CountersUnavailable;
use namehop_bench::engine::{EngineBench, EngineBenchError, floor_ns};
use namehop_bench::machine::Machine;
use namehop_bench::memory::{self, DramFigures, MemoryOptions};
use namehop_bench::policy::PolicyParameters;
use namehop_bench::progress::OnProgress;
use namehop_bench::schedule::{EngineParameters, FloodFigures, FloodParameters, ScheduleFigures};
use namehop_bench::workload::WorkloadParameters;
use namehop_orders::ScheduleKind;
use namehop_table::{HugePages, PageKind, table_memory_by_pages};
use namehop_traffic::workload::WorkloadShape;
use serde::Serialize;

use crate::steps::show;
pub use arguments::EngineArgs;
use arguments::{Chosen, LoadKind};
use namehop_cli::failure::Failure;
use namehop_cli::output;
use namehop_cli::progress::Progress;
use tables::{describe, describe_flood};

/// Warm-up requests per packet of the cache: the policies that admit the least insert one in forty.
const WARM_UP_PER_PACKET: u64 = 60;
/// Memory for cached Data in the realistic load, in bytes.
const CACHE_BYTES: usize = 2 << 30;

#[derive(Serialize)]
struct Report {
    machine: Machine,
    fib_prefixes: u64,
    fib_bytes_per_prefix: f64,
    lookups_per_match: f64,
    load: &'static str,
    workers: usize,
    table_pages: Vec<String>,
    /// Size of FIB, entries and cached packets of one worker.
    table_bytes: usize,
    dram: Option<DramFigures>,
    schedules: Vec<ScheduleRow>,
    /// Reason why hardware counters are not available.
    #[serde(skip)]
    no_counters: Option<String>,
}

#[derive(Serialize)]
struct ScheduleRow {
    #[serde(flatten)]
    figures: ScheduleFigures,
    /// Cost of an exchange relative to `naive`; absent if `naive` was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange_vs_naive: Option<f64>,
    /// Cost of an exchange relative to the cheapest published schedule that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange_vs_best_published: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    floor_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    floor_ratio: Option<f64>,
}

/// Result of a flood under one schedule.
#[derive(Serialize)]
struct FloodRow {
    schedule: &'static str,
    #[serde(flatten)]
    figures: FloodFigures,
}

pub(super) fn failure(error: EngineBenchError) -> Failure {
    match error {
        EngineBenchError::Flood(_) | EngineBenchError::Workload(_) | EngineBenchError::TooFewCores { .. } => {
            Failure::usage(error)
        }
        _ => Failure::failed(error),
    }
}

impl EngineArgs {
    pub fn run(self) -> Result<(), Failure> {
        let parameters = self.parameters()?;
        HugePages::Auto.use_from_now_on();
        let progress = Progress::of_steps();
        let on_progress = |step| show(&progress, step);
        let bench = EngineBench::new(&parameters, &on_progress).map_err(failure)?;
        if let Some(of) = self.of_policies(&parameters) {
            let report = policies::measure(&bench, &parameters, &of, self.blocks, &on_progress)?;
            drop(progress);
            return policies::show(&report, self.json);
        }
        if !self.misplaced.is_empty() {
            let rows = division::measure(&bench, &parameters, &self.misplaced, &on_progress)?;
            drop(progress);
            return division::show(&rows, self.json);
        }
        if let Some(flood) = self.flood() {
            let figures = bench.run_flood(&parameters, &flood, &on_progress).map_err(failure)?;
            drop(progress);
            let row = |(schedule, figures): (ScheduleKind, _)| FloodRow { schedule: schedule.name(), figures };
            let rows: Vec<_> = figures.into_iter().map(row).collect();
            return if self.json { output::json(&rows) } else { output::print(&describe_flood(&rows)) };
        }
        let figures = bench.run(&parameters, &on_progress).map_err(failure)?;
        let dram = if self.no_floor { None } else { Some(dram_figures(&on_progress)?) };
        drop(progress);
        let statistics = bench.fib_statistics();
        let exchange_of = |figures: &ScheduleFigures| figures.exchange_ns;
        let naive = figures.iter().find(|figures| figures.schedule == ScheduleKind::Naive).map(exchange_of);
        let published = figures.iter().filter(|figures| figures.schedule.is_published()).map(exchange_of);
        let best = published.min_by(f64::total_cmp);
        let row = |figures: ScheduleFigures| {
            let floor = dram.as_ref().filter(|_| figures.lines_are_clear).map(|dram| floor_ns(&figures.lines, dram));
            ScheduleRow {
                exchange_vs_naive: naive.map(|naive| figures.exchange_ns / naive),
                exchange_vs_best_published: best.map(|best| figures.exchange_ns / best),
                floor_ns: floor,
                floor_ratio: floor.map(|floor| figures.exchange_ns / floor),
                figures,
            }
        };
        if let Some(reason) = bench.counters_unavailable().filter(|_| self.json) {
            eprintln!("{reason}");
        }
        let report = Report {
            no_counters: bench.counters_unavailable().map(CountersUnavailable::to_string),
            machine: Machine::detect(),
            fib_prefixes: self.fib,
            fib_bytes_per_prefix: statistics.bytes as f64 / self.fib as f64,
            lookups_per_match: bench.lookups_per_match(),
            table_bytes: bench.table_bytes(&parameters),
            load: match self.load_kind() {
                LoadKind::Realistic => "realistic",
                LoadKind::Published => "published",
            },
            workers: self.workers,
            table_pages: table_memory_by_pages().into_iter().map(|(pages, ..)| pages.to_string()).collect(),
            schedules: figures.into_iter().map(row).collect(),
            dram,
        };
        if self.json { output::json(&report) } else { output::print(&describe(&report)) }
    }

    /// Returns the parameters for measuring policies; `None` if they are not requested.
    fn of_policies(&self, parameters: &EngineParameters) -> Option<PolicyParameters> {
        let published = WorkloadShape::published(self.workload?);
        let warm_up = self.warm_up.unwrap_or(WARM_UP_PER_PACKET * parameters.cs_capacity as u64);
        Some(PolicyParameters {
            policies: policies::chosen(&self.policy),
            shape: WorkloadShape { objects: self.objects.unwrap_or(published.objects), ..published },
            warm_up,
            longest_warm_up: warm_up,
            // One long run is equivalent to several runs in a row.
            time: self.seconds * u32::try_from(self.runs).unwrap_or(u32::MAX),
            runs: 1,
        })
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
            return Err(Failure::usage("--hit-ratio must be at least 0 and below 1"));
        }
        if self.misplaced.iter().any(|share| !(0.0..=1.0).contains(share)) {
            return Err(Failure::usage("--misplaced must be shares from 0 to 1"));
        }
        if !(1..=64).contains(&self.burst) {
            return Err(Failure::usage("--burst must be from 1 to 64"));
        }
        if self.workers == 0 || self.runs == 0 {
            return Err(Failure::usage("--workers and --runs must be at least 1"));
        }
        let defaults = match self.load_kind() {
            LoadKind::Realistic => EngineParameters::realistic(),
            LoadKind::Published => EngineParameters::published(),
        };
        let in_flight = self.in_flight.unwrap_or(defaults.in_flight);
        if in_flight < self.burst {
            return Err(Failure::usage("--in-flight must be at least --burst"));
        }
        let unanswered = self.unanswered.unwrap_or(defaults.unanswered);
        if !(0.0..1.0).contains(&unanswered) {
            return Err(Failure::usage("--unanswered must be at least 0 and below 1"));
        }
        let published = PolicyParameters::published_load();
        let (payload_bytes, cs_capacity) = match self.workload {
            Some(_) => (published.payload_bytes, published.cs_capacity),
            None => (defaults.payload_bytes, defaults.cs_capacity),
        };
        let payload_bytes = self.payload_bytes.unwrap_or(payload_bytes);
        let cs_capacity = cs_capacity.min(CACHE_BYTES / payload_bytes.max(1));
        Ok(EngineParameters {
            schedules: self.schedules(&defaults.schedules),
            workload: WorkloadParameters {
                prefixes: self.fib,
                prefix_components: self.prefix_components,
                prefix_spread: self.prefix_spread,
                components: self.components,
                component_bytes: self.component_bytes,
                ..WorkloadParameters::default()
            },
            names: self.names,
            payload_bytes,
            data_has_token: !self.data_without_token,
            in_flight,
            hit_ratio: self.hit_ratio,
            unanswered,
            cs_capacity: self.cs.unwrap_or(cs_capacity),
            burst: self.burst,
            lookahead: self.lookahead,
            workers: self.workers,
            time: self.seconds,
            runs: self.runs,
            stripped: self.stripped,
            computing: self.computing,
            ..defaults
        })
    }

    fn load_kind(&self) -> LoadKind {
        let is_published = self.flood.is_some() || self.workload.is_some();
        let default = if is_published { LoadKind::Published } else { LoadKind::Realistic };
        self.load.unwrap_or(default)
    }

    fn schedules(&self, default: &[ScheduleKind]) -> Vec<ScheduleKind> {
        let all = |chosen: &Chosen| match chosen {
            Chosen::All => ScheduleKind::ALL.to_vec(),
            Chosen::One(schedule) => vec![*schedule],
        };
        match (&self.schedule[..], self.flood) {
            ([], None) => default.to_vec(),
            ([], Some(_)) => vec![ScheduleKind::Burst],
            (chosen, _) => {
                let mut schedules: Vec<_> = chosen.iter().flat_map(all).collect();
                let mut seen = Vec::new();
                schedules.retain(|schedule| {
                    let is_new = !seen.contains(schedule);
                    seen.push(*schedule);
                    is_new
                });
                schedules
            }
        }
    }
}

/// Measures the rate of memory on the largest available pages, in an area far larger than the caches.
fn dram_figures(on_progress: &OnProgress<'_>) -> Result<DramFigures, Failure> {
    let options = MemoryOptions::default();
    let kinds = PageKind::ALL.into_iter();
    let figures = kinds.map(|kind| memory::measure_dram(kind, &options, on_progress)).find_map(Result::ok);
    figures.map(|(_, figures)| figures).ok_or_else(|| {
        Failure::failed("not enough free memory to measure the DRAM rate; --no-floor skips this measurement")
    })
}
