//! The forwarding information base: next hops and strategies of prefixes, by longest prefix match.
//!
//! FIB and strategy choices share one table of prefixes, so that a packet needs one lookup for both. An entry has its
//! own next hops, its own strategy, or both; it inherits the other from the nearest shorter prefix that has it.
//! Inheritance is resolved when the table is changed, so that a lookup follows at most one reference.
//!
//! One [`FibWriter`] (the control thread) changes the table; any number of [`FibReader`]s (one per worker) look up
//! names without locks. An entry's name and next hops never change: an update builds a new entry and publishes it with
//! one atomic store, and the old one is reclaimed when every reader has passed a quiescent state.
//!
//! The table knows strategies as a type parameter only.

mod entry;
mod reader;
mod shared;
mod writer;

#[cfg(test)]
mod tests;

use namehop_packet::FaceId;
use namehop_table::TableError;

pub use reader::{FibGuess, FibMatch, FibReader};
pub use writer::{BulkError, FibAddition, FibCursor, FibStatistics, FibWriter};

/// Maximum number of components of a prefix in the FIB, as in NFD.
pub const MAX_PREFIX_COMPONENTS: usize = 32;
/// Maximum number of next hops of an entry.
pub const MAX_NEXTHOPS: usize = 32;

/// Returns the bytes of a FIB with this number of prefixes, each with one next hop and a Name VALUE of `name_bytes`.
/// The FIB grows by doubling the capacity of its buckets.
pub fn fib_bytes(prefixes: usize, name_bytes: usize) -> usize {
    prefixes * entry::entry_bytes(name_bytes) + namehop_table::bucket_bytes(writer::growth::grown_capacity(prefixes))
}

/// The next hops of a prefix, sorted by cost; of equal cost in the order in which the caller adds or places them.
#[derive(Debug, Clone, Copy, Default)]
pub struct NextHops<'a> {
    faces: &'a [FaceId],
    costs: Costs<'a>,
}

/// Costs of next hops.
#[derive(Debug, Clone, Copy)]
enum Costs<'a> {
    /// One cost for each next hop.
    Listed(&'a [u64]),
    /// The cost of the only next hop.
    Only(u32),
}

impl Default for Costs<'_> {
    fn default() -> Self {
        Costs::Listed(&[])
    }
}

impl Costs<'_> {
    fn get(self, index: usize) -> u64 {
        match self {
            Costs::Listed(costs) => costs[index],
            Costs::Only(cost) => u64::from(cost),
        }
    }
}

impl<'a> NextHops<'a> {
    /// Returns the faces, best first. Reading only these touches less memory than reading next hops.
    #[inline(always)]
    pub fn faces(self) -> &'a [FaceId] {
        self.faces
    }

    /// Returns the next hops, best first.
    pub fn iter(self) -> impl ExactSizeIterator<Item = NextHop> + 'a {
        self.faces.iter().enumerate().map(move |(index, &face)| NextHop { face, cost: self.costs.get(index) })
    }

    /// Returns the number of next hops.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.faces.len()
    }

    /// Returns whether there is no next hop.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.faces.is_empty()
    }

    /// Returns a copy of the next hops.
    pub fn to_vec(self) -> Vec<NextHop> {
        self.iter().collect()
    }
}

/// A face that leads to a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NextHop {
    /// The face.
    pub face: FaceId,
    /// Lower is better. No unit.
    pub cost: u64,
}

/// The reason why a change of the FIB was refused. Nothing has changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FibError {
    /// The prefix has more than [`MAX_PREFIX_COMPONENTS`] components.
    #[error("prefix has more than {MAX_PREFIX_COMPONENTS} components")]
    PrefixTooLong,
    /// The entry would have more than [`MAX_NEXTHOPS`] next hops.
    #[error("entry would have more than {MAX_NEXTHOPS} next hops")]
    TooManyNextHops,
    /// The strategy of the root prefix can be replaced but not removed.
    #[error("the strategy of the root prefix cannot be unset")]
    RootStrategy,
    /// The prefix, or one above it, is dedicated to one face ([`FibWriter::dedicate`]).
    #[error("the router itself answers names under this prefix")]
    Dedicated,
    /// There is no memory for the entry.
    #[error(transparent)]
    Memory(#[from] TableError),
}
