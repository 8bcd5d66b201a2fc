//! The group hasher: one name per lane, and a new name in a lane whose name has ended.
//!
//! The lanes go through their names in step, one 8-byte word at a time, each from its own position. Where a prefix ends,
//! the lane's state is copied, and as soon as there are enough copies to fill a vector they are finished, whatever names
//! and depths they belong to. The bytes that follow say where the lane's next prefix ends.
//!
//! A lane costs what its name is long, so that no name can slow the others down by more than a constant: names too long
//! for a lane are hashed alone, and a name that is too deep goes to its end without more results.
//!
//! All of it is inlined into one function for each processor; the types only give its parts names.

use super::GROUP_NAMES;
use super::pending::Pending;
use super::queue::{Queue, RESULT_WORDS};
use super::states::States;
use super::vector::{MAX_LANES, Vector, Words, all};
use crate::components::component_end;
use crate::siphash::WORD_BYTES;
use crate::{HashKey, MAX_DEPTH, PrefixHashes, TOO_DEEP};

/// Words of the results of one prefix.
const ENTRY_WORDS: usize = 2;

/// End of the current prefix in a lane that has no name, or whose name has no more prefixes. All ends are below it.
const NO_END: u64 = u32::MAX as u64;
/// Lanes that are idle before new names are put into them: doing that costs time in all lanes.
const IDLE_LANES: u32 = 3;
/// Largest type and length of a component that take one byte each, in the two lowest bytes.
const ONE_BYTE_NUMBERS: u64 = 0xffff_ffff_ffff_fcfc;

/// Hashes all prefixes of the names.
///
/// # Safety
/// As for [`Vector`].
///
/// # Panics
/// If there are more than [`GROUP_NAMES`] names, or fewer places than names.
#[inline(always)]
pub(super) unsafe fn hash_names<V: Vector>(key: &HashKey, names: &[&[u8]], out: &mut [PrefixHashes]) {
    assert!(names.len() <= GROUP_NAMES);
    let out = &mut out[..names.len()];
    let mut short = [[0; WORD_BYTES]; GROUP_NAMES];
    let mut queue = Queue::new(key, names, &mut short, out);
    // SAFETY: the caller vouches for the processor. The names in the queue can be read and their places in `out`
    // written until this function returns.
    unsafe {
        let mut pending = Pending::new(out.as_mut_ptr().cast());
        let mut lanes = Lanes::<V>::new(key);
        loop {
            if lanes.idle.count_ones() >= IDLE_LANES {
                if queue.next < queue.count {
                    lanes.refill(&mut queue, names);
                } else if lanes.idle == all::<V>() {
                    break;
                }
            }
            loop {
                let ending = lanes.ending();
                if V::bits(ending) == 0 {
                    break;
                }
                pending.push(lanes.states, lanes.last_words(), lanes.end, lanes.place, V::bits(ending));
                lanes.next_prefix(ending, names, pending.results);
            }
            if lanes.idle != all::<V>() {
                lanes.next_word();
            }
        }
        pending.finish_rest::<V>();
    }
}

/// Where each lane is in its name.
struct Lanes<V> {
    initial: States<V>,
    states: States<V>,
    /// Address of the name.
    base: V,
    length: V,
    /// Offset of the last whole word.
    last: V,
    /// Offset of `word`, a multiple of the word size.
    offset: V,
    /// The next word to be compressed, and the one after it. Zero behind the end of the name.
    word: V,
    following: V,
    /// End of the next prefix, or [`NO_END`].
    end: V,
    /// Where the results of the name start, and where the hash of the next prefix goes, in words.
    start: V,
    place: V,
    /// The last place there is: all prefixes that are too deep share it.
    deepest: V,
    /// Hash of the empty prefix.
    empty: V,
    /// Lanes without a name, or with one whose prefixes have all been found.
    idle: u32,
}

/// # Safety
/// Every function requires what [`Vector`] requires, and that the names in the lanes can be read.
impl<V: Vector> Lanes<V> {
    #[inline(always)]
    unsafe fn new(key: &HashKey) -> Self {
        // SAFETY: the caller vouches for the processor.
        unsafe {
            let (initial, zero) = (States::new(key), V::splat(0));
            Lanes {
                initial,
                states: initial,
                base: zero,
                length: zero,
                last: zero,
                offset: zero,
                word: zero,
                following: zero,
                end: V::splat(NO_END),
                start: zero,
                place: zero,
                deepest: zero,
                empty: V::splat(key.empty),
                idle: all::<V>(),
            }
        }
    }

    /// Puts names from the queue into idle lanes.
    #[inline(always)]
    unsafe fn refill(&mut self, queue: &mut Queue, names: &[&[u8]]) {
        let next = queue.next;
        assert!(next < GROUP_NAMES);
        // SAFETY: the caller vouches for the processor. The queue's arrays have room for a vector behind every name.
        unsafe {
            let idle = V::splat(NO_END).equal(self.end);
            self.base = self.base.expand(self.idle, queue.bases.as_ptr().add(next));
            self.length = self.length.expand(self.idle, queue.lengths.as_ptr().add(next));
            self.start = self.start.expand(self.idle, queue.starts.as_ptr().add(next));
            queue.next += self.idle.count_ones() as usize;

            self.states = self.states.replace(idle, self.initial);
            self.offset = self.offset.replace(idle, V::splat(0));
            self.place = self.place.replace(idle, self.start.add(V::splat(ENTRY_WORDS as u64)));
            self.deepest = self.start.add(V::splat((ENTRY_WORDS * (MAX_DEPTH + 1)) as u64));
            let word_bytes = V::splat(WORD_BYTES as u64);
            self.last = self.length.subtract(word_bytes.minimum(self.length));
            self.word = self.read(self.offset);
            self.following = self.read(self.offset.add(word_bytes));

            let first = self.component_end(idle, V::splat(0), self.word.only(idle), names);
            self.end = self.end.replace(idle, first);
            // Names without bytes have no prefixes to be found. Such are also behind the last one.
            let nameless = V::splat(0).equal(self.length);
            self.end = self.end.replace(nameless, V::splat(NO_END));
            self.idle = V::bits(nameless);
        }
    }

