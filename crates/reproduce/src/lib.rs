//! The published tables and figures on forwarding in NDN routers, regenerated beside their published values.
//!
//! An [`Item`] is one table, figure or estimate. Running it gives a [`Report`]: rows with what was published and what this
//! machine gives, one sentence on why they differ, and charts. Items about whole packets take their figures from
//! somebody who can measure the forwarding engine ([`EngineMeasurements`]); without one they are not in the list.
//!
//! Sources: Taniguchi et al., "A Method for Designing High-speed Software NDN Routers" (poster, ICN 2016); Takemasa,
//! Koizumi and Hasegawa, "Toward an Ideal NDN Router on a Commercial Off-the-shelf Computer" (ICN 2017); Takemasa, "A
//! High-speed NDN Forwarding Engine on a Commercial Off-the-shelf Computer" (thesis, Osaka University 2019).
#![forbid(unsafe_code)]

mod engine_figures;
mod engine_tables;
mod estimates;
mod lookups;
mod prefetches;
pub mod published;
mod report;
mod svg;
mod throughput;

use std::error::Error;
use std::time::Duration;

use namehop_bench::lpm::LpmError;
use namehop_bench::machine::Machine;
use namehop_bench::memory::{self, DramFigures, MemoryError, MemoryOptions};
use namehop_bench::schedule::{EngineMeasurements, EngineParameters, ScheduleFigures};
use namehop_bench::workload::{WorkloadError, WorkloadParameters};
use namehop_forward::schedule::ScheduleKind;
use namehop_table::PageKind;

pub use report::{Cell, Chart, ChartKind, Report, Row, Series};

/// How large and how long to measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Prefixes in the FIB.
    pub prefixes: u64,
    /// Area for measurements of memory, and time for each figure of any kind.
    pub memory: MemoryOptions,
}

impl Default for Settings {
    /// The published number of prefixes.
    fn default() -> Self {
        Settings { prefixes: published::PREFIXES, memory: MemoryOptions::default() }
    }
}

impl Settings {
    fn workload(&self) -> WorkloadParameters {
        WorkloadParameters { prefixes: self.prefixes, ..WorkloadParameters::default() }
    }

    fn time(&self) -> Duration {
        self.memory.time
    }
}

/// Why an item could not be regenerated.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// There is no such item, or it needs measurements of the engine and there are none.
    #[error("there is no '{0}'; see the list")]
    Unknown(String),
    /// Memory could not be measured.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A lookup structure could not be built.
    #[error(transparent)]
    Lookup(#[from] LpmError),
    /// There are no such names.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The engine could not be measured.
    #[error("the forwarding engine could not be measured: {0}")]
    Engine(Box<dyn Error + Send + Sync>),
    /// The engine's figures lack a schedule that was asked for.
    #[error("there are no figures for the schedule {0}")]
    MissingSchedule(ScheduleKind),
}

/// What items are run with.
pub struct Context<'a> {
    settings: Settings,
    machine: Machine,
    engine: Option<&'a mut dyn EngineMeasurements>,
    /// What the engine was asked before, and its answers: most items ask the same.
    measured: Vec<(EngineParameters, Vec<ScheduleFigures>)>,
    dram: Option<DramFigures>,
    on_progress: &'a mut dyn FnMut(&str),
}

impl<'a> Context<'a> {
    /// `on_progress` is told what is being measured.
    pub fn new(
        settings: Settings,
        engine: Option<&'a mut dyn EngineMeasurements>,
        on_progress: &'a mut dyn FnMut(&str),
    ) -> Self {
        Context { settings, machine: Machine::detect(), engine, measured: Vec::new(), dram: None, on_progress }
    }

    /// The items that can be run.
    pub fn items(&self) -> impl Iterator<Item = &'static Item> + use<> {
        let engine = self.engine.is_some();
        ITEMS.iter().filter(move |item| engine || !item.needs_engine)
    }

    /// Runs the item with this identifier.
    pub fn run(&mut self, id: &str) -> Result<Report, ReproduceError> {
        let item = self.items().find(|item| item.id == id).ok_or_else(|| ReproduceError::Unknown(id.to_owned()))?;
        let mut report = (item.run)(self)?;
        report.id = item.id;
        report.title = item.title;
        report.source = item.source;
        Ok(report)
    }

    fn progress(&mut self, what: &str) {
        (self.on_progress)(what);
    }

    /// How fast random lines come from memory, on the largest pages to be had; measured once.
    fn dram(&mut self) -> Result<DramFigures, ReproduceError> {
        if let Some(figures) = &self.dram {
            return Ok(figures.clone());
        }
        self.progress("memory, random lines");
        let (_, figures) = memory::measure_dram(PageKind::Huge1G, &self.settings.memory, &mut |_| ())?;
        Ok(self.dram.insert(figures).clone())
    }

    /// Bytes per second that all cores read in sequence.
    fn sequential_bytes_per_second(&mut self) -> Result<f64, ReproduceError> {
        self.progress("memory, sequential reading");
        Ok(memory::sequential_bytes_per_second(&self.settings.memory, self.machine.cores)?)
    }

    /// Figures for all schedules, with so many workers, for packets treated as the papers' prototypes treated them.
    fn schedules(&mut self, workers: usize) -> Result<Vec<ScheduleFigures>, ReproduceError> {
        let parameters = EngineParameters {
            workload: self.settings.workload(),
            payload_bytes: published::PAYLOAD_BYTES,
            in_flight: published::IN_FLIGHT,
            workers,
            time: self.settings.time(),
            ..EngineParameters::default()
        };
        if let Some((_, figures)) = self.measured.iter().find(|(asked, _)| *asked == parameters) {
            return Ok(figures.clone());
        }
        self.progress(&format!("forwarding engine, workers: {workers}"));
        let engine = self.engine.as_mut().ok_or_else(|| ReproduceError::Engine("no engine to measure".into()))?;
        let figures = engine.measure(&parameters).map_err(ReproduceError::Engine)?;
        self.measured.push((parameters, figures.clone()));
        Ok(figures)
    }

    /// Figures for one schedule.
    fn schedule(&mut self, schedule: ScheduleKind, workers: usize) -> Result<ScheduleFigures, ReproduceError> {
        let figures = self.schedules(workers)?;
        figures
            .into_iter()
            .find(|figures| figures.schedule == schedule)
            .ok_or(ReproduceError::MissingSchedule(schedule))
    }
}

