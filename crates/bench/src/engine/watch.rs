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
    /// Watches a turn that handles `packets` packets of one kind; returns what the turn does.
    pub(super) fn turn(&mut self, kind: PacketKind, packets: usize, turn: impl FnOnce() -> u64) -> io::Result<u64> {
        match self {
            Watch::Counters(counters, tallies) => counters.count(tallies.get_mut(kind), packets, turn),
            #[cfg(test)]
            Watch::Lines(lines) => Ok(lines.turn(kind, packets, turn)),
        }
    }
}
