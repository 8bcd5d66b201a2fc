//! Insertion of Data into the Content Store, in parts.
//!
//! The router calls [`ContentStore::store`], which does all of them. Measurements call the parts, to time each.

use std::ops::ControlFlow;

use namehop_hash::PrefixHashes;
use namehop_packet::Timestamp;
use namehop_store::{Arrival, CachePolicy};

use super::{ContentStore, DIGEST_BYTES, spread};
use crate::pcct::blocks::Block;
use crate::pcct::entry::EntryFlags;
use crate::pcct::names::NameTable;

/// Maximum number of packets evicted for a new one: one for its place, and another while the store holds more than a
/// lowered capacity.
pub const EVICTIONS_PER_INSERTION: usize = 2;
/// Packets evicted by policy to get memory for one new packet, before a whole chunk of memory is cleared.
const EVICTIONS_FOR_MEMORY: usize = 8;

/// Data to be cached.
#[derive(Debug, Clone, Copy)]
pub struct NewData<'a> {
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

/// Data between the parts of an insertion.
#[derive(Debug)]
pub struct Candidate<'a> {
    /// The entry that will hold it.
    index: u32,
    data: &'a NewData<'a>,
    arrival: Arrival,
    /// Whether it replaces older Data of the entry.
    replaces: bool,
    now: Timestamp,
}

/// The result of caching Data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// The Data is cached.
    Yes,
    /// The policy rejected it.
    Rejected,
    /// There is no memory for it, or the capacity is 0.
    NoRoom,
}

impl<'a> NewData<'a> {
    /// Returns solicited Data that never becomes stale and answers only Interests for its exact name.
    #[inline]
    pub fn by_name(packet: &'a [u8]) -> Self {
        NewData {
            packet,
            hashes: None,
            fresh_until: Timestamp::NEVER,
            is_solicited: true,
            digest: None,
            is_from_tier: false,
        }
    }
}

impl<'a> Candidate<'a> {
    /// Returns Data that is to be inserted in the entry with its name.
    #[inline(always)]
    pub(crate) fn new(names: &NameTable, index: u32, data: &'a NewData<'a>, now: Timestamp) -> Self {
        let entry = names.entry(index);
        let arrival = Arrival {
            name_hash: entry.name_hash,
            now: now.0,
            fresh_until: data.fresh_until.0,
            is_solicited: data.is_solicited,
        };
        // Data that replaces older Data was admitted already.
        Candidate { index, data, arrival, replaces: entry.has_data(), now }
    }
}

impl ContentStore {
    /// Caches Data in the entry with its name, and replaces the Data that the entry had.
    pub(crate) fn store(&mut self, names: &mut NameTable, index: u32, data: &NewData<'_>, now: Timestamp) -> Stored {
        let candidate = Candidate::new(names, index, data, now);
        if let ControlFlow::Break(stored) = self.offer(names, &candidate) {
            return stored;
        }
        if self.needs_decision(&candidate) && !self.decide(&candidate) {
            return self.reject(names, &candidate);
        }
        for _ in 0..EVICTIONS_PER_INSERTION {
            if self.is_over_capacity() {
                let victim = self.choose_victim();
                self.evict(names, victim);
            }
        }
        self.insert(names, &candidate)
    }

    /// First part of [`store`](Self::store): removes older Data of the entry. The result is final if the
    /// entry has the same Data already, or if nothing is cached.
    // The candidate is borrowed, because moving it between parts costs some forty memory references for each Data.
    #[inline(always)]
    pub(crate) fn offer(&mut self, names: &mut NameTable, candidate: &Candidate<'_>) -> ControlFlow<Stored> {
        let Candidate { index, data, arrival, replaces, now } = candidate;
        if self.second_tier.is_some() && !data.is_from_tier {
            self.forget_in_tier(names, *index);
        }
        if *replaces {
            if self.data(names, *index) == data.packet {
                let entry = names.entry_mut(*index);
                entry.fresh_until = data.fresh_until;
                self.policy.refreshed(*index, arrival);
                self.index_prefixes(names, *index, data.hashes, *now);
                return ControlFlow::Break(Stored::Yes);
            }
            self.discard(names, *index);
        }
        if self.capacity == 0 {
            return ControlFlow::Break(Stored::NoRoom);
        }
        ControlFlow::Continue(())
    }

