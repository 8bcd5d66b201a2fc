//! An order of the numbers 0..capacity, stored in linked blocks of a cache line each.
//!
//! Numbers enter at the back. Each is stored in the last block, and a note per number records its position; removing
//! it leaves a gap. A block without numbers is unlinked. So a traversal from the front reads adjacent numbers and
//! follows a link only between blocks, and inserting a number touches one distant line, its note.
//!
//! Notes are not cleared: a note is valid if its number is at the position it records.

use namehop_table::{Arena, CacheLines, PageRequest, TableError};

/// Numbers per block: with the links and counts they fill a cache line.
const BLOCK_NUMBERS: usize = 13;
/// A gap, or a position that was not used yet.
const GAP: u32 = u32::MAX;
/// No block.
const NO_BLOCK: u32 = u32::MAX;
/// Maximum number of blocks: a block number takes 28 bits of a note.
const MAX_BLOCKS: usize = 1 << 28;
/// Notes per cache line.
const LINE_NOTES: usize = 16;
/// Numbers per block for which memory is sized by default; more blocks are needed only if they are emptier.
const EXPECTED_NUMBERS: u32 = 4;

#[derive(Debug)]
#[repr(C, align(64))]
struct Block {
    numbers: [u32; BLOCK_NUMBERS],
    previous: u32,
    next: u32,
    /// Index of the first position that is no gap.
    first: u8,
    /// Number of positions that are or were used.
    used: u8,
    /// Number of numbers in the block.
    live: u8,
}

const _: () = assert!(size_of::<Block>() == 64);

impl Default for Block {
    /// A block without numbers and links.
    fn default() -> Self {
        Block { numbers: [GAP; BLOCK_NUMBERS], previous: NO_BLOCK, next: NO_BLOCK, first: 0, used: 0, live: 0 }
    }
}

/// A position in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) block: u32,
    pub(crate) at: u8,
}

impl Position {
    /// Encodes the position in one word; the [`BLOCK_NUMBERS`] positions of a block need four bits.
    fn pack(self) -> u32 {
        self.block << 4 | u32::from(self.at)
    }

    fn unpack(word: u32) -> Self {
        Position { block: word >> 4, at: (word & 15) as u8 }
    }
}

/// An ordered set of numbers; see the module's description.
#[derive(Debug)]
pub(crate) struct OrderedNumbers {
    /// There are never more blocks than numbers, because each linked block holds at least one.
    blocks: Arena<Block>,
    notes: CacheLines,
    head: u32,
    tail: u32,
    length: usize,
}

