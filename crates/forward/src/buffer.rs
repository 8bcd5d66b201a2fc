//! Packet buffers: the trait the engine is generic over, and the heap-backed pool.
//!
//! A buffer is one contiguous piece of memory with headroom in front of the packet, so that link headers can be put on
//! without copying. Buffers come from a pool and return to it when dropped; nothing is allocated per packet. With DPDK
//! ports the same trait is implemented by mbufs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;

/// Bytes kept free in front of a freshly filled packet, for link headers.
pub const HEADROOM_BYTES: usize = 128;

/// One packet in memory that this buffer owns alone.
pub trait PacketBuffer: Sized + Send + fmt::Debug {
    /// The packet.
    fn bytes(&self) -> &[u8];
    /// The packet, writable.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// Moves the start forward by `count` bytes (drops a header). Clamped to the length.
    fn trim_front(&mut self, count: usize);
    /// Cuts the packet to `length` bytes. No effect when it is shorter.
    fn truncate(&mut self, length: usize);
    /// Grows the packet by `count` bytes at the front and returns them; `None` when the headroom is too small.
    fn prepend(&mut self, count: usize) -> Option<&mut [u8]>;
    /// Grows the packet by `count` bytes at the end and returns them; `None` when the tailroom is too small.
    fn append(&mut self, count: usize) -> Option<&mut [u8]>;
    /// Asks for what will be looked at first, and looks at nothing. For many buffers in a row, before the first is used.
    #[inline]
    fn prefetch(&self) {}
}

/// Where buffers come from. Cheap to clone; usable from every thread.
pub trait BufferPool: Clone + Send + Sync + 'static {
    /// The buffers it hands out.
    type Buffer: PacketBuffer + 'static;

    /// An empty buffer with [`HEADROOM_BYTES`] of headroom and room for at least `capacity` bytes behind it;
    /// `None` when the pool is exhausted or `capacity` is larger than its largest buffer.
    fn allocate(&self, capacity: usize) -> Option<Self::Buffer>;

    /// A buffer that holds a copy of `packet`.
    fn copy_of(&self, packet: &[u8]) -> Option<Self::Buffer> {
        let mut buffer = self.allocate(packet.len())?;
        buffer.append(packet.len())?.copy_from_slice(packet);
        Some(buffer)
    }

    /// Buffers handed out and not yet returned.
    fn in_use(&self) -> usize;
}

/// Payload room of the two sizes of heap buffers: nearly all packets, and the largest packet there is.
const SMALL_BYTES: usize = 2048 - HEADROOM_BYTES;
const LARGE_BYTES: usize = 9216 - HEADROOM_BYTES;

struct SizeClass {
    free: ArrayQueue<Box<[u8]>>,
    payload_bytes: usize,
    /// Storage pieces that exist, free or handed out.
    created: AtomicUsize,
    limit: usize,
}

impl SizeClass {
    fn new(payload_bytes: usize, limit: usize) -> Self {
        SizeClass {
            free: ArrayQueue::new(limit.max(1)),
            payload_bytes,
            created: AtomicUsize::new(0),
            limit: limit.max(1),
        }
    }

    fn take(&self) -> Option<Box<[u8]>> {
        if let Some(storage) = self.free.pop() {
            return Some(storage);
        }
        // Storage is made on first need and kept for ever, so a quiet router stays small.
        let previous = self.created.fetch_add(1, Ordering::Relaxed);
        if previous >= self.limit {
            self.created.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(vec![0; HEADROOM_BYTES + self.payload_bytes].into_boxed_slice())
    }

    fn in_use(&self) -> usize {
        self.created.load(Ordering::Relaxed).saturating_sub(self.free.len())
    }
}

struct HeapPoolShared {
    small: SizeClass,
    large: SizeClass,
}

/// A pool of heap buffers in two sizes, safe to use from every thread.
#[derive(Clone)]
pub struct HeapPool {
    shared: Arc<HeapPoolShared>,
}

impl HeapPool {
    /// A pool of at most `small` buffers for packets of up to 1,920 bytes and `large` for up to 9,088 bytes.
    pub fn new(small: usize, large: usize) -> Self {
        HeapPool {
            shared: Arc::new(HeapPoolShared {
                small: SizeClass::new(SMALL_BYTES, small),
                large: SizeClass::new(LARGE_BYTES, large),
            }),
        }
    }
}

impl fmt::Debug for HeapPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapPool").field("in_use", &self.in_use()).finish()
    }
}

