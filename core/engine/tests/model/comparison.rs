//! Comparison of the packets that the engine and the model have sent.

use namehop_packet::{Outgoing, PacketKind};
use namehop_wire::NameRef;
use proptest::prelude::*;

use super::packets::{self, Interest, Name};
use super::runner::{Asked, Runner};
use super::{ADDED_NONCES, Nonce, Sent};

impl Runner {
    /// Compares what the engine has sent with what it should have sent, in any order.
    pub(super) fn compare(&mut self, out: Vec<Outgoing>) -> Result<(), TestCaseError> {
        let (mut unexpected, mut answers): (Vec<Sent>, Vec<Sent>) = (Vec::new(), Vec::new());
        for packet in out {
            let bytes = packet.buffer.bytes();
            self.sent.push(format!("{} {:?} {:?} {bytes:02x?}", packet.face, packet.kind, packet.fields));
            let (sent, nonce) = self.describe(&packet)?;
            match self.position_of(&sent, nonce) {
                Some(position) => {
                    self.expected.swap_remove(position);
                    answers.push(sent);
                }
                None => unexpected.push(sent),
            }
        }
        if self.engine.count() > 1 {
            unexpected.retain(|sent| !answers.iter().any(|answer| is_repetition(sent, answer)));
        }
        prop_assert!(
            unexpected.is_empty() && self.expected.is_empty(),
            "at {} ms only the engine sent {:?}\nand only the model {:?}",
            self.now_ms,
            unexpected,
            self.expected
        );
        let sizes = self.engine.table_sizes();
        prop_assert_eq!((sizes.pit, sizes.cs), self.model.sizes(), "PIT entries and cached Data at {} ms", self.now_ms);
        Ok(())
    }

    /// Returns the index of an engine's packet among the expected ones. The value of a nonce that the forwarder added
    /// is learned when it is first seen: both sides add nonces in the same order.
    fn position_of(&mut self, sent: &Sent, nonce: Option<u32>) -> Option<usize> {
        let Some(nonce) = nonce else {
            // A Nack that returns an Interest without nonce as it was received.
            let fits =
                |expected: &Sent| added_nonce(expected).is_some_and(|added| with_nonce(sent, added) == *expected);
            return self.expected.iter().position(fits);
        };
        let position = self.expected.iter().position(|expected| expected == sent);
        if position.is_some() || self.added.contains_key(&nonce) {
            return position;
        }
        let is_new = |expected: &Sent| {
            added_nonce(expected)
                .filter(|added| !self.added.values().any(|known| known == added))
                .filter(|&added| with_nonce(sent, added) == *expected)
        };
        let candidates = self.expected.iter().enumerate();
        let (added, position) =
            candidates.filter_map(|(position, expected)| Some((is_new(expected)?, position))).min()?;
        self.added.insert(nonce, added);
        Some(position)
    }

    /// Returns a packet of the engine in the model's terms, and its nonce if it is not Data. Only a Nack may have none.
    fn describe(&mut self, packet: &Outgoing) -> Result<(Sent, Option<u32>), TestCaseError> {
        let face = packet.face.0;
        let bytes = packet.buffer.bytes();
        let fields = &packet.fields;
        if packet.kind == PacketKind::Data {
            let data =
                namehop_wire::Data::decode(bytes).map_err(|error| TestCaseError::fail(format!("Data: {error}")))?;
            let sent = Sent::Data {
                face,
                digest: packets::hexadecimal(&data.implicit_digest()),
                token: fields.pit_token.as_slice().to_vec(),
                mark: fields.congestion_mark,
                from: fields.incoming_face_id.map_or(0, |from| from.0),
            };
            return Ok((sent, Some(0)));
        }
        let decoded =
            namehop_wire::Interest::decode(bytes).map_err(|error| TestCaseError::fail(format!("Interest: {error}")))?;
        let is_nack = packet.kind == PacketKind::Nack;
        prop_assert!(is_nack || decoded.nonce.is_some(), "the engine sent an Interest without a nonce");
        let nonce = decoded.nonce.unwrap_or(0);
        let interest = Interest {
            name: owned(decoded.name),
            can_be_prefix: decoded.can_be_prefix,
            must_be_fresh: decoded.must_be_fresh,
            hints: decoded.forwarding_hint.map_or(Vec::new(), |hint| hint.iter().map(owned).collect()),
            lifetime_ms: decoded.lifetime_ms,
            hop_limit: decoded.hop_limit,
        };
        let model_nonce = self.added.get(&nonce).copied().unwrap_or(Nonce::from(nonce));
        let Interest { name, can_be_prefix, must_be_fresh, hop_limit, hints, .. } = interest.clone();
        let sent = if !is_nack {
            self.asked.push(Asked { face, interest, nonce, token: fields.pit_token });
            Sent::Interest {
                face,
                name: packets::uri(&name),
                can_be_prefix,
                must_be_fresh,
                hop_limit,
                hints: hints.iter().map(packets::uri).collect(),
                mark: fields.congestion_mark,
                nonce: model_nonce,
            }
        } else {
            Sent::Nack {
                face,
                name: packets::uri(&name),
                can_be_prefix,
                must_be_fresh,
                token: fields.pit_token.as_slice().to_vec(),
                reason: fields.nack.map_or(u64::MAX, |reason| reason.0),
                mark: fields.congestion_mark,
                nonce: model_nonce,
            }
        };
        Ok((sent, decoded.nonce))
    }
}

fn owned(name: NameRef<'_>) -> Name {
    name.components().map(|component| (component.typ, component.value.to_vec())).collect()
}

fn added_nonce(sent: &Sent) -> Option<Nonce> {
    match sent {
        Sent::Interest { nonce, .. } | Sent::Nack { nonce, .. } => Some(*nonce).filter(|&nonce| nonce >= ADDED_NONCES),
        Sent::Data { .. } => None,
    }
}

fn with_nonce(sent: &Sent, new_nonce: Nonce) -> Sent {
    let mut sent = sent.clone();
    if let Sent::Interest { nonce, .. } | Sent::Nack { nonce, .. } = &mut sent {
        *nonce = new_nonce;
    }
    sent
}

/// Returns whether this is a repetition of the same Data. A peer gets Data once for each PIT token of its Interests,
/// and without a token only if none of them had one. Several engines send it once each.
fn is_repetition(sent: &Sent, answer: &Sent) -> bool {
    let (Sent::Data { face, digest, token, .. }, Sent::Data { face: to, digest: of, token: with, .. }) = (sent, answer)
    else {
        return false;
    };
    (face, digest) == (to, of) && (token.is_empty() || token == with)
}
