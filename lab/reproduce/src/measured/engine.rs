//! Measurements of packets in the forwarding engine, under the published load.

use namehop_bench::counters::CounterFigures;
use namehop_bench::measurements::EngineMeasurements;
use namehop_bench::progress::{OnProgress, Progress};
use namehop_bench::schedule::{ByPacket, EngineParameters, PacketKind, ScheduleFigures};
use namehop_model::pipeline::{BackendCycles, LoadLevels, StageCycles};
use namehop_orders::ScheduleKind;
use namehop_store::PolicyKind;

use super::Measured;
use crate::{ReproduceError, Settings, published};

/// Part of the protocol that packets go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    /// Only Content Store, PIT and FIB by name, as measured in the publications.
    Stripped,
    /// The whole protocol, as in the router.
    Whole,
}

/// A figure from hardware counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Frontend,
    Backend,
    Speculation,
    Retirement,
    /// Backend stalls by unit, and their sum.
    BackendUnits(Unit),
    /// Load stalls by level.
    LoadStalls(Level),
    /// Retired loads by level.
    RetiredLoads(Level),
}

/// Units of the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    All,
    Load,
    Store,
    Core,
}

/// Levels of the memory hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    All,
    L1d,
    L2,
    L3,
    Dram,
}

impl Counted {
    fn of(self, figures: &CounterFigures) -> Option<f64> {
        let stage = |of: fn(&StageCycles) -> f64| figures.stages.as_ref().map(of);
        match self {
            Counted::Frontend => stage(|stages| stages.frontend),
            Counted::Backend => stage(|stages| stages.backend),
            Counted::Speculation => stage(|stages| stages.speculation),
            Counted::Retirement => stage(|stages| stages.retirement),
            Counted::BackendUnits(unit) => figures.backend.as_ref().map(|cycles| unit.of(cycles)),
            Counted::LoadStalls(level) => figures.load_stalls.as_ref().map(|stalls| level.of(stalls)),
            Counted::RetiredLoads(level) => figures.retired_loads.as_ref().map(|loads| level.of(loads)),
        }
    }
}

impl Unit {
    fn of(self, cycles: &BackendCycles) -> f64 {
        match self {
            Unit::All => cycles.total(),
            Unit::Load => cycles.load,
            Unit::Store => cycles.store,
            Unit::Core => cycles.core,
        }
    }
}

impl Level {
    fn of(self, levels: &LoadLevels) -> f64 {
        match self {
            Level::All => levels.total(),
            Level::L1d => levels.l1d,
            Level::L2 => levels.l2,
            Level::L3 => levels.l3,
            Level::Dram => levels.dram,
        }
    }
}

/// Figures of one schedule.
#[derive(Debug, Clone)]
pub(crate) struct ScheduleRuns {
    pub(crate) schedule: ScheduleKind,
    workers: usize,
    /// One entry per run.
    runs: Vec<ScheduleFigures>,
}

impl ScheduleRuns {
    /// Time-stamp counter ticks per packet: medians over bursts.
    pub(crate) fn cycles(&self, path: Path, kind: PacketKind) -> Option<Measured> {
        self.of_runs(|run| {
            let (imiss, ihit, data) = match path {
                Path::Whole => (run.imiss_cycles, run.ihit_cycles, run.data_cycles),
                Path::Stripped => {
                    let costs = run.stripped.as_ref()?;
                    (costs.imiss_cycles, costs.ihit_cycles, costs.data_cycles)
                }
            };
            Some(match kind {
                PacketKind::InterestMiss => imiss,
                PacketKind::InterestHit => ihit,
                PacketKind::Data => data,
            })
        })
    }

    /// Million packets per second of all workers on the published path, from total time and packets. An Interest and
    /// its Data count as two.
    pub(crate) fn mpps(&self) -> Option<Measured> {
        self.of_runs(|run| Some(2e3 / run.stripped.as_ref()?.exchange_ns * self.workers as f64))
    }

    /// Hardware counter figure of a packet on the published path.
    pub(crate) fn counted(&self, kind: PacketKind, what: Counted) -> Option<Measured> {
        self.of_runs(|run| what.of(run.stripped.as_ref()?.counters.as_ref()?.get(kind)))
    }

    /// Returns why [`counted`](Self::counted) returns `None`.
    pub(crate) fn why_not_counted(&self) -> &'static str {
        let counted = |run: &ScheduleFigures| run.stripped.as_ref().is_some_and(|costs| costs.counters.is_some());
        if self.runs.iter().all(counted) {
            "the counters of this CPU do not provide it"
        } else {
            "this host offers no hardware counters"
        }
    }

    /// Cache lines of tables that a packet fetches from beyond the core's private caches, with the whole protocol. Not
    /// measured here: tests of the bench crate count them.
    pub(crate) fn lines_of_whole_protocol(&self) -> ByPacket<f64> {
        self.runs.first().map(|run| run.lines).unwrap_or_default()
    }

    fn of_runs(&self, of: impl Fn(&ScheduleFigures) -> Option<f64>) -> Option<Measured> {
        Measured::of_runs(self.runs.iter().map(of).collect::<Option<Vec<_>>>()?)
    }
}

/// The published load (Takemasa et al., 2017, 6.1 and 6.2; Takemasa, 2019, 3.2.2), on the published path too and with
/// FIFO eviction. `runs` is 1, so that the spread between runs is visible.
fn parameters(settings: &Settings, workers: usize) -> EngineParameters {
    EngineParameters {
        workload: settings.workload(),
        payload_bytes: published::PAYLOAD_BYTES,
        in_flight: published::IN_FLIGHT,
        cs_capacity: published::CS_PACKETS,
        cs_policy: PolicyKind::Fifo,
        hit_ratio: 0.0,
        workers,
        time: settings.engine_time,
        runs: 1,
        stripped: true,
        ..EngineParameters::published()
    }
}

/// Measures all schedules in every run, so that a disturbance of some seconds does not hit only one of them.
pub(crate) fn measure(
    engine: &mut dyn EngineMeasurements,
    settings: &Settings,
    workers: usize,
    on_progress: &OnProgress<'_>,
) -> Result<Vec<ScheduleRuns>, ReproduceError> {
    let parameters = parameters(settings, workers);
    let mut all: Vec<ScheduleRuns> =
        parameters.schedules.iter().map(|&schedule| ScheduleRuns { schedule, workers, runs: Vec::new() }).collect();
    for run in 0..settings.runs.max(1) {
        let runs = settings.runs;
        let tell = |progress: Progress| {
            let what = format!("forwarding engine, workers: {workers}, run {} of {runs}: {}", run + 1, progress.what);
            on_progress(Progress { what, ..progress });
        };
        for figures in engine.measure(&parameters, &tell).map_err(ReproduceError::Engine)? {
            let of_schedule = all.iter_mut().find(|runs| runs.schedule == figures.schedule);
            of_schedule.ok_or(ReproduceError::MissingSchedule(figures.schedule))?.runs.push(figures);
        }
    }
    Ok(all)
}
