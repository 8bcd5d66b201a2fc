//! Policies that keep names in queues; the front of each is its first element.

use super::super::steps::{Data, Decided, fresh_until, hash, now};
use super::EvictionModel;
use crate::Parameters;
use crate::sketch::Sketch;
use crate::slots::kept;

fn take(queue: &mut Vec<u64>, name: u64) -> bool {
    let place = queue.iter().position(|&other| other == name);
    place.map(|place| queue.remove(place)).is_some()
}

/// What a hit does to a queue.
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
        // What was used since it was chosen has its round already.
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

/// Whatever was drawn.
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

/// Name, uses, and when it was used last.
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

/// Names and whether they were used, oldest first, and the place of the hand.
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
        // Behind the newest comes the oldest.
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

/// Name, class, place in the class by time, and until when it is fresh.
#[derive(Default)]
pub(super) struct PriorityFifo(Vec<(u64, u8, u64, u64)>, u64);

impl PriorityFifo {
    /// Moves what has ceased to be fresh, one after the other in the order of time.
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

/// T1, T2, B1, B2.
pub(super) struct Arc {
    lists: [Vec<u64>; 4],
    target: f64,
    capacity: usize,
}

impl Arc {
    pub(super) fn new(capacity: usize) -> Self {
        Arc { lists: Default::default(), target: 0.0, capacity }
    }

    fn replace(&mut self, was_in_b2: bool) {
        let [t1, t2, b1, b2] = &mut self.lists;
        let is_over = t1.len() as f64 > self.target || (was_in_b2 && t1.len() as f64 == self.target);
        if (!t1.is_empty() && is_over) || t2.is_empty() {
            b1.push(t1.remove(0));
        } else {
            b2.push(t2.remove(0));
        }
    }
}

impl EvictionModel for Arc {
    fn names(&self) -> Vec<u64> {
        self.lists[..2].concat()
    }

    fn hit(&mut self, name: u64) {
        self.erase(name);
        self.lists[1].push(name);
    }

    fn erase(&mut self, name: u64) {
        let [t1, t2, ..] = &mut self.lists;
        let _ = take(t1, name) || take(t2, name);
    }

    fn victim(&mut self) -> Option<u64> {
        None
    }

    fn enter(&mut self, data: Data, is_full: bool, _: u64, _: bool, _: Decided) {
        let (b1, b2) = (self.lists[2].len() as f64, self.lists[3].len() as f64);
        if take(&mut self.lists[2], data.name) {
            self.target = (self.target + (b2 / b1).max(1.0)).min(self.capacity as f64);
            if is_full {
                self.replace(false);
            }
            self.lists[1].push(data.name);
        } else if take(&mut self.lists[3], data.name) {
            self.target = (self.target - (b1 / b2).max(1.0)).max(0.0);
            if is_full {
                self.replace(true);
            }
            self.lists[1].push(data.name);
        } else {
            if is_full {
                let [t1, _, b1, b2] = &mut self.lists;
                if t1.len() + b1.len() >= self.capacity {
                    if b1.is_empty() {
                        t1.remove(0);
                    } else {
                        b1.remove(0);
                        self.replace(false);
                    }
                } else {
                    if self.capacity + b1.len() + b2.len() >= 2 * self.capacity {
                        b2.remove(0);
                    }
                    self.replace(false);
                }
            }
            self.lists[0].push(data.name);
        }
    }
}

/// Small and main queue with hits, and ghosts.
pub(super) struct S3Fifo {
    small: Vec<(u64, u8)>,
    main: Vec<(u64, u8)>,
    ghosts: Vec<u64>,
    has_evicted: bool,
    small_capacity: usize,
    main_capacity: usize,
    ghost_capacity: usize,
    promote: u8,
}

impl S3Fifo {
    pub(super) fn new(parameters: &Parameters) -> Self {
        let share = |share: f64| (parameters.capacity as f64 * share) as usize;
        S3Fifo {
            small: Vec::new(),
            main: Vec::new(),
            ghosts: Vec::new(),
            has_evicted: false,
            small_capacity: share(parameters.tuning.small),
            main_capacity: parameters.capacity - share(parameters.tuning.small),
            ghost_capacity: share(parameters.tuning.ghosts),
            promote: parameters.tuning.promote,
        }
    }

