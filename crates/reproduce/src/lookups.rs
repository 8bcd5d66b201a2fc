//! Longest prefix match in three structures over the same prefixes, measured on this machine.

use std::ops::RangeInclusive;

use namehop_bench::lpm::{
    LongestFirst, LongestPrefixMatch, LookupFigures, LookupOptions, Patricia, TwoStage, measure_lookups,
};
use namehop_bench::workload::{Workload, WorkloadParameters};
use namehop_hash::HashKey;
use namehop_model::hash_table::{SearchOrder, longest_first_accesses, longest_first_lookups_of, two_stage_accesses};
use namehop_model::patricia::PatriciaModel;
use namehop_wire::NameRef;

use crate::published::{self, DRAM_CYCLES, NAME_COMPONENTS, PREFIX_COMPONENTS};
use crate::report::{Cell, Chart, ChartKind, Report, Row, Series};
use crate::{Context, ReproduceError};

/// Names looked up as one group: enough to keep as many lines in flight as a core can have.
const GROUP: usize = 32;
/// The structures.
const NAMES: [&str; 3] = ["longest-first search", "2-stage search", "Patricia trie"];

/// What was measured of one structure.
struct Measured {
    figures: LookupFigures,
    bytes: usize,
}

/// Thesis 4.1.2 and 4.1.3.
pub(crate) fn two_stage(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let uniform = PREFIX_COMPONENTS..=PREFIX_COMPONENTS;
    let mixed = PREFIX_COMPONENTS - 2..=PREFIX_COMPONENTS + 2;
    let prefixes = context.settings.prefixes;
    let mut rows = Vec::new();
    let mut charts = Vec::new();
    for (name, title, lengths) in
        [("4", "of 4 components", uniform), ("2-6", "of 2 to 6 components, 4 on average", mixed)]
    {
        let all = measure_all(context, lengths.clone())?;
        rows.extend(table_rows(name, &all, lengths, prefixes));
        charts.push(chart(name, &format!("One longest prefix match, {prefixes} prefixes {title}"), &all));
    }
    let columns = [
        "dependent accesses published",
        "their cycles published",
        "lines looked at",
        "cycles",
        "ns",
        "cycles prefetched",
        "ns prefetched",
        "bytes per prefix",
        "found %",
    ];
    let difference = format!(
        "The papers count dependent accesses at 115 cycles; here lookups of unknown names are timed without hashing, one \
         by one and in groups of {GROUP} whose accesses overlap, and once they overlap it is the number of lines that \
         counts and no longer how many wait for each other."
    );
    Ok(Report::new(&columns, rows, difference).with_charts(charts))
}

fn table_rows(
    lengths_name: &str,
    all: &[Measured; 3],
    lengths: RangeInclusive<u32>,
    prefixes: u64,
) -> impl Iterator<Item = Row> {
    let patricia = PatriciaModel {
        prefixes: published::PREFIXES,
        bytes_per_packet: published::PATRICIA_BYTES_PER_PACKET,
        cache_bytes: published::CACHE_BYTES,
    };
    let dependent = [
        SearchOrder::LongestFirst.dependent_accesses(),
        SearchOrder::TwoStage.dependent_accesses(),
        patricia.dram_accesses(),
    ];
    let vertices = PatriciaModel { prefixes, ..patricia }.path_vertices();
    let lines = [longest_first_lines(lengths.clone()), two_stage_lines(lengths), f64::from(vertices + 1)];
    (0..NAMES.len()).map(move |structure| {
        let Measured { figures, bytes } = &all[structure];
        Row::new(
            format!("{}, prefixes of {lengths_name}", NAMES[structure]),
            [
                Cell::Number(f64::from(dependent[structure])),
                Cell::Number(f64::from(dependent[structure]) * DRAM_CYCLES),
                Cell::Number(lines[structure]),
                Cell::Number(figures.plain_cycles),
                Cell::Number(figures.plain_ns),
                Cell::Number(figures.prefetched_cycles),
                Cell::Number(figures.prefetched_ns),
                Cell::Number(*bytes as f64 / prefixes as f64),
                Cell::Number(100.0 * figures.found),
            ],
        )
    })
}

/// Average over prefixes of these lengths.
fn average(lengths: RangeInclusive<u32>, of: impl Fn(u32) -> u32) -> f64 {
    let count = lengths.clone().count();
    f64::from(lengths.map(of).sum::<u32>()) / count as f64
}

