//! Schedules: how far and how deep the hint plane runs ahead of the execution plane.
//!
//! The execution plane (`pipelines`) handles one packet after another and decides everything. The hint plane looks at
//! packets that are still to come, hashes their names, and asks for the memory they will need. It changes nothing that
//! the execution plane could notice, so all schedules give the same output for the same input, and differ in time alone.
//!
//! Four schedules are published ones: [`Naive`] to [`Speculative`] (Takemasa, Koizumi and Hasegawa, ICN 2017, section 4 and
//! 6.5). [`Burst`] is what the router uses.
//!
//! | file | what |
//! |---|---|
//! | `summary` | what is known of a packet ahead of its turn: its layout, decoded once, and what is guessed |
//! | `hints` | what to fetch for a packet, in three steps |
//! | `lookahead` | how many packets are looked at together |
//! | `run` | the order of hints and packets, one function for each schedule |
//! | `stripped` | what the publications left out, left out |

mod hints;
mod lookahead;
mod run;
mod stripped;
mod summary;

use std::fmt;
use std::str::FromStr;

pub use lookahead::lookahead_for;
pub use stripped::Stripped;
pub(crate) use summary::{Kind, Known, Scratch, Summary};

/// Packets that the hint plane looks at together.
pub const MAX_BURST: usize = 64;

/// A schedule as a type parameter of [`Engine`](crate::Engine).
pub trait Schedule: Send + 'static {
    /// Which one it is.
    const KIND: ScheduleKind;
    /// Is most of the protocol left out, for comparison? Only with [`Stripped`].
    const IS_STRIPPED: bool = false;
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

/// Speculative Hash Table Lookup: like [`PreHash`], and all entries that a packet's buckets point to are fetched, needed or
/// not, before the next packet's name is hashed (ICN 2017, section 4.2).
#[derive(Debug, Clone, Copy)]
pub enum Speculative {}

/// A burst in groups of packets, each group one stage behind the one before it: names are hashed in SIMD lanes and buckets
/// fetched; then entries; then what entries point to; then the packets are handled.
#[derive(Debug, Clone, Copy)]
pub enum Burst {}

/// All schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScheduleKind {
    /// [`Naive`].
    Naive,
    /// [`BucketPrefetch`].
    BucketPrefetch,
    /// [`PreHash`].
    PreHash,
    /// [`Speculative`].
    Speculative,
    /// [`Burst`].
    Burst,
}

impl Schedule for Naive {
    const KIND: ScheduleKind = ScheduleKind::Naive;
}

impl Schedule for BucketPrefetch {
    const KIND: ScheduleKind = ScheduleKind::BucketPrefetch;
}

impl Schedule for PreHash {
    const KIND: ScheduleKind = ScheduleKind::PreHash;
}

impl Schedule for Speculative {
    const KIND: ScheduleKind = ScheduleKind::Speculative;
}

impl Schedule for Burst {
    const KIND: ScheduleKind = ScheduleKind::Burst;
}

impl ScheduleKind {
    /// All of them, from the simplest on.
    pub const ALL: [ScheduleKind; 5] = [
        ScheduleKind::Naive,
        ScheduleKind::BucketPrefetch,
        ScheduleKind::PreHash,
        ScheduleKind::Speculative,
        ScheduleKind::Burst,
    ];

    /// How it is written in commands and results.
    pub const fn name(self) -> &'static str {
        match self {
            ScheduleKind::Naive => "naive",
            ScheduleKind::BucketPrefetch => "bucket-prefetch",
            ScheduleKind::PreHash => "pre-hash",
            ScheduleKind::Speculative => "speculative",
            ScheduleKind::Burst => "burst",
        }
    }
}

impl fmt::Display for ScheduleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// There is no schedule with this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown schedule '{0}', expected naive, bucket-prefetch, pre-hash, speculative or burst")]
pub struct UnknownSchedule(pub String);

impl FromStr for ScheduleKind {
    type Err = UnknownSchedule;

    fn from_str(text: &str) -> Result<Self, UnknownSchedule> {
        let found = ScheduleKind::ALL.into_iter().find(|kind| text.eq_ignore_ascii_case(kind.name()));
        found.ok_or_else(|| UnknownSchedule(text.to_owned()))
    }
}
