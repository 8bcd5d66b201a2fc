//! Prefixes of a group's names that have ended but are not finished yet.

use super::states::States;
use super::vector::{MAX_LANES, Vector, all};

/// Prefixes that wait until there are enough to fill a vector.
pub(super) struct Pending {
    states: [[u64; Self::ROOM]; 4],
    last_words: [u64; Self::ROOM],
    ends: [u64; Self::ROOM],
    offsets: [u64; Self::ROOM],
    count: usize,
    /// Address to which `offsets` are relative.
    pub(super) results: *mut u64,
}

/// # Safety
/// Every function requires the same as [`Vector`], and that the given places can be written.
impl Pending {
    /// Fewer than a vector wait when up to a vector is added.
    const ROOM: usize = 2 * MAX_LANES;

    pub(super) fn new(results: *mut u64) -> Self {
        let none = [0; Self::ROOM];
        Pending { states: [none; 4], last_words: none, ends: none, offsets: none, count: 0, results }
    }

    /// Adds the lanes with a set bit, with their ends and their places in the results.
    #[inline(always)]
    pub(super) unsafe fn push<V: Vector>(&mut self, states: States<V>, last_words: V, ends: V, offsets: V, bits: u32) {
        // SAFETY: the caller guarantees the CPU features and the places. Fewer than `V::LANES` prefixes wait, so
        // there is room for a vector after them.
        unsafe {
            if self.count == 0 && bits == all::<V>() {
                // No need to wait. This is the case for all prefixes while the names have the same shape.
                states.finish(last_words).scatter_pairs(ends, self.results, offsets, bits);
                return;
            }
            let at = self.count % V::LANES;
            let [v0, v1, v2, v3] = &mut self.states;
            states.v0.compress(bits, v0.as_mut_ptr().add(at));
            states.v1.compress(bits, v1.as_mut_ptr().add(at));
            states.v2.compress(bits, v2.as_mut_ptr().add(at));
            states.v3.compress(bits, v3.as_mut_ptr().add(at));
            last_words.compress(bits, self.last_words.as_mut_ptr().add(at));
            ends.compress(bits, self.ends.as_mut_ptr().add(at));
            offsets.compress(bits, self.offsets.as_mut_ptr().add(at));
            self.count = at + bits.count_ones() as usize;
            if self.count >= V::LANES {
                self.finish::<V>(all::<V>());
                self.count -= V::LANES;
                let [v0, v1, v2, v3] = &mut self.states;
                for words in [v0, v1, v2, v3, &mut self.last_words, &mut self.ends, &mut self.offsets] {
                    let start = words.as_mut_ptr();
                    V::load_unaligned(start.add(V::LANES)).store_unaligned(start);
                }
            }
        }
    }

    /// Finishes all waiting prefixes.
    #[inline(always)]
    pub(super) unsafe fn finish_rest<V: Vector>(&mut self) {
        // SAFETY: the caller guarantees the CPU features and the places.
        unsafe { self.finish::<V>((1 << self.count) - 1) }
        self.count = 0;
    }

    /// Finishes the first vector of waiting prefixes.
    #[inline(always)]
    unsafe fn finish<V: Vector>(&self, bits: u32) {
        let [v0, v1, v2, v3] = &self.states;
        // SAFETY: the caller guarantees the CPU features and the places; all arrays have room for a vector.
        unsafe {
            let states = States {
                v0: V::load_unaligned(v0.as_ptr()),
                v1: V::load_unaligned(v1.as_ptr()),
                v2: V::load_unaligned(v2.as_ptr()),
                v3: V::load_unaligned(v3.as_ptr()),
            };
            let hashes = states.finish(V::load_unaligned(self.last_words.as_ptr()));
            let (ends, offsets) = (V::load_unaligned(self.ends.as_ptr()), V::load_unaligned(self.offsets.as_ptr()));
            hashes.scatter_pairs(ends, self.results, offsets, bits);
        }
    }
}
