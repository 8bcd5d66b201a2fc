//! The group hasher: one name per lane; a lane takes a new name when its name has ended.
//!
//! The lanes proceed through their names in step, one 8-byte word at a time, each from its own position. At the end
//! of a prefix the lane's state is copied. As soon as there are enough copies to fill a vector they are finished
//! together, across names and depths. The bytes that follow tell where the lane's next prefix ends.
//!
//! The cost of a lane is linear in the length of its name, so no name can slow the others down by more than a
//! constant: names too long for a lane are hashed separately, and a name that is too deep proceeds to its end without
//! more results.
//!
//! All of it is inlined into one function per CPU type; the types only structure the code.

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

/// End of the current prefix in a lane without a name, or with a name that has no more prefixes. All actual ends are
/// below it.
const NO_END: u64 = u32::MAX as u64;
/// Number of idle lanes at which new names are loaded, because loading costs time in all lanes.
const IDLE_LANES: u32 = 3;
/// Largest type and length of a component with one-byte encoding, in the two lowest bytes.
const ONE_BYTE_NUMBERS: u64 = 0xffff_ffff_ffff_fcfc;

/// Hashes all prefixes of the names.
///
/// # Safety
/// As for [`Vector`].
///
/// # Panics
/// If there are more than [`GROUP_NAMES`] names, or `out` is shorter than `names`.
#[inline(always)]
pub(super) unsafe fn hash_names<V: Vector>(key: &HashKey, names: &[&[u8]], out: &mut [PrefixHashes]) {
    assert!(names.len() <= GROUP_NAMES);
    let out = &mut out[..names.len()];
    let mut short = [[0; WORD_BYTES]; GROUP_NAMES];
    let mut queue = Queue::new(key, names, &mut short, out);
    // SAFETY: the caller guarantees the CPU features. The names in the queue can be read and their elements of `out`
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
                pending.push(lanes.states, lanes.last_words(), lanes.end, lanes.result_offset, V::bits(ending));
                lanes.next_prefix(ending, names, pending.results);
            }
            if lanes.idle != all::<V>() {
                lanes.next_word();
            }
        }
        pending.finish_rest::<V>();
    }
}

/// The position of each lane in its name.
struct Lanes<V> {
    initial: States<V>,
    states: States<V>,
    /// Address of the name.
    base: V,
    length: V,
    /// Offset of the last whole word of the name.
    last: V,
    /// Offset of `word`, a multiple of the word size.
    offset: V,
    /// The next word to compress, and the one after it. Zero beyond the end of the name.
    word: V,
    following: V,
    /// End of the next prefix, or [`NO_END`].
    end: V,
    /// Offset of the name's results, and of the hash of the next prefix, in words.
    start: V,
    result_offset: V,
    /// Offset of the last entry, which all prefixes beyond the maximum depth share.
    deepest: V,
    /// Hash of the empty prefix.
    empty: V,
    /// Lanes without a name, or with a name that has no more prefixes.
    idle: u32,
}

