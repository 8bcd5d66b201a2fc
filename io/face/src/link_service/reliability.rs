//! Link reliability, the sending side: frames wait in a window until the peer acknowledges them, and go out again when
//! they seem lost (NDNLPv2 link reliability).
//!
//! A frame is lost when its time-out passes or when three frames sent after it were acknowledged. It is sent again under
//! a new TxSequence at most [`MAX_RETRANSMISSIONS`] times; then its whole network packet is given up. The window holds at
//! most [`MAX_UNACKNOWLEDGED`] frames, each a copy in a pooled buffer: a sender that fills it, or that finds the pool
//! empty, goes on without protection rather than stopping.

use std::collections::VecDeque;

use namehop_packet::{BufferPool, FaceId, PacketBuffer, Timestamp};

use super::DroppedInterest;
use super::rto::{MIN_RTO_NS, RtoEstimator};
use crate::counters::{LinkDrop, WorkerCounters};

/// Most frames that wait for an acknowledgement.
pub const MAX_UNACKNOWLEDGED: usize = 1024;
/// Most times a frame is sent again.
pub const MAX_RETRANSMISSIONS: u8 = 3;
/// Acknowledgements of later frames after which a frame counts as lost.
pub const LATER_ACKS_OF_LOSS: u8 = 3;

/// What a protected frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// A whole Interest, which is reported when it is given up.
    Interest,
    /// A whole Data or Nack.
    Other,
    /// A fragment of the packet with this handle.
    FragmentOf(PacketHandle),
}

/// Handle of a fragmented packet, from [`SendWindow::begin_fragmented`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketHandle(usize);

/// A copy of a sent frame and where its parts are.
#[derive(Debug)]
pub struct ProtectedFrame {
    /// The complete LpPacket.
    pub buffer: PacketBuffer,
    /// Position of the eight bytes of TxSequence.
    pub tx_sequence_offset: usize,
    /// Position of the network packet.
    pub payload_offset: usize,
    /// What it carries.
    pub carried: Carried,
}

#[derive(Debug)]
struct Unacknowledged {
    frame: ProtectedFrame,
    sent_at: Timestamp,
    /// Set to 0 when later acknowledgements showed the loss.
    deadline: Timestamp,
    retransmissions: u8,
    later_acks: u8,
}

#[derive(Debug)]
struct FragmentedPacket {
    /// Frames of it in the window; 0 in a spare record.
    in_window: usize,
    /// Copy of the packet if it is an Interest.
    interest: Option<PacketBuffer>,
}

/// Frames sent and not acknowledged yet. TxSequence starts at 0 and counts up by one for each frame.
#[derive(Debug)]
pub struct SendWindow {
    /// The frame with TxSequence `first + i` at `i`; `None` when acknowledged, resent or never protected.
    frames: VecDeque<Option<Unacknowledged>>,
    first: u64,
    packets: Vec<FragmentedPacket>,
    spare_packets: Vec<usize>,
    rto: RtoEstimator,
    /// Not later than the first time-out.
    next_timeout: Timestamp,
}

impl SendWindow {
    /// An empty window. Memory for its records is taken now, so that sending takes none.
    pub fn new() -> Self {
        SendWindow {
            frames: VecDeque::with_capacity(MAX_UNACKNOWLEDGED),
            first: 0,
            packets: Vec::new(),
            spare_packets: Vec::new(),
            rto: RtoEstimator::default(),
            next_timeout: Timestamp::NEVER,
        }
    }

    /// Whether `frames` more frames fit.
    pub fn has_room(&self, frames: usize) -> bool {
        self.frames.len() + frames <= MAX_UNACKNOWLEDGED
    }

