//! Longest prefix match in three structures over the same prefixes, for comparison.
//!
//! * [`LongestFirst`]: the router's own FIB, searched from the longest prefix down (Takemasa 2019, 4.1.2);
//! * [`TwoStage`]: the 2-stage search of So et al. (ANCS 2013);
//! * [`Patricia`]: a binary Patricia trie (Song et al., ICN 2015).
//!
//! The last two exist for measurements only. A prefix is stored with a number of at most 32 bits in place of next hops.

mod longest_first;
mod measure;
mod patricia;
mod two_stage;

use namehop_forward::fib::FibError;
use namehop_hash::PrefixHashes;
use namehop_table::TableError;
use namehop_wire::NameRef;

pub use longest_first::LongestFirst;
pub use measure::{LookupFigures, LookupOptions, measure_lookups};
pub use patricia::Patricia;
pub use two_stage::TwoStage;

/// Most names that are looked up as one group.
pub const MAX_GROUP: usize = 64;
/// Bytes of the longest prefix that the comparison structures hold.
pub const MAX_PREFIX_BYTES: usize = 112;

/// A name to look up, and the hashes of its prefixes.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The name.
    pub name: NameRef<'a>,
    /// Hashes of all its prefixes, with the structure's key.
    pub hashes: &'a PrefixHashes,
}

/// Why a prefix was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LpmError {
    /// Longer than [`MAX_PREFIX_BYTES`].
    #[error("prefixes of more than {MAX_PREFIX_BYTES} bytes are not compared")]
    PrefixTooLong,
    /// The structure was made for fewer prefixes.
    #[error("more prefixes than the structure was made for")]
    Full,
    /// The empty prefix.
    #[error("prefixes of no components are not compared")]
    Empty,
    /// No memory.
    #[error(transparent)]
    Memory(#[from] TableError),
    /// The FIB refused it.
    #[error(transparent)]
    Fib(#[from] FibError),
}

/// A structure that finds the longest prefix of a name.
pub trait LongestPrefixMatch {
    /// Stores `number` under a prefix; replaces what was there.
    fn insert(&mut self, prefix: NameRef<'_>, number: u32) -> Result<(), LpmError>;

    /// The number of the longest prefix of the name.
    fn find(&self, query: &Query<'_>) -> Option<u32>;

    /// The same for at most [`MAX_GROUP`] names, whose memory accesses overlap as far as the structure allows: in
    /// stages, each of which asks for what the next reads. Writes to the first places of `found`.
    fn find_group(&self, queries: &[Query<'_>], found: &mut [Option<u32>; MAX_GROUP]);

    /// Bytes of memory in use, as near as the structure knows.
    fn bytes(&self) -> usize;
}

#[cfg(test)]
mod tests;
