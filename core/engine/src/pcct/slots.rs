//! PIT slots: opening, closing, and finding the ones that Data satisfies.

use std::ops::Range;
use std::sync::Arc;

use namehop_hash::{PrefixHashes, hash_name};
use namehop_packet::FaceId;
use namehop_table::{Arena, BucketTable, Growth, PageRequest, TableError};
use namehop_wire::MAX_NAME_COMPONENTS;

use super::blocks::{Block, OwnedBlocks};
use super::content::{ContentStore, DIGEST_BYTES};
use super::digest_names::DigestNames;
use super::entry::{NONE, PitSlot, Selectors};
use super::pit_queue::PitQueue;
use super::record::InRecord;
use super::shares::Shares;
use super::{Pcct, PcctConfig, PitRef, extension_capacity};
use crate::dispatch::NameDispatch;
use crate::pit_token::TokenForm;

/// Entries beyond one for each PIT slot and each Data: for entries made while others are about to be freed.
pub(super) const SPARE_ENTRIES: usize = 64;
/// TYPE, LENGTH and VALUE of an implicit digest at the end of a name.
const DIGEST_COMPONENT_BYTES: usize = 2 + DIGEST_BYTES;
/// Maximum number of downstreams of a PIT slot that are considered as its next holder.
const MAX_CANDIDATES: usize = 16;

impl Pcct {
    /// Creates an empty table.
    pub(crate) fn new(config: &PcctConfig) -> Result<Self, TableError> {
        let pages = PageRequest::Large;
        let count = |entries: usize| u32::try_from(entries).map_err(|_| TableError::CapacityTooLarge);
        let pit_capacity = config.pit_capacity.max(1);
        let entry_limit = pit_capacity + config.content.capacity_packets + SPARE_ENTRIES;
        let reserved =
            pit_capacity + config.content.capacity_packets.max(config.content.reserved_packets) + SPARE_ENTRIES;
        let extensions = count(extension_capacity(pit_capacity))?;
        let entries = Arena::with_reserve(count(reserved)?, count(entry_limit)?, pages)?;
        let slots = Arena::new(count(pit_capacity)?, pages)?;
        Ok(Pcct {
            token_form: TokenForm::new(config.worker, entries.capacity(), slots.capacity()),
            table: BucketTable::new(entry_limit, pages)?,
            entries,
            slots,
            in_blocks: Arena::new(extensions, pages)?,
            out_blocks: Arena::new(extensions, pages)?,
            tokens: Arena::new(count(pit_capacity)?, pages)?,
            memory: OwnedBlocks::new(config.memory_bytes, Growth::AtOnce)?,
            queue: PitQueue::new(pit_capacity)?,
            shares: Shares::default(),
            pit_capacity,
            entry_limit,
            next_serial: 0,
            touched: 0,
            pending_prefixes: [0; MAX_NAME_COMPONENTS + 1],
            pending_digests: [0; MAX_NAME_COMPONENTS + 1],
            digest_names: DigestNames::new(pit_capacity),
            key: config.key,
            pending_unusual: 0,
            dispatch: None,
            content: ContentStore::new(&config.content, entry_limit)?,
            starved: Vec::new(),
        })
    }

    /// Makes the table count, for the other workers, pending Interests that their Data may satisfy. Must be called
    /// before the first PIT slot is opened.
    pub(crate) fn share_dispatch(&mut self, dispatch: Arc<NameDispatch>) {
        self.dispatch = Some(dispatch);
    }

    /// Returns `capacity_packets`, limited to the reserved address space, and the number of entries that it requires.
    pub(super) fn content_limits(&self, capacity_packets: usize) -> (usize, usize) {
        let most = self.entries.capacity() - self.pit_capacity - SPARE_ENTRIES;
        let capacity_packets = capacity_packets.min(most);
        (capacity_packets, self.pit_capacity + capacity_packets + SPARE_ENTRIES)
    }

    /// Makes room for more entries by rebuilding the bucket table. After an error nothing has changed.
    pub(super) fn raise_entry_limit(&mut self, entry_limit: usize) -> Result<(), TableError> {
        let mut table = BucketTable::new(entry_limit, PageRequest::Large)?;
        for index in self.used_entries() {
            table.insert(self.entry(index).name_hash, index).map_err(|_| TableError::CapacityTooLarge)?;
        }
        self.table = table;
        self.entry_limit = entry_limit;
        Ok(())
    }

    /// Returns the number of PIT slots in use.
    pub(crate) fn pit_len(&self) -> usize {
        self.queue.len()
    }

    /// Returns whether there is no room for another PIT slot.
    pub(crate) fn pit_is_full(&self) -> bool {
        self.queue.len() >= self.pit_capacity
    }

