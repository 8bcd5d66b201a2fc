//! The router's FIB: longest-first search, buckets of all depths prefetched at once.

use namehop_forward::face::FaceId;
use namehop_forward::fib::{FibReader, FibWriter, NextHop};
use namehop_hash::HashKey;
use namehop_wire::NameRef;

use super::{LongestPrefixMatch, LpmError, MAX_GROUP, Query};

/// The FIB; a prefix's number is the face of its one next hop.
pub struct LongestFirst {
    writer: FibWriter<()>,
    reader: FibReader<()>,
}

impl LongestFirst {
    /// An empty FIB for names hashed with `key`.
    pub fn new(key: HashKey) -> Result<Self, LpmError> {
        Ok(FibWriter::new(key, ())?.into())
    }

    /// The FIB itself.
    pub fn into_writer(self) -> FibWriter<()> {
        self.writer
    }
}

impl From<FibWriter<()>> for LongestFirst {
    fn from(writer: FibWriter<()>) -> Self {
        let reader = writer.reader();
        LongestFirst { writer, reader }
    }
}

impl LongestPrefixMatch for LongestFirst {
    fn insert(&mut self, prefix: NameRef<'_>, number: u32) -> Result<(), LpmError> {
        if prefix.is_empty() {
            return Err(LpmError::Empty);
        }
        self.writer.set_nexthops(prefix, &[NextHop { face: FaceId(number), cost: 0 }])?;
        // This thread reads nothing now, and the writer may reclaim what it replaced.
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
        for query in queries {
            self.reader.prefetch_guessed(self.reader.guess(query.hashes));
        }
        for (query, found) in queries.iter().zip(found) {
            *found = self.find(query);
        }
    }

    fn bytes(&self) -> usize {
        self.writer.statistics().bytes
    }
}
