//! The Content Store: cached Data in the entries of the table.
//!
//! Data is copied into a block of its own, followed by its implicit digest if that is known (`data_digest`). An entry,
//! (name, hint), holds one Data: the newest. The policy chooses the victim if there are too many packets, or no memory
//! for a new one. The store grows no faster than the system provides memory; packets never wait for that.

use namehop_hash::{PrefixHashes, hash_name};
use namehop_packet::Timestamp;
use namehop_store::{CachePolicy, Parameters, Policy, PolicyChoice};
use namehop_table::{Growth, TableError};
use namehop_wire::tlv::{Reader, types};

use super::Pcct;
use super::blocks::{Block, BlockStore};
use super::entry::Selectors;
use super::keys::Key;
use super::prefix_index::PrefixIndex;
use crate::second_tier::SecondTier;

/// Bytes of an implicit digest.
pub(crate) const DIGEST_BYTES: usize = 32;
/// Settings of the Content Store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContentConfig {
    pub(crate) capacity_packets: usize,
    pub(crate) capacity_bytes: usize,
    /// Number of packets for which address space is reserved at least.
    pub(crate) reserved_packets: usize,
    pub(crate) policy: PolicyChoice,
    /// Whether Data is admitted.
    pub(crate) admit: bool,
    /// Whether cached Data is used to answer Interests.
    pub(crate) serve: bool,
}

/// The state of the Content Store outside the entries.
pub(crate) struct ContentStore {
    pub(crate) blocks: BlockStore,
    pub(super) policy: Policy,
    /// Number of cached Data packets.
    pub(super) entries: usize,
    /// Packets inserted, and packets evicted, since the start.
    pub(crate) insertions: u64,
    pub(crate) evictions: u64,
    pub(super) index: PrefixIndex,
    /// The entry where the next erasure starts.
    pub(super) next_to_erase: u32,
    pub(crate) capacity: usize,
    pub(crate) admit: bool,
    pub(crate) serve: bool,
    /// The second tier, if there is one.
    pub(crate) second_tier: Option<Box<dyn SecondTier>>,
}

impl ContentStore {
    pub(super) fn new(config: &ContentConfig, entry_limit: usize) -> Result<Self, TableError> {
        let PolicyChoice { kind, tuning } = config.policy;
        let parameters = Parameters { slots: entry_limit, capacity: config.capacity_packets.min(entry_limit), tuning };
        Ok(ContentStore {
            blocks: BlockStore::new(config.capacity_bytes, Growth::WhenReady)?,
            policy: Policy::of(kind, &parameters)?,
            entries: 0,
            insertions: 0,
            evictions: 0,
            index: PrefixIndex::new(config.capacity_packets)?,
            next_to_erase: 0,
            capacity: config.capacity_packets,
            admit: config.admit,
            serve: config.serve,
            second_tier: None,
        })
    }

    /// Returns whether new Data is added to the prefix index under prefixes of any length.
    pub(super) fn indexes(&self, now: Timestamp) -> bool {
        self.index.is_any_wanted(now)
    }

    /// Prefetches the index bucket of a prefix.
    pub(super) fn prefetch_prefix(&self, name_hash: u64) {
        self.index.prefetch(name_hash);
    }

    /// Returns the number of cached Data packets.
    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    /// Returns whether a packet must be evicted before another one is inserted.
    #[inline]
    pub(crate) fn is_over_capacity(&self) -> bool {
        self.len() >= self.capacity
    }

    /// Returns the cache policy.
    pub(crate) fn policy(&self) -> PolicyChoice {
        self.policy.choice()
    }
}

/// The parameters of a cache lookup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query<'a> {
    pub(crate) key: &'a Key<'a>,
    pub(crate) hashes: &'a PrefixHashes,
    pub(crate) selectors: Selectors,
}

impl Query<'_> {
    /// Returns whether the query matches Data only by its exact name, not by a prefix or a digest.
    #[inline(always)]
    pub(crate) fn asks_by_name(&self) -> bool {
        !self.key.names_digest && !self.selectors.can_be_prefix
    }
}

/// Spreads the half hash of a hint over 64 bits, so that it changes both bucket and tag in the prefix index.
pub(super) fn spread(delegation_hash: u32) -> u64 {
    u64::from(delegation_hash) << 32 | u64::from(delegation_hash)
}

