//! Exchanges packets with the other workers, once per poll iteration.

use namehop_packet::{FaceId, Timestamp};

use super::handover::Handed;
use super::{BURST, Worker};

impl Worker {
    /// Transfers packets of other workers to their owners and receives packets from them. Returns whether any were
    /// received.
    pub(super) fn exchange(&mut self, now: Timestamp) -> bool {
        let Some(handover) = &mut self.handover else { return false };
        for (home, port, frame) in self.ports.frames_for_others() {
            handover.hand_over(now, home, Handed::Frame(port, frame), self.table.link_drops());
        }
        handover.divide(now, &mut self.incoming, &self.pool, self.table.link_drops());
        let (own, to_send) = (self.incoming.kinds().map(|packets| packets.len()), self.outgoing.len());
        handover.receive(now, BURST, &mut self.incoming, &mut self.outgoing, &mut self.handed);
        let end = self.incoming.kinds().map(|packets| packets.len());
        let has_frames = !self.handed.frames.is_empty();
        for (port, frame) in self.handed.frames.drain(..) {
            self.ports.accept(port, frame);
        }
        while let Some(face) = self.handed.faces.pop() {
            self.expect_face(face);
        }
        for kind in 0..end.len() {
            for position in own[kind]..end[kind] {
                let face = self.incoming.kinds()[kind][position].face;
                self.expect_face(face);
            }
        }
        for position in to_send..self.outgoing.len() {
            self.expect_face(self.outgoing[position].face);
        }
        for position in 0..self.handed.offered.len() {
            self.expect_face(self.handed.offered[position].face);
        }
        end != own || self.outgoing.len() > to_send || has_frames || !self.handed.is_empty()
    }

    /// Adds a face if its first packet from another worker arrived before the command to add the face.
    #[inline]
    fn expect_face(&mut self, id: FaceId) {
        if !self.engine.has_face(id) {
            self.add_face_of_first_frame(id);
        }
    }

    /// Passes packets received from other workers to the engine, and redirects packets that carried a stale PIT token.
    pub(super) fn process_handed(&mut self, now: Timestamp) {
        if let Some(handover) = &mut self.handover {
            for packet in self.engine.take_misdirected() {
                handover.redirect(now, packet, &self.pool, self.table.link_drops());
            }
        }
        if !self.handed.offered.is_empty() {
            self.engine.process_offered(now, &mut self.handed.offered, &mut self.outgoing);
        }
        for interest in self.handed.dropped.drain(..) {
            self.engine.dropped_interest(now, interest.face, interest.buffer.bytes(), &mut self.outgoing);
        }
    }

    /// Tells strategies of the Interests that link reliability declared lost, here or at the worker that owns them.
    pub(super) fn pass_on_dropped(&mut self, now: Timestamp) {
        for interest in self.dropped_interests.drain(..) {
            if let Some(handover) = &mut self.handover {
                let owner = handover.owner_of_interest(interest.buffer.bytes());
                if owner != self.number {
                    handover.hand_over(now, owner, Handed::Dropped(interest), self.table.link_drops());
                    continue;
                }
            }
            self.engine.dropped_interest(now, interest.face, interest.buffer.bytes(), &mut self.outgoing);
        }
    }
}
