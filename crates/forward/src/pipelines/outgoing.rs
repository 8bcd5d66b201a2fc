//! Outgoing pipelines: an Interest to an upstream, Data to downstreams, a Nack to a downstream.

use namehop_wire::lp::NackReason;

use crate::engine::context::{AtHand, Carrier, Context};
use crate::engine::core::Core;
use crate::engine::faces::FaceArray;
use crate::engine::interest_form::Variable;
use crate::pcct::record::InRecord;
use crate::pcct::{Downstream, PitRef, token, told_in_short};
use namehop_packet::{
    DropReason, FaceId, FaceScope, LinkFields, LinkType, Outgoing, PacketBuffer, PacketKind, Timestamp,
};

/// Data on its way downstream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DataSource {
    /// Where it came from; [`FaceId::CONTENT_STORE`] for cached Data.
    pub(crate) face: FaceId,
    /// CongestionMark that it came with.
    pub(crate) congestion_mark: u64,
    /// Is its name under `/localhost`?
    pub(crate) is_localhost: bool,
}

/// What a downstream gets of Data that satisfies its Interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Nothing: it does not wait any more, or the Data came from there.
    None,
    /// Nothing, because `/localhost` never goes to other computers.
    OutOfScope,
    /// The Data.
    Data,
}

impl DataSource {
    /// What the downstream with this record gets: the Data while its Interest is pending, but not on the face that the Data
    /// came from unless that is ad hoc.
    #[inline(always)]
    fn answer_for(&self, record: &InRecord, faces: &FaceArray, now: Timestamp) -> Answer {
        match faces.get(record.face) {
            Some(face) if record.expiry > now && (face.id != self.face || face.link_type == LinkType::AdHoc) => {
                let stays = self.is_localhost && face.scope == FaceScope::NonLocal;
                if stays { Answer::OutOfScope } else { Answer::Data }
            }
            _ => Answer::None,
        }
    }
}

