//! `namehop cache simulate`: runs cache policies on the requests of a workload or a trace.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread;

use clap::{Args, ValueEnum};
use namehop_simulate::optimum::optimum;
use namehop_simulate::policy::SimulatedPolicy;
use namehop_simulate::run::{Outcome, Plan, Source, run};
use namehop_simulate::store::{Counts, SimulatedStore, store};
use namehop_simulate::trace::{Trace, TraceFormat};
use namehop_store::PolicyKind;
use namehop_traffic::workload::{Workload, WorkloadKind, WorkloadShape};
use serde::Serialize;

use namehop_cli::failure::Failure;
use namehop_cli::output::{self, Align, Table};
use namehop_cli::progress::Progress;

/// Default number of requests of a workload; half of them warm the caches up.
const REQUESTS: u64 = 20_000_000;
/// Maximum number of requests with `--optimum`: they are kept in memory, some hundred bytes each.
const MOST_IN_MEMORY: u64 = 100_000_000;
/// Number of requests read at a time.
const CHUNK: usize = 1 << 16;
/// Progress bar of a simulation.
const BAR: &str = "{spinner} {elapsed} {msg} {wide_bar} {percent}%";

/// A number of packets, or a share of the packets that can be requested.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Capacity {
    Packets(usize),
    Percent(f64),
}

impl FromStr for Capacity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_suffix('%') {
            None => text.parse().map(Capacity::Packets).map_err(|error: ParseIntError| error.to_string()),
            Some(percent) => match percent.parse() {
                Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Capacity::Percent(percent)),
                _ => Err("a percentage must be above 0 and at most 100".to_owned()),
            },
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatArg {
    /// One name per line
    Lines,
    /// Binary records of libCacheSim, 24 bytes each
    OracleGeneral,
}

/// Simulate caches of several policies and sizes with the requests of a workload or a file
///
/// The policies are the router's own, and 'perfect-lfu', which counts all names ever requested. All of them see the
/// same requests in one pass, on all cores. Prints the share of requests that each cache answers, the share of missed
/// packets that it admits, and the time per request. A policy can have settings, as in filter:threshold=3.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop cache simulate --workload web --capacity 100000
  namehop cache simulate --workload mixed --capacity 1%,2%,5%,10% --policy fifo,filter,arc --json
  namehop cache simulate --trace requests.txt --capacity 1000 --policy lru,s3-fifo:small=0.2 --optimum
  namehop cache simulate --trace cdn.oracleGeneral.zst --capacity 100000 --warm-up 1000000")]
pub struct SimulateArgs {
    /// Policies, with settings if any; 'perfect-lfu', too, which no router has [default: all of the router]
    #[arg(short, long, value_name = "LIST", value_delimiter = ',')]
    policy: Vec<SimulatedPolicy>,
    /// Workload that generates the requests: web, video, mixed, lossy, flash
    #[arg(long, value_name = "NAME", required_unless_present = "trace", conflicts_with = "trace")]
    workload: Option<WorkloadKind>,
    /// File with the requests, optionally compressed with zstd
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Format of the file [default: oracle-general if its name contains oracleGeneral, otherwise lines]
    #[arg(long, value_name = "FORMAT", value_enum, requires = "trace")]
    format: Option<FormatArg>,
    /// Capacity of the cache in packets, or as a percentage of the packets that a workload can request, as in 1%
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', required = true)]
    capacity: Vec<Capacity>,
    /// Maximum number of requests [default: 20 million of a workload, all of a file]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Requests at the start that do not count [default: half of a workload, none of a file]
    #[arg(long, value_name = "N")]
    warm_up: Option<u64>,
    /// Number of objects of the web workload; the number of videos is fixed
    #[arg(long, value_name = "N", requires = "workload", value_parser = clap::value_parser!(u64).range(1..))]
    objects: Option<u64>,
    /// Exponent of popularity, from 0 (uniform) to 5
    #[arg(long, value_name = "ALPHA", requires = "workload", value_parser = parse_alpha)]
    alpha: Option<f64>,
    /// Seed of the workload's requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of threads [default: the number of cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Also compute the optimum that no policy can exceed; keeps the requests in memory
    #[arg(long)]
    optimum: bool,
    /// Write a line per request, with 1 for each cache that answers it and 0 for each other one
    #[arg(long, value_name = "FILE")]
    hits: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn parse_alpha(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|alpha| (0.0..=5.0).contains(alpha)).ok_or_else(|| "must be from 0 to 5".to_owned())
}