/// # Safety
/// Every function requires the same as [`Vector`], and that the names in the lanes can be read.
impl<V: Vector> Lanes<V> {
    #[inline(always)]
    unsafe fn new(key: &HashKey) -> Self {
        // SAFETY: the caller guarantees the CPU features.
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
                result_offset: zero,
                deepest: zero,
                empty: V::splat(key.empty),
                idle: all::<V>(),
            }
        }
    }

    /// Loads names from the queue into idle lanes.
    #[inline(always)]
    unsafe fn refill(&mut self, queue: &mut Queue, names: &[&[u8]]) {
        let next = queue.next;
        assert!(next < GROUP_NAMES);
        // SAFETY: the caller guarantees the CPU features. The queue's arrays have room for a vector after every name.
        unsafe {
            let idle = V::splat(NO_END).equal(self.end);
            self.base = self.base.expand(self.idle, queue.bases.as_ptr().add(next));
            self.length = self.length.expand(self.idle, queue.lengths.as_ptr().add(next));
            self.start = self.start.expand(self.idle, queue.starts.as_ptr().add(next));
            queue.next += self.idle.count_ones() as usize;

            self.states = self.states.replace(idle, self.initial);
            self.offset = self.offset.replace(idle, V::splat(0));
            self.result_offset = self.result_offset.replace(idle, self.start.add(V::splat(ENTRY_WORDS as u64)));
            self.deepest = self.start.add(V::splat((ENTRY_WORDS * (MAX_DEPTH + 1)) as u64));
            let word_bytes = V::splat(WORD_BYTES as u64);
            self.last = self.length.subtract(word_bytes.minimum(self.length));
            self.word = self.read(self.offset);
            self.following = self.read(self.offset.add(word_bytes));

            let first = self.component_end(idle, V::splat(0), self.word.only(idle), names);
            self.end = self.end.replace(idle, first);
            // Empty names have no prefixes to find. The queue also has empty entries after the last name.
            let nameless = V::splat(0).equal(self.length);
            self.end = self.end.replace(nameless, V::splat(NO_END));
            self.idle = V::bits(nameless);
        }
    }

    /// Returns the words at `offset`, zero beyond the end of the name.
    #[inline(always)]
    unsafe fn read(&self, offset: V) -> V {
        // SAFETY: the caller guarantees the CPU features and the names, of which at least one word can be read.
        unsafe {
            let readable = offset.minimum(self.last);
            V::gather(self.base.add(readable)).shift_right_by(offset.subtract(readable).shift_left::<3>())
        }
    }

    /// Returns the lanes with the end of a prefix in their word (which then has less than a word's bytes of it).
    #[inline(always)]
    unsafe fn ending(&self) -> V::Mask {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { self.end.below(self.offset.add(V::splat(WORD_BYTES as u64))) }
    }

    /// For lanes with the end of a prefix in their word: returns the number of bits before the end.
    #[inline(always)]
    unsafe fn bits_before_end(&self) -> V {
        // SAFETY: the caller guarantees the CPU features.
        unsafe { self.end.shift_left::<3>().and(V::splat(8 * (WORD_BYTES as u64 - 1))) }
    }

    /// For lanes with the end of a prefix in their word: returns the last word of the prefix, with its length in the
    /// top byte.
    #[inline(always)]
    unsafe fn last_words(&self) -> V {
        // SAFETY: the caller guarantees the CPU features.
        unsafe {
            let behind = V::splat(u64::MAX).shift_left_by(self.bits_before_end());
            self.word.without(behind).or(self.end.shift_left::<56>())
        }
    }

    /// Finds the next prefix in the lanes with the end of a prefix in their word. If there is none, records the depth
    /// of the name in the results.
    ///
    /// # Safety
    /// The results of the names in the lanes can be written.
    #[inline(always)]
    unsafe fn next_prefix(&mut self, ending: V::Mask, names: &[&[u8]], results: *mut u64) {
        // SAFETY: the caller guarantees the CPU features, the names and the results.
        unsafe {
            let passed = self.bits_before_end();
            let to_pass = V::splat(u64::BITS.into()).subtract(passed);
            let header = self.word.shift_right_by(passed).or(self.following.shift_left_by(to_pass));
            let mut next = self.component_end(ending, self.end, header.only(ending), names);
            let finished = self.end.equal(self.length);
            let finished_bits = V::bits(finished) & V::bits(ending);
            if finished_bits != 0 {
                let depth = self.result_offset.subtract(self.start).shift_right::<1>();
                let too_deep = V::splat(MAX_DEPTH as u64 + 1).equal(depth);
                let depth = depth.replace(too_deep, V::splat(TOO_DEEP));
                self.empty.scatter_pairs(depth, results, self.start, finished_bits);
                next = next.replace(finished, V::splat(NO_END));
                self.idle |= finished_bits;
            }
            self.end = self.end.replace(ending, next);
            let step = V::splat(ENTRY_WORDS as u64).only(ending);
            self.result_offset = self.result_offset.add(step).minimum(self.deepest);
        }
    }

    /// For the chosen lanes: returns the end of the component that begins at `start` with the bytes `header`.
    #[inline(always)]
    unsafe fn component_end(&self, chosen: V::Mask, start: V, header: V, names: &[&[u8]]) -> V {
        // SAFETY: the caller guarantees the CPU features.
        unsafe {
            if header.any_byte_above(V::splat(ONE_BYTE_NUMBERS)) {
                let (mut ends, mut starts) = (Words([0; MAX_LANES]), Words([0; MAX_LANES]));
                start.store(&mut ends);
                self.start.store(&mut starts);
                long_component_ends(V::bits(chosen), &mut ends, &starts, names);
                return V::load(&ends);
            }
            // One-byte type and length. If the name ends within the component, so does the component.
            start.add(V::splat(2)).add(header.second_byte()).minimum(self.length)
        }
    }

    /// Compresses a word and advances to the next.
    #[inline(always)]
    unsafe fn next_word(&mut self) {
        // SAFETY: the caller guarantees the CPU features.
        unsafe {
            let word_bytes = V::splat(WORD_BYTES as u64);
            self.states.compress(self.word);
            self.word = self.following;
            self.offset = self.offset.add(word_bytes);
            self.following = self.read(self.offset.add(word_bytes));
        }
    }
}

/// Replaces the positions of components in the chosen lanes by their ends, for types and lengths of any size.
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
