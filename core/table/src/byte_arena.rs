//! Storage for byte strings of varying length in one fixed memory area.
//!
//! The memory is divided into chunks of 64 KiB. A chunk serves one slot size at a time and returns to the pool of
//! free chunks when its last slot is freed. So the mix of sizes may change over time. Slot sizes are multiples of a
//! cache line: a string of up to 2 KiB wastes less than a line, a longer one at most a quarter of its length. The
//! bookkeeping of free slots lies outside of the slots, so neither allocating nor freeing a slot touches it.

#[cfg(all(test, not(loom)))]
mod tests;

use std::ops::Range;

use crate::pages::{FillMark, MOST_LEAD_BYTES, Mapping, MemoryNeed, PageKind, PageRequest, ReadyAhead};
use crate::prefetch::prefetch_line_of;
use crate::{Arena, TableError, touched};

/// Slots are addressed in units of this many bytes.
const UNIT_BYTES: usize = 64;
const CHUNK_BYTES: usize = 64 * 1024;
const UNITS_PER_CHUNK: usize = CHUNK_BYTES / UNIT_BYTES;
const BITMAP_WORDS: usize = UNITS_PER_CHUNK / 64;
/// Chunks that are made ready at once, before any use is known.
const FIRST_READY_CHUNKS: usize = 8;
const FIRST_READY_BYTES: usize = FIRST_READY_CHUNKS * CHUNK_BYTES;

/// Slot sizes in units. The last holds any NDN packet; the larger ones divide a chunk with little remainder.
const CLASS_UNITS: [u16; 43] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32, 36, 40, 44, 48, 56, 64, 73, 85, 102, 128, 146,
];
const LARGEST_UNITS: usize = CLASS_UNITS[CLASS_UNITS.len() - 1] as usize;
/// Longest byte string that can be stored.
pub const MAX_SLOT_BYTES: usize = LARGEST_UNITS * UNIT_BYTES;

/// Index in [`CLASS_UNITS`] of the slot size for every length in units.
const CLASS_OF_UNITS: [u8; LARGEST_UNITS + 1] = {
    let mut classes = [0; LARGEST_UNITS + 1];
    let (mut units, mut class) = (0, 0);
    while units <= LARGEST_UNITS {
        if units > CLASS_UNITS[class] as usize {
            class += 1;
        }
        classes[units] = class as u8;
        units += 1;
    }
    classes
};

/// End marker of the lists of chunks.
const NO_CHUNK: u32 = u32::MAX;

struct Chunk {
    class: u8,
    slots: u16,
    used: u16,
    previous: u32,
    next: u32,
    /// A set bit: the slot is allocated, or beyond the last slot.
    taken: [u64; BITMAP_WORDS],
}

impl Default for Chunk {
    /// A chunk without slots.
    fn default() -> Self {
        Chunk { class: 0, slots: 0, used: 0, previous: NO_CHUNK, next: NO_CHUNK, taken: [u64::MAX; BITMAP_WORDS] }
    }
}

impl Chunk {
    fn new(class: u8) -> Self {
        let slots = UNITS_PER_CHUNK / usize::from(CLASS_UNITS[usize::from(class)]);
        let mut taken = [0; BITMAP_WORDS];
        for slot in slots..UNITS_PER_CHUNK {
            taken[slot / 64] |= 1 << (slot % 64);
        }
        Chunk { class, slots: slots as u16, used: 0, previous: NO_CHUNK, next: NO_CHUNK, taken }
    }

    fn units(&self) -> usize {
        usize::from(CLASS_UNITS[usize::from(self.class)])
    }

    /// Allocates the first free slot.
    fn take(&mut self) -> Option<usize> {
        let (number, word) = self.taken.iter_mut().enumerate().find(|(_, word)| **word != u64::MAX)?;
        let bit = word.trailing_ones() as usize;
        *word |= 1 << bit;
        self.used += 1;
        Some(number * 64 + bit)
    }
}

/// What an arena does when it has to grow and the memory for that is not ready yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// The arena waits for the system, which may take tens of milliseconds for 2 MiB.
    AtOnce,
    /// The arena allocates no slot, as if it was full, and grows when another thread has made memory ready. Without
    /// [`make_memory_ready_ahead`](crate::make_memory_ready_ahead) there is no such thread, and this is the same as
    /// `AtOnce`.
    WhenReady,
}

/// Maximum size of an arena of `capacity_bytes`, including its bookkeeping.
pub fn byte_arena_bytes(capacity_bytes: usize) -> usize {
    let chunks = capacity_bytes.div_ceil(CHUNK_BYTES);
    chunks.saturating_mul(CHUNK_BYTES + size_of::<Chunk>() + size_of::<u32>())
}

