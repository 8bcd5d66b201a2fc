//! A FIB of many prefixes: how long it takes to load from a text file, from a snapshot and from memory, how much memory it
//! takes, what a lookup costs, and for how long the writer is busy at most while the table grows.
//!
//! Files are read and added as a router does it: one thread reads, another adds.

mod files;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use namehop_engine::fib::{FibAddition, FibError, FibWriter, NextHop};
use namehop_hash::HashKey;
use namehop_manage::fib_file::FileError;
use namehop_packet::FaceId;
use namehop_wire::NameRef;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Serialize;

use crate::lpm::{LongestFirst, LookupFigures, LookupOptions, measure_lookups};
use crate::progress::{OnProgress, Progress};
use crate::workload::{Workload, WorkloadError, WorkloadParameters};

/// Faces that the prefixes lead to.
const FACES: u64 = 16;
/// Number of the first of them.
const FIRST_FACE: u32 = 256;
/// Prefixes added with one call when they come from memory.
const PORTION: usize = 1024;
/// Entries whose strategy is updated at a time, as in the router.
const STRATEGY_PORTION: usize = 16_384;
/// Names looked up together.
const GROUP: usize = 64;

/// What to measure.
#[derive(Debug, Clone)]
pub struct FibOptions {
    /// The prefixes, and the names that are looked up.
    pub workload: WorkloadParameters,
    /// Text file to load from. It is written first if it is not there.
    pub text: Option<PathBuf>,
    /// Snapshot to load from. It is taken first if it is not there.
    pub snapshot: Option<PathBuf>,
    /// Time for each of the two lookup figures.
    pub lookup_time: Duration,
    /// Also change strategies and let the table grow, which takes two or three times the memory of the buckets.
    pub grow: bool,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum FibBenchError {
    /// There is no such workload.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A prefix was refused.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// A file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: FileError,
    },
    /// A file of other prefixes.
    #[error("{path} holds {found} prefixes instead of {expected}; name a file that is not there to have it made", path = path.display())]
    OtherPrefixes {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: u64,
        /// What it should hold.
        expected: u64,
    },
}

/// How long something took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Effort {
    /// By the clock, in seconds.
    pub wall_s: f64,
    /// Time of all threads of this process, in seconds.
    pub cpu_s: f64,
    /// Size of the file, if there is one.
    pub file_bytes: Option<u64>,
}

/// How long the writer is busy while the table grows, one prefix being added after the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GrowthFigures {
    /// Prefixes added until the table had grown.
    pub prefixes: u64,
    /// From the first to the last of them, in milliseconds.
    pub total_ms: f64,
    /// The longest addition of one, in milliseconds.
    pub longest_ms: f64,
    /// To give the old buckets back to the system, in milliseconds.
    pub reclaim_ms: f64,
}

/// How long it takes until all prefixes below one have the strategy that was chosen for it: all entries are looked at, in
/// portions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StrategyFigures {
    /// Until all have it, in milliseconds.
    pub total_ms: f64,
    /// The longest portion, in milliseconds.
    pub longest_ms: f64,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FibReport {
    /// The prefixes and names.
    pub workload: WorkloadParameters,
    /// Runnable processes of the machine at the start, averaged over a minute; where the system says.
    pub load_average: Option<f64>,
    /// Loading the text file.
    pub text: Option<Effort>,
    /// Adding prefixes from memory, when no snapshot was there.
    pub memory: Option<Effort>,
    /// Taking the snapshot, when it was not there.
    pub save: Option<Effort>,
    /// Loading the snapshot.
    pub snapshot: Option<Effort>,
    /// Memory of the tables by their own account, in bytes for each prefix.
    pub bytes_per_prefix: f64,
    /// Memory of the process, in bytes for each prefix; where the system says.
    pub resident_bytes_per_prefix: Option<f64>,
    /// Share of it that is on huge pages, without which lookups in a large table wait for page tables, too; where the
    /// system says.
    pub huge_pages: Option<f64>,
    /// Buckets that overflowed, as a share of all.
    pub overflow: f64,
    /// Lookups of names that were not looked up before.
    pub lookup: LookupFigures,
    /// A strategy for a prefix above some of those in the table.
    pub strategy: Option<StrategyFigures>,
    /// Growth of the table.
    pub growth: Option<GrowthFigures>,
}