/// One published table, figure or estimate.
pub struct Item {
    /// How it is called on the command line.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Does it take measurements of the forwarding engine?
    pub needs_engine: bool,
    run: fn(&mut Context<'_>) -> Result<Report, ReproduceError>,
}

macro_rules! items {
    ($($id:literal, $engine:literal, $title:literal, $source:literal, $run:path;)*) => {
        &[$(Item { id: $id, title: $title, source: $source, needs_engine: $engine, run: $run }),*]
    };
}

/// All items, in the order of the thesis.
const ITEMS: &[Item] = items![
    "throughput-bound", false, "Upper bound of the forwarding rate: min(NF/C, B/M)",
        "Taniguchi et al. (2016), equation 1; Takemasa (2019), equation 3.1", throughput::bound;
    "table-3.1", true, "CPU cycles and memory traffic of one packet",
        "Takemasa (2019), table 3.1", engine_tables::table_3_1;
    "table-3.2", true, "Cycles by stage of the instruction pipeline",
        "Takemasa (2019), table 3.2", engine_tables::table_3_2;
    "table-3.3", true, "Backend stalls by unit",
        "Takemasa (2019), table 3.3", engine_tables::table_3_3;
    "table-3.4", true, "Load-unit stalls by level",
        "Takemasa (2019), table 3.4", engine_tables::table_3_4;
    "table-3.5", true, "Retired load instructions by level",
        "Takemasa (2019), table 3.5", engine_tables::table_3_5;
    "table-3.6", true, "Cycles of an Interest by number of threads",
        "Takemasa (2019), table 3.6", engine_tables::table_3_6;
    "icn17-table-1", true, "Cycles in the instruction pipeline: stages, backend, load units",
        "Takemasa et al. (2017), table 1", engine_tables::icn17_table_1;
    "icn17-table-2", true, "Retired load instructions by level",
        "Takemasa et al. (2017), table 2", engine_tables::table_3_5;
    "icn17-table-3", true, "Cycles of an Interest by number of threads",
        "Takemasa et al. (2017), table 3", engine_tables::table_3_6;
    "patricia", false, "DRAM accesses of a lookup in a binary Patricia trie",
        "Takemasa (2019), 4.1.3; Takemasa et al. (2017), 6.3", estimates::patricia;
    "hash-table", false, "DRAM accesses of a longest prefix match in a hash table",
        "Takemasa (2019), 4.1.2; Takemasa et al. (2017), 6.3", estimates::hash_table;
    "two-stage", false, "Longest-first search, 2-stage search and Patricia trie, measured",
        "Takemasa (2019), 4.1.2 and 4.1.3; Takemasa et al. (2017), 3.3", lookups::two_stage;
    "prefetch-overhead", false, "What useless prefetches cost",
        "Takemasa et al. (2017), 6.7; Takemasa (2019), 4.3.2", prefetches::overhead;
    "figure-4.5", true, "Cycles of one packet by schedule, one thread",
        "Takemasa (2019), figure 4.5", engine_figures::figure_4_5;
    "figure-4.6", true, "Cycles of one packet by schedule, many threads",
        "Takemasa (2019), figure 4.6", engine_figures::figure_4_6;
    "figure-4.7", true, "Forwarding speed by number of threads",
        "Takemasa (2019), figure 4.7", engine_figures::figure_4_7;
    "icn17-figure-4", true, "Cycles of one packet by schedule, one thread and many",
        "Takemasa et al. (2017), figure 4", engine_figures::icn17_figure_4;
    "icn17-figure-5", true, "Forwarding speed by number of threads",
        "Takemasa et al. (2017), figure 5", engine_figures::icn17_figure_5;
];

#[cfg(test)]
mod tests;
