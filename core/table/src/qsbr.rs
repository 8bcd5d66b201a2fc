//! Quiescent-state-based reclamation (QSBR): tells a writer when it may free what it has unpublished.
//!
//! Readers take no locks and do not record which objects they access. Instead each reader reports from time to time
//! that it holds no reference (a quiescent state); a packet worker does so once per burst. After every reader has
//! reported a quiescent state, no reader can see an object that was unpublished before. A reader goes offline before
//! it sleeps, so that it does not delay the writer; it comes back online by itself at its next access.

#[cfg(all(test, not(loom)))]
mod tests;

use std::cell::Cell;
use std::collections::VecDeque;

use crossbeam_utils::CachePadded;

use crate::sync::{Arc, AtomicU64, Mutex, MutexGuard, Ordering, PoisonError, fence};

/// Epoch of a reader that is offline.
const OFFLINE: u64 = 0;

type ReaderEpoch = Arc<CachePadded<AtomicU64>>;

struct Domain {
    /// Counts the writer's batches of retired objects; starts at 1.
    epoch: CachePadded<AtomicU64>,
    /// For each reader the epoch it saw at its last quiescent state, or [`OFFLINE`].
    readers: Mutex<Vec<ReaderEpoch>>,
}

impl Domain {
    fn readers(&self) -> MutexGuard<'_, Vec<ReaderEpoch>> {
        // The list is consistent between any two statements that may panic.
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer's side: objects that are retired and not yet safe to free.
pub struct Qsbr<T> {
    domain: Arc<Domain>,
    retired: VecDeque<(u64, T)>,
}

impl<T> Qsbr<T> {
    /// Makes a writer without readers.
    pub fn new() -> Self {
        Qsbr {
            domain: Arc::new(Domain {
                epoch: CachePadded::new(AtomicU64::new(OFFLINE + 1)),
                readers: Mutex::new(Vec::new()),
            }),
            retired: VecDeque::new(),
        }
    }

    /// Returns a handle for one more reader thread. It starts offline.
    pub fn reader(&self) -> QsbrReader {
        let seen = Arc::new(CachePadded::new(AtomicU64::new(OFFLINE)));
        self.domain.readers().push(Arc::clone(&seen));
        QsbrReader { domain: Arc::clone(&self.domain), seen, online: Cell::new(false) }
    }

    /// Keeps `item` until no reader can see it. The caller has already unpublished it.
    pub fn retire(&mut self, item: T) {
        // The epoch advances in `reclaim` only, so that retiring many objects is cheap.
        let epoch = self.domain.epoch.load(Ordering::Relaxed) + 1;
        self.retired.push_back((epoch, item));
    }

    /// Passes every object that no reader can see any more to `dispose`, oldest first. Never waits.
    pub fn reclaim(&mut self, mut dispose: impl FnMut(T)) {
        let Some(&(newest, _)) = self.retired.back() else {
            return;
        };
        // Readers that see the new epoch also see that all objects retired so far are unpublished.
        if newest > self.domain.epoch.load(Ordering::Relaxed) {
            self.domain.epoch.store(newest, Ordering::Release);
        }
        // Pairs with the fence in `QsbrReader::come_online`: a reader that comes online now is either seen below, or
        // it sees everything unpublished up to here.
        fence(Ordering::SeqCst);
        let safe = self
            .domain
            .readers()
            .iter()
            .map(|seen| seen.load(Ordering::Acquire))
            .filter(|&seen| seen != OFFLINE)
            .min()
            .unwrap_or(newest);
        while self.retired.front().is_some_and(|&(epoch, _)| epoch <= safe) {
            if let Some((_, item)) = self.retired.pop_front() {
                dispose(item);
            }
        }
    }

    /// Number of objects retired and not yet reclaimed.
    pub fn pending(&self) -> usize {
        self.retired.len()
    }

    /// Takes all retired objects, whether safe to free or not, for a caller that keeps them until all readers are
    /// dropped.
    pub fn take_retired(&mut self) -> impl Iterator<Item = T> + '_ {
        self.retired.drain(..).map(|(_, item)| item)
    }
}

impl<T> Default for Qsbr<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The side of one reader thread.
///
/// References to published objects must be obtained while the reader is [online](Self::online) and must not exist
/// when [`quiescent`](Self::quiescent) or [`offline`](Self::offline) is called. Their lifetimes should therefore
/// borrow from the reader, so that the compiler checks this.
pub struct QsbrReader {
    domain: Arc<Domain>,
    seen: ReaderEpoch,
    online: Cell<bool>,
}

impl QsbrReader {
    /// Brings the reader online if it is offline. Cheap if it is online.
    #[inline(always)]
    pub fn online(&self) {
        if !self.online.get() {
            self.come_online();
        }
    }

    #[cold]
    fn come_online(&self) {
        let epoch = self.domain.epoch.load(Ordering::Acquire);
        // As in `offline`: the writer must not take the reader's earlier accesses for later ones.
        self.seen.store(epoch, Ordering::Release);
        // Pairs with the fence in `Qsbr::reclaim`.
        fence(Ordering::SeqCst);
        self.online.set(true);
    }

    /// Reports that this thread holds no reference to any published object.
    #[inline]
    pub fn quiescent(&mut self) {
        if self.online.get() {
            let epoch = self.domain.epoch.load(Ordering::Acquire);
            self.seen.store(epoch, Ordering::Release);
        }
    }

    /// Reports that this thread holds no reference and will access nothing until it is online again. Called before
    /// sleeping.
    pub fn offline(&mut self) {
        self.online.set(false);
        self.seen.store(OFFLINE, Ordering::Release);
    }
}

impl Drop for QsbrReader {
    fn drop(&mut self) {
        self.offline();
        self.domain.readers().retain(|seen| !Arc::ptr_eq(seen, &self.seen));
    }
}

#[cfg(all(test, loom))]
mod model;
