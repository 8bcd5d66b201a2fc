//! For tests of other crates: any bytes as the file of a second tier.

use std::time::Instant;

use namehop_hash::HashKey;

use crate::format::{HEADER_BYTES, NoRecord, RECORD_MAGIC, SLOT_BYTES, Superblock, body_bytes, decode, seal_record};
use crate::index::{Extent, Index};
use crate::scan::Scan;

/// The life of the file that the records are of.
const LIFE: u64 = 7;
/// Least slots that a file has.
const MIN_SLOTS: u64 = 16;

/// Takes bytes for the slots of a file, as a restart does. Where a slot begins like a record, all that a stranger would have to
/// compute for it is made right, the checksum in particular: what is behind that would not be reached otherwise.
///
/// # Panics
/// If something is believed that should not be.
pub fn check_file(bytes: &[u8]) {
    // Any bytes as the start of the file.
    if let Ok(superblock) = Superblock::decode(bytes) {
        assert_eq!(Superblock::decode(&superblock.encode()), Ok(superblock));
    }
    let slots = (bytes.len().div_ceil(SLOT_BYTES) as u64).max(MIN_SLOTS);
    let mut file = bytes.to_vec();
    file.resize(slots as usize * SLOT_BYTES, 0);
    for start in (0..file.len()).step_by(SLOT_BYTES) {
        let rest = &mut file[start..];
        let end = HEADER_BYTES + body_bytes(rest);
        // The first byte of what is the checksum later chooses.
        if rest[0].is_multiple_of(2) && end <= rest.len() {
            rest[4..8].copy_from_slice(&RECORD_MAGIC);
            rest[8..16].copy_from_slice(&LIFE.to_le_bytes());
            seal_record(&mut rest[..end]);
        }
    }
    for start in (0..file.len()).step_by(SLOT_BYTES) {
        match decode(&file[start..], LIFE) {
            Ok(record) => assert!(record.body.len() <= file.len() && record.fresh_for_ms(0) <= record.fresh_until_ms),
            Err(NoRecord::Absent | NoRecord::OtherLife | NoRecord::Broken) => {}
        }
    }
    // The index is larger than any file of a fuzzer.
    let Ok(index) = Index::new(64) else { return };
    let owner = Box::new(|name: &[u8]| name.len());
    let mut scan = Scan::new(vec![index], HashKey::new(1, 2), owner, LIFE, slots, Instant::now());
    while let Some(piece) = scan.next_piece() {
        let range = piece.start as usize * SLOT_BYTES..piece.end as usize * SLOT_BYTES;
        scan.take_piece(&file[range]);
        assert!(scan.percent() <= 100);
    }
    let found = scan.finish();
    assert!(found.records <= slots, "more records than slots");
    let extent = Extent { cursor: found.end, slots };
    assert!(!extent.is_live(found.end));
    found.erased.covers(&[8, 1, 65], found.end);
}
