//! What the handles, the buffers and the magazines of a pool share, and how long it lives.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crossbeam_queue::ArrayQueue;
use namehop_table::{PIECE_ALIGNMENT, Pieces};

use super::magazine::MAGAZINE_BUFFERS;
use super::{HEADROOM_BYTES, Mempool};
use crate::raw::Header;

/// Buffers that go between a magazine and the pool at a time: half a magazine, so that the next buffers find it neither full nor
/// empty.
pub(super) const BATCH: usize = MAGAZINE_BUFFERS / 2;
/// Pools with fewer small buffers have no magazines, in which too large a part of them would lie idle.
const LEAST_FOR_MAGAZINES: usize = 64 * MAGAZINE_BUFFERS;

const _: () = assert!(align_of::<Header>() <= PIECE_ALIGNMENT);

/// Storage of one buffer that nobody uses.
pub(super) struct Cell(pub(super) NonNull<Header>);

// SAFETY: a cell is the only reference to its memory.
unsafe impl Send for Cell {}

/// Bytes of a buffer for packets of up to `room_bytes`, with its header.
pub(super) const fn cell_bytes(room_bytes: usize) -> usize {
    size_of::<Header>() + HEADROOM_BYTES + room_bytes
}

/// Buffers of one size in ordinary memory.
pub(super) struct SizeClass {
    free: ArrayQueue<Cell>,
    /// Free ones, too, that have come from magazines.
    batches: ArrayQueue<[Cell; BATCH]>,
    /// Memory of all cells, which lives as long as the pool. `None` when the address space could not be had.
    pieces: Option<Pieces>,
    room_bytes: usize,
}

impl SizeClass {
    pub(super) fn new(contents: &'static str, room_bytes: usize, limit: usize) -> Self {
        let limit = limit.max(1);
        SizeClass {
            free: ArrayQueue::new(limit),
            batches: ArrayQueue::new(limit.div_ceil(BATCH)),
            pieces: Pieces::new(contents, limit, cell_bytes(room_bytes)).ok(),
            room_bytes,
        }
    }

    /// Most buffers.
    pub(super) fn limit(&self) -> usize {
        self.free.capacity()
    }

    /// A batch, if magazines have given back any.
    pub(super) fn take_batch(&self) -> Option<[Cell; BATCH]> {
        self.batches.pop()
    }

    /// Takes a batch back.
    pub(super) fn give_batch(&self, batch: [Cell; BATCH]) {
        // The queue has room for as many cells as may exist.
        drop(self.batches.push(batch));
    }

    /// One that nobody uses. What comes back first goes out first, so that none lies idle for long.
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
        // The queue holds as many cells as may exist, so it has room for every one that comes back.
        drop(self.free.push(cell));
    }

    #[cold]
    fn make(&self) -> Option<Cell> {
        let header: NonNull<Header> = self.pieces.as_ref()?.take()?.cast();
        // SAFETY: the piece holds the header and the storage behind it; `new` asked for so much. Lengths fit, as `raw.rs`
        // asserts.
        unsafe {
            let storage = header.add(1).cast::<u8>().as_ptr();
            header.write(Header::ordinary(storage, (HEADROOM_BYTES + self.room_bytes) as u16));
        }
        Some(Cell(header))
    }

    /// Cells that are neither in a queue nor unmade.
    fn outside(&self) -> usize {
        let made = self.pieces.as_ref().map_or(0, Pieces::taken);
        made.saturating_sub(self.free.len() + BATCH * self.batches.len())
    }
}

/// See the module's description.
pub(super) struct Shared {
    pub(super) small: SizeClass,
    pub(super) large: SizeClass,
    pub(super) mempool: OnceLock<Box<dyn Mempool>>,
    /// Handles, magazines, and cells that are in no queue: the memory has to stay for each of them. Changed once for a whole batch,
    /// because all threads write it.
    references: AtomicUsize,
    /// How many cells each magazine holds.
    magazines: Mutex<Vec<Arc<AtomicUsize>>>,
}

impl Shared {
    pub(super) fn has_magazines(&self) -> bool {
        self.small.limit() >= LEAST_FOR_MAGAZINES
    }

