//! Schedules: how far and how deep the hint plane runs ahead of the execution plane.
//!
//! The execution plane (`pipelines`) handles one packet after another and decides everything. The hint plane looks at
//! packets that are still to come, hashes their names, and asks for the memory they will need. It changes nothing that
//! the execution plane could notice, so all schedules give the same output for the same input, and differ in time alone.
//!
//! Published are [`Naive`], [`BucketPrefetch`], [`PreHash`] and [`Speculative`] (Takemasa, Koizumi and Hasegawa, ICN 2017,
//! sections 4 and 6.5). The publications leave two things of the last one open, so it comes in four variants:
//!
//! | | entries after the packet before is handled | entries of two packets, then both are handled |
//! |---|---|---|
//! | entries of all matching tags (ICN 2017, section 4.2) | [`Speculative`] | [`SpeculativePairs`] |
//! | of the first that matches (Takemasa, 2019, section 4.3.2) | [`SpeculativeFirst`] | [`SpeculativeFirstPairs`] |
//!
//! [`Burst`] is what the router uses; [`BurstScalar`] is the same without SIMD lanes, to tell what they contribute.
//!
//! | file | what |
//! |---|---|
//! | `burst` | what is known of the packets of a burst ahead of their turns |
//! | `prefetch` | what to fetch for a packet, in three steps |
//! | `lookahead` | how many packets are looked at together |
//! | `run` | the order of prefetches and packets, one function for each schedule |
//! | `stripped` | what the publications left out, left out |
//! | `timed` | the same with a clock for its blocks |

mod burst;
mod lookahead;
mod prefetch;
mod run;
mod stripped;
mod timed;

use std::fmt;
use std::str::FromStr;

use crate::flow::{BlockClock, Untimed};
pub(crate) use burst::{BurstState, Prepared};
pub use lookahead::lookahead_for;
pub use stripped::Stripped;
pub use timed::Timed;

/// Packets whose memory is fetched together, at the most.
pub const MAX_LOOKAHEAD: usize = 64;
/// Packets that follow each other through the stages without a gap: as many as a worker has in a turn, a burst of its own and one
/// from other workers. What does not fit begins anew, and has nobody to hide its first fetches behind.
pub const MAX_BURST: usize = 128;

/// A schedule as a type parameter of [`Engine`](crate::Engine).
pub trait Schedule: Send + 'static {
    /// Which one it is.
    const KIND: ScheduleKind;
    /// Is most of the protocol left out, for comparison? Only with [`Stripped`].
    const IS_STRIPPED: bool = false;
    /// What measures its blocks: nothing, except with [`Timed`].
    type Clock: BlockClock;
}

/// What can be done with any schedule, see [`ScheduleKind::call`].
pub trait ScheduleTask {
    /// What comes of it.
    type Output;

    /// Does it with this one.
    fn run<S: Schedule>(self) -> Self::Output;
}

/// No hints: every packet waits for its own memory.
#[derive(Debug, Clone, Copy)]
pub enum Naive {}

/// A packet's own hash buckets are fetched together, as soon as its name is hashed (So et al., ANCS 2013).
#[derive(Debug, Clone, Copy)]
pub enum BucketPrefetch {}

/// Pre-Hash Computation: the next packet's name is hashed, and its buckets are fetched, before the packet at hand is
/// handled (ICN 2017, section 4.2).
#[derive(Debug, Clone, Copy)]
pub enum PreHash {}

/// Speculative Hash Table Lookup: like [`PreHash`], and all FIB entries whose tags match are fetched, needed or not, before
/// the next packet's name is hashed (ICN 2017, section 4.2); so is the entry that will be given up for the packet, and then its
/// bucket (section 6.5.1).
#[derive(Debug, Clone, Copy)]
pub enum Speculative {}

/// [`Speculative`] with a short circuit: the search for FIB entries ends at the first tag that matches (thesis of 2019, section
/// 4.3.2).
#[derive(Debug, Clone, Copy)]
pub enum SpeculativeFirst {}

/// [`Speculative`] over two packets at a time: both names are hashed, then both packets' entries are fetched, then both
/// packets are handled. It is another reading of "two consecutive packets" (ICN 2017, section 4.2).
#[derive(Debug, Clone, Copy)]
pub enum SpeculativePairs {}

/// [`SpeculativePairs`] with the short circuit of [`SpeculativeFirst`].
#[derive(Debug, Clone, Copy)]
pub enum SpeculativeFirstPairs {}

/// [`Burst`] with names hashed one after another.
#[derive(Debug, Clone, Copy)]
pub enum BurstScalar {}

/// A burst in groups of packets, each group one stage behind the one before it: names are hashed in SIMD lanes and buckets
/// fetched; then entries; then what entries point to; then the packets are handled.
#[derive(Debug, Clone, Copy)]
pub enum Burst {}

macro_rules! schedules {
    ($($schedule:ident $name:literal;)*) => {
        /// All schedules.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ScheduleKind {
            $(
                #[doc = concat!("[`", stringify!($schedule), "`](enum@", stringify!($schedule), ").")]
                $schedule,
            )*
        }

        $(
            impl Schedule for $schedule {
                const KIND: ScheduleKind = ScheduleKind::$schedule;
                type Clock = Untimed;
            }
        )*

        impl ScheduleKind {
            /// All of them, from the simplest on.
            pub const ALL: &[ScheduleKind] = &[$(ScheduleKind::$schedule),*];

            /// Calls `task` with the schedule as a type.
            pub fn call<T: ScheduleTask>(self, task: T) -> T::Output {
                match self {
                    $(ScheduleKind::$schedule => task.run::<$schedule>(),)*
                }
            }

            /// How it is written in commands and results.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ScheduleKind::$schedule => $name,)*
                }
            }
        }
    };
}

schedules! {
    Naive "naive";
    BucketPrefetch "bucket-prefetch";
    PreHash "pre-hash";
    Speculative "speculative";
    SpeculativeFirst "speculative-first";
    SpeculativePairs "speculative-pairs";
    SpeculativeFirstPairs "speculative-first-pairs";
    BurstScalar "burst-scalar";
    Burst "burst";
}

impl ScheduleKind {
    /// One of each technique; of [`Speculative`] both readings of its publication that differ in cost.
    pub const TECHNIQUES: [ScheduleKind; 6] = [
        ScheduleKind::Naive,
        ScheduleKind::BucketPrefetch,
        ScheduleKind::PreHash,
        ScheduleKind::Speculative,
        ScheduleKind::SpeculativePairs,
        ScheduleKind::Burst,
    ];

    /// Was it published by others?
    pub const fn is_published(self) -> bool {
        !matches!(self, ScheduleKind::Burst | ScheduleKind::BurstScalar)
    }

    /// Does it fetch more than buckets?
    pub(crate) const fn fetches_entries(self) -> bool {
        !matches!(self, ScheduleKind::Naive | ScheduleKind::BucketPrefetch | ScheduleKind::PreHash)
    }

    /// Does it fetch the FIB entries of all tags that match, and not of the first alone?
    pub(crate) const fn fetches_all_entries(self) -> bool {
        matches!(self, ScheduleKind::Speculative | ScheduleKind::SpeculativePairs)
    }
}

impl fmt::Display for ScheduleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// There is no schedule with this name.
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
