//! The PIT: a slot for each pending Interest, with its in-records and out-records; the order in which slots are
//! evicted.
//!
//! A slot belongs to an entry of the table of names, which each method that needs it gets as an argument.
//!
//! | file | what |
//! |---|---|
//! | `records`, `chain` | downstream and upstream records of a slot |
//! | `matching` | finding the slots that Data satisfies |
//! | `digest_names` | names of Data that Interests request by digest |
//! | `holders` | the faces that hold slots, and which of them loses one |
//! | `queue`, `shares` | the order in which slots are evicted |

mod chain;
mod digest_names;
mod holders;
mod matching;
mod queue;
mod records;
mod shares;

use std::ops::Range;
use std::sync::Arc;

use namehop_hash::HashKey;
use namehop_packet::FaceId;
use namehop_table::{Arena, PageRequest, TableError};

use super::blocks::Block;
use super::entry::{NONE, PitSlot, Selectors};
use super::names::NameTable;
use super::record::{BLOCK_RECORDS, INLINE_RECORDS, InRecord, RecordBlock, TokenBlock, UpstreamRecord};
use super::{InvariantError, PitRef, agree};
use crate::dispatch::NameDispatch;
pub(crate) use chain::NoRoom;
use digest_names::DigestNames;
use matching::InexactInterests;
use queue::PitQueue;
pub(crate) use records::{Arrival, Downstream, short_downstream};
use shares::Shares;

/// The PIT of one worker.
pub(crate) struct Pit {
    slots: Arena<PitSlot>,
    in_blocks: Arena<RecordBlock<InRecord>>,
    out_blocks: Arena<RecordBlock<UpstreamRecord>>,
    tokens: Arena<TokenBlock>,
    queue: PitQueue,
    shares: Shares,
    /// Maximum number of slots.
    capacity: usize,
    next_serial: u32,
    inexact: InexactInterests,
}

/// Returns the number of extension blocks of each kind for this PIT capacity.
fn extension_capacity(capacity: usize) -> usize {
    capacity / 4 + 256
}

/// Returns the maximum bytes of extension blocks, queue and names by digest for this PIT capacity. `free_slot_bytes`
/// are the bytes that an arena needs for each of its slots.
pub(super) fn bytes_for(capacity: usize, free_slot_bytes: usize) -> usize {
    // Blocks of in-records and of out-records have the same size.
    let block = size_of::<RecordBlock<InRecord>>() + free_slot_bytes;
    let slot = size_of::<PitSlot>() + size_of::<TokenBlock>() + 2 * free_slot_bytes;
    [
        extension_capacity(capacity).saturating_mul(2 * block),
        PitQueue::bytes_for(capacity),
        DigestNames::bytes_for(capacity),
    ]
    .into_iter()
    .fold(capacity.saturating_mul(slot), usize::saturating_add)
}