impl BufferPool for HeapPool {
    type Buffer = HeapBuffer;

    fn allocate(&self, capacity: usize) -> Option<HeapBuffer> {
        let storage = if capacity <= SMALL_BYTES {
            // A large buffer serves a small packet when the small ones have run out.
            self.shared.small.take().or_else(|| self.shared.large.take())?
        } else if capacity <= LARGE_BYTES {
            self.shared.large.take()?
        } else {
            return None;
        };
        Some(HeapBuffer { storage, start: HEADROOM_BYTES, end: HEADROOM_BYTES, pool: Arc::clone(&self.shared) })
    }

    fn in_use(&self) -> usize {
        self.shared.small.in_use() + self.shared.large.in_use()
    }
}

/// A packet in heap memory; its storage returns to the pool on drop.
pub struct HeapBuffer {
    storage: Box<[u8]>,
    start: usize,
    end: usize,
    pool: Arc<HeapPoolShared>,
}

impl fmt::Debug for HeapBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapBuffer").field("length", &(self.end - self.start)).finish()
    }
}

impl PacketBuffer for HeapBuffer {
    fn bytes(&self) -> &[u8] {
        &self.storage[self.start..self.end]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.end]
    }

    fn trim_front(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    fn truncate(&mut self, length: usize) {
        self.end = self.end.min(self.start + length);
    }

    fn prepend(&mut self, count: usize) -> Option<&mut [u8]> {
        let start = self.start.checked_sub(count)?;
        self.start = start;
        Some(&mut self.storage[start..start + count])
    }

    fn append(&mut self, count: usize) -> Option<&mut [u8]> {
        let old_end = self.end;
        let end = old_end.checked_add(count).filter(|&end| end <= self.storage.len())?;
        self.end = end;
        Some(&mut self.storage[old_end..end])
    }
}

impl Drop for HeapBuffer {
    fn drop(&mut self) {
        let storage = std::mem::take(&mut self.storage);
        let class = if storage.len() == HEADROOM_BYTES + SMALL_BYTES { &self.pool.small } else { &self.pool.large };
        // The queue holds as many pieces as may exist, so it has room for every one that comes back.
        let _ = class.free.push(storage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_return_to_their_pool_and_the_limit_holds() {
        let pool = HeapPool::new(2, 1);
        let first = pool.copy_of(b"abc").expect("first");
        let _second = pool.allocate(10).expect("second");
        let third = pool.allocate(10).expect("a large one stands in");
        assert!(pool.allocate(10).is_none());
        assert_eq!(pool.in_use(), 3);
        assert_eq!(first.bytes(), b"abc");
        drop(third);
        assert!(pool.allocate(9000).is_some());
        drop(first);
        assert_eq!(pool.in_use(), 1);
    }

    #[test]
    fn the_window_moves_within_its_storage_only() {
        let pool = HeapPool::new(1, 1);
        let mut buffer = pool.copy_of(b"hello world").expect("buffer");
        buffer.trim_front(6);
        assert_eq!(buffer.bytes(), b"world");
        buffer.truncate(3);
        assert_eq!(buffer.bytes(), b"wor");
        buffer.prepend(2).expect("headroom").copy_from_slice(b"> ");
        assert_eq!(buffer.bytes(), b"> wor");
        assert!(buffer.prepend(HEADROOM_BYTES + 10).is_none());
        assert!(buffer.append(10_000).is_none());
        buffer.trim_front(100);
        assert!(buffer.bytes().is_empty());
    }
}
