//! Longest prefix match in three structures over the same prefixes, for comparison.
//!
//! * [`LongestFirst`]: the router's FIB, searched from the longest prefix down (Takemasa 2019, 4.1.2);
//! * [`TwoStage`]: the 2-stage search of So et al. (ANCS 2013);
//! * [`Patricia`]: a binary Patricia trie (Song et al., ICN 2015).
//!
//! The last two exist for measurements only. They store a number of up to 32 bits per prefix in place of next hops.
//! Their records are as large as a FIB entry and hold equally long names inline.

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

/// Maximum number of names looked up as one group.
pub const MAX_GROUP: usize = 64;
/// Maximum size in bytes of a prefix in the comparison structures.
pub const MAX_PREFIX_BYTES: usize = 112;

/// A name to look up, with the hashes of its prefixes.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The name.
    pub name: NameRef<'a>,
    /// Hashes of all prefixes of the name, with the structure's key.
    pub hashes: &'a PrefixHashes,
}

/// Why a prefix was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LpmError {
    /// The prefix is longer than [`MAX_PREFIX_BYTES`].
    #[error("a prefix must have at most {MAX_PREFIX_BYTES} bytes")]
    PrefixTooLong,
    /// The structure's capacity is exhausted.
    #[error("the structure is full")]
    Full,
    /// The prefix is empty.
    #[error("a prefix must have at least one component")]
    Empty,
    /// Memory could not be allocated.
    #[error(transparent)]
    Memory(#[from] TableError),
    /// The FIB refused the prefix.
    #[error(transparent)]
    Fib(#[from] FibError),
}

/// Cache lines that a lookup reads, counted by repeating its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lines {
    /// All lines; a line read twice counts once.
    pub all: usize,
    /// Length of the longest chain of dependent lines: the address of the next line is in the one before, or depends on
    /// its content.
    pub dependent: usize,
}

impl Lines {
    /// Adds the lines of one stage, `dependent` of which are read one after the other.
    fn add(&mut self, all: usize, dependent: usize) {
        self.all += all;
        self.dependent += dependent;
    }

    fn add_record(&mut self, record: &Record) {
        let (all, dependent) = record.lines();
        self.add(all, dependent);
    }
}

/// A structure for longest prefix match.
pub trait LongestPrefixMatch {
    /// Stores `number` under a prefix; replaces an existing number.
    fn insert(&mut self, prefix: NameRef<'_>, number: u32) -> Result<(), LpmError>;

    /// Returns the number of the longest prefix of the name.
    fn find(&self, query: &Query<'_>) -> Option<u32>;

    /// As [`find`](Self::find) for up to [`MAX_GROUP`] names, with overlapping memory accesses as far as the structure
    /// allows: each stage prefetches what the next one reads. Writes the results to the first elements of `found`.
    fn find_group(&self, queries: &[Query<'_>], found: &mut [Option<u32>; MAX_GROUP]);

    /// Cache lines of the structure that [`find`](Self::find) reads, except overflow buckets and candidates with an
    /// equal tag of another name.
    fn lines(&self, query: &Query<'_>) -> Lines;

    /// Memory in use in bytes, as accurately as the structure knows.
    fn bytes(&self) -> usize;
}

#[cfg(test)]
mod tests;