/// Report to print.
#[derive(Serialize)]
struct Report {
    source: String,
    warm_up: u64,
    caches: Vec<Cache>,
}

#[derive(Serialize)]
struct Cache {
    policy: String,
    capacity_packets: usize,
    hit_rate: f64,
    insertion_rate: f64,
    ns_per_request: Option<f64>,
    #[serde(flatten)]
    counts: Counts,
}

impl Cache {
    fn new(policy: String, capacity_packets: usize, counts: Counts, ns_per_request: Option<f64>) -> Self {
        let (hit_rate, insertion_rate) = (counts.hit_rate(), counts.insertion_rate());
        Cache { policy, capacity_packets, hit_rate, insertion_rate, ns_per_request, counts }
    }
}

impl SimulateArgs {
    pub fn run(self) -> Result<(), Failure> {
        let shape = self.workload.map(|kind| self.shape(kind));
        let stores = self.stores(shape.as_ref())?;
        let requests = self.requests.unwrap_or(if shape.is_some() { REQUESTS } else { u64::MAX });
        let warm_up = self.warm_up.unwrap_or(if shape.is_some() { requests / 2 } else { 0 });
        let threads = self.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
        let plan = Plan { stores, requests, warm_up, threads };

        let progress = Progress::new(BAR);
        if requests < u64::MAX {
            progress.set_length(requests);
        }
        let mut source = self.source(shape)?;
        let names = if self.optimum { Some(in_memory(&mut source, requests)?) } else { None };
        if let Some(names) = &names {
            source = Source::Memory(names.clone().into_iter());
        }
        if let Some(path) = &self.hits {
            progress.set_message("recording hits");
            return write_hits(&mut source, &plan, path);
        }
        progress.set_message("simulating");
        let outcomes = run(&mut source, &plan, &|done| progress.set_position(done)).map_err(Failure::failed)?;
        let mut caches: Vec<Cache> = outcomes.iter().map(cache).collect();
        if let Some(names) = &names {
            progress.set_message("computing the optimum");
            let warm_up = usize::try_from(warm_up).unwrap_or(usize::MAX);
            let mut capacities: Vec<usize> = plan.stores.iter().map(|&(_, capacity)| capacity).collect();
            capacities.dedup();
            let best = |capacity| Cache::new("optimum".to_owned(), capacity, optimum(names, capacity, warm_up), None);
            caches.extend(capacities.into_iter().map(best));
        }
        drop(progress);
        let source = match (&self.trace, self.workload) {
            (Some(path), _) => path.display().to_string(),
            (None, kind) => kind.map_or("", WorkloadKind::name).to_owned(),
        };
        let report = Report { source, warm_up, caches };
        if self.json { output::json(&report) } else { describe(&report).print() }
    }

    fn shape(&self, kind: WorkloadKind) -> WorkloadShape {
        let published = WorkloadShape::published(kind);
        WorkloadShape {
            objects: self.objects.unwrap_or(published.objects),
            alpha: self.alpha.unwrap_or(published.alpha),
            seed: self.seed,
            ..published
        }
    }

    /// Returns all combinations of policies and capacities.
    fn stores(&self, shape: Option<&WorkloadShape>) -> Result<Vec<(SimulatedPolicy, usize)>, Failure> {
        let choices = match &self.policy[..] {
            [] => PolicyKind::ALL.iter().map(|&kind| kind.into()).collect(),
            some => some.to_vec(),
        };
        let mut stores = Vec::new();
        for capacity in &self.capacity {
            let packets = match (*capacity, shape) {
                (Capacity::Packets(packets), _) => packets,
                (Capacity::Percent(percent), Some(shape)) => (shape.packets() as f64 * percent / 100.0) as usize,
                (Capacity::Percent(_), None) => {
                    return Err(Failure::usage(
                        "--capacity in percent needs --workload: the number of packets in a trace is unknown; give a \
                         number",
                    ));
                }
            };
            stores.extend(choices.iter().map(|&choice| (choice, packets)));
        }
        Ok(stores)
    }

