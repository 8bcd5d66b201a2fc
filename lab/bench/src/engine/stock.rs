//! The buffers of packets that come in and of those that have gone out.
//!
//! With [`Buffers::Far`] they are treated as drivers of network cards treat them, within the measured time: for each packet
//! received a buffer is taken from the pool, for one that is to come; for each packet sent one is given back, of a packet
//! that was sent a ring's length before.

use std::collections::VecDeque;

use namehop_packet::{BufferPool, PacketBuffer};

use crate::schedule::{Buffers, EngineParameters};

/// Buffers that a card holds before it gives one back.
const SENT: usize = 1_024;
/// Packets that wait for their turns take this many times the size of the core's own cache.
const CACHES: usize = 2;
/// Bytes of a buffer that are touched besides the packet: a line of its header, and one of the pool.
const TOUCHED_BESIDES: usize = 128;
/// The least and the most packets that wait.
const WAITING: std::ops::RangeInclusive<usize> = 512..=16_384;

/// How many packets wait for their turns: so many that they do not stay in the core's own cache. 0 when they should.
pub(super) fn waiting(parameters: &EngineParameters, packet_bytes: usize) -> usize {
    match parameters.buffers {
        Buffers::Near => 0,
        Buffers::Far => (CACHES * parameters.private_cache_bytes / (packet_bytes + TOUCHED_BESIDES))
            .clamp(*WAITING.start(), *WAITING.end()),
    }
}

/// Most buffers that a stock holds besides those that wait.
pub(super) const HELD: usize = SENT + 4 * 64;

/// Kinds of packets that come in, each with buffers of its own size.
pub(super) const KINDS: usize = 2;

/// See the module's description.
pub(super) struct Stock {
    pub(super) pool: BufferPool,
    is_far: bool,
    /// Bytes of packets by kind.
    bytes: [usize; KINDS],
    /// Taken and not yet used, by kind.
    fresh: [VecDeque<PacketBuffer>; KINDS],
    sent: VecDeque<PacketBuffer>,
}

impl Stock {
    pub(super) fn new(pool: BufferPool, parameters: &EngineParameters, bytes: [usize; KINDS]) -> Self {
        let is_far = parameters.buffers == Buffers::Far;
        Stock { pool, is_far, bytes, fresh: Default::default(), sent: VecDeque::with_capacity(2 * SENT) }
    }

    /// A buffer for a packet that is to come in.
    pub(super) fn take(&mut self, kind: usize) -> Option<PacketBuffer> {
        self.fresh[kind].pop_front().or_else(|| self.pool.allocate(self.bytes[kind]))
    }

    /// A packet that has gone out.
    pub(super) fn put(&mut self, frame: PacketBuffer) {
        if self.is_far {
            self.sent.push_back(frame);
        }
    }

    /// Does what receiving so many packets of each kind takes. Part of the measured time.
    #[inline]
    pub(super) fn refill(&mut self, received: [usize; KINDS]) {
        if self.is_far {
            for (kind, count) in received.into_iter().enumerate() {
                for _ in 0..count {
                    self.fresh[kind].extend(self.pool.allocate(self.bytes[kind]));
                }
            }
        }
    }

    /// Does what sending takes: gives back what was sent before. Part of the measured time.
    #[inline]
    pub(super) fn give_back(&mut self) {
        if self.is_far {
            let over = self.sent.len().saturating_sub(SENT);
            self.sent.drain(..over);
        }
    }

    /// Gives everything back.
    pub(super) fn clear(&mut self) {
        self.fresh = Default::default();
        self.sent.clear();
    }
}
