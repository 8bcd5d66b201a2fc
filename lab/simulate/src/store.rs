//! A store of names under one policy, which makes the decisions of the router's Content Store without packets.

use namehop_store::{Arrival, CachePolicy, PolicyVisitor};
use namehop_table::{BucketTable, PageRequest, TableError};
use serde::Serialize;

use crate::policy::SimulatedPolicy;

/// Prefetch distance in requests, as a router prefetches for a burst of packets.
const AHEAD: usize = 16;

/// Counters of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Requests.
    pub requests: u64,
    /// Requests that the store answered.
    pub hits: u64,
    /// Names inserted.
    pub insertions: u64,
    /// Names evicted.
    pub evictions: u64,
}

impl Counts {
    /// Share of requests that the store answered, 0 to 1.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / self.requests.max(1) as f64
    }

    /// Share of misses after which the Data was inserted, 0 to 1.
    pub fn insertion_rate(&self) -> f64 {
        self.insertions as f64 / (self.requests - self.hits).max(1) as f64
    }

    /// Difference to the earlier counters `earlier`.
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            requests: self.requests - earlier.requests,
            hits: self.hits - earlier.hits,
            insertions: self.insertions - earlier.insertions,
            evictions: self.evictions - earlier.evictions,
        }
    }
}

/// A store under any policy.
pub trait SimulatedStore: Send {
    /// Requests these names in order, and calls `on_request` for each with true if it was a hit.
    fn request(&mut self, names: &[u64], on_request: &mut dyn FnMut(bool));
    /// As `request`, with prefetching and without `on_request`.
    fn request_all(&mut self, names: &[u64]);
    /// Counters since the start.
    fn counts(&self) -> Counts;
}

/// Creates an empty store for `capacity` names under this policy.
///
/// # Errors
/// Fails if its memory cannot be allocated.
pub fn store(policy: SimulatedPolicy, capacity: usize) -> Result<Box<dyn SimulatedStore>, TableError> {
    let table = BucketTable::new(capacity, PageRequest::Large)?;
    policy.visit(capacity, NewStore { table, capacity })
}

struct NewStore {
    table: BucketTable,
    capacity: usize,
}

impl PolicyVisitor for NewStore {
    type Output = Box<dyn SimulatedStore>;

    fn visit<P: CachePolicy + 'static>(self, policy: P) -> Self::Output {
        let NewStore { table, capacity } = self;
        Box::new(Store { policy, table, names: Vec::with_capacity(capacity), capacity, counts: Counts::default() })
    }
}

struct Store<P> {
    policy: P,
    /// Slots by name.
    table: BucketTable,
    /// Names by slot.
    names: Vec<u64>,
    capacity: usize,
    counts: Counts,
}

impl<P: CachePolicy> Store<P> {
    #[inline]
    fn request_one(&mut self, name: u64) -> bool {
        self.counts.requests += 1;
        self.policy.requested(name);
        if let Some(slot) = self.table.find(name, |slot| self.names[slot as usize] == name) {
            self.counts.hits += 1;
            self.policy.hit(slot);
            return true;
        }
        let arrival = Arrival::fresh(name);
        let is_full = self.names.len() >= self.capacity;
        if self.capacity == 0 || !self.policy.admits(&arrival, is_full) {
            return false;
        }
        let victim = if is_full { self.policy.evict() } else { None };
        let slot = match victim {
            Some(victim) => {
                self.table.remove(self.names[victim as usize], victim);
                self.counts.evictions += 1;
                self.names[victim as usize] = name;
                victim
            }
            None => {
                self.names.push(name);
                (self.names.len() - 1) as u32
            }
        };
        if self.table.insert(name, slot).is_ok() {
            self.policy.admitted(slot, &arrival);
            self.counts.insertions += 1;
        }
        false
    }
}

impl<P: CachePolicy> SimulatedStore for Store<P> {
    fn request(&mut self, names: &[u64], on_request: &mut dyn FnMut(bool)) {
        for &name in names {
            on_request(self.request_one(name));
        }
    }

    fn request_all(&mut self, names: &[u64]) {
        for (index, &name) in names.iter().enumerate() {
            if let Some(&later) = names.get(index + AHEAD) {
                self.table.prefetch(later);
                self.policy.prefetch_request(later);
                self.policy.prefetch_name(later);
            }
            self.request_one(name);
        }
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