impl Pit {
    /// Creates an empty PIT for at most `capacity` slots.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub(super) fn new(capacity: usize, key: HashKey) -> Result<Self, TableError> {
        let pages = PageRequest::Large;
        let count = |entries: usize| u32::try_from(entries).map_err(|_| TableError::CapacityTooLarge);
        let extensions = count(extension_capacity(capacity))?;
        Ok(Pit {
            slots: Arena::new(count(capacity)?, pages)?,
            in_blocks: Arena::new(extensions, pages)?,
            out_blocks: Arena::new(extensions, pages)?,
            tokens: Arena::new(count(capacity)?, pages)?,
            queue: PitQueue::new(capacity)?,
            shares: Shares::default(),
            capacity,
            next_serial: 0,
            inexact: InexactInterests::new(capacity, key),
        })
    }

    /// Makes the PIT count, for the other workers, pending Interests that their Data may satisfy. Must be called before
    /// the first slot is opened.
    pub(crate) fn share_dispatch(&mut self, dispatch: Arc<NameDispatch>) {
        self.inexact.share_dispatch(dispatch);
    }

    /// Returns the maximum number of slots.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of slots in use.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns whether there is no room for another slot.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= self.capacity
    }

    /// Returns whether the memory for in-records, out-records or tokens outside slots is used up.
    pub(crate) fn records_are_used_up(&self) -> bool {
        is_full(&self.in_blocks) || is_full(&self.out_blocks) || is_full(&self.tokens)
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

    /// Returns all slots of an entry.
    pub(crate) fn slots_of<'a>(&'a self, names: &NameTable, entry: u32) -> impl Iterator<Item = PitRef> + use<'a> {
        let mut next = names.entry(entry).first_slot;
        std::iter::from_fn(move || {
            let slot = Some(next).filter(|&slot| slot != NONE)?;
            next = self.slots[slot].next;
            Some(PitRef { entry, slot })
        })
    }

    /// Returns the slot of an entry for these selectors.
    pub(crate) fn find(&self, names: &NameTable, entry: u32, selectors: Selectors) -> Option<PitRef> {
        self.slots_of(names, entry).find(|&pit| self.slot(pit).selectors() == selectors)
    }

    /// Returns the PIT slot of a timer by its position in the queue, if it is still the same. Reads no entry.
    #[inline]
    pub(crate) fn find_by_serial(&self, position: u32, serial: u32) -> Option<PitRef> {
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

    /// Opens a slot that the entry does not have yet, for an Interest from `face`. Returns `None` if there are too
    /// many.
    pub(crate) fn open(
        &mut self,
        names: &mut NameTable,
        entry: u32,
        selectors: Selectors,
        face: FaceId,
    ) -> Option<PitRef> {
        if self.is_full() {
            return None;
        }
        let pit = PitRef { entry, slot: self.slots.allocate()? };
        // 0 means none.
        self.next_serial = self.next_serial.wrapping_add(1).max(1);
        let serial = self.next_serial;
        let position = self.queue.push(pit, face, serial);
        self.shares.add(face);
        self.slot_mut(pit).open(selectors, serial, position);
        let owner = names.entry_mut(entry);
        owner.serial = serial;
        let first = owner.first_slot;
        if first == NONE {
            owner.first_slot = pit.slot;
        } else {
            // Inserted behind the first slot, which stays where the prefetch plane expects it.
            let second = std::mem::replace(&mut self.slots[first].next, pit.slot);
            self.slots[pit.slot].next = second;
        }
        if is_inexact(names, entry, selectors) {
            let slot = &mut self.slots[pit.slot];
            self.inexact.add(names, entry, slot);
        }
        Some(pit)
    }

    /// Closes a slot with all its records, and frees its entry if that holds nothing else.
    pub(crate) fn close(&mut self, names: &mut NameTable, pit: PitRef) {
        let slot = self.slot_mut(pit);
        let (packet, position, selectors, next) = (slot.packet, slot.queue_position, slot.selectors(), slot.next);
        if slot.has_more_records() {
            self.remove_in_records(pit, |_| true);
            self.remove_out_records(pit, |_| true);
        }
        if !packet.is_none() {
            self.slot_mut(pit).packet = Block::NONE;
            names.release_packet(packet);
        }
        let holder = self.queue.remove(position);
        self.shares.remove(holder);
        if is_inexact(names, pit.entry, selectors) {
            self.inexact.remove(names, pit.entry, &self.slots[pit.slot]);
        }
        if names.entry(pit.entry).first_slot == pit.slot {
            names.entry_mut(pit.entry).first_slot = next;
        } else {
            self.leave_list(names, pit, next);
        }
        self.slots.free(pit.slot);
        names.free_if_unused(pit.entry);
    }

    /// Removes a slot, which is not the first, from the list of its entry.
    #[cold]
    fn leave_list(&mut self, names: &NameTable, pit: PitRef, next: u32) {
        let before = self.slots_of(names, pit.entry).find(|&other| self.slot(other).next == pit.slot);
        if let Some(before) = before {
            self.slot_mut(before).next = next;
        }
    }

    /// Stores a copy of the Interest with the slot. Returns `false` if there is no memory for it.
    pub(crate) fn store_packet(&mut self, names: &mut NameTable, pit: PitRef, packet: &[u8]) -> bool {
        let Some(block) = names.store_packet(pit.entry, packet) else { return false };
        let slot = self.slot_mut(pit);
        slot.packet = block;
        slot.packet_bytes = packet.len() as u16;
        true
    }

    /// Returns the copy of the Interest, if the slot has one.
    pub(crate) fn packet<'a>(&self, names: &'a NameTable, pit: PitRef) -> Option<&'a [u8]> {
        let slot = self.slot(pit);
        (!slot.packet.is_none()).then(|| names.packet(slot.packet, usize::from(slot.packet_bytes)))
    }
}

