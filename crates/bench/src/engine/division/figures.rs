//! From what each worker did in each turn to what a case has cost, and how it compares.

use super::driver::{Measured, TurnCost};
use super::floor::FloorCost;
use super::{DivisionCase, DivisionFigures};
use crate::median::{median, quartiles};

/// Cases in the order in which they took turns, with what each of their workers measured, and the threads of the floor.
pub(super) fn of_cases(
    cases: &[DivisionCase],
    measured: &[Vec<Measured>],
    floor: &[Vec<FloorCost>],
) -> Vec<DivisionFigures> {
    let turns = floor.iter().map(Vec::len).min().unwrap_or(0);
    let mut floors_ns: Vec<f64> = (0..turns).filter_map(|turn| FloorCost::of_both(floor, turn)).collect();
    let floor_ns = (!floors_ns.is_empty()).then(|| median(&mut floors_ns));
    let floor_quartiles_ns = floor_ns.map(|_| quartiles(&mut floors_ns));
    let rounds: Vec<Vec<Round>> = measured.iter().map(|workers| self::rounds(workers)).collect();
    let of = |(index, &case): (usize, &DivisionCase)| {
        let (own, sum) = (&rounds[index], |part: fn(&Measured) -> u64| measured[index].iter().map(part).sum::<u64>());
        let packets: u64 = own.iter().map(|round| round.packets).sum();
        let handed_over = sum(|worker| worker.handed_over) as f64 / packets.max(1) as f64;
        let mut speedups: Vec<f64> = own.iter().zip(&rounds[0]).map(|(own, first)| own.mpps / first.mpps).collect();
        let placed = cases.iter().position(|other| other.workers == case.workers && other.misplaced == 0.0);
        // Without misplaced ones some may be left of the turn before.
        let handover_ns = placed.filter(|_| case.misplaced > 0.0 && handed_over > 0.0).map(|placed| {
            let costs = own.iter().zip(&rounds[placed]).map(|(own, placed)| own.packet_ns - placed.packet_ns);
            median(&mut costs.collect::<Vec<f64>>()) / handed_over
        });
        let has_floor = handover_ns.is_some();
        DivisionFigures {
            case,
            floor_ns: floor_ns.filter(|_| has_floor),
            floor_quartiles_ns: floor_quartiles_ns.filter(|_| has_floor),
            packet_ns: median(&mut own.iter().map(|round| round.packet_ns).collect::<Vec<f64>>()),
            mpps: median(&mut own.iter().map(|round| round.mpps).collect::<Vec<f64>>()),
            speedup: median(&mut speedups),
            speedup_quartiles: quartiles(&mut speedups),
            handover_ns,
            handed_over,
            lost: sum(|worker| worker.lost),
        }
    };
    cases.iter().enumerate().map(of).collect()
}

/// What the workers of a case did in one turn.
struct Round {
    packets: u64,
    packet_ns: f64,
    mpps: f64,
}

/// The turns of all workers of a case, together.
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
    use super::*;

    fn worker(turns: &[(u64, f64)], handed_over: u64) -> Measured {
        let turns = turns.iter().map(|&(packets, busy_ns)| TurnCost { packets, busy_ns }).collect();
        Measured { turns, handed_over, lost: 1 }
    }

    /// In the second turn the machine is half as fast, for all.
    #[test]
    fn cases_are_compared_turn_by_turn() {
        let cases = [(1, 0.0), (2, 0.0), (2, 0.5)].map(|(workers, misplaced)| DivisionCase { workers, misplaced });
        let one = vec![worker(&[(1_000, 1e5), (1_000, 2e5)], 0)];
        let two = vec![worker(&[(1_000, 1e5), (1_000, 2e5)], 0); 2];
        let misplaced = vec![worker(&[(1_000, 1.25e5), (1_000, 2.5e5)], 1_000); 2];
        let figures = of_cases(&cases, &[one, two, misplaced], &[]);
        assert_eq!(figures.iter().map(|figures| figures.speedup).collect::<Vec<_>>(), [1.0, 2.0, 1.6]);
        assert_eq!(figures[2].speedup_quartiles, (1.6, 1.6));
        assert_eq!(figures.iter().map(|figures| figures.handed_over).collect::<Vec<_>>(), [0.0, 0.0, 0.5]);
        // The upper one of two is taken for the median: 250 instead of 200 ns for every second packet.
        assert_eq!(figures.iter().map(|figures| figures.handover_ns).collect::<Vec<_>>(), [None, None, Some(100.0)]);
        assert_eq!(figures.iter().map(|figures| figures.lost).collect::<Vec<_>>(), [1, 2, 2]);
    }

    #[test]
    fn half_of_the_values_lie_between_the_quartiles() {
        assert_eq!(quartiles(&mut [8.0, 1.0, 7.0, 2.0, 6.0, 3.0, 5.0, 4.0]), (3.0, 7.0));
        assert_eq!(quartiles(&mut [1.0]), (1.0, 1.0));
        assert_eq!(quartiles(&mut []), (0.0, 0.0));
    }
}
