//! Policies that keep names in several queues; the front of each is its first element.

use super::super::steps::{Data, Decided, hash};
use super::EvictionModel;
use super::queues::take;
use crate::Parameters;
use crate::sketch::Sketch;
use crate::slots::kept;

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
        let window = super::window(parameters, 0.01);
        let main = parameters.capacity - window;
        let protected = (main as f64 * parameters.tuning.protected) as usize;
        WTinyLfu { lists: Default::default(), capacities: [window, main, protected], sketch }
    }

    fn requests(&self, name: u64) -> u8 {
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
                (Some(new), Some(old)) if self.requests(new) > self.requests(old) => {
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
