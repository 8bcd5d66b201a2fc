//! Link reliability, receiving side (NDNLPv2 link reliability): acknowledgements that wait for a frame to carry them,
//! and the received Sequence numbers, which serve to drop duplicates.

use std::collections::VecDeque;

use namehop_packet::Timestamp;

/// Time that an acknowledgement waits for a frame to carry it before it is sent alone, in milliseconds.
pub const IDLE_ACK_MS: u64 = 5;
/// Maximum number of waiting acknowledgements. Beyond it the oldest is dropped; the peer then sends its frame again.
pub const MAX_PENDING_ACKS: usize = 1024;
/// Number of received Sequence numbers that are remembered.
pub const REMEMBERED_SEQUENCES: usize = 1024;

/// Acknowledgements that are still to be sent.
#[derive(Debug)]
pub struct PendingAcks {
    numbers: VecDeque<u64>,
    deadline: Timestamp,
}

impl PendingAcks {
    /// Creates an empty queue with space for [`MAX_PENDING_ACKS`].
    pub fn new() -> Self {
        PendingAcks { numbers: VecDeque::with_capacity(MAX_PENDING_ACKS), deadline: Timestamp::NEVER }
    }

    /// Queues the acknowledgement of a received TxSequence.
    pub fn push(&mut self, now: Timestamp, tx_sequence: u64) {
        if self.numbers.len() == MAX_PENDING_ACKS {
            self.numbers.pop_front();
        }
        if self.numbers.is_empty() {
            self.deadline = now.plus_ms(IDLE_ACK_MS);
        }
        self.numbers.push_back(tx_sequence);
    }

    /// Returns the oldest ones, at most `limit`. Call [`PendingAcks::consume`] when they have been put into a frame.
    pub fn oldest(&mut self, limit: usize) -> &[u64] {
        let count = limit.min(self.numbers.len());
        &self.numbers.make_contiguous()[..count]
    }

    /// Removes the `count` oldest ones.
    pub fn consume(&mut self, count: usize) {
        self.numbers.drain(..count.min(self.numbers.len()));
        if self.numbers.is_empty() {
            self.deadline = Timestamp::NEVER;
        }
    }

    /// Postpones sending the rest alone, because there was no buffer.
    pub fn postpone(&mut self, now: Timestamp) {
        self.deadline = now.plus_ms(IDLE_ACK_MS);
    }

    /// Whether no acknowledgement waits.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns when the acknowledgements are to be sent alone.
    pub fn deadline(&self) -> Timestamp {
        self.deadline
    }
}

/// Recently received Sequence numbers, each in the slot given by its low bits. A number is forgotten when a later one
/// takes its slot. It also does not count when it is older than the time during which the peer may send it again.
#[derive(Debug)]
pub struct ReceivedSequences {
    slots: Box<[Option<(u64, Timestamp)>]>,
}

impl ReceivedSequences {
    /// Creates an empty memory.
    pub fn new() -> Self {
        ReceivedSequences { slots: vec![None; REMEMBERED_SEQUENCES].into_boxed_slice() }
    }

    /// Whether this number was already received within the last `memory_ns`; stores it.
    pub fn is_duplicate(&mut self, now: Timestamp, sequence: u64, memory_ns: u64) -> bool {
        let slot = &mut self.slots[sequence as usize % REMEMBERED_SEQUENCES];
        let duplicate = slot.is_some_and(|(known, at)| known == sequence && now.since_ns(at) <= memory_ns);
        *slot = Some((sequence, now));
        duplicate
    }
}