/// Prefetches, and what the prefetch plane predicts. Any index may be passed.
impl Pit {
    /// Returns the number of allocated slots.
    #[inline(always)]
    pub(super) fn allocated(&self) -> usize {
        self.slots.len()
    }

    /// Returns the free slot that will be taken after this number of others.
    #[inline(always)]
    pub(super) fn upcoming(&self, taken_before: usize) -> Option<u32> {
        self.slots.upcoming(taken_before)
    }

    /// Returns the slot that would be the next victim from a sequence number on, and the number where the search for
    /// the one after it starts.
    #[inline(always)]
    pub(super) fn next_victim_from(&self, sequence: u64) -> (Option<PitRef>, u64) {
        self.queue.next_victim_from(sequence, &self.shares)
    }

    /// Returns a slot; `None` if there is none with this index.
    #[inline(always)]
    pub(super) fn get(&self, slot: u32) -> Option<&PitSlot> {
        self.slots.get(slot)
    }

    /// Prefetches all lines of a slot.
    #[inline]
    pub(crate) fn prefetch_slot(&self, slot: u32) {
        for line in 0..size_of::<PitSlot>() / 64 {
            self.slots.prefetch_line(slot, line);
        }
    }

    /// Prefetches the position of a slot in the queue. Reads the slot.
    #[inline(always)]
    pub(super) fn prefetch_position(&self, slot: u32) {
        self.queue.prefetch(self.slots.get(slot).map_or(0, |slot| slot.queue_position));
    }
}

/// Returns whether Data of another name may satisfy Interests of this entry with these selectors.
#[inline]
fn is_inexact(names: &NameTable, entry: u32, selectors: Selectors) -> bool {
    selectors.can_be_prefix || names.entry(entry).names_digest()
}

fn is_full<T>(arena: &Arena<T>) -> bool {
    arena.len() >= arena.capacity()
}

/// Returns the number of extension blocks for this number of records.
fn chain_blocks(records: usize) -> usize {
    records.saturating_sub(INLINE_RECORDS).div_ceil(BLOCK_RECORDS)
}

/// Self-check.
impl Pit {
    /// Compares all counts, lists and arenas of the PIT with each other.
    pub(super) fn check_invariants(&self, names: &NameTable) -> Result<(), InvariantError> {
        let (mut pit, mut in_blocks, mut out_blocks, mut tokens) = (0, 0, 0, 0);
        for slot_ref in names.used_entries().flat_map(|entry| self.slots_of(names, entry)) {
            let slot = self.slot(slot_ref);
            pit += 1;
            if self.queue.get_by_serial(slot.queue_position, slot.serial) != Some(slot_ref) {
                return Err(InvariantError::of_slot(slot_ref, "is not at its recorded position in the queue"));
            }
            if slot.timer_at > slot.expiry {
                return Err(InvariantError::of_slot(slot_ref, "expires before its timer is due"));
            }
            in_blocks += chain_blocks(usize::from(slot.in_count));
            out_blocks += chain_blocks(usize::from(slot.out_count));
            tokens += self.in_records(slot_ref).filter(|record| record.long_token != NONE).count();
        }
        agree("PIT slots in the queue", self.queue.len(), pit)?;
        self.shares.check_invariants(self.queue.with_holders().map(|(_, holder)| holder))?;
        agree("PIT slots in the arena", self.slots.len(), pit)?;
        agree("in-record blocks", self.in_blocks.len(), in_blocks)?;
        agree("out-record blocks", self.out_blocks.len(), out_blocks)?;
        agree("long tokens", self.tokens.len(), tokens)?;
        self.check_inexact(names)
    }

    /// Returns the number of copies of Interests.
    pub(super) fn packets(&self, names: &NameTable) -> usize {
        let slots = names.used_entries().flat_map(|entry| self.slots_of(names, entry));
        slots.filter(|&pit| !self.slot(pit).packet.is_none()).count()
    }
}
