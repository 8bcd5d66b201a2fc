//! Doubly linked lists of the numbers 0..capacity with a note for each: 16 bytes per number, four numbers to a cache
//! line.
//!
//! A number is in at most one list. The policy records which one in the note's mark, which is 0 for numbers in no
//! list.

use namehop_table::TableError;

use crate::eviction::Ahead;
use crate::words::Words;

/// No number: links hold numbers plus one, so that untouched memory has no links.
const NONE: u32 = 0;
/// Bits of a note's mark.
const MARK_BITS: u32 = 8;

/// The ends of a list, and its length.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct List {
    first: u32,
    last: u32,
    length: usize,
}

impl List {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns ends and length as integers, to be stored in words.
    pub(crate) fn parts(&self) -> (u32, u32, usize) {
        (self.first, self.last, self.length)
    }

    /// Makes a list from the result of [`parts`](Self::parts).
    pub(crate) fn from_parts(first: u32, last: u32, length: usize) -> Self {
        List { first, last, length }
    }

    /// The number at the front.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        self.first.checked_sub(1)
    }
}

/// A policy's note about a number: 56 bits of a name's hash, and a mark of 8 bits with a meaning that the policy
/// defines. Initially zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) hash: u64,
    pub(crate) mark: u8,
}

/// Returns the bits of a hash that notes keep.
#[inline]
pub(crate) fn kept(hash: u64) -> u64 {
    hash & (u64::MAX >> MARK_BITS)
}

/// Links and notes of all numbers.
#[derive(Debug)]
pub(crate) struct Slots {
    words: Words,
}

impl Slots {
    /// Makes links and notes for numbers below `count`.
    pub(crate) fn new(count: usize) -> Result<Self, TableError> {
        if count >= u32::MAX as usize {
            return Err(TableError::CapacityTooLarge);
        }
        Ok(Slots { words: Words::new(2 * count)? })
    }

    #[inline]
    pub(crate) fn note(&self, number: u32) -> Note {
        let word = self.words.get(2 * number as usize + 1);
        Note { hash: word >> MARK_BITS, mark: word as u8 }
    }

    #[inline]
    pub(crate) fn set_note(&mut self, number: u32, note: Note) {
        self.words.set(2 * number as usize + 1, note.hash << MARK_BITS | u64::from(note.mark));
    }

    #[inline]
    pub(crate) fn mark(&self, number: u32) -> u8 {
        self.note(number).mark
    }

    #[inline]
    pub(crate) fn set_mark(&mut self, number: u32, mark: u8) {
        let note = self.note(number);
        self.set_note(number, Note { mark, ..note });
    }

    /// Prefetches links and note. Any number may be given.
    #[inline]
    pub(crate) fn prefetch(&self, number: u32) {
        self.words.prefetch(2 * number as usize);
    }

    /// Prefetches the neighbours of a number. Reads its links. Any number may be given.
    #[inline]
    pub(crate) fn prefetch_neighbours(&self, number: u32) {
        if (number as usize) < self.words.len() / 2 {
            let (previous, next) = self.links(number);
            self.prefetch(previous.wrapping_sub(1));
            self.prefetch(next.wrapping_sub(1));
        }
    }

    /// Returns the number that follows one in its list.
    #[inline]
    pub(crate) fn next(&self, number: u32) -> Option<u32> {
        self.links(number).1.checked_sub(1)
    }

    /// Advances `ahead` to the next number to be evicted and returns it: the first one that `leaves`, from `first` on
    /// or behind the number passed last. Returns `None` at the end of the list, and if the number passed last is in
    /// no list any more, because its links are then invalid.
    #[inline]
    pub(crate) fn upcoming(
        &self,
        ahead: &mut Ahead,
        first: impl FnOnce() -> Option<u32>,
        leaves: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let mut number = match ahead.number() {
            None => first()?,
            Some(passed) if self.mark(passed) == 0 => return None,
            Some(passed) => self.next(passed)?,
        };
        while !leaves(number) {
            number = self.next(number)?;
        }
        Some(ahead.pass(number))
    }

    #[inline]
    pub(crate) fn push_back(&mut self, list: &mut List, number: u32) {
        let link = number + 1;
        self.set_links(number, list.last, NONE);
        match list.last {
            NONE => list.first = link,
            last => {
                let (before, _) = self.links(last - 1);
                self.set_links(last - 1, before, link);
            }
        }
        list.last = link;
        list.length += 1;
    }

    /// Inserts `number` behind another one of the list; at the front if that is `None`.
    pub(crate) fn insert_behind(&mut self, list: &mut List, behind: Option<u32>, number: u32) {
        let next = match behind {
            None => list.first,
            Some(behind) => self.links(behind).1,
        };
        if next == NONE {
            return self.push_back(list, number);
        }
        let (previous, behind_next) = self.links(next - 1);
        self.set_links(number, previous, next);
        self.set_links(next - 1, number + 1, behind_next);
        match previous {
            NONE => list.first = number + 1,
            link => {
                let (before, _) = self.links(link - 1);
                self.set_links(link - 1, before, number + 1);
            }
        }
        list.length += 1;
    }

    /// Removes a number from its list.
    #[inline]
    pub(crate) fn remove(&mut self, list: &mut List, number: u32) {
        let (previous, next) = self.links(number);
        match previous {
            NONE => list.first = next,
            link => {
                let (before, _) = self.links(link - 1);
                self.set_links(link - 1, before, next);
            }
        }
        match next {
            NONE => list.last = previous,
            link => {
                let (_, behind) = self.links(link - 1);
                self.set_links(link - 1, previous, behind);
            }
        }
        list.length -= 1;
    }

    /// Replaces `old` by `new`, which must be in no list.
    pub(crate) fn replace(&mut self, list: &mut List, old: u32, new: u32) {
        let (previous, next) = self.links(old);
        self.set_links(new, previous, next);
        match previous {
            NONE => list.first = new + 1,
            link => {
                let (before, _) = self.links(link - 1);
                self.set_links(link - 1, before, new + 1);
            }
        }
        match next {
            NONE => list.last = new + 1,
            link => {
                let (_, behind) = self.links(link - 1);
                self.set_links(link - 1, new + 1, behind);
            }
        }
    }

    /// Removes the number at the front and returns it.
    #[inline]
    pub(crate) fn pop_front(&mut self, list: &mut List) -> Option<u32> {
        let first = list.first()?;
        self.remove(list, first);
        Some(first)
    }

    #[inline]
    pub(crate) fn move_back(&mut self, list: &mut List, number: u32) {
        if list.last != number + 1 {
            self.remove(list, number);
            self.push_back(list, number);
        }
    }

    #[inline]
    fn links(&self, number: u32) -> (u32, u32) {
        let word = self.words.get(2 * number as usize);
        ((word >> 32) as u32, word as u32)
    }

    #[inline]
    fn set_links(&mut self, number: u32, previous: u32, next: u32) {
        self.words.set(2 * number as usize, u64::from(previous) << 32 | u64::from(next));
    }
}