/// A fixed-capacity arena for byte strings; see the module's description.
pub struct ByteArena {
    memory: Mapping,
    /// Counts the chunks in use, so that the next ones are made ready.
    mark: FillMark,
    growth: Growth,
    chunk_count: u32,
    /// Chunks that were used at least once.
    chunks: Arena<Chunk>,
    /// Head of the list of chunks with free slots, for each slot size.
    partial: [u32; CLASS_UNITS.len()],
    /// Head of the list of chunks that were used and are completely free.
    free: u32,
    bytes_in_use: usize,
}

impl ByteArena {
    /// Makes an empty arena of `capacity_bytes`, rounded up to whole chunks of 64 KiB.
    pub fn new(capacity_bytes: usize, growth: Growth, pages: PageRequest) -> Result<Self, TableError> {
        let chunk_count = capacity_bytes.div_ceil(CHUNK_BYTES);
        // All handles stay below `u32::MAX`, so that callers can use that value for "no slot".
        if chunk_count >= u32::MAX as usize / UNITS_PER_CHUNK {
            return Err(TableError::CapacityTooLarge);
        }
        let memory = Mapping::new(MemoryNeed::all("byte strings", chunk_count * CHUNK_BYTES).used_from_start(), pages)?;
        let mut mark = FillMark::new(CHUNK_BYTES);
        memory.make_ready_ahead(
            &mut mark,
            ReadyAhead {
                unit_bytes: CHUNK_BYTES,
                first_bytes: FIRST_READY_BYTES,
                most_lead_bytes: MOST_LEAD_BYTES,
                can_wait: growth == Growth::WhenReady,
            },
        );
        Ok(ByteArena {
            memory,
            mark,
            growth,
            chunk_count: chunk_count as u32,
            chunks: Arena::new(chunk_count as u32, pages)?,
            partial: [NO_CHUNK; CLASS_UNITS.len()],
            free: NO_CHUNK,
            bytes_in_use: 0,
        })
    }

    /// Allocates a slot of at least `length` bytes with unspecified contents. Returns `None` if `length` is more than
    /// [`MAX_SLOT_BYTES`], if the arena is full, or if memory is not ready yet (see [`Growth`]). In the last two
    /// cases, free other slots (of any size, oldest first is best) and retry.
    pub fn allocate(&mut self, length: usize) -> Option<u32> {
        let class = *CLASS_OF_UNITS.get(length.div_ceil(UNIT_BYTES))?;
        let number = match self.partial[usize::from(class)] {
            NO_CHUNK => self.new_chunk(class)?,
            number => number,
        };
        let chunk = &mut self.chunks[number];
        let slot = chunk.take()?;
        let units = chunk.units();
        if chunk.used == chunk.slots {
            self.unlink(number);
        }
        self.bytes_in_use += units * UNIT_BYTES;
        Some((number as usize * UNITS_PER_CHUNK + slot * units) as u32)
    }

    /// Frees a slot.
    ///
    /// # Panics
    /// If it is not allocated.
    pub fn free(&mut self, slot: u32) {
        let (number, unit) = (slot as usize / UNITS_PER_CHUNK, slot as usize % UNITS_PER_CHUNK);
        let chunk = &mut self.chunks[number as u32];
        let units = chunk.units();
        let position = unit / units;
        let (word, bit) = (&mut chunk.taken[position / 64], 1 << (position % 64));
        assert!(
            *word & bit != 0 && position < usize::from(chunk.slots) && unit % units == 0,
            "free of a slot that is not allocated"
        );
        *word &= !bit;
        let was_full = chunk.used == chunk.slots;
        chunk.used -= 1;
        let is_empty = chunk.used == 0;
        self.bytes_in_use -= units * UNIT_BYTES;
        let number = number as u32;
        if is_empty {
            if !was_full {
                self.unlink(number);
            }
            self.chunks[number].next = self.free;
            self.free = number;
        } else if was_full {
            self.link(number);
        }
    }

    /// Returns the first `length` bytes of a slot.
    ///
    /// # Panics
    /// If they extend beyond the arena. Bytes beyond the slot belong to other slots.
    #[inline]
    pub fn get(&self, slot: u32, length: usize) -> &[u8] {
        let offset = self.offset(slot, length);
        // SAFETY: `offset` checked the range; the memory is initialised (zeroed at first) and only changed through
        // `&mut self`.
        unsafe { std::slice::from_raw_parts(self.memory.base().as_ptr().add(offset), length) }
    }

    /// Returns the first `length` bytes of a slot, mutably.
    ///
    /// # Panics
    /// If they extend beyond the arena. Bytes beyond the slot belong to other slots.
    #[inline]
    pub fn get_mut(&mut self, slot: u32, length: usize) -> &mut [u8] {
        let offset = self.offset(slot, length);
        // SAFETY: as in `get`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.memory.base().as_ptr().add(offset), length) }
    }

