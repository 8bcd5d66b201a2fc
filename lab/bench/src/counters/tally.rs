//! Sums of counts, per event, and of the things they were counted for.

use super::CounterFigures;
use super::events::{Counts, Role};

/// What was counted for things of one kind, packets for example.
///
/// Groups of events take turns, so each event has been counted for other things than its neighbour; all that can be
/// said of it is its mean.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tally {
    /// Count and number of things, for each event of each group.
    sums: [[(f64, f64); Role::MOST_EVENTS]; Role::COUNT],
    turns: usize,
}

impl Tally {
    /// Number of calls so far: it tells which group of events counts next. Each kind of thing has its own number, so that every
    /// group gets its turn for every kind.
    #[cfg(target_os = "linux")]
    pub(super) fn next_turn(&mut self) -> usize {
        self.turns += 1;
        self.turns - 1
    }

    /// Adds counts of some events of a group, from the one at place `first` on.
    pub(super) fn add(&mut self, role: Role, first: usize, counts: &[f64], things: usize) {
        for ((sum, number), count) in self.sums[role as usize][first..].iter_mut().zip(counts) {
            *sum += count;
            *number += things as f64;
        }
    }

    /// Adds another tally of the same kind of things.
    pub fn merge(&mut self, other: &Tally) {
        for (sum, other) in self.sums.as_flattened_mut().iter_mut().zip(other.sums.as_flattened()) {
            sum.0 += other.0;
            sum.1 += other.1;
        }
    }

    /// Figures for one thing; `None` when not even cycles were counted for any.
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
        // Half a group says nothing.
        tally.add(Role::Loads, 0, &[90.0, 8.0], 10);
        assert_eq!(tally.figures().and_then(|figures| figures.retired_loads), None);
        tally.add(Role::Loads, 2, &[20.0, 4.0], 20);
        let loads = tally.figures().and_then(|figures| figures.retired_loads).expect("all four");
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
