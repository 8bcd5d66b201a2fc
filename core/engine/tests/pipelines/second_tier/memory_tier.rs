//! A second tier in memory, slow and obvious: a map from hashes of names to packets.
//!
//! Time passes only with the engine's clock. A read that was flushed ends `latency_ms` after its start.

use std::collections::BTreeMap;

use namehop_engine::second_tier::{
    DeviceCounters, FinishedRead, ReadId, ReadStart, RecordLocation, SecondTier, TierCounters, TierReport, TierState,
    TierStatus,
};
use namehop_packet::Timestamp;

/// Time that Interests wait for a read.
pub const TIMEOUT_MS: u64 = 50;

#[derive(Debug)]
struct Record {
    position: u64,
    fresh_until: Timestamp,
    packet: Vec<u8>,
}

#[derive(Debug)]
struct Read {
    id: ReadId,
    name_hash: u64,
    position: u64,
    start: Timestamp,
    is_flushed: bool,
    is_awaited: bool,
    is_unsolicited_peers: bool,
}

/// The tier; see the module's description.
#[derive(Debug, Default)]
pub struct MemoryTier {
    latency_ms: u64,
    now: Timestamp,
    records: BTreeMap<u64, Record>,
    /// Position of the next record.
    end: u64,
    /// Prefixes with the position before which their Data is erased.
    erased: Vec<(Vec<u8>, u64)>,
    /// Reads in flight, oldest first.
    reads: Vec<Read>,
    started_reads: u64,
    counters: TierCounters,
}

impl MemoryTier {
    pub fn with_latency(latency_ms: u64) -> Self {
        MemoryTier { latency_ms, ..MemoryTier::default() }
    }
}

impl SecondTier for MemoryTier {
    fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    fn prefetch_lookup(&self, _: u64) {}

    fn prefetch_forget(&self, _: u64) {}

    fn takes_data(&self) -> bool {
        true
    }

    fn note_not_stored(&mut self) {
        self.counters.not_stored += 1;
    }

    fn offer(&mut self, name_hash: u64, fresh_until: Timestamp, packet: &[u8]) {
        self.records.entry(name_hash).or_insert_with(|| {
            self.counters.stored += 1;
            self.end += 1;
            Record { position: self.end - 1, fresh_until, packet: packet.to_vec() }
        });
    }

    fn forget(&mut self, name_hash: u64) {
        self.records.remove(&name_hash);
    }

    fn find(&self, name_hash: u64, must_be_fresh: bool) -> Option<RecordLocation> {
        let record = self.records.get(&name_hash)?;
        let may_be_fresh = record.fresh_until > self.now;
        let location = RecordLocation { position: record.position, slots: 1, may_be_fresh };
        (may_be_fresh || !must_be_fresh).then_some(location)
    }

    fn start_read(&mut self, name_hash: u64, location: RecordLocation, is_unsolicited_peer: bool) -> ReadStart {
        let position = location.position;
        if let Some(read) = self.reads.iter().find(|read| read.position == position && read.is_awaited) {
            return ReadStart::Joined(read.id);
        }
        let of_unsolicited_peers = self.reads.iter().filter(|read| read.is_unsolicited_peers).count();
        let is_allowed = !is_unsolicited_peer || of_unsolicited_peers < ReadId::COUNT / 2;
        let free = ReadId::all().find(|&id| self.reads.iter().all(|read| read.id != id));
        let Some(id) = free.filter(|_| is_allowed) else {
            self.note_busy();
            return ReadStart::Busy;
        };
        self.started_reads += 1;
        self.reads.push(Read {
            id,
            name_hash,
            position,
            start: self.now,
            is_flushed: false,
            is_awaited: true,
            is_unsolicited_peers: is_unsolicited_peer,
        });
        ReadStart::Started(id)
    }

    fn note_busy(&mut self) {
        self.counters.busy += 1;
    }

    fn has_completions(&self) -> bool {
        self.reads.iter().any(|read| read.is_flushed && read.start.plus_ms(self.latency_ms) <= self.now)
    }

    fn next_finished(&mut self) -> Option<FinishedRead> {
        let has_ended = |read: &Read| read.is_flushed && read.start.plus_ms(self.latency_ms) <= self.now;
        self.reads.retain(|read| read.is_awaited || !has_ended(read));
        let &Read { id, name_hash, position, .. } = self.reads.iter().find(|read| has_ended(read))?;
        let record = self.records.get(&name_hash).filter(|record| record.position == position);
        let (buffer, body) = match record {
            Some(record) => (record.packet.clone(), Some((0..record.packet.len(), record.fresh_until))),
            None => (Vec::new(), None),
        };
        Some(FinishedRead { id, position, name_hash, buffer, body })
    }

    fn end_read(&mut self, finished: FinishedRead, is_found: bool) {
        self.reads.retain(|read| read.id != finished.id);
        match is_found {
            true => self.counters.found += 1,
            false => {
                self.counters.not_found += 1;
                let is_same = |record: &Record| record.position == finished.position;
                if self.records.get(&finished.name_hash).is_some_and(is_same) {
                    self.records.remove(&finished.name_hash);
                }
            }
        }
    }

    fn next_expired(&mut self) -> Option<ReadId> {
        let now = self.now;
        let expired = self.reads.iter_mut().find(|read| read.is_awaited && read.start.plus_ms(TIMEOUT_MS) <= now)?;
        expired.is_awaited = false;
        self.counters.timed_out += 1;
        Some(expired.id)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.reads.iter().filter(|read| read.is_awaited).map(|read| read.start.plus_ms(TIMEOUT_MS)).min()
    }

    fn is_erased(&self, name: &[u8], position: u64) -> bool {
        self.erased.iter().any(|(prefix, before)| position < *before && name.starts_with(prefix))
    }

    fn erase(&mut self, prefix: &[u8]) {
        self.erased.push((prefix.to_vec(), self.end));
    }

    fn position(&self) -> u64 {
        self.end
    }

    fn flush(&mut self) {
        self.reads.iter_mut().for_each(|read| read.is_flushed = true);
    }

    fn report(&self) -> TierReport {
        let counters = DeviceCounters { reads: self.started_reads, ..DeviceCounters::default() };
        let status = TierStatus { state: TierState::Working, counters, ..TierStatus::default() };
        TierReport { status, counters: self.counters, waiting: 0 }
    }
}
