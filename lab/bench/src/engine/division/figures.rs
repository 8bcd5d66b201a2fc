//! Computes the cost of cases from the workers' turns, and compares them.

use super::driver::{Measured, TurnCost};
use super::floor::FloorCost;
use super::{CostSpread, DivisionFigures, Load};
use crate::median::{median, quartiles};

/// Computes the figures of the cases. `loads` is in the order of turns, `measured` has the measurements of each load's
/// workers, and `floor` has the measurements of the floor's threads.
pub(super) fn of_loads(loads: &[Load], measured: &[Vec<Measured>], floor: &[Vec<FloorCost>]) -> Vec<DivisionFigures> {
    let turns = floor.iter().map(Vec::len).min().unwrap_or(0);
    let floor = CostSpread::of(&mut (0..turns).filter_map(|turn| FloorCost::of_both(floor, turn)).collect::<Vec<_>>());
    let outcomes: Vec<Outcome> = measured.iter().map(|workers| Outcome::of(workers)).collect();
    let of = |(index, &Load { case, .. }): (usize, &Load)| {
        let own = &outcomes[index];
        let with = |is_wanted: &dyn Fn(&Load) -> bool| {
            let place = loads.iter().position(|other| other.case.workers == case.workers && is_wanted(other));
            // Without misplaced packets, some may be left from the turn before.
            place.filter(|_| case.misplaced > 0.0 && own.moved > 0.0).map(|place| &outcomes[place])
        };
        let placed = with(&|other| other.case.misplaced == 0.0);
        let brought = with(&|other| other.is_brought && other.case == case);
        let mut speedups: Vec<f64> =
            own.rounds.iter().zip(&outcomes[0].rounds).map(|(own, first)| own.mpps / first.mpps).collect();
        DivisionFigures {
            case,
            packet_ns: median(&mut own.rounds.iter().map(|round| round.packet_ns).collect::<Vec<f64>>()),
            mpps: median(&mut own.rounds.iter().map(|round| round.mpps).collect::<Vec<f64>>()),
            speedup: median(&mut speedups),
            speedup_quartiles: quartiles(&mut speedups),
            handover: placed.and_then(|placed| own.spread_above(placed)),
            moved: placed.zip(brought).and_then(|(placed, brought)| brought.spread_above(placed)),
            beyond_moved: brought.and_then(|brought| own.spread_above(brought)),
            floor: floor.filter(|_| placed.is_some()),
            handed_over: own.moved,
            lost: own.lost,
        }
    };
    loads.iter().enumerate().filter(|(_, load)| !load.is_brought).map(of).collect()
}

/// Results of the workers of a case in all turns of a load.
struct Outcome {
    rounds: Vec<Round>,
    /// Packets from another CPU, as a share of all packets.
    moved: f64,
    lost: u64,
}

impl Outcome {
    fn of(workers: &[Measured]) -> Outcome {
        let rounds = rounds(workers);
        let packets: u64 = rounds.iter().map(|round| round.packets).sum();
        let moved: u64 = workers.iter().map(|worker| worker.moved).sum();
        let lost = workers.iter().map(|worker| worker.lost).sum();
        Outcome { moved: moved as f64 / packets.max(1) as f64, rounds, lost }
    }

    /// Extra cost of each packet from another CPU compared with packets of the other load, in adjacent turns.
    fn spread_above(&self, other: &Outcome) -> Option<CostSpread> {
        let costs = self.rounds.iter().zip(&other.rounds).map(|(own, other)| own.packet_ns - other.packet_ns);
        CostSpread::of(&mut costs.map(|ns| ns / self.moved).collect::<Vec<f64>>()).filter(|_| self.moved > 0.0)
    }
}

/// Results of the workers of a case in one turn of a load.
struct Round {
    packets: u64,
    packet_ns: f64,
    mpps: f64,
}

/// Combines the turns of all workers of a case.
fn rounds(workers: &[Measured]) -> Vec<Round> {
    let turns = workers.iter().map(|worker| worker.turns.len()).min().unwrap_or(0);
    let round = |turn: usize| {
        let costs: Vec<TurnCost> = workers.iter().map(|worker| worker.turns[turn]).collect();
        let (packets, busy_ns): (u64, f64) =
            costs.iter().fold((0, 0.0), |(packets, ns), cost| (packets + cost.packets, ns + cost.busy_ns));
        let mpps = costs.iter().map(|cost| 1e3 * cost.packets as f64 / cost.busy_ns.max(1.0)).sum();
        Round { packets, packet_ns: busy_ns / packets.max(1) as f64, mpps }
    };
    (0..turns).map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::super::DivisionCase;
    use super::*;

    fn worker(turns: &[(u64, f64)], moved: u64) -> Measured {
        let turns = turns.iter().map(|&(packets, busy_ns)| TurnCost { packets, busy_ns }).collect();
        Measured { turns, moved, lost: 1 }
    }

    /// In the second turn the host is half as fast, for all cases.
    #[test]
    fn cases_are_compared_turn_by_turn() {
        let cases = [(1, 0.0), (2, 0.0), (2, 0.5)].map(|(workers, misplaced)| DivisionCase { workers, misplaced });
        let one = vec![worker(&[(1_000, 1e5), (1_000, 2e5)], 0)];
        let two = vec![worker(&[(1_000, 1e5), (1_000, 2e5)], 0); 2];
        let misplaced = vec![worker(&[(1_000, 1.25e5), (1_000, 2.5e5)], 1_000); 2];
        let brought = vec![worker(&[(1_000, 1.1e5), (1_000, 2.2e5)], 1_000); 2];
        let figures = of_loads(&Load::of_cases(&cases), &[one, two, misplaced, brought], &[]);
        assert_eq!(figures.iter().map(|figures| figures.speedup).collect::<Vec<_>>(), [1.0, 2.0, 1.6]);
        assert_eq!(figures[2].speedup_quartiles, (1.6, 1.6));
        assert_eq!(figures.iter().map(|figures| figures.handed_over).collect::<Vec<_>>(), [0.0, 0.0, 0.5]);
        // The upper of two values counts as median: 250 instead of 200 ns for every second packet.
        let handover = |figures: &DivisionFigures| figures.handover.map(|spread| spread.ns);
        assert_eq!(figures.iter().map(handover).collect::<Vec<_>>(), [None, None, Some(100.0)]);
        assert_eq!(figures[2].moved.map(|spread| spread.ns.round()), Some(40.0));
        assert_eq!(figures[2].beyond_moved.map(|spread| spread.ns.round()), Some(60.0));
        assert_eq!(figures.iter().map(|figures| figures.lost).collect::<Vec<_>>(), [1, 2, 2]);
    }

    #[test]
    fn half_of_the_values_lie_between_the_quartiles() {
        assert_eq!(quartiles(&mut [8.0, 1.0, 7.0, 2.0, 6.0, 3.0, 5.0, 4.0]), (3.0, 7.0));
        assert_eq!(quartiles(&mut [1.0]), (1.0, 1.0));
        assert_eq!(quartiles(&mut []), (0.0, 0.0));
    }
}
