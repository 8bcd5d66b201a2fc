//! A set of workers.

use super::MAX_WORKERS;

/// A set of workers, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerSet(u64);

impl WorkerSet {
    /// Adds a worker.
    pub fn insert(&mut self, worker: u8) {
        self.0 |= 1 << (worker as usize % MAX_WORKERS);
    }

    /// Removes a worker.
    pub fn remove(&mut self, worker: u8) {
        self.0 &= !(1 << (worker as usize % MAX_WORKERS));
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the numbers, lowest first.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        // The set is nearly always empty, and this is checked for each packet.
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let worker = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (worker < u64::BITS).then_some(worker as u8)
        })
    }
}

impl FromIterator<u8> for WorkerSet {
    fn from_iter<T: IntoIterator<Item = u8>>(workers: T) -> Self {
        let mut set = WorkerSet::default();
        workers.into_iter().for_each(|worker| set.insert(worker));
        set
    }
}
