//! Pools of mbufs, for packets from ports and sockets alike.
//!
//! A pool begins with plain mbufs (see `plain`). Once [`MbufPool::use_mempools`] was called all that it hands out come
//! from two DPDK mempools, one of small and one of large mbufs, made at that moment and never given back: drivers may
//! hold an mbuf for as long as they like. What is out by then comes back to where it came from.

use std::ffi::CString;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use namehop_forward::buffer::{BufferPool, HEADROOM_BYTES};

use crate::eal::Eal;
use crate::error::DpdkError;
use crate::ffi::{self, RawMempool};
use crate::header::{Header, LARGE_BYTES, PRIVATE_BYTES, SMALL_BYTES};
use crate::mbuf::Mbuf;
use crate::plain::PlainPool;
use crate::thread;

/// What DPDK puts around each mbuf of a mempool, in bytes.
const ELEMENT_OVERHEAD_BYTES: usize = 64 + 64;

/// Each pool's mempools have names of their own.
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);

/// One mempool. Lives as long as the process.
#[derive(Clone, Copy)]
pub(crate) struct Mempool(NonNull<RawMempool>);

// SAFETY: mempools with multi-producer, multi-consumer rings may be used from every thread.
unsafe impl Send for Mempool {}
// SAFETY: as above.
unsafe impl Sync for Mempool {}

impl Mempool {
    fn new(name: &str, count: usize, room_bytes: usize) -> Result<Mempool, DpdkError> {
        let action = || format!("make a mempool of {count} packets of {room_bytes} bytes");
        let c_name = CString::new(name).map_err(|_| DpdkError::Unusable(format!("{name} is no name")))?;
        let count = u32::try_from(count).map_err(|_| DpdkError::Unusable(format!("cannot {}", action())))?;
        let mut error = 0;
        // SAFETY: the environment runs, which whoever calls has the proof of. Sizes fit 16 bits (see `header.rs`).
        let pool = unsafe {
            let room_bytes = (HEADROOM_BYTES + room_bytes) as u16;
            ffi::namehop_mempool_create(c_name.as_ptr(), count, PRIVATE_BYTES as u16, room_bytes, &mut error)
        };
        NonNull::new(pool).map(Mempool).ok_or_else(|| DpdkError::refused(action(), error))
    }

    pub(crate) fn as_ptr(self) -> *mut RawMempool {
        self.0.as_ptr()
    }

    fn allocate(self) -> Option<Mbuf> {
        // SAFETY: the pool lives; what it gives is an empty mbuf in one segment with its private area, and is ours.
        unsafe { NonNull::new(ffi::namehop_mbuf_allocate(self.as_ptr())).map(|header| Mbuf::from_raw(header)) }
    }

    fn in_use(self) -> usize {
        // SAFETY: the pool lives.
        unsafe { ffi::namehop_mempool_in_use(self.as_ptr()) as usize }
    }
}

struct Mempools {
    small: Mempool,
    large: Mempool,
}

struct Shared {
    plain: Arc<PlainPool>,
    mempools: OnceLock<Mempools>,
    /// Held while the mempools are made.
    making: Mutex<()>,
    small_count: usize,
    large_count: usize,
}

/// A pool of mbufs in two sizes: packets of up to 2,048 bytes and of up to 9,216. A clone is the same pool.
#[derive(Clone)]
pub struct MbufPool {
    shared: Arc<Shared>,
}

impl MbufPool {
    /// A pool of plain mbufs, at most `small` of the small and `large` of the large ones.
    pub fn new(small: usize, large: usize) -> Self {
        MbufPool {
            shared: Arc::new(Shared {
                plain: Arc::new(PlainPool::new(small, large)),
                mempools: OnceLock::new(),
                making: Mutex::new(()),
                small_count: small,
                large_count: large,
            }),
        }
    }

    /// Memory that the mempools of such a pool take, in bytes, all told.
    pub const fn mempool_bytes(small: usize, large: usize) -> usize {
        let fixed = size_of::<Header>() + PRIVATE_BYTES + HEADROOM_BYTES + ELEMENT_OVERHEAD_BYTES;
        small * (fixed + SMALL_BYTES) + large * (fixed + LARGE_BYTES)
    }

    /// Hands out mbufs of mempools from now on, which ports need. Does nothing the second time.
    ///
    /// # Errors
    /// When there is no memory for them; then everything stays as it was.
    pub fn use_mempools(&self, _environment: &Eal) -> Result<(), DpdkError> {
        let shared = &self.shared;
        let _making = shared.making.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.mempools.get().is_none() {
            let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
            let small = Mempool::new(&format!("small{number}"), shared.small_count, SMALL_BYTES)?;
            let large = Mempool::new(&format!("large{number}"), shared.large_count, LARGE_BYTES).inspect_err(|_| {
                // SAFETY: the pool was made just now, and nothing was taken from it.
                unsafe { ffi::namehop_mempool_free(small.as_ptr()) }
            })?;
            let _ = shared.mempools.set(Mempools { small, large });
        }
        Ok(())
    }
}

impl fmt::Debug for MbufPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_mempools = self.shared.mempools.get().is_some();
        f.debug_struct("MbufPool").field("in_use", &self.in_use()).field("has_mempools", &has_mempools).finish()
    }
}

impl BufferPool for MbufPool {
    type Buffer = Mbuf;

    fn allocate(&self, capacity: usize) -> Option<Mbuf> {
        let Some(pools) = self.shared.mempools.get() else { return self.shared.plain.allocate(capacity) };
        thread::register();
        if capacity <= SMALL_BYTES {
            pools.small.allocate().or_else(|| pools.large.allocate())
        } else if capacity <= LARGE_BYTES {
            pools.large.allocate()
        } else {
            None
        }
    }

    /// Not for the packet path: it adds up the caches of all threads.
    fn in_use(&self) -> usize {
        let mempools = self.shared.mempools.get();
        self.shared.plain.in_use() + mempools.map_or(0, |pools| pools.small.in_use() + pools.large.in_use())
    }
}
