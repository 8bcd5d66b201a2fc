//! `namehop bench engine`: what packets cost in the forwarding engine, schedule by schedule.

mod division;
mod policies;
mod tables;

use std::time::Duration;

use clap::{Args, ValueEnum};
use namehop_bench::counters::CountersUnavailable;
use namehop_bench::engine::{EngineBench, EngineBenchError, floor_ns};
use namehop_bench::machine::Machine;
use namehop_bench::memory::{self, DramFigures, MemoryOptions};
use namehop_bench::policy::PolicyParameters;
use namehop_bench::progress::OnProgress;
use namehop_bench::schedule::{EngineParameters, FloodFigures, FloodParameters, ScheduleFigures};
use namehop_bench::workload::WorkloadParameters;
use namehop_forward::schedule::{ScheduleKind, UnknownSchedule};
use namehop_simulate::workload::{WorkloadKind, WorkloadShape};
use namehop_table::{HugePages, PageKind, table_memory_by_pages};
use namehop_wire::MAX_NAME_COMPONENTS;
use serde::Serialize;

use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::units::parse_seconds;
use tables::{describe, describe_flood};

/// Measure what packets cost in the forwarding engine
///
/// Complete frames go from one Ethernet port in memory through a worker of the router to another, with the whole protocol
/// on. The schedules differ in how far the engine fetches memory ahead: most are published techniques, 'burst' is what the
/// router uses. EXCHANGE is what an Interest and its Data cost together, all time by all Data; beside it stands what Interests
/// that the cache does not answer, those that it answers, and Data cost, in ticks of the time-stamp counter per packet.
///
/// The load is what a router on a fast link meets: prefixes of 2 to 6 components, a million pending Interests, a cache of four
/// million packets, Data that comes back in another order, packets that are not in the core's own caches, eight faces, both
/// kinds of packets in each burst, and one Interest in a hundred without answer. '--load published' is the load of the
/// publications that other routers are compared with.
///
/// The 13,548,815 prefixes and the cache take 5 GiB of memory; before each run, packets pass for as long as an Interest is pending
/// at most. In a run, the schedules take turns of 25 ms over the same tables, so that a machine that is faster at one time than at
/// another is so for all of them. Huge pages, when they are reserved, are used; other programs on the machine disturb.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop bench engine
  namehop bench engine --schedule all
  namehop bench engine --schedule naive,burst --runs 5
  namehop bench engine --burst 4 --payload-bytes 1000
  namehop bench engine --load published --runs 5
  namehop bench engine --load published --cs 0 --computing
  namehop bench engine --workers 2 --schedule burst
  namehop bench engine --workers 2 --misplaced 0,0.5 --load published
  namehop bench engine --stripped --runs 5
  namehop bench engine --fib 1000000 --flood 0.5
  namehop bench engine --workload web
  namehop bench engine --workload web --policy fifo,filter,arc --blocks --fib 1000000")]
