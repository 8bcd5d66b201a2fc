//! One packet in memory, with room in front of it for link headers.
//!
//! A [`PacketBuffer`] is one contiguous memory area with a single owner. It is one pointer wide, so that moving it is
//! cheap. It comes from a [`BufferPool`](crate::BufferPool) and returns there when dropped; nothing is allocated per
//! packet. Its layout is the same in ordinary memory and in DPDK's mempools, so that any face can send a packet that
//! any other received.

use std::fmt;
use std::ptr::NonNull;
use std::slice;

use namehop_table::prefetch::{CACHE_LINE_BYTES, prefetch_following, prefetch_lines, prefetch_read, prefetch_write};

use crate::memory;
use crate::mempool::release_to_mempool;
use crate::raw::Header;
use crate::size::HEADROOM_BYTES;

/// Offset of a fresh packet's data from the header, in bytes.
const PACKET_AT: usize = size_of::<Header>() + HEADROOM_BYTES;
/// Bytes of a packet that are read first: link headers and names of usual length.
const FIRST_BYTES: usize = 128;

/// A packet in memory.
#[repr(transparent)]
pub struct PacketBuffer(NonNull<Header>);

// SAFETY: a PacketBuffer is the only reference to its header and storage; pools take it back from any thread.
unsafe impl Send for PacketBuffer {}

impl PacketBuffer {
    /// Takes ownership of a buffer.
    ///
    /// # Safety
    /// `header` is the header of an initialised buffer with one segment and no other user. Its storage is initialised
    /// memory that lives until the buffer is released. If it has a mempool,
    /// [`set_release_to_mempool`](crate::mempool::set_release_to_mempool) was called before.
    #[inline]
    pub unsafe fn from_raw(header: NonNull<Header>) -> PacketBuffer {
        PacketBuffer(header)
    }

    /// Returns the buffer's header for foreign code, which may read the buffer until it is dropped.
    pub fn as_raw(&self) -> NonNull<Header> {
        self.0
    }

    /// Returns true if the buffer is in a mempool, where devices can access it, and not in ordinary memory.
    #[inline]
    pub fn is_from_mempool(&self) -> bool {
        !self.header().mempool.is_null()
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: the header is initialised, and only `self` refers to it.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    fn header_mut(&mut self) -> &mut Header {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { self.0.as_mut() }
    }

    /// Returns the number of the port that the packet was received on or is sent to, if it was set. Drivers of
    /// devices use their own numbers here.
    #[inline]
    pub fn port(&self) -> u16 {
        self.header().port
    }

    /// Sets the port that the packet was received on or is sent to.
    #[inline]
    pub fn set_port(&mut self, port: u16) {
        self.header_mut().port = port;
    }

    /// Returns true if there are at least `before` bytes in front of the packet and `behind` bytes after it.
    #[inline]
    pub fn has_room(&self, before: usize, behind: usize) -> bool {
        let header = self.header();
        let end = usize::from(header.data_offset) + usize::from(header.data_bytes);
        usize::from(header.data_offset) >= before && usize::from(header.storage_bytes) - end >= behind
    }

    /// The packet.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let header = self.header();
        // SAFETY: `data_offset` and `data_bytes` lie within the storage: drivers ensure this, and so do the methods
        // below. All of the storage is initialised.
        unsafe {
            slice::from_raw_parts(header.storage.add(usize::from(header.data_offset)), usize::from(header.data_bytes))
        }
    }

