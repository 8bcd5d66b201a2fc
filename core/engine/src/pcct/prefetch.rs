//! Prefetches for the prefetch plane: the memory that the pipelines will touch. Nothing here changes the table, and any
//! index may be passed.

use arrayvec::ArrayVec;
use namehop_hash::{PrefixHashes, hash_with_nonce};
use namehop_packet::Timestamp;
use namehop_store::{Ahead, CachePolicy};

use super::content::ContentStore;
use super::entry::{Entry, PitSlot};
use super::{Pcct, PitRef};
use crate::parse::MAX_BURST;

/// Number of lines of cached Data that are prefetched; the hardware prefetcher detects the sequence and fetches the
/// rest.
const DATA_LINES: usize = 8;

/// The expected state of the table while packets of a burst are handled in order: where new entries will be, and which
/// ones will be evicted for them.
#[derive(Debug)]
pub struct Forecast {
    /// Number of PIT slots in use.
    pit_len: usize,
    /// Sequence number where the search for the next victim starts.
    next_victim: u64,
    /// Number of entries in use. Free entries form a stack, so this tells how many of the currently free ones will be
    /// taken.
    entries: usize,
    /// Number of allocated PIT slots, used in the same way.
    slots: usize,
    /// Number of PIT slots that Data frees and no Interest has taken again. Only their entries tell which ones they
    /// are; the Data prefetches them.
    freed_slots: usize,
    /// Entries that Data frees and no Interest has taken again; the last one is taken first.
    freed: ArrayVec<u32, MAX_BURST>,
    /// How far the victims of new Data were predicted.
    victims: Ahead,
}

impl Pcct {
    /// Starts a forecast from the current state.
    #[inline]
    pub(crate) fn forecast(&self) -> Forecast {
        Forecast {
            pit_len: self.pit_len(),
            next_victim: 0,
            entries: self.entries.len(),
            slots: self.slots.len(),
            freed_slots: 0,
            freed: ArrayVec::new(),
            victims: Ahead::default(),
        }
    }

    /// Predicts an Interest that makes an entry with a PIT slot. Prefetches all lines of both, and returns the entry if
    /// its PIT slot will be evicted.
    #[inline]
    pub(crate) fn foresee_entry(&self, forecast: &mut Forecast) -> Option<u32> {
        let evicted = self.foresee_eviction(forecast);
        // The entry freed last is taken first.
        if let Some(index) = evicted.map(|pit| pit.entry).or_else(|| self.foresee_free_entry(forecast)) {
            self.prefetch_entry(index);
        }
        if let Some(slot) = evicted.map(|pit| pit.slot).or_else(|| self.foresee_free_slot(forecast)) {
            self.prefetch_slot(slot);
        }
        evicted.map(|pit| pit.entry)
    }

    /// Predicts the opening of a PIT slot. Returns the slot that will be evicted for it, with its entry.
    #[inline]
    fn foresee_eviction(&self, forecast: &mut Forecast) -> Option<PitRef> {
        if forecast.pit_len < self.pit_capacity {
            forecast.pit_len += 1;
            return None;
        }
        let (victim, next) = self.queue.next_victim_from(forecast.next_victim, &self.shares);
        forecast.next_victim = next;
        victim
    }

    /// Predicts the free entry that will be taken.
    #[inline]
    fn foresee_free_entry(&self, forecast: &mut Forecast) -> Option<u32> {
        let taken_before = forecast.entries.saturating_sub(self.entries.len());
        forecast.entries += 1;
        forecast.freed.pop().or_else(|| self.entries.upcoming(taken_before))
    }

    /// Predicts the PIT slot that will be taken, if it is free now.
    #[inline]
    fn foresee_free_slot(&self, forecast: &mut Forecast) -> Option<u32> {
        let taken_before = forecast.slots.saturating_sub(self.slots.len());
        forecast.slots += 1;
        if forecast.freed_slots > 0 {
            forecast.freed_slots -= 1;
            return None;
        }
        self.slots.upcoming(taken_before)
    }

