//! Adding many prefixes at once: all memory that the insertion of a chunk of them needs is prefetched before the first
//! is inserted.

use arrayvec::ArrayVec;
use namehop_hash::{HashKey, Lanes, PrefixHashes, hash_group};
use namehop_wire::NameRef;

use super::FibWriter;
use super::merge;
use super::update::{NextHopList, Prefix};
use crate::fib::{FibError, NextHop};

/// Number of prefixes processed together: more than the memory accesses that a core keeps in flight, and few enough
/// that their hashes stay in the second-level cache.
const CHUNK: usize = 32;

/// Next hops to add to a prefix.
#[derive(Debug, Clone, Copy)]
pub struct FibAddition<'a> {
    /// The prefix.
    pub prefix: NameRef<'a>,
    /// Its additional next hops. Of several for the same face the last counts.
    pub nexthops: &'a [NextHop],
}

/// The error that a prefix of a bulk addition was refused. The prefixes before it were added; those after it were not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct BulkError {
    /// Index of the refused prefix.
    pub position: usize,
    /// The reason.
    pub error: FibError,
}

pub(super) fn new_chunk_hashes() -> Box<[PrefixHashes]> {
    vec![PrefixHashes::new(); CHUNK].into_boxed_slice()
}

/// Hashes the names of a chunk with all their prefixes. A name that is too deep gets depth 0.
fn hash_chunk(key: &HashKey, chunk: &[FibAddition<'_>], hashes: &mut [PrefixHashes]) {
    let names: ArrayVec<&[u8], CHUNK> = chunk.iter().map(|addition| addition.prefix.value()).collect();
    // A name that cannot be hashed is detected by its depth.
    hash_group(key, Lanes::best(), &names, hashes);
}

/// Returns the hashed prefix; `None` if it is too long for the table.
fn hashed<'a>(addition: &FibAddition<'a>, hashes: &'a PrefixHashes) -> Option<Prefix<'a>> {
    Prefix::of_hashed(addition.prefix.value(), hashes).filter(|prefix| prefix.depth == addition.prefix.len())
}

impl<S: Send + Sync> FibWriter<S> {
    /// Adds next hops to prefixes, in order, as [`add_nexthop`](Self::add_nexthop) does with each, but many times
    /// faster in a large table. For millions of prefixes, call [`reserve`](Self::reserve) first.
    ///
    /// # Errors
    /// If a prefix is refused. To continue, call again with the prefixes after it.
    pub fn add_many(&mut self, additions: &[FibAddition<'_>]) -> Result<(), BulkError> {
        let mut hashes = std::mem::take(&mut self.chunk_hashes);
        let result = additions.chunks(CHUNK).enumerate().try_for_each(|(number, chunk)| {
            self.add_chunk(chunk, &mut hashes)
                .map_err(|error| BulkError { position: number * CHUNK + error.position, ..error })
        });
        self.chunk_hashes = hashes;
        result
    }

    fn add_chunk(&mut self, chunk: &[FibAddition<'_>], hashes: &mut [PrefixHashes]) -> Result<(), BulkError> {
        self.reclaim_if_much();
        hash_chunk(&self.key, chunk, hashes);
        let prefixes: ArrayVec<Option<Prefix<'_>>, CHUNK> =
            chunk.iter().zip(&*hashes).map(|(addition, hashes)| hashed(addition, hashes)).collect();
        for prefix in prefixes.iter().flatten() {
            self.table.prefetch(prefix.hash());
        }
        for prefix in prefixes.iter().flatten() {
            self.prefetch_entry(prefix);
        }
        for (position, (prefix, addition)) in prefixes.iter().zip(chunk).enumerate() {
            let added = match prefix {
                Some(prefix) => self.add_to_prefix(prefix, addition.nexthops),
                None => Err(FibError::PrefixTooLong),
            };
            added.map_err(|error| BulkError { position, error })?;
        }
        Ok(())
    }

    /// Prefetches the entry that the prefix may already have.
    fn prefetch_entry(&self, prefix: &Prefix<'_>) {
        if let Some(index) = self.table.candidates(prefix.hash()).next() {
            self.entries.prefetch_line(index, 0);
            self.entries.prefetch_line(index, 1);
        }
    }

    /// Adds next hops, or changes their costs. Returns the number of faces that were not yet next hops of the prefix.
    pub(super) fn add_to_prefix(&mut self, prefix: &Prefix<'_>, nexthops: &[NextHop]) -> Result<usize, FibError> {
        let old = self.find(prefix);
        let mut list: NextHopList = self.nexthops_of(old).iter().collect();
        let added = merge(&mut list, nexthops)?;
        // Faces are never removed here, so an equal number means that at most costs have changed.
        if added > 0 || !self.nexthops_of(old).iter().eq(list.iter().copied()) {
            self.put_nexthops(prefix, old, &mut list)?;
        }
        Ok(added)
    }
}