    /// Returns the next PIT slot to evict, for an Interest from `newcomer`. The caller closes it or [hands it
    /// over](Self::hand_over). Returns `None` if the newcomer itself holds too many.
    pub(crate) fn victim(&mut self, newcomer: FaceId) -> Option<PitRef> {
        self.shares.note_victim();
        self.queue.victim(&self.shares, newcomer)
    }

    /// Makes an aggregated downstream the holder of a PIT slot: one among the first few that holds little and for which
    /// `may_take_over` returns `true`. Returns `false` if there is none.
    #[cold]
    pub(crate) fn hand_over(&mut self, pit: PitRef, may_take_over: impl Fn(&InRecord) -> bool) -> bool {
        let position = self.slot(pit).queue_position;
        let holder = self.queue.holder(position);
        let may_hold = |record: &&InRecord| {
            record.face != holder && may_take_over(record) && self.shares.holds_little(record.face)
        };
        let Some(face) = self.in_records(pit).take(MAX_CANDIDATES).find(may_hold).map(|record| record.face) else {
            return false;
        };
        self.shares.remove(holder);
        self.shares.add(face);
        self.queue.hand_over(position, face);
        true
    }

    /// Returns the face that holds a PIT slot: its Interest opened the slot, or the slot was handed over to it.
    pub(crate) fn holder(&self, pit: PitRef) -> FaceId {
        self.queue.holder(self.slot(pit).queue_position)
    }

    /// Returns whether the entry has a PIT slot that is held by a face with few of them.
    pub(crate) fn is_held_by_few(&self, entry: u32) -> bool {
        let is_few = |pit| !self.shares.is_much(self.shares.standing(self.holder(pit)));
        self.entry(entry).in_use() && self.slots(entry).any(is_few)
    }

    /// Returns whether the memory for in-records, out-records or tokens outside PIT slots is used up.
    pub(crate) fn records_are_used_up(&self) -> bool {
        is_full(&self.in_blocks) || is_full(&self.out_blocks) || is_full(&self.tokens)
    }

    /// Records that the face exists.
    pub(crate) fn set_face(&mut self, face: FaceId) {
        self.shares.set_face(face);
    }

    /// Returns whether the face belongs to an unsolicited remote peer.
    pub(crate) fn is_unsolicited(&self, face: FaceId) -> bool {
        self.shares.is_unsolicited(face)
    }

    /// Records whether the face belongs to an unsolicited remote peer.
    pub(crate) fn set_unsolicited(&mut self, face: FaceId, is_unsolicited: bool) {
        self.shares.set_unsolicited(face, is_unsolicited);
    }

    /// Records that the face was removed: its slots are evicted first.
    pub(crate) fn remove_face(&mut self, face: FaceId) {
        self.shares.remove_face(face);
    }

