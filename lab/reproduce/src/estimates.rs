//! Estimates of DRAM accesses of a FIB lookup: binary Patricia trie and hash table.

use namehop_model::hash_table::{
    longest_first_accesses, longest_first_dependent, longest_first_lookups, longest_first_lookups_of,
    two_stage_accesses,
};
use namehop_model::patricia::PatriciaModel;

use crate::ReproduceError;
use crate::context::Context;
use crate::measured::memory::Dram;
use crate::published::{self, DRAM_CYCLES, NAME_COMPONENTS, PREFIX_COMPONENTS, Published};
use crate::report::{Cell, Chart, ChartKind, Column, Point, Report, Row, Series, number};

const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// The model with published parameters.
pub(crate) fn published_model() -> PatriciaModel {
    PatriciaModel {
        prefixes: published::PREFIXES,
        bytes_per_packet: published::PATRICIA_BYTES_PER_PACKET.value(),
        cache_bytes: published::CACHE_BYTES.value(),
    }
}

/// Column head for times by this host's memory latency, and conditions that state that latency.
fn at_latency(context: &Context<'_>, dram: &Dram) -> (Column, Vec<String>) {
    let latency = match &dram.dependent_ns {
        Some(ns) => format!(
            "one dependent access: {} ns measured ({} to {})",
            number(ns.median()),
            number(ns.least()),
            number(ns.most())
        ),
        None => "the memory latency could not be measured".to_owned(),
    };
    (Column::computed("ns at the measured latency"), vec![latency, context.memory_conditions(&dram.pages)])
}

/// Time of `accesses` dependent accesses at the measured latency, in nanoseconds.
fn ns(accesses: f64, dram: &Dram) -> Cell {
    dram.dependent_ns.as_ref().map_or(Cell::Empty, |ns| Cell::Computed(accesses * ns.median()))
}

/// One case of the Patricia trie model.
struct TrieCase {
    label: &'static str,
    model: PatriciaModel,
    cache_mebibytes: Cell,
    /// Average depth and DRAM accesses as printed.
    printed: [Cell; 2],
}

fn trie_cases(context: &Context<'_>) -> Vec<TrieCase> {
    let model = published_model();
    let mut cases = vec![TrieCase {
        label: "as published",
        model,
        cache_mebibytes: Cell::Computed(model.cache_bytes / MEBIBYTE),
        printed: [published::PATRICIA_DEPTH.into(), published::PATRICIA_ACCESSES.into()],
    }];
    let Some(cache) = context.machine_figures().last_level_cache_mebibytes else { return cases };
    let mebibytes = cache.median();
    let mut case = |label, prefixes, mebibytes: f64, cache_mebibytes| {
        let model = PatriciaModel { prefixes, cache_bytes: mebibytes * MEBIBYTE, ..model };
        cases.push(TrieCase { label, model, cache_mebibytes, printed: [Cell::Empty, Cell::Empty] });
    };
    let share = mebibytes / context.machine.cores as f64;
    case("this host's cache", model.prefixes, mebibytes, Cell::Measured(cache.clone()));
    case("one core's share of it", model.prefixes, share, Cell::Computed(share));
    let prefixes = context.settings.prefixes;
    if prefixes != model.prefixes {
        case("this host's cache, prefixes as given", prefixes, mebibytes, Cell::Measured(cache));
    }
    cases
}

/// Thesis 4.1.3.
pub(crate) fn patricia(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let dram = context.dram()?;
    let cases = trie_cases(context);
    let rows = cases.iter().map(|TrieCase { label, model, cache_mebibytes, printed }| {
        let [depth, accesses] = printed.clone();
        let computed = f64::from(model.dram_accesses());
        Row::new(
            *label,
            [
                Cell::Text(model.prefixes.to_string()),
                cache_mebibytes.clone(),
                published::PATRICIA_BYTES_PER_PACKET.into(),
                depth,
                Cell::Text(format!("{:.3}", model.leaf_depth())),
                accesses,
                Cell::Computed(computed),
                Cell::Computed(model.dependent_time(DRAM_CYCLES.value())),
                ns(computed, &dram),
            ],
        )
    });
    let (ns_column, conditions) = at_latency(context, &dram);
    let columns = vec![
        Column::mixed("prefixes"),
        Column::mixed("cache MiB"),
        Column::published("bytes per packet"),
        Column::published("depth"),
        Column::computed("depth"),
        Column::published("DRAM accesses"),
        Column::computed("DRAM accesses"),
        Column::computed("cycles at 115 each"),
        ns_column,
    ];
    let difference = "log2(13,548,815) + 0.3327 is 24.024, printed as 24.01. A cache of another size holds other \
        levels of the trie. Letters after numbers: c computed, m reported by the system.";
    let limits = [
        "All rows use the published model; no trie is built: 'two-stage' builds one and counts.",
        "All rows use the published bytes per packet that pass through the cache: the memory controllers of this host \
         are not read. The text uses 511 bytes for a Data, but table 3.1 has 511 for an I-hit and 816 for a Data.",
        "In a virtual machine, the reported cache may be shared with other guests.",
    ];
    let x: Vec<f64> = (16..=36).map(|step| f64::from(step) / 4.0).collect();
    let curve = |model: PatriciaModel| -> Vec<Option<Point>> {
        let at = |&x: &f64| PatriciaModel { prefixes: 10f64.powf(x) as u64, ..model }.dram_accesses();
        x.iter().map(|x| Some(f64::from(at(x)).into())).collect()
    };
    let series: Vec<Series> =
        cases.iter().take(2).map(|case| Series::new(format!("{}, computed", case.label), curve(case.model))).collect();
    let chart = Chart {
        name: String::new(),
        title: "DRAM accesses of one lookup in a binary Patricia trie".to_owned(),
        y_label: "vertices from DRAM".to_owned(),
        kind: ChartKind::Lines { x_label: "log10 of the number of prefixes".to_owned(), x: x.clone() },
        series,
    };
    let report = Report::new(columns, rows.collect(), difference).with_charts([chart]);
    Ok(report.with_conditions(conditions).with_limits(limits))
}

