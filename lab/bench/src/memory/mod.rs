//! How fast memory is: the time of one dependent access, and random cache lines per second by number in flight.
//!
//! A forwarder touches lines of tables far larger than any cache, in random order. The more of them it asks for at once,
//! the more the memory delivers, up to what the processor can have outstanding. From the best rate follows the least time
//! of anything that touches a known number of lines: [`DramFigures::floor_ns`].
//!
//! The area that is walked must be much larger than the last-level cache; [`MemoryReport::by_area`] shows what becomes of
//! the figures when it is not.

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

/// Smallest area that is measured, in bytes.
pub const MIN_AREA_BYTES: usize = 1 << 20;
/// Area when nobody asks for another, if there is memory for it.
const DEFAULT_AREA_BYTES: usize = 4 << 30;
/// Time to measure each figure, unless told otherwise.
const DEFAULT_TIME: Duration = Duration::from_millis(300);

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Size of the area; rounded down to a power of two.
    pub area_bytes: usize,
    /// Time for each figure.
    pub time: Duration,
}

impl Default for MemoryOptions {
    /// 4 GiB, or what half of the free memory allows.
    fn default() -> Self {
        let half = available_memory_bytes().map_or(DEFAULT_AREA_BYTES, |bytes| (bytes / 2) as usize);
        MemoryOptions { area_bytes: DEFAULT_AREA_BYTES.min(half).max(MIN_AREA_BYTES), time: DEFAULT_TIME }
    }
}

/// Rate with a number of lines in flight, on one thread.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LineRate {
    /// Lines in flight.
    pub in_flight: usize,
    /// Cache lines per second of independent chains of dependent loads.
    pub chains_lines_per_second: f64,
    /// Cache lines per second when each is prefetched ahead of its use.
    pub sweep_lines_per_second: f64,
}

impl LineRate {
    /// The better of the two.
    pub fn lines_per_second(&self) -> f64 {
        self.chains_lines_per_second.max(self.sweep_lines_per_second)
    }
}

/// How fast random lines come from memory, to one thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DramFigures {
    /// Nanoseconds of an access whose address is in the line accessed before.
    pub dependent_ns: f64,
    /// By number in flight, ascending.
    pub lines_per_second_by_in_flight: Vec<LineRate>,
    /// Bytes of the pages that the area lay on.
    pub page_bytes: usize,
}

impl DramFigures {
    /// Most lines per second, whatever the number in flight. 0 if nothing was measured.
    pub fn best_lines_per_second(&self) -> f64 {
        self.lines_per_second_by_in_flight.iter().map(LineRate::lines_per_second).fold(0.0, f64::max)
    }

    /// Fewest lines in flight that reach 95 % of the best rate: more of them gain nothing.
    pub fn sufficient_in_flight(&self) -> usize {
        let enough = 0.95 * self.best_lines_per_second();
        let rates = &self.lines_per_second_by_in_flight;
        rates.iter().find(|rate| rate.lines_per_second() >= enough).map_or(1, |rate| rate.in_flight)
    }

    /// Least nanoseconds for something that touches `lines` cache lines of tables in memory, such as an Interest and its
    /// Data: lines over best lines per second. The nearer a program comes to it, the more of the latency it hides; none gets below.
    pub fn floor_ns(&self, lines: f64) -> f64 {
        lines / self.best_lines_per_second() * 1e9
    }
}

/// Rate of several threads together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ThreadRate {
    /// Threads, each with [`DramFigures::sufficient_in_flight`] lines in flight.
    pub threads: usize,
    /// Cache lines per second of all of them.
    pub lines_per_second: f64,
}

/// Figures for one kind of page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageFigures {
    /// The pages.
    pub pages: PageInfo,
    /// One thread.
    pub dram: DramFigures,
    /// Several threads.
    pub lines_per_second_by_threads: Vec<ThreadRate>,
}

/// Figures for one size of the area, on the largest pages to be had.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AreaFigures {
    /// Size.
    pub area_bytes: usize,
    /// As in [`DramFigures`].
    pub dependent_ns: f64,
    /// Cache lines per second of a sweep with 32 lines in flight.
    pub lines_per_second: f64,
}

/// Everything that `namehop bench memory` measures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryReport {
    /// Where.
    pub machine: Machine,
    /// Size of the area.
    pub area_bytes: usize,
    /// By kind of page, largest first.
    pub by_pages: Vec<PageFigures>,
    /// Kinds of page that were not to be had.
    pub missing: Vec<MissingPages>,
    /// By size of the area, ascending.
    pub by_area: Vec<AreaFigures>,
    /// Bytes per second that all cores together read in sequence.
    pub sequential_bytes_per_second: f64,
}

impl MemoryReport {
    /// Figures of the largest pages to be had: those that the tables would lie on.
    pub fn best(&self) -> Option<&PageFigures> {
        self.by_pages.first()
    }
}

/// Why nothing could be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The area is too small to say anything.
    #[error("an area of at least {MIN_AREA_BYTES} bytes is needed")]
    TooSmall,
    /// The system would have to swap, or to end programs.
    #[error("an area of {wanted} bytes is more than the {available} bytes of memory that are free")]
    TooLarge {
        /// Bytes asked for.
        wanted: usize,
        /// Bytes free.
        available: u64,
    },
    /// The system refused.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// An area of memory for walks, all touched.
struct Area {
    lines: CacheLines,
    info: PageInfo,
}

impl Area {
    fn new(bytes: usize, wanted: PageKind) -> Result<Self, MemoryError> {
        let mut lines = pages::reserve(bytes, wanted)?;
        // Reserved pages are there for sure; others are taken from what is free when they are touched.
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

/// Largest power of two of bytes in the options' area.
fn checked_area(options: &MemoryOptions) -> Result<usize, MemoryError> {
    if options.area_bytes < MIN_AREA_BYTES {
        return Err(MemoryError::TooSmall);
    }
    Ok(1 << options.area_bytes.ilog2())
}

/// Measures one thread on an area of the pages wanted, or the next best.
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

/// Bytes per second that `threads` together read in sequence, from an area of the largest pages to be had.
pub fn sequential_bytes_per_second(options: &MemoryOptions, threads: usize) -> Result<f64, MemoryError> {
    let area = Area::new(checked_area(options)?, PageKind::Huge1G)?;
    Ok(access::sequential_bytes_per_second(area.lines.as_slice(), threads))
}

/// Measures what a prefetch instruction costs the program that issues it.
pub fn measure_prefetch_issue(options: &MemoryOptions) -> Result<PrefetchIssue, MemoryError> {
    let mut area = Area::new(checked_area(options)?, PageKind::Huge1G)?;
    Ok(LinkedArea::link(area.lines.as_mut_slice()).prefetch_issue(options.time))
}

/// Measures everything.
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
            steps.next("sequential reading");
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

/// Counts steps and says what comes next.
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

/// Steps of one kind of page on which up to `threads` threads are measured.
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

/// Sizes of area to compare: from 16 MiB in steps of four, and the whole.
fn area_sizes(area_bytes: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> =
        (0..).map(|step| (16 << 20) << (2 * step)).take_while(|&size| size < area_bytes).collect();
    sizes.push(area_bytes);
    sizes
}

#[cfg(test)]
mod tests;