impl OrderedNumbers {
    /// Makes an empty order of numbers below `capacity`, with room for all of them, up to [`MAX_BLOCKS`].
    pub(crate) fn new(capacity: usize) -> Result<Self, TableError> {
        let blocks = capacity.min(MAX_BLOCKS) as u32;
        let expected = blocks.div_ceil(EXPECTED_NUMBERS);
        Ok(OrderedNumbers {
            blocks: Arena::with_reserve(blocks, expected, PageRequest::Large)?,
            notes: CacheLines::used_in_order(capacity.div_ceil(LINE_NOTES), PageRequest::Large)?
                .named("notes of the cache policy"),
            head: NO_BLOCK,
            tail: NO_BLOCK,
            length: 0,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns the number at the front.
    #[inline]
    pub(crate) fn front(&self) -> Option<u32> {
        self.front_position().map(|position| self.at(position))
    }

    /// Returns the first number behind `position`, or at the front if that is `None`, and its position. Any current or
    /// former position may be given.
    #[inline]
    pub(crate) fn behind(&self, position: Option<Position>) -> Option<(u32, Position)> {
        let Some(position) = position else {
            return self.front_position().map(|position| (self.at(position), position));
        };
        let block = self.blocks.get(position.block)?;
        let rest = position.at as usize + 1..usize::from(block.used);
        if let Some(at) = rest.into_iter().find(|&at| block.numbers[at] != GAP) {
            return Some((block.numbers[at], Position { at: at as u8, ..position }));
        }
        let next = self.blocks.get(block.next).filter(|next| next.live > 0)?;
        // A traversal that gets this far will probably continue.
        self.blocks.prefetch(next.next);
        Some((next.numbers[usize::from(next.first)], Position { block: block.next, at: next.first }))
    }

    /// Prefetches the note of a number, which inserting and removing it reads. Any number may be given.
    #[inline]
    pub(crate) fn prefetch_note(&self, number: u32) {
        self.notes.prefetch(number as usize / LINE_NOTES);
    }

    /// Prefetches the block that the note of a number refers to. Reads the note.
    #[inline]
    pub(crate) fn prefetch_block(&self, number: u32) {
        if number as usize / LINE_NOTES < self.notes.len() {
            self.blocks.prefetch(self.note(number).block);
        }
    }

    /// Appends `number`, which must not be in the order.
    #[inline]
    pub(crate) fn push_back(&mut self, number: u32) {
        debug_assert_eq!(self.position_of(number), None);
        let is_full = self.blocks.get(self.tail).is_none_or(|tail| usize::from(tail.used) >= BLOCK_NUMBERS);
        if is_full {
            self.link_block();
        }
        let tail = &mut self.blocks[self.tail];
        let at = tail.used;
        tail.numbers[usize::from(at)] = number;
        tail.used += 1;
        tail.live += 1;
        self.set_note(number, Position { block: self.tail, at });
        self.notes.note_used(number as usize / LINE_NOTES + 1);
        self.length += 1;
    }

    /// Moves `number` to the back; does nothing if it is not in the order.
    pub(crate) fn move_back(&mut self, number: u32) {
        if self.remove(number) {
            self.push_back(number);
        }
    }

    /// Removes `number`. Returns `false` if it was not in the order.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        let Some(position) = self.position_of(number) else { return false };
        let block = &mut self.blocks[position.block];
        block.numbers[usize::from(position.at)] = GAP;
        block.live -= 1;
        self.length -= 1;
        if block.live == 0 {
            self.unlink(position.block);
        } else if position.at == block.first {
            while block.numbers.get(usize::from(block.first)) == Some(&GAP) {
                block.first += 1;
            }
        }
        true
    }

    fn at(&self, position: Position) -> u32 {
        self.blocks[position.block].numbers[usize::from(position.at)]
    }

    #[inline]
    fn front_position(&self) -> Option<Position> {
        let block = self.blocks.get(self.head)?;
        Some(Position { block: self.head, at: block.first })
    }

    #[inline]
    fn position_of(&self, number: u32) -> Option<Position> {
        // The number is usually the one at the front, and then its note need not be read.
        if let Some(position) = self.front_position().filter(|&position| self.at(position) == number) {
            return Some(position);
        }
        let position = self.note(number);
        let block = self.blocks.get(position.block)?;
        (block.numbers.get(usize::from(position.at)) == Some(&number)).then_some(position)
    }

    #[inline]
    fn note(&self, number: u32) -> Position {
        let (line, word, shift) = note_of(number);
        Position::unpack((self.notes[line].0[word] >> shift) as u32)
    }

    #[inline]
    fn set_note(&mut self, number: u32, position: Position) {
        let (line, word, shift) = note_of(number);
        let word = &mut self.notes[line].0[word];
        *word = *word & !(u64::from(u32::MAX) << shift) | u64::from(position.pack()) << shift;
    }

    /// Appends a block.
    #[inline(never)]
    fn link_block(&mut self) {
        let Some(number) = self.blocks.allocate() else { unreachable!("there are as many blocks as numbers") };
        self.blocks[number] = Block { previous: self.tail, ..Block::default() };
        match self.blocks.get_mut(self.tail) {
            Some(tail) => tail.next = number,
            None => self.head = number,
        }
        self.tail = number;
    }

    #[inline(never)]
    fn unlink(&mut self, number: u32) {
        let Block { previous, next, .. } = self.blocks[number];
        self.blocks.free(number);
        match self.blocks.get_mut(previous) {
            Some(previous) => previous.next = next,
            None => self.head = next,
        }
        match self.blocks.get_mut(next) {
            Some(next) => next.previous = previous,
            None => self.tail = previous,
        }
    }
}

/// Returns where the note of a number lies: line, word, and shift in the word.
#[inline]
fn note_of(number: u32) -> (usize, usize, u32) {
    let number = number as usize;
    (number / LINE_NOTES, number / 2 % (LINE_NOTES / 2), number as u32 % 2 * u32::BITS)
}