/// Thesis 4.1.2, ICN'17 6.3.
pub(crate) fn hash_table(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let dram = context.dram()?;
    let row = |label: &str, buckets: Cell, entries: f64, printed: [Option<Published>; 2], dependent: u32| {
        let accesses = buckets.value().map_or(Cell::Empty, |buckets| Cell::Computed(buckets + entries));
        let [printed_accesses, printed_dependent] = printed;
        let dependent = f64::from(dependent);
        let cells = [
            buckets,
            Cell::Computed(entries),
            printed_accesses.into(),
            accesses,
            printed_dependent.into(),
            Cell::Computed(dependent),
            Cell::Computed(dependent * DRAM_CYCLES.value()),
            ns(dependent, &dram),
        ];
        Row::new(label, cells)
    };
    let [longest_first, two_stage] = published::HASH_TABLE_DEPENDENT;
    let lookups = longest_first_lookups(NAME_COMPONENTS, PREFIX_COMPONENTS);
    let needed = longest_first_lookups_of([PREFIX_COMPONENTS], NAME_COMPONENTS, PREFIX_COMPONENTS);
    let stages =
        two_stage_accesses(NAME_COMPONENTS, PREFIX_COMPONENTS + 1, PREFIX_COMPONENTS, Some(PREFIX_COMPONENTS + 1));
    let direct = two_stage_accesses(NAME_COMPONENTS, PREFIX_COMPONENTS, PREFIX_COMPONENTS, Some(PREFIX_COMPONENTS));
    let published_lookups = published::LOOKUPS.value();
    let entries = longest_first_accesses(published_lookups) - published_lookups;
    let computed = |buckets: u32| Cell::Computed(f64::from(buckets));
    let rows = vec![
        row(
            "longest-first, as published",
            published::LOOKUPS.into(),
            entries,
            [Some(published::HASH_TABLE_ACCESSES), Some(longest_first)],
            longest_first_dependent(lookups),
        ),
        row(
            "longest-first, names of 7, prefix of 4",
            computed(lookups),
            entries,
            [None, None],
            longest_first_dependent(lookups),
        ),
        row(
            "longest-first, only lengths that hold prefixes (4)",
            computed(needed),
            entries,
            [None, None],
            longest_first_dependent(needed),
        ),
        row(
            "2-stage from M = 4, prefix of 5",
            computed(stages.buckets),
            f64::from(stages.entries),
            [None, Some(two_stage)],
            stages.dependent,
        ),
        row(
            "2-stage from M = 4, prefix of 4, nothing below",
            computed(direct.buckets),
            f64::from(direct.entries),
            [None, None],
            direct.dependent,
        ),
    ];
    let (ns_column, conditions) = at_latency(context, &dram);
    let columns = vec![
        Column::mixed("buckets"),
        Column::computed("entries"),
        Column::published("accesses"),
        Column::computed("accesses"),
        Column::published("dependent"),
        Column::computed("dependent"),
        Column::computed("cycles at 115 each"),
        ns_column,
    ];
    let difference = "The published estimate looks up every length from the full name down; a FIB that knows the \
        lengths of its prefixes looks up only those. Buckets of one stage are fetched in parallel, so the number of \
        dependent accesses is the number of stages; a 2-stage search needs its second stage only if the first finds no \
        match. Letters after numbers: p published, c computed.";
    let limits = ["All rows are arithmetic on the steps of the search: 'two-stage' counts and times them in real \
            structures."];
    let report = Report::new(columns, rows, difference);
    Ok(report.with_conditions(conditions).with_limits(limits))
}
