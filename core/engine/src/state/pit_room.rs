//! Room in the PIT: opening PIT entries, and evicting others if there is none; ending PIT entries.

use namehop_packet::{DropReason, FaceId, Timestamp};

use super::ForwardingState;
use crate::pcct::PitRef;
use crate::pcct::entry::Selectors;
use crate::pcct::key::{Found, Key, NoEntry};
use crate::pcct::record::InRecord;

/// Maximum number of times that memory is reclaimed for one new PIT entry before it is refused.
const MAX_RECLAIMS: usize = 4;
/// Maximum number of memory chunks examined to find one to reclaim.
const MAX_EXAMINED_CHUNKS: usize = 8;
/// PIT entries evicted for one record outside a PIT entry: one in four PIT entries may have such records.
const EVICTIONS_FOR_RECORDS: usize = 16;
/// Maximum number of PIT entries reassigned to an aggregated downstream during one eviction. A downstream has sent an
/// Interest for each of them.
const MAX_HANDED_OVER: usize = 64;

impl ForwardingState {
    /// Removes the records of faces that no longer exist, so that strategies neither wait for them nor count them.
    pub(crate) fn forget_removed_faces(&mut self, pit: PitRef) {
        let faces = &self.faces;
        self.pcct.pit.remove_in_records(pit, |record| !faces.exists(record.face));
        self.pcct.pit.remove_out_records(pit, |record| !faces.exists(record.face));
    }

