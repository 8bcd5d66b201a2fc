//! Link reliability, sending side (NDNLPv2 link reliability): frames stay in a window until the peer acknowledges them,
//! and are retransmitted if they seem lost.
//!
//! A frame counts as lost when its time-out passes or when three frames sent after it were acknowledged. It is
//! retransmitted under a new TxSequence at most [`MAX_RETRANSMISSIONS`] times; then its whole network packet is
//! abandoned. The window holds at most [`MAX_UNACKNOWLEDGED`] frames, each a copy in a pooled buffer. If the window is
//! full or the pool is empty, frames are sent without protection, so that sending does not stop.

use std::collections::VecDeque;

use namehop_packet::{BufferPool, FaceId, PacketBuffer, Timestamp};

use super::DroppedInterest;
use super::rto::{MIN_RTO_NS, RtoEstimator};
use crate::counters::{LinkDrop, WorkerCounters};

/// Maximum number of frames that wait for an acknowledgement.
pub const MAX_UNACKNOWLEDGED: usize = 1024;
/// Maximum number of retransmissions of a frame.
pub const MAX_RETRANSMISSIONS: u8 = 3;
/// Number of acknowledgements of later frames after which a frame counts as lost.
pub const LATER_ACKS_OF_LOSS: u8 = 3;

/// Content of a protected frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// A whole Interest, which is reported when it is abandoned.
    Interest,
    /// A whole Data or Nack.
    Other,
    /// A fragment of the packet with this handle.
    FragmentOf(PacketHandle),
}

/// Handle of a fragmented packet, from [`SendWindow::begin_fragmented`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketHandle(usize);

/// A copy of a sent frame and the positions of its parts.
#[derive(Debug)]
pub struct ProtectedFrame {
    /// The complete LpPacket.
    pub buffer: PacketBuffer,
    /// Offset of the eight bytes of TxSequence.
    pub tx_sequence_offset: usize,
    /// Offset of the network packet.
    pub payload_offset: usize,
    /// Its content.
    pub carried: Carried,
}

#[derive(Debug)]
struct Unacknowledged {
    frame: ProtectedFrame,
    sent_at: Timestamp,
    /// Set to 0 when acknowledgements of later frames have shown the loss.
    deadline: Timestamp,
    retransmissions: u8,
    later_acks: u8,
}

#[derive(Debug)]
struct FragmentedPacket {
    /// Number of its frames in the window; 0 in a spare record.
    in_window: usize,
    /// Copy of the packet if it is an Interest.
    interest: Option<PacketBuffer>,
}

/// Frames sent but not acknowledged yet. TxSequence starts at 0 and increases by one for each frame.
#[derive(Debug)]
pub struct SendWindow {
    /// The frame with TxSequence `first + i` at index `i`; `None` if acknowledged, retransmitted or never protected.
    frames: VecDeque<Option<Unacknowledged>>,
    first: u64,
    packets: Vec<FragmentedPacket>,
    spare_packets: Vec<usize>,
    rto: RtoEstimator,
    /// Not later than the earliest time-out.
    next_timeout: Timestamp,
}

impl SendWindow {
    /// Creates an empty window. Memory for its records is allocated now, so that sending allocates none.
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

    /// Returns the TxSequence of the next frame.
    pub fn next_tx_sequence(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    /// Returns the present time-out in nanoseconds.
    pub fn rto_ns(&self) -> u64 {
        self.rto.rto_ns()
    }

    /// Opens a record for a packet that is sent in several frames; `interest` is a copy of it if it is an Interest.
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

    /// Closes the record of a packet if none of its frames is in the window.
    pub fn end_fragmented(&mut self, packet: PacketHandle) {
        if self.packets[packet.0].in_window == 0 {
            self.free_record(packet);
        }
    }

    fn free_record(&mut self, packet: PacketHandle) -> Option<PacketBuffer> {
        self.spare_packets.push(packet.0);
        self.packets[packet.0].interest.take()
    }

    /// Stores the frame that is sent with [`SendWindow::next_tx_sequence`]. `None` (no buffer for a copy) consumes the
    /// number without protecting the frame. The window must have space.
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

    /// Processes an acknowledgement; ignores it if no such frame waits. Frames that it shows to be lost are
    /// retransmitted at the next [`SendWindow::resend_due`]. Returns whether a frame was acknowledged.
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

    /// Retransmits lost frames, and abandons frames that were retransmitted too often.
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
            // Entries before this one may have left the window in the meantime.
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

    /// Removes empty entries at the front, but not beyond `limit`, so that the loop over the window keeps its position.
    fn trim_up_to(&mut self, limit: u64) {
        while self.first < limit && matches!(self.frames.front(), Some(None)) {
            self.frames.pop_front();
            self.first += 1;
        }
    }

    /// Moves a lost frame to the end of the window under a new TxSequence and returns a copy to send. If there is no
    /// buffer or space, the frame stays in place and is retried later.
    fn resend(
        &mut self,
        now: Timestamp,
        mut entry: Unacknowledged,
        index: usize,
        pool: &BufferPool,
    ) -> Option<PacketBuffer> {
        // If the entry is the first, its own slot becomes free.
        let has_room = index == 0 || self.has_room(1);
        let new_tx_sequence = self.next_tx_sequence();
        let offset = entry.frame.tx_sequence_offset;
        let field = entry.frame.buffer.bytes_mut().get_mut(offset..offset + 8);
        if let Some(field) = field.filter(|_| has_room) {
            field.copy_from_slice(&new_tx_sequence.to_be_bytes());
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

    /// Drops all frames of the packet that `frame` belongs to. Returns the packet if it was an Interest.
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

    /// Returns the number of frames that wait for an acknowledgement.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.frames.iter().flatten().count()
    }

    /// Returns when [`SendWindow::resend_due`] has to be called next.
    pub fn next_deadline(&self) -> Timestamp {
        self.next_timeout
    }
}
