//! Estimates of DRAM accesses of a FIB lookup: binary Patricia trie and hash table.

use namehop_model::hash_table::{
    SearchOrder, longest_first_accesses, longest_first_lookups, longest_first_lookups_of, two_stage_accesses,
};
use namehop_model::patricia::PatriciaModel;

use crate::published::{self, DRAM_CYCLES, NAME_COMPONENTS, PREFIX_COMPONENTS};
use crate::report::{Cell, Chart, ChartKind, Report, Row, Series};
use crate::{Context, ReproduceError};

const MEBIBYTE: f64 = 1024.0 * 1024.0;

fn published_model() -> PatriciaModel {
    PatriciaModel {
        prefixes: published::PREFIXES,
        bytes_per_packet: published::PATRICIA_BYTES_PER_PACKET,
        cache_bytes: published::CACHE_BYTES,
    }
}

/// Thesis 4.1.3.
pub(crate) fn patricia(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let dependent_ns = context.dram()?.dependent_ns;
    let model = published_model();
    let mut cases = vec![("as published", model, Some((published::PATRICIA_DEPTH, published::PATRICIA_ACCESSES)))];
    if let Some(cache_bytes) = context.machine.last_level_cache_bytes {
        let here = PatriciaModel { cache_bytes: cache_bytes as f64, ..model };
        cases.push(("this machine's cache", here, None));
        let share = PatriciaModel { cache_bytes: cache_bytes as f64 / context.machine.cores as f64, ..model };
        cases.push(("one core's share of it", share, None));
        if context.settings.prefixes != model.prefixes {
            let prefixes = context.settings.prefixes;
            cases.push(("this machine's cache, prefixes asked for", PatriciaModel { prefixes, ..here }, None));
        }
    }
    let rows = cases.iter().map(|(label, model, published)| {
        Row::new(
            *label,
            [
                Cell::Number(model.prefixes as f64),
                Cell::Number(model.cache_bytes / MEBIBYTE),
                published.map(|(depth, _)| depth).into(),
                Cell::Text(format!("{:.3}", model.leaf_depth())),
                published.map(|(_, accesses)| accesses).into(),
                Cell::Number(f64::from(model.dram_accesses())),
                Cell::Number(model.dependent_time(DRAM_CYCLES)),
                Cell::Number(model.dependent_time(dependent_ns)),
            ],
        )
    });
    let columns = [
        "prefixes",
        "cache MiB",
        "depth published",
        "depth",
        "DRAM accesses published",
        "DRAM accesses",
        "cycles at 115 each",
        "ns at this machine's latency",
    ];
    let difference = "log2(13,548,815) + 0.3327 is 24.024 and was printed as 24.01; a cache of another size holds other \
                      levels of the trie, and each vertex that comes from memory takes this machine's latency.";
    let x: Vec<f64> = (16..=36).map(|step| f64::from(step) / 4.0).collect();
    let curve = |model: PatriciaModel| -> Vec<Option<f64>> {
        let at = |&x: &f64| PatriciaModel { prefixes: 10f64.powf(x) as u64, ..model }.dram_accesses();
        x.iter().map(|x| Some(f64::from(at(x)))).collect()
    };
    let series: Vec<Series> = cases.iter().take(2).map(|&(label, model, _)| Series::new(label, curve(model))).collect();
    let chart = Chart {
        name: "patricia".to_owned(),
        title: "DRAM accesses of one lookup in a binary Patricia trie".to_owned(),
        y_label: "vertices from DRAM".to_owned(),
        kind: ChartKind::Lines { x_label: "log10 of the number of prefixes".to_owned(), x: x.clone() },
        series,
    };
    Ok(Report::new(&columns, rows.collect(), difference).with_charts([chart]))
}

/// Thesis 4.1.2, ICN'17 6.3.
pub(crate) fn hash_table(context: &mut Context<'_>) -> Result<Report, ReproduceError> {
    let dependent_ns = context.dram()?.dependent_ns;
    let here = |lookups: f64, entries: f64, published: Option<f64>, order: SearchOrder, dependent: Option<f64>| {
        let computed = f64::from(order.dependent_accesses());
        [
            Cell::Number(lookups),
            Cell::Number(entries),
            published.into(),
            Cell::Number(lookups + entries),
            dependent.into(),
            Cell::Number(computed),
            Cell::Number(computed * DRAM_CYCLES),
            Cell::Number(computed * dependent_ns),
        ]
    };
    let longest = SearchOrder::LongestFirst;
    let lookups = f64::from(longest_first_lookups(NAME_COMPONENTS, PREFIX_COMPONENTS));
    let needed_lookups = f64::from(longest_first_lookups_of([PREFIX_COMPONENTS], NAME_COMPONENTS, PREFIX_COMPONENTS));
    let two_stage = two_stage_accesses(NAME_COMPONENTS, PREFIX_COMPONENTS + 1, PREFIX_COMPONENTS, Some(5));
    let published_entries = longest_first_accesses(published::LOOKUPS) - published::LOOKUPS;
    let rows = vec![
        Row::new(
            "longest-first, as published",
            here(published::LOOKUPS, published_entries, Some(published::HASH_TABLE_ACCESSES), longest, Some(2.0)),
        ),
        Row::new("longest-first, names of 7, prefix of 4", here(lookups, 1.0, None, longest, None)),
        Row::new("longest-first, only lengths that hold prefixes (4)", here(needed_lookups, 1.0, None, longest, None)),
        Row::new(
            "2-stage from M = 4, prefix of 5",
            here(f64::from(two_stage.buckets), f64::from(two_stage.entries), None, SearchOrder::TwoStage, Some(4.0)),
        ),
    ];
    let columns = [
        "buckets",
        "entries",
        "accesses published",
        "accesses",
        "dependent published",
        "dependent",
        "cycles at 115 each",
        "ns at this machine's latency",
    ];
    let difference = "The published estimate looks up every length from the full name down; a FIB that knows which \
                      lengths its prefixes have looks up those only, and all buckets come in parallel, so that two \
                      dependent accesses remain.";
    Ok(Report::new(&columns, rows, difference))
}
