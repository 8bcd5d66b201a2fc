//! Events of a store, and a small store to which they are applied.

use std::collections::BTreeMap;

use namehop_table::permutation::mix;
use proptest::prelude::*;

use crate::{Arrival, CachePolicy, Policy};

/// Number of different names.
pub(super) const NAMES: u64 = 30;

/// An event.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// An Interest requests a name, and Data arrives if it is a miss.
    Request(Data),
    /// Data arrives that is unsolicited or already in the store.
    Data(Data),
    /// A name is erased from the store.
    Erase(u64),
}

#[derive(Debug, Clone, Copy)]
pub struct Data {
    pub(super) name: u64,
    /// Freshness in steps.
    pub(super) freshness: u64,
}

impl Step {
    pub(super) fn request(name: u64) -> Self {
        Step::Request(Data { name, freshness: 1 << 40 })
    }
}

fn data() -> impl Strategy<Value = Data> {
    // Names with smaller numbers occur more often.
    let name = (0..NAMES, 0..NAMES).prop_map(|(a, b)| a.min(b));
    (name, 0..20_u64).prop_map(|(name, freshness)| Data { name, freshness })
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => data().prop_map(Step::Request),
        2 => data().prop_map(Step::Data),
        1 => (0..NAMES).prop_map(Step::Erase),
    ];
    prop::collection::vec(step, 0..300)
}

pub(super) fn hash(name: u64) -> u64 {
    mix(name + 1)
}

/// Returns the time of a step.
pub(super) fn now(step: u64) -> u64 {
    1000 * step
}

/// Returns when Data that arrived with a step turns stale: never at the same time as other Data.
pub(super) fn fresh_until(step: u64, freshness: u64) -> u64 {
    now(step + freshness) + step
}

/// The decision about Data that was not in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decided {
    pub(super) admitted: bool,
    pub(super) evicted: Option<u64>,
}

/// Names in slots, as in a Content Store.
pub(super) struct Store {
    pub(super) policy: Policy,
    capacity: usize,
    slots: BTreeMap<u64, u32>,
    time: u64,
}

impl Store {
    pub(super) fn new(policy: Policy, capacity: usize) -> Self {
        Store { policy, capacity, slots: BTreeMap::new(), time: 0 }
    }

    /// Returns the names in the store.
    pub(super) fn names(&self) -> Vec<u64> {
        self.slots.keys().copied().collect()
    }

    /// Applies a step and ignores its outcome.
    pub(super) fn run(&mut self, step: Step) {
        self.apply(step);
    }

    pub(super) fn apply(&mut self, step: Step) -> Decided {
        self.time += 1;
        match step {
            Step::Request(data) => {
                self.policy.requested(hash(data.name));
                match self.slots.get(&data.name) {
                    Some(&slot) => {
                        self.policy.hit(slot);
                        Decided::default()
                    }
                    None => self.arrive(data, true),
                }
            }
            Step::Data(data) => self.arrive(data, false),
            Step::Erase(name) => {
                if let Some(slot) = self.slots.remove(&name) {
                    self.policy.removed(slot);
                    // A second report changes nothing.
                    self.policy.removed(slot);
                    self.policy.evicted(slot);
                }
                Decided::default()
            }
        }
    }

    fn arrive(&mut self, data: Data, is_solicited: bool) -> Decided {
        let Data { name, freshness } = data;
        let (now, fresh_until) = (now(self.time), fresh_until(self.time, freshness));
        let arrival = Arrival { name_hash: hash(name), now, fresh_until, is_solicited };
        if let Some(&slot) = self.slots.get(&name) {
            self.policy.refreshed(slot, &arrival);
            return Decided::default();
        }
        let is_full = self.slots.len() >= self.capacity;
        if !self.policy.admits(&arrival, is_full) {
            return Decided::default();
        }
        let mut evicted = None;
        if is_full {
            let victim = self.policy.victim().expect("a full store has a victim");
            let name = *self.slots.iter().find(|(_, slot)| **slot == victim).expect("the victim is in the store").0;
            self.policy.evicted(victim);
            self.slots.remove(&name);
            evicted = Some(name);
        }
        let slot = (0..).find(|slot| !self.slots.values().any(|used| used == slot)).expect("a free slot");
        self.policy.admitted(slot, &arrival);
        self.slots.insert(name, slot);
        Decided { admitted: true, evicted }
    }
}
