//! A walk over all pending Interests, a little at a time.
//!
//! What happens to a face or to a route concerns any pending Interest, and to find those the whole PIT has to be looked at. That
//! must not hold up forwarding, so between two calls of [`Engine::advance`](super::Engine::advance) only [`WORK`] is done.

use crate::pcct::{Pcct, PitRef};

/// Work between two calls of `advance`: 4096 PIT slots looked at, of which 256 may be handed to their strategy.
pub(crate) const WORK: usize = 4_096 * LOOK_COST;
/// What each step costs. A position whose slot has ended is only read, in sequence; a slot is somewhere in memory; a
/// strategy looks up the FIB and may send a packet.
pub(crate) const GAP_COST: usize = 1;
pub(crate) const LOOK_COST: usize = 8;
pub(crate) const STRATEGY_COST: usize = 128;
/// Number of positions that are prefetched ahead.
const PREFETCH_DISTANCE: u64 = 8;

/// What is at a position of the walk.
pub(crate) enum Met {
    /// A PIT slot.
    Slot(PitRef),
    /// A slot that has ended or moved.
    Gap,
    /// The end: all slots were met that there were when the walk began.
    End,
}

/// Where in the eviction queue of the PIT a walk goes on.
pub(crate) struct PitWalk {
    next_sequence: u64,
}

impl PitWalk {
    /// From the oldest slot on.
    pub(crate) fn new(pcct: &Pcct) -> Self {
        PitWalk { next_sequence: pcct.queued_sequences().start }
    }

    /// The next position. `prefetch` brings into the cache what will be looked at of a slot some positions ahead.
    pub(crate) fn next(&mut self, pcct: &Pcct, prefetch: impl FnOnce(&Pcct, PitRef)) -> Met {
        let queued = pcct.queued_sequences();
        // Slots at the head may have ended; a slot that was moved to the tail has not, and is met there.
        let sequence = self.next_sequence.max(queued.start);
        if sequence >= queued.end {
            return Met::End;
        }
        if let Some(ahead) = pcct.queued_slot(sequence + PREFETCH_DISTANCE) {
            prefetch(pcct, ahead);
        }
        self.next_sequence = sequence + 1;
        pcct.queued_slot(sequence).map_or(Met::Gap, Met::Slot)
    }
}
