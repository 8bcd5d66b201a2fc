//! The rings of an AF_XDP socket, which kernel and process share: one end puts entries in, the other takes them out.
//!
//! Each ring has two indices that count entries modulo 2^32. The kernel is trusted to keep to the rules; what it says is only used
//! as far as the ring and the memory of the frames reach.

use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::mapping::Mapping;

/// What entries are: any bytes are valid in them.
pub(super) trait Entry: Copy {}

/// Where a frame lies, in the rings of places that are free.
impl Entry for u64 {}
/// A frame.
impl Entry for libc::xdp_desc {}

/// The part that both ends have in common.
struct Ring<T> {
    memory: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    /// A power of two.
    size: u32,
    /// The index of our end.
    index: u32,
    kind: PhantomData<T>,
}

impl<T: Entry> Ring<T> {
    /// Maps a ring with `size` entries, whose parts are at `offsets`, from `start` of the socket on.
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
            if fits { Ok(offset) } else { Err(io::Error::other("a ring of the kernel has another form")) }
        };
        let (producer, consumer, flags) = (place(offsets.producer)?, place(offsets.consumer)?, place(offsets.flags)?);
        if !entries.is_multiple_of(align_of::<T>()) || !size.is_power_of_two() {
            return Err(io::Error::other("a ring of the kernel has another form"));
        }
        Ok(Ring { memory, producer, consumer, flags, entries, size, index: 0, kind: PhantomData })
    }

    fn number(&self, place: usize) -> &AtomicU32 {
        // SAFETY: the place lies in the mapping and is aligned, as was made sure above. Both ends use it as an atomic number.
        unsafe { AtomicU32::from_ptr(self.memory.at(place).cast().as_ptr()) }
    }

    fn entry(&self, index: u32) -> NonNull<T> {
        let place = (index & (self.size - 1)) as usize;
        self.memory.at(self.entries + place * size_of::<T>()).cast()
    }
}

/// The end of a ring that puts entries in.
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

    /// Puts an entry in, which the other end sees when it is published. Whether there was room.
    pub(super) fn put(&mut self, entry: T) -> bool {
        let Producer(ring) = self;
        if ring.index.wrapping_sub(ring.number(ring.consumer).load(Ordering::Acquire)) >= ring.size {
            return false;
        }
        // SAFETY: the other end has given this entry back, and looks at it again when it is published.
        unsafe { ring.entry(ring.index).write(entry) };
        ring.index = ring.index.wrapping_add(1);
        true
    }

    /// Shows the other end what was put in.
    pub(super) fn publish(&self) {
        self.0.number(self.0.producer).store(self.0.index, Ordering::Release);
    }

    /// Entries that the other end has not taken out.
    pub(super) fn waiting(&self) -> u32 {
        self.0.index.wrapping_sub(self.0.number(self.0.consumer).load(Ordering::Relaxed))
    }

    /// Whether the other end looks at the ring only when it is woken.
    pub(super) fn must_wake(&self) -> bool {
        // What was published is to be seen before that.
        fence(Ordering::SeqCst);
        self.0.number(self.0.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// The end of a ring that takes entries out.
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

    /// Entries that can be taken out.
    pub(super) fn available(&self) -> usize {
        let Consumer(ring) = self;
        ring.number(ring.producer).load(Ordering::Acquire).wrapping_sub(ring.index).min(ring.size) as usize
    }

    /// Takes an entry out, one of those available.
    pub(super) fn take(&mut self) -> T {
        let Consumer(ring) = self;
        // SAFETY: any bytes are valid; the other end writes the entry again when it is released.
        let entry = unsafe { ring.entry(ring.index).read() };
        ring.index = ring.index.wrapping_add(1);
        entry
    }

    /// Gives the other end the room of what was taken out.
    pub(super) fn release(&self) {
        self.0.number(self.0.consumer).store(self.0.index, Ordering::Release);
    }
}