    /// Returns whether the policy decides on the admission of this Data; otherwise it is admitted.
    #[inline(always)]
    pub(crate) fn needs_decision(&self, candidate: &Candidate<'_>) -> bool {
        self.policy.expects() && !candidate.replaces
    }

    /// Has the policy decide on the admission.
    #[inline(always)]
    pub(crate) fn decide(&mut self, candidate: &Candidate<'_>) -> bool {
        let is_full = self.is_full();
        self.policy.admits(&candidate.arrival, is_full)
    }

    /// Ends the insertion of Data that the policy rejected.
    #[inline(always)]
    pub(crate) fn reject(&mut self, names: &NameTable, candidate: &Candidate<'_>) -> Stored {
        if self.second_tier.is_some() {
            self.offer_rejected_to_tier(names, candidate.index, candidate.data);
        }
        Stored::Rejected
    }

    /// Has the policy choose the Data to evict; `None` if nothing is cached. The victim must then be passed to
    /// [`evict`](Self::evict).
    #[inline(always)]
    pub(crate) fn choose_victim(&mut self) -> Option<u32> {
        self.policy.evict()
    }

    /// Last part of [`store`](Self::store): copies the Data into the store.
    #[inline(always)]
    pub(crate) fn insert(&mut self, names: &mut NameTable, candidate: &Candidate<'_>) -> Stored {
        let Candidate { index, data, arrival, replaces, now } = candidate;
        let length = data.packet.len() + data.digest.map_or(0, |digest| digest.len());
        let Some(block) = self.allocate(names, length) else {
            return Stored::NoRoom;
        };
        let (packet, digest) = self.blocks.bytes_mut(block, length).split_at_mut(data.packet.len());
        packet.copy_from_slice(data.packet);
        if let Some(known) = data.digest {
            digest.copy_from_slice(known);
        }
        let entry = names.entry_mut(*index);
        entry.data = block;
        entry.data_bytes = data.packet.len() as u16;
        entry.flags.set(EntryFlags::DIGEST_KNOWN, data.digest.is_some());
        entry.fresh_until = data.fresh_until;
        self.policy.admitted(*index, arrival);
        self.entries += 1;
        self.insertions += u64::from(!replaces);
        self.index_prefixes(names, *index, data.hashes, *now);
        Stored::Yes
    }

    fn index_prefixes(&mut self, names: &NameTable, index: u32, hashes: Option<&PrefixHashes>, now: Timestamp) {
        let Some(hashes) = hashes else { return };
        let delegation_hash = spread(names.entry(index).delegation_hash);
        self.index.start(now);
        for depth in 1..hashes.depth() {
            if self.index.is_wanted(depth, now) {
                self.index.insert(hashes.get(depth) ^ delegation_hash, index);
            }
        }
    }

    fn allocate(&mut self, names: &mut NameTable, bytes: usize) -> Option<Block> {
        for _ in 0..EVICTIONS_FOR_MEMORY {
            if let Some(block) = self.blocks.allocate(bytes) {
                return Some(block);
            }
            if !self.evict_one(names) {
                break;
            }
        }
        // The last eviction may have freed enough.
        if let Some(block) = self.blocks.allocate(bytes) {
            return Some(block);
        }
        // Other packet sizes hold the memory: clear one chunk of it.
        let mut starved = std::mem::take(&mut self.starved);
        starved.clear();
        starved.extend(self.blocks.starved_chunk());
        for &block in &starved {
            if let Some(owner) = self.owner_of(names, block) {
                self.remove(names, owner);
            }
        }
        self.starved = starved;
        self.blocks.allocate(bytes)
    }
}
