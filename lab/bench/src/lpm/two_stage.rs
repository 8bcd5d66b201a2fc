//! 2-stage search in a hash table: So et al., "Named Data Networking on a Router: Fast and DoS-resistant Forwarding
//! with Hash Tables" (ANCS 2013), as Takemasa (2019), 4.1.2, describes it.
//!
//! The search starts with the prefix of M components. Its entry has the length of the longest prefix below it, which
//! decides whether the search continues with longer prefixes, longest first, or with shorter ones. A longer prefix
//! needs an entry for its first M components; if none exists, one without a number is added, called virtual entry.

use namehop_hash::{HashKey, hash_name};
use namehop_table::prefetch::CACHE_LINE_BYTES;
use namehop_table::{Arena, BucketTable, PageRequest};
use namehop_wire::NameRef;

use super::record::{Record, block_bytes};
use super::{Lines, LongestPrefixMatch, LpmError, MAX_GROUP, MAX_PREFIX_BYTES, Query};

/// The table; see the module documentation.
pub struct TwoStage {
    key: HashKey,
    start: usize,
    table: BucketTable,
    entries: Arena<Record>,
    /// Heap bytes of names that are not inline.
    block_bytes: usize,
}

/// Result of the first stage: the depths to search next.
#[derive(Clone, Copy, Default)]
struct SecondStage {
    /// First depth to search, downwards to `floor + 1`.
    from: usize,
    floor: usize,
    /// Entry of the prefix of M components.
    virtual_entry: Option<u32>,
}

impl TwoStage {
    /// Creates a table for `capacity` entries, virtual entries included, with searches starting at `start` components
    /// (M).
    pub fn new(key: HashKey, start: usize, capacity: u32) -> Result<Self, LpmError> {
        let pages = PageRequest::default();
        let table = BucketTable::new(capacity as usize, pages)?;
        Ok(TwoStage { key, start: start.max(1), table, entries: Arena::new(capacity, pages)?, block_bytes: 0 })
    }

    #[inline]
    fn entry_of(&self, hash: u64, prefix: &[u8]) -> Option<u32> {
        self.table.find(hash, |index| self.entries[index].name() == prefix)
    }

    fn entry_or_new(&mut self, prefix: &[u8]) -> Result<u32, LpmError> {
        let hash = hash_name(&self.key, prefix);
        if let Some(index) = self.entry_of(hash, prefix) {
            return Ok(index);
        }
        let index = self.entries.allocate().ok_or(LpmError::Full)?;
        self.entries[index].set_name(prefix);
        self.block_bytes += block_bytes(prefix.len());
        self.table.insert(hash, index).map_err(|_| LpmError::Full)?;
        Ok(index)
    }

    /// Looks up the prefix of M components.
    #[inline]
    fn first_stage(&self, query: &Query<'_>) -> SecondStage {
        let depth = query.hashes.depth();
        let start = self.start.min(depth);
        if start < self.start {
            return SecondStage { from: start, floor: 0, virtual_entry: None };
        }
        let prefix = &query.name.value()[..query.hashes.value_bytes(start)];
        match self.entry_of(query.hashes.get(start), prefix) {
            Some(index) => {
                let longest = usize::from(self.entries[index].longest);
                SecondStage { from: longest.min(depth), floor: start, virtual_entry: Some(index) }
            }
            None => SecondStage { from: start - 1, floor: 0, virtual_entry: None },
        }
    }

    /// Searches the depths above the start, if the first stage found an entry, then those below it.
    #[inline]
    fn second_stage(&self, query: &Query<'_>, stage: SecondStage) -> Option<u32> {
        if let Some(number) = self.search(query, stage.from, stage.floor) {
            return Some(number);
        }
        let virtual_entry = &self.entries[stage.virtual_entry?];
        virtual_entry.number.or_else(|| self.search(query, stage.floor - 1, 0))
    }

    /// Searches longest first from depth `from` down to `floor + 1`.
    #[inline]
    fn search(&self, query: &Query<'_>, from: usize, floor: usize) -> Option<u32> {
        (floor + 1..=from).rev().find_map(|depth| {
            let prefix = &query.name.value()[..query.hashes.value_bytes(depth)];
            let index = self.entry_of(query.hashes.get(depth), prefix)?;
            self.entries[index].number
        })
    }