impl Pcct {
    /// Returns the cached Data of an entry; empty if it has none.
    pub(crate) fn data(&self, index: u32) -> &[u8] {
        let entry = self.entry(index);
        if !entry.has_data() {
            return &[];
        }
        self.content.blocks.bytes(entry.data, usize::from(entry.data_bytes))
    }

    /// Finds cached Data that answers an Interest. `exact` is the entry with the Interest's own name and hint.
    #[inline]
    pub(crate) fn find_data(&mut self, query: &Query<'_>, exact: Option<u32>, now: Timestamp) -> Option<u32> {
        let must_be_fresh = query.selectors.must_be_fresh;
        if let Some(exact) = exact.filter(|&entry| self.may_answer(entry, must_be_fresh, now)) {
            return Some(exact);
        }
        if query.asks_by_name() { None } else { self.find_data_of_other_name(query, now) }
    }

    /// Finds cached Data for an Interest that names an implicit digest or has CanBePrefix.
    fn find_data_of_other_name(&mut self, query: &Query<'_>, now: Timestamp) -> Option<u32> {
        let Query { key, hashes, selectors: Selectors { must_be_fresh, can_be_prefix } } = *query;
        let depth = hashes.depth();
        if key.names_digest && depth > 0 {
            let name = &key.name[..hashes.value_bytes(depth - 1)];
            let wanted = &key.name[key.name.len() - DIGEST_BYTES..];
            let found = self.find(hashes.get(depth - 1), name, key.delegation);
            if let Some(found) = found.filter(|&entry| self.may_answer(entry, must_be_fresh, now))
                && self.data_digest(found) == *wanted
            {
                return Some(found);
            }
        }
        if can_be_prefix {
            self.content.index.note_wanted(depth, now);
            let hash = hashes.full() ^ spread(key.delegation_hash);
            return self.content.index.find(hash, |entry| {
                self.may_answer(entry, must_be_fresh, now)
                    && self.name(entry).starts_with(key.name)
                    && self.delegation(entry) == key.delegation
            });
        }
        None
    }

    fn may_answer(&self, index: u32, must_be_fresh: bool, now: Timestamp) -> bool {
        let entry = self.entry(index);
        entry.in_use() && entry.has_data() && (!must_be_fresh || entry.fresh_until > now)
    }

    /// Records a request for a name, whether cached Data will answer it or not.
    #[inline]
    pub(crate) fn note_request(&mut self, name_hash: u64) {
        self.content.policy.requested(name_hash);
    }

    /// Records that the cached Data of an entry answered an Interest.
    pub(crate) fn note_data_used(&mut self, index: u32) {
        self.content.policy.hit(index);
    }

    /// Returns the entry of the cached Data in a block, found by the name in the Data.
    pub(super) fn owner_of_data(&self, block: Block) -> Option<u32> {
        let mut packet = Reader::new(self.content.blocks.all_bytes(block));
        let data = packet.read_typed(types::DATA).ok()?;
        let name = Reader::new(data.value).read_typed(types::NAME).ok()?.value;
        let first = self.find_name(hash_name(&self.key, name), name)?;
        self.variants(first).find(|&entry| self.entry(entry).data == block)
    }

    /// Evicts the packet that the policy chooses. Returns `false` if the store is empty.
    pub(super) fn evict_data(&mut self) -> bool {
        let victim = self.choose_victim();
        self.give_up_data(victim)
    }

    /// Removes the policy's victim. Returns `false` if there is none.
    #[inline]
    pub(crate) fn give_up_data(&mut self, victim: Option<u32>) -> bool {
        let Some(victim) = victim else { return false };
        if self.content.second_tier.is_some() {
            self.offer_to_tier(victim);
        }
        self.content.evictions += 1;
        self.release_data(victim);
        self.free_if_unused(victim);
        true
    }

    /// Removes the Data of an entry, and the entry if it holds nothing else.
    pub(crate) fn remove_data(&mut self, index: u32) {
        self.drop_data(index);
        self.free_if_unused(index);
    }

    /// Removes the Data of an entry, if it has any, for a reason other than eviction.
    pub(super) fn drop_data(&mut self, index: u32) {
        if self.release_data(index) {
            self.content.policy.removed(index);
        }
    }

    /// Frees the memory of an entry's Data. Returns `false` if it has none. Does not notify the policy.
    #[inline]
    fn release_data(&mut self, index: u32) -> bool {
        let block = std::mem::replace(&mut self.entry_mut(index).data, Block::NONE);
        if block.is_none() {
            return false;
        }
        self.content.blocks.release(block);
        self.content.entries -= 1;
        true
    }
}
