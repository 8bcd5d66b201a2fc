//! The workers' side: what a worker does with the disk without ever waiting for it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use namehop_packet::Timestamp;
use namehop_table::{HandoverReceiver, HandoverSender};
use namehop_wire::MAX_PACKET_SIZE;

use crate::erased::Erased;
use crate::format::{self, CHUNK_BYTES, CHUNK_SLOTS, Kind, MAX_RECORD_SLOTS, SLOT_BYTES, slots_of};
use crate::index::Index;
pub use crate::index::Located;
use crate::messages::{Body, FromDisk, READS, RUNS, ReadId, Request, Run, ToDisk};
use crate::report::{DiskReport, TierCounters};
use crate::shared::{DiskState, Shared};

/// Erasures that wait to be written while the disk does not work.
const MAX_UNWRITTEN: usize = 64;

/// What became of a request to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// It is under way.
    Started(ReadId),
    /// This record is being read already.
    Joined(ReadId),
    /// Too many are under way.
    Busy,
}

/// A read that has ended, and was waited for.
#[derive(Debug)]
pub struct Finished {
    /// The number that it had.
    pub id: ReadId,
    /// Position in the log.
    pub position: u64,
    hash: u64,
    buffer: Vec<u8>,
    body: Body,
}

impl Finished {
    /// The hash of the name that was looked for.
    pub fn name_hash(&self) -> u64 {
        self.hash
    }

    /// The Data that was read and until when it is fresh, on the clock of the engine; `None` when there is none.
    pub fn data(&self) -> Option<(&[u8], Timestamp)> {
        let (range, fresh_until) = self.body.as_ref()?;
        Some((self.buffer.get(range.clone())?, *fresh_until))
    }
}

/// One of the reads that may be under way.
#[derive(Debug, Default)]
struct Place {
    hash: u64,
    /// `None` while it is on its way.
    buffer: Option<Vec<u8>>,
    /// Counts its uses, so that a deadline of an earlier one is recognised.
    serial: u32,
    /// Does somebody wait for it?
    is_awaited: bool,
}

impl Place {
    fn is_awaited_as(&self, serial: u32) -> bool {
        self.is_awaited && self.serial == serial
    }
}

/// Deadlines that are kept, those of reads that have ended included.
const DEADLINES: usize = 8 * READS;
/// No position.
const NOWHERE: u64 = u64::MAX;

