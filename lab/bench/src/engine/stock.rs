//! Buffers of received and of sent packets.
//!
//! With [`Buffers::Far`] buffers are handled within the measured time, as in drivers of network cards. For each
//! received packet a buffer is allocated for a later packet. For each sent packet the buffer of a packet sent a ring's
//! length before is freed.

use std::collections::VecDeque;

use namehop_packet::{BufferPool, PacketBuffer};

use crate::schedule::{Buffers, EngineParameters};

/// Number of sent buffers that a card holds before it frees one.
const SENT: usize = 1_024;
/// Size of all waiting packets relative to the core's private cache.
const CACHES: usize = 2;
/// Bytes of a buffer accessed besides the packet: a line of its header, and one of the pool.
const TOUCHED_BESIDES: usize = 128;
/// Minimum and maximum number of waiting packets.
const WAITING: std::ops::RangeInclusive<usize> = 512..=16_384;

/// Number of prepared packets that wait to be received, large enough that they leave the core's private cache; 0 for
/// [`Buffers::Near`].
pub(super) fn waiting(parameters: &EngineParameters, packet_bytes: usize) -> usize {
    match parameters.buffers {
        Buffers::Near => 0,
        Buffers::Far => (CACHES * parameters.private_cache_bytes / (packet_bytes + TOUCHED_BESIDES))
            .clamp(*WAITING.start(), *WAITING.end()),
    }
}

/// Maximum number of buffers held by a stock, without waiting packets.
pub(super) const HELD: usize = SENT + 4 * 64;

/// Number of kinds of received packets, each with its own buffer size.
pub(super) const KINDS: usize = 2;

/// Packet buffers; see the module documentation.
pub(super) struct Stock {
    pub(super) pool: BufferPool,
    is_far: bool,
    /// Packet size in bytes, by kind.
    bytes: [usize; KINDS],
    /// Allocated and unused buffers, by kind.
    fresh: [VecDeque<PacketBuffer>; KINDS],
    sent: VecDeque<PacketBuffer>,
}

impl Stock {
    pub(super) fn new(pool: BufferPool, parameters: &EngineParameters, bytes: [usize; KINDS]) -> Self {
        let is_far = parameters.buffers == Buffers::Far;
        Stock { pool, is_far, bytes, fresh: Default::default(), sent: VecDeque::with_capacity(2 * SENT) }
    }

    /// Returns a buffer for a packet to be received.
    pub(super) fn take(&mut self, kind: usize) -> Option<PacketBuffer> {
        self.fresh[kind].pop_front().or_else(|| self.pool.allocate(self.bytes[kind]))
    }

    /// Takes the buffer of a sent packet.
    pub(super) fn put(&mut self, frame: PacketBuffer) {
        if self.is_far {
            self.sent.push_back(frame);
        }
    }

    /// Allocates buffers as a driver does when it receives these numbers of packets. Part of the measured time.
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

    /// Frees buffers of packets sent before, as a driver does when it sends. Part of the measured time.
    #[inline]
    pub(super) fn give_back(&mut self) {
        if self.is_far {
            let over = self.sent.len().saturating_sub(SENT);
            self.sent.drain(..over);
        }
    }

    /// Frees all buffers.
    pub(super) fn clear(&mut self) {
        self.fresh = Default::default();
        self.sent.clear();
    }
}
