//! Pools of packet buffers in two sizes, safe to use from every thread.
//!
//! A pool begins in ordinary memory, which is taken on first need and kept, so a quiet router stays small. Once a
//! [`Mempool`] was given to it, all that it hands out is from there, because drivers need that; what is out by then comes
//! back to where it came from.

use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use crossbeam_queue::ArrayQueue;
use namehop_table::{PIECE_ALIGNMENT, Pieces};

use crate::buffer::PacketBuffer;
use crate::raw::Header;

/// Bytes kept free in front of a freshly filled packet, for link headers.
pub const HEADROOM_BYTES: usize = 128;
/// Room for a packet in a small buffer, behind the headroom: nearly all packets, and whatever fits into one buffer of the
/// memif and of packet sockets as they are usually set up.
pub const SMALL_BYTES: usize = 2048;
/// Room for a packet in a large buffer: the largest packet there is with all its headers.
pub const LARGE_BYTES: usize = 9216;

/// Memory that drivers of ports can use.
pub trait Mempool: Send + Sync {
    /// An empty buffer with [`HEADROOM_BYTES`] of headroom and room for `capacity` bytes.
    fn allocate(&self, capacity: usize) -> Option<PacketBuffer>;

    /// Buffers handed out.
    fn in_use(&self) -> usize;
}

/// Storage of one buffer that nobody uses.
struct Cell(NonNull<Header>);

// SAFETY: a cell is the only reference to its memory.
unsafe impl Send for Cell {}

const _: () = assert!(align_of::<Header>() <= PIECE_ALIGNMENT);

/// Buffers of one size in ordinary memory.
struct SizeClass {
    free: ArrayQueue<Cell>,
    /// Memory of all cells, which lives as long as the pool, and the pool as long as any of its buffers. `None` when the address
    /// space could not be had.
    pieces: Option<Pieces>,
    room_bytes: usize,
}

impl SizeClass {
    fn new(contents: &'static str, room_bytes: usize, limit: usize) -> Self {
        let limit = limit.max(1);
        let cell_bytes = size_of::<Header>() + HEADROOM_BYTES + room_bytes;
        SizeClass { free: ArrayQueue::new(limit), pieces: Pieces::new(contents, limit, cell_bytes).ok(), room_bytes }
    }

    fn take(&self, owner: &Arc<Shared>) -> Option<PacketBuffer> {
        let Cell(mut header) = match self.free.pop() {
            Some(cell) => cell,
            None => self.make()?,
        };
        // SAFETY: nobody else has the cell, and its header was written when it was made.
        unsafe {
            header.as_mut().hand_out(Arc::into_raw(Arc::clone(owner)).cast());
            Some(PacketBuffer::from_raw(header))
        }
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

    fn in_use(&self) -> usize {
        self.pieces.as_ref().map_or(0, Pieces::taken).saturating_sub(self.free.len())
    }
}

struct Shared {
    small: SizeClass,
    large: SizeClass,
    mempool: OnceLock<Box<dyn Mempool>>,
}

/// A pool of packet buffers. A clone is the same pool.
#[derive(Clone)]
pub struct BufferPool {
    shared: Arc<Shared>,
}

impl BufferPool {
    /// A pool of at most `small` buffers for packets of up to [`SMALL_BYTES`] and `large` ones for up to [`LARGE_BYTES`].
    pub fn new(small: usize, large: usize) -> Self {
        BufferPool {
            shared: Arc::new(Shared {
                small: SizeClass::new("small packets", SMALL_BYTES, small),
                large: SizeClass::new("large packets", LARGE_BYTES, large),
                mempool: OnceLock::new(),
            }),
        }
    }

    /// Most small and most large buffers.
    pub fn limits(&self) -> (usize, usize) {
        (self.shared.small.free.capacity(), self.shared.large.free.capacity())
    }

    /// Hands out buffers of this mempool from now on. Does nothing the second time.
    pub fn use_mempool(&self, mempool: Box<dyn Mempool>) {
        let _ = self.shared.mempool.set(mempool);
    }

    /// Whether buffers come from a mempool.
    pub fn has_mempool(&self) -> bool {
        self.shared.mempool.get().is_some()
    }

    /// An empty buffer with [`HEADROOM_BYTES`] of headroom and room for at least `capacity` bytes behind it;
    /// `None` when the pool is exhausted or `capacity` is larger than its largest buffer.
    #[inline]
    pub fn allocate(&self, capacity: usize) -> Option<PacketBuffer> {
        let Shared { small, large, mempool } = &*self.shared;
        if let Some(mempool) = mempool.get() {
            return mempool.allocate(capacity);
        }
        if capacity <= SMALL_BYTES {
            // A large one serves a small packet when the small ones have run out.
            small.take(&self.shared).or_else(|| large.take(&self.shared))
        } else if capacity <= LARGE_BYTES {
            large.take(&self.shared)
        } else {
            None
        }
    }

    /// A buffer that holds a copy of `packet`.
    #[inline]
    pub fn copy_of(&self, packet: &[u8]) -> Option<PacketBuffer> {
        let mut buffer = self.allocate(packet.len())?;
        buffer.append(packet.len())?.copy_from_slice(packet);
        Some(buffer)
    }

    /// Buffers handed out and not yet returned. Not for the packet path: a mempool adds up the caches of all threads.
    pub fn in_use(&self) -> usize {
        let Shared { small, large, mempool } = &*self.shared;
        small.in_use() + large.in_use() + mempool.get().map_or(0, |mempool| mempool.in_use())
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool").field("in_use", &self.in_use()).field("has_mempool", &self.has_mempool()).finish()
    }
}

/// Returns a buffer in ordinary memory to its pool.
///
/// # Safety
/// `header` is that of a buffer in ordinary memory, which nobody uses any more.
#[inline]
pub(crate) unsafe fn give_back(header: NonNull<Header>) {
    // SAFETY: the owner of such a buffer was made with `Arc::into_raw` when it was handed out, and is taken back once.
    let (owner, storage_bytes) = unsafe {
        let header = header.as_ref();
        (Arc::from_raw(header.owner.cast::<Shared>()), usize::from(header.storage_bytes))
    };
    let class = if storage_bytes == HEADROOM_BYTES + SMALL_BYTES { &owner.small } else { &owner.large };
    // The queue holds as many cells as may exist, so it has room for every one that comes back.
    drop(class.free.push(Cell(header)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn buffers_follow_the_model() {
        testing::buffers_follow_the_model(&BufferPool::new(1, 1));
    }

    #[test]
    fn limits_hold() {
        testing::limits_hold(&BufferPool::new(3, 2), 3, 2);
    }

    #[test]
    fn a_fresh_buffer_is_empty() {
        testing::a_fresh_buffer_is_empty(&BufferPool::new(1, 1));
    }

    #[test]
    fn every_thread_may_take_and_give() {
        testing::every_thread_may_take_and_give(&BufferPool::new(512, 16));
    }

    #[test]
    fn a_buffer_outlives_the_last_handle_of_its_pool() {
        let pool = BufferPool::new(1, 1);
        let buffer = pool.copy_of(b"packet").expect("buffer");
        drop(pool);
        assert_eq!(buffer.bytes(), b"packet");
    }
}
