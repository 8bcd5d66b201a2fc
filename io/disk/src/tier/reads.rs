//! Reads that are under way: who waits for which, for how long, and how many there may be.

use namehop_packet::Timestamp;

use super::{DiskTier, Finished};
use crate::index::Located;
use crate::messages::{READS, ReadId, Request, ToDisk};

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

/// One of the reads that may be under way.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) hash: u64,
    /// `None` while it is on its way.
    pub(super) buffer: Option<Vec<u8>>,
    /// Counts its uses, so that a deadline of an earlier one is recognised.
    pub(super) serial: u32,
    /// Does somebody wait for it?
    pub(super) is_awaited: bool,
    /// Has a stranger asked for it?
    pub(super) is_strangers: bool,
}

impl Place {
    fn is_awaited_as(&self, serial: u32) -> bool {
        self.is_awaited && self.serial == serial
    }
}

/// Reads that strangers may have under way, those that nobody waits for any more included.
const READS_OF_STRANGERS: usize = READS / 2;
/// Deadlines that are kept, those of reads that have ended included.
pub(super) const DEADLINES: usize = 8 * READS;
/// No position.
pub(super) const NOWHERE: u64 = u64::MAX;

impl DiskTier {
    /// A lookup was not made, because too many wait already.
    pub fn note_busy(&mut self) {
        self.counters.busy += 1;
    }

    /// Asks for a record. [`next_finished`](Self::next_finished) or [`next_expired`](Self::next_expired) give its number back.
    /// Strangers, who are peers on other computers that came by themselves, get half of the reads: however many they are, and
    /// however slow the disk is, there are some for the others.
    pub fn read(&mut self, name_hash: u64, located: Located, is_stranger: bool) -> Reading {
        // Another read of the same that nobody waits for any more may still be under way.
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
        place.is_strangers = is_stranger;
        self.reads_of_strangers += usize::from(is_stranger);
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

    /// The disk is done with a read.
    pub(super) fn free_place(&mut self, id: ReadId, buffer: Vec<u8>) {
        let place = &mut self.places[id.index()];
        place.buffer = Some(buffer);
        self.reads_of_strangers -= usize::from(std::mem::take(&mut place.is_strangers));
        self.free.push(id);
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
        self.free_place(id, buffer);
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
}
