//! An order of the numbers 0..capacity, kept in blocks of a cache line that are linked to each other.
//!
//! Numbers enter at the back. Each is written down in the last block, and where that was is noted by number; taking one out
//! leaves a gap. A block whose numbers are all gone is unlinked. So whoever follows the order from the front finds the numbers
//! side by side and follows a link only from block to block, and entering touches one line that is not near: the note.
//!
//! A note is never taken back: it counts as long as its number stands where it says. Memory is not touched before it is used.

use namehop_table::prefetch::{prefetch_object, prefetch_read};
use namehop_table::touched;

/// Numbers of a block: with its links and counts they fill a cache line.
const BLOCK_NUMBERS: usize = 13;
/// A gap, or a place that was not used yet.
const GAP: u32 = u32::MAX;
/// No block.
const NO_BLOCK: u32 = u32::MAX;

#[derive(Debug, Clone)]
#[repr(C, align(64))]
struct Block {
    numbers: [u32; BLOCK_NUMBERS],
    previous: u32,
    /// Of an unlinked block: the next of those.
    next: u32,
    /// Places from the start on that are gaps.
    first: u8,
    /// Places that are or were used.
    used: u8,
    /// Numbers that are there.
    live: u8,
}

const _: () = assert!(size_of::<Block>() == 64);

/// A place in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    block: u32,
    at: u8,
}

impl Place {
    /// In one word; [`BLOCK_NUMBERS`] places of a block need four bits.
    fn pack(self) -> u32 {
        self.block << 4 | u32::from(self.at)
    }

    fn unpack(word: u32) -> Self {
        Place { block: word >> 4, at: (word & 15) as u8 }
    }
}

/// The order.
#[derive(Debug, Clone)]
pub(crate) struct OrderedNumbers {
    /// Never more than `places`, for each that is linked has a number.
    blocks: Vec<Block>,
    /// By number: its place, while that holds it.
    places: Vec<u32>,
    head: u32,
    tail: u32,
    /// First of the unlinked blocks.
    unlinked: u32,
    length: usize,
}

impl OrderedNumbers {
    /// An empty order of numbers below `capacity`, at most 2^28.
    pub(crate) fn new(capacity: usize) -> Self {
        assert!(capacity <= 1 << 28, "capacity");
        OrderedNumbers {
            blocks: Vec::with_capacity(capacity),
            places: vec![0; capacity],
            head: NO_BLOCK,
            tail: NO_BLOCK,
            unlinked: NO_BLOCK,
            length: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The number at the front.
    #[inline]
    pub(crate) fn front(&self) -> Option<u32> {
        self.front_place().map(|place| self.at(place))
    }

    /// The first number behind `place`, or at the front, and its place. Any place may be given that there was one time.
    #[inline]
    pub(crate) fn behind(&self, place: Option<Place>) -> Option<(u32, Place)> {
        let Some(place) = place else { return self.front_place().map(|place| (self.at(place), place)) };
        let block = self.blocks.get(place.block as usize)?;
        let rest = place.at as usize + 1..usize::from(block.used);
        if let Some(at) = rest.into_iter().find(|&at| block.numbers[at] != GAP) {
            return Some((block.numbers[at], Place { at: at as u8, ..place }));
        }
        let next = self.blocks.get(block.next as usize).filter(|next| next.live > 0)?;
        // Whoever comes so far will probably go on.
        if let Some(after_next) = self.blocks.get(next.next as usize) {
            prefetch_object(after_next);
        }
        Some((next.numbers[usize::from(next.first)], Place { block: block.next, at: next.first }))
    }

    /// Asks for the note of a number, which entering and leaving look at. Any number may be given.
    #[inline]
    pub(crate) fn prefetch_note(&self, number: u32) {
        prefetch_read(self.places.as_ptr().wrapping_add(number as usize));
    }

    /// Asks for what the note of a number leads to. Reads the note.
    #[inline]
    pub(crate) fn prefetch_block(&self, number: u32) {
        if let Some(&note) = self.places.get(number as usize) {
            prefetch_read(self.blocks.as_ptr().wrapping_add(Place::unpack(note).block as usize));
        }
    }

    /// Puts `number` at the back. It has no place.
    #[inline]
    pub(crate) fn push_back(&mut self, number: u32) {
        debug_assert_eq!(self.place_of(number), None);
        let is_full = self.blocks.get(self.tail as usize).is_none_or(|tail| usize::from(tail.used) >= BLOCK_NUMBERS);
        if is_full {
            self.link_block();
        }
        let tail = &mut self.blocks[self.tail as usize];
        let at = tail.used;
        tail.numbers[usize::from(at)] = number;
        tail.used += 1;
        tail.live += 1;
        let note = &mut self.places[number as usize];
        touched::note(note);
        *note = Place { block: self.tail, at }.pack();
        self.length += 1;
    }

    /// Moves `number` to the back; nothing happens if it has no place.
    pub(crate) fn move_back(&mut self, number: u32) {
        if self.remove(number) {
            self.push_back(number);
        }
    }

    /// Takes `number` out. `false` if it had no place.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        let Some(place) = self.place_of(number) else { return false };
        let block = &mut self.blocks[place.block as usize];
        block.numbers[usize::from(place.at)] = GAP;
        block.live -= 1;
        self.length -= 1;
        if block.live == 0 {
            self.unlink(place.block);
        } else if place.at == block.first {
            while block.numbers.get(usize::from(block.first)) == Some(&GAP) {
                block.first += 1;
            }
        }
        true
    }

    fn at(&self, place: Place) -> u32 {
        self.blocks[place.block as usize].numbers[usize::from(place.at)]
    }

    #[inline]
    fn front_place(&self) -> Option<Place> {
        let block = self.blocks.get(self.head as usize)?;
        Some(Place { block: self.head, at: block.first })
    }

    #[inline]
    fn place_of(&self, number: u32) -> Option<Place> {
        // Mostly the one at the front is asked for, and no note needs to be looked at.
        if let Some(place) = self.front_place().filter(|&place| self.at(place) == number) {
            return Some(place);
        }
        let note = &self.places[number as usize];
        touched::note(note);
        let place = Place::unpack(*note);
        let block = self.blocks.get(place.block as usize)?;
        touched::note(block);
        (block.numbers.get(usize::from(place.at)) == Some(&number)).then_some(place)
    }

    /// A new block at the back.
    #[inline(never)]
    fn link_block(&mut self) {
        let new =
            Block { numbers: [GAP; BLOCK_NUMBERS], previous: self.tail, next: NO_BLOCK, first: 0, used: 0, live: 0 };
        let number = match self.blocks.get_mut(self.unlinked as usize) {
            Some(unlinked) => {
                let next = std::mem::replace(unlinked, new).next;
                std::mem::replace(&mut self.unlinked, next)
            }
            None => {
                self.blocks.push(new);
                self.blocks.len() as u32 - 1
            }
        };
        match self.blocks.get_mut(self.tail as usize) {
            Some(tail) => tail.next = number,
            None => self.head = number,
        }
        self.tail = number;
    }

    #[inline(never)]
    fn unlink(&mut self, number: u32) {
        let block = &mut self.blocks[number as usize];
        let (previous, next) = (block.previous, block.next);
        block.next = std::mem::replace(&mut self.unlinked, number);
        match self.blocks.get_mut(previous as usize) {
            Some(previous) => previous.next = next,
            None => self.head = next,
        }
        match self.blocks.get_mut(next as usize) {
            Some(next) => next.previous = previous,
            None => self.tail = previous,
        }
    }
}