    /// Does nobody refer to the pool but one magazine and the cells in it?
    pub(super) fn is_abandoned(&self, cells: usize) -> bool {
        self.references.load(Ordering::Relaxed) == 1 + cells
    }

    /// A magazine comes to be: where it says how many cells it holds.
    pub(super) fn add_magazine(&self) -> Arc<AtomicUsize> {
        let told = Arc::new(AtomicUsize::new(0));
        self.magazines.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&told));
        told
    }

    /// It is no more.
    pub(super) fn remove_magazine(&self, told: &Arc<AtomicUsize>) {
        self.magazines.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| !Arc::ptr_eq(other, told));
    }

    /// Cells that are handed out.
    pub(super) fn in_use(&self) -> usize {
        let magazines = self.magazines.lock().unwrap_or_else(PoisonError::into_inner);
        let in_magazines: usize = magazines.iter().map(|told| told.load(Ordering::Relaxed)).sum();
        (self.small.outside() + self.large.outside()).saturating_sub(in_magazines)
    }
}

/// A reference to what is shared, of which it keeps itself alive. Counted by hand, and not by an `Arc`, because a batch of buffers is
/// counted at once.
pub(super) struct Handle(NonNull<Shared>);

// SAFETY: what is shared is `Sync`, and any thread may end it.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    pub(super) fn new(small: SizeClass, large: SizeClass) -> Handle {
        let (mempool, references) = (OnceLock::new(), AtomicUsize::new(1));
        let shared = Shared { small, large, mempool, references, magazines: Mutex::default() };
        Handle(NonNull::from(Box::leak(Box::new(shared))))
    }

    /// One that is not counted itself.
    ///
    /// # Safety
    /// Something that is counted lives longer.
    #[inline]
    pub(super) unsafe fn borrowed(shared: NonNull<Shared>) -> ManuallyDrop<Handle> {
        ManuallyDrop::new(Handle(shared))
    }

    /// Where it is, for the header of a buffer.
    #[inline]
    pub(super) fn address(&self) -> NonNull<Shared> {
        self.0
    }

    /// Holds the memory for so many more cells or handles.
    #[inline]
    pub(super) fn retain(&self, count: usize) {
        // As with `Arc`: who adds references has one.
        self.references.fetch_add(count, Ordering::Relaxed);
    }

    /// One buffer of a class, past the magazine.
    pub(super) fn take_one(&self, class: &SizeClass) -> Option<NonNull<Header>> {
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
        // SAFETY: it lives as long as a reference is counted, and this one is.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: this one is counted, and ends.
        unsafe { release(self.0, 1) };
    }
}

/// Ends so many references; the memory goes with the last one.
///
/// # Safety
/// They are counted, and not used any more.
#[inline]
pub(super) unsafe fn release(shared: NonNull<Shared>, count: usize) {
    // SAFETY: it lives as long as the references that end here.
    let references = unsafe { &shared.as_ref().references };
    if references.fetch_sub(count, Ordering::Release) == count {
        // What others did with it comes before its end.
        fence(Ordering::Acquire);
        // SAFETY: made with `Box::leak`, and nobody refers to it any more.
        drop(unsafe { Box::from_raw(shared.as_ptr()) });
    }
}

/// Takes one buffer back, past the magazine.
///
/// # Safety
/// It is a cell of this pool that is counted, and nobody uses it.
pub(super) unsafe fn give_one(shared: NonNull<Shared>, cell: Cell) {
    // SAFETY: the cell is counted, so the pool lives; its header was written when it was made.
    unsafe {
        let Shared { small, large, .. } = shared.as_ref();
        let class = if is_small(cell.0) { small } else { large };
        class.give(cell);
        release(shared, 1);
    }
}

/// Whether it is a small one.
///
/// # Safety
/// The header is initialised.
#[inline]
pub(super) unsafe fn is_small(header: NonNull<Header>) -> bool {
    // SAFETY: as the caller promises.
    usize::from(unsafe { header.as_ref() }.storage_bytes) == HEADROOM_BYTES + super::SMALL_BYTES
}
