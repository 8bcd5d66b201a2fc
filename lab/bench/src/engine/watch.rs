//! Observation of poll iterations besides time, in a separate pass because it takes time.

use std::io;

use crate::counters::{Counters, Tally};
use crate::schedule::{ByPacket, PacketKind};

/// An observer of poll iterations.
pub(super) enum Watch {
    /// Hardware counters.
    Counters(Box<Counters>, Box<ByPacket<Tally>>),
    /// Cache lines of tables.
    #[cfg(test)]
    Lines(Box<super::lines::tests::LineWatch>),
}

impl Watch {
    /// Observes a poll iteration that handles `packets` packets, of one kind or mixed (`None`); returns the result of
    /// `turn`.
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
