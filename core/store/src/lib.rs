//! Content Store policies: which Data enters the store, and which packet is evicted when it is full.
//!
//! An [`EvictionPolicy`] orders packets, which it knows as small numbers (slots of the Content Store). An
//! [`AdmissionPolicy`] knows hashes of names and decides which Data enters. [`Guarded`] combines one of each into the
//! policy of a store; [`Windowed`] does so behind a window for new Data. No policy holds packets, so the engine and
//! simulations run the same code. None allocates after the start. All operations take constant time, amortised where a
//! hand advances until it finds a victim; only `priority-fifo` takes longer, because it sorts its packets by time.
//!
//! A policy is a file that implements one of the two traits, and a line in the list `policies!` below.
//!
//! | policy | admission | eviction | bytes per slot |
//! |---|---|---|---|
//! | `tinylfu-clock` | requested more often than the victim when that was last examined | as `clock` | 57 to 116 |
//! | `lru` | all | least recently used | 9 to 68 |
//! | `fifo` | all | first in, first out | 9 |
//! | `random` | all | random | 8 |
//! | `lfu` | all | least frequently used | 16 to 64 |
//! | `arc` | all | two lists by last use, which remember evicted names | 44 |
//! | `clock` | all | first in, first out, with another round for used packets | 9 |
//! | `clock-pro` | all | one circle of packets and remembered names with three hands | 44 |
//! | `tinylfu` | requested more often than the victim | as `fifo`, with another round for a victim that wins | 37 |
//! | `tinylfu-random` | requested more often than the victim | random | 36 |
//! | `filter` | requested at least θ times recently | first in, first out | 525, less from 65,536 packets on |
//! | `s3-fifo` | all | two queues, which remember evicted names | 41 |
//! | `sieve` | all | a hand skips used packets | 16 |
//! | `w-tinylfu` | all | a window; packets that leave it must win a comparison | 36 |
//! | `w-tinylfu-clock` | all, into a window; from there as `tinylfu-clock` | the oldest, or as `clock` | 61 to 120 |
//! | `priority-fifo` | all | unsolicited, then stale, then first in, first out | 20 to 32 |
//!
//! The bytes are for a store with a packet in every slot; the memory for remembered names is counted per packet of
//! the capacity.
//!
//! ```
//! use namehop_store::{Arrival, CachePolicy, Parameters, Policy, PolicyKind};
//!
//! // Slots 0 and 1 hold Data. The hashes of its names are 100 and 101.
//! let mut policy = Policy::of(PolicyKind::Lru, &Parameters::new(2, 2))?;
//! for slot in [0, 1] {
//!     let arrival = Arrival::fresh(100 + u64::from(slot));
//!     assert!(policy.admits(&arrival, false));
//!     policy.admitted(slot, &arrival);
//! }
//! policy.hit(0);
//! assert_eq!(policy.victim(), Some(1), "slot 1 is the least recently used");
//! # Ok::<(), namehop_table::TableError>(())
//! ```

#![forbid(unsafe_code)]

pub mod admission;
mod arc;
mod clock;
mod clock_pro;
pub mod eviction;
mod filter;
mod ghosts;
mod in_order;
mod lfu;
mod lines;
mod list;
mod parameters;
mod policy;
mod priority_fifo;
mod random;
mod s3_fifo;
mod sieve;
mod sketch;
mod slots;
mod tinylfu;
mod w_tinylfu;
mod windowed;
mod words;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

pub use admission::{AdmissionPolicy, CachePolicy, Everything, Guarded};
pub use arc::Arc;
pub use clock::Clock;
pub use clock_pro::ClockPro;
pub use eviction::{Ahead, Arrival, EvictionPolicy};
pub use filter::Filter;
pub use in_order::{Fifo, InOrder, Lru};
pub use lfu::Lfu;
pub use lines::Lines;
use namehop_table::TableError;
pub use parameters::{Parameters, PolicyChoice, PolicyChoiceError, Tuning};
pub use policy::{Policy, Progress};
pub use priority_fifo::PriorityFifo;
pub use random::Random;
pub use s3_fifo::S3Fifo;
pub use sieve::Sieve;
pub use tinylfu::{PatientTinyLfu, TINYLFU_SAMPLE, TinyLfu};
pub use w_tinylfu::WTinyLfu;
pub use windowed::Windowed;

