//! PIT tokens on one face: this router's own go to a peer that has shown that it knows tokens, and both sides ask and answer whether
//! they do. What is known of the peer is with the face, in `registry::pit_tokens`.

use namehop_packet::{BufferPool, LinkFields, PacketBuffer, Timestamp};
use namehop_wire::lp::{KnowsPitTokens, PitToken};

use super::LinkService;
use crate::registry::FacePersistency;

/// Length of the tokens of ndnd, which ends itself ("Outgoing PIT token length must be 6 bytes") when it is to return one of another
/// length, as this router's are.
const NDND_TOKEN_BYTES: usize = 6;

impl LinkService {
    /// Notes that the peer has sent a PIT token, if it has, and so knows tokens of other peers.
    #[inline]
    pub(super) fn note_token(&self, token: &PitToken) {
        if !token.is_empty() && !self.face.pit_tokens.are_known() && token.len() != NDND_TOKEN_BYTES {
            self.face.pit_tokens.note_known();
        }
    }

    /// Takes in a KnowsPitTokens; where several peers share a face it means nothing.
    #[cold]
    pub(super) fn receive_knows_tokens(&mut self, field: KnowsPitTokens) {
        if self.face.pit_tokens.has_one_peer() {
            self.face.pit_tokens.note_known();
            match field {
                KnowsPitTokens::Asks => self.owes_answer = true,
                KnowsPitTokens::Tells => self.face.pit_tokens.note_answered(),
            }
        }
    }

    /// Takes this router's PIT token off an Interest whose peer has not shown that it knows tokens. Asks the peer in front of that
    /// Interest, if it is time to: only on faces that this side has made, so that no application gets a frame that it may not know.
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
            self.send_knows_tokens(KnowsPitTokens::Asks, pool, frames);
        }
    }

    /// Sends a KnowsPitTokens in a frame of its own, unless there is no buffer: it is not needed and comes again.
    fn send_knows_tokens(&mut self, field: KnowsPitTokens, pool: &BufferPool, frames: &mut Vec<PacketBuffer>) {
        let Some(frame) = pool.copy_of(&field.frame()) else { return };
        self.counters.sent.count_frame(KnowsPitTokens::FRAME_LEN);
        frames.push(frame);
    }

    /// Answers the question of the peer, if it has asked one, and asks the one that is wanted.
    pub(super) fn ask_and_answer(&mut self, pool: &BufferPool, frames: &mut Vec<PacketBuffer>) {
        if std::mem::take(&mut self.owes_answer) {
            self.face.pit_tokens.count_answer();
            self.send_knows_tokens(KnowsPitTokens::Tells, pool, frames);
        }
        if std::mem::take(&mut self.owes_question) {
            self.send_knows_tokens(KnowsPitTokens::Asks, pool, frames);
        }
    }
}
