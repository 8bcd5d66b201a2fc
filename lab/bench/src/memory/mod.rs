//! Memory speed: latency of a dependent access, and random cache lines per second by number of lines in flight.
//!
//! A forwarder accesses lines of tables far larger than any cache, in random order. Memory delivers more lines the more
//! are in flight, up to the CPU's limit. The best rate gives the minimum time of anything that accesses a known number
//! of lines: [`DramFigures::floor_ns`].
//!
//! The area must be much larger than the last-level cache; [`MemoryReport::by_area`] shows the figures of smaller
//! areas.

mod access;
mod pages;

use std::time::Duration;

use namehop_table::{CacheLines, PageKind, TableError, prefetch::CACHE_LINE_BYTES};
use serde::Serialize;

pub use access::IN_FLIGHT;
use access::LinkedArea;
pub use access::PrefetchIssue;
pub use pages::{MissingPages, PageInfo};

use crate::machine::{Machine, available_memory_bytes};
use crate::progress::{OnProgress, Progress};

/// Minimum size of a measured area, in bytes.
pub const MIN_AREA_BYTES: usize = 1 << 20;
/// Default size of the area in bytes, if enough memory is available.
const DEFAULT_AREA_BYTES: usize = 4 << 30;
/// Default measuring time per figure.
const DEFAULT_TIME: Duration = Duration::from_millis(300);

/// Parameters of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Size of the area in bytes; rounded down to a power of two.
    pub area_bytes: usize,
    /// Measuring time per figure.
    pub time: Duration,
}

impl Default for MemoryOptions {
    /// 4 GiB, or half of the available memory if that is less.
    fn default() -> Self {
        let half = available_memory_bytes().map_or(DEFAULT_AREA_BYTES, |bytes| (bytes / 2) as usize);
        MemoryOptions { area_bytes: DEFAULT_AREA_BYTES.min(half).max(MIN_AREA_BYTES), time: DEFAULT_TIME }
    }
}

/// Rate of one thread with a given number of lines in flight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LineRate {
    /// Lines in flight.
    pub in_flight: usize,
    /// Cache lines per second of independent chains of dependent loads.
    pub chains_lines_per_second: f64,
    /// Cache lines per second if each is prefetched before its use.
    pub sweep_lines_per_second: f64,
}

impl LineRate {
    /// The better of the two rates.
    pub fn lines_per_second(&self) -> f64 {
        self.chains_lines_per_second.max(self.sweep_lines_per_second)
    }
}

/// Speed of random lines from memory, for one thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DramFigures {
    /// Nanoseconds of a dependent access: its address is read from the line accessed before.
    pub dependent_ns: f64,
    /// Rates by number of lines in flight, ascending.
    pub lines_per_second_by_in_flight: Vec<LineRate>,
    /// Size of the area's pages in bytes.
    pub page_bytes: usize,
}

impl DramFigures {
    /// Maximum of lines per second over all numbers in flight; 0 if nothing was measured.
    pub fn best_lines_per_second(&self) -> f64 {
        self.lines_per_second_by_in_flight.iter().map(LineRate::lines_per_second).fold(0.0, f64::max)
    }

    /// Smallest number of lines in flight that reaches 95 % of the best rate.
    pub fn sufficient_in_flight(&self) -> usize {
        let enough = 0.95 * self.best_lines_per_second();
        let rates = &self.lines_per_second_by_in_flight;
        rates.iter().find(|rate| rate.lines_per_second() >= enough).map_or(1, |rate| rate.in_flight)
    }

    /// Minimum nanoseconds for work that accesses `lines` cache lines of tables in memory, such as an Interest and its
    /// Data: lines over best lines per second. The closer a program is to it, the more latency it hides.
    pub fn floor_ns(&self, lines: f64) -> f64 {
        lines / self.best_lines_per_second() * 1e9
    }
}

/// Rate of several threads in total.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ThreadRate {
    /// Number of threads, each with [`DramFigures::sufficient_in_flight`] lines in flight.
    pub threads: usize,
    /// Cache lines per second of all threads.
    pub lines_per_second: f64,
}

