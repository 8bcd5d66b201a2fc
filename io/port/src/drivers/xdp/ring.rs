//! The rings of an AF_XDP socket, shared by kernel and process: one end adds entries, the other removes them.
//!
//! Each ring has two indices that count entries modulo 2^32. The kernel is trusted to follow the protocol, but its
//! values are used only within the bounds of the ring and of the frame memory.

use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::mapping::Mapping;

/// An entry of a ring; every bit pattern is valid.
pub(super) trait Entry: Copy {}

/// A free chunk, by its offset.
impl Entry for u64 {}
/// A frame.
impl Entry for libc::xdp_desc {}

/// State that both kinds of ends have in common.
struct Ring<T> {
    memory: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    /// A power of two.
    size: u32,
    /// The index of this end.
    index: u32,
    kind: PhantomData<T>,
}

impl<T: Entry> Ring<T> {
    /// Maps a ring with `size` entries, at `start` of the socket's mapping. The fields of the ring are at `offsets`.
    fn map(
        socket: BorrowedFd<'_>,
        start: libc::off_t,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Ring<T>> {
        let entries = offsets.desc as usize;
        let memory = Mapping::of_part(socket, start, entries + size as usize * size_of::<T>())?;
        let place = |offset: u64| {
            let offset = offset as usize;
            let fits = memory.range(offset, size_of::<u32>()).is_some() && offset.is_multiple_of(align_of::<u32>());
            if fits { Ok(offset) } else { Err(io::Error::other("unexpected layout of a kernel ring")) }
        };
        let (producer, consumer, flags) = (place(offsets.producer)?, place(offsets.consumer)?, place(offsets.flags)?);
        if !entries.is_multiple_of(align_of::<T>()) || !size.is_power_of_two() {
            return Err(io::Error::other("unexpected layout of a kernel ring"));
        }
        Ok(Ring { memory, producer, consumer, flags, entries, size, index: 0, kind: PhantomData })
    }

    fn number(&self, place: usize) -> &AtomicU32 {
        // SAFETY: the place was checked above to be inside the mapping and aligned. Both ends access it atomically.
        unsafe { AtomicU32::from_ptr(self.memory.at(place).cast().as_ptr()) }
    }

    fn entry(&self, index: u32) -> NonNull<T> {
        let place = (index & (self.size - 1)) as usize;
        self.memory.at(self.entries + place * size_of::<T>()).cast()
    }
}

/// The end of a ring that adds entries.
pub(super) struct Producer<T>(Ring<T>);

impl<T: Entry> Producer<T> {
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        start: libc::off_t,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        Ring::map(socket, start, offsets, size).map(Producer)
    }

    /// Adds an entry, which the other end sees once it is published. Returns false if the ring is full.
    pub(super) fn put(&mut self, entry: T) -> bool {
        let Producer(ring) = self;
        if ring.index.wrapping_sub(ring.number(ring.consumer).load(Ordering::Acquire)) >= ring.size {
            return false;
        }
        // SAFETY: the other end has released this entry, and does not access it until it is published.
        unsafe { ring.entry(ring.index).write(entry) };
        ring.index = ring.index.wrapping_add(1);
        true
    }

    /// Publishes the added entries to the other end.
    pub(super) fn publish(&self) {
        self.0.number(self.0.producer).store(self.0.index, Ordering::Release);
    }

    /// Number of entries that the other end has not removed.
    pub(super) fn waiting(&self) -> u32 {
        self.0.index.wrapping_sub(self.0.number(self.0.consumer).load(Ordering::Relaxed))
    }

    /// True if the other end has to be woken to process the ring.
    pub(super) fn must_wake(&self) -> bool {
        // The entries must be visible before the flag is read.
        fence(Ordering::SeqCst);
        self.0.number(self.0.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// The end of a ring that removes entries.
pub(super) struct Consumer<T>(Ring<T>);

impl<T: Entry> Consumer<T> {
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        start: libc::off_t,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        Ring::map(socket, start, offsets, size).map(Consumer)
    }

    /// Number of entries that can be removed.
    pub(super) fn available(&self) -> usize {
        let Consumer(ring) = self;
        ring.number(ring.producer).load(Ordering::Acquire).wrapping_sub(ring.index).min(ring.size) as usize
    }

    /// Removes an entry; one must be available.
    pub(super) fn take(&mut self) -> T {
        let Consumer(ring) = self;
        // SAFETY: every bit pattern is valid; the other end writes the entry again only after its release.
        let entry = unsafe { ring.entry(ring.index).read() };
        ring.index = ring.index.wrapping_add(1);
        entry
    }

    /// Releases the removed entries to the other end.
    pub(super) fn release(&self) {
        self.0.number(self.0.consumer).store(self.0.index, Ordering::Release);
    }
}
