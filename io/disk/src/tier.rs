//! The workers' side: how a worker uses the disk without ever waiting for it.

mod erasures;
mod reads;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use namehop_packet::Timestamp;
use namehop_table::{HandoverReceiver, HandoverSender};
use namehop_wire::MAX_PACKET_SIZE;

use crate::erased::Erased;
use crate::format::{self, CHUNK_BYTES, CHUNK_SLOTS, Kind, MAX_RECORD_SLOTS, SLOT_BYTES, offset_of, slots_of};
use crate::index::Index;
pub use crate::index::Located;
use crate::messages::{Body, FromDisk, READS, RUNS, ReadId, Run, ToDisk};
use crate::report::{DiskReport, TierCounters};
use crate::shared::{DiskState, Shared};
pub use reads::Reading;
use reads::{DEADLINES, NOWHERE, Place};

/// Number of writes of a worker in flight above which it gathers records instead of sending more.
const RUNS_AT_ONCE: usize = RUNS / 4;

/// A read that has ended before its deadline.
#[derive(Debug)]
pub struct Finished {
    /// Id of the read.
    pub id: ReadId,
    /// Position in the log.
    pub position: u64,
    hash: u64,
    buffer: Vec<u8>,
    body: Body,
}

impl Finished {
    /// Hash of the requested name.
    pub fn name_hash(&self) -> u64 {
        self.hash
    }

    /// Returns the Data that was read and the end of its freshness, on the engine's clock; `None` if there is none.
    pub fn data(&self) -> Option<(&[u8], Timestamp)> {
        let (range, fresh_until) = self.body.as_ref()?;
        Some((self.buffer.get(range.clone())?, *fresh_until))
    }
}

/// One worker's access to the disk; see the crate's description.
pub struct DiskTier {
    shared: Arc<Shared>,
    /// `None` until the disk thread has made it.
    index: Option<Index>,
    erased: Erased,
    unwritten: VecDeque<Box<[u8]>>,
    /// Number of runs with erasures that the disk has not written yet.
    erasing_runs: usize,
    /// True if the disk thread knows that some erasures are not on the disk.
    is_erasing: bool,
    now: Timestamp,
    timeout_ns: u64,
    /// Remaining positions of the chunk that this worker writes to.
    chunk: Range<u64>,
    run: Option<Run>,
    runs: Vec<Vec<u8>>,
    places: Box<[Place]>,
    /// For each place, the position of the record being read.
    positions: Box<[u64]>,
    free: Vec<ReadId>,
    reads_of_strangers: usize,
    /// For reads in flight: id, serial number and deadline, earliest deadline first.
    deadlines: VecDeque<(ReadId, u32, Timestamp)>,
    to_disk: HandoverSender<ToDisk>,
    from_disk: HandoverReceiver<FromDisk>,
    counters: TierCounters,
}

impl DiskTier {
    pub(crate) fn new(
        shared: Arc<Shared>,
        timeout_ms: u64,
        to_disk: HandoverSender<ToDisk>,
        from_disk: HandoverReceiver<FromDisk>,
    ) -> Self {
        let place = |_| Place { buffer: Some(vec![0; MAX_RECORD_SLOTS * SLOT_BYTES]), ..Place::default() };
        DiskTier {
            shared,
            index: None,
            erased: Erased::default(),
            unwritten: VecDeque::new(),
            erasing_runs: 0,
            is_erasing: false,
            now: Timestamp::default(),
            timeout_ns: timeout_ms.saturating_mul(1_000_000),
            chunk: 0..0,
            run: None,
            runs: (0..RUNS).map(|_| Vec::with_capacity(CHUNK_BYTES)).collect(),
            places: (0..READS).map(place).collect(),
            positions: vec![NOWHERE; READS].into(),
            free: (0..READS as u16).rev().map(ReadId).collect(),
            reads_of_strangers: 0,
            deadlines: VecDeque::with_capacity(DEADLINES),
            to_disk,
            from_disk,
            counters: TierCounters::default(),
        }
    }

    /// Returns the counters of this worker.
    #[cfg(test)]
    pub(crate) fn counters(&self) -> &TierCounters {
        &self.counters
    }

    /// Returns the state of the disk and the counters of this worker. The caller adds the number of waiting
    /// Interests.
    pub fn report(&self) -> DiskReport {
        DiskReport { status: self.shared.status(), counters: self.counters, waiting: 0 }
    }

    /// Sets the current time for all following calls.
    #[inline]
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    #[inline]
    fn is_working(&self) -> bool {
        self.shared.state() == DiskState::Working
    }

    /// Prefetches the index line of a name with arriving Data, which is to be [forgotten](Self::forget).
    #[inline]
    pub fn prefetch(&self, name_hash: u64) {
        if let Some(index) = &self.index {
            index.prefetch(name_hash);
        }
    }

    /// Like [`prefetch`](Self::prefetch), for a name to be [found](Self::find) or [offered](Self::offer): only if the
    /// disk works.
    #[inline]
    pub fn prefetch_use(&self, name_hash: u64) {
        if self.is_working() {
            self.prefetch(name_hash);
        }
    }

    /// Returns true if Data evicted from memory now would be [written](Self::offer). If not, the caller need not read
    /// it.
    #[inline]
    pub fn takes_data(&self) -> bool {
        self.is_working() && (self.run.is_some() || !self.runs.is_empty())
    }

