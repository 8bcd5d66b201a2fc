//! From measurements of single passes to the figures of a schedule: means over workers, medians over runs.

use namehop_forward::schedule::ScheduleKind;
use namehop_table::clock::cycles_per_second;

use super::lines::lines;
use super::load::Costs;
use crate::counters::Tally;
use crate::median::median;
use crate::schedule::{ByPacket, EngineParameters, FloodFigures, PacketCosts, PacketKind, ScheduleFigures, Spread};

/// What one pass, or one worker's part of it, gives.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) costs: Costs,
    pub(super) counted: Option<ByPacket<Tally>>,
    pub(super) flood: Option<FloodFigures>,
}

/// The mean of several measurements, of their costs and of everything counted.
pub(super) fn mean(all: &[Measured]) -> Measured {
    let mut mean = Measured::default();
    for Measured { costs, counted, .. } in all {
        for kind in PacketKind::ALL {
            *mean.costs.get_mut(kind) += costs.get(kind) / all.len() as f64;
            if let Some(counted) = counted {
                mean.counted.get_or_insert_default().get_mut(kind).merge(counted.get(kind));
            }
        }
    }
    mean
}

/// Nanoseconds of an Interest and its Data.
fn pair_ns(run: &Measured) -> f64 {
    let ns_per_cycle = 1e9 / cycles_per_second() as f64;
    (run.costs.interest_miss + run.costs.data) * ns_per_cycle
}

/// What several runs on one path say together.
fn costs_of_runs(runs: &[Measured]) -> PacketCosts {
    let of = |kind| median(&mut runs.iter().map(|run| *run.costs.get(kind)).collect::<Vec<_>>());
    let mut pairs: Vec<f64> = runs.iter().map(pair_ns).collect();
    PacketCosts {
        imiss_cycles: of(PacketKind::InterestMiss),
        ihit_cycles: of(PacketKind::InterestHit),
        data_cycles: of(PacketKind::Data),
        pair_ns: median(&mut pairs),
        pair_ns_spread: Spread {
            least: pairs.iter().copied().fold(f64::INFINITY, f64::min),
            most: pairs.iter().copied().fold(0.0, f64::max),
        },
        counters: mean(runs).counted.map(|counted| counted.map(|tally| tally.figures().unwrap_or_default())),
    }
}

/// All runs of one schedule, by what was measured; nothing of what was not asked for.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) whole: Vec<Measured>,
    pub(super) stripped: Vec<Measured>,
    pub(super) computing: Vec<Measured>,
}

/// The figures of a schedule from its runs.
pub(super) fn summary(schedule: ScheduleKind, runs: &Runs, parameters: &EngineParameters) -> ScheduleFigures {
    let Runs { whole, stripped, computing } = runs;
    let costs = costs_of_runs(whole);
    let costs_of = |runs: &[Measured]| (!runs.is_empty()).then(|| costs_of_runs(runs));
    // Of what was measured in the same run, one right behind the other.
    let compared = |others: &[Measured], of: fn(f64, f64) -> f64| {
        let mut all: Vec<f64> =
            whole.iter().zip(others).map(|(whole, other)| of(pair_ns(whole), pair_ns(other))).collect();
        (!all.is_empty()).then(|| median(&mut all))
    };
    ScheduleFigures {
        schedule,
        imiss_cycles: costs.imiss_cycles,
        ihit_cycles: costs.ihit_cycles,
        data_cycles: costs.data_cycles,
        pair_ns: costs.pair_ns,
        pair_ns_spread: costs.pair_ns_spread,
        mpps: 2e3 / costs.pair_ns * parameters.workers as f64,
        lines: lines(parameters),
        counters: costs.counters,
        stripped: costs_of(stripped),
        whole_vs_stripped: compared(stripped, |whole, stripped| whole / stripped),
        computing: costs_of(computing),
        waiting_ns: compared(computing, |whole, computing| whole - computing),
    }
}
