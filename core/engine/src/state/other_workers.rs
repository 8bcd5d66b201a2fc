//! The engines of other workers, among which names are divided. See [`dispatch`](crate::dispatch).

use std::sync::Arc;

use namehop_packet::Incoming;
use namehop_wire::lp::PitToken;

use crate::dispatch::NameDispatch;
use crate::pit_token;

/// What an engine knows of the engines of other workers.
pub(crate) struct OtherWorkers {
    /// Number of this worker.
    worker: u8,
    /// `None` if there is only one engine.
    dispatch: Option<Arc<NameDispatch>>,
    /// Packets that turned out to belong to another engine.
    misdirected: Vec<Incoming>,
}

impl OtherWorkers {
    /// Creates the state of the only engine.
    pub(super) fn none(worker: u8) -> Self {
        OtherWorkers { worker, dispatch: None, misdirected: Vec::new() }
    }

    /// Makes the engine one of several.
    pub(crate) fn share_dispatch(&mut self, dispatch: Arc<NameDispatch>) {
        self.dispatch = Some(dispatch);
    }

    /// Returns the name dispatch table; `None` if there is only one engine.
    pub(crate) fn dispatch(&self) -> Option<&Arc<NameDispatch>> {
        self.dispatch.as_ref()
    }

    /// Returns whether a worker is this one.
    pub(crate) fn is_here(&self, worker: u8) -> bool {
        worker == self.worker
    }

    /// Returns whether this packet came here only because of its PIT token, which matched no PIT entry, and its name
    /// belongs to another engine.
    #[inline]
    pub(crate) fn is_misdirected(&self, packet: &Incoming) -> bool {
        self.dispatch.as_ref().is_some_and(|dispatch| self.belongs_elsewhere(dispatch, packet))
    }

    #[cold]
    fn belongs_elsewhere(&self, dispatch: &NameDispatch, packet: &Incoming) -> bool {
        let is_nack = packet.fields.nack.is_some();
        let by_name = dispatch.owners_by_token(packet.buffer.bytes(), &PitToken::empty(), is_nack);
        pit_token::worker(&packet.fields.pit_token) == Some(self.worker)
            && by_name.is_some_and(|owners| {
                !self.is_here(owners.owner) && !owners.others.iter().any(|other| self.is_here(other))
            })
    }

    /// Sets a packet aside for another engine.
    pub(crate) fn put_aside(&mut self, mut packet: Incoming) {
        packet.fields.pit_token = PitToken::empty();
        self.misdirected.push(packet);
    }

    /// Removes and returns the packets that were set aside.
    pub(crate) fn take_misdirected(&mut self) -> impl Iterator<Item = Incoming> + '_ {
        self.misdirected.drain(..)
    }
}
