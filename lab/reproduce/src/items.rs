//! The list of tables, figures and estimates, and how a context runs them.

use crate::context::{Context, Instruments};
use crate::report::Report;
use crate::{
    ReproduceError, caching, engine_figures, engine_tables, estimates, links, lookups, power, prefetches, programs,
    throughput,
};

/// Instrument that an item needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// The forwarding engine.
    Engine,
    /// Routers between links.
    Links,
    /// Compiled P4 programs.
    Programs,
}

/// One published table, figure or estimate.
pub struct Item {
    /// Identifier on the command line.
    pub id: &'static str,
    /// Title.
    pub title: &'static str,
    /// Publication.
    pub source: &'static str,
    /// Instrument that it needs.
    pub needs: Needs,
    pub(crate) run: fn(&mut Context<'_>) -> Result<Report, ReproduceError>,
}

macro_rules! items {
    ($($id:literal, $needs:ident, $title:literal, $source:literal, $run:path;)*) => {
        &[$(Item { id: $id, title: $title, source: $source, needs: Needs::$needs, run: $run }),*]
    };
}

/// All items, in the order of the thesis.
pub(crate) const ITEMS: &[Item] = items![
    "throughput-bound", Nothing, "Upper bound of the forwarding rate: min(NF/C, B/M)",
        "Taniguchi et al. (2016), equation 1; Takemasa (2019), equation 3.1", throughput::bound;
    "table-3.1", Engine, "CPU cycles and memory traffic per packet",
        "Takemasa (2019), table 3.1", engine_tables::table_3_1;
    "table-3.2", Engine, "Cycles by stage of the instruction pipeline",
        "Takemasa (2019), table 3.2", engine_tables::table_3_2;
    "table-3.3", Engine, "Backend stalls by unit",
        "Takemasa (2019), table 3.3", engine_tables::table_3_3;
    "table-3.4", Engine, "Load-unit stalls by level",
        "Takemasa (2019), table 3.4", engine_tables::table_3_4;
    "table-3.5", Engine, "Retired load instructions by level",
        "Takemasa (2019), table 3.5", engine_tables::table_3_5;
    "table-3.6", Engine, "Cycles of an Interest by number of threads",
        "Takemasa (2019), table 3.6", engine_tables::table_3_6;
    "icn17-table-1", Engine, "Cycles in the instruction pipeline: stages, backend, load units",
        "Takemasa et al. (2017), table 1", engine_tables::icn17_table_1;
    "icn17-table-2", Engine, "Retired load instructions by level",
        "Takemasa et al. (2017), table 2", engine_tables::table_3_5;
    "icn17-table-3", Engine, "Cycles of an Interest by number of threads",
        "Takemasa et al. (2017), table 3", engine_tables::table_3_6;
    "patricia", Nothing, "DRAM accesses of a lookup in a binary Patricia trie",
        "Takemasa (2019), 4.1.3; Takemasa et al. (2017), 6.3", estimates::patricia;
    "hash-table", Nothing, "DRAM accesses of a longest prefix match in a hash table",
        "Takemasa (2019), 4.1.2; Takemasa et al. (2017), 6.3", estimates::hash_table;
    "two-stage", Nothing, "Longest-first search, 2-stage search and Patricia trie, measured",
        "Takemasa (2019), 4.1.2 and 4.1.3; Takemasa et al. (2017), 3.3", lookups::two_stage;
    "prefetch-overhead", Nothing, "Cost of useless prefetches",
        "Takemasa et al. (2017), 6.7; Takemasa (2019), 4.3.2", prefetches::overhead;
    "figure-4.5", Engine, "Cycles per packet by schedule, one thread",
        "Takemasa (2019), figure 4.5", engine_figures::figure_4_5;
    "figure-4.6", Engine, "Cycles per packet by schedule, many threads",
        "Takemasa (2019), figure 4.6", engine_figures::figure_4_6;
    "figure-4.7", Engine, "Forwarding speed by number of threads",
        "Takemasa (2019), figure 4.7", engine_figures::figure_4_7;
    "icn17-figure-4", Engine, "Cycles per packet by schedule, one thread and many",
        "Takemasa et al. (2017), figure 4", engine_figures::icn17_figure_4;
    "icn17-figure-5", Engine, "Forwarding speed by number of threads",
        "Takemasa et al. (2017), figure 5", engine_figures::icn17_figure_5;
    "figure-3.3", Engine, "Cycles of the blocks of the packet flow",
        "Takemasa (2019), figure 3.3, 3.3.2", caching::engine::figure_3_3;
    "cache-accesses", Nothing, "Memory accesses of cache policies",
        "Takemasa (2019), 4.2", caching::accesses::accesses;
    "cache-cycles", Nothing, "Average cycles with cache eviction and with cache admission",
        "Takemasa (2019), equations 5.1 and 5.2, 5.1.2", caching::cycles::cycles;
    "filter", Nothing, "False positives, memory and threshold of Filter",
        "Takemasa (2019), 5.2.3 and 5.3.3", caching::filter::false_positives;
    "figure-5.4", Nothing, "Filter's insertion and hit rates by threshold and history",
        "Takemasa (2019), figure 5.4, equations 5.3 to 5.7", caching::filter::figure_5_4;
    "figure-5.5", Nothing, "Insertion rates of Filter and TinyLFU, simulated",
        "Takemasa (2019), figure 5.5", caching::insertion_rates::figure_5_5;
    "figure-5.6", Nothing, "Hit rates of cache policies, simulated",
        "Takemasa (2019), figure 5.6", caching::hit_rates::figure_5_6;
    "table-5.1", Engine, "Cycles of the blocks common to all cache policies",
        "Takemasa (2019), table 5.1", caching::engine::table_5_1;
    "table-5.2", Engine, "Cycles of history updates, evictions and admissions by cache policy",
        "Takemasa (2019), table 5.2, 5.2.4", caching::engine::table_5_2;
    "figure-5.7", Nothing, "Average cycles by cache policy and capacity, from simulated rates",
        "Takemasa (2019), figure 5.7, tables 5.1 and 5.2", caching::cycles::figure_5_7;
    "figure-5.8", Engine, "Forwarding speed by cache policy",
        "Takemasa (2019), figure 5.8", caching::engine::figure_5_8;
    "shi-figure-6", Links, "Forwarding speed by workers and components of names",
        "Shi et al. (2020), figure 6", links::figure_6;
    "shi-figure-7", Links, "Forwarding speed by payload of Data",
        "Shi et al. (2020), figure 7", links::figure_7;
    "shi-table-7.3", Links, "Forwarding speed and latency by entries of the FIB",
        "Shi et al. (2020), 7.3", links::table_7_3;
    "shi-figure-8", Links, "Forwarding speed by hit ratio, with exact and with prefix match",
        "Shi et al. (2020), figure 8", links::figure_8;
    "shi-figure-9", Nothing, "Forwarding speed with memory of another CPU socket",
        "Shi et al. (2020), figure 9", links::figure_9;
    "shi-figure-10", Links, "Latency inside the router, exact match",
        "Shi et al. (2020), figure 10", links::figure_10;
    "shi-figure-11", Links, "Latency inside the router, prefix match",
        "Shi et al. (2020), figure 11", links::figure_11;
    "chassis-power", Nothing, "Power of the servers without load",
        "Takemasa (2019), 6.3.2", power::chassis;
    "table-6.1", Nothing, "Parameters of the E5620 processor's power",
        "Takemasa (2019), table 6.1, equation 6.8", power::table_6_1;
    "table-6.2", Nothing, "Parameters of the E3-1220 processor's power",
        "Takemasa (2019), table 6.2, equation 6.8", power::table_6_2;
    "table-6.3", Nothing, "Parameters of the 9520 processor's power",
        "Takemasa (2019), table 6.3, equation 6.8", power::table_6_3;
    "figure-6.1", Nothing, "Power of one active core by load and frequency",
        "Takemasa (2019), figure 6.1, equation 6.7", power::figure_6_1;
    "figure-6.2", Nothing, "Power that further active cores add",
        "Takemasa (2019), figure 6.2, equation 6.7", power::figure_6_2;
    "power-fits", Nothing, "Quality of the core model's fit",
        "Takemasa (2019), 6.3.3", power::fits;
    "figure-6.3", Nothing, "Power of one busy core by frequency",
        "Takemasa (2019), figure 6.3, equation 6.8", power::figure_6_3;
    "figure-6.4", Nothing, "Power of a processor by load",
        "Takemasa (2019), figure 6.4, equations 6.2 to 6.7", power::figure_6_4;
    "linear-power", Nothing, "Linear approximations of a processor's power",
        "Takemasa (2019), 6.3.3", power::linear;
    "figure-6.5", Nothing, "Power of memory by rate of access",
        "Takemasa (2019), figure 6.5, equation 6.9", power::figure_6_5;
    "figure-6.6", Nothing, "Power of network cards by packet rate",
        "Takemasa (2019), figure 6.6, equation 6.10", power::figure_6_6;
    "figure-6.7", Nothing, "Cycles and bytes of the naive router by block",
        "Takemasa (2019), figure 6.7, equations 6.11 and 6.12", power::figure_6_7;
    "figure-6.8", Nothing, "Cycles and bytes of the optimised router by block",
        "Takemasa (2019), figure 6.8, equations 6.14 and 6.15", power::figure_6_8;
    "figure-6.9", Nothing, "Power of the naive and the optimised router by rate",
        "Takemasa (2019), figure 6.9, 6.5", power::figure_6_9;
    "figure-6.10", Nothing, "Power of the naive and the optimised router by device",
        "Takemasa (2019), figure 6.10, 6.5", power::figure_6_10;
    "p4-figure-1", Programs, "P4 programs: throughput gained by batching and by prefetching",
        "APSys (2017), figure 1, 4.2", programs::figure_1;
    "p4-figure-2", Programs, "P4 programs compared with vanilla code, G-Opt and hand-written loops",
        "APSys (2017), figure 2, 4.3", programs::figure_2;
    "p4-figure-3", Programs, "P4 programs: throughput by number of cores",
        "APSys (2017), figure 3, 4.4", programs::figure_3;
    "p4-figure-4", Programs, "P4 programs: throughput by size of batches and tables",
        "APSys (2017), figure 4, 4.5", programs::figure_4;
    "p4-equations", Programs, "P4 programs: best batch size, predicted and measured",
        "APSys (2017), equations 1 to 6, 3", programs::equations;
    "p4-trie", Programs, "IPv6 with a plain and with a compressed trie",
        "APSys (2017), 4.6", programs::trie;
];

impl Context<'_> {
    /// Returns the items for which the instruments are available.
    pub fn items(&self) -> impl Iterator<Item = &'static Item> + use<> {
        let Instruments { engine, links, programs } = &self.instruments;
        let (engine, links, programs) = (engine.is_some(), links.is_some(), programs.is_some());
        ITEMS.iter().filter(move |item| match item.needs {
            Needs::Nothing => true,
            Needs::Engine => engine,
            Needs::Links => links,
            Needs::Programs => programs,
        })
    }

    /// Runs the item with this identifier.
    pub fn run(&mut self, id: &str) -> Result<Report, ReproduceError> {
        let item = self.items().find(|item| item.id == id).ok_or_else(|| ReproduceError::Unknown(id.to_owned()))?;
        let mut report = (item.run)(self)?;
        report.id = item.id;
        report.title = item.title;
        report.source = item.source;
        for chart in &mut report.charts {
            chart.name.insert_str(0, item.id);
        }
        Ok(report)
    }
}