    /// Copies a range of bytes of one slot to the same offsets of another.
    ///
    /// # Panics
    /// If the range extends beyond the arena. Bytes beyond the slots belong to other slots.
    pub fn copy(&mut self, from: u32, to: u32, bytes: Range<usize>) {
        let (source, target) = (self.offset(from, bytes.end), self.offset(to, bytes.end));
        let base = self.memory.base().as_ptr();
        // SAFETY: `offset` checked both ranges, which may overlap; memory is initialised, and `&mut self` exclusive.
        unsafe { std::ptr::copy(base.add(source + bytes.start), base.add(target + bytes.start), bytes.len()) };
    }

    /// Prefetches cache line `line` (0, 1, …) of a slot. Any slot may be given.
    #[inline(always)]
    pub fn prefetch_line(&self, slot: u32, line: usize) {
        prefetch_line_of(self.memory.base().as_ptr().wrapping_add((slot as usize).wrapping_mul(UNIT_BYTES)), line);
    }

    /// Returns the slot size in bytes for a string of `length` bytes; `None` if it is too long to be stored.
    pub fn slot_bytes(length: usize) -> Option<usize> {
        let class = *CLASS_OF_UNITS.get(length.div_ceil(UNIT_BYTES))?;
        Some(usize::from(CLASS_UNITS[usize::from(class)]) * UNIT_BYTES)
    }

    /// Returns the size in bytes of an allocated slot.
    ///
    /// # Panics
    /// If its chunk was never used.
    pub fn slot_bytes_of(&self, slot: u32) -> usize {
        self.chunks[(slot as usize / UNITS_PER_CHUNK) as u32].units() * UNIT_BYTES
    }

    /// Number of chunks of 64 KiB that were used at least once.
    pub fn chunks_used(&self) -> usize {
        self.chunks.made()
    }

    /// Iterates over the allocated slots of chunk `number`.
    ///
    /// # Panics
    /// If the chunk was never used.
    pub fn slots_of_chunk(&self, number: usize) -> impl Iterator<Item = u32> + '_ {
        let chunk = &self.chunks[number as u32];
        let is_taken = |slot: &usize| chunk.taken[slot / 64] >> (slot % 64) & 1 == 1;
        let slots = (0..usize::from(chunk.slots)).filter(is_taken);
        slots.map(move |slot| (number * UNITS_PER_CHUNK + slot * chunk.units()) as u32)
    }

    /// Bytes of all allocated slots.
    pub fn bytes_in_use(&self) -> usize {
        self.bytes_in_use
    }

    /// Total bytes of the arena.
    pub fn capacity_bytes(&self) -> usize {
        self.chunk_count as usize * CHUNK_BYTES
    }

    /// Kind of pages that the strings lie on.
    pub fn page_kind(&self) -> PageKind {
        self.memory.kind()
    }

    #[inline(always)]
    fn offset(&self, slot: u32, length: usize) -> usize {
        let offset = slot as usize * UNIT_BYTES;
        assert!(
            length <= self.capacity_bytes() && offset <= self.capacity_bytes() - length,
            "slot is outside of the arena"
        );
        touched::note_bytes(self.memory.base().as_ptr().wrapping_add(offset), length);
        offset
    }

    /// Assigns a free chunk to a slot size.
    fn new_chunk(&mut self, class: u8) -> Option<u32> {
        let number = if self.free != NO_CHUNK {
            let number = self.free;
            self.free = self.chunks[number].next;
            self.chunks[number] = Chunk::new(class);
            number
        } else {
            // The chunks that are ready at first are always used, so that a full arena always has slots to evict.
            let (made, grows_at_once) = (self.chunks.made(), self.growth == Growth::AtOnce);
            if !grows_at_once && made >= FIRST_READY_CHUNKS && !self.mark.is_ready(made + 1) {
                return None;
            }
            let number = self.chunks.allocate()?;
            self.chunks[number] = Chunk::new(class);
            self.mark.note(self.chunks.made());
            number
        };
        self.link(number);
        Some(number)
    }

    /// Adds a chunk to the list of chunks with free slots.
    fn link(&mut self, number: u32) {
        let chunk = &mut self.chunks[number];
        let next = std::mem::replace(&mut self.partial[usize::from(chunk.class)], number);
        (chunk.previous, chunk.next) = (NO_CHUNK, next);
        if next != NO_CHUNK {
            self.chunks[next].previous = number;
        }
    }

    fn unlink(&mut self, number: u32) {
        let Chunk { previous, next, class, .. } = self.chunks[number];
        match previous {
            NO_CHUNK => self.partial[usize::from(class)] = next,
            previous => {
                self.chunks[previous].next = next;
            }
        }
        if next != NO_CHUNK {
            self.chunks[next].previous = previous;
        }
    }
}

impl std::fmt::Debug for ByteArena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ByteArena")
            .field("bytes_in_use", &self.bytes_in_use)
            .field("capacity_bytes", &self.capacity_bytes())
            .field("pages", &self.page_kind())
            .finish()
    }
}