    /// Predicts Data, probably for this entry. Returns the entry that will probably lose its Data.
    #[inline]
    pub(crate) fn foresee_data(&self, entry: Option<u32>, forecast: &mut Forecast) -> Option<u32> {
        if entry.is_some() {
            forecast.pit_len = forecast.pit_len.saturating_sub(1);
            forecast.slots = forecast.slots.saturating_sub(1);
            forecast.freed_slots += 1;
        }
        let stays = self.content.lets_most_in();
        let is_due = stays && self.content.is_full();
        let victim = is_due.then(|| self.content.policy.upcoming(&mut forecast.victims)).flatten();
        // The entry ends with its PIT entry, unless the Data stays in it.
        if let Some(freed) = if stays { victim } else { entry } {
            forecast.entries = forecast.entries.saturating_sub(1);
            // `freed` has room for one entry per packet of a burst.
            let _ = forecast.freed.try_push(freed);
        }
        victim
    }

    /// Returns whether the hashes of a Data name are needed even if its PIT token leads to an entry with this name.
    /// They are while Interests with CanBePrefix or with an implicit digest are pending, and for some time after an
    /// Interest with CanBePrefix.
    pub(crate) fn asks_for_prefixes(&self, now: Timestamp) -> bool {
        self.pending_unusual > 0 || (self.content.admits() && self.content.indexes(now))
    }