pub struct EngineArgs {
    /// Load to measure with [default: realistic; published with --flood and --workload]
    #[arg(long, value_enum, value_name = "LOAD")]
    load: Option<LoadKind>,
    /// Schedules to measure, or 'all' with all variants [default: naive, bucket-prefetch,
    /// pre-hash, speculative, speculative-pairs, burst]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_schedule)]
    schedule: Vec<Chosen>,
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
    /// Components of prefixes in the FIB, on average
    #[arg(long, value_name = "N", default_value_t = 4)]
    prefix_components: usize,
    /// Prefixes have up to so many components less or more than that [default: 2, published 0]
    #[arg(long, value_name = "N")]
    prefix_spread: Option<usize>,
    /// Bytes of content in each Data [default: 128, 1024 with --workload]
    #[arg(long, value_name = "N")]
    payload_bytes: Option<usize>,
    /// Data comes back without the PIT token that the Interest had
    #[arg(long)]
    data_without_token: bool,
    /// Pending Interests [default: 1000000, published 4096]
    #[arg(long, value_name = "N")]
    in_flight: Option<usize>,
    /// Packets that the Content Store may hold; 0 = no cache [default: 4194304, fewer of those
    /// with more than 512 bytes of content: as many as take 2 GiB; published 65536, 100000 with --workload]
    #[arg(long, value_name = "N")]
    cs: Option<usize>,
    /// Share of Interests that the Content Store answers, from 0 to below 1
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    hit_ratio: f64,
    /// Share of Interests that nobody answers, from 0 to below 1 [default: 0.01, published 0]
    #[arg(long, value_name = "X")]
    unanswered: Option<f64>,
    /// Packets that a worker gets at a time, at most 64
    #[arg(long, value_name = "N", default_value_t = 64)]
    burst: usize,
    /// Packets of a group that are looked at together ahead of their turn; the router measures at start how many suit the
    /// machine [default: 32]
    #[arg(long, value_name = "N")]
    lookahead: Option<usize>,
    /// Workers, each on a core of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: usize,
    /// Divide names among the workers, as the router does, and measure what they hand to each other: with these shares of packets
    /// coming in at another worker than the one they belong to, each from 0 to 1. One worker is measured for comparison. Peers and
    /// faces are simpler than otherwise: over rings as those of sockets, and played by the threads of the workers, untimed
    #[arg(long, value_name = "SHARES", value_delimiter = ',', conflicts_with_all = ["flood", "stripped", "computing", "schedule"])]
    misplaced: Vec<f64>,
    /// Time for each schedule in each run
    #[arg(long, value_name = "S", default_value = "2s", value_parser = parse_seconds)]
    seconds: Duration,
    /// Runs through all schedules; more than one shows the spread
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: usize,
    /// Measure each schedule also on the path that publications have measured, and print what the whole protocol costs in
    /// comparison
    ///
    /// That path looks up Content Store, PIT and FIB by name, sends Interests to the first next hop and Data to the faces
    /// that asked. Left out are NDNLPv2 headers and PIT tokens, strategies, timers, nonces and the dead nonce list,
    /// CanBePrefix, MustBeFresh, forwarding hints, HopLimits and scopes. It is no mode of the router: only this measurement
    /// has it.
    #[arg(long, conflicts_with = "flood")]
    stripped: bool,
    /// Measure each schedule also with tables so small that they stay in the core's caches, and print how much of its cost is
    /// computing, and how much is waiting for memory
    #[arg(long, conflicts_with = "flood")]
    computing: bool,
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
    /// Measure cache policies instead: requests for what this workload asks for (web, video or mixed), of which the Content Store
    /// answers what its policy has kept. What it cannot answer is fetched from a producer. Each policy has tables of its own; after
    /// their caches have filled up, policies take turns of 25 ms
    #[arg(long, value_name = "NAME", conflicts_with_all = [
        "flood", "stripped", "computing", "schedule", "misplaced", "workers", "names", "hit_ratio", "unanswered",
        "data_without_token", "load",
    ])]
    workload: Option<WorkloadKind>,
    /// Policies, or 'all'; others are compared with the first [default: fifo, the router's default, and those of the publications]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = policies::parse, requires = "workload")]
    policy: Vec<policies::Chosen>,
    /// Objects of the web workload
    #[arg(long, value_name = "N", requires = "workload", value_parser = clap::value_parser!(u64).range(1..))]
    objects: Option<u64>,
    /// Requests with each policy before anything is measured; they have to fill its cache [default: 60 for each packet that the
    /// Content Store may hold]
    #[arg(long, value_name = "N", requires = "workload")]
    warm_up: Option<u64>,
    /// Also time the blocks of the published flow of packets with each policy, on the path of the publications
    #[arg(long, requires = "workload")]
    blocks: bool,
    /// Do not measure the memory's rate, which the floor follows from
    #[arg(long)]
    no_floor: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A load by name.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum LoadKind {
    /// What a router on a fast link meets
    Realistic,
    /// That of the publications: prefixes of 4 components, few Interests pending and a small cache, bursts of one kind, packets
    /// in the core's own caches
    Published,
}