/// Figures of one page kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageFigures {
    /// The page kind.
    pub pages: PageInfo,
    /// Figures of one thread.
    pub dram: DramFigures,
    /// Rates of several threads.
    pub lines_per_second_by_threads: Vec<ThreadRate>,
}

/// Figures of one size of the area, on the largest pages available.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AreaFigures {
    /// Size of the area in bytes.
    pub area_bytes: usize,
    /// As in [`DramFigures`].
    pub dependent_ns: f64,
    /// Cache lines per second of a sweep with 32 lines in flight.
    pub lines_per_second: f64,
}

/// Results of `namehop bench memory`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryReport {
    /// The host.
    pub machine: Machine,
    /// Size of the area in bytes.
    pub area_bytes: usize,
    /// Figures by page kind, largest first.
    pub by_pages: Vec<PageFigures>,
    /// Page kinds that were not available.
    pub missing: Vec<MissingPages>,
    /// Figures by size of the area, ascending.
    pub by_area: Vec<AreaFigures>,
    /// Bytes per second that all cores read sequentially in total.
    pub sequential_bytes_per_second: f64,
}

impl MemoryReport {
    /// Figures of the largest pages available, which tables would use.
    pub fn best(&self) -> Option<&PageFigures> {
        self.by_pages.first()
    }
}

/// Why the measurement failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The area is too small for meaningful figures.
    #[error("the area must have at least {MIN_AREA_BYTES} bytes")]
    TooSmall,
    /// The area exceeds the available memory; the system would have to swap or kill programs.
    #[error("an area of {wanted} bytes exceeds the {available} bytes of free memory")]
    TooLarge {
        /// Requested bytes.
        wanted: usize,
        /// Available bytes.
        available: u64,
    },
    /// The memory could not be allocated.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// An area of memory for walks, with all pages touched.
struct Area {
    lines: CacheLines,
    info: PageInfo,
}

impl Area {
    fn new(bytes: usize, wanted: PageKind) -> Result<Self, MemoryError> {
        let mut lines = pages::reserve(bytes, wanted)?;
        // Reserved huge pages are certainly available; other pages are allocated from free memory when touched.
        let reserved = matches!(lines.page_kind(), PageKind::Huge1G | PageKind::Huge2M);
        if let Some(available) = available_memory_bytes()
            && !reserved
            && available < bytes as u64
        {
            return Err(MemoryError::TooLarge { wanted: bytes, available });
        }
        for line in lines.as_mut_slice() {
            line.0[0] = 1;
        }
        let info = PageInfo::of(&lines);
        Ok(Area { lines, info })
    }
}

/// Returns the largest power of two not above the requested area, in bytes.
fn checked_area(options: &MemoryOptions) -> Result<usize, MemoryError> {
    if options.area_bytes < MIN_AREA_BYTES {
        return Err(MemoryError::TooSmall);
    }
    Ok(1 << options.area_bytes.ilog2())
}

/// Measures one thread on an area of the wanted pages, or of the next best kind.
pub fn measure_dram(
    wanted: PageKind,
    options: &MemoryOptions,
    on_progress: &OnProgress<'_>,
) -> Result<(PageInfo, DramFigures), MemoryError> {
    let mut steps = Steps { done: 0, total: steps_per_pages(0), on_progress };
    steps.next("preparing memory");
    let mut area = Area::new(checked_area(options)?, wanted)?;
    let info = area.info.clone();
    let figures = dram_figures(&LinkedArea::link(area.lines.as_mut_slice()), &info, options.time, &mut steps);
    Ok((info, figures))
}

/// Bytes per second that `threads` threads read sequentially in total, from an area of the largest pages available.
pub fn sequential_bytes_per_second(options: &MemoryOptions, threads: usize) -> Result<f64, MemoryError> {
    let area = Area::new(checked_area(options)?, PageKind::Huge1G)?;
    Ok(access::sequential_bytes_per_second(area.lines.as_slice(), threads))
}

/// Measures the cost of a prefetch instruction to the program that issues it.
pub fn measure_prefetch_issue(options: &MemoryOptions) -> Result<PrefetchIssue, MemoryError> {
    let mut area = Area::new(checked_area(options)?, PageKind::Huge1G)?;
    Ok(LinkedArea::link(area.lines.as_mut_slice()).prefetch_issue(options.time))
}