    /// Opens a PIT slot for `key`, requested by `face`, and evicts other PIT entries if there is no room. `found` is
    /// the table's lookup result for the key. `packet` is kept with the slot.
    pub(crate) fn open_slot(
        &mut self,
        now: Timestamp,
        face: FaceId,
        (key, selectors): (&Key<'_>, Selectors),
        mut found: Found,
        packet: Option<&[u8]>,
    ) -> Result<PitRef, DropReason> {
        while self.pcct.pit.is_full() {
            if !self.evict(now, face) {
                return Err(DropReason::PitFull);
            }
            // The evicted slot may have been the last one of the entry.
            found = self.pcct.names.look_up(key);
        }
        for _ in 0..=MAX_RECLAIMS {
            let entry = match found {
                Found::Exact(entry) => Ok(entry),
                Found::Variant(sibling) => self.pcct.insert(key, Some(sibling)),
                Found::Nothing => self.pcct.insert(key, None),
            };
            match entry {
                Ok(entry) => {
                    let Some(pit) = self.pcct.pit.open(&mut self.pcct.names, entry, selectors, face) else {
                        self.pcct.names.free_if_unused(entry);
                        if !self.make_room_for_records(now, face, None) {
                            return Err(DropReason::PitFull);
                        }
                        found = self.pcct.names.look_up(key);
                        continue;
                    };
                    if packet.is_none_or(|packet| self.pcct.pit.store_packet(&mut self.pcct.names, pit, packet)) {
                        return Ok(pit);
                    }
                    self.pcct.pit.close(&mut self.pcct.names, pit);
                }
                Err(NoEntry::TooManyHints) => {
                    self.evict_hint(now, found, face);
                    found = self.pcct.names.look_up(key);
                    continue;
                }
                Err(NoEntry::NoMemory) => {}
                Err(NoEntry::TableFull) => {
                    self.evict(now, face);
                }
            }
            self.reclaim_memory(now);
            found = self.pcct.names.look_up(key);
        }
        Err(DropReason::PitFull)
    }

    /// Evicts the entry of one forwarding hint of a name to make room for another hint that `face` uses.
    #[cold]
    fn evict_hint(&mut self, now: Timestamp, found: Found, face: FaceId) {
        let Found::Variant(known) = found else { return };
        let faces = &self.faces;
        let is_of_others = |record: &InRecord| record.face != face && faces.exists(record.face);
        let Some(victim) = self.pcct.hint_to_evict(known, is_of_others) else { return };
        while let Some(pit) = self.first_slot(victim) {
            let downstream = self.pcct.pit.in_records(pit).next().map_or(FaceId::INVALID, |record| record.face);
            self.emitter.count_drop(downstream, DropReason::TooManyHints);
            self.end_slot(now, pit);
        }
        if self.pcct.names.entry(victim).in_use() {
            self.pcct.content.remove(&mut self.pcct.names, victim);
        }
    }

    /// Evicts a PIT entry of a face that holds many, for a new one of `newcomer`. Its downstreams get no Nack. Returns
    /// `false` if the newcomer itself holds too many.
    fn evict(&mut self, now: Timestamp, newcomer: FaceId) -> bool {
        let Some(mut victim) = self.pcct.pit.victim(newcomer) else { return false };
        // An entry that other downstreams have joined is reassigned to one of them.
        for _ in 0..MAX_HANDED_OVER {
            let faces = &self.faces;
            let waits = |record: &InRecord| record.expiry > now && faces.exists(record.face);
            if self.pcct.pit.in_count(victim) < 2 || !self.pcct.pit.hand_over(victim, waits) {
                break;
            }
            let Some(next) = self.pcct.pit.victim(newcomer) else { return false };
            victim = next;
        }
        self.evict_slot(now, victim);
        true
    }

    /// Evicts a PIT entry and counts the drop for the face that holds it. In a flood this is mostly the same face, so
    /// its counters are in the CPU cache. Without evictions this costs nothing.
    fn evict_slot(&mut self, now: Timestamp, pit: PitRef) {
        self.emitter.count_drop(self.pcct.pit.holder(pit), DropReason::PitEvicted);
        self.end_slot(now, pit);
    }

    /// Evicts PIT entries of faces that hold many until there is room for a record outside PIT entries: more selectors
    /// of one name, more downstreams, more upstreams, long tokens. The room is for `newcomer`, and `kept` is not
    /// evicted. Returns `false` if no room is missing, or if none could be made.
    #[cold]
    pub(crate) fn make_room_for_records(&mut self, now: Timestamp, newcomer: FaceId, kept: Option<PitRef>) -> bool {
        if !self.pcct.pit.records_are_used_up() {
            return false;
        }
        for _ in 0..EVICTIONS_FOR_RECORDS {
            let Some(victim) = self.pcct.pit.victim(newcomer) else { break };
            if Some(victim) != kept {
                self.evict_slot(now, victim);
            }
            if !self.pcct.pit.records_are_used_up() {
                return true;
            }
        }
        false
    }

    /// Evicts all entries that hold memory of one chunk, PIT slots and Data alike, so that any size fits again. Chunks
    /// with PIT slots of faces that hold few are spared, unless all examined chunks have some.
    fn reclaim_memory(&mut self, now: Timestamp) {
        let mut owners = std::mem::take(&mut self.owners);
        for _ in 0..MAX_EXAMINED_CHUNKS {
            self.pcct.names.memory_owners(&mut owners);
            if !owners.iter().any(|&owner| self.pcct.pit.is_held_by_few(&self.pcct.names, owner)) {
                break;
            }
        }
        for &owner in &owners {
            while let Some(pit) = self.first_slot(owner) {
                self.evict_slot(now, pit);
            }
            if self.pcct.names.entry(owner).in_use() {
                self.pcct.content.remove(&mut self.pcct.names, owner);
            }
        }
        self.owners = owners;
    }

    fn first_slot(&self, entry: u32) -> Option<PitRef> {
        if self.pcct.names.entry(entry).in_use() {
            self.pcct.pit.slots_of(&self.pcct.names, entry).next()
        } else {
            None
        }
    }

    /// Ends a PIT entry: counts it, and keeps the nonces of Interests that may still be looping.
    pub(crate) fn end_slot(&mut self, now: Timestamp, pit: PitRef) {
        let slot = self.pcct.pit.slot(pit);
        if slot.is_satisfied() {
            self.emitter.counters.satisfied_interests += 1;
        } else {
            self.emitter.counters.unsatisfied_interests += 1;
        }
        // Nonces of Interests that may still be looping go to the Dead Nonce List, unless cached Data will stop them.
        if slot.keeps_nonces() {
            self.dead_nonces.insert_all_sent(&self.pcct, pit, now);
        }
        self.pcct.pit.close(&mut self.pcct.names, pit);
    }
}
