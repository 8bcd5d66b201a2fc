//! The forecast of the prefetch plane, and prefetches that take several parts of the table. Nothing here changes the
//! table, and any index may be passed.

use arrayvec::ArrayVec;
use namehop_hash::hash_with_nonce;
use namehop_packet::Timestamp;
use namehop_store::Ahead;

use super::{Pcct, PitRef};
use crate::parse::MAX_BURST;

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
            pit_len: self.pit.len(),
            next_victim: 0,
            entries: self.names.len(),
            slots: self.pit.allocated(),
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
            self.names.prefetch_entry(index);
        }
        if let Some(slot) = evicted.map(|pit| pit.slot).or_else(|| self.foresee_free_slot(forecast)) {
            self.pit.prefetch_slot(slot);
        }
        evicted.map(|pit| pit.entry)
    }

    /// Predicts the opening of a PIT slot. Returns the slot that will be evicted for it, with its entry.
    #[inline]
    fn foresee_eviction(&self, forecast: &mut Forecast) -> Option<PitRef> {
        if forecast.pit_len < self.pit.capacity() {
            forecast.pit_len += 1;
            return None;
        }
        let (victim, next) = self.pit.next_victim_from(forecast.next_victim);
        forecast.next_victim = next;
        victim
    }

    /// Predicts the free entry that will be taken.
    #[inline]
    fn foresee_free_entry(&self, forecast: &mut Forecast) -> Option<u32> {
        let taken_before = forecast.entries.saturating_sub(self.names.len());
        forecast.entries += 1;
        forecast.freed.pop().or_else(|| self.names.upcoming(taken_before))
    }

    /// Predicts the PIT slot that will be taken, if it is free now.
    #[inline]
    fn foresee_free_slot(&self, forecast: &mut Forecast) -> Option<u32> {
        let taken_before = forecast.slots.saturating_sub(self.pit.allocated());
        forecast.slots += 1;
        if forecast.freed_slots > 0 {
            forecast.freed_slots -= 1;
            return None;
        }
        self.pit.upcoming(taken_before)
    }

    /// Predicts Data, probably for this entry. Returns the entry that will probably lose its Data, or that the policy
    /// compares with it.
    #[inline]
    pub(crate) fn foresee_data(&self, entry: Option<u32>, forecast: &mut Forecast) -> Option<u32> {
        if entry.is_some() {
            forecast.pit_len = forecast.pit_len.saturating_sub(1);
            forecast.slots = forecast.slots.saturating_sub(1);
            forecast.freed_slots += 1;
        }
        let stays = self.content.admits_most();
        let is_due = self.content.examines_victims() && self.content.is_full();
        let victim = is_due.then(|| self.content.upcoming_victim(&mut forecast.victims)).flatten();
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
    pub(crate) fn needs_data_hashes(&self, now: Timestamp) -> bool {
        self.pit.has_inexact() || (self.content.admits() && self.content.indexes(now))
    }

    /// Prefetches a PIT slot and its entry.
    #[inline]
    pub(crate) fn prefetch_pending(&self, pit: PitRef) {
        self.names.prefetch_entry(pit.entry);
        self.pit.prefetch_slot(pit.slot);
    }

    /// Prefetches the cached Data of an entry, if it has any, and the policy state that a hit changes; otherwise its
    /// PIT slot. Reads the entry.
    #[inline]
    pub(crate) fn prefetch_use(&self, index: u32) {
        if !self.content.prefetch_hit(&self.names, index)
            && let Some(entry) = self.names.get(index)
        {
            self.pit.prefetch_slot(entry.first_slot);
        }
    }

    /// Prefetches what else is touched when a PIT slot ends. If `slot` is known and thus prefetched, reads it for its
    /// position in the queue and prefetches that; otherwise prefetches the entry's first slot. Reads the entry.
    #[inline]
    pub(crate) fn prefetch_answer(&self, index: u32, slot: Option<u32>) {
        let Some(entry) = self.names.get(index) else { return };
        self.content.prefetch_tier_forget(entry.name_hash);
        match slot {
            Some(slot) => self.pit.prefetch_position(slot),
            None => self.pit.prefetch_slot(entry.first_slot),
        }
    }

    /// Prefetches what is touched when an entry with one PIT slot is evicted, including the memory of its name, which
    /// the next name of that size overwrites. Reads the entry and the slot. Returns the hash with nonce that then goes
    /// to the Dead Nonce List.
    #[inline]
    pub(crate) fn prefetch_end(&self, index: u32) -> Option<u64> {
        let entry = self.names.get(index)?;
        self.names.prefetch_bucket(entry.name_hash);
        self.names.prefetch_long_key(entry);
        let slot = self.pit.get(entry.first_slot)?;
        let is_kept = slot.out_count > 0 && slot.keeps_nonces();
        is_kept.then(|| hash_with_nonce(entry.name_hash, slot.out_records[0].nonce))
    }
}

