//! Measurements of memory speed and of prefetch instructions.

use namehop_bench::memory::{self, MemoryError, MemoryOptions};
use namehop_table::PageKind;
use namehop_table::prefetch::CACHE_LINE_BYTES;

use super::Measured;

/// Access to random lines of memory by one thread.
#[derive(Debug, Clone)]
pub(crate) struct Dram {
    /// Nanoseconds of a dependent access: its address is read from the line accessed before.
    pub(crate) dependent_ns: Option<Measured>,
    /// 10^9 bytes per second of random lines, with the best number of lines in flight.
    pub(crate) random_gigabytes_per_second: Option<Measured>,
    /// Page kind of the measured area.
    pub(crate) pages: String,
}

/// Measures on the largest pages available, in a new area in every run.
pub(crate) fn dram(options: &MemoryOptions, runs: usize) -> Result<Dram, MemoryError> {
    let mut figures = Vec::new();
    let mut pages = String::new();
    for _ in 0..runs.max(1) {
        let (info, run) = memory::measure_dram(PageKind::Huge1G, options, &|_| ())?;
        pages = info.to_string();
        figures.push(run);
    }
    let random = figures.iter().map(|run| run.best_lines_per_second() * CACHE_LINE_BYTES as f64 / 1e9);
    Ok(Dram {
        dependent_ns: Measured::of_runs(figures.iter().map(|run| run.dependent_ns)),
        random_gigabytes_per_second: Measured::of_runs(random),
        pages,
    })
}

/// 10^9 bytes per second that `threads` threads read sequentially in total.
pub(crate) fn sequential_gigabytes_per_second(
    options: &MemoryOptions,
    threads: usize,
    runs: usize,
) -> Result<Option<Measured>, MemoryError> {
    let run = |_| Ok::<_, MemoryError>(memory::sequential_bytes_per_second(options, threads)? / 1e9);
    Ok(Measured::of_runs((0..runs.max(1)).map(run).collect::<Result<Vec<_>, _>>()?))
}

/// Time-stamp counter ticks of one prefetch instruction.
#[derive(Debug, Clone)]
pub(crate) struct PrefetchInstruction {
    /// For a line in the first-level cache.
    pub(crate) cached_cycles: Option<Measured>,
    /// For a line in memory, beside other work.
    pub(crate) dram_cycles: Option<Measured>,
}

/// Measures both costs.
pub(crate) fn prefetch_instruction(options: &MemoryOptions, runs: usize) -> Result<PrefetchInstruction, MemoryError> {
    let run = |_| memory::measure_prefetch_issue(options);
    let issues = (0..runs.max(1)).map(run).collect::<Result<Vec<_>, _>>()?;
    Ok(PrefetchInstruction {
        cached_cycles: Measured::of_runs(issues.iter().map(|issue| issue.cached_cycles)),
        dram_cycles: Measured::of_runs(issues.iter().map(|issue| issue.dram_cycles)),
    })
}
