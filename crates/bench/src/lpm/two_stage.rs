//! 2-stage search in a hash table: So et al., "Named Data Networking on a Router: Fast and DoS-resistant Forwarding with
//! Hash Tables" (ANCS 2013), as Takemasa (2019), 4.1.2, describes it.
//!
//! The search starts with the prefix of M components. Its entry says how long the longest prefix below it is, and so
//! whether to go on with longer prefixes, longest first, or with shorter ones. For a longer prefix whose first M components
//! have no entry of their own, an entry without a number is put there as a signpost.

use namehop_hash::{HashKey, hash_name};
use namehop_table::{Arena, BucketTable, PageRequest};
use namehop_wire::NameRef;

use super::{LongestPrefixMatch, LpmError, MAX_GROUP, MAX_PREFIX_BYTES, Query};

/// Two cache lines, like an entry of the FIB.
#[repr(C, align(64))]
struct Entry {
    number: Option<u32>,
    name_bytes: u8,
    /// Components of the longest prefix that begins with this one; kept for prefixes of M components.
    longest: u8,
    name: [u8; MAX_PREFIX_BYTES],
}

const _: () = assert!(size_of::<Entry>() == 128);

impl Default for Entry {
    fn default() -> Self {
        Entry { number: None, name_bytes: 0, longest: 0, name: [0; MAX_PREFIX_BYTES] }
    }
}

impl Entry {
    fn name(&self) -> &[u8] {
        &self.name[..usize::from(self.name_bytes)]
    }
}

/// The table; see the module's description.
pub struct TwoStage {
    key: HashKey,
    start: usize,
    table: BucketTable,
    entries: Arena<Entry>,
}

/// What the first stage says: the depths to look at next.
#[derive(Clone, Copy, Default)]
struct SecondStage {
    /// Depth to start with, going down to the depth after `floor`.
    from: usize,
    floor: usize,
    /// Entry of the prefix of M components.
    signpost: Option<u32>,
}

impl TwoStage {
    /// A table for `capacity` entries, signposts included, that starts its searches at `start` components (M).
    pub fn new(key: HashKey, start: usize, capacity: u32) -> Result<Self, LpmError> {
        let pages = PageRequest::default();
        let table = BucketTable::new(capacity as usize, pages)?;
        Ok(TwoStage { key, start: start.max(1), table, entries: Arena::new(capacity, pages)? })
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
        let entry = &mut self.entries[index];
        entry.name[..prefix.len()].copy_from_slice(prefix);
        entry.name_bytes = prefix.len() as u8;
        self.table.insert(hash, index).map_err(|_| LpmError::Full)?;
        Ok(index)
    }

    /// Looks at the prefix of M components.
    #[inline]
    fn first_stage(&self, query: &Query<'_>) -> SecondStage {
        let depth = query.hashes.depth();
        let start = self.start.min(depth);
        if start < self.start {
            return SecondStage { from: start, floor: 0, signpost: None };
        }
        let prefix = &query.name.value()[..query.hashes.value_bytes(start)];
        match self.entry_of(query.hashes.get(start), prefix) {
            Some(index) => {
                let longest = usize::from(self.entries[index].longest);
                SecondStage { from: longest.min(depth), floor: start, signpost: Some(index) }
            }
            None => SecondStage { from: start - 1, floor: 0, signpost: None },
        }
    }

    /// Depths to look at, in order: first those above the start, if the first stage says so, then those below it.
    #[inline]
    fn second_stage(&self, query: &Query<'_>, stage: SecondStage) -> Option<u32> {
        if let Some(number) = self.search(query, stage.from, stage.floor) {
            return Some(number);
        }
        let signpost = &self.entries[stage.signpost?];
        signpost.number.or_else(|| self.search(query, stage.floor - 1, 0))
    }

    /// Longest-first from depth `from` down to above `floor`.
    #[inline]
    fn search(&self, query: &Query<'_>, from: usize, floor: usize) -> Option<u32> {
        (floor + 1..=from).rev().find_map(|depth| {
            let prefix = &query.name.value()[..query.hashes.value_bytes(depth)];
            let index = self.entry_of(query.hashes.get(depth), prefix)?;
            self.entries[index].number
        })
    }

    #[inline]
    fn prefetch_entry(&self, hash: u64) -> bool {
        let Some(index) = self.table.guess(hash) else { return false };
        self.entries.prefetch_line(index, 0);
        self.entries.prefetch_line(index, 1);
        true
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
            let signpost = self.entry_or_new(prefix.prefix(self.start).value())?;
            let longest = &mut self.entries[signpost].longest;
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
        // The four dependent accesses, one after the other for the whole group.
        for query in queries {
            self.table.prefetch(first_hash(query));
        }
        for query in queries {
            self.prefetch_entry(first_hash(query));
        }
        let mut stages = [SecondStage::default(); MAX_GROUP];
        for (query, stage) in queries.iter().zip(&mut stages) {
            *stage = self.first_stage(query);
            for depth in stage.floor + 1..=stage.from {
                self.table.prefetch(query.hashes.get(depth));
            }
        }
        for (query, stage) in queries.iter().zip(&stages) {
            // The first one that the buckets promise is the one.
            (stage.floor + 1..=stage.from).rev().any(|depth| self.prefetch_entry(query.hashes.get(depth)));
        }
        for ((query, stage), found) in queries.iter().zip(stages).zip(found) {
            *found = self.second_stage(query, stage);
        }
    }

    fn bytes(&self) -> usize {
        let buckets = self.table.statistics();
        (buckets.home_buckets + buckets.overflow_buckets) * 64 + self.entries.len() * size_of::<Entry>()
    }
}
