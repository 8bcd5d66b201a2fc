//! State shared by the handles, buffers and magazines of a pool, and its lifetime.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crossbeam_queue::ArrayQueue;
use namehop_table::{PIECE_ALIGNMENT, Pieces};

use super::magazine::MAGAZINE_BUFFERS;
use crate::mempool::Mempool;
use crate::raw::Header;
use crate::size::{HEADROOM_BYTES, SMALL_BYTES};

/// Number of buffers that move between a magazine and the pool at a time: half a magazine, so that the magazine is
/// neither full nor empty afterwards.
pub(super) const BATCH: usize = MAGAZINE_BUFFERS / 2;
/// Pools with fewer small buffers have no magazines, because too large a part of the buffers would be idle there.
const LEAST_FOR_MAGAZINES: usize = 64 * MAGAZINE_BUFFERS;

const _: () = assert!(align_of::<Header>() <= PIECE_ALIGNMENT);

/// Storage of one unused buffer.
pub(super) struct Cell(pub(super) NonNull<Header>);

// SAFETY: a cell is the only reference to its memory.
unsafe impl Send for Cell {}

/// Returns the size in bytes of a buffer for packets of up to `room_bytes`, including its header.
pub(crate) const fn cell_bytes(room_bytes: usize) -> usize {
    size_of::<Header>() + HEADROOM_BYTES + room_bytes
}

/// Buffers of one size in ordinary memory.
pub(crate) struct SizeClass {
    free: ArrayQueue<Cell>,
    /// Free cells that magazines returned in batches.
    batches: ArrayQueue<[Cell; BATCH]>,
    /// Memory of all cells, which lives as long as the pool. `None` if the address space is not available.
    pieces: Option<Pieces>,
    room_bytes: usize,
}

impl SizeClass {
    pub(crate) fn new(contents: &'static str, room_bytes: usize, limit: usize) -> Self {
        let limit = limit.max(1);
        SizeClass {
            free: ArrayQueue::new(limit),
            batches: ArrayQueue::new(limit.div_ceil(BATCH)),
            pieces: Pieces::new(contents, limit, cell_bytes(room_bytes)).ok(),
            room_bytes,
        }
    }

    /// Returns the maximum number of buffers.
    pub(crate) fn limit(&self) -> usize {
        self.free.capacity()
    }

    /// Takes a batch that a magazine returned, if there is one.
    pub(super) fn take_batch(&self) -> Option<[Cell; BATCH]> {
        self.batches.pop()
    }

    /// Returns a batch.
    pub(super) fn give_batch(&self, batch: [Cell; BATCH]) {
        // The queue has room for all cells that can exist.
        drop(self.batches.push(batch));
    }

    /// Takes an unused cell. The cell returned first is taken first, so that none is idle for long.
    fn take(&self) -> Option<Cell> {
        self.free.pop().or_else(|| self.take_from_batch()).or_else(|| self.make())
    }

    #[cold]
    fn take_from_batch(&self) -> Option<Cell> {
        let mut cells = self.take_batch()?.into_iter();
        let first = cells.next();
        cells.for_each(|cell| self.give(cell));
        first
    }

    fn give(&self, cell: Cell) {
        // The queue has room for all cells that can exist.
        drop(self.free.push(cell));
    }

    #[cold]
    fn make(&self) -> Option<Cell> {
        let header: NonNull<Header> = self.pieces.as_ref()?.take()?.cast();
        // SAFETY: the piece has room for the header and the storage behind it, as requested in `new`. The lengths fit
        // in 16 bits, as `raw.rs` asserts.
        unsafe {
            let storage = header.add(1).cast::<u8>().as_ptr();
            header.write(Header::ordinary(storage, (HEADROOM_BYTES + self.room_bytes) as u16));
        }
        Some(Cell(header))
    }

    /// Number of cells that were made and are not in a queue.
    fn outside(&self) -> usize {
        let made = self.pieces.as_ref().map_or(0, Pieces::taken);
        made.saturating_sub(self.free.len() + BATCH * self.batches.len())
    }
}

/// State that all references to a pool share.
pub(crate) struct Shared {
    pub(crate) small: SizeClass,
    pub(crate) large: SizeClass,
    pub(crate) mempool: OnceLock<Box<dyn Mempool>>,
    /// Number of handles, magazines, and cells outside of the queues: each of them keeps the memory alive. All
    /// threads write it, so it is changed once per batch.
    references: AtomicUsize,
    /// Number of cells in each magazine.
    magazines: Mutex<Vec<Arc<AtomicUsize>>>,
}

