//! The names of all orders, and what each of them prefetches.

use std::fmt;
use std::str::FromStr;

macro_rules! schedules {
    ($($schedule:ident $name:literal $about:literal;)*) => {
        /// An order of the engine's steps over a burst.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ScheduleKind {
            $(#[doc = $about] $schedule,)*
        }

        impl ScheduleKind {
            /// All of them, the simplest first.
            pub const ALL: &[ScheduleKind] = &[$(ScheduleKind::$schedule),*];

            /// Returns the name used in commands and results.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ScheduleKind::$schedule => $name,)*
                }
            }

            /// Returns what it does, in one line, and where it is published.
            pub const fn about(self) -> &'static str {
                match self {
                    $(ScheduleKind::$schedule => $about,)*
                }
            }
        }
    };
}

schedules! {
    Naive "naive"
        "Prefetches nothing (ICN 2017, 6.5)";
    BucketPrefetch "bucket-prefetch"
        "Prefetches a packet's own buckets as soon as its name is hashed (So et al., ANCS 2013; ICN 2017, 6.5)";
    PreHash "pre-hash"
        "Hashes the next packet's name and prefetches its buckets before a packet is handled (ICN 2017, 4.2)";
    Speculative "speculative"
        "As pre-hash, and prefetches all entries with matching tags before the next name is hashed (ICN 2017, 4.2)";
    SpeculativeFirst "speculative-first"
        "As speculative, but of FIB entries only the longest with a matching tag (thesis of 2019, 4.3.2)";
    SpeculativePairs "speculative-pairs"
        "Hashes two names, prefetches the entries of both packets, then handles both (ICN 2017, 4.2, another reading)";
    SpeculativeContents "speculative-contents"
        "As speculative, and prefetches what entries point to before a packet is handled (ICN 2017, 6.5.1)";
    SpeculativeFirstContents "speculative-first-contents"
        "As speculative-first, and prefetches what entries point to before a packet is handled (ICN 2017, 6.5.1)";
    BurstScalar "burst-scalar"
        "As burst, with names hashed one by one, to measure the contribution of SIMD lanes";
    Burst "burst"
        "Passes groups of packets through stages, each group one stage behind the group before it: the router's own";
}

impl ScheduleKind {
    /// The orders to compare: all published ones, so that the best of them is among them, and the router's own.
    pub fn compared() -> Vec<ScheduleKind> {
        Self::ALL.iter().copied().filter(|kind| kind.is_published() || *kind == ScheduleKind::Burst).collect()
    }

    /// Returns whether the schedule was published by others.
    pub const fn is_published(self) -> bool {
        !matches!(self, ScheduleKind::Burst | ScheduleKind::BurstScalar)
    }

    /// Returns whether it is a variant of Speculative Hash Table Lookup (ICN 2017, 4.2).
    pub const fn is_speculative(self) -> bool {
        self.is_published() && self.fetches_entries()
    }

    /// Returns whether it prefetches more than buckets.
    pub(crate) const fn fetches_entries(self) -> bool {
        !matches!(self, ScheduleKind::Naive | ScheduleKind::BucketPrefetch | ScheduleKind::PreHash)
    }
}

impl fmt::Display for ScheduleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error that no schedule has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown schedule '{name}', expected one of: {}", names(), name = .0)]
pub struct UnknownSchedule(pub String);

fn names() -> String {
    ScheduleKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for ScheduleKind {
    type Err = UnknownSchedule;

    fn from_str(text: &str) -> Result<Self, UnknownSchedule> {
        let found = ScheduleKind::ALL.iter().copied().find(|kind| text.eq_ignore_ascii_case(kind.name()));
        found.ok_or_else(|| UnknownSchedule(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_has_a_row_for_each_order() {
        let page = include_str!("../../../docs/benchmarks.md");
        for kind in ScheduleKind::ALL {
            let row = format!("| `{kind}` | {} |", kind.about());
            assert!(page.contains(&row), "docs/benchmarks.md lacks: {row}");
        }
    }

    #[test]
    fn all_published_orders_are_compared_with_the_routers() {
        let compared = ScheduleKind::compared();
        assert_eq!(compared.last(), Some(&ScheduleKind::Burst));
        assert!(ScheduleKind::ALL.iter().all(|kind| !kind.is_published() || compared.contains(kind)));
        assert!(!compared.contains(&ScheduleKind::BurstScalar));
    }
}
