//! What the file holds from before a restart: all of it is read once, in pieces, and each intact record comes into the index of
//! the worker whose its name is now.
//!
//! Records of one name may lie in the log several times; the last one counts. Erasures count for everything before them. When there are
//! very many of those, the oldest count for all names.

use std::ops::Range;
use std::time::Instant;

use namehop_hash::{HashKey, hash_name};
use namehop_wire::DataHeader;

use crate::erased::Erased;
use crate::format::{CHUNK_SLOTS, Kind, Record, SLOT_BYTES, decode, slots_of};
use crate::index::{Extent, Index, Located};

/// Slots of a piece. No record goes beyond its chunk, so none goes beyond a piece.
const PIECE_SLOTS: u64 = 8 * CHUNK_SLOTS;

/// Erasures that are kept apart while the file is read: many times what is remembered of them afterwards.
const MAX_ERASURES: usize = 1024;

/// Finds the worker of a name by its VALUE.
pub(crate) type OwnerOf = Box<dyn Fn(&[u8]) -> usize + Send>;

/// See the module's description.
pub(crate) struct Scan {
    indexes: Vec<Index>,
    erasures: Vec<(Box<[u8]>, u64)>,
    key: HashKey,
    owner_of: OwnerOf,
    life: u64,
    slots: u64,
    /// Slots that were looked at, from the start of the ring.
    done: u64,
    /// Position behind the last record.
    end: u64,
    records: u64,
    pub(crate) reported: Instant,
}

/// What a scan has found.
pub(crate) struct Found {
    pub(crate) indexes: Vec<Index>,
    pub(crate) erased: Erased,
    /// Position behind the last record.
    pub(crate) end: u64,
    /// Data, those that were written several times counted as often.
    pub(crate) records: u64,
}

impl Scan {
    /// A scan that fills these indexes, one for each worker.
    pub(crate) fn new(
        indexes: Vec<Index>,
        key: HashKey,
        owner_of: OwnerOf,
        life: u64,
        slots: u64,
        now: Instant,
    ) -> Self {
        Scan { indexes, erasures: Vec::new(), key, owner_of, life, slots, done: 0, end: 0, records: 0, reported: now }
    }

    /// Slots of the ring that are to be read next; `None` when all were.
    pub(crate) fn next_piece(&self) -> Option<Range<u64>> {
        (self.done < self.slots).then(|| self.done..self.slots.min(self.done + PIECE_SLOTS))
    }

    /// Percent that was read.
    pub(crate) fn percent(&self) -> u64 {
        self.done * 100 / self.slots.max(1)
    }

    /// Takes in the next piece; no bytes when it could not be read.
    pub(crate) fn take_piece(&mut self, bytes: &[u8]) {
        let Some(piece) = self.next_piece() else { return };
        let mut slot = piece.start;
        while slot < piece.end {
            let at = (slot - piece.start) as usize * SLOT_BYTES;
            let record = bytes.get(at..).and_then(|rest| decode(rest, self.life).ok());
            // A record in another place than its own was put there by nobody.
            slot += match record.filter(|record| record.position % self.slots == slot) {
                Some(record) => {
                    self.take_record(&record);
                    slots_of(record.body.len()) as u64
                }
                None => 1,
            };
        }
        self.done = piece.end;
    }

    fn take_record(&mut self, record: &Record<'_>) {
        let slots = slots_of(record.body.len());
        self.end = self.end.max(record.position + slots as u64);
        match record.kind {
            Kind::Erasure => {
                self.erasures.push((record.body.into(), record.position));
                if self.erasures.len() > MAX_ERASURES {
                    self.join_erasures();
                }
            }
            Kind::Data => {
                let Ok(header) = DataHeader::decode(record.body) else { return };
                let name = header.name.value();
                let workers = self.indexes.len();
                let Some(index) = self.indexes.get_mut((self.owner_of)(name) % workers) else { return };
                let extent = Extent { cursor: self.end, slots: self.slots };
                let hash = hash_name(&self.key, name);
                if index.find(hash, extent).is_none_or(|known| known.position < record.position) {
                    let may_be_fresh = record.fresh_until_ms > 0;
                    index.insert(hash, Located { position: record.position, slots, may_be_fresh }, extent);
                    self.records += 1;
                }
            }
        }
    }

    /// Makes of the older half of the erasures one of everything before the last of them: what is erased stays erased, and how
    /// much memory a file takes does not depend on what is in it.
    #[cold]
    fn join_erasures(&mut self) {
        self.erasures.sort_by_key(|&(_, position)| position);
        let newer = self.erasures.split_off(MAX_ERASURES / 2);
        let before = self.erasures.last().map(|&(_, position)| position);
        self.erasures = before.map(|position| (Box::default(), position)).into_iter().chain(newer).collect();
    }

    /// What was found.
    pub(crate) fn finish(mut self) -> Found {
        let end = self.end.next_multiple_of(CHUNK_SLOTS);
        let extent = Extent { cursor: end, slots: self.slots };
        let mut erased = Erased::default();
        self.erasures.sort_by_key(|&(_, position)| position);
        for (prefix, position) in &self.erasures {
            erased.add(prefix, *position, extent);
        }
        Found { indexes: self.indexes, erased, end, records: self.records }
    }
}

#[cfg(test)]
mod tests {
    use namehop_packet::Timestamp;

    use super::*;
    use crate::format::{append, seal};

    #[test]
    fn a_file_full_of_erasures_takes_little_memory_and_what_is_erased_stays_so() {
        const ERASURES: u64 = 5_000;
        let slots = 8 * PIECE_SLOTS;
        let prefix = |number: u64| [&[8, 2][..], &(number as u16).to_be_bytes()].concat();
        let mut log = Vec::new();
        for number in 0..ERASURES {
            append(&mut log, number, Kind::Erasure, Timestamp(0), &prefix(number));
        }
        seal(&mut log, 7, 1, |time| time.0);
        log.resize(slots as usize * SLOT_BYTES, 0);
        let index = Index::new(64).expect("memory");
        let mut scan = Scan::new(vec![index], HashKey::new(1, 2), Box::new(|_| 0), 7, slots, Instant::now());
        while let Some(piece) = scan.next_piece() {
            scan.take_piece(&log[piece.start as usize * SLOT_BYTES..piece.end as usize * SLOT_BYTES]);
            assert!(scan.erasures.len() <= MAX_ERASURES);
        }
        let found = scan.finish();
        for number in 0..ERASURES {
            assert!(number == 0 || found.erased.covers(&prefix(number), number - 1), "erasure {number} is forgotten");
        }
        assert!(!found.erased.covers(&prefix(1), ERASURES), "what came later is there");
    }
}
