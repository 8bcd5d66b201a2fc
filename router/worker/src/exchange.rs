//! Exchanges packets with the other workers, once per poll iteration.

use namehop_packet::Timestamp;

use super::faces::FacesOfEngine;
use super::handover::{Handed, Handover, Received};
use super::{BURST, Worker};

/// The rings to and from the other workers, and what came through them.
pub(super) struct OtherWorkers {
    pub(super) handover: Handover,
    handed: Received,
}

impl OtherWorkers {
    pub(super) fn new(handover: Handover) -> Self {
        OtherWorkers { handover, handed: Received::default() }
    }

    /// Returns whether another worker has transferred something to this one.
    pub(super) fn has_work(&self) -> bool {
        self.handover.has_work()
    }
}

impl Worker {
    /// Transfers packets of other workers to their owners and receives packets from them. Returns whether any were
    /// received.
    #[inline]
    pub(super) fn exchange(&mut self, now: Timestamp) -> bool {
        if self.others.is_some() { self.exchange_with_others(now) } else { false }
    }

    fn exchange_with_others(&mut self, now: Timestamp) -> bool {
        let Worker { engine, pool, faces, links, others, burst, .. } = self;
        let Some(OtherWorkers { handover, handed }) = others else { return false };
        for (home, port, frame) in links.ports.frames_for_others() {
            handover.hand_over(now, home, Handed::Frame(port, frame), faces.table.link_drops());
        }
        handover.divide(now, &mut burst.incoming, pool, faces.table.link_drops());
        let (own, to_send) = (burst.incoming.kinds().map(|packets| packets.len()), burst.outgoing.len());
        handover.receive(now, BURST, &mut burst.incoming, &mut burst.outgoing, handed);
        let end = burst.incoming.kinds().map(|packets| packets.len());
        let has_frames = !handed.frames.is_empty();
        for (port, frame) in handed.frames.drain(..) {
            links.ports.accept(port, frame);
        }
        // A packet from another worker may come before the command to add its face.
        let mut faces = FacesOfEngine { faces, engine };
        handed.faces.drain(..).for_each(|face| faces.expect(face));
        for ((packets, own), end) in burst.incoming.kinds().into_iter().zip(own).zip(end) {
            packets[own..end].iter().for_each(|packet| faces.expect(packet.face));
        }
        burst.outgoing[to_send..].iter().for_each(|packet| faces.expect(packet.face));
        handed.offered.iter().for_each(|packet| faces.expect(packet.face));
        end != own || burst.outgoing.len() > to_send || has_frames || !handed.is_empty()
    }

    /// Passes packets received from other workers to the engine, and redirects packets that carried a stale PIT token.
    #[inline]
    pub(super) fn process_handed(&mut self, now: Timestamp) {
        let Worker { engine, pool, faces, others, burst, .. } = self;
        let Some(OtherWorkers { handover, handed }) = others else { return };
        for packet in engine.take_misdirected() {
            handover.redirect(now, packet, pool, faces.table.link_drops());
        }
        if !handed.offered.is_empty() {
            engine.process_offered(now, &mut handed.offered, &mut burst.outgoing);
        }
        for interest in handed.dropped.drain(..) {
            engine.dropped_interest(now, interest.face, interest.buffer.bytes(), &mut burst.outgoing);
        }
    }

    /// Tells strategies of the Interests that link reliability declared lost, here or at the worker that owns them.
    pub(super) fn pass_on_dropped(&mut self, now: Timestamp) {
        let Worker { engine, faces, others, burst, .. } = self;
        for interest in burst.dropped_interests.drain(..) {
            if let Some(OtherWorkers { handover, .. }) = others {
                let owner = handover.owner_of_interest(interest.buffer.bytes());
                if owner != handover.worker() {
                    handover.hand_over(now, owner, Handed::Dropped(interest), faces.table.link_drops());
                    continue;
                }
            }
            engine.dropped_interest(now, interest.face, interest.buffer.bytes(), &mut burst.outgoing);
        }
    }
}
