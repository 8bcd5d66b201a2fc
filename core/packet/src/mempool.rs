//! Mempools: sources of buffers in memory that drivers of ports can access.
//!
//! A mempool deals in headers ([`Header`]). [`BufferPool`](crate::BufferPool) makes packet buffers of them, and
//! [`PacketBuffer`](crate::PacketBuffer) releases them when it is dropped.

use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::raw::Header;

/// A source of buffers in memory that drivers of ports can access.
///
/// # Safety
/// [`PacketBuffer::from_raw`](crate::PacketBuffer::from_raw) may take ownership of each header that `allocate` returns.
pub unsafe trait Mempool: Send + Sync {
    /// Allocates an empty buffer with [`HEADROOM_BYTES`](crate::HEADROOM_BYTES) of headroom and room for `capacity`
    /// bytes, and gives up ownership of it.
    fn allocate(&self, capacity: usize) -> Option<NonNull<Header>>;

    /// Number of buffers in use.
    fn in_use(&self) -> usize;
}

/// Releases a buffer to its mempool. A C function, so that a function of a driver's library can be one.
pub type ReleaseToMempool = unsafe extern "C" fn(NonNull<Header>);

/// The function that releases buffers to mempools, set with the first mempool and the same for all of them.
static RELEASE_TO_MEMPOOL: OnceLock<ReleaseToMempool> = OnceLock::new();

/// Sets the function that releases buffers to mempools. Later calls have no effect.
///
/// # Safety
/// `release` must be sound for every header with a mempool that
/// [`PacketBuffer::from_raw`](crate::PacketBuffer::from_raw) gets, when the buffer has no other user.
pub unsafe fn set_release_to_mempool(release: ReleaseToMempool) {
    let _ = RELEASE_TO_MEMPOOL.set(release);
}

/// Releases a buffer to its mempool.
///
/// # Safety
/// `header` is the header of a buffer from a mempool without other users.
#[inline]
pub(crate) unsafe fn release_to_mempool(header: NonNull<Header>) {
    if let Some(release) = RELEASE_TO_MEMPOOL.get() {
        // SAFETY: as the caller promises.
        unsafe { release(header) }
    }
}
