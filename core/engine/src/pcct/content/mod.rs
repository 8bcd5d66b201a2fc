//! The Content Store: cached Data, which belongs to entries of the table of names.
//!
//! Data is copied into a block of its own, followed by its implicit digest if that is known (`digest`). An entry,
//! (name, hint), holds one Data: the newest. The policy chooses the victim if there are too many packets, or no memory
//! for a new one. The store grows no faster than the system provides memory; packets never wait for that.
//!
//! Each method that needs the table of names gets it as an argument.
//!
//! | file | what |
//! |---|---|
//! | `lookup` | lookup of Data for an Interest |
//! | `insertion` | insertion of Data, in parts |
//! | `settings` | changes of capacity and policy while the store is in use |
//! | `erasure` | erasing Data by name |
//! | `digest` | implicit digests of cached Data |
//! | `prefix_index` | cached Data by prefix |
//! | `tier` | the use of a second tier |

mod digest;
pub(crate) mod erasure;
pub(crate) mod insertion;
mod lookup;
mod prefix_index;
mod settings;
mod tier;

use namehop_hash::{HashKey, hash_name};
use namehop_packet::Timestamp;
use namehop_store::{Ahead, CachePolicy, Parameters, Policy, PolicyChoice};
use namehop_table::{Growth, TableError};
use namehop_wire::tlv::{Reader, types};

use super::blocks::{Block, BlockStore, PREFETCHED_LINES};
use super::names::NameTable;
use super::{InvariantError, agree};
use crate::second_tier::SecondTier;
pub(crate) use lookup::Query;
use prefix_index::PrefixIndex;

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

/// The Content Store of one worker.
pub(crate) struct ContentStore {
    blocks: BlockStore,
    policy: Policy,
    /// Number of cached Data packets.
    entries: usize,
    /// Packets inserted, and packets evicted, since the start.
    insertions: u64,
    evictions: u64,
    index: PrefixIndex,
    /// The entry where the next erasure starts.
    next_to_erase: u32,
    /// Maximum number of cached packets.
    capacity: usize,
    admit: bool,
    serve: bool,
    second_tier: Option<Box<dyn SecondTier>>,
    key: HashKey,
    /// Scratch: blocks of a chunk that is cleared.
    starved: Vec<Block>,
}

/// Returns the maximum bytes of the index of prefixes for this capacity.
pub(super) fn index_bytes_for(capacity_packets: usize) -> usize {
    PrefixIndex::bytes_for(capacity_packets)
}

impl ContentStore {
    /// Creates an empty store for entries with indices below `entry_limit`.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub(super) fn new(config: &ContentConfig, entry_limit: usize, key: HashKey) -> Result<Self, TableError> {
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
            key,
            starved: Vec::new(),
        })
    }

    /// Returns the number of cached Data packets.
    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    /// Returns the maximum number of cached packets.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of packets inserted, and of packets evicted, since the start.
    pub(crate) fn insertions_and_evictions(&self) -> (u64, u64) {
        (self.insertions, self.evictions)
    }

    /// Returns the cache policy.
    pub(crate) fn policy(&self) -> PolicyChoice {
        self.policy.choice()
    }

    /// Returns whether Data may be admitted, if there is capacity.
    pub(crate) fn admit_flag(&self) -> bool {
        self.admit
    }

    /// Returns whether cached Data is used to answer Interests.
    #[inline(always)]
    pub(crate) fn serves(&self) -> bool {
        self.serve
    }

    /// Sets whether Data is admitted, and whether cached Data is used to answer Interests.
    pub(crate) fn set_flags(&mut self, admit: bool, serve: bool) {
        (self.admit, self.serve) = (admit, serve);
    }

    /// Returns whether Data is admitted.
    #[inline]
    pub(crate) fn admits(&self) -> bool {
        self.admit && self.capacity > 0
    }

    /// Returns whether a packet must be evicted before another one is inserted.
    #[inline]
    pub(crate) fn is_over_capacity(&self) -> bool {
        self.len() >= self.capacity
    }

    /// Returns whether the next new Data evicts another.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.admits() && self.len() >= self.capacity
    }

    /// Returns whether new Data is added to the prefix index under prefixes of any length.
    pub(crate) fn indexes(&self, now: Timestamp) -> bool {
        self.index.is_any_wanted(now)
    }
}

