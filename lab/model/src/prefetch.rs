//! What prefetching saves, and what prefetches of lines that are never read cost.
//!
//! Sources: Takemasa et al. (2017), 6.5 and 6.7; Takemasa (2019), 4.3.2 and 4.4.

use serde::Serialize;

/// Reduction of a cost from `before` to `after`, in per cent: the papers' "reduces by".
pub fn reduction_percent(before: f64, after: f64) -> f64 {
    100.0 * (1.0 - after / before)
}

/// Cost that remains after successive reductions, each in per cent of what the previous one left.
pub fn after_reductions(before: f64, reductions_percent: &[f64]) -> f64 {
    reductions_percent.iter().fold(before, |cost, reduction| cost * (1.0 - reduction / 100.0))
}

/// Buckets prefetched but not needed when all prefixes of a name are prefetched at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct UselessPrefetches {
    /// Buckets of prefixes shorter than the one that matches.
    pub shorter: u32,
    /// Buckets of prefixes longer than the one that matches: prefetched and searched without a match.
    pub longer: u32,
}

impl UselessPrefetches {
    /// Counts them for a name of `name_components` components with a longest match of `prefix_components`, if all its
    /// prefixes except the empty one are prefetched.
    pub fn of(name_components: u32, prefix_components: u32) -> Self {
        Self::of_lengths(1..=name_components, prefix_components.min(name_components))
    }

    /// As [`of`](Self::of), if only prefixes of these lengths are prefetched: the lengths present in the table, up to
    /// the name's length.
    pub fn of_lengths(lengths: impl IntoIterator<Item = u32>, prefix_components: u32) -> Self {
        lengths.into_iter().fold(UselessPrefetches { shorter: 0, longer: 0 }, |useless, length| UselessPrefetches {
            shorter: useless.shorter + u32::from(length < prefix_components),
            longer: useless.longer + u32::from(length > prefix_components),
        })
    }

    /// All of them.
    pub fn total(self) -> u32 {
        self.shorter + self.longer
    }

    /// Buckets of shorter prefixes as a share of the lines that a packet fetches anyway.
    pub fn share_of(self, lines_per_packet: f64) -> f64 {
        f64::from(self.shorter) / lines_per_packet
    }
}

/// Cycles to search the buckets of `in_vain` prefixes that do not match, `cycles_each` per prefix: what the
/// short-circuit evaluation of Takemasa (2019), 4.3.2, saves.
pub fn cycles_in_vain(in_vain: u32, cycles_each: f64) -> f64 {
    f64::from(in_vain) * cycles_each
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn successive_reductions_of_the_papers_give_the_published_total() {
        // Takemasa (2019), 4.4.1, and Takemasa et al. (2017), 6.5.1: bucket prefetch, pre-hash, speculative look-up.
        for (steps, total) in [([15.03, 9.16, 7.82], 28.85), ([12.62, 12.04, 9.37], 30.34)] {
            let left = after_reductions(1470.0, &steps);
            assert!((reduction_percent(1470.0, left) - total).abs() < 0.01);
        }
    }

    #[test]
    fn useless_prefetches_of_the_papers() {
        // Takemasa et al. (2017), 6.7: prefixes of one, two and three components of four; 16.6 lines per packet.
        let useless = UselessPrefetches::of(4, 4);
        assert_eq!(useless, UselessPrefetches { shorter: 3, longer: 0 });
        assert!((useless.share_of(16.6) - 0.181).abs() < 0.001);
        // Takemasa (2019), 4.3.2: names of 7 components, match at 4, "about 144 CPU cycles".
        assert_eq!(cycles_in_vain(UselessPrefetches::of(7, 4).longer, 48.0), 144.0);
    }

    proptest! {
        #[test]
        fn every_prefix_is_useful_or_not(name in 1u32..64, prefix in 1u32..64) {
            let prefix = prefix.min(name);
            let useless = UselessPrefetches::of(name, prefix);
            prop_assert_eq!(useless.total() + 1, name);
            prop_assert_eq!(UselessPrefetches::of_lengths([prefix], prefix).total(), 0);
        }

        #[test]
        fn reductions_are_undone(before in 1.0..1e6, percent in 0.0..99.0) {
            let after = after_reductions(before, &[percent]);
            prop_assert!((reduction_percent(before, after) - percent).abs() < 1e-6);
        }
    }
}
