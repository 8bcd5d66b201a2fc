//! The names of all orders, and what each of them prefetches.

use std::fmt;
use std::str::FromStr;

macro_rules! schedules {
    ($($(#[doc = $doc:literal])+ $schedule:ident $name:literal;)*) => {
        /// An order of the engine's steps over a burst.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ScheduleKind {
            $($(#[doc = $doc])+ $schedule,)*
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
        }
    };
}

schedules! {
    /// No prefetching: every packet waits for its own memory.
    Naive "naive";
    /// Prefetches a packet's own hash buckets together, as soon as its name is hashed (So et al., ANCS 2013).
    BucketPrefetch "bucket-prefetch";
    /// Pre-Hash Computation: the next packet's name is hashed, and its buckets are prefetched, before the current
    /// packet is handled (ICN 2017, section 4.2).
    PreHash "pre-hash";
    /// Speculative Hash Table Lookup: like `PreHash`. In addition, all FIB entries with matching tags are prefetched,
    /// needed or not, before the next packet's name is hashed (ICN 2017, section 4.2); so are the entry that will be
    /// evicted for the packet, and then its bucket (section 6.5.1).
    Speculative "speculative";
    /// `Speculative` with a short circuit: the search for FIB entries ends at the first matching tag (thesis of 2019,
    /// section 4.3.2).
    SpeculativeFirst "speculative-first";
    /// `Speculative` over two packets at a time: both names are hashed, then both packets' entries are prefetched, then
    /// both packets are handled. It is another reading of "two consecutive packets" (ICN 2017, section 4.2).
    SpeculativePairs "speculative-pairs";
    /// `SpeculativePairs` with the short circuit of `SpeculativeFirst`.
    SpeculativeFirstPairs "speculative-first-pairs";
    /// `Burst` with names hashed one after another, to measure the contribution of SIMD lanes.
    BurstScalar "burst-scalar";
    /// The router's schedule: groups of packets, each group one stage behind the previous one.
    Burst "burst";
}

impl ScheduleKind {
    /// One of each technique; for `Speculative`, both readings of its publication that differ in cost.
    pub const TECHNIQUES: [ScheduleKind; 6] = [
        ScheduleKind::Naive,
        ScheduleKind::BucketPrefetch,
        ScheduleKind::PreHash,
        ScheduleKind::Speculative,
        ScheduleKind::SpeculativePairs,
        ScheduleKind::Burst,
    ];

    /// Returns whether the schedule was published by others.
    pub const fn is_published(self) -> bool {
        !matches!(self, ScheduleKind::Burst | ScheduleKind::BurstScalar)
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
