//! Reads in flight: which Interests wait for which read, for how long, and how many reads there may be.

use namehop_packet::Timestamp;

use super::{DiskTier, Finished};
use crate::index::Located;
use crate::messages::{READS, ReadId, Request, ToDisk};

/// Result of a read request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The read was started.
    Started(ReadId),
    /// This record is already being read.
    Joined(ReadId),
    /// Too many reads are in flight.
    Busy,
}

/// A slot for one read in flight.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) hash: u64,
    /// `None` while the disk thread has it.
    pub(super) buffer: Option<Vec<u8>>,
    /// Counts the uses of this place, so that a deadline of an earlier use is recognised.
    pub(super) serial: u32,
    /// True if an Interest waits for the read.
    pub(super) is_awaited: bool,
    /// True if an unsolicited remote peer requested the read.
    pub(super) is_strangers: bool,
}

impl Place {
    fn is_awaited_as(&self, serial: u32) -> bool {
        self.is_awaited && self.serial == serial
    }
}

/// Maximum number of reads of unsolicited peers in flight, including timed-out ones.
const READS_OF_STRANGERS: usize = READS / 2;
/// Maximum number of deadlines kept; the deadlines of finished reads count, too.
pub(super) const DEADLINES: usize = 8 * READS;
/// No position.
pub(super) const NOWHERE: u64 = u64::MAX;

impl DiskTier {
    /// Counts a lookup that was skipped, because too many reads are in flight.
    pub fn note_busy(&mut self) {
        self.counters.busy += 1;
    }

    /// Requests a record. [`next_finished`](Self::next_finished) or [`next_expired`](Self::next_expired) returns its
    /// id. Unsolicited remote peers (`is_stranger`) get at most half of the reads. So the other peers always get the
    /// rest, even if there are many unsolicited peers and the disk is slow.
    pub fn read(&mut self, name_hash: u64, located: Located, is_stranger: bool) -> Reading {
        // Another, timed-out read of the same record may still be in flight.
        let mut same = self.positions.iter().enumerate().filter(|&(_, &position)| position == located.position);
        if let Some((place, _)) = same.find(|&(place, _)| self.places[place].is_awaited) {
            return Reading::Joined(ReadId(place as u16));
        }
        let is_too_much = is_stranger && self.reads_of_strangers >= READS_OF_STRANGERS;
        let Some(id) = (if is_too_much { None } else { self.free.pop() }) else {
            self.note_busy();
            return Reading::Busy;
        };
        let place = &mut self.places[id.index()];
        let Some(buffer) = place.buffer.take() else { return Reading::Busy };
        // Pending writes are sent first, because one of them may hold the record.
        let Located { position, slots, .. } = located;
        if self.run.as_ref().is_some_and(|run| run.position <= position) {
            self.finish_run();
        }
        if let Err(ToDisk::Read(request)) = self.to_disk.push(ToDisk::Read(Request { id, position, slots, buffer }), 0)
        {
            // Cannot happen, because the ring has room for all buffers.
            self.places[id.index()].buffer = Some(request.buffer);
            self.free.push(id);
            return Reading::Busy;
        }
        let place = &mut self.places[id.index()];
        (place.hash, place.is_awaited, place.serial) = (name_hash, true, place.serial.wrapping_add(1));
        place.is_strangers = is_stranger;
        self.reads_of_strangers += usize::from(is_stranger);
        self.positions[id.index()] = position;
        let deadline = (id, place.serial, Timestamp(self.now.0.saturating_add(self.timeout_ns)));
        if self.deadlines.len() == self.deadlines.capacity() {
            // Most of these reads ended long ago.
            let places = &self.places;
            self.deadlines.retain(|&(id, serial, _)| places[id.index()].is_awaited_as(serial));
        }
        self.deadlines.push_back(deadline);
        Reading::Started(id)
    }

    /// Frees the place of a read that the disk thread has finished.
    pub(super) fn free_place(&mut self, id: ReadId, buffer: Vec<u8>) {
        let place = &mut self.places[id.index()];
        place.buffer = Some(buffer);
        self.reads_of_strangers -= usize::from(std::mem::take(&mut place.is_strangers));
        self.free.push(id);
    }

    /// Ends a read. `is_found`: it returned the requested Data.
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
        self.free_place(id, buffer);
    }

    /// Returns the next read that timed out. No Interest waits for it from now on, and its id is free when the disk
    /// thread is done with it.
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

    /// Returns the time when [`next_expired`](Self::next_expired) must be called at the latest.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let is_current = |&&(id, serial, _): &&(ReadId, u32, Timestamp)| self.places[id.index()].is_awaited_as(serial);
        self.deadlines.iter().find(is_current).map(|&(_, _, deadline)| deadline)
    }
}
