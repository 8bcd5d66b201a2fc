//! One packet in an mbuf, owned alone, and what a worker writes down beside it.
//!
//! An [`Mbuf`] is always one contiguous segment. It returns to its pool when dropped.

use std::any::TypeId;
use std::fmt;
use std::mem::{align_of, size_of};
use std::ptr::NonNull;
use std::slice;

use namehop_forward::buffer::{HEADROOM_BYTES, PacketBuffer};
use namehop_table::prefetch::prefetch_lines;

use crate::ffi;
use crate::header::{HAS_SUMMARY, Header, PRIVATE_BYTES};
use crate::plain;

/// Where a packet begins that nothing was put in front of, in bytes from its header on.
const PACKET_AT: usize = size_of::<Header>() + PRIVATE_BYTES + HEADROOM_BYTES;
/// Bytes of a packet that are looked at first: link headers and names of usual length.
const FIRST_BYTES: usize = 128;

/// A packet in an mbuf.
#[repr(transparent)]
pub struct Mbuf(NonNull<Header>);

// SAFETY: an Mbuf is the only reference to its header and storage; pools take it back from any thread.
unsafe impl Send for Mbuf {}

/// What stands in the private area when `HAS_SUMMARY` is set. The type comes first, so that it is found without knowing it.
#[repr(C)]
struct Summary<T> {
    type_id: TypeId,
    value: T,
}

impl Mbuf {
    /// Takes over an mbuf.
    ///
    /// # Safety
    /// `header` is an initialised mbuf in one segment whose private area has `PRIVATE_BYTES`, and nobody else uses it.
    pub(crate) unsafe fn from_raw(header: NonNull<Header>) -> Mbuf {
        Mbuf(header)
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: the header is initialised, and `self` is the only way to it.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    fn header_mut(&mut self) -> &mut Header {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { self.0.as_mut() }
    }

    /// Whether it lies in ordinary memory, which drivers cannot use.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.header().pool.is_null()
    }

    /// Writes `value` down beside the packet, for whoever gets it next; a former value is forgotten. A type larger than
    /// [`SUMMARY_BYTES`] or with an alignment above that of a cache line does not compile.
    pub fn set_summary<T: Copy + Send + 'static>(&mut self, value: T) {
        const {
            assert!(size_of::<Summary<T>>() <= PRIVATE_BYTES, "a summary must fit into the private area");
            assert!(align_of::<Summary<T>>() <= align_of::<Header>(), "the private area begins at a cache line");
        }
        // SAFETY: the private area of `PRIVATE_BYTES` follows the header, begins at a cache line and belongs to this
        // mbuf; the assertions say that a `Summary<T>` fits there.
        unsafe { self.0.add(1).cast().write(Summary { type_id: TypeId::of::<T>(), value }) };
        self.header_mut().flags |= HAS_SUMMARY;
    }

    /// What was last written down; `None` when that is nothing or something of another type.
    pub fn summary<T: Copy + Send + 'static>(&self) -> Option<&T> {
        if self.header().flags & HAS_SUMMARY == 0 {
            return None;
        }
        // SAFETY: the flag says that a `Summary` of some type was written here, and all of them begin with their type.
        let type_id = unsafe { self.0.add(1).cast::<TypeId>().read() };
        if type_id != TypeId::of::<T>() {
            return None;
        }
        // SAFETY: it is a `Summary` of this type, and lives as long as the borrow of this mbuf.
        Some(unsafe { &self.0.add(1).cast::<Summary<T>>().as_ref().value })
    }
}

/// Bytes of the largest value that [`Mbuf::set_summary`] takes.
pub const SUMMARY_BYTES: usize = PRIVATE_BYTES - size_of::<TypeId>();

/// The packet bytes of one segment.
#[inline]
fn data_of(header: &Header) -> &[u8] {
    // SAFETY: `data_offset` and `data_bytes` lie within the storage of the segment: drivers keep to it, and so do the
    // methods below. All of the storage was initialised when the pool was made or was written since.
    unsafe {
        slice::from_raw_parts(header.storage.add(usize::from(header.data_offset)), usize::from(header.data_bytes))
    }
}

impl fmt::Debug for Mbuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mbuf").field("length", &self.header().data_bytes).finish()
    }
}

impl PacketBuffer for Mbuf {
    #[inline]
    fn bytes(&self) -> &[u8] {
        data_of(self.header())
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        let header = self.header_mut();
        let (offset, length) = (usize::from(header.data_offset), usize::from(header.data_bytes));
        // SAFETY: as in `data_of`, and the packet is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(header.storage.add(offset), length) }
    }

    #[inline]
    fn trim_front(&mut self, count: usize) {
        let header = self.header_mut();
        // Not more than a 16-bit number.
        let count = count.min(usize::from(header.data_bytes)) as u16;
        header.data_offset += count;
        header.set_length(header.data_bytes - count);
    }

    #[inline]
    fn truncate(&mut self, length: usize) {
        let header = self.header_mut();
        if length < usize::from(header.data_bytes) {
            header.set_length(length as u16);
        }
    }

    #[inline]
    fn prepend(&mut self, count: usize) -> Option<&mut [u8]> {
        let header = self.header_mut();
        if count > usize::from(header.data_offset) {
            return None;
        }
        header.data_offset -= count as u16;
        header.set_length(header.data_bytes + count as u16);
        // SAFETY: as in `data_of`: these are the first bytes of the packet, which is borrowed mutably.
        Some(unsafe { slice::from_raw_parts_mut(header.storage.add(usize::from(header.data_offset)), count) })
    }

    #[inline]
    fn append(&mut self, count: usize) -> Option<&mut [u8]> {
        let header = self.header_mut();
        let length = usize::from(header.data_bytes);
        let room = usize::from(header.storage_bytes) - usize::from(header.data_offset) - length;
        if count > room {
            return None;
        }
        header.set_length((length + count) as u16);
        Some(&mut self.bytes_mut()[length..])
    }

    /// The header, and where packets mostly begin: behind the headroom, which is what drivers leave free.
    #[inline]
    fn prefetch(&self) {
        let header = self.0.as_ptr().cast_const();
        prefetch_lines(header, size_of::<Header>());
        prefetch_lines(header.cast::<u8>().wrapping_add(PACKET_AT), FIRST_BYTES);
    }
}

impl Drop for Mbuf {
    fn drop(&mut self) {
        if self.is_plain() {
            // SAFETY: nobody uses a dropped mbuf, and this one is plain.
            unsafe { plain::give_back(self.0) };
        } else {
            // SAFETY: nobody uses a dropped mbuf, and this one is from a mempool, which lives as long as the process.
            unsafe { ffi::namehop_mbuf_free(self.0.as_ptr()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use namehop_forward::buffer::BufferPool;

    use super::*;
    use crate::MbufPool;

    #[test]
    fn packets_begin_where_they_are_asked_for() {
        let pool = MbufPool::new(1, 1);
        for room in [100, 9_000] {
            let mut packet = pool.allocate(room).expect("a buffer");
            packet.append(room).expect("room");
            assert_eq!(packet.bytes().as_ptr().addr() - packet.0.addr().get(), PACKET_AT);
            packet.prefetch();
        }
    }
}
