//! SipHash-2-4 (Aumasson and Bernstein, 2012) in every lane of a vector.

use super::vector::Vector;
use crate::HashKey;
use crate::siphash::State;

/// One state per lane.
#[derive(Clone, Copy)]
pub(super) struct States<V> {
    pub(super) v0: V,
    pub(super) v1: V,
    pub(super) v2: V,
    pub(super) v3: V,
}

/// # Safety
/// Every function requires the same as [`Vector`].
impl<V: Vector> States<V> {
    /// The state before the first word, in every lane.
    #[inline(always)]
    pub(super) unsafe fn new(key: &HashKey) -> Self {
        let [v0, v1, v2, v3] = State::new(key).words();
        // SAFETY: the caller guarantees the CPU features.
        unsafe { States { v0: V::splat(v0), v1: V::splat(v1), v2: V::splat(v2), v3: V::splat(v3) } }
    }

    /// Returns `other` in the chosen lanes and `self` elsewhere.
    #[inline(always)]
    pub(super) unsafe fn replace(self, mask: V::Mask, other: Self) -> Self {
        // SAFETY: the caller guarantees the CPU features.
        unsafe {
            States {
                v0: self.v0.replace(mask, other.v0),
                v1: self.v1.replace(mask, other.v1),
                v2: self.v2.replace(mask, other.v2),
                v3: self.v3.replace(mask, other.v3),
            }
        }
    }

    /// Compresses one word.
    #[inline(always)]
    pub(super) unsafe fn compress(&mut self, word: V) {
        // SAFETY: the caller guarantees the CPU features.
        unsafe {
            self.v3 = self.v3.xor(word);
            self.round();
            self.round();
            self.v0 = self.v0.xor(word);
        }
    }

    /// Returns the hashes; `last` holds the last words: the remaining bytes, with the length in the top byte.
    #[inline(always)]
    pub(super) unsafe fn finish(mut self, last: V) -> V {
        // SAFETY: the caller guarantees the CPU features.
        unsafe {
            self.compress(last);
            self.v2 = self.v2.xor(V::splat(0xff));
            self.round();
            self.round();
            self.round();
            self.round();
            self.v0.xor(self.v1).xor(self.v2.xor(self.v3))
        }
    }

    #[inline(always)]
    unsafe fn round(&mut self) {
        // SAFETY: the caller guarantees the CPU features.
        unsafe {
            self.v0 = self.v0.add(self.v1);
            self.v2 = self.v2.add(self.v3);
            self.v1 = self.v1.rotate_left::<13>().xor(self.v0);
            self.v3 = self.v3.rotate_left::<16>().xor(self.v2);
            self.v0 = self.v0.rotate_left::<32>();
            self.v2 = self.v2.add(self.v1);
            self.v0 = self.v0.add(self.v3);
            self.v1 = self.v1.rotate_left::<17>().xor(self.v2);
            self.v3 = self.v3.rotate_left::<21>().xor(self.v0);
            self.v2 = self.v2.rotate_left::<32>();
        }
    }
}
