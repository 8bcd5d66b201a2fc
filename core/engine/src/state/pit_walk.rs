//! A walk over all pending Interests, in bounded parts.
//!
//! A change of a face or a route can concern any pending Interest, so finding the affected ones takes a walk over the
//! whole PIT. To keep forwarding going, only [`WORK`] is done between two calls of
//! [`Engine::advance`](super::Engine::advance).

use crate::pcct::{Pit, PitRef};

/// Work between two calls of `advance`: examining 4096 PIT slots, of which 256 may be passed to their strategy.
pub(crate) const WORK: usize = 4_096 * LOOK_COST;
/// The cost of each step. A position without a slot is only read, in sequence; a slot is anywhere in memory; a strategy
/// looks up the FIB and may send a packet.
pub(crate) const GAP_COST: usize = 1;
pub(crate) const LOOK_COST: usize = 8;
pub(crate) const STRATEGY_COST: usize = 128;
/// How many positions ahead the walk prefetches.
const PREFETCH_DISTANCE: u64 = 8;

/// The content of a position of the walk.
pub(crate) enum Met {
    /// A PIT slot.
    Slot(PitRef),
    /// A slot that has ended or moved.
    Gap,
    /// The end: the walk has met all slots that existed when it began.
    End,
}

/// The position of a walk in the eviction queue of the PIT.
pub(crate) struct PitWalk {
    next_sequence: u64,
}

impl PitWalk {
    /// Starts at the oldest slot.
    pub(crate) fn new(pit: &Pit) -> Self {
        PitWalk { next_sequence: pit.queued_sequences().start }
    }

    /// Returns the content of the next position. `prefetch` prefetches a slot some positions ahead.
    pub(crate) fn next(&mut self, pit: &Pit, prefetch: impl FnOnce(PitRef)) -> Met {
        let queued = pit.queued_sequences();
        // Slots at the head may have ended. A slot that was moved to the tail has not, and is met there.
        let sequence = self.next_sequence.max(queued.start);
        if sequence >= queued.end {
            return Met::End;
        }
        if let Some(ahead) = pit.queued_slot(sequence + PREFETCH_DISTANCE) {
            prefetch(ahead);
        }
        self.next_sequence = sequence + 1;
        pit.queued_slot(sequence).map_or(Met::Gap, Met::Slot)
    }
}