    /// Prefetches the bucket of a name.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, name_hash: u64) {
        self.table.prefetch(name_hash);
    }

    /// Returns whether the Content Store's policy uses names. Only then
    /// [`prefetch_name_notes`](Self::prefetch_name_notes) and [`prefetch_decision`](Self::prefetch_decision) are
    /// useful.
    #[inline]
    pub(crate) fn policy_expects(&self) -> bool {
        self.content.policy.expects()
    }

    /// Prefetches the Content Store policy's state of a name.
    pub(crate) fn prefetch_name_notes(&self, name_hash: u64) {
        self.content.policy.prefetch_name(name_hash);
    }

    /// Prefetches the state that decides on admission: the policy's state of the entry's name and of the possible
    /// victim. Reads the entries.
    pub(crate) fn prefetch_decision(&self, entry: Option<u32>, victim: Option<u32>) {
        if let Some(entry) = entry.and_then(|entry| self.entries.get(entry)) {
            self.content.policy.prefetch_name(entry.name_hash);
        }
        if let Some((index, victim)) = victim.and_then(|index| Some((index, self.entries.get(index)?))) {
            self.content.policy.prefetch_victim(index, victim.name_hash);
        }
    }

    /// Prefetches the bucket of a name in the prefix index of cached Data.
    #[inline]
    pub(crate) fn prefetch_prefix(&self, name_hash: u64) {
        self.content.prefetch_prefix(name_hash);
    }

    /// Prefetches the buckets that Data without a usable token probes for Interests it satisfies.
    #[inline]
    pub(crate) fn prefetch_satisfied(&self, hashes: &PrefixHashes) {
        self.table.prefetch(hashes.full());
        for depth in 1..hashes.depth() {
            if self.pending_prefixes[depth] > 0 {
                self.table.prefetch(hashes.get(depth));
            }
        }
    }

    /// Guesses the entry of a name from its bucket alone. Best when the bucket is cached.
    #[inline]
    pub(crate) fn guess(&self, name_hash: u64) -> Option<u32> {
        self.table.guess(name_hash)
    }

    /// Prefetches all lines of an entry.
    #[inline]
    pub(crate) fn prefetch_entry(&self, index: u32) {
        for line in 0..size_of::<Entry>() / 64 {
            self.entries.prefetch_line(index, line);
        }
    }

    /// Prefetches all lines of a PIT slot.
    #[inline]
    pub(crate) fn prefetch_slot(&self, slot: u32) {
        for line in 0..size_of::<PitSlot>() / 64 {
            self.slots.prefetch_line(slot, line);
        }
    }

    /// Prefetches a PIT slot and its entry.
    #[inline]
    pub(crate) fn prefetch_pending(&self, pit: PitRef) {
        self.prefetch_entry(pit.entry);
        self.prefetch_slot(pit.slot);
    }

    /// Prefetches identity and start of the name of an entry.
    #[inline]
    pub(crate) fn prefetch_identity(&self, index: u32) {
        self.entries.prefetch_line(index, 0);
    }

    /// Prefetches the Content Store policy's state of an entry, for insertion or use of its Data.
    #[inline]
    pub(crate) fn prefetch_order(&self, index: u32) {
        if self.content.admits() {
            self.content.policy.prefetch(index);
        }
    }

    /// Prefetches the cached Data of an entry, if it has any, and the policy state that a hit changes; otherwise its
    /// PIT slot. Reads the entry.
    #[inline]
    pub(crate) fn prefetch_use(&self, index: u32) {
        if self.prefetch_data(index) {
            self.content.policy.prefetch_hit(index);
        } else if let Some(entry) = self.entries.get(index) {
            self.prefetch_slot(entry.first_slot);
        }
    }

    /// Prefetches the cached Data of an entry. Returns `false` if it has none. Reads the entry.
    #[inline]
    fn prefetch_data(&self, index: u32) -> bool {
        let Some(entry) = self.entries.get(index).filter(|entry| entry.has_data()) else { return false };
        self.content.blocks.prefetch(entry.data, usize::from(entry.data_bytes), DATA_LINES);
        true
    }

    /// Prefetches the bucket that is changed when an entry is freed. Reads the entry.
    #[inline]
    pub(crate) fn prefetch_removal(&self, index: u32) {
        if let Some(entry) = self.entries.get(index) {
            self.table.prefetch(entry.name_hash);
        }
    }

    /// Prefetches what else is touched when a PIT slot ends. If `slot` is known and thus prefetched, reads it for its
    /// position in the queue and prefetches that; otherwise prefetches the entry's first slot. Reads the entry.
    #[inline]
    pub(crate) fn prefetch_answer(&self, index: u32, slot: Option<u32>) {
        let Some(entry) = self.entries.get(index) else { return };
        self.prefetch_tier_forget(entry.name_hash);
        match slot {
            Some(slot) => self.queue.prefetch(self.slots.get(slot).map_or(0, |slot| slot.queue_position)),
            None => self.prefetch_slot(entry.first_slot),
        }
    }

    /// Prefetches what is touched when an entry with one PIT slot is evicted, including the memory of its name, which
    /// the next name of that size overwrites. Reads the entry and the slot. Returns the hash with nonce that then goes
    /// to the Dead Nonce List.
    #[inline]
    pub(crate) fn prefetch_end(&self, index: u32) -> Option<u64> {
        let entry = self.entries.get(index)?;
        self.table.prefetch(entry.name_hash);
        if let Some(block) = entry.long_key() {
            self.memory.prefetch(block, entry.key_bytes(), DATA_LINES);
        }
        let slot = self.slots.get(entry.first_slot)?;
        let is_kept = slot.out_count > 0 && slot.keeps_nonces();
        is_kept.then(|| hash_with_nonce(entry.name_hash, slot.out_records[0].nonce))
    }

    /// Prefetches what the eviction of an entry's Data touches, including the memory that new Data overwrites. Reads
    /// the entry.
    #[inline]
    pub(crate) fn prefetch_eviction(&self, index: u32) {
        let Some(entry) = self.entries.get(index) else { return };
        self.table.prefetch(entry.name_hash);
        self.prefetch_tier_lookup(entry.name_hash);
        self.prefetch_data(index);
    }
}

impl ContentStore {
    /// Returns whether Data is admitted.
    #[inline]
    pub(crate) fn admits(&self) -> bool {
        self.admit && self.capacity > 0
    }