    #[inline]
    fn prefetch_entry(&self, hash: u64) -> Option<u32> {
        let index = self.table.guess(hash)?;
        self.entries.prefetch(index);
        Some(index)
    }

    /// Prefetches the names of guessed entries that are not inline.
    #[inline]
    fn prefetch_blocks(&self, guesses: &[Option<u32>]) {
        for &guess in guesses.iter().flatten() {
            self.entries[guess].prefetch_block();
        }
    }
}

impl LongestPrefixMatch for TwoStage {
    fn insert(&mut self, prefix: NameRef<'_>, number: u32) -> Result<(), LpmError> {
        let value = prefix.value();
        if value.len() > MAX_PREFIX_BYTES {
            return Err(LpmError::PrefixTooLong);
        }
        let depth = prefix.len();
        if depth == 0 {
            return Err(LpmError::Empty);
        }
        if depth >= self.start {
            let virtual_entry = self.entry_or_new(prefix.prefix(self.start).value())?;
            let longest = &mut self.entries[virtual_entry].longest;
            *longest = (*longest).max(depth as u8);
        }
        let index = self.entry_or_new(value)?;
        self.entries[index].number = Some(number);
        Ok(())
    }

    #[inline]
    fn find(&self, query: &Query<'_>) -> Option<u32> {
        self.second_stage(query, self.first_stage(query))
    }

    fn find_group(&self, queries: &[Query<'_>], found: &mut [Option<u32>; MAX_GROUP]) {
        let first_hash = |query: &Query<'_>| query.hashes.get(self.start.min(query.hashes.depth()));
        // The dependent accesses, stage by stage for the whole group.
        for query in queries {
            self.table.prefetch(first_hash(query));
        }
        let mut guesses = [None; MAX_GROUP];
        for (query, guess) in queries.iter().zip(&mut guesses) {
            *guess = self.prefetch_entry(first_hash(query));
        }
        self.prefetch_blocks(&guesses[..queries.len()]);
        let mut stages = [SecondStage::default(); MAX_GROUP];
        for (query, stage) in queries.iter().zip(&mut stages) {
            *stage = self.first_stage(query);
            for depth in stage.floor + 1..=stage.from {
                self.table.prefetch(query.hashes.get(depth));
            }
        }
        for ((query, stage), guess) in queries.iter().zip(&stages).zip(&mut guesses) {
            // The first depth with a candidate in its bucket is taken for the match.
            let mut depths = (stage.floor + 1..=stage.from).rev();
            *guess = depths.find_map(|depth| self.prefetch_entry(query.hashes.get(depth)));
        }
        self.prefetch_blocks(&guesses[..queries.len()]);
        for ((query, stage), found) in queries.iter().zip(stages).zip(found) {
            *found = self.second_stage(query, stage);
        }
    }

    fn lines(&self, query: &Query<'_>) -> Lines {
        let mut lines = Lines::default();
        let stage = self.first_stage(query);
        let first_depth = self.start.min(query.hashes.depth());
        // The first bucket, and the entry that it leads to. A name shorter than M has no such entry.
        if first_depth == self.start {
            lines.add(1, 1);
        }
        if let Some(virtual_entry) = stage.virtual_entry {
            lines.add_record(&self.entries[virtual_entry]);
        }
        let mut search = |from: usize, floor: usize| {
            let depths = (floor + 1..=from).rev();
            let mut buckets = 0;
            let found = depths.map(|depth| (depth, query.hashes.get(depth))).find_map(|(depth, hash)| {
                buckets += 1;
                let index = self.entry_of(hash, &query.name.value()[..query.hashes.value_bytes(depth)])?;
                self.entries[index].number.map(|_| index)
            });
            // All buckets of a stage can be fetched at once.
            lines.add(buckets, buckets.min(1));
            if let Some(index) = found {
                lines.add_record(&self.entries[index]);
            }
            found.is_some()
        };
        let found = search(stage.from, stage.floor);
        let answer_at_hand =
            stage.virtual_entry.is_none_or(|virtual_entry| self.entries[virtual_entry].number.is_some());
        if !found && !answer_at_hand {
            search(stage.floor - 1, 0);
        }
        lines
    }

    fn bytes(&self) -> usize {
        let buckets = self.table.statistics();
        let buckets = (buckets.home_buckets + buckets.overflow_buckets) * CACHE_LINE_BYTES;
        buckets + self.entries.len() * size_of::<Record>() + self.block_bytes
    }
}
