//! Link reliability, the receiving side: acknowledgements that wait for a frame that carries them, and memory of what was
//! received, to drop duplicates (NDNLPv2 link reliability).

use std::collections::VecDeque;

use namehop_packet::Timestamp;

/// How long an acknowledgement waits for a frame that carries it before it is sent alone, in milliseconds.
pub const IDLE_ACK_MS: u64 = 5;
/// Most acknowledgements that wait; the oldest is forgotten first, and its frame will come again.
pub const MAX_PENDING_ACKS: usize = 1024;
/// Received Sequence numbers that are remembered.
pub const REMEMBERED_SEQUENCES: usize = 1024;

/// Acknowledgements still to be sent.
#[derive(Debug)]
pub struct PendingAcks {
    numbers: VecDeque<u64>,
    deadline: Timestamp,
}

impl PendingAcks {
    /// None, with room for [`MAX_PENDING_ACKS`].
    pub fn new() -> Self {
        PendingAcks { numbers: VecDeque::with_capacity(MAX_PENDING_ACKS), deadline: Timestamp::NEVER }
    }

    /// Remembers to acknowledge a received TxSequence.
    pub fn push(&mut self, now: Timestamp, tx_sequence: u64) {
        if self.numbers.len() == MAX_PENDING_ACKS {
            self.numbers.pop_front();
        }
        if self.numbers.is_empty() {
            self.deadline = now.plus_ms(IDLE_ACK_MS);
        }
        self.numbers.push_back(tx_sequence);
    }

    /// The oldest ones, at most `limit`. Call [`PendingAcks::consume`] once they are on their way.
    pub fn oldest(&mut self, limit: usize) -> &[u64] {
        let count = limit.min(self.numbers.len());
        &self.numbers.make_contiguous()[..count]
    }

    /// Forgets the `count` oldest ones.
    pub fn consume(&mut self, count: usize) {
        self.numbers.drain(..count.min(self.numbers.len()));
        if self.numbers.is_empty() {
            self.deadline = Timestamp::NEVER;
        }
    }

    /// Puts off sending the rest alone, because there was no buffer for it.
    pub fn postpone(&mut self, now: Timestamp) {
        self.deadline = now.plus_ms(IDLE_ACK_MS);
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// When they are to be sent alone.
    pub fn deadline(&self) -> Timestamp {
        self.deadline
    }
}

/// Recently received Sequence numbers, each in the place that its low bits give. A number that was pushed out by a later
/// one, or that is older than the time for which the peer may still send it again, is no longer known.
#[derive(Debug)]
pub struct ReceivedSequences {
    places: Box<[Option<(u64, Timestamp)>]>,
}

impl ReceivedSequences {
    /// Nothing received yet.
    pub fn new() -> Self {
        ReceivedSequences { places: vec![None; REMEMBERED_SEQUENCES].into_boxed_slice() }
    }

    /// Whether this number came within the last `memory_ns` already; remembers it from now on.
    pub fn is_duplicate(&mut self, now: Timestamp, sequence: u64, memory_ns: u64) -> bool {
        let place = &mut self.places[sequence as usize % REMEMBERED_SEQUENCES];
        let duplicate = place.is_some_and(|(known, at)| known == sequence && now.since_ns(at) <= memory_ns);
        *place = Some((sequence, now));
        duplicate
    }
}
