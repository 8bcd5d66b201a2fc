//! A link in memory: each of two ends receives what the other sends, without a device. For tests and benchmarks.

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use namehop_packet::PacketBuffer;
use namehop_packet::raw::Header;

use crate::BURST;
use crate::eal::Eal;
use crate::error::DpdkError;
use crate::ffi::{Functions, RawRing};

/// Makes the names of rings unique.
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);

/// One direction: a ring with one producer and one consumer.
struct Ring {
    shim: &'static Functions,
    raw: NonNull<RawRing>,
}

// SAFETY: one end pushes and the other pops, each through a `&mut`; the ring is made for one producer and one consumer.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    fn new(environment: &Eal, slots: u32) -> Result<Ring, DpdkError> {
        let action = || format!("create a ring of {slots} frames");
        let name = format!("memory{}", NEXT_NUMBER.fetch_add(1, Ordering::Relaxed));
        let name = CString::new(name).map_err(|_| DpdkError::Unusable(format!("cannot {}", action())))?;
        let (shim, mut error) = (environment.shim(), 0);
        // SAFETY: the environment runs.
        let ring = unsafe { (shim.ring_create)(name.as_ptr(), slots, &mut error) };
        NonNull::new(ring).map(|raw| Ring { shim, raw }).ok_or_else(|| DpdkError::refused(action(), error))
    }

    /// Adds up to [`BURST`] frames to `frames`; returns their number.
    fn pop(&self, frames: &mut Vec<PacketBuffer>) -> usize {
        frames.reserve(BURST);
        // SAFETY: there is room for `BURST` more; the ring returns the pointers that were pushed, each once.
        unsafe {
            let end: *mut *mut Header = frames.as_mut_ptr().add(frames.len()).cast();
            let count = (self.shim.ring_pop)(self.raw.as_ptr(), end, BURST as u32) as usize;
            frames.set_len(frames.len() + count);
            count
        }
    }

    /// Moves frames from the front of `frames` into the ring, as many as fit.
    fn push(&self, frames: &mut Vec<PacketBuffer>) {
        let count = u32::try_from(frames.len()).unwrap_or(u32::MAX);
        // SAFETY: `frames` holds `count` pointers; the pointers that the ring took are forgotten here.
        let taken = unsafe { (self.shim.ring_push)(self.raw.as_ptr(), frames.as_mut_ptr().cast(), count) };
        forget_front(frames, taken as usize);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut left = Vec::new();
        while self.pop(&mut left) > 0 {
            left.clear();
        }
        // SAFETY: the ring is empty, and this was the last reference to it.
        unsafe { (self.shim.ring_free)(self.raw.as_ptr()) };
    }
}

/// One end of a link in memory.
pub struct MemoryPort {
    incoming: Arc<Ring>,
    outgoing: Arc<Ring>,
}

impl MemoryPort {
    /// Makes two connected ends with room for `slots` frames in each direction.
    ///
    /// # Errors
    /// Fails if there is no memory for the rings.
    pub fn pair(environment: &Eal, slots: u32) -> Result<(MemoryPort, MemoryPort), DpdkError> {
        let (there, back) = (Arc::new(Ring::new(environment, slots)?), Arc::new(Ring::new(environment, slots)?));
        let left = MemoryPort { incoming: Arc::clone(&back), outgoing: Arc::clone(&there) };
        Ok((left, MemoryPort { incoming: there, outgoing: back }))
    }

    /// Adds up to [`BURST`] received frames to `frames`.
    pub fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        self.incoming.pop(frames);
    }

    /// Sends frames from the front of `frames` and removes them; frames that did not fit stay.
    pub fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        self.outgoing.push(frames);
    }
}

/// Removes the first `count` mbufs, which now have another owner, without dropping them.
pub(crate) fn forget_front(frames: &mut Vec<PacketBuffer>, count: usize) {
    let left = frames.len().saturating_sub(count);
    // SAFETY: the last `left` mbufs move to the front, and the list then holds only those. The others are neither
    // dropped nor reachable.
    unsafe {
        let base = frames.as_mut_ptr();
        std::ptr::copy(base.add(frames.len() - left), base, left);
        frames.set_len(left);
    }
}
