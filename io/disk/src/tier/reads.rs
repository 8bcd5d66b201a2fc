//! Reads in flight: which record each read returns, how long Interests wait for it, and how many reads there may be.

use std::collections::VecDeque;

use namehop_engine::second_tier::ReadId;
use namehop_packet::Timestamp;

use crate::format::{MAX_RECORD_SLOTS, SLOT_BYTES};
use crate::messages::READS;

/// A slot for one read in flight.
#[derive(Debug)]
struct ReadSlot {
    name_hash: u64,
    /// `None` while the disk thread has it.
    buffer: Option<Vec<u8>>,
    /// Counts the uses of this slot, so that a deadline of an earlier use is recognised.
    serial: u32,
    /// True if an Interest waits for the read.
    is_awaited: bool,
    /// True if an unsolicited remote peer requested the read.
    is_unsolicited_peers: bool,
}

impl ReadSlot {
    fn is_awaited_as(&self, serial: u32) -> bool {
        self.is_awaited && self.serial == serial
    }
}

/// Maximum number of reads of unsolicited peers in flight, including timed-out ones.
const READS_OF_UNSOLICITED_PEERS: usize = READS / 2;
/// Maximum number of deadlines kept; the deadlines of finished reads count, too.
const DEADLINES: usize = 8 * READS;
/// No position.
const NOWHERE: u64 = u64::MAX;

/// The reads of one worker; see the module's description.
#[derive(Debug)]
pub(super) struct Reads {
    slots: Box<[ReadSlot]>,
    /// For each slot, the position of the record being read.
    positions: Box<[u64]>,
    free: Vec<ReadId>,
    of_unsolicited_peers: usize,
    timeout_ns: u64,
    /// For reads in flight: id, serial number and deadline, earliest deadline first.
    deadlines: VecDeque<(ReadId, u32, Timestamp)>,
}

impl Reads {
    /// Makes the slots with their buffers. Interests wait `timeout_ms` milliseconds for a read.
    pub(super) fn new(timeout_ms: u64) -> Self {
        let slot = |_| ReadSlot {
            name_hash: 0,
            buffer: Some(vec![0; MAX_RECORD_SLOTS * SLOT_BYTES]),
            serial: 0,
            is_awaited: false,
            is_unsolicited_peers: false,
        };
        Reads {
            slots: (0..READS).map(slot).collect(),
            positions: vec![NOWHERE; READS].into(),
            free: ReadId::all().rev().collect(),
            of_unsolicited_peers: 0,
            timeout_ns: timeout_ms.saturating_mul(1_000_000),
            deadlines: VecDeque::with_capacity(DEADLINES),
        }
    }

    /// Returns the read of the record at this position that Interests wait for. Another, timed-out read of the same
    /// record may still be in flight.
    pub(super) fn awaited(&self, position: u64) -> Option<ReadId> {
        let mut same = ReadId::all().zip(&self.positions).filter(|&(_, &other)| other == position);
        same.find(|&(id, _)| self.slots[id.index()].is_awaited).map(|(id, _)| id)
    }

    /// Takes a free slot and its buffer. Returns `None` if too many reads are in flight. Unsolicited remote peers get
    /// at most half of the slots. So the other peers always get the rest, even if there are many unsolicited peers and
    /// the disk is slow.
    pub(super) fn reserve(&mut self, is_unsolicited_peer: bool) -> Option<(ReadId, Vec<u8>)> {
        if is_unsolicited_peer && self.of_unsolicited_peers >= READS_OF_UNSOLICITED_PEERS {
            return None;
        }
        let id = self.free.pop()?;
        let slot = &mut self.slots[id.index()];
        let buffer = slot.buffer.take()?;
        slot.is_unsolicited_peers = is_unsolicited_peer;
        self.of_unsolicited_peers += usize::from(is_unsolicited_peer);
        Some((id, buffer))
    }

    /// Records that the disk thread has the request of a [reserved](Self::reserve) slot, and starts its timeout.
    pub(super) fn begin(&mut self, id: ReadId, (name_hash, position): (u64, u64), now: Timestamp) {
        let slot = &mut self.slots[id.index()];
        (slot.name_hash, slot.is_awaited, slot.serial) = (name_hash, true, slot.serial.wrapping_add(1));
        self.positions[id.index()] = position;
        let deadline = (id, slot.serial, Timestamp(now.0.saturating_add(self.timeout_ns)));
        if self.deadlines.len() == self.deadlines.capacity() {
            // Most of these reads ended long ago.
            let slots = &self.slots;
            self.deadlines.retain(|&(id, serial, _)| slots[id.index()].is_awaited_as(serial));
        }
        self.deadlines.push_back(deadline);
    }

    /// Records that the disk thread has finished a read. Returns the hash of the requested name and the position,
    /// unless the read has timed out.
    pub(super) fn finish(&mut self, id: ReadId) -> Option<(u64, u64)> {
        let slot = &mut self.slots[id.index()];
        let position = std::mem::replace(&mut self.positions[id.index()], NOWHERE);
        std::mem::take(&mut slot.is_awaited).then_some((slot.name_hash, position))
    }

    /// Frees a slot, whose buffer comes back.
    pub(super) fn free(&mut self, id: ReadId, buffer: Vec<u8>) {
        let slot = &mut self.slots[id.index()];
        slot.buffer = Some(buffer);
        self.of_unsolicited_peers -= usize::from(std::mem::take(&mut slot.is_unsolicited_peers));
        self.free.push(id);
    }

    /// Returns the next read that timed out by `now`. No Interest waits for it from now on.
    pub(super) fn next_expired(&mut self, now: Timestamp) -> Option<ReadId> {
        while let Some(&(id, serial, deadline)) = self.deadlines.front() {
            let slot = &mut self.slots[id.index()];
            let is_current = slot.is_awaited_as(serial);
            if is_current && deadline > now {
                return None;
            }
            self.deadlines.pop_front();
            if is_current {
                slot.is_awaited = false;
                return Some(id);
            }
        }
        None
    }

    /// Returns the earliest deadline of a read that Interests wait for.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        let is_current = |&&(id, serial, _): &&(ReadId, u32, Timestamp)| self.slots[id.index()].is_awaited_as(serial);
        self.deadlines.iter().find(is_current).map(|&(_, _, deadline)| deadline)
    }
}