    /// Counts Data that was evicted from memory while the disk [takes none](Self::takes_data).
    #[inline]
    pub fn note_not_stored(&mut self) {
        self.counters.not_stored += 1;
    }

    /// Writes Data that is evicted from memory, unless the disk already holds it.
    pub fn offer(&mut self, name_hash: u64, fresh_until: Timestamp, packet: &[u8]) {
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
        let Some(position) = self.append(Kind::Data, fresh_until, packet) else { return self.note_not_stored() };
        self.counters.stored += 1;
        let located = Located { position, slots: slots_of(packet.len()), may_be_fresh: fresh_until > self.now };
        let extent = self.shared.extent();
        if let Some(index) = &mut self.index {
            index.insert(name_hash, located, extent);
        }
    }

    /// Appends a record to the run that is to be written. Returns `None` if there is no buffer for it.
    fn append(&mut self, kind: Kind, fresh_until: Timestamp, body: &[u8]) -> Option<u64> {
        let slots = slots_of(body.len()) as u64;
        let extent = self.shared.extent();
        // Other workers may have gone around the ring while this worker had nothing to write.
        let is_outdated = extent.cursor.saturating_sub(self.chunk.start) > extent.slots / 2;
        if self.chunk.end - self.chunk.start < slots || is_outdated {
            self.finish_run();
            // Without a buffer no chunk is taken.
            if self.runs.is_empty() {
                return None;
            }
            let start = self.shared.take_chunk();
            self.chunk = start..start + CHUNK_SLOTS;
        }
        if self.run.is_none() {
            let mut bytes = self.runs.pop()?;
            bytes.clear();
            self.run = Some(Run { position: self.chunk.start, bytes, has_erasure: false });
        }
        let position = self.chunk.start;
        let run = self.run.as_mut()?;
        format::append(&mut run.bytes, position, kind, fresh_until, body);
        if kind == Kind::Erasure && !std::mem::replace(&mut run.has_erasure, true) {
            self.erasing_runs += 1;
        }
        self.chunk.start += slots;
        Some(position)
    }

    fn finish_run(&mut self) {
        if let Some(run) = self.run.take()
            && let Err(ToDisk::Write(run)) = self.to_disk.push(ToDisk::Write(run), 0)
        {
            // Cannot happen, because the ring has room for all buffers; the index would refer to records that were
            // not written.
            self.take_back(run.bytes, run.has_erasure, false);
        }
    }

    /// Takes a write buffer back.
    fn take_back(&mut self, buffer: Vec<u8>, has_erasure: bool, is_written: bool) {
        self.runs.push(buffer);
        if has_erasure {
            self.erasing_runs -= 1;
            if !is_written {
                // Erased Data must not come back after a restart.
                self.unwritten.clear();
                self.unwritten.extend(self.erased.prefixes());
            }
        }
    }

    /// Removes the record of a name, because it is outdated.
    #[inline]
    pub fn forget(&mut self, name_hash: u64) {
        if let Some(index) = &mut self.index {
            index.remove(name_hash);
        }
    }

    /// Returns the current end of the log: records written from now on lie behind it.
    pub fn position(&self) -> u64 {
        self.shared.extent().cursor
    }

    /// Returns the probable location of the Data with a name.
    #[inline]
    pub fn find(&self, name_hash: u64, must_be_fresh: bool) -> Option<Located> {
        // A disk that does not work must not cost anything.
        let index = self.index.as_ref().filter(|_| self.is_working())?;
        let found = index.find(name_hash, self.shared.extent())?;
        (found.may_be_fresh || !must_be_fresh).then_some(found)
    }

    /// Returns the location of a record in the file, in bytes from its start.
    pub fn place_of(&self, located: Located) -> Range<u64> {
        let start = offset_of(located.position, self.shared.slots);
        start..start + (located.slots * SLOT_BYTES) as u64
    }

    /// Returns true if the disk has written, or failed to write, everything that was handed over.
    pub fn is_all_written(&self) -> bool {
        self.run.is_none() && self.runs.len() == RUNS
    }

    /// Returns true if there are messages from the disk.
    #[inline]
    pub fn has_work(&self) -> bool {
        !self.from_disk.is_empty()
    }

    /// Returns the next read that has ended. The caller must [give it back](Self::give_back).
    pub fn next_finished(&mut self) -> Option<Finished> {
        loop {
            let mut message = None;
            self.from_disk.receive(1, |received| message = Some(received));
            match message? {
                FromDisk::Ready(found) => {
                    let (index, erased) = *found;
                    self.index = Some(index);
                    self.erased = erased;
                    let asked_before = std::mem::take(&mut self.unwritten);
                    asked_before.iter().for_each(|prefix| self.erase(prefix));
                }
                FromDisk::Written { buffer, has_erasure, is_written } => {
                    self.take_back(buffer, has_erasure, is_written);
                }
                FromDisk::Read { id, buffer, body } => {
                    let place = &mut self.places[id.index()];
                    let position = std::mem::replace(&mut self.positions[id.index()], NOWHERE);
                    if std::mem::take(&mut place.is_awaited) {
                        return Some(Finished { id, position, hash: place.hash, buffer, body });
                    }
                    self.free_place(id, buffer);
                }
            }
        }
    }

    /// Hands the records and requests of this poll iteration to the disk thread. If enough writes are in flight,
    /// records are gathered in one buffer instead, so that a slow disk gets larger writes rather than a buffer per
    /// iteration. Called at the end of each poll iteration.
    pub fn flush(&mut self) {
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
