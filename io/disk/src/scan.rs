//! Recovers the contents of the file after a restart: reads all of it once, in pieces, and adds each intact record to
//! the index of the worker that owns its name now.
//!
//! The log may hold several records of one name; the last one counts. An erasure applies to everything before it. If
//! there are too many erasures, the oldest are merged into one for all names.

use std::ops::Range;
use std::time::Instant;

use namehop_engine::second_tier::RecordLocation;
use namehop_hash::{HashKey, hash_name};
use namehop_wire::DataHeader;

use crate::erased::Erased;
use crate::format::{CHUNK_SLOTS, Record, RecordKind, SLOT_BYTES, decode, slots_of};
use crate::index::{Extent, Index};

/// Slots of a piece. No record crosses a chunk boundary, so none crosses a piece boundary.
const PIECE_SLOTS: u64 = 8 * CHUNK_SLOTS;

/// Maximum number of separate erasures during the scan: many times the number remembered afterwards.
const MAX_ERASURES: usize = 1024;

/// Returns the worker that owns a name, given as its VALUE.
pub(crate) type OwnerOf = Box<dyn Fn(&[u8]) -> usize + Send>;

/// A scan in progress; see the module's description.
pub(crate) struct Scan {
    indexes: Vec<Index>,
    erasures: Vec<(Box<[u8]>, u64)>,
    key: HashKey,
    owner_of: OwnerOf,
    life: u64,
    slots: u64,
    /// Number of slots scanned, from the start of the ring.
    done: u64,
    /// Position after the last record.
    end: u64,
    records: u64,
    pub(crate) reported: Instant,
}

/// Result of a scan.
pub(crate) struct ScanResult {
    pub(crate) indexes: Vec<Index>,
    pub(crate) erased: Erased,
    /// Position after the last record.
    pub(crate) end: u64,
    /// Number of Data records; a name with several records may count several times.
    pub(crate) records: u64,
}

impl Scan {
    /// Makes a scan that fills these indexes, one for each worker.
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

    /// Returns the slots of the ring to read next; `None` when all were read.
    pub(crate) fn next_piece(&self) -> Option<Range<u64>> {
        (self.done < self.slots).then(|| self.done..self.slots.min(self.done + PIECE_SLOTS))
    }

    /// Returns the percentage of slots scanned.
    pub(crate) fn percent(&self) -> u64 {
        self.done * 100 / self.slots.max(1)
    }

    /// Processes the next piece; `bytes` is empty if the piece could not be read.
    pub(crate) fn take_piece(&mut self, bytes: &[u8]) {
        let Some(piece) = self.next_piece() else { return };
        let mut slot = piece.start;
        while slot < piece.end {
            let at = (slot - piece.start) as usize * SLOT_BYTES;
            let record = bytes.get(at..).and_then(|rest| decode(rest, self.life).ok());
            // A record outside of its own slot is not a valid record.
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
            RecordKind::Erasure => {
                self.erasures.push((record.body.into(), record.position));
                if self.erasures.len() > MAX_ERASURES {
                    self.join_erasures();
                }
            }
            RecordKind::Data => {
                let Ok(header) = DataHeader::decode(record.body) else { return };
                let name = header.name.value();
                let workers = self.indexes.len();
                let Some(index) = self.indexes.get_mut((self.owner_of)(name) % workers) else { return };
                let extent = Extent { cursor: self.end, slots: self.slots };
                let hash = hash_name(&self.key, name);
                if index.find(hash, extent).is_none_or(|known| known.position < record.position) {
                    let may_be_fresh = record.fresh_until_ms > 0;
                    index.insert(hash, RecordLocation { position: record.position, slots, may_be_fresh }, extent);
                    self.records += 1;
                }
            }
        }
    }

    /// Merges the older half of the erasures into one of everything before the last of them. Erased Data stays
    /// erased, and the memory of a scan does not depend on the contents of the file.
    #[cold]
    fn join_erasures(&mut self) {
        self.erasures.sort_by_key(|&(_, position)| position);
        let newer = self.erasures.split_off(MAX_ERASURES / 2);
        let before = self.erasures.last().map(|&(_, position)| position);
        self.erasures = before.map(|position| (Box::default(), position)).into_iter().chain(newer).collect();
    }

    /// Returns the result.
    pub(crate) fn finish(mut self) -> ScanResult {
        let end = self.end.next_multiple_of(CHUNK_SLOTS);
        let extent = Extent { cursor: end, slots: self.slots };
        let mut erased = Erased::default();
        self.erasures.sort_by_key(|&(_, position)| position);
        for (prefix, position) in &self.erasures {
            erased.add(prefix, *position, extent);
        }
        ScanResult { indexes: self.indexes, erased, end, records: self.records }
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
            append(&mut log, number, RecordKind::Erasure, Timestamp(0), &prefix(number));
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
            assert!(number == 0 || found.erased.covers(&prefix(number), number - 1), "erasure {number} must be kept");
        }
        assert!(!found.erased.covers(&prefix(1), ERASURES), "an erasure must not cover later records");
    }
}