/// Runs all measurements.
pub fn measure(options: &MemoryOptions, on_progress: &OnProgress<'_>) -> Result<MemoryReport, MemoryError> {
    let area_bytes = checked_area(options)?;
    let machine = Machine::detect();
    let kinds = pages::obtainable(area_bytes);
    let sizes = area_sizes(area_bytes);
    let total = kinds.len() * steps_per_pages(machine.cores) + sizes.len() + 1;
    let mut steps = Steps { done: 0, total, on_progress };
    let mut by_pages: Vec<PageFigures> = Vec::new();
    let mut by_area = Vec::new();
    let mut sequential = 0.0;
    for kind in kinds {
        steps.next("preparing memory");
        let mut area = Area::new(area_bytes, kind)?;
        let info = area.info.clone();
        if by_pages.is_empty() {
            steps.next("reading sequentially");
            sequential = access::sequential_bytes_per_second(area.lines.as_slice(), machine.cores);
            for &bytes in &sizes {
                steps.next(&format!("{} MiB area", bytes >> 20));
                let linked = LinkedArea::link(&mut area.lines.as_mut_slice()[..bytes / CACHE_LINE_BYTES]);
                by_area.push(AreaFigures {
                    area_bytes: bytes,
                    dependent_ns: linked.dependent_ns(options.time),
                    lines_per_second: linked.sweep_lines_per_second(32, options.time),
                });
            }
        }
        let linked = LinkedArea::link(area.lines.as_mut_slice());
        let dram = dram_figures(&linked, &info, options.time, &mut steps);
        let in_flight = dram.sufficient_in_flight();
        let mut rate = |threads| {
            steps.next(&format!("{info}, {threads} threads"));
            ThreadRate { threads, lines_per_second: linked.threads_lines_per_second(threads, in_flight, options.time) }
        };
        let lines_per_second_by_threads = (1..=machine.cores).map(&mut rate).collect();
        by_pages.push(PageFigures { pages: info, dram, lines_per_second_by_threads });
    }
    let missing = pages::missing(by_pages.iter().map(|figures| &figures.pages), area_bytes);
    Ok(MemoryReport { machine, area_bytes, by_pages, missing, by_area, sequential_bytes_per_second: sequential })
}

/// Counts steps and reports progress.
struct Steps<'a, 'b> {
    done: usize,
    total: usize,
    on_progress: &'a OnProgress<'b>,
}

impl Steps<'_, '_> {
    fn next(&mut self, what: &str) {
        (self.on_progress)(Progress { what: what.to_owned(), done: self.done as u64, total: self.total as u64 });
        self.done += 1;
    }
}

/// Steps for one page kind with up to `threads` threads.
fn steps_per_pages(threads: usize) -> usize {
    2 + 2 * IN_FLIGHT.len() + threads
}

fn dram_figures(area: &LinkedArea<'_>, info: &PageInfo, time: Duration, steps: &mut Steps<'_, '_>) -> DramFigures {
    steps.next(&format!("{info}, dependent accesses"));
    let dependent_ns = area.dependent_ns(time);
    let mut rate = |in_flight| {
        steps.next(&format!("{info}, {in_flight} chains"));
        let chains_lines_per_second = area.chains_lines_per_second(in_flight, time);
        steps.next(&format!("{info}, {in_flight} prefetches"));
        let sweep_lines_per_second = area.sweep_lines_per_second(in_flight, time);
        LineRate { in_flight, chains_lines_per_second, sweep_lines_per_second }
    };
    let lines_per_second_by_in_flight = IN_FLIGHT.map(&mut rate).to_vec();
    DramFigures { dependent_ns, lines_per_second_by_in_flight, page_bytes: info.page_bytes }
}

/// Area sizes to compare: from 16 MiB in factors of four, and the whole area.
fn area_sizes(area_bytes: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> =
        (0..).map(|step| (16 << 20) << (2 * step)).take_while(|&size| size < area_bytes).collect();
    sizes.push(area_bytes);
    sizes
}

#[cfg(test)]
mod tests;