impl Context<'_> {
    /// Sends the pending Interest to `face`. `probe`: with a Nonce of its own. `false` when it was not sent.
    pub(crate) fn forward_interest(&mut self, face: FaceId, probe: bool, non_discovery: bool) -> bool {
        let Some(face) = self.core.faces.get(face) else { return false };

        // The Interest that goes on: the one that has just arrived, or else one that is pending.
        let (mut variable, congestion_mark) = match &self.at_hand {
            AtHand::Interest(interest) => {
                (Variable { nonce: interest.nonce, hop_limit: interest.traveller.hop_limit }, interest.congestion_mark)
            }
            _ => match self.best_pending(&face) {
                Some(record) => {
                    let variable = Variable { nonce: record.nonce, hop_limit: record.hop_limit.onward() };
                    (variable, u64::from(record.congestion_mark))
                }
                None => return false,
            },
        };
        if probe {
            variable.nonce = self.core.random() as u32;
        }

        // HopLimit 0 goes to local faces only.
        if variable.hop_limit == Some(0) && face.scope == FaceScope::NonLocal {
            self.core.count_drop(self.ingress, DropReason::HopLimitExhausted);
            return false;
        }

        // Insert or renew the out-record, if there is room for it and a buffer to send.
        let mut added = self.core.pcct.find_or_add_out_record(self.pit, face.id);
        if added.is_err() && self.core.make_room_for_records(self.now, self.ingress, Some(self.pit)) {
            added = self.core.pcct.find_or_add_out_record(self.pit, face.id);
        }
        let Ok((record, is_new)) = added else {
            self.core.count_drop(self.ingress, DropReason::TooManyUpstreams);
            return false;
        };
        // What the null face gets needs no packet.
        let mut packet = None;
        if face.id != FaceId::NULL {
            packet = self.interest_packet(variable);
            if packet.is_none() {
                self.core.count_drop(self.ingress, DropReason::NoBuffer);
                if is_new {
                    self.core.pcct.remove_out_records(self.pit, |record| record.face == face.id);
                }
                return false;
            }
        }
        let lifetime_ms = self.core.pending_ms(self.core.pcct.slot(self.pit).lifetime_ms);
        let out_record = self.core.pcct.out_record_mut(self.pit, record);
        out_record.nonce = variable.nonce;
        out_record.last_renewed = self.now;
        out_record.lifetime_ms = u32::try_from(lifetime_ms).unwrap_or(u32::MAX);
        out_record.set_nacked(None);

        // All other upstreams may have refused: now there is one more to wait for.
        if matches!(self.at_hand, AtHand::Nothing) && self.core.pcct.slot(self.pit).expiry <= self.now {
            let last = self.core.pcct.in_records(self.pit).map(|record| record.expiry).max();
            self.core.pcct.slot_mut(self.pit).expiry = last.unwrap_or(self.now);
        }

        // Send it, with a token that leads the answer back to this entry.
        let Some(buffer) = packet else { return true };
        let generation = self.core.pcct.entry(self.pit.entry).generation;
        let (worker, entry, ingress) = (self.core.worker, self.pit.entry, self.ingress);
        self.core.transmit(face.id, PacketKind::Interest, buffer, self.out, || LinkFields {
            pit_token: token::encode(worker, entry, generation),
            nack: None,
            congestion_mark,
            incoming_face_id: Some(ingress).filter(|&id| id != FaceId::INVALID),
            next_hop_face_id: None,
            no_cache: false,
            non_discovery,
            announcement: None,
        });
        true
    }

    /// The Interest in a buffer: the arriving one's own for the first upstream, then copies.
    fn interest_packet(&mut self, variable: Variable) -> Option<PacketBuffer> {
        let AtHand::Interest(interest) = &mut self.at_hand else {
            return self.core.rebuilt_interest(self.pit, variable);
        };
        let mut buffer = match interest.carrier.take() {
            Some(Carrier::Held(buffer)) => {
                interest.carrier = Some(Carrier::Sent(self.out.len()));
                buffer
            }
            Some(Carrier::Sent(index)) => {
                interest.carrier = Some(Carrier::Sent(index));
                self.core.pool.copy_of(self.out.get(index)?.buffer.bytes())?
            }
            None => return self.core.rebuilt_interest(self.pit, variable),
        };
        variable.write(buffer.bytes_mut(), interest.nonce_at, interest.hop_limit_at);
        Some(buffer)
    }

    /// Answers the downstreams that `is_meant` says so of with a Nack and removes their in-records. Those whose face is not
    /// point-to-point, or gone, are left alone.
    pub(crate) fn nack_downstreams(&mut self, reason: NackReason, is_meant: impl Fn(FaceId) -> bool) {
        let mut answered = std::mem::take(&mut self.core.answered);
        let faces = &self.core.faces;
        let is_taken = |record: &InRecord| {
            is_meant(record.face) && faces.get(record.face).is_some_and(|face| face.link_type == LinkType::PointToPoint)
        };
        self.core.pcct.take_in_records(self.pit, is_taken, |record, told| answered.push((*record, told)));
        for (record, downstream) in answered.drain(..) {
            self.nack_downstream(&record, &downstream, reason);
        }
        self.core.answered = answered;
    }

    fn nack_downstream(&mut self, record: &InRecord, downstream: &Downstream, reason: NackReason) {
        // The Nack carries the Interest of this very downstream: the packet itself, or what the PIT knows of it.
        let held = match &mut self.at_hand {
            AtHand::Interest(interest) if self.ingress == record.face => interest.take_original(),
            _ => None,
        };
        let variable = Variable { nonce: record.nonce, hop_limit: record.hop_limit.received() };
        let Some(buffer) = held.or_else(|| self.core.rebuilt_interest(self.pit, variable)) else {
            self.core.count_drop(self.ingress, DropReason::NoBuffer);
            return;
        };
        let (ingress, nack_mark) = (self.ingress, self.nack_mark);
        self.core.transmit(record.face, PacketKind::Nack, buffer, self.out, || LinkFields {
            pit_token: downstream.token,
            nack: Some(reason),
            congestion_mark: downstream.congestion_mark.max(nack_mark),
            incoming_face_id: Some(ingress).filter(|&id| id != FaceId::INVALID),
            ..LinkFields::default()
        });
    }
}

impl Core {
    /// Moves the downstreams that Data goes to from their in-records to a list: those whose Interest is still pending, but
    /// not the face that the Data came from unless it is ad hoc. A face is listed once for each token it used. Returns how many
    /// there were that the Data may not go to; those are counted.
    pub(crate) fn take_downstreams(
        &mut self,
        now: Timestamp,
        pit: PitRef,
        source: &DataSource,
        downstreams: &mut Vec<Downstream>,
    ) -> usize {
        let faces = &self.faces;
        let is_taken = |record: &InRecord| source.answer_for(record, faces, now) != Answer::None;
        let mut out_of_scope = 0;
        self.pcct.take_in_records(pit, is_taken, |record, downstream| {
            if source.answer_for(record, faces, now) == Answer::Data {
                downstreams.push(downstream);
            } else {
                out_of_scope += 1;
            }
        });
        for _ in 0..out_of_scope {
            self.count_drop(source.face, DropReason::ScopeViolation);
        }
        out_of_scope
    }

    /// Counts Data that goes to nobody, unless it was counted for another reason.
    #[inline]
    pub(crate) fn count_undelivered(&mut self, source: &DataSource, downstreams: &[Downstream], out_of_scope: usize) {
        if downstreams.is_empty() && out_of_scope == 0 {
            self.count_drop(source.face, DropReason::NoDownstream);
        }
    }