#[cfg(test)]
mod tests {
    use namehop_store::PolicyKind;

    use super::*;
    use crate::pcct::PcctConfig;
    use crate::pcct::content::ContentConfig;
    use crate::pcct::content::insertion::{NewData, Stored};
    use crate::pcct::entry::Selectors;
    use crate::pcct::key::Key;

    fn table(pit_capacity: usize) -> Pcct {
        table_with_cache(pit_capacity, 0, PolicyKind::Lru)
    }

    fn table_with_cache(pit_capacity: usize, capacity_packets: usize, policy: PolicyKind) -> Pcct {
        let content = ContentConfig {
            capacity_packets,
            capacity_bytes: capacity_packets << 16,
            reserved_packets: capacity_packets,
            policy: policy.into(),
            admit: capacity_packets > 0,
            serve: capacity_packets > 0,
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
        if table.pit.is_full() {
            let victim =
                table.pit.victim(namehop_packet::face::FaceId::FIRST_USER).expect("a victim, because the PIT is full");
            table.pit.close(&mut table.names, victim);
        }
        let entry = table.insert(&key, None).expect("room");
        let selectors = Selectors { can_be_prefix: false, must_be_fresh: false };
        table.pit.open(&mut table.names, entry, selectors, namehop_packet::face::FaceId::FIRST_USER).expect("room")
    }

    #[test]
    fn a_victim_is_predicted_for_each_data_if_the_policy_examines_it() {
        let table_of = [
            (PolicyKind::Lru, true),
            (PolicyKind::TinyLfu, true),
            (PolicyKind::TinyLfuRandom, true),
            // It compares with few victims.
            (PolicyKind::TinyLfuClock, false),
            // It rejects most Data, and compares with no victim.
            (PolicyKind::Filter, false),
        ];
        for (policy, is_examined) in table_of {
            let mut table = table_with_cache(16, 8, policy);
            for number in 0..8 {
                let pit = open(&mut table, number);
                // So that every policy admits it.
                (0..4).for_each(|_| table.content.note_request(number.into()));
                let data = NewData::by_name(b"some Data");
                assert_eq!(table.content.store(&mut table.names, pit.entry, &data, Timestamp(0)), Stored::Yes);
                table.pit.close(&mut table.names, pit);
            }
            let mut forecast = table.forecast();
            let mut victims: Vec<u32> = (0..8).filter_map(|_| table.foresee_data(None, &mut forecast)).collect();
            victims.sort_unstable();
            victims.dedup();
            assert_eq!(victims.len() >= 4, is_examined, "{policy}: {victims:?}");
            assert!(is_examined || victims.is_empty(), "{policy}: {victims:?}");
        }
    }

    #[test]
    fn the_places_of_new_entries_are_known_ahead() {
        for behind in [0, 1, 3] {
            let mut table = table(8);
            let mut pending: Vec<PitRef> = (0..6).map(|number| open(&mut table, number)).collect();
            table.pit.close(&mut table.names, pending.remove(1));
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
                        let was_full = table.pit.is_full();
                        let pit = open(&mut table, 100 + position as u8);
                        pending.push(pit);
                        let (entry, slot, is_evicted) = expected.remove(0);
                        let place = (Some(pit.entry), slot.map(|_| pit.slot), was_full);
                        assert_eq!((entry, slot, is_evicted), place, "packet {position}, {behind} packets ahead");
                    }
                    Some(_) => {
                        let pit = answered.remove(0);
                        pending.retain(|other| *other != pit);
                        table.pit.close(&mut table.names, pit);
                    }
                    None => {}
                }
            }
            table.check_invariants().expect("invariants");
        }
    }
}
