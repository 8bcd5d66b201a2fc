//! A FIB with many prefixes. Measures the time to load it from a text file, from a snapshot and from memory, its
//! memory, the cost of a lookup, and the longest time that the writer is busy while the table grows.
//!
//! Loading works as in a router: one thread reads the file, another adds prefixes.

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

/// Number of faces used as next hops.
const FACES: u64 = 16;
/// Id of the first face.
const FIRST_FACE: u32 = 256;
/// Prefixes per call when adding from memory.
const PORTION: usize = 1024;
/// Entries per step of a strategy update, as in the router.
const STRATEGY_PORTION: usize = 16_384;
/// Names per lookup group.
const GROUP: usize = 64;

/// Parameters of the measurement.
#[derive(Debug, Clone)]
pub struct FibOptions {
    /// Prefixes, and names to look up.
    pub workload: WorkloadParameters,
    /// Text file to load from. It is written first if it does not exist.
    pub text: Option<PathBuf>,
    /// Snapshot to load from. It is saved first if it does not exist.
    pub snapshot: Option<PathBuf>,
    /// Measuring time of each of the two lookup figures.
    pub lookup_time: Duration,
    /// If true, also changes strategies and grows the table, which takes two or three times the memory of the buckets.
    pub grow: bool,
}

/// Why the measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum FibBenchError {
    /// The workload is impossible.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The FIB refused a prefix.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// A file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: FileError,
    },
    /// The file has another number of prefixes than the workload.
    #[error(
        "{path} holds {found} prefixes instead of {expected}; give a new path to have the file created",
        path = path.display()
    )]
    OtherPrefixes {
        /// Path of the file.
        path: PathBuf,
        /// Number of prefixes in the file.
        found: u64,
        /// Number of prefixes of the workload.
        expected: u64,
    },
}

/// Duration and cost of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Effort {
    /// Elapsed time, in seconds.
    pub wall_s: f64,
    /// CPU time of all threads of this process, in seconds.
    pub cpu_s: f64,
    /// Size of the file in bytes, if there is one.
    pub file_bytes: Option<u64>,
}

/// Times of the writer while the table grows, adding one prefix at a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GrowthFigures {
    /// Prefixes added until the table has grown.
    pub prefixes: u64,
    /// Time for all of them, in milliseconds.
    pub total_ms: f64,
    /// Longest time to add one prefix, in milliseconds.
    pub longest_ms: f64,
    /// Time to return the old buckets to the system, in milliseconds.
    pub reclaim_ms: f64,
}

/// Times until all prefixes below a name have the strategy chosen for that name. All entries are visited, in steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StrategyFigures {
    /// Total time, in milliseconds.
    pub total_ms: f64,
    /// Longest step, in milliseconds.
    pub longest_ms: f64,
}

/// Results of the measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FibReport {
    /// The prefixes and names.
    pub workload: WorkloadParameters,
    /// Load average of the host over one minute at the start; `None` if unknown.
    pub load_average: Option<f64>,
    /// Loading the text file.
    pub text: Option<Effort>,
    /// Adding prefixes from memory; `None` if the snapshot existed.
    pub memory: Option<Effort>,
    /// Saving the snapshot; `None` if it existed.
    pub save: Option<Effort>,
    /// Loading the snapshot.
    pub snapshot: Option<Effort>,
    /// Memory of the tables as they report it, in bytes per prefix.
    pub bytes_per_prefix: f64,
    /// Resident memory of the process, in bytes per prefix; `None` if unknown.
    pub resident_bytes_per_prefix: Option<f64>,
    /// Share of that memory on huge pages, 0 to 1; `None` if unknown. On other pages, lookups in a large table also
    /// wait for page tables.
    pub huge_pages: Option<f64>,
    /// Overflow buckets relative to home buckets.
    pub overflow: f64,
    /// Lookups of names not looked up before.
    pub lookup: LookupFigures,
    /// Change of the strategy of a prefix above some of the table's prefixes.
    pub strategy: Option<StrategyFigures>,
    /// Growth of the table.
    pub growth: Option<GrowthFigures>,
}

/// Runs the measurement.
///
/// # Errors
/// Fails if a file cannot be used, or if memory runs out.
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
                begin("writing the snapshot");
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
    // Pages from the huge page pool are counted separately.
    let pool_bytes = memory_bytes("Private_Hugetlb:").unwrap_or(0);
    let resident_bytes = memory_bytes("Rss:").map(|bytes| bytes + pool_bytes);
    let huge_bytes = memory_bytes("AnonHugePages:").map(|bytes| bytes + pool_bytes);
    begin("looking names up");
    let structure = LongestFirst::filled(fib, [options.workload.prefix_components]);
    let lookup_options = LookupOptions { group: GROUP, first_name: 0, time: options.lookup_time };
    let lookup = measure_lookups(&structure, std::slice::from_ref(&workload), &key, &lookup_options);
    let mut fib = structure.into_writer();
    if options.grow {
        begin("changing a strategy and growing the table");
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

/// The next hop of a prefix.
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
            // The names of a workload are valid.
            .filter_map(|(value, nexthops)| Some(FibAddition { prefix: NameRef::from_value(value).ok()?, nexthops }))
            .collect();
        fib.add_many(&additions).map_err(|refused| refused.error)?;
    }
    Ok(fib)
}

/// Chooses a strategy for a prefix above one of the table's prefixes, and waits until all entries have it.
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

/// Returns a value of `/proc/self/smaps_rollup` in bytes.
fn memory_bytes(figure: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(figure))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
