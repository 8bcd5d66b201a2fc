//! The workers' side: how a worker uses the disk without ever waiting for it.

mod erasures;
mod log;
mod reads;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use namehop_engine::second_tier::{
    FinishedRead, ReadId, ReadStart, RecordLocation, SecondTier, TierCounters, TierReport, TierState,
};
use namehop_packet::Timestamp;
use namehop_table::{HandoverReceiver, HandoverSender};
use namehop_wire::MAX_PACKET_SIZE;

use crate::erased::Erased;
use crate::format::{CHUNK_BYTES, RecordKind, SLOT_BYTES, offset_of, slots_of};
use crate::index::Index;
use crate::messages::{FromDisk, RUNS, ReadRequest, Run, ToDisk};
use crate::shared::DiskState;
use reads::Reads;

/// Number of writes of a worker in flight above which it gathers records instead of sending more.
const RUNS_AT_ONCE: usize = RUNS / 4;

/// One worker's access to the disk; see the crate's description.
pub struct DiskTier {
    shared: Arc<DiskState>,
    /// `None` until the disk thread has made it.
    index: Option<Index>,
    erased: Erased,
    unwritten: VecDeque<Box<[u8]>>,
    /// Number of runs with erasures that the disk has not written yet.
    erasing_runs: usize,
    /// True if the disk thread knows that some erasures are not on the disk.
    is_erasing: bool,
    now: Timestamp,
    /// Remaining positions of the chunk that this worker writes to.
    chunk: Range<u64>,
    run: Option<Run>,
    runs: Vec<Vec<u8>>,
    reads: Reads,
    to_disk: HandoverSender<ToDisk>,
    from_disk: HandoverReceiver<FromDisk>,
    counters: TierCounters,
}

impl DiskTier {
    pub(crate) fn new(
        shared: Arc<DiskState>,
        timeout_ms: u64,
        to_disk: HandoverSender<ToDisk>,
        from_disk: HandoverReceiver<FromDisk>,
    ) -> Self {
        DiskTier {
            shared,
            index: None,
            erased: Erased::default(),
            unwritten: VecDeque::new(),
            erasing_runs: 0,
            is_erasing: false,
            now: Timestamp::default(),
            chunk: 0..0,
            run: None,
            runs: (0..RUNS).map(|_| Vec::with_capacity(CHUNK_BYTES)).collect(),
            reads: Reads::new(timeout_ms),
            to_disk,
            from_disk,
            counters: TierCounters::default(),
        }
    }

    #[inline]
    fn is_working(&self) -> bool {
        self.shared.state() == TierState::Working
    }

    /// Returns the location of a record in the file, in bytes from its start.
    pub fn range_of(&self, location: RecordLocation) -> Range<u64> {
        let start = offset_of(location.position, self.shared.slots);
        start..start + (location.slots * SLOT_BYTES) as u64
    }

    /// Returns true if the disk has written, or failed to write, everything that was handed over.
    pub fn is_all_written(&self) -> bool {
        self.run.is_none() && self.runs.len() == RUNS
    }
}

impl SecondTier for DiskTier {
    #[inline]
    fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    #[inline]
    fn prefetch_lookup(&self, name_hash: u64) {
        if self.is_working() {
            self.prefetch_forget(name_hash);
        }
    }

    #[inline]
    fn prefetch_forget(&self, name_hash: u64) {
        if let Some(index) = &self.index {
            index.prefetch(name_hash);
        }
    }

    #[inline]
    fn takes_data(&self) -> bool {
        self.is_working() && (self.run.is_some() || !self.runs.is_empty())
    }

    #[inline]
    fn note_not_stored(&mut self) {
        self.counters.not_stored += 1;
    }

    fn offer(&mut self, name_hash: u64, fresh_until: Timestamp, packet: &[u8]) {
        if !self.takes_data() {
            return self.note_not_stored();
        }
        let extent = self.shared.extent();
        let Some(index) = &self.index else { return self.note_not_stored() };
        // If newer Data had arrived, the record would have been forgotten, so this is the same Data. It is rewritten
        // before the log overwrites it.
        if let Some(known) = index.find(name_hash, extent)
            && extent.cursor - known.position < extent.slots / 4 * 3
        {
            return;
        }
        if packet.len() > MAX_PACKET_SIZE {
            return self.note_not_stored();
        }
        let Some(position) = self.append(RecordKind::Data, fresh_until, packet) else { return self.note_not_stored() };
        self.counters.stored += 1;
        let location = RecordLocation { position, slots: slots_of(packet.len()), may_be_fresh: fresh_until > self.now };
        let extent = self.shared.extent();
        if let Some(index) = &mut self.index {
            index.insert(name_hash, location, extent);
        }
    }

    #[inline]
    fn forget(&mut self, name_hash: u64) {
        if let Some(index) = &mut self.index {
            index.remove(name_hash);
        }
    }