/// Spreads the half hash of a hint over 64 bits, so that it changes both bucket and tag in the prefix index.
pub(super) fn spread(delegation_hash: u32) -> u64 {
    u64::from(delegation_hash) << 32 | u64::from(delegation_hash)
}

impl ContentStore {
    /// Returns the cached Data of an entry; empty if it has none.
    pub(crate) fn data(&self, names: &NameTable, index: u32) -> &[u8] {
        let entry = names.entry(index);
        if !entry.has_data() {
            return &[];
        }
        self.blocks.bytes(entry.data, usize::from(entry.data_bytes))
    }

    /// Records a request for a name, whether cached Data will answer it or not.
    #[inline]
    pub(crate) fn note_request(&mut self, name_hash: u64) {
        self.policy.requested(name_hash);
    }

    /// Records that the cached Data of an entry answered an Interest.
    pub(crate) fn note_used(&mut self, index: u32) {
        self.policy.hit(index);
    }

    /// Returns the entry of the cached Data in a block, found by the name in the Data.
    pub(super) fn owner_of(&self, names: &NameTable, block: Block) -> Option<u32> {
        let mut packet = Reader::new(self.blocks.all_bytes(block));
        let data = packet.read_typed(types::DATA).ok()?;
        let name = Reader::new(data.value).read_typed(types::NAME).ok()?.value;
        let first = names.find_name(hash_name(&self.key, name), name)?;
        names.variants(first).find(|&entry| names.entry(entry).data == block)
    }

    /// Evicts the packet that the policy chooses. Returns `false` if the store is empty.
    pub(super) fn evict_one(&mut self, names: &mut NameTable) -> bool {
        let victim = self.choose_victim();
        self.evict(names, victim)
    }

    /// Removes the policy's victim. Returns `false` if there is none.
    #[inline]
    pub(crate) fn evict(&mut self, names: &mut NameTable, victim: Option<u32>) -> bool {
        let Some(victim) = victim else { return false };
        if self.second_tier.is_some() {
            self.offer_to_tier(names, victim);
        }
        self.evictions += 1;
        self.release(names, victim);
        names.free_if_unused(victim);
        true
    }

    /// Removes the Data of an entry, and the entry if it holds nothing else.
    pub(crate) fn remove(&mut self, names: &mut NameTable, index: u32) {
        self.discard(names, index);
        names.free_if_unused(index);
    }

    /// Removes the Data of an entry, if it has any, for a reason other than eviction.
    fn discard(&mut self, names: &mut NameTable, index: u32) {
        if self.release(names, index) {
            self.policy.removed(index);
        }
    }

    /// Frees the memory of an entry's Data. Returns `false` if it has none. Does not notify the policy.
    #[inline]
    fn release(&mut self, names: &mut NameTable, index: u32) -> bool {
        let block = std::mem::replace(&mut names.entry_mut(index).data, Block::NONE);
        if block.is_none() {
            return false;
        }
        self.blocks.release(block);
        self.entries -= 1;
        true
    }
}

/// Prefetches, and what the prefetch plane predicts.
impl ContentStore {
    /// Returns whether most Data is admitted.
    #[inline]
    pub(crate) fn admits_most(&self) -> bool {
        self.admits() && self.policy.admits_most()
    }

    /// Returns the entry that will lose its Data after the entries that `ahead` has passed.
    #[inline(always)]
    pub(super) fn upcoming_victim(&self, ahead: &mut Ahead) -> Option<u32> {
        self.policy.upcoming(ahead)
    }