    /// Returns all PIT slots, oldest first.
    pub(crate) fn all_slots(&self) -> impl Iterator<Item = PitRef> + '_ {
        self.queue.iter()
    }

    /// Returns the sequence numbers of the PIT slots and of gaps between them, oldest first. A new slot gets the number
    /// at the end; rarely, an old one moves there.
    pub(crate) fn queued_sequences(&self) -> Range<u64> {
        self.queue.sequences()
    }

    /// Returns the PIT slot with this sequence number, if it has not ended or moved.
    pub(crate) fn queued_slot(&self, sequence: u64) -> Option<PitRef> {
        self.queue.at(sequence)
    }

    /// Prefetches the identity and the first bytes of the name of a PIT slot.
    pub(crate) fn prefetch_name(&self, pit: PitRef) {
        self.entries.prefetch_line(pit.entry, 0);
        self.entries.prefetch_line(pit.entry, 1);
    }

    /// Returns `serial` of the PIT slot opened last.
    pub(crate) fn last_serial(&self) -> u32 {
        self.next_serial
    }

    #[inline]
    pub(crate) fn slot(&self, pit: PitRef) -> &PitSlot {
        &self.slots[pit.slot]
    }

    #[inline]
    pub(crate) fn slot_mut(&mut self, pit: PitRef) -> &mut PitSlot {
        &mut self.slots[pit.slot]
    }

    /// Returns all PIT slots of an entry.
    pub(crate) fn slots(&self, entry: u32) -> impl Iterator<Item = PitRef> + '_ {
        let mut next = self.entry(entry).first_slot;
        std::iter::from_fn(move || {
            let slot = Some(next).filter(|&slot| slot != NONE)?;
            next = self.slots[slot].next;
            Some(PitRef { entry, slot })
        })
    }

    /// Returns the PIT slot of an entry for these selectors.
    pub(crate) fn find_slot(&self, entry: u32, selectors: Selectors) -> Option<PitRef> {
        self.slots(entry).find(|&pit| self.slot(pit).selectors() == selectors)
    }

    /// Returns the PIT slot of a timer by its position in the queue, if it is still the same. Reads no entry.
    #[inline]
    pub(crate) fn find_slot_by_serial(&self, position: u32, serial: u32) -> Option<PitRef> {
        self.queue.get_by_serial(position, serial)
    }

    /// Returns the mark of the deadline of the last timer that was set to end the PIT slot at this queue position.
    #[inline]
    pub(crate) fn deadline_mark(&self, position: u32) -> u32 {
        self.queue.deadline_mark(position)
    }

    /// Records that a timer was set to end the PIT slot at this queue position.
    #[inline]
    pub(crate) fn note_timer(&mut self, position: u32, deadline_mark: u32) {
        self.queue.note_deadline(position, deadline_mark);
    }

    /// Opens a PIT slot that the entry does not have yet, for an Interest from `face`. Returns `None` if there are too
    /// many.
    pub(crate) fn open_slot(&mut self, entry: u32, selectors: Selectors, face: FaceId) -> Option<PitRef> {
        if self.pit_is_full() {
            return None;
        }
        let pit = PitRef { entry, slot: self.slots.allocate()? };
        // 0 means none.
        self.next_serial = self.next_serial.wrapping_add(1).max(1);
        let serial = self.next_serial;
        let position = self.queue.push(pit, face, serial);
        self.shares.add(face);
        self.slot_mut(pit).open(selectors, serial, position);
        let owner = self.entry_mut(entry);
        owner.serial = serial;
        let first = owner.first_slot;
        if first == NONE {
            owner.first_slot = pit.slot;
        } else {
            // Inserted behind the first slot, which stays where the prefetch plane expects it.
            let second = std::mem::replace(&mut self.slots[first].next, pit.slot);
            self.slots[pit.slot].next = second;
        }
        if self.is_unusual(entry, selectors) {
            self.count_unusual(pit, selectors, 1);
        }
        Some(pit)
    }

    /// Closes a PIT slot with all its records, and frees its entry if that holds nothing else.
    pub(crate) fn close_slot(&mut self, pit: PitRef) {
        let slot = self.slot_mut(pit);
        let (packet, position, selectors) = (slot.packet, slot.queue_position, slot.selectors());
        if slot.has_more_records() {
            self.remove_in_records(pit, |_| true);
            self.remove_out_records(pit, |_| true);
        }
        if !packet.is_none() {
            self.slot_mut(pit).packet = Block::NONE;
            self.memory.release(packet);
        }
        let holder = self.queue.remove(position);
        self.shares.remove(holder);
        if self.is_unusual(pit.entry, selectors) {
            self.count_unusual(pit, selectors, -1);
        }
        let next = self.slot(pit).next;
        if self.entry(pit.entry).first_slot == pit.slot {
            self.entry_mut(pit.entry).first_slot = next;
        } else {
            self.leave_list(pit, next);
        }
        self.slots.free(pit.slot);
        self.free_if_unused(pit.entry);
    }

    /// Returns whether Data of another name may satisfy Interests of this entry with these selectors.
    #[inline]
    fn is_unusual(&self, entry: u32, selectors: Selectors) -> bool {
        selectors.can_be_prefix || self.entry(entry).names_digest()
    }

    /// Counts a PIT slot, opened (`step` = 1) or closed (-1), that Data of another name may satisfy.
    #[cold]
    fn count_unusual(&mut self, pit: PitRef, selectors: Selectors, step: i32) {
        let entry = pit.entry;
        let (depth, names_digest) = (usize::from(self.entry(entry).depth), self.entry(entry).names_digest());
        let (prefixes, digests) = (step * i32::from(selectors.can_be_prefix), step * i32::from(names_digest));
        self.pending_prefixes[depth] = self.pending_prefixes[depth].wrapping_add_signed(prefixes);
        self.pending_digests[depth] = self.pending_digests[depth].wrapping_add_signed(digests);
        self.pending_unusual = self.pending_unusual.wrapping_add_signed(prefixes + digests);
        if selectors.can_be_prefix {
            self.count_for_other_workers(pit, step > 0);
        }
        if names_digest {
            let full_name = self.name(entry);
            let name = &full_name[..full_name.len().saturating_sub(DIGEST_COMPONENT_BYTES)];
            let hash = hash_name(&self.key, name);
            if step > 0 {
                self.digest_names.add(hash);
            } else {
                self.digest_names.remove(hash);
            }
        }
    }

    /// Counts an Interest with CanBePrefix when it becomes pending or ends, if Data of other workers may satisfy it.
    fn count_for_other_workers(&mut self, pit: PitRef, is_pending: bool) {
        let Some(dispatch) = &self.dispatch else { return };
        let name = self.name(pit.entry);
        if is_pending {
            let awaits = dispatch.count_pending(name);
            self.slot_mut(pit).set_awaits_other_workers(awaits);
        } else if self.slot(pit).awaits_other_workers() {
            dispatch.uncount_pending(name);
        }
    }

    /// Removes a PIT slot, which is not the first, from the list of its entry.
    #[cold]
    fn leave_list(&mut self, pit: PitRef, next: u32) {
        let before = self.slots(pit.entry).find(|&other| self.slot(other).next == pit.slot);
        if let Some(before) = before {
            self.slot_mut(before).next = next;
        }
    }

    /// Stores a copy of the Interest with the slot. Returns `false` if there is no memory for it.
    pub(crate) fn store_packet(&mut self, pit: PitRef, packet: &[u8]) -> bool {
        let Some(block) = self.memory.allocate(packet.len(), pit.entry) else { return false };
        self.memory.bytes_mut(block, packet.len()).copy_from_slice(packet);
        let slot = self.slot_mut(pit);
        slot.packet = block;
        slot.packet_bytes = packet.len() as u16;
        true
    }

    /// Returns the copy of the Interest, if the slot has one.
    pub(crate) fn packet(&self, pit: PitRef) -> Option<&[u8]> {
        let slot = self.slot(pit);
        (!slot.packet.is_none()).then(|| self.memory.bytes(slot.packet, usize::from(slot.packet_bytes)))
    }

    /// Fills `owners` with the entries that hold the long names and Interest copies of one memory chunk, of another
    /// chunk in each call. When all of them are freed, a block of any size fits.
    pub(crate) fn memory_owners(&mut self, owners: &mut Vec<u32>) {
        self.memory.starved_chunk(owners);
    }

    /// Collects the PIT slots that Data with this name satisfies: slots of its exact name, and of prefixes with
    /// CanBePrefix. Returns an entry with its exact name, if there is one.
    ///
    /// `known` is an entry that is known to have the exact name. Then `hashes` may be `None` unless the table [asks for
    /// prefixes](Self::asks_for_prefixes), and only that name is looked up.
    pub(crate) fn find_satisfied(
        &self,
        name: &[u8],
        hashes: Option<&PrefixHashes>,
        known: Option<u32>,
        matches: &mut Vec<PitRef>,
    ) -> Option<u32> {
        let exact = known.or_else(|| self.find_name(hashes?.full(), name));
        if let Some(exact) = exact {
            if self.entry(exact).next_variant == exact {
                matches.extend(self.slots(exact));
            } else {
                matches.extend(self.variants(exact).flat_map(|entry| self.slots(entry)));
            }
        }
        let Some(hashes) = hashes else { return exact };
        for depth in 1..hashes.depth() {
            if self.pending_prefixes[depth] > 0
                && let Some(found) = self.find_name(hashes.get(depth), &name[..hashes.value_bytes(depth)])
            {
                let slots = self.variants(found).flat_map(|entry| self.slots(entry));
                matches.extend(slots.filter(|&pit| self.slot(pit).selectors().can_be_prefix));
            }
        }
        exact
    }

    /// Returns whether all of these request Data by its exact name, and none by a prefix or a digest.
    #[inline]
    pub(crate) fn ask_by_name(&self, pending: &[PitRef]) -> bool {
        !pending.iter().any(|&pit| self.is_unusual(pit.entry, self.slot(pit).selectors()))
    }

    /// Returns whether a pending Interest requests Data with this name by its implicit digest.
    #[inline]
    pub(crate) fn asks_for_digest(&self, name: &PrefixHashes) -> bool {
        self.pending_digests.get(name.depth() + 1).is_some_and(|&pending| pending > 0)
            && self.digest_names.contains(name.full())
    }

    /// Collects the PIT slots with this name.
    pub(crate) fn collect_slots(&self, name_hash: u64, name: &[u8], matches: &mut Vec<PitRef>) {
        if let Some(found) = self.find_name(name_hash, name) {
            matches.extend(self.variants(found).flat_map(|entry| self.slots(entry)));
        }
    }

    pub(super) fn used_entries(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.touched).filter(|&index| self.entry(index).in_use())
    }
}

fn is_full<T>(arena: &Arena<T>) -> bool {
    arena.len() >= arena.capacity()
}