    #[inline]
    fn find(&self, name_hash: u64, must_be_fresh: bool) -> Option<RecordLocation> {
        // A disk that does not work must not cost anything.
        let index = self.index.as_ref().filter(|_| self.is_working())?;
        let found = index.find(name_hash, self.shared.extent())?;
        (found.may_be_fresh || !must_be_fresh).then_some(found)
    }

    fn start_read(&mut self, name_hash: u64, location: RecordLocation, is_unsolicited_peer: bool) -> ReadStart {
        let RecordLocation { position, slots, .. } = location;
        if let Some(id) = self.reads.awaited(position) {
            return ReadStart::Joined(id);
        }
        let Some((id, buffer)) = self.reads.reserve(is_unsolicited_peer) else {
            self.note_busy();
            return ReadStart::Busy;
        };
        // Pending writes are sent first, because one of them may hold the record.
        if self.run.as_ref().is_some_and(|run| run.position <= position) {
            self.finish_run();
        }
        if let Err(ToDisk::Read(request)) =
            self.to_disk.push(ToDisk::Read(ReadRequest { id, position, slots, buffer }), 0)
        {
            // Cannot happen, because the ring has room for all buffers.
            self.reads.free(id, request.buffer);
            return ReadStart::Busy;
        }
        self.reads.begin(id, (name_hash, position), self.now);
        ReadStart::Started(id)
    }

    fn note_busy(&mut self) {
        self.counters.busy += 1;
    }

    #[inline]
    fn has_completions(&self) -> bool {
        !self.from_disk.is_empty()
    }

    fn next_finished(&mut self) -> Option<FinishedRead> {
        loop {
            let mut message = None;
            self.from_disk.receive(1, |received| message = Some(received));
            match message? {
                FromDisk::Ready(found) => {
                    let (index, erased) = *found;
                    self.index = Some(index);
                    self.erased = erased;
                    let erased_before = std::mem::take(&mut self.unwritten);
                    erased_before.iter().for_each(|prefix| self.erase(prefix));
                }
                FromDisk::Written { buffer, has_erasure, is_written } => {
                    self.take_back(buffer, has_erasure, is_written);
                }
                FromDisk::Read { id, buffer, body } => match self.reads.finish(id) {
                    Some((name_hash, position)) => {
                        return Some(FinishedRead { id, position, name_hash, buffer, body });
                    }
                    None => self.reads.free(id, buffer),
                },
            }
        }
    }

    fn end_read(&mut self, finished: FinishedRead, is_found: bool) {
        let FinishedRead { id, position, name_hash, buffer, body } = finished;
        match body {
            Some((_, fresh_until)) if is_found => {
                self.counters.found += 1;
                if fresh_until <= self.now
                    && let Some(index) = &mut self.index
                {
                    index.note_stale(name_hash, position);
                }
            }
            _ => {
                self.counters.not_found += 1;
                let extent = self.shared.extent();
                if let Some(index) = &mut self.index
                    && index.find(name_hash, extent).is_some_and(|location| location.position == position)
                {
                    index.remove(name_hash);
                }
            }
        }
        self.reads.free(id, buffer);
    }

    fn next_expired(&mut self) -> Option<ReadId> {
        let expired = self.reads.next_expired(self.now)?;
        self.counters.timed_out += 1;
        Some(expired)
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.reads.next_deadline()
    }

    fn is_erased(&self, name: &[u8], position: u64) -> bool {
        self.erased.covers(name, position)
    }

    /// The erasure survives a restart once
    /// [`erasing_workers`](namehop_engine::second_tier::TierStatus::erasing_workers) is 0.
    fn erase(&mut self, prefix: &[u8]) {
        self.erase_under(prefix);
        self.write_erasures();
        self.note_erasing();
    }

    fn position(&self) -> u64 {
        self.shared.extent().cursor
    }

    /// If enough writes are in flight, records are gathered in one buffer instead, so that a slow disk gets larger
    /// writes rather than a buffer per iteration.
    fn flush(&mut self) {
        if !self.unwritten.is_empty() {
            self.write_erasures();
        }
        let under_way = RUNS - self.runs.len() - usize::from(self.run.is_some());
        if under_way < RUNS_AT_ONCE || self.run.as_ref().is_some_and(|run| run.has_erasure) {
            self.finish_run();
        }
        if self.is_erasing {
            self.note_erasing();
        }
        if self.to_disk.publish() {
            self.shared.wake();
        }
    }

    fn report(&self) -> TierReport {
        TierReport { status: self.shared.status(), counters: self.counters, waiting: 0 }
    }
}

/// Hands over the records gathered so far, so that they are not lost with the worker.
impl Drop for DiskTier {
    fn drop(&mut self) {
        self.finish_run();
        if self.to_disk.publish() {
            self.shared.wake();
        }
    }
}

impl std::fmt::Debug for DiskTier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskTier").field("counters", &self.counters).finish_non_exhaustive()
    }
}
