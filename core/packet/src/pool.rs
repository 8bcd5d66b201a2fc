//! Pools of packet buffers in two sizes, safe to use from every thread.
//!
//! A pool starts in ordinary memory, which is taken on demand and kept, so that a quiet router stays small. Once the
//! pool has a [`Mempool`], it allocates all buffers there, because drivers need that. Buffers that are in use then
//! return to where they came from.

use std::fmt;

use crate::buffer::PacketBuffer;
use crate::memory::{Handle, SizeClass, cell_bytes, take_small};
use crate::mempool::Mempool;
use crate::size::{LARGE_BYTES, SMALL_BYTES};

/// A pool of packet buffers. Clones share the same pool.
#[derive(Clone)]
pub struct BufferPool {
    shared: Handle,
}

impl BufferPool {
    /// Makes a pool of at most `small` buffers for packets of up to [`SMALL_BYTES`] and `large` buffers for up to
    /// [`LARGE_BYTES`].
    pub fn new(small: usize, large: usize) -> Self {
        BufferPool {
            shared: Handle::new(
                SizeClass::new("small packets", SMALL_BYTES, small),
                SizeClass::new("large packets", LARGE_BYTES, large),
            ),
        }
    }

    /// Returns the maximum number of bytes that such a pool takes in ordinary memory.
    pub const fn bytes_for(small: usize, large: usize) -> usize {
        small.saturating_mul(cell_bytes(SMALL_BYTES)).saturating_add(large.saturating_mul(cell_bytes(LARGE_BYTES)))
    }

    /// Returns the maximum numbers of small and of large buffers.
    pub fn limits(&self) -> (usize, usize) {
        (self.shared.small.limit(), self.shared.large.limit())
    }

    /// Allocates buffers from this mempool from now on. Later calls have no effect.
    pub fn use_mempool(&self, mempool: Box<dyn Mempool>) {
        let _ = self.shared.mempool.set(mempool);
    }

    /// Returns true if buffers come from a mempool.
    pub fn has_mempool(&self) -> bool {
        self.shared.mempool.get().is_some()
    }

    /// Allocates an empty buffer with [`HEADROOM_BYTES`](crate::HEADROOM_BYTES) of headroom and room for at least
    /// `capacity` bytes after it; `None` when the pool is exhausted or `capacity` is larger than its largest buffer.
    #[inline]
    pub fn allocate(&self, capacity: usize) -> Option<PacketBuffer> {
        let pool = &self.shared;
        if let Some(mempool) = pool.mempool.get() {
            // SAFETY: a buffer may take ownership of each header that a mempool returns.
            return mempool.allocate(capacity).map(|header| unsafe { PacketBuffer::from_raw(header) });
        }
        let mut header = if capacity <= SMALL_BYTES {
            // A large buffer is used when the small ones have run out.
            take_small(pool).or_else(|| pool.take_one(&pool.large))?
        } else if capacity <= LARGE_BYTES {
            pool.take_one(&pool.large)?
        } else {
            return None;
        };
        // SAFETY: the cell has no other user, and its header was written when it was made.
        unsafe {
            header.as_mut().hand_out(pool.address().as_ptr().cast());
            Some(PacketBuffer::from_raw(header))
        }
    }

    /// Allocates a buffer that holds a copy of `packet`.
    #[inline]
    pub fn copy_of(&self, packet: &[u8]) -> Option<PacketBuffer> {
        let mut buffer = self.allocate(packet.len())?;
        buffer.append(packet.len())?.copy_from_slice(packet);
        Some(buffer)
    }