    /// The words at `offset`, zero behind the end of the name.
    #[inline(always)]
    unsafe fn read(&self, offset: V) -> V {
        // SAFETY: the caller vouches for the processor and the names, of which at least one word can be read.
        unsafe {
            let readable = offset.minimum(self.last);
            V::gather(self.base.add(readable)).shift_right_by(offset.subtract(readable).shift_left::<3>())
        }
    }

    /// Lanes in whose word a prefix ends (which then has less than a word's bytes in it).
    #[inline(always)]
    unsafe fn ending(&self) -> V::Mask {
        // SAFETY: the caller vouches for the processor.
        unsafe { self.end.below(self.offset.add(V::splat(WORD_BYTES as u64))) }
    }

    /// For lanes in whose word a prefix ends: bits before the end.
    #[inline(always)]
    unsafe fn bits_before_end(&self) -> V {
        // SAFETY: the caller vouches for the processor.
        unsafe { self.end.shift_left::<3>().and(V::splat(8 * (WORD_BYTES as u64 - 1))) }
    }

    /// For lanes in whose word a prefix ends: the last word of the prefix, with its length in the top byte.
    #[inline(always)]
    unsafe fn last_words(&self) -> V {
        // SAFETY: the caller vouches for the processor.
        unsafe {
            let behind = V::splat(u64::MAX).shift_left_by(self.bits_before_end());
            self.word.without(behind).or(self.end.shift_left::<56>())
        }
    }

    /// Finds the next prefixes of the lanes in whose word a prefix ends; or, when there are none, notes the depth of the
    /// name in the results.
    ///
    /// # Safety
    /// The results of the names in the lanes can be written.
    #[inline(always)]
    unsafe fn next_prefix(&mut self, ending: V::Mask, names: &[&[u8]], results: *mut u64) {
        // SAFETY: the caller vouches for the processor, the names and the results.
        unsafe {
            let passed = self.bits_before_end();
            let to_pass = V::splat(u64::BITS.into()).subtract(passed);
            let header = self.word.shift_right_by(passed).or(self.following.shift_left_by(to_pass));
            let mut next = self.component_end(ending, self.end, header.only(ending), names);
            let finished = self.end.equal(self.length);
            let finished_bits = V::bits(finished) & V::bits(ending);
            if finished_bits != 0 {
                let depth = self.place.subtract(self.start).shift_right::<1>();
                let too_deep = V::splat(MAX_DEPTH as u64 + 1).equal(depth);
                let depth = depth.replace(too_deep, V::splat(TOO_DEEP));
                self.empty.scatter_pairs(depth, results, self.start, finished_bits);
                next = next.replace(finished, V::splat(NO_END));
                self.idle |= finished_bits;
            }
            self.end = self.end.replace(ending, next);
            let step = V::splat(ENTRY_WORDS as u64).only(ending);
            self.place = self.place.add(step).minimum(self.deepest);
        }
    }

    /// For the chosen lanes: end of the component that begins at `start` with the bytes `header`.
    #[inline(always)]
    unsafe fn component_end(&self, chosen: V::Mask, start: V, header: V, names: &[&[u8]]) -> V {
        // SAFETY: the caller vouches for the processor.
        unsafe {
            if header.any_byte_above(V::splat(ONE_BYTE_NUMBERS)) {
                let (mut ends, mut starts) = (Words([0; MAX_LANES]), Words([0; MAX_LANES]));
                start.store(&mut ends);
                self.start.store(&mut starts);
                long_component_ends(V::bits(chosen), &mut ends, &starts, names);
                return V::load(&ends);
            }
            // One byte each of type and length. If the name ends within the component, so does the component.
            start.add(V::splat(2)).add(header.second_byte()).minimum(self.length)
        }
    }

    /// Compresses a word and goes to the next.
    #[inline(always)]
    unsafe fn next_word(&mut self) {
        // SAFETY: the caller vouches for the processor.
        unsafe {
            let word_bytes = V::splat(WORD_BYTES as u64);
            self.states.compress(self.word);
            self.word = self.following;
            self.offset = self.offset.add(word_bytes);
            self.following = self.read(self.offset.add(word_bytes));
        }
    }
}

/// Turns the positions of components in the chosen lanes into their ends, whatever their types and lengths.
#[cold]
#[inline(never)]
fn long_component_ends(mut chosen: u32, ends: &mut Words, starts: &Words, names: &[&[u8]]) {
    while chosen != 0 {
        let lane = chosen.trailing_zeros() as usize;
        chosen &= chosen - 1;
        let number = starts.0[lane] as usize / RESULT_WORDS;
        if let Some(name) = names.get(number) {
            ends.0[lane] = component_end(name, ends.0[lane] as usize) as u64;
        }
    }
}