    /// TxSequence of the next frame.
    pub fn next_tx_sequence(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    /// The present time-out in nanoseconds.
    pub fn rto_ns(&self) -> u64 {
        self.rto.rto_ns()
    }

    /// Opens a record for a packet that goes out in several frames; `interest` is a copy of it if it is an Interest.
    pub fn begin_fragmented(&mut self, interest: Option<PacketBuffer>) -> PacketHandle {
        let record = FragmentedPacket { in_window: 0, interest };
        match self.spare_packets.pop() {
            Some(index) => {
                self.packets[index] = record;
                PacketHandle(index)
            }
            None => {
                self.packets.push(record);
                PacketHandle(self.packets.len() - 1)
            }
        }
    }

    /// Closes the record of a packet none of whose frames came into the window.
    pub fn end_fragmented(&mut self, packet: PacketHandle) {
        if self.packets[packet.0].in_window == 0 {
            self.free_record(packet);
        }
    }

    fn free_record(&mut self, packet: PacketHandle) -> Option<PacketBuffer> {
        self.spare_packets.push(packet.0);
        self.packets[packet.0].interest.take()
    }

    /// Remembers the frame that is sent with [`SendWindow::next_tx_sequence`]. `None` (no buffer for a copy) uses the
    /// number up without protecting the frame. There must be room.
    pub fn push(&mut self, now: Timestamp, frame: Option<ProtectedFrame>) {
        let entry = frame.map(|frame| {
            if let Carried::FragmentOf(packet) = frame.carried {
                self.packets[packet.0].in_window += 1;
            }
            Unacknowledged { frame, sent_at: now, deadline: self.deadline_from(now), retransmissions: 0, later_acks: 0 }
        });
        self.enter(entry);
    }

    fn enter(&mut self, entry: Option<Unacknowledged>) {
        if let Some(entry) = &entry {
            self.next_timeout = self.next_timeout.min(entry.deadline);
        }
        self.frames.push_back(entry);
        self.trim_front();
    }

    fn deadline_from(&self, now: Timestamp) -> Timestamp {
        Timestamp(now.0.saturating_add(self.rto.rto_ns()))
    }

    fn trim_front(&mut self) {
        while let Some(None) = self.frames.front() {
            self.frames.pop_front();
            self.first += 1;
        }
        if self.frames.is_empty() {
            self.next_timeout = Timestamp::NEVER;
        }
    }

    /// Takes in an acknowledgement; one that fits no waiting frame is ignored. Frames found lost by it are due at the
    /// next [`SendWindow::resend_due`]. Returns whether a frame was acknowledged.
    pub fn acknowledge(&mut self, now: Timestamp, tx_sequence: u64) -> bool {
        let Some(index) = tx_sequence.checked_sub(self.first) else {
            return false;
        };
        let Some(index) = usize::try_from(index).ok().filter(|&i| i < self.frames.len()) else {
            return false;
        };
        let Some(entry) = self.frames[index].take() else {
            return false;
        };
        if entry.retransmissions == 0 {
            self.rto.add_sample(now.since_ns(entry.sent_at));
        }
        if let Carried::FragmentOf(packet) = entry.frame.carried {
            self.packets[packet.0].in_window -= 1;
            if self.packets[packet.0].in_window == 0 {
                self.free_record(packet);
            }
        }
        for earlier in self.frames.range_mut(..index).flatten() {
            earlier.later_acks = earlier.later_acks.saturating_add(1);
            if earlier.later_acks == LATER_ACKS_OF_LOSS {
                earlier.deadline = Timestamp(0);
                self.next_timeout = Timestamp(0);
            }
        }
        self.trim_front();
        true
    }

    /// Sends lost frames again and gives up those that were sent too often.
    pub fn resend_due(
        &mut self,
        now: Timestamp,
        face: FaceId,
        pool: &BufferPool,
        frames: &mut Vec<PacketBuffer>,
        dropped_interests: &mut Vec<DroppedInterest>,
        counters: &WorkerCounters,
    ) {
        if now < self.next_timeout {
            return;
        }
        let mut latest_timed_out = None;
        let end = self.next_tx_sequence();
        let mut tx_sequence = self.first;
        while tx_sequence < end {
            // Entries in front of this one may have left the window in the meantime.
            let index = (tx_sequence - self.first) as usize;
            tx_sequence += 1;
            let is_due = |entry: &mut Unacknowledged| entry.deadline <= now;
            let Some(entry) = self.frames[index].take_if(is_due) else {
                continue;
            };
            if entry.deadline != Timestamp(0) {
                latest_timed_out = latest_timed_out.max(Some(entry.sent_at));
            }
            if entry.retransmissions >= MAX_RETRANSMISSIONS {
                counters.link_drops.add(LinkDrop::RetransmissionsExhausted, 1);
                if let Some(buffer) = self.give_up(entry.frame) {
                    dropped_interests.push(DroppedInterest { face, buffer });
                }
                self.trim_up_to(tx_sequence);
            } else if let Some(sent) = self.resend(now, entry, index, pool) {
                counters.retransmissions.add(1);
                counters.sent.count_frame(sent.bytes().len());
                frames.push(sent);
                self.trim_up_to(tx_sequence);
            }
        }
        self.trim_front();
        if let Some(sent_at) = latest_timed_out {
            self.rto.timed_out(now, sent_at);
        }
        let deadlines = self.frames.iter().flatten().map(|entry| entry.deadline);
        self.next_timeout = deadlines.min().unwrap_or(Timestamp::NEVER);
    }

    /// Makes room at the front, but not beyond `limit`, so that the walk over the window keeps its place.
    fn trim_up_to(&mut self, limit: u64) {
        while self.first < limit && matches!(self.frames.front(), Some(None)) {
            self.frames.pop_front();
            self.first += 1;
        }
    }

    /// Moves a lost frame to the end of the window under a new TxSequence and gives a copy to send. Without a buffer or
    /// room for it, the frame stays where it was and is tried again later.
    fn resend(
        &mut self,
        now: Timestamp,
        mut entry: Unacknowledged,
        index: usize,
        pool: &BufferPool,
    ) -> Option<PacketBuffer> {
        // The entry's own place counts as room when it is the first.
        let room = index == 0 || self.has_room(1);
        let new_tx_sequence = self.next_tx_sequence();
        let offset = entry.frame.tx_sequence_offset;
        let place = entry.frame.buffer.bytes_mut().get_mut(offset..offset + 8);
        if let Some(place) = place.filter(|_| room) {
            place.copy_from_slice(&new_tx_sequence.to_be_bytes());
            if let Some(copy) = pool.copy_of(entry.frame.buffer.bytes()) {
                entry.retransmissions += 1;
                entry.later_acks = 0;
                entry.sent_at = now;
                entry.deadline = self.deadline_from(now);
                self.trim_up_to(self.first + 1);
                self.frames.push_back(Some(entry));
                return Some(copy);
            }
        }
        entry.deadline = Timestamp(now.0.saturating_add(MIN_RTO_NS));
        self.frames[index] = Some(entry);
        None
    }

    /// Drops all frames of the packet that `frame` belongs to. Gives the packet back if it was an Interest.
    fn give_up(&mut self, frame: ProtectedFrame) -> Option<PacketBuffer> {
        match frame.carried {
            Carried::Other => None,
            Carried::Interest => {
                let mut buffer = frame.buffer;
                buffer.trim_front(frame.payload_offset);
                Some(buffer)
            }
            Carried::FragmentOf(packet) => {
                for slot in &mut self.frames {
                    let _ = slot.take_if(|entry| entry.frame.carried == frame.carried);
                }
                self.free_record(packet)
            }
        }
    }

    /// Frames that wait for an acknowledgement.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.frames.iter().flatten().count()
    }

    /// When [`SendWindow::resend_due`] wants to be called next.
    pub fn next_deadline(&self) -> Timestamp {
        self.next_timeout
    }
}