    /// Number of buffers in use. Not for the packet path: it adds up the magazines of all threads.
    pub fn in_use(&self) -> usize {
        self.shared.in_use() + self.shared.mempool.get().map_or(0, |mempool| mempool.in_use())
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool").field("in_use", &self.in_use()).field("has_mempool", &self.has_mempool()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;
    use std::sync::Arc;
    use std::thread;

    use super::*;
    use crate::raw::Header;
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
    fn what_threads_keep_is_used_by_them_first_and_can_be_used_by_others() {
        let pool = BufferPool::new(8_192, 1);
        let first = pool.copy_of(b"first").expect("buffer");
        let address = first.bytes().as_ptr();
        drop(first);
        assert_eq!(
            pool.copy_of(b"again").expect("buffer").bytes().as_ptr(),
            address,
            "the buffer freed last must be allocated first"
        );
        // All of them; then this thread keeps a full magazine, and the rest are available to other threads.
        let all: Vec<_> = (0..8_193).map(|_| pool.allocate(1).expect("buffer")).collect();
        assert!(pool.allocate(1).is_none());
        assert_eq!(pool.in_use(), 8_193);
        drop(all);
        assert_eq!(pool.in_use(), 0);
        let others = || (0..8_193).map_while(|_| pool.allocate(1)).collect::<Vec<_>>();
        let held = thread::scope(|scope| scope.spawn(others).join().expect("the thread ends without a panic"));
        let kept = 8_193 - held.len();
        assert!((32..=64).contains(&kept), "{kept} buffers are kept by this thread, expected 32 to 64");
        assert_eq!(pool.in_use(), held.len());
        // The other thread has ended, and its magazine with it.
        drop(held);
        assert_eq!((pool.in_use(), others().len()), (0, 8_193));
    }

    #[test]
    fn every_thread_may_take_and_give_with_magazines() {
        let pool = BufferPool::new(8_192, 16);
        testing::every_thread_may_take_and_give(&pool);
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn a_magazine_serves_the_pool_that_is_in_use() {
        let (first, second) = (BufferPool::new(4_096, 1), BufferPool::new(4_096, 1));
        let address = |pool: &BufferPool| pool.copy_of(b"packet").expect("buffer").bytes().as_ptr();
        assert_eq!(address(&first), address(&first));
        // Bypassing the magazine, the buffer freed first is allocated first.
        assert_eq!(address(&second), address(&second));
        let held = second.copy_of(b"held").expect("buffer");
        assert_eq!((first.in_use(), second.in_use()), (0, 1));
        drop(first);
        drop(held);
        for _ in 0..3 {
            assert_eq!(address(&second), address(&second));
        }
        assert_eq!(second.in_use(), 0);
    }

    /// A mempool that is always empty; the test's other reference tells when it is dropped.
    struct Witness(Arc<()>);

    // SAFETY: it returns no headers.
    unsafe impl Mempool for Witness {
        fn allocate(&self, _: usize) -> Option<NonNull<Header>> {
            None
        }

        fn in_use(&self) -> usize {
            Arc::strong_count(&self.0) - 2
        }
    }

    #[test]
    fn the_memory_goes_with_the_last_buffer() {
        for limit in [1, 4_096] {
            let (pool, witness) = (BufferPool::new(limit, 1), Arc::new(()));
            let held = pool.copy_of(b"packet").expect("buffer");
            pool.use_mempool(Box::new(Witness(Arc::clone(&witness))));
            assert!(pool.clone().allocate(1).is_none() && pool.in_use() == 1);
            drop(pool);
            assert_eq!((Arc::strong_count(&witness), held.bytes()), (2, &b"packet"[..]));
            // In another thread, because its magazine ends with it.
            thread::scope(|scope| scope.spawn(|| drop(held)).join().expect("the thread ends without a panic"));
            // This thread may still have a magazine, until it uses another pool.
            drop(BufferPool::new(4_096, 1).allocate(1));
            assert_eq!(Arc::strong_count(&witness), 1);
        }
    }

    #[test]
    fn a_buffer_outlives_the_last_handle_of_its_pool() {
        let pool = BufferPool::new(1, 1);
        let buffer = pool.copy_of(b"packet").expect("buffer");
        drop(pool);
        assert_eq!(buffer.bytes(), b"packet");
    }
}
