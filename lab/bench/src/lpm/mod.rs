//! Longest prefix match in three structures over the same prefixes, for comparison.
//!
//! * [`LongestFirst`]: the router's own FIB, searched from the longest prefix down (Takemasa 2019, 4.1.2);
//! * [`TwoStage`]: the 2-stage search of So et al. (ANCS 2013);
//! * [`Patricia`]: a binary Patricia trie (Song et al., ICN 2015).
//!
//! The last two exist for measurements only. A prefix is stored with a number of at most 32 bits in place of next hops, in
//! records that are as large as an entry of the FIB and hold as long a name.

mod longest_first;
mod measure;
mod patricia;
mod record;
mod two_stage;

use namehop_engine::fib::FibError;
use namehop_hash::PrefixHashes;
use namehop_table::TableError;
use namehop_wire::NameRef;

pub use longest_first::LongestFirst;
pub use measure::{LookupFigures, LookupOptions, MeanLines, count_lines, measure_lookups, vain_lookup_cycles};
pub use patricia::Patricia;
use record::Record;
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

/// Cache lines that a lookup touches, counted by going its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lines {
    /// All of them; what is looked at twice counts once.
    pub all: usize,
    /// The most that wait for each other one after the other, because the address of the next is in the one before or
    /// depends on what that says.
    pub dependent: usize,
}

impl Lines {
    /// Lines of one stage, `dependent` of them one after the other.
    fn add(&mut self, all: usize, dependent: usize) {
        self.all += all;
        self.dependent += dependent;
    }

    fn add_record(&mut self, record: &Record) {
        let (all, dependent) = record.lines();
        self.add(all, dependent);
    }
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

    /// Cache lines of the structure that [`find`](Self::find) touches, overflow buckets and equal tags of other names not
    /// counted.
    fn lines(&self, query: &Query<'_>) -> Lines;

    /// Bytes of memory in use, as near as the structure knows.
    fn bytes(&self) -> usize;
}

#[cfg(test)]
mod tests;
