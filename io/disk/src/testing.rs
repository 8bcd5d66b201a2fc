//! For tests of other crates: runs a second tier on a file of arbitrary bytes.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Instant;

use namehop_engine::second_tier::{ReadStart, SecondTier};
use namehop_hash::{HashKey, hash_name};
use namehop_packet::Timestamp;
use namehop_table::handover_ring;
use namehop_wire::DataHeader;

use crate::format::{
    HEADER_BYTES, NoRecord, RECORD_MAGIC, Record, RecordKind, SLOT_BYTES, SUPERBLOCK_BYTES, Superblock, body_bytes,
    decode, seal_record, slots_of,
};
use crate::index::Index;
use crate::messages::RING_SLOTS;
use crate::server::{Client, Server, Time, Worker};
use crate::shared::DiskState;
use crate::storage::{Storage, Transfer};
use crate::tier::DiskTier;

/// Life of the file and of its records.
const LIFE: u64 = 7;
/// Minimum number of slots of a file.
const MIN_SLOTS: u64 = 16;
/// Time of day, in milliseconds since 1970.
const WALL_MS: u64 = 1_700_000_000_000;

/// The slots of a read-only file.
struct Slots(Rc<[u8]>);

impl Storage for Slots {
    fn read(&self, mut buffer: Vec<u8>, bytes: usize, offset: u64) -> Transfer {
        let start = (offset as usize).saturating_sub(SUPERBLOCK_BYTES).min(self.0.len());
        let found = &self.0[start..self.0.len().min(start + bytes)];
        buffer[..found.len()].copy_from_slice(found);
        let read = found.len();
        Box::pin(async move { (Ok(read), buffer) })
    }

    fn write(&self, buffer: Vec<u8>, _: u64) -> Transfer {
        Box::pin(async move { (Err(io::ErrorKind::ReadOnlyFilesystem.into()), buffer) })
    }
}

/// A tier after a restart with such a file.
struct Restarted {
    tier: DiskTier,
    server: Server<Slots>,
    time: Time,
}

impl Restarted {
    fn over(file: Rc<[u8]>, slots: u64, key: HashKey) -> Option<Self> {
        let shared = Arc::new(DiskState::new(slots));
        let (to_disk, from_worker) = handover_ring(RING_SLOTS);
        let (to_worker, from_disk) = handover_ring(RING_SLOTS);
        let started = Instant::now();
        let client = Client { worker: Worker { wake: Box::new(|| {}), started }, from_worker, to_worker };
        let tier = DiskTier::new(Arc::clone(&shared), 1_000, to_disk, from_disk);
        let mut server = Server::new(shared, vec![client], Slots(file), LIFE);
        // The index is larger than any file of a fuzzer.
        let index = Index::new(64).ok()?;
        server.scan(vec![index], key, Box::new(|name| name.len()), started);
        let mut restarted = Restarted { tier, server, time: Time { now: started, wall_ms: WALL_MS } };
        restarted.poll();
        assert!(restarted.tier.next_finished().is_none(), "no lookup was requested");
        Some(restarted)
    }

    fn poll(&mut self) {
        self.tier.flush();
        let _ = self.server.poll(&mut Context::from_waker(Waker::noop()), self.time);
    }

    /// Looks up a name; returns the position and the packet.
    fn look_up(&mut self, name_hash: u64) -> Option<(u64, Vec<u8>)> {
        let located = self.tier.find(name_hash, false)?;
        assert!(
            matches!(self.tier.start_read(name_hash, located, false), ReadStart::Started(_)),
            "no other read is in flight"
        );
        self.poll();
        let finished = self.tier.next_finished().expect("the read is finished");
        let found = finished.data().map(|(packet, _)| (finished.position, packet.to_vec()));
        self.tier.end_read(finished, found.is_some());
        found
    }
}

/// Uses bytes as the slots of a file, scans it as a restart does, and looks up every name in it. If a slot begins
/// like a record, its magic, life and checksum are made valid, because an attacker could compute them; otherwise the
/// code behind these checks would not be reached.
///
/// # Panics
/// If an invalid record is accepted, or erased Data is found.
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
        // The first byte, later a part of the checksum, decides.
        if rest[0].is_multiple_of(2) && end <= rest.len() {
            rest[4..8].copy_from_slice(&RECORD_MAGIC);
            rest[8..16].copy_from_slice(&LIFE.to_le_bytes());
            seal_record(&mut rest[..end]);
        }
    }
    // The records that a restart accepts: in their own slots, and not inside other records.
    let (mut records, mut slot) = (Vec::<Record<'_>>::new(), 0);
    while slot < slots {
        slot += match decode(&file[slot as usize * SLOT_BYTES..], LIFE) {
            Ok(record) if record.position % slots == slot => {
                assert!(record.body.len() <= file.len() && record.fresh_for_ms(0) <= record.fresh_until_ms);
                records.push(record);
                slots_of(record.body.len()) as u64
            }
            Ok(_) | Err(NoRecord::Absent | NoRecord::OtherLife | NoRecord::Broken) => 1,
        };
    }
    let key = HashKey::new(1, 2);
    let Some(mut restarted) = Restarted::over(Rc::from(&file[..]), slots, key) else { return };
    restarted.tier.set_now(Timestamp::default());
    for record in &records {
        let Ok(header) = DataHeader::decode(record.body) else { continue };
        let name = header.name.value();
        let Some((position, packet)) = restarted.look_up(hash_name(&key, name)) else { continue };
        let of_file = records.iter().find(|record| record.position == position && record.body == packet);
        assert!(of_file.is_some_and(|record| record.kind == RecordKind::Data), "a lookup must find a record");
        // The name may be another one with the same bits of the hash; the engine then treats it as a miss.
        let Ok(found) = DataHeader::decode(&packet) else { continue };
        let found = found.name.value();
        let covers = |erasure: &&Record<'_>| {
            erasure.kind == RecordKind::Erasure && erasure.position > position && found.starts_with(erasure.body)
        };
        if let Some(erasure) = records.iter().find(covers) {
            assert!(restarted.tier.is_erased(found, position), "found despite {erasure:?}");
        }
        assert!(!restarted.tier.is_erased(found, u64::MAX), "later records must not be erased");
    }
}