/// Buckets and entries that a longest-first search looks at, on average, when it knows which lengths there are.
fn longest_first_lines(lengths: RangeInclusive<u32>) -> f64 {
    let lookups = average(lengths.clone(), |found| longest_first_lookups_of(lengths.clone(), NAME_COMPONENTS, found));
    longest_first_accesses(lookups)
}

/// Buckets and entries that a 2-stage search looks at, on average, when prefixes have nothing in common.
fn two_stage_lines(lengths: RangeInclusive<u32>) -> f64 {
    average(lengths, |found| {
        let below = (found >= PREFIX_COMPONENTS).then_some(found);
        let accesses = two_stage_accesses(NAME_COMPONENTS, found, PREFIX_COMPONENTS, below);
        accesses.buckets + accesses.entries
    })
}

fn chart(name: &str, title: &str, all: &[Measured; 3]) -> Chart {
    let values = |of: fn(&LookupFigures) -> f64| all.iter().map(|one| Some(of(&one.figures))).collect::<Vec<_>>();
    Chart {
        name: format!("two-stage-{name}"),
        title: title.to_owned(),
        y_label: "ns".to_owned(),
        kind: ChartKind::Bars { categories: NAMES.map(str::to_owned).to_vec() },
        series: vec![
            Series::new("one by one", values(|figures| figures.plain_ns)),
            Series::new("in groups, prefetched", values(|figures| figures.prefetched_ns)),
        ],
    }
}

/// Measures the three structures, one after the other.
fn measure_all(context: &mut Context<'_>, lengths: RangeInclusive<u32>) -> Result<[Measured; 3], ReproduceError> {
    let workloads = workloads(context.settings.prefixes, lengths)?;
    let key = HashKey::random();
    let prefixes = workloads.iter().map(|workload| workload.parameters().prefixes).sum::<u64>();
    // Signposts for prefixes of more than M components need entries of their own.
    let capacity = u32::try_from(2 * prefixes).unwrap_or(u32::MAX);
    let fib = measured(context, NAMES[0], LongestFirst::new(key)?, &workloads, &key)?;
    let table = TwoStage::new(key, PREFIX_COMPONENTS as usize, capacity)?;
    let table = measured(context, NAMES[1], table, &workloads, &key)?;
    let trie = measured(context, NAMES[2], Patricia::new(capacity / 2)?, &workloads, &key)?;
    Ok([fib, table, trie])
}

/// Prefixes of these lengths in equal numbers; names below all of them.
fn workloads(prefixes: u64, lengths: RangeInclusive<u32>) -> Result<Vec<Workload>, ReproduceError> {
    let kinds = lengths.clone().count() as u64;
    let workloads = lengths.map(|prefix_components| {
        Workload::new(WorkloadParameters {
            prefixes: (prefixes / kinds).max(1),
            prefix_components: prefix_components as usize,
            components: NAME_COMPONENTS as usize,
            seed: u64::from(prefix_components),
            ..WorkloadParameters::default()
        })
    });
    Ok(workloads.collect::<Result<_, _>>()?)
}

/// Fills a structure and measures it.
fn measured<L: LongestPrefixMatch>(
    context: &mut Context<'_>,
    name: &str,
    mut structure: L,
    workloads: &[Workload],
    key: &HashKey,
) -> Result<Measured, ReproduceError> {
    context.progress(&format!("filling: {name}"));
    for workload in workloads {
        let mut value = vec![0; workload.prefix_bytes()];
        for number in 0..workload.parameters().prefixes {
            workload.write_prefix(number, &mut value);
            // A workload's prefixes are valid names.
            if let Ok(prefix) = NameRef::from_value(&value) {
                structure.insert(prefix, number as u32)?;
            }
        }
    }
    context.progress(&format!("looking up: {name}"));
    let options = LookupOptions { group: GROUP, first_name: 0, time: context.settings.time() };
    let figures = measure_lookups(&structure, workloads, key, &options);
    Ok(Measured { figures, bytes: structure.bytes() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_looked_at_follow_from_the_lengths() {
        assert_eq!((longest_first_lines(4..=4), two_stage_lines(4..=4)), (2.0, 2.0));
        // 1 to 5 buckets and an entry; 3, 2, 1, 2, 2 buckets and 1, 1, 1, 2, 2 entries.
        assert_eq!((longest_first_lines(2..=6), two_stage_lines(2..=6)), (4.0, 3.4));
    }
}
