//! Figures of a schedule from single passes: means over workers, medians over runs.

use namehop_orders::ScheduleKind;
use namehop_table::clock::cycles_per_second;

use super::costs::Costs;
use crate::counters::Tally;
use crate::median::median;
use crate::schedule::{ByPacket, FloodFigures, PacketCosts, PacketKind, ScheduleFigures, Spread};

/// Results of one pass, or of one worker's part of it.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) costs: Costs,
    pub(super) counted: Option<ByPacket<Tally>>,
    pub(super) flood: Option<FloodFigures>,
}

/// Mean of several measurements' costs and counters.
pub(super) fn mean(all: &[Measured]) -> Measured {
    let mut mean = Measured::default();
    let part = 1.0 / all.len() as f64;
    for Measured { costs, counted, .. } in all {
        for kind in PacketKind::ALL {
            *mean.costs.medians.get_mut(kind) += costs.medians.get(kind) * part;
            *mean.costs.totals.get_mut(kind) += costs.totals.get(kind) * part;
            if let Some(counted) = counted {
                mean.counted.get_or_insert_default().get_mut(kind).merge(counted.get(kind));
            }
        }
        mean.costs.exchange += costs.exchange * part;
    }
    mean
}

/// Converts ticks to nanoseconds.
fn ns(ticks: f64) -> f64 {
    ticks * 1e9 / cycles_per_second() as f64
}

/// Nanoseconds of an Interest and its Data, from medians over bursts.
fn pair_ns(run: &Measured) -> f64 {
    ns(run.costs.medians.interest_miss + run.costs.medians.data)
}

/// Nanoseconds of an exchange, from totals.
fn exchange_ns(run: &Measured) -> f64 {
    ns(run.costs.exchange)
}

/// Median over runs, with the least and the most.
fn median_of_runs(runs: &[Measured], of: impl Fn(&Measured) -> f64) -> (f64, Spread) {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    let spread = Spread {
        least: values.iter().copied().fold(f64::INFINITY, f64::min),
        most: values.iter().copied().fold(0.0, f64::max),
    };
    (median(&mut values), spread)
}

/// Costs over several runs on one path.
fn costs_of_runs(runs: &[Measured]) -> PacketCosts {
    let of = |kind| median_of_runs(runs, |run| *run.costs.medians.get(kind)).0;
    let (pair_ns, pair_ns_spread) = median_of_runs(runs, pair_ns);
    let (exchange_ns, exchange_ns_spread) = median_of_runs(runs, exchange_ns);
    PacketCosts {
        imiss_cycles: of(PacketKind::InterestMiss),
        ihit_cycles: of(PacketKind::InterestHit),
        data_cycles: of(PacketKind::Data),
        pair_ns,
        pair_ns_spread,
        exchange_ns,
        exchange_ns_spread,
        counters: mean(runs).counted.map(|counted| counted.map(|tally| tally.figures().unwrap_or_default())),
    }
}

/// All runs of one schedule, by pass; empty for passes that were not requested.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) whole: Vec<Measured>,
    pub(super) stripped: Vec<Measured>,
    pub(super) computing: Vec<Measured>,
}

/// Figures of a schedule from its runs, and from the count of cache lines with its robustness.
pub(super) fn summary(
    schedule: ScheduleKind,
    runs: &Runs,
    workers: usize,
    (lines, lines_are_clear): (ByPacket<f64>, bool),
) -> ScheduleFigures {
    let Runs { whole, stripped, computing } = runs;
    let costs = costs_of_runs(whole);
    let total = |kind| median_of_runs(whole, |run| *run.costs.totals.get(kind)).0;
    let costs_of = |runs: &[Measured]| (!runs.is_empty()).then(|| costs_of_runs(runs));
    // Compares measurements of the same run, which are adjacent in time.
    let compared = |others: &[Measured], of: fn(f64, f64) -> f64| {
        let mut all: Vec<f64> =
            whole.iter().zip(others).map(|(whole, other)| of(exchange_ns(whole), exchange_ns(other))).collect();
        (!all.is_empty()).then(|| median(&mut all))
    };
    ScheduleFigures {
        schedule,
        imiss_cycles: costs.imiss_cycles,
        ihit_cycles: costs.ihit_cycles,
        data_cycles: costs.data_cycles,
        pair_ns: costs.pair_ns,
        pair_ns_spread: costs.pair_ns_spread,
        total_cycles: ByPacket {
            interest_miss: total(PacketKind::InterestMiss),
            interest_hit: total(PacketKind::InterestHit),
            data: total(PacketKind::Data),
        },
        exchange_ns: costs.exchange_ns,
        exchange_ns_spread: costs.exchange_ns_spread,
        mpps: 2e3 / costs.exchange_ns * workers as f64,
        lines,
        lines_are_clear,
        counters: costs.counters,
        stripped: costs_of(stripped),
        whole_vs_stripped: compared(stripped, |whole, stripped| whole / stripped),
        computing: costs_of(computing),
        waiting_ns: compared(computing, |whole, computing| whole - computing),
    }
}