/// Measures.
///
/// # Errors
/// A file cannot be used, or memory runs out.
pub fn measure(options: &FibOptions, on_progress: &OnProgress<'_>) -> Result<FibReport, FibBenchError> {
    let begin = |what: &str| on_progress(Progress::of(what));
    let workload = Workload::new(options.workload)?;
    let load_average = load_average();
    let key = HashKey::random();
    let text = match &options.text {
        None => None,
        Some(path) => {
            if !path.exists() {
                begin("writing the text file");
                files::write_text(&workload, path).map_err(|error| file_error(path, error.into()))?;
            }
            begin("loading the text file");
            Some(load(&workload, key, path)?.1)
        }
    };
    let mut memory = None;
    let mut save = None;
    let (fib, snapshot) = match &options.snapshot {
        Some(path) => {
            if !path.exists() {
                let (fib, effort) = timed(|| from_memory(&workload, key, on_progress))?;
                memory = Some(effort);
                begin("taking the snapshot");
                let ((), effort) = timed(|| files::save(&fib, path).map_err(|error| file_error(path, error.into())))?;
                save = Some(Effort { file_bytes: file_bytes(path), ..effort });
            }
            begin("loading the snapshot");
            let (fib, effort) = load(&workload, key, path)?;
            (fib, Some(effort))
        }
        None => {
            let (fib, effort) = timed(|| from_memory(&workload, key, on_progress))?;
            memory = Some(effort);
            (fib, None)
        }
    };
    let statistics = fib.statistics();
    let prefixes = options.workload.prefixes as f64;
    // Pages from the system's pool are counted apart.
    let pool_bytes = memory_bytes("Private_Hugetlb:").unwrap_or(0);
    let resident_bytes = memory_bytes("Rss:").map(|bytes| bytes + pool_bytes);
    let huge_bytes = memory_bytes("AnonHugePages:").map(|bytes| bytes + pool_bytes);
    begin("looking names up");
    let structure = LongestFirst::filled(fib, [options.workload.prefix_components]);
    let lookup_options = LookupOptions { group: GROUP, first_name: 0, time: options.lookup_time };
    let lookup = measure_lookups(&structure, std::slice::from_ref(&workload), &key, &lookup_options);
    let mut fib = structure.into_writer();
    if options.grow {
        begin("changing a strategy, and letting the table grow");
    }
    Ok(FibReport {
        workload: options.workload,
        load_average,
        text,
        memory,
        save,
        snapshot,
        bytes_per_prefix: statistics.bytes as f64 / prefixes,
        resident_bytes_per_prefix: resident_bytes.map(|bytes| bytes as f64 / prefixes),
        huge_pages: huge_bytes.zip(resident_bytes).map(|(huge, resident)| huge as f64 / resident as f64),
        overflow: statistics.buckets.overflow_buckets as f64 / statistics.buckets.home_buckets as f64,
        lookup,
        strategy: options.grow.then(|| change_strategy(&mut fib)).transpose()?,
        growth: options.grow.then(|| grow(&mut fib)).transpose()?,
    })
}

fn file_error(path: &Path, source: FileError) -> FibBenchError {
    FibBenchError::File { path: path.to_owned(), source }
}

fn timed<T>(work: impl FnOnce() -> Result<T, FibBenchError>) -> Result<(T, Effort), FibBenchError> {
    let (start, cpu) = (Instant::now(), cpu_time());
    let result = work()?;
    let effort = Effort {
        wall_s: start.elapsed().as_secs_f64(),
        cpu_s: cpu_time().saturating_sub(cpu).as_secs_f64(),
        file_bytes: None,
    };
    Ok((result, effort))
}

fn load(workload: &Workload, key: HashKey, path: &Path) -> Result<(FibWriter<()>, Effort), FibBenchError> {
    let (fib, effort) = timed(|| {
        let mut fib = FibWriter::new(key, ())?;
        files::load(&mut fib, path).map_err(|error| file_error(path, error))?;
        Ok(fib)
    })?;
    let (found, expected) = (fib.len() as u64, workload.parameters().prefixes);
    if found != expected {
        return Err(FibBenchError::OtherPrefixes { path: path.to_owned(), found, expected });
    }
    Ok((fib, Effort { file_bytes: file_bytes(path), ..effort }))
}

