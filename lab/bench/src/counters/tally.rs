//! Sums of counts per event, and of the units of work that were counted.

use super::CounterFigures;
use super::events::{Counts, Role};

/// Counts for one kind of work unit, packets for example.
///
/// Groups of events take turns, so different events are counted over different units. Only their means are comparable.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tally {
    /// Sum of counts and number of units, per event of each group.
    sums: [[(f64, f64); Role::MOST_EVENTS]; Role::COUNT],
    turns: usize,
}

impl Tally {
    /// Returns the number of calls so far, which selects the next group of events. Each tally has its own number, so
    /// that every group counts for every kind of work.
    #[cfg(target_os = "linux")]
    pub(super) fn next_turn(&mut self) -> usize {
        self.turns += 1;
        self.turns - 1
    }

    /// Adds counts of some events of a group, starting at event index `first`.
    pub(super) fn add(&mut self, role: Role, first: usize, counts: &[f64], things: usize) {
        for ((sum, number), count) in self.sums[role as usize][first..].iter_mut().zip(counts) {
            *sum += count;
            *number += things as f64;
        }
    }

    /// Adds another tally of the same kind of work.
    pub fn merge(&mut self, other: &Tally) {
        for (sum, other) in self.sums.as_flattened_mut().iter_mut().zip(other.sums.as_flattened()) {
            sum.0 += other.0;
            sum.1 += other.1;
        }
    }

    /// Returns mean counts per unit; `None` if not even cycles were counted.
    pub fn figures(&self) -> Option<CounterFigures> {
        let counts = Counts {
            basic: self.means(Role::Basic)?,
            metrics: self.means(Role::Metrics),
            slots: self.means(Role::Slots),
            stalls: self.means(Role::Stalls),
            stalls_broadwell: self.means(Role::StallsBroadwell),
            loads: self.means(Role::Loads),
        };
        Some(counts.figures())
    }

    fn means<const EVENTS: usize>(&self, role: Role) -> Option<[f64; EVENTS]> {
        let mut means = [0.0; EVENTS];
        for (mean, (sum, things)) in means.iter_mut().zip(self.sums[role as usize]) {
            if things == 0.0 {
                return None;
            }
            *mean = sum / things;
        }
        Some(means)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_means_of_their_own() {
        let mut tally = Tally::default();
        assert_eq!(tally.figures(), None);
        tally.add(Role::Basic, 0, &[1_000.0, 500.0], 10);
        tally.add(Role::Basic, 0, &[2_000.0, 700.0], 10);
        let figures = tally.figures().expect("counted");
        assert_eq!((figures.cycles, figures.instructions, figures.retired_loads), (150.0, 60.0, None));
        // An incomplete group gives no figures.
        tally.add(Role::Loads, 0, &[90.0, 8.0], 10);
        assert_eq!(tally.figures().and_then(|figures| figures.retired_loads), None);
        tally.add(Role::Loads, 2, &[20.0, 4.0], 20);
        let loads = tally.figures().and_then(|figures| figures.retired_loads).expect("all four counters were read");
        assert_eq!((loads.l1d, loads.l2, loads.l3, loads.dram), (9.0, 0.8, 1.0, 0.2));
    }

    #[test]
    fn tallies_of_several_workers_are_one() {
        let (mut tally, mut other) = (Tally::default(), Tally::default());
        tally.add(Role::Basic, 0, &[100.0, 10.0], 1);
        other.add(Role::Basic, 0, &[500.0, 80.0], 2);
        tally.merge(&other);
        assert_eq!(tally.figures().map(|figures| (figures.cycles, figures.instructions)), Some((200.0, 30.0)));
    }
}
