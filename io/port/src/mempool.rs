//! DPDK mempools as memory for packet buffers, in two sizes.
//!
//! Mempools are created when a port is first opened and never freed: drivers may hold a packet for any length of time.

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};

use namehop_packet::mempool::{Mempool, set_release_to_mempool};
use namehop_packet::raw::Header;
use namehop_packet::size::{LARGE_BYTES, SMALL_BYTES};
use namehop_packet::{BufferPool, HEADROOM_BYTES};

use crate::eal::Eal;
use crate::error::DpdkError;
use crate::ffi::{Functions, RawMempool};
use crate::thread;

/// Maximum overhead that DPDK adds to each packet of a mempool, in bytes: its own header, and padding that spreads
/// packets over the memory channels.
const ELEMENT_OVERHEAD_BYTES: usize = 64 + 192;
/// Packets do not cross pages, so up to one packet's size may be unused in each page.
const PAGE_BYTES: usize = 2 << 20;

/// Makes the names of mempools unique.
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);
/// Held while mempools are created, so that no pool gets them twice.
static MAKING: Mutex<()> = Mutex::new(());

/// Total memory, in bytes, of the mempools for `small` small and `large` large packets.
pub const fn mempool_bytes(small: usize, large: usize) -> usize {
    const fn bytes(count: usize, room_bytes: usize) -> usize {
        let element = size_of::<Header>() + HEADROOM_BYTES + room_bytes + ELEMENT_OVERHEAD_BYTES;
        let pages = count.div_ceil(PAGE_BYTES / element);
        // The ring of free packets has a power of two of pointers.
        pages * PAGE_BYTES + (count + 1).next_power_of_two() * size_of::<usize>()
    }
    bytes(small, SMALL_BYTES) + bytes(large, LARGE_BYTES)
}

/// Makes a pool allocate from mempools from now on, as ports require; they hold as many buffers as the pool has. Does
/// nothing if the pool already does so.
///
/// # Errors
/// Fails if there is no memory for the mempools; the pool is then unchanged.
pub fn use_mempools(pool: &BufferPool, environment: &Eal) -> Result<(), DpdkError> {
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if !pool.has_mempool() {
        let shim = environment.shim();
        // SAFETY: the function frees mbufs of mempools, which live as long as the process.
        unsafe { set_release_to_mempool(shim.mbuf_free) };
        let (small, large) = pool.limits();
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let small = SizeClass::new(shim, &format!("small{number}"), small, SMALL_BYTES)?;
        let large = SizeClass::new(shim, &format!("large{number}"), large, LARGE_BYTES).inspect_err(|_| {
            // SAFETY: the mempool was just created, and nothing was taken from it.
            unsafe { (shim.mempool_free)(small.raw.as_ptr()) }
        })?;
        pool.use_mempool(Box::new(Mempools { small, large }));
    }
    Ok(())
}

/// One mempool. Lives as long as the process.
struct SizeClass {
    shim: &'static Functions,
    raw: NonNull<RawMempool>,
}

// SAFETY: mempools with multi-producer, multi-consumer rings may be used from every thread.
unsafe impl Send for SizeClass {}
// SAFETY: as above.
unsafe impl Sync for SizeClass {}

impl SizeClass {
    fn new(shim: &'static Functions, name: &str, count: usize, room_bytes: usize) -> Result<SizeClass, DpdkError> {
        let action = || format!("create a mempool of {count} packets of {room_bytes} bytes");
        let c_name =
            CString::new(name).map_err(|_| DpdkError::Unusable(format!("'{name}' is not a valid mempool name")))?;
        let count = u32::try_from(count).map_err(|_| DpdkError::Unusable(format!("cannot {}", action())))?;
        let mut error = 0;
        // SAFETY: the caller holds the proof that the environment runs. Sizes fit 16 bits, as `namehop_packet::raw`
        // asserts.
        let pool =
            unsafe { (shim.mempool_create)(c_name.as_ptr(), count, (HEADROOM_BYTES + room_bytes) as u16, &mut error) };
        NonNull::new(pool).map(|raw| SizeClass { shim, raw }).ok_or_else(|| DpdkError::refused(action(), error))
    }

    fn allocate(&self) -> Option<NonNull<Header>> {
        // SAFETY: the mempool lives.
        NonNull::new(unsafe { (self.shim.mbuf_allocate)(self.raw.as_ptr()) })
    }

    fn in_use(&self) -> usize {
        // SAFETY: the mempool lives.
        unsafe { (self.shim.mempool_in_use)(self.raw.as_ptr()) as usize }
    }
}

struct Mempools {
    small: SizeClass,
    large: SizeClass,
}

// SAFETY: a mempool returns an empty mbuf with one segment and gives up ownership of it. The mbuf's storage was zeroed
// by the system or written since, and lives as long as the process. `use_mempools` has set the function that releases
// it.
unsafe impl Mempool for Mempools {
    fn allocate(&self, capacity: usize) -> Option<NonNull<Header>> {
        thread::register(self.small.shim);
        if capacity <= SMALL_BYTES {
            self.small.allocate().or_else(|| self.large.allocate())
        } else if capacity <= LARGE_BYTES {
            self.large.allocate()
        } else {
            None
        }
    }

    fn in_use(&self) -> usize {
        self.small.in_use() + self.large.in_use()
    }
}
