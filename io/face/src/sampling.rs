//! Random gaps between the packets of a sample.

use std::num::NonZeroU32;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Gaps between sampled packets. They are random because names, and Interests and Data, often alternate; every n-th
/// packet would then be of the same kind.
#[derive(Debug, Clone)]
pub struct SampleGaps {
    /// Twice the mean less 1.
    range: u64,
    random: SplitMix64,
}

impl SampleGaps {
    /// Creates gaps that choose one in `one_in` packets on average. The same seed gives the same gaps.
    pub fn new(one_in: NonZeroU32, seed: u64) -> Self {
        SampleGaps { range: 2 * u64::from(one_in.get()) - 1, random: SplitMix64::seed_from_u64(seed) }
    }

    /// Returns the distance to the next packet of the sample; 1 is the next packet.
    pub fn next_gap(&mut self) -> u32 {
        // From 1 to twice the mean less 1. The modulo bias is negligible for numbers this small.
        u32::try_from(1 + self.random.next_u64() % self.range).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_mean_that_is_asked_for_and_are_not_all_the_same() {
        for one_in in [1, 2, 64, 1000] {
            let mut gaps = SampleGaps::new(NonZeroU32::new(one_in).expect("not 0"), 7);
            let all: Vec<u32> = (0..100_000).map(|_| gaps.next_gap()).collect();
            let mean = all.iter().map(|&gap| f64::from(gap)).sum::<f64>() / all.len() as f64;
            assert!((mean / f64::from(one_in) - 1.0).abs() < 0.02, "{one_in}: {mean}");
            assert!(all.iter().all(|&gap| gap >= 1 && u64::from(gap) < 2 * u64::from(one_in)));
            assert_eq!(all.iter().any(|gap| gap != &all[0]), one_in > 1);
        }
    }
}
