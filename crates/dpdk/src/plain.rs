//! Mbufs in ordinary memory: what packets lie in before DPDK's environment runs, and in a router without ports for ever.
//!
//! They look like those of a mempool except that they belong to none, so drivers cannot take them; a port copies the few
//! that are still about when it is opened. Storage is made on first need and kept, so a quiet router stays small.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;
use namehop_forward::buffer::HEADROOM_BYTES;

use crate::header::{Header, LARGE_BYTES, PRIVATE_BYTES, SMALL_BYTES};
use crate::mbuf::Mbuf;

/// Storage of one mbuf that nobody uses.
struct Cell {
    header: NonNull<Header>,
    layout: Layout,
}

// SAFETY: a cell is the only reference to its memory.
unsafe impl Send for Cell {}

impl Cell {
    fn layout(room_bytes: usize) -> Option<Layout> {
        let bytes = size_of::<Header>() + PRIVATE_BYTES + HEADROOM_BYTES + room_bytes;
        Layout::from_size_align(bytes, align_of::<Header>()).ok()
    }

    fn new(room_bytes: usize) -> Option<Cell> {
        let layout = Cell::layout(room_bytes)?;
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc_zeroed(layout) };
        let header: NonNull<Header> = NonNull::new(memory)?.cast();
        // SAFETY: the memory holds the header, the private area behind it, and the storage behind that; its layout says
        // so. Lengths fit, as `header.rs` asserts.
        unsafe {
            let storage = header.add(1).cast::<u8>().add(PRIVATE_BYTES).as_ptr();
            header.write(Header::plain(storage, (HEADROOM_BYTES + room_bytes) as u16));
        }
        Some(Cell { header, layout })
    }

    /// The mbuf, empty.
    fn into_mbuf(self, owner: &Arc<PlainPool>) -> Mbuf {
        let mut header = self.header;
        std::mem::forget(self);
        // SAFETY: nobody else has the cell, and its header was written when it was made.
        unsafe {
            header.as_mut().hand_out(Arc::into_raw(Arc::clone(owner)).cast());
            Mbuf::from_raw(header)
        }
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(self.header.as_ptr().cast(), self.layout) };
    }
}

/// Cells of one size.
struct SizeClass {
    free: ArrayQueue<Cell>,
    room_bytes: usize,
    /// Cells that exist, free or handed out.
    created: AtomicUsize,
    limit: usize,
}

impl SizeClass {
    fn new(room_bytes: usize, limit: usize) -> Self {
        let limit = limit.max(1);
        SizeClass { free: ArrayQueue::new(limit), room_bytes, created: AtomicUsize::new(0), limit }
    }

    fn take(&self, owner: &Arc<PlainPool>) -> Option<Mbuf> {
        let cell = match self.free.pop() {
            Some(cell) => cell,
            None => self.make()?,
        };
        Some(cell.into_mbuf(owner))
    }

    fn make(&self) -> Option<Cell> {
        let previous = self.created.fetch_add(1, Ordering::Relaxed);
        let cell = if previous < self.limit { Cell::new(self.room_bytes) } else { None };
        if cell.is_none() {
            self.created.fetch_sub(1, Ordering::Relaxed);
        }
        cell
    }

    fn in_use(&self) -> usize {
        self.created.load(Ordering::Relaxed).saturating_sub(self.free.len())
    }
}

/// Plain mbufs in both sizes.
pub(crate) struct PlainPool {
    small: SizeClass,
    large: SizeClass,
}

impl PlainPool {
    /// At most so many of each size.
    pub(crate) fn new(small: usize, large: usize) -> Self {
        PlainPool { small: SizeClass::new(SMALL_BYTES, small), large: SizeClass::new(LARGE_BYTES, large) }
    }

    /// An empty mbuf with room for `capacity` bytes.
    pub(crate) fn allocate(self: &Arc<Self>, capacity: usize) -> Option<Mbuf> {
        if capacity <= SMALL_BYTES {
            // A large one serves a small packet when the small ones have run out.
            self.small.take(self).or_else(|| self.large.take(self))
        } else if capacity <= LARGE_BYTES {
            self.large.take(self)
        } else {
            None
        }
    }

    /// Mbufs handed out.
    pub(crate) fn in_use(&self) -> usize {
        self.small.in_use() + self.large.in_use()
    }
}

/// Returns a plain mbuf to its pool.
///
/// # Safety
/// `header` is that of a plain mbuf, which nobody uses any more.
pub(crate) unsafe fn give_back(header: NonNull<Header>) {
    // SAFETY: the owner of a plain mbuf was made with `Arc::into_raw` when it was handed out, and is taken back once.
    let (owner, storage_bytes) = unsafe {
        let header = header.as_ref();
        (Arc::from_raw(header.plain_owner.cast::<PlainPool>()), usize::from(header.storage_bytes))
    };
    let class = if storage_bytes == HEADROOM_BYTES + SMALL_BYTES { &owner.small } else { &owner.large };
    if let Some(layout) = Cell::layout(class.room_bytes) {
        // The queue holds as many cells as may exist, so it has room for every one that comes back.
        drop(class.free.push(Cell { header, layout }));
    }
}
