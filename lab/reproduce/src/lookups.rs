//! Longest prefix match in three structures over the same prefixes, measured on this host.

use std::ops::RangeInclusive;

use namehop_bench::lpm::{LongestFirst, LongestPrefixMatch, Patricia, TwoStage};
use namehop_bench::workload::{Workload, WorkloadParameters};
use namehop_hash::HashKey;
use namehop_model::hash_table::{longest_first_accesses, longest_first_lookups_of, two_stage_accesses};
use namehop_model::patricia::PatriciaModel;
use namehop_wire::NameRef;

use crate::context::{Context, count, table_pages};
use crate::estimates::published_model;
use crate::measured::lookups::{self, LookupRuns};
use crate::published::{self, DRAM_CYCLES, NAME_COMPONENTS, PREFIX_COMPONENTS};
use crate::report::{Cell, Chart, ChartKind, Column, Report, Row, Series, number};
use crate::{NO_FIGURES, ReproduceError};

/// Names per group, enough to keep as many lines in flight as a core allows.
const GROUP: usize = 32;
/// The structures.
const NAMES: [&str; 3] = ["longest-first search", "2-stage search", "Patricia trie"];
/// Columns with the cycles of one lookup, alone and in groups.
const CYCLES: [usize; 2] = [5, 6];

/// Thesis 4.1.2 and 4.1.3.
pub(crate) fn two_stage(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let uniform = PREFIX_COMPONENTS..=PREFIX_COMPONENTS;
    let mixed = PREFIX_COMPONENTS - 2..=PREFIX_COMPONENTS + 2;
    let prefixes = context.settings.prefixes;
    let mut rows = Vec::new();
    let mut charts = Vec::new();
    let mut pages = String::new();
    for (name, title, lengths) in
        [("4", "of 4 components", uniform), ("2-6", "of 2 to 6 components, 4 on average", mixed)]
    {
        let all;
        (all, pages) = measure_all(context, lengths.clone())?;
        let of_lengths: Vec<Row> = table_rows(name, &all, lengths, prefixes).collect();
        charts.push(chart(
            &format!("-{name}"),
            &format!("One longest prefix match, {prefixes} prefixes {title}"),
            &of_lengths,
        ));
        rows.extend(of_lengths);
    }
    let columns = vec![
        Column::published("dependent accesses"),
        Column::computed("cycles at 115 each"),
        Column::computed("lines"),
        Column::measured("lines"),
        Column::measured("dependent lines"),
        Column::measured("cycles"),
        Column::measured("cycles, prefetched"),
        Column::measured("bytes per prefix"),
        Column::measured("found %"),
    ];
    let difference = format!(
        "The papers count dependent accesses at 115 cycles and omit cached lines; here lookups of unknown names are \
         timed without hashing, one at a time and in groups of {GROUP} whose accesses overlap. With overlap, the total \
         number of lines matters, not the number of dependent ones. Lines are computed by the model, and counted by \
         following each lookup."
    );
    let (runs, time) = (context.settings.runs.max(1), context.settings.memory.time);
    let conditions = [
        format!("{}, time-stamp counter of {} GHz", context.machine.processor, number(context.machine.cycles_hz / 1e9)),
        format!("{} of {} ms per time; median (minimum to maximum)", count(runs, "run"), time.as_millis()),
        format!("pages of the structures of the last rows: {pages}"),
    ];
    let limits = [
        "Records of all three structures have the layout of a FIB entry: one cache line, names of up to 44 bytes \
         inline, longer ones in a separate block that costs one more dependent access. Unlike the FIB, the 2-stage \
         search and the trie have no next hops, no concurrent updates and no checks for them.",
        "Each structure is filled once; runs repeat only the lookups, so the spread does not include the effect of \
         memory placement.",
        "The 2-stage search is best if all prefixes have M components; otherwise it pays for virtual entries.",
        "All bytes of names are random, as the trie's model assumes; real names share more.",
    ];
    Ok(Report::new(columns, rows, difference).with_charts(charts).with_conditions(conditions).with_limits(limits))
}