    fn evict_small(&mut self) -> bool {
        while !self.small.is_empty() {
            let (name, hits) = self.small.remove(0);
            if hits < self.promote {
                self.ghosts.push(name);
                if self.ghosts.len() > self.ghost_capacity {
                    self.ghosts.remove(0);
                }
                return true;
            }
            self.main.push((name, 0));
        }
        false
    }

    fn evict_main(&mut self) {
        loop {
            let (name, hits) = self.main.remove(0);
            if hits == 0 {
                return;
            }
            self.main.push((name, hits.min(3) - 1));
        }
    }
}

impl EvictionModel for S3Fifo {
    fn names(&self) -> Vec<u64> {
        self.small.iter().chain(&self.main).map(|entry| entry.0).collect()
    }

    fn hit(&mut self, name: u64) {
        for entry in self.small.iter_mut().chain(&mut self.main).filter(|entry| entry.0 == name) {
            entry.1 = entry.1.saturating_add(1);
        }
    }

    fn erase(&mut self, name: u64) {
        self.small.retain(|entry| entry.0 != name);
        self.main.retain(|entry| entry.0 != name);
    }

    fn victim(&mut self) -> Option<u64> {
        None
    }

    fn enter(&mut self, data: Data, is_full: bool, _: u64, _: bool, _: Decided) {
        let was_ghost = take(&mut self.ghosts, data.name);
        if is_full {
            let main_is_next = self.main.len() > self.main_capacity || self.small.is_empty();
            if main_is_next || !self.evict_small() {
                self.evict_main();
            }
        }
        self.has_evicted |= is_full;
        let fills_up = !self.has_evicted && self.small.len() >= self.small_capacity;
        let queue = if was_ghost || fills_up { &mut self.main } else { &mut self.small };
        queue.push((data.name, 0));
    }
}

/// Window, probation and protection.
pub(super) struct WTinyLfu {
    lists: [Vec<u64>; 3],
    capacities: [usize; 3],
    sketch: Sketch,
}

impl WTinyLfu {
    pub(super) fn new(parameters: &Parameters, sketch: Sketch) -> Self {
        let window = ((parameters.capacity as f64 * parameters.tuning.window) as usize).max(1);
        let main = parameters.capacity - window;
        let protected = (main as f64 * parameters.tuning.protected) as usize;
        WTinyLfu { lists: Default::default(), capacities: [window, main, protected], sketch }
    }

    fn asked(&self, name: u64) -> u8 {
        self.sketch.estimate(kept(hash(name)))
    }
}

impl EvictionModel for WTinyLfu {
    fn names(&self) -> Vec<u64> {
        self.lists.concat()
    }

    fn hit(&mut self, name: u64) {
        self.sketch.count(kept(hash(name)));
        let [window, probation, protected] = &mut self.lists;
        if take(window, name) {
            return window.push(name);
        }
        let _ = take(probation, name) || take(protected, name);
        protected.push(name);
        if protected.len() > self.capacities[2] {
            probation.push(protected.remove(0));
        }
    }

    fn erase(&mut self, name: u64) {
        for list in &mut self.lists {
            take(list, name);
        }
    }

    fn victim(&mut self) -> Option<u64> {
        None
    }

    fn enter(&mut self, data: Data, is_full: bool, _: u64, _: bool, _: Decided) {
        let [window_capacity, main_capacity, _] = self.capacities;
        if is_full {
            let of_window = self.lists[0].first().copied().filter(|_| self.lists[0].len() >= window_capacity);
            let of_main = self.lists[1].first().or(self.lists[2].first()).copied();
            match (of_window, of_main) {
                (Some(new), Some(old)) if self.asked(new) > self.asked(old) => {
                    self.erase(old);
                    self.erase(new);
                    self.lists[1].push(new);
                }
                (Some(new), _) => self.erase(new),
                (None, Some(old)) => self.erase(old),
                (None, None) => {}
            }
        }
        self.sketch.count(kept(hash(data.name)));
        let [window, probation, protected] = &mut self.lists;
        window.push(data.name);
        while window.len() > window_capacity && probation.len() + protected.len() < main_capacity {
            probation.push(window.remove(0));
        }
    }
}
