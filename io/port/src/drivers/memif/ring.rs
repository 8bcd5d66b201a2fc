//! Rings of descriptors in memory that an untrusted process can write at any time.
//!
//! No value read from that memory is trusted: it is read once, checked, and only the checked copy is used. A client
//! never reads the locations of its own buffers from the ring.
//!
//! In the ring to the server, the client fills slots and advances `head`; the server receives frames and advances
//! `tail`. In the ring to the client, the client provides empty buffers and advances `head`; the server fills them and
//! advances `tail`.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use namehop_table::prefetch::{prefetch_lines_following, prefetch_lines_to_write};

use super::memory::{first_buffer, ring_bytes};
use super::message::{MAX_LOG2_SLOTS, RingLocation};
use crate::mapping::Mapping;

/// Header in front of the descriptors: cookie, flags and head on one cache line, tail on another.
pub(super) const RING_HEADER_BYTES: usize = 128;
/// One descriptor: flags and region (16 bits each), length, offset and metadata (32 bits each).
pub(super) const DESCRIPTOR_BYTES: usize = 16;
const COOKIE: u32 = 0x03E3_1F20;
/// Ring flag: the reader does not want to be signalled.
const NO_BELL: u16 = 1;
/// Descriptor flag: the frame continues in the next descriptor.
const CONTINUES: u16 = 1;

/// One piece of a frame: a range of bytes that was checked to lie in shared memory.
pub(super) type Piece = (NonNull<u8>, usize);

/// A buffer as a ring describes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptor {
    flags: u16,
    region: u16,
    length: u32,
    offset: u32,
}

impl Descriptor {
    /// True if the frame continues in the next descriptor.
    pub(super) fn continues(self) -> bool {
        self.flags & CONTINUES != 0
    }

    /// Descriptor of the same buffer with `length` bytes of a frame, which may continue in the next descriptor.
    pub(super) fn holding(self, length: usize, continues: bool) -> Descriptor {
        // `length` is at most the buffer's length, which is a 32-bit number.
        Descriptor { length: length as u32, flags: if continues { CONTINUES } else { 0 }, ..self }
    }
}

/// A ring that was checked to lie inside its region.
struct Ring {
    start: NonNull<u8>,
    slots: u16,
}

impl Ring {
    fn new(regions: &[Mapping], place: RingLocation) -> Option<Ring> {
        if place.log2_slots > MAX_LOG2_SLOTS || !place.offset.is_multiple_of(4) {
            return None;
        }
        let region = regions.get(usize::from(place.region))?;
        let start = region.range(place.offset as usize, ring_bytes(place.log2_slots))?;
        Some(Ring { start, slots: 1 << place.log2_slots })
    }

    fn cookie(&self) -> &AtomicU32 {
        // SAFETY: the header lies in the mapping, which outlives the ring; it is aligned to 4 bytes; every access is
        // atomic.
        unsafe { AtomicU32::from_ptr(self.start.cast().as_ptr()) }
    }

    fn number(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: as for the cookie.
        unsafe { AtomicU16::from_ptr(self.start.add(offset).cast().as_ptr()) }
    }

    fn flags(&self) -> &AtomicU16 {
        self.number(4)
    }

    fn head(&self) -> &AtomicU16 {
        self.number(6)
    }

    fn tail(&self) -> &AtomicU16 {
        self.number(64)
    }

    #[inline]
    fn place_of(&self, index: u16) -> NonNull<u8> {
        let slot = usize::from(index & (self.slots - 1));
        // SAFETY: the ring with all its descriptors lies in the mapping.
        unsafe { self.start.add(RING_HEADER_BYTES + slot * DESCRIPTOR_BYTES) }
    }

    #[inline]
    fn read(&self, index: u16) -> Descriptor {
        let place = self.place_of(index);
        // SAFETY: the descriptor lies in the mapping and is aligned to 4 bytes. The peer may write at the same time, so
        // the reads are volatile and each part is read exactly once. All bit patterns are valid numbers.
        unsafe {
            Descriptor {
                flags: place.cast::<u16>().read_volatile(),
                region: place.add(2).cast::<u16>().read_volatile(),
                length: place.add(4).cast::<u32>().read_volatile(),
                offset: place.add(8).cast::<u32>().read_volatile(),
            }
        }
    }

    #[inline]
    fn write(&self, index: u16, descriptor: Descriptor) {
        let place = self.place_of(index);
        // SAFETY: as in `read`.
        unsafe {
            place.cast::<u16>().write_volatile(descriptor.flags);
            place.add(2).cast::<u16>().write_volatile(descriptor.region);
            place.add(4).cast::<u32>().write_volatile(descriptor.length);
            place.add(8).cast::<u32>().write_volatile(descriptor.offset);
        }
    }
}

/// Location of a client's own buffers for a ring, in its only region.
#[derive(Debug, Clone, Copy)]
struct OwnBuffers {
    first: usize,
    bytes: u16,
}

/// One direction of a link. It points into the regions that it was made for; its user must keep them mapped.
pub(super) struct Direction {
    ring: Ring,
    /// Own buffers; present at the client's end only.
    own: Option<OwnBuffers>,
    /// Number of descriptors received or sent so far; wraps around.
    pub(super) count: u16,
}

