//! Regenerates published tables and figures on forwarding in NDN routers, beside their published values.
//!
//! An [`Item`] is one table, figure or estimate. Running it gives a [`Report`]: rows of published values and of this
//! host's values, one sentence on why they differ, and charts. Items about whole packets need measurements of the
//! forwarding engine ([`EngineMeasurements`](namehop_bench::measurements::EngineMeasurements)) or of routers between
//! links ([`SweepMeasurements`](namehop_bench::sweep::SweepMeasurements)); without these they are not listed.
//!
//! The type of each value ([`Cell`]) states whether it was published, computed or measured. Measurements are repeated
//! and shown as the median, least and most of the runs. Each report states its conditions, and what its figures leave
//! out.
//!
//! Sources: Taniguchi et al., "A Method for Designing High-speed Software NDN Routers" (poster, ICN 2016); Takemasa,
//! Koizumi and Hasegawa, "Toward an Ideal NDN Router on a Commercial Off-the-shelf Computer" (ICN 2017); Takemasa, "A
//! High-speed NDN Forwarding Engine on a Commercial Off-the-shelf Computer" (thesis, Osaka University 2019); Shi,
//! Pesavento and Benmohamed, "NDN-DPDK: NDN Forwarding at 100 Gbps on Commodity Hardware" (ICN 2020); "Compiler Based
//! Optimization For Software Packet Processing" (APSys 2017).
//!
//! ```
//! use namehop_reproduce::{Context, Instruments, Settings};
//!
//! let mut context = Context::new(Settings::default(), Instruments::default(), &|_| {});
//! for item in context.items() {
//!     println!("{}: {} ({})", item.id, item.title, item.source);
//! }
//! let report = context.run("table-6.1")?;
//! assert!(!report.rows.is_empty());
//! # Ok::<(), namehop_reproduce::ReproduceError>(())
//! ```
#![forbid(unsafe_code)]

mod caching;
mod compared_policies;
mod context;
mod engine_figures;
mod engine_tables;
mod estimates;
mod items;
mod links;
mod lookups;
mod measured;
mod power;
mod prefetches;
mod programs;
pub mod published;
mod report;
mod svg;
mod throughput;

use std::error::Error;
use std::time::Duration;

use namehop_bench::lpm::LpmError;
use namehop_bench::memory::{MemoryError, MemoryOptions};
use namehop_bench::schedule::EngineParameters;
use namehop_bench::workload::{WorkloadError, WorkloadParameters};
use namehop_orders::ScheduleKind;
use namehop_simulate::run::SimulationError;

pub use context::{Context, Instruments};
pub use items::{Item, Needs};
pub use links::charts as link_charts;
pub use measured::Measured;
pub use measured::programs::{
    InputOutputTerms, ModelFigures, ModelTerms, ProcessingTerms, ProgramFigures, ProgramMeasurements, ProgramOutcome,
    WayFigures,
};
pub use published::Published;
pub use report::{Cell, Chart, ChartKind, Column, Origin, Point, Report, Row, Series, Table};

/// Reason for an empty cell: more threads than cores.
const NO_CORES: &str = "this host has fewer cores";
/// Reason for an empty cell: the measurement failed.
const NO_FIGURES: &str = "the measurement gave no result";
/// Default number of runs: the fewest for which median, least and most show the spread.
const DEFAULT_RUNS: usize = 5;
/// Default number of requests of a simulation.
const DEFAULT_CACHE_REQUESTS: u64 = 40_000_000;
/// Default measuring time per schedule and run, as in `bench engine`.
const DEFAULT_ENGINE_TIME: Duration = Duration::from_secs(2);

/// Sizes and durations of measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Prefixes in the FIB.
    pub prefixes: u64,
    /// Size of the area for measurements of memory, and time per run for each figure of memory and of lookups.
    pub memory: MemoryOptions,
    /// Measuring time per schedule of the engine and run.
    pub engine_time: Duration,
    /// Number of runs of each measurement; at least 1.
    pub runs: usize,
    /// Requests per cache simulation.
    pub cache_requests: u64,
}

impl Default for Settings {
    /// The published number of prefixes, and defaults for the rest.
    fn default() -> Self {
        Settings {
            prefixes: published::PREFIXES,
            memory: MemoryOptions::default(),
            engine_time: DEFAULT_ENGINE_TIME,
            runs: DEFAULT_RUNS,
            cache_requests: DEFAULT_CACHE_REQUESTS,
        }
    }
}

impl Settings {
    /// Prefixes and names of the engine's items.
    fn workload(&self) -> WorkloadParameters {
        WorkloadParameters {
            prefixes: self.prefixes,
            prefix_components: published::PREFIX_COMPONENTS as usize,
            components: published::NAME_COMPONENTS as usize,
            ..EngineParameters::published().workload
        }
    }
}

/// Why an item could not be regenerated.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// No item has this name, or it needs measurements that are not available.
    #[error("'{0}' is unknown or not available; 'namehop reproduce --list' lists the items")]
    Unknown(String),
    /// Memory could not be measured.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A lookup structure could not be built.
    #[error(transparent)]
    Lookup(#[from] LpmError),
    /// The workload's names could not be generated.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Caches could not be simulated.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The engine could not be measured.
    #[error("the forwarding engine could not be measured: {0}")]
    Engine(Box<dyn Error + Send + Sync>),
    /// Routers between links could not be measured.
    #[error("routers between links could not be measured: {0}")]
    Links(Box<dyn Error + Send + Sync>),
    /// Compiled P4 programs could not be measured.
    #[error("P4 programs could not be measured: {0}")]
    Program(Box<dyn Error + Send + Sync>),
    /// The engine's figures lack a requested schedule.
    #[error("the schedule {0} was not measured")]
    MissingSchedule(ScheduleKind),
}

#[cfg(test)]
mod tests;
