//! The router's FIB: longest-first search, with the buckets of all depths prefetched at once.

use namehop_engine::fib::{FibGuess, FibReader, FibWriter, MAX_PREFIX_COMPONENTS, NextHop};
use namehop_hash::HashKey;
use namehop_packet::FaceId;
use namehop_wire::NameRef;

use super::record::{INLINE_BYTES, lines_of};
use super::{Lines, LongestPrefixMatch, LpmError, MAX_GROUP, Query};

/// The FIB; the number of a prefix is the face id of its only next hop.
pub struct LongestFirst {
    writer: FibWriter<()>,
    reader: FibReader<()>,
    /// Bit set of the prefix lengths present, in components.
    lengths: u64,
}

impl LongestFirst {
    /// Creates an empty FIB for names hashed with `key`.
    pub fn new(key: HashKey) -> Result<Self, LpmError> {
        Ok(Self::filled(FibWriter::new(key, ())?, []))
    }

    /// Wraps a filled FIB. Its prefixes have these lengths in components, and one next hop each.
    pub fn filled(writer: FibWriter<()>, lengths: impl IntoIterator<Item = usize>) -> Self {
        let reader = writer.reader();
        LongestFirst { writer, reader, lengths: lengths.into_iter().fold(0, |bits, length| bits | 1 << length) }
    }

    /// Returns the FIB's writer.
    pub fn into_writer(self) -> FibWriter<()> {
        self.writer
    }
}

impl LongestPrefixMatch for LongestFirst {
    fn insert(&mut self, prefix: NameRef<'_>, number: u32) -> Result<(), LpmError> {
        if prefix.is_empty() {
            return Err(LpmError::Empty);
        }
        self.writer.set_nexthops(prefix, &[NextHop { face: FaceId(number), cost: 0 }])?;
        self.lengths |= 1 << prefix.len();
        // This thread holds no references into the FIB here, so the writer may reclaim replaced entries.
        self.reader.quiescent();
        Ok(())
    }

    #[inline]
    fn find(&self, query: &Query<'_>) -> Option<u32> {
        let found = self.reader.longest_prefix_match(query.hashes, query.name);
        found.nexthops().faces().first().map(|face| face.0)
    }

    fn find_group(&self, queries: &[Query<'_>], found: &mut [Option<u32>; MAX_GROUP]) {
        for query in queries {
            self.reader.prefetch_buckets(query.hashes);
        }
        let mut guesses = [FibGuess::default(); MAX_GROUP];
        for (query, guess) in queries.iter().zip(&mut guesses) {
            *guess = self.reader.guess(query.hashes);
            self.reader.prefetch_guessed(*guess);
        }
        for &guess in &guesses[..queries.len()] {
            self.reader.prefetch_extension(guess);
        }
        for (query, found) in queries.iter().zip(found) {
            *found = self.find(query);
        }
    }

    fn lines(&self, query: &Query<'_>) -> Lines {
        let found = self.reader.longest_prefix_match(query.hashes, query.name).nexthop_prefix_len();
        let looked_up = found.max(1)..=query.hashes.depth().min(MAX_PREFIX_COMPONENTS);
        let buckets = looked_up.filter(|length| self.lengths & 1 << length != 0).count();
        let mut lines = Lines::default();
        lines.add(buckets, buckets.min(1));
        if found > 0 {
            lines.add(1, 1);
            let name_bytes = query.hashes.value_bytes(found);
            if name_bytes > INLINE_BYTES {
                // The FIB does not expose the block's address; the block is assumed to start at a cache line.
                lines.add(lines_of(0, name_bytes), 1);
            }
        }
        lines
    }

    fn bytes(&self) -> usize {
        self.writer.statistics().bytes
    }
}
