//! Filter admission (Takemasa, thesis, Osaka University 2019, 5.2.3).

use std::cell::Cell;

use namehop_table::TableError;

use crate::words::Words;
use crate::{AdmissionPolicy, Parameters};

/// In the history: this request was not counted, because its counter was at its maximum.
const UNCOUNTED: u64 = 1 << 31;
/// Maximum number of requests by which a counter is prefetched before its request leaves the history: two groups of
/// packets of the prefetch plane.
const LEAVING_AHEAD: u64 = 128;

/// Data enters if its name was requested at least θ times among the last q requests. The victim does not matter.
///
/// 4 bytes for each request of the history and 2 for each counter: by default 516 per packet of the capacity, and at
/// most 32 MiB for all counters together.
#[derive(Debug)]
pub struct Filter {
    /// Counters of the last requests, the oldest at `next`.
    history: Words,
    length: usize,
    next: usize,
    /// Number of requests since the start.
    requests: u64,
    /// Number of requests since the start after which the counters of all leaving requests were prefetched. Only the
    /// prefetch plane uses it: it sees the requests of several groups before the first one is counted.
    prefetched: Cell<u64>,
    counters: Words,
    mask: u64,
    threshold: u64,
}

impl Filter {
    fn counter_of(&self, name_hash: u64) -> usize {
        (name_hash & self.mask) as usize
    }
}

impl AdmissionPolicy for Filter {
    const COMPARES: bool = false;
    const COUNTS: bool = true;

    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        let tuning = &parameters.tuning;
        let length = tuning.history.map_or(parameters.capacity, |history| history as usize).max(1);
        if length > u32::MAX as usize {
            return Err(TableError::CapacityTooLarge);
        }
        let counters = tuning.filter_counters(length as u64);
        Ok(Filter {
            history: Words::new(length.div_ceil(2))?,
            length,
            next: 0,
            requests: 0,
            prefetched: Cell::new(0),
            counters: Words::new((counters as usize).div_ceil(4))?,
            mask: counters - 1,
            threshold: tuning.threshold.into(),
        })
    }

    #[inline]
    fn requested(&mut self, name_hash: u64) {
        if self.requests >= self.length as u64 {
            let oldest = self.history.get_part::<32>(self.next);
            if oldest & UNCOUNTED == 0 {
                let count = self.counters.get_part::<16>(oldest as usize);
                self.counters.set_part::<16>(oldest as usize, count - 1);
            }
        }
        self.requests += 1;
        let counter = self.counter_of(name_hash);
        let count = self.counters.get_part::<16>(counter);
        let is_counted = count < u64::from(u16::MAX);
        if is_counted {
            self.counters.set_part::<16>(counter, count + 1);
        }
        let noted = counter as u64 | if is_counted { 0 } else { UNCOUNTED };
        self.history.set_part::<32>(self.next, noted);
        self.next += 1;
        if self.next == self.length {
            self.next = 0;
        }
    }

    #[inline]
    fn admits(&mut self, name_hash: u64) -> bool {
        self.counters.get_part::<16>(self.counter_of(name_hash)) >= self.threshold
    }

    #[inline]
    fn prefetch(&self, name_hash: u64) {
        self.counters.prefetch(self.counter_of(name_hash) / 4);
    }

    /// Also prefetches a counter that will be decreased soon: each request makes an older one leave the history.
    #[inline]
    fn prefetch_request(&self, name_hash: u64) {
        self.prefetch(name_hash);
        let request = self.prefetched.get().max(self.requests);
        let ahead = request - self.requests;
        if ahead >= LEAVING_AHEAD.min(self.length as u64) {
            return;
        }
        self.prefetched.set(request + 1);
        if request >= self.length as u64 {
            let leaving = self.next + ahead as usize;
            let leaving = if leaving < self.length { leaving } else { leaving - self.length };
            self.counters.prefetch((self.history.get_part::<32>(leaving) & !UNCOUNTED) as usize / 4);
        }
    }
}