impl Shared {
    pub(super) fn has_magazines(&self) -> bool {
        self.small.limit() >= LEAST_FOR_MAGAZINES
    }

    /// Returns true if only one magazine, and the cells in it, refer to the pool.
    pub(super) fn is_abandoned(&self, cells: usize) -> bool {
        self.references.load(Ordering::Relaxed) == 1 + cells
    }

    /// Registers a magazine; returns the counter in which it publishes its number of cells.
    pub(super) fn add_magazine(&self) -> Arc<AtomicUsize> {
        let published = Arc::new(AtomicUsize::new(0));
        self.magazines.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&published));
        published
    }

    /// Unregisters a magazine.
    pub(super) fn remove_magazine(&self, published: &Arc<AtomicUsize>) {
        self.magazines.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| !Arc::ptr_eq(other, published));
    }

    /// Returns the number of cells that are allocated.
    pub(crate) fn in_use(&self) -> usize {
        let magazines = self.magazines.lock().unwrap_or_else(PoisonError::into_inner);
        let in_magazines: usize = magazines.iter().map(|published| published.load(Ordering::Relaxed)).sum();
        (self.small.outside() + self.large.outside()).saturating_sub(in_magazines)
    }
}

/// A counted reference that keeps the shared state alive. The count is not that of an `Arc`, because a batch of
/// buffers is counted at once.
pub(crate) struct Handle(NonNull<Shared>);

// SAFETY: the shared state is `Sync`, and any thread may drop it.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    pub(crate) fn new(small: SizeClass, large: SizeClass) -> Handle {
        let (mempool, references) = (OnceLock::new(), AtomicUsize::new(1));
        let shared = Shared { small, large, mempool, references, magazines: Mutex::default() };
        Handle(NonNull::from(Box::leak(Box::new(shared))))
    }

    /// Makes a handle that is not counted itself.
    ///
    /// # Safety
    /// A counted reference outlives it.
    #[inline]
    pub(super) unsafe fn borrowed(shared: NonNull<Shared>) -> ManuallyDrop<Handle> {
        ManuallyDrop::new(Handle(shared))
    }

    /// Returns the address of the shared state, for the header of a buffer.
    #[inline]
    pub(crate) fn address(&self) -> NonNull<Shared> {
        self.0
    }

    /// Adds `count` references, for cells or handles.
    #[inline]
    pub(super) fn retain(&self, count: usize) {
        // As with `Arc`: the caller already holds a reference.
        self.references.fetch_add(count, Ordering::Relaxed);
    }

    /// Takes one buffer of a class, bypassing the magazine.
    pub(crate) fn take_one(&self, class: &SizeClass) -> Option<NonNull<Header>> {
        let Cell(header) = class.take()?;
        self.retain(1);
        Some(header)
    }
}

impl Clone for Handle {
    fn clone(&self) -> Handle {
        self.retain(1);
        Handle(self.0)
    }
}

impl Deref for Handle {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        // SAFETY: the state lives as long as a reference is counted, and this handle is counted.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: this handle is counted, and not used any more.
        unsafe { release(self.0, 1) };
    }
}

/// Drops `count` references; the memory is freed with the last one.
///
/// # Safety
/// The references are counted, and not used any more.
#[inline]
pub(super) unsafe fn release(shared: NonNull<Shared>, count: usize) {
    // SAFETY: the state lives as long as the references that are dropped here.
    let references = unsafe { &shared.as_ref().references };
    if references.fetch_sub(count, Ordering::Release) == count {
        // Other threads' accesses happen before the memory is freed.
        fence(Ordering::Acquire);
        // SAFETY: made with `Box::leak`, and there are no more references.
        drop(unsafe { Box::from_raw(shared.as_ptr()) });
    }
}

/// Frees one buffer, bypassing the magazine.
///
/// # Safety
/// The cell is of this pool, counted, and unused.
pub(super) unsafe fn give_one(shared: NonNull<Shared>, cell: Cell) {
    // SAFETY: the cell is counted, so the pool lives; its header was written when it was made.
    unsafe {
        let Shared { small, large, .. } = shared.as_ref();
        let class = if is_small(cell.0) { small } else { large };
        class.give(cell);
        release(shared, 1);
    }
}

/// Returns true if the buffer is a small one.
///
/// # Safety
/// The header is initialised.
#[inline]
pub(super) unsafe fn is_small(header: NonNull<Header>) -> bool {
    // SAFETY: as the caller promises.
    usize::from(unsafe { header.as_ref() }.storage_bytes) == HEADROOM_BYTES + SMALL_BYTES
}
