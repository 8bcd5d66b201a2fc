//! The frames and packets of one poll iteration. The vectors keep their memory, so that nothing is allocated for each
//! iteration.

use namehop_face::link_service::DroppedInterest;
use namehop_face::ring::Frame;
use namehop_packet::{IncomingBurst, Outgoing, PacketBuffer};

use super::BURST;

/// The contents of a poll iteration, in the order in which they arise.
pub(super) struct Burst {
    /// Received frames.
    pub(super) frames: Vec<Frame>,
    /// Indices in `frames` of the frames to mark as congested, because the frames behind them have waited too long.
    pub(super) congested: Vec<usize>,
    /// Received packets.
    pub(super) incoming: IncomingBurst,
    /// Packets to send.
    pub(super) outgoing: Vec<Outgoing>,
    /// Frames to send on one face.
    pub(super) encoded: Vec<PacketBuffer>,
    /// Interests that link reliability declared lost.
    pub(super) dropped_interests: Vec<DroppedInterest>,
}

impl Burst {
    pub(super) fn new() -> Self {
        Burst {
            frames: Vec::with_capacity(2 * BURST),
            congested: Vec::new(),
            incoming: IncomingBurst::with_capacity(2 * BURST),
            outgoing: Vec::with_capacity(4 * BURST),
            encoded: Vec::with_capacity(BURST),
            dropped_interests: Vec::new(),
        }
    }
}
