//! Schedules: how far and how deep the prefetch plane runs ahead of the execution plane.
//!
//! The execution plane (`pipelines`) handles one packet after another and decides everything. The prefetch plane reads
//! packets that are still to come, hashes their names, and prefetches the memory they will need. It changes nothing
//! that the execution plane could observe. So all schedules give the same output for the same input, and differ only in
//! time.
//!
//! The published schedules are [`Naive`], [`BucketPrefetch`], [`PreHash`] and [`Speculative`] (Takemasa, Koizumi and
//! Hasegawa, ICN 2017, sections 4 and 6.5). The publications leave two details of the last one open, so it has four
//! variants:
//!
//! | | entries after the previous packet is handled | entries of two packets, then both are handled |
//! |---|---|---|
//! | entries of all matching tags (ICN 2017, section 4.2) | [`Speculative`] | [`SpeculativePairs`] |
//! | of the first matching tag (Takemasa, 2019, section 4.3.2) | [`SpeculativeFirst`] | [`SpeculativeFirstPairs`] |
//!
//! The router uses [`Burst`]; [`BurstScalar`] is the same without SIMD lanes, to measure their contribution.
//!
//! | file | what |
//! |---|---|
//! | `burst` | the state of the packets of a burst before they are handled |
//! | `prefetch` | what is prefetched for a packet, in three steps |
//! | `lookahead` | the size of a group |
//! | `run` | the order of prefetches and packets, one function for each schedule |
//! | `stripped` | a schedule for the reduced path of the publications |
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

/// Maximum number of packets in a group, which are prefetched together.
pub const MAX_LOOKAHEAD: usize = 64;
/// Maximum number of packets that pass the stages without a gap: a worker's packets of one poll iteration, one burst of
/// its own and one from other workers. Further packets start the stages again, and no other packet hides their first
/// prefetches.
pub const MAX_BURST: usize = 128;

/// A schedule as a type parameter of [`Engine`](crate::Engine).
pub trait Schedule: Send + 'static {
    /// The kind of this schedule.
    const KIND: ScheduleKind;
    /// Whether most of the protocol is omitted, for comparison; only with [`Stripped`].
    const IS_STRIPPED: bool = false;
    /// The clock for its blocks: [`Untimed`] except with [`Timed`].
    type Clock: BlockClock;
}

/// A task that is generic over the schedule, see [`ScheduleKind::call`].
pub trait ScheduleTask {
    /// The result of the task.
    type Output;

    /// Runs the task with schedule `S`.
    fn run<S: Schedule>(self) -> Self::Output;
}

/// No prefetching: every packet waits for its own memory.
#[derive(Debug, Clone, Copy)]
pub enum Naive {}

/// Prefetches a packet's own hash buckets together, as soon as its name is hashed (So et al., ANCS 2013).
#[derive(Debug, Clone, Copy)]
pub enum BucketPrefetch {}

/// Pre-Hash Computation: the next packet's name is hashed, and its buckets are prefetched, before the current packet is
/// handled (ICN 2017, section 4.2).
#[derive(Debug, Clone, Copy)]
pub enum PreHash {}

/// Speculative Hash Table Lookup: like [`PreHash`]. In addition, all FIB entries with matching tags are prefetched,
/// needed or not, before the next packet's name is hashed (ICN 2017, section 4.2); so are the entry that will be
/// evicted for the packet, and then its bucket (section 6.5.1).
#[derive(Debug, Clone, Copy)]
pub enum Speculative {}

/// [`Speculative`] with a short circuit: the search for FIB entries ends at the first matching tag (thesis of 2019,
/// section 4.3.2).
#[derive(Debug, Clone, Copy)]
pub enum SpeculativeFirst {}

/// [`Speculative`] over two packets at a time: both names are hashed, then both packets' entries are prefetched, then
/// both packets are handled. It is another reading of "two consecutive packets" (ICN 2017, section 4.2).
#[derive(Debug, Clone, Copy)]
pub enum SpeculativePairs {}

/// [`SpeculativePairs`] with the short circuit of [`SpeculativeFirst`].
#[derive(Debug, Clone, Copy)]
pub enum SpeculativeFirstPairs {}

/// [`Burst`] with names hashed one after another.
#[derive(Debug, Clone, Copy)]
pub enum BurstScalar {}

/// A burst in groups of packets, each group one stage behind the previous one. The stages: names are hashed in SIMD
/// lanes and buckets prefetched; then entries; then what the entries point to; then the packets are handled.
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
            /// All of them, the simplest first.
            pub const ALL: &[ScheduleKind] = &[$(ScheduleKind::$schedule),*];

            /// Calls `task` with the schedule as a type.
            pub fn call<T: ScheduleTask>(self, task: T) -> T::Output {
                match self {
                    $(ScheduleKind::$schedule => task.run::<$schedule>(),)*
                }
            }

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
    /// One of each technique; for [`Speculative`], both readings of its publication that differ in cost.
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

    /// Returns whether it prefetches the FIB entries of all matching tags, not only of the first.
    pub(crate) const fn fetches_all_entries(self) -> bool {
        matches!(self, ScheduleKind::Speculative | ScheduleKind::SpeculativePairs)
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