    /// Returns whether a victim is predicted for each Data: it will be evicted, or compared with the Data.
    #[inline]
    pub(crate) fn examines_victims(&self) -> bool {
        self.admits_most() || self.admits() && self.policy.compares_each()
    }

    /// Returns whether the policy counts requests. Only then [`prefetch_request`](Self::prefetch_request) is useful.
    #[inline]
    pub(crate) fn counts_requests(&self) -> bool {
        self.policy.counts()
    }

    /// Returns whether the policy examines Data, or a victim for each. Only then
    /// [`prefetch_decision`](Self::prefetch_decision) is useful.
    #[inline]
    pub(crate) fn examines_data(&self) -> bool {
        self.admits() && (self.policy.expects() || self.policy.compares_each())
    }

    /// Prefetches the state that the policy changes with an Interest for a name.
    pub(crate) fn prefetch_request(&self, name_hash: u64) {
        self.policy.prefetch_request(name_hash);
    }

    /// Prefetches the state that decides on admission: the policy's state of the entry's name and of the possible
    /// victim. Reads the entries.
    pub(crate) fn prefetch_decision(&self, names: &NameTable, entry: Option<u32>, victim: Option<u32>) {
        if let Some(entry) = entry.and_then(|entry| names.get(entry)) {
            self.policy.prefetch_name(entry.name_hash);
        }
        if let Some((index, victim)) = victim.and_then(|index| Some((index, names.get(index)?))) {
            self.policy.prefetch_victim(index, victim.name_hash);
        }
    }

    /// Prefetches the policy's state of an entry, for insertion or use of its Data.
    #[inline]
    pub(crate) fn prefetch_order(&self, index: u32) {
        if self.admits() {
            self.policy.prefetch(index);
        }
    }

    /// Prefetches the bucket of a name in the index of prefixes.
    #[inline]
    pub(crate) fn prefetch_prefix(&self, name_hash: u64) {
        self.index.prefetch(name_hash);
    }

    /// Prefetches the cached Data of an entry, and the policy state that a hit changes. Returns `false` if it has none.
    /// Reads the entry.
    #[inline]
    pub(super) fn prefetch_hit(&self, names: &NameTable, index: u32) -> bool {
        let has_data = self.prefetch_data(names, index);
        if has_data {
            self.policy.prefetch_hit(index);
        }
        has_data
    }

    /// Prefetches the cached Data of an entry. Returns `false` if it has none. Reads the entry.
    #[inline]
    fn prefetch_data(&self, names: &NameTable, index: u32) -> bool {
        let Some(entry) = names.get(index).filter(|entry| entry.has_data()) else { return false };
        self.blocks.prefetch(entry.data, usize::from(entry.data_bytes), PREFETCHED_LINES);
        true
    }

    /// Prefetches what the eviction of an entry's Data touches, including the memory that new Data overwrites. Reads
    /// the entry.
    #[inline]
    pub(crate) fn prefetch_eviction(&self, names: &NameTable, index: u32) {
        let Some(entry) = names.get(index) else { return };
        names.prefetch_bucket(entry.name_hash);
        self.prefetch_tier_lookup(entry.name_hash);
        self.prefetch_data(names, index);
    }
}

/// Self-check.
impl ContentStore {
    /// Compares all counts and memory of the store with each other.
    pub(super) fn check_invariants(&self, names: &NameTable) -> Result<(), InvariantError> {
        let mut data = 0;
        for index in names.used_entries().filter(|&index| names.entry(index).has_data()) {
            data += 1;
            if self.owner_of(names, names.entry(index).data) != Some(index) {
                return Err(InvariantError::of_entry(index, "has Data that does not refer to it"));
            }
        }
        agree("cached Data", self.len(), data)?;
        agree("cached Data in the policy", self.policy.len(), data)?;
        agree("memory blocks of cached Data", self.blocks.live(), data)?;
        self.blocks.check_invariants()
    }
}
