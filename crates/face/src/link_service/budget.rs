//! How many partial packets all faces together may have, so that many peers cannot pin the whole buffer pool.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Partial packets of all faces together if nothing else was set: a quarter of a pool of 8,192 large buffers.
pub const DEFAULT_PARTIAL_PACKETS_OF_ALL_FACES: usize = 2048;

/// A number of places that the faces share. Every thread may take and give.
#[derive(Debug)]
pub struct ReassemblyBudget {
    taken: AtomicUsize,
    limit: AtomicUsize,
}

impl Default for ReassemblyBudget {
    fn default() -> Self {
        ReassemblyBudget { taken: AtomicUsize::new(0), limit: AtomicUsize::new(DEFAULT_PARTIAL_PACKETS_OF_ALL_FACES) }
    }
}

impl ReassemblyBudget {
    /// Changes the number of places. Those taken beyond it stay taken.
    pub(crate) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Takes one place; `false` when there is none.
    pub(super) fn take(&self) -> bool {
        let before = self.taken.fetch_add(1, Ordering::Relaxed);
        let is_free = before < self.limit.load(Ordering::Relaxed);
        if !is_free {
            self.give(1);
        }
        is_free
    }

    /// Gives places back.
    pub(super) fn give(&self, count: usize) {
        self.taken.fetch_sub(count, Ordering::Relaxed);
    }
}
