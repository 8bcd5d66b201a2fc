//! The Content Store: cached Data in the entries of the table.
//!
//! Data is copied into a block of its own, followed by its implicit digest if that is known (`data_digest`). An entry,
//! (name, hint), holds one Data: the newest. The policy chooses the victim if there are too many packets, or no memory
//! for a new one. The store grows no faster than the system provides memory; packets never wait for that.

use namehop_hash::{PrefixHashes, hash_name};
use namehop_packet::Timestamp;
use namehop_store::{Arrival, CachePolicy, Parameters, Policy, PolicyChoice};
use namehop_table::{Growth, TableError};
use namehop_wire::tlv::{Reader, types};

use super::Pcct;
use super::blocks::{Block, BlockStore};
use super::entry::{EntryFlags, Selectors};
use super::keys::Key;
use super::prefix_index::PrefixIndex;
use crate::flow::{BlockClock, FlowBlock};
use crate::second_tier::SecondTier;

/// Bytes of an implicit digest.
pub(crate) const DIGEST_BYTES: usize = 32;
/// Packets evicted by policy to get memory for one new packet, before a whole chunk of memory is cleared.
const EVICTIONS_FOR_MEMORY: usize = 8;

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
    entries: usize,
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

/// Data to be cached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewData<'a> {
    pub(crate) packet: &'a [u8],
    /// Hashes of its name; `None` if no prefix of it is indexed.
    pub(crate) hashes: Option<&'a PrefixHashes>,
    pub(crate) fresh_until: Timestamp,
    /// Whether a PIT entry was pending for it.
    pub(crate) is_solicited: bool,
    pub(crate) digest: Option<&'a [u8; DIGEST_BYTES]>,
    /// Whether it was read from the second tier, which still has it.
    pub(crate) is_from_tier: bool,
}

/// The result of caching Data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// The Data is cached.
    Yes,
    /// The policy rejected it.
    Rejected,
    /// There is no memory for it, or the capacity is 0.
    NoRoom,
}

/// Spreads the half hash of a hint over 64 bits, so that it changes both bucket and tag in the prefix index.
fn spread(delegation_hash: u32) -> u64 {
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

    /// Caches Data in the entry with its name, and replaces the Data that the entry had.
    pub(crate) fn store_data(
        &mut self,
        index: u32,
        data: &NewData<'_>,
        now: Timestamp,
        clock: &mut impl BlockClock,
    ) -> Stored {
        let arrival = Arrival {
            name_hash: self.entry(index).name_hash,
            now: now.0,
            fresh_until: data.fresh_until.0,
            is_solicited: data.is_solicited,
        };
        if self.content.second_tier.is_some() && !data.is_from_tier {
            self.forget_in_tier(index);
        }
        // Data that replaces older Data was admitted already.
        let replaces = self.entry(index).has_data();
        if replaces {
            if self.data(index) == data.packet {
                let entry = self.entry_mut(index);
                entry.fresh_until = data.fresh_until;
                self.content.policy.refreshed(index, &arrival);
                self.index_prefixes(index, data.hashes, now);
                return Stored::Yes;
            }
            self.drop_data(index);
        }
        if self.content.capacity == 0 {
            return Stored::NoRoom;
        }
        if self.content.policy.expects() && !replaces {
            let is_full = self.content.is_full();
            let admits = self.content.policy.admits(&arrival, is_full);
            clock.lap(FlowBlock::Admission);
            if !admits {
                if self.content.second_tier.is_some() {
                    self.offer_rejected_to_tier(index, data);
                }
                return Stored::Rejected;
            }
        }
        // Evicts one packet for the new one, and another while the store holds more than a lowered capacity.
        for _ in 0..2 {
            if self.content.len() >= self.content.capacity {
                let victim = self.content.policy.evict();
                clock.lap(FlowBlock::Eviction);
                self.give_up_data(victim);
            }
        }
        let length = data.packet.len() + data.digest.map_or(0, |digest| digest.len());
        let Some(block) = self.allocate_for_data(length) else {
            return Stored::NoRoom;
        };
        let (packet, digest) = self.content.blocks.bytes_mut(block, length).split_at_mut(data.packet.len());
        packet.copy_from_slice(data.packet);
        if let Some(known) = data.digest {
            digest.copy_from_slice(known);
        }
        let entry = self.entry_mut(index);
        entry.data = block;
        entry.data_bytes = data.packet.len() as u16;
        entry.flags.set(EntryFlags::DIGEST_KNOWN, data.digest.is_some());
        entry.fresh_until = data.fresh_until;
        self.content.policy.admitted(index, &arrival);
        self.content.entries += 1;
        self.content.insertions += u64::from(!replaces);
        self.index_prefixes(index, data.hashes, now);
        clock.lap(FlowBlock::StoreInsertion);
        Stored::Yes
    }

    fn index_prefixes(&mut self, index: u32, hashes: Option<&PrefixHashes>, now: Timestamp) {
        let Some(hashes) = hashes else { return };
        let delegation_hash = spread(self.entry(index).delegation_hash);
        self.content.index.start(now);
        for depth in 1..hashes.depth() {
            if self.content.index.is_wanted(depth, now) {
                self.content.index.insert(hashes.get(depth) ^ delegation_hash, index);
            }
        }
    }

    fn allocate_for_data(&mut self, bytes: usize) -> Option<Block> {
        for _ in 0..EVICTIONS_FOR_MEMORY {
            if let Some(block) = self.content.blocks.allocate(bytes) {
                return Some(block);
            }
            if !self.evict_data() {
                break;
            }
        }
        // The last eviction may have freed enough.
        if let Some(block) = self.content.blocks.allocate(bytes) {
            return Some(block);
        }
        // Other packet sizes hold the memory: clear one chunk of it.
        let mut starved = std::mem::take(&mut self.starved);
        starved.clear();
        starved.extend(self.content.blocks.starved_chunk());
        for &block in &starved {
            if let Some(owner) = self.owner_of_data(block) {
                self.remove_data(owner);
            }
        }
        self.starved = starved;
        self.content.blocks.allocate(bytes)
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
        let victim = self.content.policy.evict();
        self.give_up_data(victim)
    }

    /// Removes the policy's victim. Returns `false` if there is none.
    #[inline]
    fn give_up_data(&mut self, victim: Option<u32>) -> bool {
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
    fn drop_data(&mut self, index: u32) {
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