/// The disk as one worker has it; see the crate's description.
pub struct DiskTier {
    shared: Arc<Shared>,
    /// `None` until the disk's thread has made it.
    index: Option<Index>,
    erased: Erased,
    unwritten: VecDeque<Box<[u8]>>,
    now: Timestamp,
    timeout_ns: u64,
    /// Positions that are left of the chunk that this worker writes to.
    chunk: Range<u64>,
    run: Option<Run>,
    runs: Vec<Vec<u8>>,
    places: Box<[Place]>,
    /// Of each place: the record that is being read.
    positions: Box<[u64]>,
    free: Vec<ReadId>,
    /// Of reads under way: number, use and time, the first one to be given up first.
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
            now: Timestamp::default(),
            timeout_ns: timeout_ms.saturating_mul(1_000_000),
            chunk: 0..0,
            run: None,
            runs: (0..RUNS).map(|_| Vec::with_capacity(CHUNK_BYTES)).collect(),
            places: (0..READS).map(place).collect(),
            positions: vec![NOWHERE; READS].into(),
            free: (0..READS as u16).rev().map(ReadId).collect(),
            deadlines: VecDeque::with_capacity(DEADLINES),
            to_disk,
            from_disk,
            counters: TierCounters::default(),
        }
    }

    /// What this worker counts.
    #[cfg(test)]
    pub(crate) fn counters(&self) -> &TierCounters {
        &self.counters
    }

    /// State of the disk, and what this worker counts.
    pub fn report(&self) -> DiskReport {
        DiskReport { status: self.shared.status(), counters: self.counters }
    }

    /// Says what time it is, for all that follows.
    #[inline]
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    fn is_working(&self) -> bool {
        self.shared.state() == DiskState::Working
    }

    /// Asks for the place of a name in the index to be brought into the cache.
    #[inline]
    pub fn prefetch(&self, name_hash: u64) {
        if let Some(index) = &self.index {
            index.prefetch(name_hash);
        }
    }

    /// Data leaves memory: it is to be written, unless the disk has it already.
    pub fn offer(&mut self, name_hash: u64, fresh_until: Timestamp, packet: &[u8]) {
        let extent = self.shared.extent();
        let Some(index) = &self.index else {
            self.counters.not_stored += 1;
            return;
        };
        // Newer Data would have had the record forgotten, so this is the same. It is written anew before it is written over.
        if let Some(known) = index.find(name_hash, extent)
            && extent.cursor - known.position < extent.slots / 4 * 3
        {
            return;
        }
        if packet.len() > MAX_PACKET_SIZE || !self.is_working() {
            self.counters.not_stored += 1;
            return;
        }
        let Some(position) = self.append(Kind::Data, fresh_until, packet) else {
            self.counters.not_stored += 1;
            return;
        };
        self.counters.stored += 1;
        let located = Located { position, slots: slots_of(packet.len()), may_be_fresh: fresh_until > self.now };
        let extent = self.shared.extent();
        if let Some(index) = &mut self.index {
            index.insert(name_hash, located, extent);
        }
    }

    /// Puts a record into the run that is to be written. `None` when there is no buffer for it.
    fn append(&mut self, kind: Kind, fresh_until: Timestamp, body: &[u8]) -> Option<u64> {
        let slots = slots_of(body.len()) as u64;
        let extent = self.shared.extent();
        // Others may have gone around the ring while this worker had nothing to write.
        let is_outdated = extent.cursor.saturating_sub(self.chunk.start) > extent.slots / 2;
        if self.chunk.end - self.chunk.start < slots || is_outdated {
            self.finish_run();
            // Without a buffer no positions are taken.
            if self.runs.is_empty() {
                return None;
            }
            let start = self.shared.take_chunk();
            self.chunk = start..start + CHUNK_SLOTS;
        }
        if self.run.is_none() {
            let mut bytes = self.runs.pop()?;
            bytes.clear();
            self.run = Some(Run { position: self.chunk.start, bytes });
        }
        let position = self.chunk.start;
        format::append(&mut self.run.as_mut()?.bytes, position, kind, fresh_until, body);
        self.chunk.start += slots;
        Some(position)
    }

    fn finish_run(&mut self) {
        if let Some(run) = self.run.take()
            && let Err(ToDisk::Write(run)) = self.to_disk.push(ToDisk::Write(run), 0)
        {
            // There is room for all buffers, so this does not happen; the records would be missing where the index has them.
            self.runs.push(run.bytes);
        }
    }

    /// The record of a name, or what it says, is of no use any more.
    #[inline]
    pub fn forget(&mut self, name_hash: u64) {
        if let Some(index) = &mut self.index {
            index.remove(name_hash);
        }
    }

    /// Erases all Data under a prefix, given as the VALUE of its name. A restart does not bring it back.
    pub fn erase(&mut self, prefix: &[u8]) {
        let mut prefix = prefix;
        if self.index.is_some() {
            prefix = self.forget_under(prefix);
        }
        if self.unwritten.len() >= MAX_UNWRITTEN {
            // One that stands for all.
            self.unwritten.clear();
            prefix = &[];
        }
        self.unwritten.push_back(prefix.into());
        self.write_erasures();
    }

    /// What this worker has written so far under a prefix is worth nothing from now on. Returns the prefix that holds for.
    fn forget_under<'a>(&mut self, prefix: &'a [u8]) -> &'a [u8] {
        // What this worker writes later gets later positions.
        self.finish_run();
        self.chunk = 0..0;
        let extent = self.shared.extent();
        self.erased.add(prefix, extent.cursor, extent)
    }

    /// Writes erasures into the log, as far as the disk works.
    fn write_erasures(&mut self) {
        while self.index.is_some()
            && self.is_working()
            && let Some(prefix) = self.unwritten.pop_front()
        {
            if self.append(Kind::Erasure, Timestamp::default(), &prefix).is_none() {
                return self.unwritten.push_front(prefix);
            }
        }
    }

    /// Is the Data with this name VALUE, which was read from a position, erased?
    pub fn is_erased(&self, name: &[u8], position: u64) -> bool {
        self.erased.covers(name, position)
    }

    /// How far the log has come: what is written from now on lies behind it.
    pub fn position(&self) -> u64 {
        self.shared.extent().cursor
    }

    /// Where the Data with a name is, as it seems.
    #[inline]
    pub fn find(&self, name_hash: u64, must_be_fresh: bool) -> Option<Located> {
        let index = self.index.as_ref()?;
        let found = index.find(name_hash, self.shared.extent())?;
        ((found.may_be_fresh || !must_be_fresh) && self.is_working()).then_some(found)
    }

    /// A lookup was not made, because too many wait already.
    pub fn note_busy(&mut self) {
        self.counters.busy += 1;
    }

    /// Asks for a record. [`next_finished`](Self::next_finished) or [`next_expired`](Self::next_expired) give its number back.
    pub fn read(&mut self, name_hash: u64, located: Located) -> Reading {
        if let Some(place) = self.positions.iter().position(|&position| position == located.position)
            && self.places[place].is_awaited
        {
            return Reading::Joined(ReadId(place as u16));
        }
        let Some(id) = self.free.pop() else {
            self.note_busy();
            return Reading::Busy;
        };
        let place = &mut self.places[id.index()];
        let Some(buffer) = place.buffer.take() else { return Reading::Busy };
        // What is to be written comes first, because it may be what is to be read.
        let Located { position, slots, .. } = located;
        if self.run.as_ref().is_some_and(|run| run.position <= position) {
            self.finish_run();
        }
        if let Err(ToDisk::Read(request)) = self.to_disk.push(ToDisk::Read(Request { id, position, slots, buffer }), 0)
        {
            // There is room for all buffers, so this does not happen.
            self.places[id.index()].buffer = Some(request.buffer);
            self.free.push(id);
            return Reading::Busy;
        }
        let place = &mut self.places[id.index()];
        (place.hash, place.is_awaited, place.serial) = (name_hash, true, place.serial.wrapping_add(1));
        self.positions[id.index()] = position;
        let deadline = (id, place.serial, Timestamp(self.now.0.saturating_add(self.timeout_ns)));
        if self.deadlines.len() == self.deadlines.capacity() {
            // Of most of them the read has ended long since.
            let places = &self.places;
            self.deadlines.retain(|&(id, serial, _)| places[id.index()].is_awaited_as(serial));
        }
        self.deadlines.push_back(deadline);
        Reading::Started(id)
    }

    /// Is there something from the disk?
    #[inline]
    pub fn has_work(&self) -> bool {
        !self.from_disk.is_empty()
    }

    /// The next read that has ended. It is to be [given back](Self::give_back).
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
                FromDisk::Written { buffer, is_written } => {
                    self.runs.push(buffer);
                    if !is_written {
                        // Erasures may have been among them, and a restart must not bring back what is erased.
                        self.unwritten.clear();
                        self.unwritten.extend(self.erased.prefixes());
                    }
                }
                FromDisk::Read { id, buffer, body } => {
                    let place = &mut self.places[id.index()];
                    let position = std::mem::replace(&mut self.positions[id.index()], NOWHERE);
                    if std::mem::take(&mut place.is_awaited) {
                        return Some(Finished { id, position, hash: place.hash, buffer, body });
                    }
                    place.buffer = Some(buffer);
                    self.free.push(id);
                }
            }
        }
    }

    /// Ends a read. `is_found`: it gave the Data that was looked for.
    pub fn give_back(&mut self, finished: Finished, is_found: bool) {
        let Finished { id, position, hash, buffer, body } = finished;
        match body {
            Some((_, fresh_until)) if is_found => {
                self.counters.found += 1;
                if fresh_until <= self.now
                    && let Some(index) = &mut self.index
                {
                    index.note_stale(hash, position);
                }
            }
            _ => {
                self.counters.not_found += 1;
                let extent = self.shared.extent();
                if let Some(index) = &mut self.index
                    && index.find(hash, extent).is_some_and(|located| located.position == position)
                {
                    index.remove(hash);
                }
            }
        }
        self.places[id.index()].buffer = Some(buffer);
        self.free.push(id);
    }

    /// The next read that has taken too long. Nobody waits for it from now on, and its number is free when the disk is done
    /// with it.
    pub fn next_expired(&mut self) -> Option<ReadId> {
        while let Some(&(id, serial, deadline)) = self.deadlines.front() {
            let place = &mut self.places[id.index()];
            let is_current = place.is_awaited_as(serial);
            if is_current && deadline > self.now {
                return None;
            }
            self.deadlines.pop_front();
            if is_current {
                place.is_awaited = false;
                self.counters.timed_out += 1;
                return Some(id);
            }
        }
        None
    }

    /// When [`next_expired`](Self::next_expired) has to be asked at the latest.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let is_current = |&&(id, serial, _): &&(ReadId, u32, Timestamp)| self.places[id.index()].is_awaited_as(serial);
        self.deadlines.iter().find(is_current).map(|&(_, _, deadline)| deadline)
    }

    /// Hands what this turn brought to the disk's thread. To be called at the end of each turn.
    pub fn flush(&mut self) {
        if !self.unwritten.is_empty() {
            self.write_erasures();
        }
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
