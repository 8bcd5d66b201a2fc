//! Storage for byte strings of many lengths in one fixed piece of memory.
//!
//! The memory is cut into chunks of 64 KiB. A chunk serves one slot size at a time and goes back to the pool of free
//! chunks when its last slot is freed, so that the mix of sizes may change over time. Slot sizes are multiples of a
//! cache line: up to 2 KiB a string wastes less than a line, longer ones at most a quarter of their length. What is
//! free is kept beside the memory, so neither giving out a slot nor freeing it touches the slot.

#[cfg(test)]
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
/// Memory that is made ready before it is known what is needed.
const FIRST_READY_CHUNKS: usize = 8;
const FIRST_READY_BYTES: usize = FIRST_READY_CHUNKS * CHUNK_BYTES;

/// Slot sizes in units. The last has room for every NDN packet; the larger ones divide a chunk with little rest.
const CLASS_UNITS: [u16; 43] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32, 36, 40, 44, 48, 56, 64, 73, 85, 102, 128, 146,
];
const LARGEST_UNITS: usize = CLASS_UNITS[CLASS_UNITS.len() - 1] as usize;
/// Longest byte string that can be stored.
pub const MAX_SLOT_BYTES: usize = LARGEST_UNITS * UNIT_BYTES;

/// Slot size for every length in units.
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
    /// Bit set: slot given out, or beyond the last slot.
    taken: [u64; BITMAP_WORDS],
}

impl Default for Chunk {
    /// Of no slots.
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

    /// Takes the first free slot.
    fn take(&mut self) -> Option<usize> {
        let (number, word) = self.taken.iter_mut().enumerate().find(|(_, word)| **word != u64::MAX)?;
        let bit = word.trailing_ones() as usize;
        *word |= 1 << bit;
        self.used += 1;
        Some(number * 64 + bit)
    }
}

/// What an arena does when it has to grow and the system has yet to give the memory for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// It waits for the system, which may take tens of milliseconds for 2 MiB.
    AtOnce,
    /// It gives out no slot, as if it was full, and grows when another thread has made memory ready. Without
    /// [`make_memory_ready_ahead`](crate::make_memory_ready_ahead) there is no such thread, and this is `AtOnce`.
    WhenReady,
}

/// Most bytes of an arena of `capacity_bytes`, with its notes.
pub fn byte_arena_bytes(capacity_bytes: usize) -> usize {
    let chunks = capacity_bytes.div_ceil(CHUNK_BYTES);
    chunks.saturating_mul(CHUNK_BYTES + size_of::<Chunk>() + size_of::<u32>())
}

/// A fixed-capacity arena for byte strings; see the module's description.
pub struct ByteArena {
    memory: Mapping,
    /// Follows the chunks that were used, so that the next ones are ready.
    mark: FillMark,
    growth: Growth,
    chunk_count: u32,
    /// Chunks that were used at least once.
    chunks: Arena<Chunk>,
    /// Head of the list of chunks with free slots, for each slot size.
    partial: [u32; CLASS_UNITS.len()],
    /// Head of the list of used chunks that are free as a whole.
    free: u32,
    bytes_in_use: usize,
}

