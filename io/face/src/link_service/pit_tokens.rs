//! PIT tokens on one face. This router's tokens are sent only to a peer that has shown that it knows tokens; both sides
//! ask and answer whether they do. The knowledge about the peer is stored with the face, in `registry::pit_tokens`.

use namehop_packet::{BufferPool, LinkFields, PacketBuffer, Timestamp};
use namehop_wire::lp::{KnowsPitTokens, PitToken};

use super::LinkService;
use crate::registry::FacePersistency;

/// Length of the tokens of ndnd. ndnd exits ("Outgoing PIT token length must be 6 bytes") when it has to return a token
/// of another length, such as this router's.
const NDND_TOKEN_BYTES: usize = 6;

impl LinkService {
    /// Notes that the peer knows tokens of other peers, if it has sent a PIT token.
    #[inline]
    pub(super) fn note_token(&self, token: &PitToken) {
        if !token.is_empty() && !self.face.pit_tokens.are_known() && token.len() != NDND_TOKEN_BYTES {
            self.face.pit_tokens.note_known();
        }
    }

    /// Handles a KnowsPitTokens field; ignored on faces with several peers.
    #[cold]
    pub(super) fn receive_knows_tokens(&mut self, field: KnowsPitTokens) {
        if self.face.pit_tokens.has_one_peer() {
            self.note_namehop();
            match field {
                KnowsPitTokens::Asks => self.owes_answer = true,
                KnowsPitTokens::Tells => self.face.pit_tokens.note_answered(),
            }
        }
    }

    /// Removes this router's PIT token from an Interest to a peer that has not shown that it knows tokens. If a
    /// question is due, asks the peer before that Interest. This is done only on faces created by this side, so that no
    /// application gets a frame that it may not know.
    #[inline(never)]
    pub(super) fn withhold_token(
        &mut self,
        now: Timestamp,
        fields: &mut LinkFields,
        pool: &BufferPool,
        frames: &mut Vec<PacketBuffer>,
    ) {
        fields.pit_token = PitToken::empty();
        if self.face.persistency() != FacePersistency::OnDemand && self.face.pit_tokens.take_question(now) {
            self.send_field(&KnowsPitTokens::Asks.frame(), pool, frames);
        }
    }

    /// Sends a frame of the link service's own. Does nothing if there is no buffer: such a frame is not essential and
    /// is sent again later.
    pub(super) fn send_field(&self, frame: &[u8], pool: &BufferPool, frames: &mut Vec<PacketBuffer>) {
        let Some(frame) = pool.copy_of(frame) else { return };
        self.counters.sent.count_frame(frame.bytes().len());
        frames.push(frame);
    }

    /// Answers a question of the peer, and asks the requested question.
    pub(super) fn ask_and_answer(&mut self, pool: &BufferPool, frames: &mut Vec<PacketBuffer>) {
        if std::mem::take(&mut self.owes_answer) {
            self.face.pit_tokens.count_answer();
            self.send_field(&KnowsPitTokens::Tells.frame(), pool, frames);
        }
        if std::mem::take(&mut self.owes_question) {
            self.send_field(&KnowsPitTokens::Asks.frame(), pool, frames);
            if let Some(interest) = self.face.next_probe_interest() {
                self.send_field(&interest, pool, frames);
            }
        }
    }

    /// Returns whether a Nack of this Interest answers a question to the peer, and notes the answer.
    #[cold]
    pub(super) fn note_nacked_probe(&self, interest: &[u8]) -> bool {
        let is_answer = self.face.probe_interests.take_answer(interest);
        if is_answer {
            self.face.pit_tokens.note_answered();
        }
        is_answer
    }
}