fn table_rows(
    lengths_name: &str,
    all: &[LookupRuns; 3],
    lengths: RangeInclusive<u32>,
    prefixes: u64,
) -> impl Iterator<Item = Row> {
    let [longest_first, two_stage] = published::HASH_TABLE_DEPENDENT;
    let dependent = [longest_first, two_stage, published::PATRICIA_ACCESSES];
    let vertices = PatriciaModel { prefixes, ..published_model() }.path_vertices();
    let lines = [longest_first_lines(lengths.clone()), two_stage_lines(lengths), f64::from(vertices + 1)];
    (0..NAMES.len()).map(move |structure| {
        let runs = all[structure].clone();
        let measured = |value| Cell::measured(value, NO_FIGURES);
        Row::new(
            format!("{}, prefixes of {lengths_name}", NAMES[structure]),
            [
                dependent[structure].into(),
                Cell::Computed(dependent[structure].value() * DRAM_CYCLES.value()),
                Cell::Computed(lines[structure]),
                measured(runs.lines),
                measured(runs.dependent_lines),
                measured(runs.plain_cycles),
                measured(runs.prefetched_cycles),
                measured(runs.bytes_per_prefix),
                measured(runs.found_percent),
            ],
        )
    })
}

/// Average of `of` over these lengths.
fn average(lengths: RangeInclusive<u32>, of: impl Fn(u32) -> u32) -> f64 {
    let count = lengths.clone().count();
    f64::from(lengths.map(of).sum::<u32>()) / count as f64
}

/// Average number of buckets and entries that a longest-first search reads if it knows the lengths present. The model
/// ignores blocks of long names.
fn longest_first_lines(lengths: RangeInclusive<u32>) -> f64 {
    let lookups = average(lengths.clone(), |found| longest_first_lookups_of(lengths.clone(), NAME_COMPONENTS, found));
    longest_first_accesses(lookups)
}

/// Average number of buckets and entries that a 2-stage search reads if prefixes have nothing in common.
fn two_stage_lines(lengths: RangeInclusive<u32>) -> f64 {
    average(lengths, |found| {
        let below = (found >= PREFIX_COMPONENTS).then_some(found);
        let accesses = two_stage_accesses(NAME_COMPONENTS, found, PREFIX_COMPONENTS, below);
        accesses.buckets + accesses.entries
    })
}

fn chart(name: &str, title: &str, rows: &[Row]) -> Chart {
    let [plain, prefetched] = CYCLES;
    Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        y_label: "cycles, measured".to_owned(),
        kind: ChartKind::Bars { categories: NAMES.map(str::to_owned).to_vec() },
        series: vec![
            Series::of_column("one at a time", rows, plain),
            Series::of_column("in groups, prefetched", rows, prefetched),
        ],
    }
}

/// Measures the three structures, one after the other. Also returns the page kinds of the last one.
fn measure_all(
    context: &mut Context<'_>,
    lengths: RangeInclusive<u32>,
) -> Result<([LookupRuns; 3], String), ReproduceError> {
    let workloads = workloads(context.settings.prefixes, lengths)?;
    let key = HashKey::random();
    let prefixes = workloads.iter().map(|workload| workload.parameters().prefixes).sum::<u64>();
    // Virtual entries for prefixes of more than M components need entries of their own.
    let capacity = u32::try_from(2 * prefixes).unwrap_or(u32::MAX);
    let (fib, _) = measured(context, NAMES[0], LongestFirst::new(key)?, &workloads, &key)?;
    let table = TwoStage::new(key, PREFIX_COMPONENTS as usize, capacity)?;
    let (table, _) = measured(context, NAMES[1], table, &workloads, &key)?;
    let (trie, pages) = measured(context, NAMES[2], Patricia::new(capacity / 2)?, &workloads, &key)?;
    Ok(([fib, table, trie], pages))
}

/// Creates workloads with prefixes of these lengths in equal numbers, and names below all of them.
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

/// Fills and measures a structure.
fn measured<L: LongestPrefixMatch>(
    context: &mut Context<'_>,
    name: &str,
    mut structure: L,
    workloads: &[Workload],
    key: &HashKey,
) -> Result<(LookupRuns, String), ReproduceError> {
    context.progress(&format!("filling: {name}"));
    for workload in workloads {
        let mut value = vec![0; workload.prefix_bytes()];
        for number in 0..workload.parameters().prefixes {
            workload.write_prefix(number, &mut value);
            // The prefixes of a workload are valid names.
            if let Ok(prefix) = NameRef::from_value(&value) {
                structure.insert(prefix, number as u32)?;
            }
        }
    }
    context.progress(&format!("looking up: {name}"));
    let (time, runs) = (context.settings.memory.time, context.settings.runs);
    Ok((lookups::measure(&structure, workloads, key, GROUP, time, runs), table_pages()))
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