    /// Returns whether most Data is admitted. Policies that count requests admit a few packets in a hundred, so
    /// prefetching a victim for each is not worthwhile.
    #[inline]
    pub(crate) fn lets_most_in(&self) -> bool {
        self.admits() && !self.policy.counts()
    }

    /// Returns whether the next new Data evicts another.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.admits() && self.len() >= self.capacity
    }
}

#[cfg(test)]
mod tests {
    use namehop_store::PolicyKind;

    use super::*;
    use crate::pcct::PcctConfig;
    use crate::pcct::content::ContentConfig;
    use crate::pcct::entry::Selectors;
    use crate::pcct::keys::Key;

    fn table(pit_capacity: usize) -> Pcct {
        let content = ContentConfig {
            capacity_packets: 0,
            capacity_bytes: 0,
            reserved_packets: 0,
            policy: PolicyKind::Lru.into(),
            admit: false,
            serve: false,
        };
        let key = namehop_hash::HashKey::new(1, 2);
        Pcct::new(&PcctConfig { pit_capacity, memory_bytes: 1 << 16, content, key, worker: 0 }).expect("memory")
    }

    /// Opens a PIT slot as the pipelines do for an Interest.
    fn open(table: &mut Pcct, number: u8) -> PitRef {
        let name = [8, 1, number];
        let key = Key {
            name: &name,
            name_hash: number.into(),
            depth: 1,
            names_digest: false,
            delegation: &[],
            delegation_hash: 0,
        };
        if table.pit_is_full() {
            let victim =
                table.victim(namehop_packet::face::FaceId::FIRST_USER).expect("a victim, because the PIT is full");
            table.close_slot(victim);
        }
        let entry = table.insert(&key, None).expect("room");
        let selectors = Selectors { can_be_prefix: false, must_be_fresh: false };
        table.open_slot(entry, selectors, namehop_packet::face::FaceId::FIRST_USER).expect("room")
    }

    #[test]
    fn the_places_of_new_entries_are_known_ahead() {
        for behind in [0, 1, 3] {
            let mut table = table(8);
            let mut pending: Vec<PitRef> = (0..6).map(|number| open(&mut table, number)).collect();
            table.close_slot(pending.remove(1));
            // Interests, and Data for Interests pending then; the prefetch plane runs `behind` packets ahead.
            let packets = "IIIIIDDIDIIIIDIII".as_bytes();
            let mut forecast = table.forecast();
            let (mut expected, mut answered) = (Vec::new(), Vec::new());
            for position in 0..packets.len() + behind {
                if let Some(kind) = packets.get(position) {
                    if *kind == b'I' {
                        let evicted = table.foresee_eviction(&mut forecast);
                        let entry = evicted.map(|pit| pit.entry).or_else(|| table.foresee_free_entry(&mut forecast));
                        let slot = evicted.map(|pit| pit.slot).or_else(|| table.foresee_free_slot(&mut forecast));
                        expected.push((entry, slot, evicted.is_some()));
                    } else {
                        // The newest pending one that is not answered.
                        let pit =
                            *pending.iter().rev().find(|pit| !answered.contains(*pit)).expect("a pending Interest");
                        answered.push(pit);
                        assert_eq!(table.foresee_data(Some(pit.entry), &mut forecast), None);
                    }
                }
                match position.checked_sub(behind).map(|handled| packets[handled]) {
                    Some(b'I') => {
                        let was_full = table.pit_is_full();
                        let pit = open(&mut table, 100 + position as u8);
                        pending.push(pit);
                        let (entry, slot, is_evicted) = expected.remove(0);
                        let place = (Some(pit.entry), slot.map(|_| pit.slot), was_full);
                        assert_eq!((entry, slot, is_evicted), place, "packet {position}, {behind} packets ahead");
                    }
                    Some(_) => {
                        let pit = answered.remove(0);
                        pending.retain(|other| *other != pit);
                        table.close_slot(pit);
                    }
                    None => {}
                }
            }
            table.check_invariants().expect("invariants");
        }
    }
}
