//! The state that the writer and the readers of a FIB share.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use namehop_table::{ConcurrentBucketReader, RetiredBuckets, SharedArenaReader};

use super::entry::Entry;

/// A strategy choice: the strategy instance, from `Arc::into_raw`.
pub(super) type Choice<S> = AtomicPtr<S>;

/// A thing that the writer has unpublished, or will never change again, and that readers may still see.
pub(super) enum Retired<S> {
    /// An entry, by its index.
    Entry(u32),
    /// A strategy choice, by its index, with the strategy instance in it.
    Choice(u32),
    /// The former strategy instance of a choice that continues to exist.
    Strategy(#[expect(dead_code, reason = "kept alive, not used")] Arc<S>),
    /// A bucket array that the table has outgrown.
    Buckets(#[expect(dead_code, reason = "kept alive, not used")] RetiredBuckets),
}

/// The published state. Readers start here, so all entry points are atomics.
pub(super) struct Shared<S> {
    /// Index of the root entry, which is not in the table because every lookup ends there.
    pub(super) root: AtomicU32,
    /// Bit `d` is set if the table holds prefixes with `d` components. Bit 0, for the root, is always set.
    pub(super) depths: AtomicU64,
    /// Changes with every change of a strategy choice.
    pub(super) strategies_version: AtomicU64,
    /// All entries except the root.
    pub(super) table: ConcurrentBucketReader,
    pub(super) entries: SharedArenaReader<Entry>,
    pub(super) choices: SharedArenaReader<Choice<S>>,
    /// Things that the dropped writer left behind, to be freed when the last reader is dropped.
    pub(super) orphans: Mutex<Vec<Retired<S>>>,
}

impl<S> Shared<S> {
    /// Frees what an unpublished thing holds outside of the arenas.
    ///
    /// # Safety
    /// No reader may see the thing, and it must be released only once.
    pub(super) unsafe fn release(&self, retired: &Retired<S>) {
        match retired {
            Retired::Entry(index) => {
                // SAFETY: it was published once and not freed, and no reader sees it, as the caller promises.
                unsafe { self.entries.get(*index).release() };
            }
            Retired::Choice(id) => {
                // SAFETY: as above.
                let strategy = unsafe { self.choices.get(*id) }.load(Ordering::Acquire);
                // SAFETY: the pointer comes from `Arc::into_raw`, and the choice owned its count up to here.
                drop(unsafe { Arc::from_raw(strategy) });
            }
            Retired::Strategy(_) | Retired::Buckets(_) => {}
        }
    }
}

impl<S> Drop for Shared<S> {
    fn drop(&mut self) {
        let orphans = std::mem::take(self.orphans.get_mut().unwrap_or_else(PoisonError::into_inner));
        for orphan in orphans {
            // SAFETY: all handles are dropped, so there is no reader; the writer left each thing once.
            unsafe { self.release(&orphan) };
        }
    }
}