impl ByteArena {
    /// An empty arena of `capacity_bytes`, rounded up to whole chunks of 64 KiB.
    pub fn new(capacity_bytes: usize, growth: Growth, pages: PageRequest) -> Result<Self, TableError> {
        let chunk_count = capacity_bytes.div_ceil(CHUNK_BYTES);
        // All handles stay below `u32::MAX`, so that users may have a "no slot" value.
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

    /// Gives out a slot of at least `length` bytes with undetermined contents. `None` if `length` is more than
    /// [`MAX_SLOT_BYTES`], or if there is no room, or none yet (see [`Growth`]): then free other slots (of any size, oldest
    /// first is best) and retry.
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

    /// Takes a slot back.
    ///
    /// # Panics
    /// If it is not given out.
    pub fn free(&mut self, slot: u32) {
        let (number, unit) = (slot as usize / UNITS_PER_CHUNK, slot as usize % UNITS_PER_CHUNK);
        let chunk = &mut self.chunks[number as u32];
        let units = chunk.units();
        let position = unit / units;
        let (word, bit) = (&mut chunk.taken[position / 64], 1 << (position % 64));
        assert!(
            *word & bit != 0 && position < usize::from(chunk.slots) && unit % units == 0,
            "free of a slot that is not given out"
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

    /// First `length` bytes from the start of a slot.
    ///
    /// # Panics
    /// If they would reach beyond the arena. Bytes beyond the slot belong to others.
    #[inline]
    pub fn get(&self, slot: u32, length: usize) -> &[u8] {
        let offset = self.offset(slot, length);
        // SAFETY: `offset` checked the range; the memory is initialised (zeroed at first) and only changed through
        // `&mut self`.
        unsafe { std::slice::from_raw_parts(self.memory.base().as_ptr().add(offset), length) }
    }

    /// First `length` bytes from the start of a slot, for change.
    ///
    /// # Panics
    /// If they would reach beyond the arena. Bytes beyond the slot belong to others.
    #[inline]
    pub fn get_mut(&mut self, slot: u32, length: usize) -> &mut [u8] {
        let offset = self.offset(slot, length);
        // SAFETY: as in `get`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.memory.base().as_ptr().add(offset), length) }
    }

    /// Copies some bytes of a slot to the same places of another.
    ///
    /// # Panics
    /// If they would reach beyond the arena. Bytes beyond the slots belong to others.
    pub fn copy(&mut self, from: u32, to: u32, bytes: Range<usize>) {
        let (source, target) = (self.offset(from, bytes.end), self.offset(to, bytes.end));
        let base = self.memory.base().as_ptr();
        // SAFETY: `offset` checked both ranges; the memory is initialised, and `&mut self` is exclusive. They may overlap.
        unsafe { std::ptr::copy(base.add(source + bytes.start), base.add(target + bytes.start), bytes.len()) };
    }

    /// Asks for cache line `line` (0, 1, …) of a slot. Any slot may be given.
    #[inline(always)]
    pub fn prefetch_line(&self, slot: u32, line: usize) {
        prefetch_line_of(self.memory.base().as_ptr().wrapping_add((slot as usize).wrapping_mul(UNIT_BYTES)), line);
    }

    /// Bytes that a string of `length` bytes takes up; `None` if it is too long to be stored.
    pub fn slot_bytes(length: usize) -> Option<usize> {
        let class = *CLASS_OF_UNITS.get(length.div_ceil(UNIT_BYTES))?;
        Some(usize::from(CLASS_UNITS[usize::from(class)]) * UNIT_BYTES)
    }

    /// Bytes of a slot that is given out.
    ///
    /// # Panics
    /// If its chunk was never used.
    pub fn slot_bytes_of(&self, slot: u32) -> usize {
        self.chunks[(slot as usize / UNITS_PER_CHUNK) as u32].units() * UNIT_BYTES
    }

    /// Chunks that were used so far, of 64 KiB each.
    pub fn chunks_used(&self) -> usize {
        self.chunks.made()
    }

    /// The slots of one of them that are given out.
    ///
    /// # Panics
    /// If it was never used.
    pub fn slots_of_chunk(&self, number: usize) -> impl Iterator<Item = u32> + '_ {
        let chunk = &self.chunks[number as u32];
        let is_taken = |slot: &usize| chunk.taken[slot / 64] >> (slot % 64) & 1 == 1;
        let slots = (0..usize::from(chunk.slots)).filter(is_taken);
        slots.map(move |slot| (number * UNITS_PER_CHUNK + slot * chunk.units()) as u32)
    }

    /// Bytes of all slots given out.
    pub fn bytes_in_use(&self) -> usize {
        self.bytes_in_use
    }

    /// Bytes there are.
    pub fn capacity_bytes(&self) -> usize {
        self.chunk_count as usize * CHUNK_BYTES
    }

    /// Pages it lies on.
    pub fn page_kind(&self) -> PageKind {
        self.memory.kind()
    }

    #[inline(always)]
    fn offset(&self, slot: u32, length: usize) -> usize {
        let offset = slot as usize * UNIT_BYTES;
        assert!(
            length <= self.capacity_bytes() && offset <= self.capacity_bytes() - length,
            "slot outside of the arena"
        );
        touched::note_bytes(self.memory.base().as_ptr().wrapping_add(offset), length);
        offset
    }

    /// Gives a free chunk to a slot size.
    fn new_chunk(&mut self, class: u8) -> Option<u32> {
        let number = if self.free != NO_CHUNK {
            let number = self.free;
            self.free = self.chunks[number].next;
            self.chunks[number] = Chunk::new(class);
            number
        } else {
            // What was ready at first is taken in any case, so that a full arena always has something to give up.
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

    /// Puts a chunk into the list of chunks with free slots.
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