    /// The packet, mutable.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let header = self.header_mut();
        let (offset, length) = (usize::from(header.data_offset), usize::from(header.data_bytes));
        // SAFETY: as in `bytes`, and the packet is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(header.storage.add(offset), length) }
    }

    /// Removes `count` bytes at the front (a header), at most the whole packet.
    #[inline]
    pub fn trim_front(&mut self, count: usize) {
        let header = self.header_mut();
        // The minimum fits in 16 bits.
        let count = count.min(usize::from(header.data_bytes)) as u16;
        header.data_offset += count;
        header.set_length(header.data_bytes - count);
    }

    /// Cuts the packet to `length` bytes. No effect when it is shorter.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        let header = self.header_mut();
        if length < usize::from(header.data_bytes) {
            header.set_length(length as u16);
        }
    }

    /// Grows the packet by `count` bytes at the front and returns them; `None` when the headroom is too small.
    #[inline]
    pub fn prepend(&mut self, count: usize) -> Option<&mut [u8]> {
        let header = self.header_mut();
        if count > usize::from(header.data_offset) {
            return None;
        }
        header.data_offset -= count as u16;
        header.set_length(header.data_bytes + count as u16);
        // SAFETY: as in `bytes`: these are the first bytes of the packet, which is borrowed mutably.
        Some(unsafe { slice::from_raw_parts_mut(header.storage.add(usize::from(header.data_offset)), count) })
    }

    /// Grows the packet by `count` bytes at the end and returns them; `None` when the tailroom is too small.
    #[inline]
    pub fn append(&mut self, count: usize) -> Option<&mut [u8]> {
        let header = self.header_mut();
        let length = usize::from(header.data_bytes);
        let room = usize::from(header.storage_bytes) - usize::from(header.data_offset) - length;
        if count > room {
            return None;
        }
        header.set_length((length + count) as u16);
        Some(&mut self.bytes_mut()[length..])
    }

    /// Prefetches the lines that are read first: the header, and the usual start of the packet after the headroom.
    /// Reads nothing itself. Meant for a batch of buffers before the first is used.
    #[inline]
    pub fn prefetch(&self) {
        let header = self.0.as_ptr().cast_const();
        // The header's second line is not read here.
        prefetch_read(header);
        prefetch_lines(header.cast::<u8>().wrapping_add(PACKET_AT), FIRST_BYTES);
    }

    /// Like [`prefetch`](Self::prefetch), for a packet that another core wrote and this one will change: it
    /// invalidates the other core's copies now instead of at the first write to the header or to the bytes in front
    /// of the packet. Most packets get link headers, so it also prefetches the end of the headroom.
    #[inline]
    pub fn prefetch_to_change(&self) {
        let header = self.0.as_ptr().cast_const();
        prefetch_write(header);
        let packet = header.cast::<u8>().wrapping_add(PACKET_AT);
        prefetch_write(packet);
        prefetch_write(packet.wrapping_sub(CACHE_LINE_BYTES));
        prefetch_following(packet.wrapping_add(FIRST_BYTES / 2));
    }
}

impl fmt::Debug for PacketBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketBuffer").field("length", &self.bytes().len()).finish()
    }
}

impl Drop for PacketBuffer {
    #[inline]
    fn drop(&mut self) {
        if self.header().mempool.is_null() {
            // SAFETY: a dropped buffer has no other user, and this one is in ordinary memory.
            unsafe { memory::give_back(self.0) };
        } else {
            // SAFETY: a dropped buffer has no other user, and this one is from a mempool.
            unsafe { release_to_mempool(self.0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BufferPool;

    #[test]
    fn ports_and_room_are_those_of_the_packet() {
        let pool = BufferPool::new(1, 1);
        let mut packet = pool.allocate(100).expect("a buffer");
        packet.append(100).expect("room");
        packet.set_port(7);
        assert_eq!(packet.port(), 7);
        assert!(packet.has_room(HEADROOM_BYTES, 1));
        assert!(!packet.has_room(HEADROOM_BYTES + 1, 0));
        let mut behind = 0;
        while packet.append(1).is_some() {
            behind += 1;
        }
        packet.truncate(100);
        assert!(packet.has_room(0, behind));
        assert!(!packet.has_room(0, behind + 1));
    }

    #[test]
    fn packets_begin_at_the_requested_offset() {
        let pool = BufferPool::new(1, 1);
        for room in [100, 9_000] {
            let mut packet = pool.allocate(room).expect("a buffer");
            packet.append(room).expect("room");
            assert_eq!(packet.bytes().as_ptr().addr() - packet.0.addr().get(), PACKET_AT);
            packet.prefetch();
            packet.prefetch_to_change();
        }
    }
}