    /// Sends Data to the downstreams of one PIT entry that it goes to, and removes their in-records.
    pub(crate) fn answer_downstreams(
        &mut self,
        now: Timestamp,
        pit: PitRef,
        source: &DataSource,
        buffer: PacketBuffer,
        announcement: Option<&PacketBuffer>,
        out: &mut Vec<Outgoing>,
    ) {
        let mut downstreams = std::mem::take(&mut self.downstreams);
        downstreams.clear();
        let out_of_scope = self.take_downstreams(now, pit, source, &mut downstreams);
        self.count_undelivered(source, &downstreams, out_of_scope);
        self.send_data(buffer, source, &downstreams, announcement, out);
        self.downstreams = downstreams;
    }

    /// The same where the PIT entry ends at once, so that its in-records need not be removed.
    #[inline]
    pub(crate) fn answer_last(
        &mut self,
        now: Timestamp,
        pit: PitRef,
        source: &DataSource,
        buffer: PacketBuffer,
        out: &mut Vec<Outgoing>,
    ) {
        // The usual case is one downstream, whose token is in its record.
        let Some(record) = self.pcct.only_in_record(pit) else {
            return self.answer_downstreams(now, pit, source, buffer, None, out);
        };
        match source.answer_for(record, &self.faces, now) {
            Answer::None => self.count_drop(source.face, DropReason::NoDownstream),
            Answer::OutOfScope => self.count_drop(source.face, DropReason::ScopeViolation),
            Answer::Data => {
                let downstream = told_in_short(record);
                self.send_data_to(buffer, source, &downstream, None, out);
            }
        }
    }

    /// Sends Data to all downstreams, each with its own token. The last one gets the buffer, the others copies.
    pub(crate) fn send_data(
        &mut self,
        buffer: PacketBuffer,
        source: &DataSource,
        downstreams: &[Downstream],
        announcement: Option<&PacketBuffer>,
        out: &mut Vec<Outgoing>,
    ) {
        let Some((last, others)) = downstreams.split_last() else { return };
        for downstream in others {
            match self.pool.copy_of(buffer.bytes()) {
                Some(copy) => self.send_data_to(copy, source, downstream, announcement, out),
                None => self.count_drop(source.face, DropReason::NoBuffer),
            }
        }
        self.send_data_to(buffer, source, last, announcement, out);
    }

    #[inline(always)]
    fn send_data_to(
        &mut self,
        buffer: PacketBuffer,
        source: &DataSource,
        downstream: &Downstream,
        announcement: Option<&PacketBuffer>,
        out: &mut Vec<Outgoing>,
    ) {
        let announcement = announcement.and_then(|announcement| self.pool.copy_of(announcement.bytes()));
        self.transmit(downstream.face, PacketKind::Data, buffer, out, || LinkFields {
            pit_token: downstream.token,
            nack: None,
            // The consumer learns of congestion on either way.
            congestion_mark: source.congestion_mark.max(downstream.congestion_mark),
            incoming_face_id: Some(source.face),
            next_hop_face_id: None,
            no_cache: false,
            non_discovery: false,
            announcement,
        });
    }
}

/// Merges downstreams of several PIT entries so that no face gets the same Data twice, except with different tokens.
pub(super) fn merge(downstreams: &mut Vec<Downstream>) {
    // Sorting takes no more than n log n; the list may be as long as all downstreams of several entries.
    fn order(downstream: &Downstream) -> (u32, bool, &[u8]) {
        (downstream.face.0, downstream.token.is_empty(), downstream.token.as_slice())
    }
    downstreams.sort_unstable_by(|one, other| order(one).cmp(&order(other)));
    downstreams.dedup_by(|new, known| {
        // A peer that sent no token with one of its Interests is content with any answer; sorting put those last.
        let is_same = known.face == new.face && (known.token == new.token || new.token.is_empty());
        if is_same {
            known.congestion_mark = known.congestion_mark.max(new.congestion_mark);
        }
        is_same
    });
}

#[cfg(test)]
mod tests {
    use namehop_wire::lp::PitToken;

    use super::*;

    fn downstream(face: u32, token: &[u8], congestion_mark: u64) -> Downstream {
        let token = PitToken::from_slice(token).expect("short");
        Downstream { face: FaceId(face), token, congestion_mark }
    }

    #[test]
    fn a_face_is_served_once_per_token() {
        let mut list = vec![
            downstream(1, b"", 4),
            downstream(1, b"a", 2),
            downstream(1, b"", 1),
            downstream(3, b"", 0),
            downstream(1, b"b", 0),
            downstream(1, b"a", 3),
            downstream(2, b"a", 0),
        ];
        merge(&mut list);
        let merged = [downstream(1, b"a", 3), downstream(1, b"b", 4), downstream(2, b"a", 0), downstream(3, b"", 0)];
        assert_eq!(list, merged);
    }
}
