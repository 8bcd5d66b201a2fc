//! Seeded bijections on the integers below a power of two.
//!
//! They shuffle a sequence without a table: the positions of a walk through memory, and the bytes of names.

/// A bijection on `0..2^bits`; see the module's description. Made for benchmarks, not against adversaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permutation {
    mask: u64,
    shift: u32,
    key: u64,
}

impl Permutation {
    /// Makes the bijection of `seed` on integers of `bits` bits.
    ///
    /// # Panics
    /// If `bits` is not in 1 to 64.
    pub const fn new(bits: u32, seed: u64) -> Self {
        assert!(bits >= 1 && bits <= u64::BITS, "bits must be in 1 to 64");
        Permutation { mask: u64::MAX >> (u64::BITS - bits), shift: bits.div_ceil(2), key: mix(seed) }
    }

    /// Returns the image of `number`. Bits of `number` above the range are ignored.
    #[inline(always)]
    pub const fn apply(&self, number: u64) -> u64 {
        // Each step is a bijection on the masked bits: addition, multiplication by an odd number, xor with a right
        // shift. Multiplication spreads changes to higher bits, and the shift brings them back to lower bits.
        let mut x = number.wrapping_add(self.key) & self.mask;
        x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15) & self.mask;
        x ^= x >> self.shift;
        x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9) & self.mask;
        x ^= x >> self.shift;
        x = x.wrapping_mul(0x94d0_49bb_1331_11eb) & self.mask;
        x ^ x >> self.shift
    }
}

/// Returns a well-mixed number for every number, one to one (the finalizer of Steele et al.'s SplitMix, 2014). This
/// is not a library's generator, because callers need any element of the sequence without its predecessors, and the
/// same one in every version.
#[inline(always)]
pub const fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_ranges_are_permuted_completely() {
        for bits in 1..=16 {
            for seed in 0..4 {
                let permutation = Permutation::new(bits, seed);
                let images: HashSet<u64> = (0..1 << bits).map(|number| permutation.apply(number)).collect();
                assert_eq!(images.len(), 1 << bits);
                assert!(images.iter().all(|&image| image < 1 << bits));
            }
        }
    }

    #[test]
    fn neighbours_are_sent_far_apart() {
        let permutation = Permutation::new(26, 7);
        let near = (0..10_000u64)
            .filter(|&number| permutation.apply(number).abs_diff(permutation.apply(number + 1)) < 1 << 14)
            .count();
        // By chance about 2 · 2^14 / 2^26 of them are that close.
        assert!(near < 40, "{near}");
    }

    proptest! {
        #[test]
        fn images_differ(bits in 1u32..=64, seed: u64, a: u64, b: u64) {
            let permutation = Permutation::new(bits, seed);
            let mask = u64::MAX >> (64 - bits);
            prop_assert_eq!(permutation.apply(a) == permutation.apply(b), a & mask == b & mask);
            prop_assert!(permutation.apply(a) <= mask);
        }
    }
}
