//! Mbufs in ordinary memory: what packets lie in before DPDK's environment runs, and in a router without ports for ever.
//!
//! They look like those of a mempool except that they belong to none, so drivers cannot take them; a port copies the few
//! that are still about when it is opened. Memory is taken on first need and kept, so a quiet router stays small.

use std::ptr::NonNull;
use std::sync::Arc;

use crossbeam_queue::ArrayQueue;
use namehop_forward::buffer::HEADROOM_BYTES;
use namehop_table::{PIECE_ALIGNMENT, Pieces};

use crate::header::{Header, LARGE_BYTES, PRIVATE_BYTES, SMALL_BYTES};
use crate::mbuf::Mbuf;

/// Storage of one mbuf that nobody uses.
struct Cell {
    header: NonNull<Header>,
}

// SAFETY: a cell is the only reference to its memory.
unsafe impl Send for Cell {}

const _: () = assert!(align_of::<Header>() <= PIECE_ALIGNMENT);

impl Cell {
    /// The mbuf, empty.
    fn into_mbuf(self, owner: &Arc<PlainPool>) -> Mbuf {
        let mut header = self.header;
        // SAFETY: nobody else has the cell, and its header was written when it was made.
        unsafe {
            header.as_mut().hand_out(Arc::into_raw(Arc::clone(owner)).cast());
            Mbuf::from_raw(header)
        }
    }
}

/// Cells of one size.
struct SizeClass {
    free: ArrayQueue<Cell>,
    /// Memory of all cells, which lives as long as the pool, and the pool as long as any of its mbufs. `None` when the address
    /// space could not be had.
    pieces: Option<Pieces>,
    room_bytes: usize,
}

impl SizeClass {
    fn new(contents: &'static str, room_bytes: usize, limit: usize) -> Self {
        let limit = limit.max(1);
        let cell_bytes = size_of::<Header>() + PRIVATE_BYTES + HEADROOM_BYTES + room_bytes;
        SizeClass { free: ArrayQueue::new(limit), pieces: Pieces::new(contents, limit, cell_bytes).ok(), room_bytes }
    }

    fn take(&self, owner: &Arc<PlainPool>) -> Option<Mbuf> {
        let cell = match self.free.pop() {
            Some(cell) => cell,
            None => self.make()?,
        };
        Some(cell.into_mbuf(owner))
    }

    fn make(&self) -> Option<Cell> {
        let header: NonNull<Header> = self.pieces.as_ref()?.take()?.cast();
        // SAFETY: the piece holds the header, the private area behind it, and the storage behind that; `new` asked for so
        // much. Lengths fit, as `header.rs` asserts.
        unsafe {
            let storage = header.add(1).cast::<u8>().add(PRIVATE_BYTES).as_ptr();
            header.write(Header::plain(storage, (HEADROOM_BYTES + self.room_bytes) as u16));
        }
        Some(Cell { header })
    }

    fn in_use(&self) -> usize {
        self.pieces.as_ref().map_or(0, Pieces::taken).saturating_sub(self.free.len())
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
        PlainPool {
            small: SizeClass::new("small packets", SMALL_BYTES, small),
            large: SizeClass::new("large packets", LARGE_BYTES, large),
        }
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
    // The queue holds as many cells as may exist, so it has room for every one that comes back.
    drop(class.free.push(Cell { header }));
}
