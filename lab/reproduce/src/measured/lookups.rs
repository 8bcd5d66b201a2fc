//! Measurements of lookups in the compared structures.

use std::time::Duration;

use namehop_bench::lpm::{
    LongestPrefixMatch, LookupFigures, LookupOptions, LpmError, MeanLines, count_lines, measure_lookups,
    vain_lookup_cycles,
};
use namehop_bench::workload::Workload;
use namehop_hash::HashKey;

use super::Measured;

/// Distance between the first names of two runs: more than the names of one run.
const NAMES_OF_RUN: u64 = 1 << 32;
/// Number of names per run for which cache lines are counted.
const COUNTED_NAMES: usize = 20_000;

/// Cost of lookups in one structure. All figures except the last are per lookup.
#[derive(Debug, Clone)]
pub(crate) struct LookupRuns {
    /// Time-stamp counter ticks, one lookup after the other.
    pub(crate) plain_cycles: Option<Measured>,
    /// Time-stamp counter ticks, in groups with prefetching.
    pub(crate) prefetched_cycles: Option<Measured>,
    /// Share of names with a matching prefix, in per cent.
    pub(crate) found_percent: Option<Measured>,
    /// Cache lines, counted.
    pub(crate) lines: Option<Measured>,
    /// Cache lines on the chain of dependent accesses, counted.
    pub(crate) dependent_lines: Option<Measured>,
    /// Memory of the structure per prefix, in bytes.
    pub(crate) bytes_per_prefix: Option<Measured>,
}

/// Measures a filled structure, with new names in every run.
pub(crate) fn measure<L: LongestPrefixMatch>(
    structure: &L,
    workloads: &[Workload],
    key: &HashKey,
    group: usize,
    time: Duration,
    runs: usize,
) -> LookupRuns {
    let all: Vec<(LookupFigures, MeanLines)> = (0..runs.max(1) as u64)
        .map(|run| {
            let first_name = run * NAMES_OF_RUN;
            let options = LookupOptions { group, first_name, time };
            let figures = measure_lookups(structure, workloads, key, &options);
            (figures, count_lines(structure, workloads, key, first_name, COUNTED_NAMES))
        })
        .collect();
    let of_runs = |of: fn(&(LookupFigures, MeanLines)) -> f64| Measured::of_runs(all.iter().map(of));
    let prefixes: u64 = workloads.iter().map(|workload| workload.parameters().prefixes).sum();
    LookupRuns {
        plain_cycles: of_runs(|(figures, _)| figures.plain_cycles),
        prefetched_cycles: of_runs(|(figures, _)| figures.prefetched_cycles),
        found_percent: of_runs(|(figures, _)| 100.0 * figures.found),
        lines: of_runs(|(_, lines)| lines.all),
        dependent_lines: of_runs(|(_, lines)| lines.dependent),
        bytes_per_prefix: Measured::of_runs([structure.bytes() as f64 / prefixes as f64]),
    }
}

/// Time-stamp counter ticks to search one bucket without a match.
pub(crate) fn vain_lookup(time: Duration, runs: usize) -> Result<Option<Measured>, LpmError> {
    Ok(Measured::of_runs((0..runs.max(1)).map(|_| vain_lookup_cycles(time)).collect::<Result<Vec<_>, _>>()?))
}
