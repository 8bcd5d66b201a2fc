//! Quiescent-state reclamation: when may a writer free what it has unpublished?
//!
//! Readers take no locks and leave no trace of what they look at. Instead each reader says from time to time "I hold no
//! reference now" (a quiescent state), which a packet worker does once per burst. Something unpublished before every
//! reader said so can no longer be seen by anyone. A reader that sleeps goes offline first, so that it does not hold up
//! the writer; it comes back by itself at its next access.

#[cfg(all(test, not(loom)))]
mod tests;

use std::cell::Cell;
use std::collections::VecDeque;

use crossbeam_utils::CachePadded;

use crate::sync::{Arc, AtomicU64, Mutex, MutexGuard, Ordering, PoisonError, fence};

/// What a reader's epoch says while the reader is offline.
const OFFLINE: u64 = 0;

type ReaderEpoch = Arc<CachePadded<AtomicU64>>;

struct Domain {
    /// Counts the writer's batches of retired things; starts at 1.
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

/// The writer's side: things retired and not yet safe to free.
pub struct Qsbr<T> {
    domain: Arc<Domain>,
    retired: VecDeque<(u64, T)>,
}

impl<T> Qsbr<T> {
    /// A writer without readers.
    pub fn new() -> Self {
        Qsbr {
            domain: Arc::new(Domain {
                epoch: CachePadded::new(AtomicU64::new(OFFLINE + 1)),
                readers: Mutex::new(Vec::new()),
            }),
            retired: VecDeque::new(),
        }
    }

    /// A handle for one more reader thread. It starts offline.
    pub fn reader(&self) -> QsbrReader {
        let seen = Arc::new(CachePadded::new(AtomicU64::new(OFFLINE)));
        self.domain.readers().push(Arc::clone(&seen));
        QsbrReader { domain: Arc::clone(&self.domain), seen, online: Cell::new(false) }
    }

    /// Keeps `item` until no reader can see it. The caller has unpublished it already.
    pub fn retire(&mut self, item: T) {
        // The epoch moves on in `reclaim` only, so that retiring many things is cheap.
        let epoch = self.domain.epoch.load(Ordering::Relaxed) + 1;
        self.retired.push_back((epoch, item));
    }

    /// Gives everything that no reader can see any more to `dispose`, oldest first. Never waits.
    pub fn reclaim(&mut self, mut dispose: impl FnMut(T)) {
        let Some(&(newest, _)) = self.retired.back() else {
            return;
        };
        // Readers that see the new epoch also see all that was unpublished before.
        if newest > self.domain.epoch.load(Ordering::Relaxed) {
            self.domain.epoch.store(newest, Ordering::Release);
        }
        // Pairs with the fence in `QsbrReader::online`: either a reader that comes online now is seen below, or it sees
        // everything unpublished up to here.
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

    /// Things retired and not yet reclaimed.
    pub fn pending(&self) -> usize {
        self.retired.len()
    }

    /// Takes all things retired, whether safe to free or not, for someone who will keep them until all readers are gone.
    pub fn take_retired(&mut self) -> impl Iterator<Item = T> + '_ {
        self.retired.drain(..).map(|(_, item)| item)
    }
}

impl<T> Default for Qsbr<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// One reader thread's side.
///
/// References to published things must be obtained while the reader is [online](Self::online) and must be gone when
/// [`quiescent`](Self::quiescent) or [`offline`](Self::offline) is called; their lifetimes should therefore borrow from
/// the reader, so that the compiler sees to it.
pub struct QsbrReader {
    domain: Arc<Domain>,
    seen: ReaderEpoch,
    online: Cell<bool>,
}

impl QsbrReader {
    /// Makes sure the reader is online. Cheap if it is.
    #[inline(always)]
    pub fn online(&self) {
        if !self.online.get() {
            self.come_online();
        }
    }

    #[cold]
    fn come_online(&self) {
        let epoch = self.domain.epoch.load(Ordering::Acquire);
        // As in `offline`: a writer that sees this value must not see the reader's earlier looks as still to come.
        self.seen.store(epoch, Ordering::Release);
        // Pairs with the fence in `Qsbr::reclaim`.
        fence(Ordering::SeqCst);
        self.online.set(true);
    }

    /// Says that this thread holds no reference to anything published.
    #[inline]
    pub fn quiescent(&mut self) {
        if self.online.get() {
            let epoch = self.domain.epoch.load(Ordering::Acquire);
            self.seen.store(epoch, Ordering::Release);
        }
    }

    /// Says that this thread holds no reference and will not look at anything until it is online again. To be called
    /// before sleeping.
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
