//! What else than time is observed while the worker has its turns, in a pass of its own: watching takes time, too.

use std::io;

use crate::counters::{Counters, Tally};
use crate::schedule::{ByPacket, PacketKind};

/// An observer of turns.
pub(super) enum Watch {
    /// Hardware counters.
    Counters(Box<Counters>, Box<ByPacket<Tally>>),
    /// Cache lines of tables.
    #[cfg(test)]
    Lines(Box<super::lines::tests::LineWatch>),
}

impl Watch {
    /// Watches a turn that handles `packets` packets of one kind, or of several, which are not told apart; returns what the
    /// turn does.
    pub(super) fn turn(
        &mut self,
        kind: Option<PacketKind>,
        packets: usize,
        turn: impl FnOnce() -> u64,
    ) -> io::Result<u64> {
        match self {
            Watch::Counters(counters, tallies) => match kind {
                Some(kind) => counters.count(tallies.get_mut(kind), packets, turn),
                None => Ok(turn()),
            },
            #[cfg(test)]
            Watch::Lines(lines) => Ok(lines.turn(kind, packets, turn)),
        }
    }
}
