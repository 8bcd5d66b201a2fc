//! Policies that keep names in one queue; the front is its first element.

use super::super::steps::{Data, Decided, fresh_until, now};
use super::EvictionModel;

pub(super) fn take(queue: &mut Vec<u64>, name: u64) -> bool {
    let place = queue.iter().position(|&other| other == name);
    place.map(|place| queue.remove(place)).is_some()
}

/// Effect of a hit on a queue.
#[derive(PartialEq)]
pub(super) enum OnHit {
    Stay,
    Move,
    AnotherRound,
}

pub(super) struct Queue {
    on_hit: OnHit,
    queue: Vec<u64>,
    used: Vec<u64>,
}

impl Queue {
    pub(super) fn new(on_hit: OnHit) -> Self {
        Queue { on_hit, queue: Vec::new(), used: Vec::new() }
    }
}

impl EvictionModel for Queue {
    fn names(&self) -> Vec<u64> {
        self.queue.clone()
    }

    fn hit(&mut self, name: u64) {
        match self.on_hit {
            OnHit::Stay => {}
            OnHit::Move => {
                take(&mut self.queue, name);
                self.queue.push(name);
            }
            OnHit::AnotherRound => self.used.push(name),
        }
    }

    fn erase(&mut self, name: u64) {
        take(&mut self.queue, name);
        self.used.retain(|&used| used != name);
    }

    fn victim(&mut self) -> Option<u64> {
        while let Some(&front) = self.queue.first().filter(|front| self.used.contains(front)) {
            self.used.retain(|&used| used != front);
            self.queue.rotate_left(1);
        }
        self.queue.first().copied()
    }

    fn spared(&mut self) {
        // A packet that was used since it was chosen has already had its other round.
        self.victim();
        self.queue.rotate_left(1);
    }

    fn enter(&mut self, data: Data, is_full: bool, _: u64, _: bool, _: Decided) {
        if is_full && let Some(victim) = self.victim() {
            self.erase(victim);
        }
        self.queue.push(data.name);
    }
}

/// Evicts the packet that the policy drew.
#[derive(Default)]
pub(super) struct AnyLeaves(Vec<u64>);

impl EvictionModel for AnyLeaves {
    fn names(&self) -> Vec<u64> {
        self.0.clone()
    }

    fn hit(&mut self, _: u64) {}

    fn erase(&mut self, name: u64) {
        take(&mut self.0, name);
    }

    fn victim(&mut self) -> Option<u64> {
        None
    }

    fn enter(&mut self, data: Data, is_full: bool, _: u64, _: bool, decided: Decided) {
        assert_eq!(decided.evicted.is_some(), is_full);
        assert!(decided.evicted.is_none_or(|name| take(&mut self.0, name)));
        self.0.push(data.name);
    }
}

/// Name, number of uses, and time of the last use.
#[derive(Default)]
pub(super) struct Lfu(Vec<(u64, u64, u64)>, u64);

impl EvictionModel for Lfu {
    fn names(&self) -> Vec<u64> {
        self.0.iter().map(|entry| entry.0).collect()
    }

    fn hit(&mut self, name: u64) {
        self.1 += 1;
        for entry in self.0.iter_mut().filter(|entry| entry.0 == name) {
            (entry.1, entry.2) = (entry.1 + 1, self.1);
        }
    }

    fn erase(&mut self, name: u64) {
        self.0.retain(|entry| entry.0 != name);
    }

    fn victim(&mut self) -> Option<u64> {
        self.0.iter().min_by_key(|entry| (entry.1, entry.2)).map(|entry| entry.0)
    }

    fn enter(&mut self, data: Data, is_full: bool, _: u64, _: bool, _: Decided) {
        if is_full && let Some(victim) = self.victim() {
            self.erase(victim);
        }
        self.1 += 1;
        self.0.push((data.name, 1, self.1));
    }
}

/// Names and whether they were used, oldest first, and the position of the hand.
#[derive(Default)]
pub(super) struct Sieve(Vec<(u64, bool)>, usize);

impl EvictionModel for Sieve {
    fn names(&self) -> Vec<u64> {
        self.0.iter().map(|entry| entry.0).collect()
    }

    fn hit(&mut self, name: u64) {
        self.0.iter_mut().filter(|entry| entry.0 == name).for_each(|entry| entry.1 = true);
    }

    fn erase(&mut self, name: u64) {
        let Some(place) = self.0.iter().position(|entry| entry.0 == name) else { return };
        self.0.remove(place);
        self.1 -= usize::from(place < self.1);
        // The oldest follows the newest.
        if self.1 >= self.0.len() {
            self.1 = 0;
        }
    }

    fn victim(&mut self) -> Option<u64> {
        while self.0.get(self.1)?.1 {
            self.0[self.1].1 = false;
            self.1 = (self.1 + 1) % self.0.len();
        }
        Some(self.0[self.1].0)
    }

    fn enter(&mut self, data: Data, is_full: bool, _: u64, _: bool, _: Decided) {
        if is_full && let Some(victim) = self.victim() {
            self.erase(victim);
        }
        self.0.push((data.name, false));
    }
}

/// Name, class, time of entry into the class, and end of freshness.
#[derive(Default)]
pub(super) struct PriorityFifo(Vec<(u64, u8, u64, u64)>, u64);

impl PriorityFifo {
    /// Moves Data that has turned stale, in the order of time.
    fn pass_time(&mut self, time: u64) {
        loop {
            let due =
                self.0.iter_mut().filter(|entry| entry.1 == 2 && entry.3 <= now(time)).min_by_key(|entry| entry.3);
            let Some(due) = due else { return };
            self.1 += 1;
            (due.1, due.2) = (1, self.1);
        }
    }
}

impl EvictionModel for PriorityFifo {
    fn names(&self) -> Vec<u64> {
        self.0.iter().map(|entry| entry.0).collect()
    }

    fn hit(&mut self, _: u64) {}

    fn refreshed(&mut self, data: Data, time: u64, is_solicited: bool) {
        self.erase(data.name);
        self.enter(data, false, time, is_solicited, Decided::default());
    }

    fn erase(&mut self, name: u64) {
        self.0.retain(|entry| entry.0 != name);
    }

    fn victim(&mut self) -> Option<u64> {
        self.0.iter().min_by_key(|entry| (entry.1, entry.2)).map(|entry| entry.0)
    }

    fn enter(&mut self, data: Data, is_full: bool, time: u64, is_solicited: bool, _: Decided) {
        self.pass_time(time);
        if is_full && let Some(victim) = self.victim() {
            self.erase(victim);
        }
        self.1 += 1;
        let class = if is_solicited { 2 } else { 0 };
        self.0.push((data.name, class, self.1, fresh_until(time, data.freshness)));
        self.pass_time(time);
    }
}