/// Makes [`PolicyKind`] from the list of policies: each line has a variant, its name in configurations, the type that
/// joins an admission and an eviction policy, these two, and the cache lines that a hit, a decision and an eviction
/// touch (see [`Lines`]; a test tells the numbers). The first line is the default.
macro_rules! policies {
    ($(
        $policy:ident $name:literal $store:ident $admission:ident $eviction:ident
        ($hit:literal, $decision:literal, $evicting:literal);
    )*) => {
        /// Names of the policies, as in a configuration file.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum PolicyKind {
            $(
                #[doc = concat!(
                    "[`", stringify!($store), "`]: [`", stringify!($admission), "`] admits, [`",
                    stringify!($eviction), "`] evicts; ",
                    "written `", $name, "`."
                )]
                $policy,
            )*
        }

        impl PolicyKind {
            /// All policies; the first is the default.
            pub const ALL: &[PolicyKind] = &[$(PolicyKind::$policy),*];

            /// Returns the name of the policy in a configuration.
            pub const fn name(self) -> &'static str {
                match self {
                    $(PolicyKind::$policy => $name,)*
                }
            }

            /// Returns the number of cache lines that its operations touch.
            pub const fn lines(self) -> Lines {
                match self {
                    $(PolicyKind::$policy => Lines { hit: $hit, decision: $decision, eviction: $evicting },)*
                }
            }

            #[cfg(test)]
            fn model(self, parameters: &Parameters) -> Box<dyn tests::models::Model> {
                use tests::models::HasModel;
                match self {
                    $(PolicyKind::$policy => $store::<$admission, $eviction>::model(parameters),)*
                }
            }

            /// Makes a policy of this kind and passes it to `visitor`, which is compiled for its type.
            ///
            /// # Errors
            /// If the memory for the policy is not available.
            pub fn visit<V: PolicyVisitor>(self, parameters: &Parameters, visitor: V) -> Result<V::Output, TableError> {
                Ok(match self {
                    $(PolicyKind::$policy => visitor.visit($store::<$admission, $eviction>::new(parameters)?),)*
                })
            }
        }
    };
}

policies! {
    TinyLfuClock "tinylfu-clock" Guarded PatientTinyLfu Clock (1.0, 1.3, 5.4);
    Lru "lru" Guarded Everything Lru (4.1, 0.0, 3.3);
    Fifo "fifo" Guarded Everything Fifo (0.0, 0.0, 3.3);
    Random "random" Guarded Everything Random (0.0, 0.0, 4.0);
    Lfu "lfu" Guarded Everything Lfu (5.2, 0.0, 2.7);
    Arc "arc" Guarded Everything Arc (2.9, 1.0, 3.9);
    Clock "clock" Guarded Everything Clock (1.0, 0.0, 4.4);
    ClockPro "clock-pro" Guarded Everything ClockPro (1.0, 1.0, 14.1);
    TinyLfu "tinylfu" Guarded TinyLfu Fifo (0.0, 6.3, 4.3);
    TinyLfuRandom "tinylfu-random" Guarded TinyLfu Random (0.0, 4.0, 5.0);
    Filter "filter" Guarded Filter Fifo (0.0, 1.0, 3.3);
    S3Fifo "s3-fifo" Guarded Everything S3Fifo (1.0, 1.0, 3.7);
    Sieve "sieve" Guarded Everything Sieve (1.0, 0.0, 2.1);
    WTinyLfu "w-tinylfu" Guarded Everything WTinyLfu (3.5, 0.0, 5.5);
    WTinyLfuClock "w-tinylfu-clock" Windowed PatientTinyLfu Clock (1.0, 0.0, 5.6);
    PriorityFifo "priority-fifo" Guarded Everything PriorityFifo (0.0, 0.0, 2.5);
}

/// An operation on a policy of any type.
pub trait PolicyVisitor {
    /// Result of the operation.
    type Output;
    /// Performs the operation.
    fn visit<P: CachePolicy + 'static>(self, policy: P) -> Self::Output;
}

impl Default for PolicyKind {
    fn default() -> Self {
        PolicyKind::ALL[0]
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of a policy is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPolicy(pub String);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown content store policy '{}', expected", self.0)?;
        for (position, kind) in PolicyKind::ALL.iter().enumerate() {
            let separator = match position {
                0 => "",
                _ if position + 1 == PolicyKind::ALL.len() => " or",
                _ => ",",
            };
            write!(f, "{separator} '{kind}'")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for PolicyKind {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let found = PolicyKind::ALL.iter().copied().find(|kind| text.eq_ignore_ascii_case(kind.name()));
        found.ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}