/// One schedule or all.
#[derive(Debug, Clone, Copy)]
enum Chosen {
    All,
    One(ScheduleKind),
}

fn parse_schedule(text: &str) -> Result<Chosen, UnknownSchedule> {
    if text.eq_ignore_ascii_case("all") { Ok(Chosen::All) } else { text.parse().map(Chosen::One) }
}

/// Requests of the warm-up of policies, for each packet of the cache: one in forty enters with policies that let in the least.
const WARM_UP_PER_PACKET: u64 = 60;
/// Memory for cached Data of the realistic load.
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
    /// FIB, entries and cached packets of one worker.
    table_bytes: usize,
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
    /// Cost of an exchange by that of `naive`; absent when that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange_vs_naive: Option<f64>,
    /// The same by the cheapest of the published schedules that were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange_vs_best_published: Option<f64>,
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
        let progress = Progress::of_steps();
        let on_progress = |step| progress.show(step);
        let bench = EngineBench::new(&parameters, &on_progress)?;
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
            let figures = bench.run_flood(&parameters, &flood, &on_progress)?;
            drop(progress);
            let row = |(schedule, figures): (ScheduleKind, _)| FloodRow { schedule: schedule.name(), figures };
            let rows: Vec<_> = figures.into_iter().map(row).collect();
            return if self.json { output::json(&rows) } else { output::print(&describe_flood(&rows)) };
        }
        let figures = bench.run(&parameters, &on_progress)?;
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

    /// What to measure of policies, if that is to be done.
    fn of_policies(&self, parameters: &EngineParameters) -> Option<PolicyParameters> {
        let published = WorkloadShape::published(self.workload?);
        Some(PolicyParameters {
            policies: policies::chosen(&self.policy),
            shape: WorkloadShape { objects: self.objects.unwrap_or(published.objects), ..published },
            warm_up: self.warm_up.unwrap_or(WARM_UP_PER_PACKET * parameters.cs_capacity as u64),
            // One long run is the same as several in a row.
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
            return Err(Failure::usage("--hit-ratio is a share from 0 to below 1"));
        }
        if self.misplaced.iter().any(|share| !(0.0..=1.0).contains(share)) {
            return Err(Failure::usage("--misplaced are shares from 0 to 1"));
        }
        if !(1..=64).contains(&self.burst) {
            return Err(Failure::usage("--burst is from 1 to 64"));
        }
        if self.workers == 0 || self.runs == 0 {
            return Err(Failure::usage("--workers and --runs are at least 1"));
        }
        let defaults = match self.load_kind() {
            LoadKind::Realistic => EngineParameters::realistic(),
            LoadKind::Published => EngineParameters::published(),
        };
        let in_flight = self.in_flight.unwrap_or(defaults.in_flight);
        if in_flight < self.burst {
            return Err(Failure::usage("--in-flight is at least --burst"));
        }
        let unanswered = self.unanswered.unwrap_or(defaults.unanswered);
        if !(0.0..1.0).contains(&unanswered) {
            return Err(Failure::usage("--unanswered is a share from 0 to below 1"));
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
                prefix_spread: self.prefix_spread.unwrap_or(defaults.workload.prefix_spread),
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

/// The memory's rate on the largest pages to be had for an area far larger than caches.
fn dram_figures(on_progress: &OnProgress<'_>) -> Result<DramFigures, Failure> {
    let options = MemoryOptions::default();
    let kinds = PageKind::ALL.into_iter();
    let figures = kinds.map(|kind| memory::measure_dram(kind, &options, on_progress)).find_map(Result::ok);
    figures
        .map(|(_, figures)| figures)
        .ok_or_else(|| Failure::failed("no memory to measure the memory's rate on; --no-floor does without"))
}