impl Direction {
    /// Makes the server's end. `None` if the ring is not inside its region, or has no valid cookie.
    pub(super) fn server(regions: &[Mapping], place: RingLocation) -> Option<Direction> {
        let ring = Ring::new(regions, place)?;
        if ring.cookie().load(Ordering::Relaxed) != COOKIE {
            return None;
        }
        Some(Direction { ring, own: None, count: 0 })
    }

    /// Makes the client's end, with buffers of `buffer_bytes` bytes each.
    pub(super) fn client(
        regions: &[Mapping],
        place: RingLocation,
        buffer_bytes: u16,
        is_to_server: bool,
    ) -> Option<Direction> {
        let first = first_buffer(place.log2_slots, buffer_bytes, is_to_server);
        let ring = Ring::new(regions, place)?;
        ring.cookie().store(COOKIE, Ordering::Relaxed);
        Some(Direction { ring, own: Some(OwnBuffers { first, bytes: buffer_bytes }), count: 0 })
    }

    /// Resets the counters at the server's end: no frame has been sent in either direction.
    pub(super) fn reset(&self) {
        self.ring.head().store(0, Ordering::Relaxed);
        self.ring.tail().store(0, Ordering::Relaxed);
    }

    pub(super) fn slots(&self) -> u16 {
        self.ring.slots
    }

    /// Slots that this end may fill beyond the peer's counter. At the client's end these are all slots except those in
    /// use; at the server's end, the slots that the client provides.
    pub(super) fn lead(&self) -> u16 {
        if self.own.is_some() { self.ring.slots } else { 0 }
    }

    /// The peer's counter.
    #[inline]
    pub(super) fn theirs(&self) -> u16 {
        let place = if self.own.is_some() { self.ring.tail() } else { self.ring.head() };
        place.load(Ordering::Acquire)
    }

    /// Publishes this end's counter to the peer.
    #[inline]
    pub(super) fn publish(&self, count: u16) {
        let place = if self.own.is_some() { self.ring.head() } else { self.ring.tail() };
        place.store(count, Ordering::Release);
    }

    /// Asks the peer to signal new frames, or not to.
    pub(super) fn want_bell(&self, is_wanted: bool) {
        self.ring.flags().store(if is_wanted { 0 } else { NO_BELL }, Ordering::Relaxed);
    }

    /// True if the peer asks to be signalled.
    #[inline]
    pub(super) fn wants_bell(&self) -> bool {
        self.ring.flags().load(Ordering::Relaxed) & NO_BELL == 0
    }

    #[inline]
    pub(super) fn read(&self, index: u16) -> Descriptor {
        self.ring.read(index)
    }

    #[inline]
    pub(super) fn write(&self, index: u16, descriptor: Descriptor) {
        self.ring.write(index, descriptor);
    }

    /// Descriptor of an empty buffer to write a frame to: an own buffer, or one that the peer provides.
    #[inline]
    pub(super) fn empty(&self, index: u16) -> Descriptor {
        match self.own {
            Some(own) => self.own_buffer(index, own, usize::from(own.bytes)).0,
            None => self.ring.read(index),
        }
    }

    /// Returns an own buffer, empty, to the peer.
    #[inline]
    pub(super) fn give_buffer(&self, index: u16) {
        if let Some(own) = self.own {
            self.ring.write(index, self.own_buffer(index, own, usize::from(own.bytes)).0);
        }
    }

    /// Descriptor and offset of an own buffer that holds `length` bytes.
    #[inline]
    fn own_buffer(&self, index: u16, own: OwnBuffers, length: usize) -> (Descriptor, usize) {
        let slot = usize::from(index & (self.ring.slots - 1));
        let offset = own.first + slot * usize::from(own.bytes);
        (Descriptor { flags: 0, region: 0, length: length as u32, offset: offset as u32 }, offset)
    }

    /// The bytes that a descriptor refers to; `None` if they are not inside shared memory.
    #[inline]
    pub(super) fn piece(&self, regions: &[Mapping], index: u16, descriptor: Descriptor) -> Option<Piece> {
        let length = descriptor.length as usize;
        let start = match self.own {
            Some(own) if length <= usize::from(own.bytes) => {
                regions.first()?.range(self.own_buffer(index, own, length).1, length)
            }
            Some(_) => None,
            None => regions.get(usize::from(descriptor.region))?.range(descriptor.offset as usize, length),
        };
        start.map(|start| (start, length))
    }

    /// Prefetches the bytes of a frame that will soon be copied from the ring. The peer wrote them, so they are in
    /// another core's cache.
    #[inline]
    pub(super) fn ask_for(&self, regions: &[Mapping], index: u16) {
        if let Some((start, length)) = self.piece(regions, index, self.ring.read(index)) {
            prefetch_lines_following(start.as_ptr(), length.min(ASKED_BYTES));
        }
    }

    /// Prefetches for writing a buffer that a frame of `length` bytes will soon be copied to. The peer has read it, so
    /// it is in another core's cache.
    #[inline]
    pub(super) fn ask_for_empty(&self, regions: &[Mapping], index: u16, length: usize) {
        if let Some((start, room)) = self.piece(regions, index, self.empty(index)) {
            prefetch_lines_to_write(start.as_ptr(), length.min(room));
        }
    }
}

/// Bytes of a frame that are prefetched at most: a full frame of a usual link, so that a peer that announces longer
/// frames costs no more.
const ASKED_BYTES: usize = 1536;