/// The one face of a prefix.
fn face_of(number: u64) -> FaceId {
    FaceId(FIRST_FACE + (number % FACES) as u32)
}

fn from_memory(
    workload: &Workload,
    key: HashKey,
    on_progress: &OnProgress<'_>,
) -> Result<FibWriter<()>, FibBenchError> {
    let mut fib = FibWriter::new(key, ())?;
    let prefixes = workload.parameters().prefixes;
    fib.reserve(usize::try_from(prefixes).unwrap_or(usize::MAX))?;
    let bytes = workload.prefix_bytes();
    let mut values = vec![0; PORTION * bytes];
    let mut nexthops = [[NextHop { face: FaceId(0), cost: 0 }]; PORTION];
    for start in (0..prefixes).step_by(PORTION) {
        on_progress(Progress { what: "adding prefixes from memory".to_owned(), done: start, total: prefixes });
        let count = (prefixes - start).min(PORTION as u64) as usize;
        for ((value, nexthop), number) in values.chunks_exact_mut(bytes).zip(&mut nexthops).take(count).zip(start..) {
            workload.write_prefix(number, value);
            nexthop[0].face = face_of(number);
        }
        let additions: Vec<FibAddition<'_>> = values
            .chunks_exact(bytes)
            .zip(&nexthops)
            .take(count)
            // A workload's names are valid.
            .filter_map(|(value, nexthops)| Some(FibAddition { prefix: NameRef::from_value(value).ok()?, nexthops }))
            .collect();
        fib.add_many(&additions).map_err(|refused| refused.error)?;
    }
    Ok(fib)
}

/// Chooses a strategy for a prefix above one of those in the table, and waits until all have it.
fn change_strategy(fib: &mut FibWriter<()>) -> Result<StrategyFigures, FibBenchError> {
    let above = fib.entries().next().map(|(name, _)| name.prefix(1).to_owned()).unwrap_or_default();
    let milliseconds = |start: Instant| start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    fib.set_strategy(above.as_ref(), ())?;
    let mut longest_ms = milliseconds(start);
    let mut is_settled = false;
    while !is_settled {
        let portion = Instant::now();
        is_settled = fib.settle_strategies(STRATEGY_PORTION);
        longest_ms = longest_ms.max(milliseconds(portion));
    }
    Ok(StrategyFigures { total_ms: milliseconds(start), longest_ms })
}

/// Adds prefixes one by one until the table has grown once.
fn grow(fib: &mut FibWriter<()>) -> Result<GrowthFigures, FibBenchError> {
    let capacity = fib.statistics().buckets.capacity;
    let mut figures = GrowthFigures { prefixes: 0, total_ms: 0.0, longest_ms: 0.0, reclaim_ms: 0.0 };
    let start = Instant::now();
    fib.reserve(capacity)?;
    let milliseconds = |start: Instant| start.elapsed().as_secs_f64() * 1e3;
    figures.longest_ms = milliseconds(start);
    while fib.statistics().buckets.capacity == capacity {
        let name = namehop_wire::Name::new().append_generic("grow").append_generic(figures.prefixes.to_be_bytes());
        let one = Instant::now();
        fib.add_nexthop(name.as_ref(), FaceId(FIRST_FACE), 0)?;
        figures.longest_ms = figures.longest_ms.max(milliseconds(one));
        figures.prefixes += 1;
    }
    figures.total_ms = milliseconds(start);
    let start = Instant::now();
    fib.reclaim();
    figures.reclaim_ms = milliseconds(start);
    Ok(figures)
}

fn cpu_time() -> Duration {
    let microseconds = getrusage(UsageWho::RUSAGE_SELF)
        .map_or(0, |usage| usage.user_time().num_microseconds() + usage.system_time().num_microseconds());
    Duration::from_micros(microseconds.try_into().unwrap_or(0))
}

fn file_bytes(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.len())
}

fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// A figure of this process's memory.
fn memory_bytes(figure: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(figure))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