    fn source(&self, shape: Option<WorkloadShape>) -> Result<Source, Failure> {
        let Some(path) = &self.trace else {
            let kind = WorkloadKind::Web;
            return Ok(Source::Workload(Workload::new(shape.unwrap_or_else(|| WorkloadShape::published(kind)))));
        };
        let format = match self.format {
            None => TraceFormat::of(path),
            Some(FormatArg::Lines) => TraceFormat::Lines,
            Some(FormatArg::OracleGeneral) => TraceFormat::OracleGeneral,
        };
        let trace = Trace::open(path, format).map_err(|error| Failure::failed(error).context(path.display()))?;
        Ok(Source::Trace(trace))
    }
}

/// Reads all requests of a source into memory.
fn in_memory(source: &mut Source, requests: u64) -> Result<Vec<u64>, Failure> {
    let mut names = Vec::new();
    while (names.len() as u64) < requests {
        let before = names.len();
        source.read(CHUNK.min((requests - before as u64) as usize), &mut names).map_err(Failure::failed)?;
        if names.len() as u64 > MOST_IN_MEMORY {
            return Err(Failure::usage(format!(
                "--optimum takes at most {MOST_IN_MEMORY} requests: limit them with --requests"
            )));
        }
        if names.len() == before {
            break;
        }
    }
    Ok(names)
}

/// Runs the stores one request at a time and writes the result of each.
fn write_hits(source: &mut Source, plan: &Plan, path: &PathBuf) -> Result<(), Failure> {
    let context = |error: std::io::Error| Failure::from(error).context(path.display());
    let new_store = |&(choice, capacity): &(SimulatedPolicy, usize)| store(choice, capacity);
    let mut stores: Vec<Box<dyn SimulatedStore>> =
        plan.stores.iter().map(new_store).collect::<Result<_, _>>().map_err(Failure::failed)?;
    let mut out = BufWriter::new(File::create(path).map_err(context)?);
    let mut left = plan.requests;
    let mut names = Vec::new();
    while left > 0 {
        names.clear();
        source.read(CHUNK.min(left as usize), &mut names).map_err(Failure::failed)?;
        if names.is_empty() {
            break;
        }
        left -= names.len() as u64;
        let mut line = Vec::with_capacity(stores.len() + 1);
        for name in &names {
            line.clear();
            for store in &mut stores {
                store.request(&[*name], &mut |hit| line.push(if hit { b'1' } else { b'0' }));
            }
            line.push(b'\n');
            out.write_all(&line).map_err(context)?;
        }
    }
    out.flush().map_err(context)
}

fn cache(outcome: &Outcome) -> Cache {
    Cache::new(outcome.policy.to_string(), outcome.capacity, outcome.counts, Some(outcome.ns_per_request))
}

fn describe(report: &Report) -> Table {
    let mut table = Table::new(&[
        ("POLICY", Align::Left),
        ("CAPACITY", Align::Right),
        ("HITS", Align::Right),
        ("INSERTIONS", Align::Right),
        ("NS/REQUEST", Align::Right),
    ]);
    for cache in &report.caches {
        table.row([
            cache.policy.clone(),
            cache.capacity_packets.to_string(),
            format!("{:.4}", cache.hit_rate),
            format!("{:.4}", cache.insertion_rate),
            cache.ns_per_request.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.0}")),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_numbers_or_percentages() {
        assert_eq!("12".parse(), Ok(Capacity::Packets(12)));
        assert_eq!("2.5%".parse(), Ok(Capacity::Percent(2.5)));
        for text in ["", "%", "0%", "101%", "-1", "NaN%", "x"] {
            assert!(text.parse::<Capacity>().is_err(), "{text}");
        }
    }
}
