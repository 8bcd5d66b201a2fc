//! State that workers and the disk thread share: the extent of the log, the state of the disk, and counters.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
use std::task::Waker;

use crossbeam_utils::CachePadded;
use futures_util::task::AtomicWaker;
use namehop_engine::second_tier::{DeviceCounters, TierState, TierStatus};

use crate::format::CHUNK_SLOTS;
use crate::index::Extent;

/// Counters of the disk thread.
#[derive(Debug, Default)]
pub(crate) struct DiskCounters {
    pub(crate) reads: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) checksum_failures: AtomicU64,
    pub(crate) stalls: AtomicU64,
}

/// Adds to a counter with a single writer.
pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// The shared state; see the module's description.
#[derive(Debug)]
pub(crate) struct DiskState {
    /// Number of slots taken of the log.
    cursor: CachePadded<AtomicU64>,
    /// Slots of the ring.
    pub(crate) slots: u64,
    state: CachePadded<AtomicU8>,
    pub(crate) counters: DiskCounters,
    /// Number of workers with erasures that are not on the disk yet.
    erasing: AtomicU64,
    is_asleep: CachePadded<AtomicBool>,
    waker: AtomicWaker,
    is_stopping: AtomicBool,
}

impl DiskState {
    pub(crate) fn new(slots: u64) -> Self {
        DiskState {
            cursor: CachePadded::default(),
            slots,
            state: CachePadded::default(),
            counters: DiskCounters::default(),
            erasing: AtomicU64::default(),
            is_asleep: CachePadded::default(),
            waker: AtomicWaker::new(),
            is_stopping: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn extent(&self) -> Extent {
        Extent { cursor: self.cursor.load(Ordering::Relaxed), slots: self.slots }
    }

    /// Takes the next chunk of the log for one worker; returns the position of its first slot.
    pub(crate) fn take_chunk(&self) -> u64 {
        self.cursor.fetch_add(CHUNK_SLOTS, Ordering::Relaxed)
    }

    /// Continues a log at a position. Called before the first chunk is taken.
    pub(crate) fn continue_at(&self, position: u64) {
        self.cursor.store(position.next_multiple_of(CHUNK_SLOTS), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn state(&self) -> TierState {
        TierState::ALL[usize::from(self.state.load(Ordering::Acquire)) % TierState::ALL.len()]
    }

    pub(crate) fn set_state(&self, state: TierState) {
        self.state.store(state as u8, Ordering::Release);
    }

    /// Marks the disk as stalled, because it has not answered since the start. No effect if it has answered in the
    /// meantime.
    pub(crate) fn give_up_waiting(&self) {
        let (starting, stalled) = (TierState::Starting as u8, TierState::Stalled as u8);
        let _ = self.state.compare_exchange(starting, stalled, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Adds or removes a worker that has erasures that are not on the disk.
    pub(crate) fn set_erasing(&self, is_erasing: bool) {
        match is_erasing {
            true => self.erasing.fetch_add(1, Ordering::AcqRel),
            false => self.erasing.fetch_sub(1, Ordering::AcqRel),
        };
    }

    /// Wakes the disk thread if it sleeps. Called after a message was published in one of its rings.
    pub(crate) fn wake(&self) {
        // Either the thread sees the message in its last check before it sleeps, or this call sees that the thread
        // sleeps.
        fence(Ordering::SeqCst);
        if self.is_asleep.load(Ordering::Relaxed) && self.is_asleep.swap(false, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    /// Announces that the thread is about to sleep; it checks its rings once more after this.
    pub(crate) fn fall_asleep(&self, waker: &Waker) {
        self.waker.register(waker);
        self.is_asleep.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Records that the thread is awake.
    pub(crate) fn awake(&self) {
        self.is_asleep.store(false, Ordering::Relaxed);
    }

    /// Tells the thread to end.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    pub(crate) fn status(&self) -> TierStatus {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let slot_bytes = crate::SLOT_BYTES as u64;
        let counters = &self.counters;
        TierStatus {
            state: self.state(),
            capacity_bytes: self.slots * slot_bytes,
            used_bytes: self.extent().cursor.min(self.slots) * slot_bytes,
            counters: DeviceCounters {
                reads: read(&counters.reads),
                writes: read(&counters.writes),
                written_bytes: read(&counters.written_bytes),
                errors: read(&counters.errors),
                checksum_failures: read(&counters.checksum_failures),
                stalls: read(&counters.stalls),
            },
            erasing_workers: self.erasing.load(Ordering::Acquire),
        }
    }
}
