//! The Nack processing path: incoming and outgoing Nacks (NFD developer's guide, section 4.4), and Interests that a
//! link failed to deliver.

use namehop_hash::hash_name;
use namehop_packet::{DropReason, FaceId, FaceInfo, Incoming, LinkFields, LinkType, Outgoing, PacketKind, Timestamp};
use namehop_wire::Interest;
use namehop_wire::lp::NackReason;

use super::context::{AtHand, Context, InterestAtHand};
use crate::engine::Engine;
use crate::pcct::entry::Selectors;
use crate::pcct::record::InRecord;
use crate::pcct::{Downstream, PitRef};
use crate::state::ForwardingState;
use crate::state::interest_form::{Variable, rebuilt};
use crate::strategy::Trigger;
use crate::trace::{TraceStep, TraceSubject};

impl Engine {
    /// Incoming Nack pipeline. The error is the reason why the Nack was dropped.
    pub(crate) fn incoming_nack(
        &mut self,
        now: Timestamp,
        packet: Incoming,
        reason: NackReason,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        let state = &mut self.state;
        state.emitter.counters.in_nacks += 1;
        let sent = Interest::decode(packet.buffer.bytes());
        match &sent {
            Ok(sent) => {
                state.emitter.trace_if_on(now, TraceSubject::Nack, packet.face, sent.name, || TraceStep::Nack(reason));
            }
            Err(_) => state.emitter.end_trace_if_on(),
        }
        let ingress = state.faces.get(packet.face).ok_or(DropReason::UnknownFace)?;

        // Only the single peer of a point-to-point link can speak for the link.
        if ingress.link_type != LinkType::PointToPoint {
            return Err(DropReason::NackNotPointToPoint);
        }

        // The PIT entry must have sent exactly this Interest, by its nonce, to exactly this face.
        let interest = sent.map_err(|_| DropReason::Malformed)?;
        let by_token = state.pcct.entry_by_token(&packet.fields.pit_token);
        match by_token {
            Some(_) => state.limits.check_length(interest.name)?,
            None => state.limits.admit_name(ingress.id, interest.name)?,
        }
        let Some(pit) = state.find_sent(&interest, by_token, ingress.id) else {
            if !state.other_workers.is_misdirected(&packet) {
                return Err(DropReason::UnmatchedNack);
            }
            state.emitter.counters.in_nacks -= 1;
            state.emitter.note(|| TraceStep::OtherWorker);
            state.other_workers.put_aside(packet);
            return Ok(());
        };

        state.forget_removed_faces(pit);

        // A duplicate concerns one Nonce. The Interest of another downstream has another one, which this upstream has
        // not seen.
        if reason == NackReason::DUPLICATE && self.send_other_nonce(now, pit, &ingress, out) {
            return Ok(());
        }

        // Store the Nack in the out-record. If every upstream has returned a Nack, the PIT entry ends, unless the
        // strategy finds another one. Upstreams with a removed face do not count.
        let state = &mut self.state;
        if let Some(record) = state.pcct.pit.find_out_record(pit, ingress.id) {
            state.pcct.pit.out_record_mut(pit, record).set_nacked(Some(reason));
        }
        if state.pcct.pit.out_records(pit).all(|record| record.nacked().is_some()) {
            state.pcct.pit.slot_mut(pit).expiry = now;
        }

        // The strategy decides whether downstreams get a Nack.
        let mut context = self.pending_context(now, pit, out);
        context.ingress = ingress.id;
        context.nack_mark = packet.fields.congestion_mark;
        context.dispatch(Trigger::AfterReceiveNack(reason));
        context.settle();
        Ok(())
    }

    /// Sends the Interest of another downstream to `upstream`, with a nonce that it has not seen, in place of the one
    /// it refused as a duplicate. Returns `false` if there is none. The refused nonce goes to the Dead Nonce List, so
    /// that no nonce is sent twice.
    fn send_other_nonce(&mut self, now: Timestamp, pit: PitRef, upstream: &FaceInfo, out: &mut Vec<Outgoing>) -> bool {
        let state = &self.state;
        let refused =
            state.pcct.pit.out_records(pit).find(|record| record.face == upstream.id).map(|record| record.nonce);
        let name_hash = state.pcct.names.entry(pit.entry).name_hash;
        let may_be_sent = |record: &&InRecord| {
            Some(record.nonce) != refused && !state.dead_nonces.contains(name_hash, record.nonce, now)
        };
        let record = state.pending_for(now, pit, upstream).find(may_be_sent);
        let (Some(refused), Some(record)) = (refused, record) else { return false };
        let record = *record;
        let mut at_hand = InterestAtHand::pending(&record, state.pending_limits(pit, &record));
        let mut context = self.pending_context(now, pit, out);
        context.at_hand = AtHand::Interest(&mut at_hand);
        let is_sent = upstream.is_up && context.outgoing_interest(upstream.id, false, false);
        if is_sent {
            context.settle();
            self.state.dead_nonces.insert(name_hash, refused, now);
        }
        is_sent
    }

    /// Handles an Interest that the link failed to deliver: if it is still pending, its strategy may try another next
    /// hop. `interest` is the packet as it was sent.
    pub fn dropped_interest(&mut self, now: Timestamp, face: FaceId, interest: &[u8], out: &mut Vec<Outgoing>) {
        let Ok(interest) = Interest::decode(interest) else { return };
        if let Some(pit) = self.state.find_sent(&interest, None, face) {
            self.state.forget_removed_faces(pit);
            self.pending_context(now, pit, out).dispatch_alone(Trigger::OnDroppedInterest(face));
        }
    }
}

impl Context<'_> {
    /// Outgoing Nack pipeline: sends a Nack to the downstreams for which `is_chosen` returns `true`, and removes their
    /// in-records. Downstreams with a removed face, or one that is not point-to-point, are skipped (NDNLPv2, "Network
    /// Nack").
    pub(crate) fn outgoing_nacks(&mut self, reason: NackReason, is_chosen: impl Fn(FaceId) -> bool) {
        let mut answered = std::mem::take(&mut self.state.scratch.answered);
        let faces = &self.state.faces;
        let is_taken = |record: &InRecord| {
            is_chosen(record.face)
                && faces.get(record.face).is_some_and(|face| face.link_type == LinkType::PointToPoint)
        };
        self.state
            .pcct
            .pit
            .take_in_records(self.pit, is_taken, |record, downstream| answered.push((*record, downstream)));
        for (record, downstream) in answered.drain(..) {
            self.outgoing_nack(&record, &downstream, reason);
        }
        self.state.scratch.answered = answered;
    }

    fn outgoing_nack(&mut self, record: &InRecord, downstream: &Downstream, reason: NackReason) {
        // The Nack carries the Interest of this very downstream: the packet itself, or one rebuilt from the PIT.
        let held = match &mut self.at_hand {
            AtHand::Interest(interest) if self.ingress == record.face => interest.take_original(),
            _ => None,
        };
        let variable = Variable { nonce: record.nonce, hop_limit: record.hop_limit.received() };
        let Some(buffer) = held.or_else(|| rebuilt(self.state.emitter.pool(), &self.state.pcct, self.pit, variable))
        else {
            self.state.emitter.count_drop(self.ingress, DropReason::NoBuffer);
            return;
        };
        let (ingress, nack_mark) = (self.ingress, self.nack_mark);
        self.state.emitter.transmit(record.face, PacketKind::Nack, buffer, self.out, || LinkFields {
            pit_token: downstream.token,
            nack: Some(reason),
            congestion_mark: downstream.congestion_mark.max(nack_mark),
            incoming_face_id: Some(ingress).filter(|&id| id != FaceId::INVALID),
            ..LinkFields::default()
        });
    }
}

impl ForwardingState {
    /// Returns the PIT slot that sent this Interest to `face`. `known` is an entry that may be the right one.
    fn find_sent(&self, interest: &Interest<'_>, known: Option<u32>, face: FaceId) -> Option<PitRef> {
        let name = interest.name.value();
        let selectors = Selectors { can_be_prefix: interest.can_be_prefix, must_be_fresh: interest.must_be_fresh };
        let known = known.filter(|&entry| self.pcct.names.name(entry) == name);
        let first = known.or_else(|| self.pcct.names.find_name(hash_name(&self.key, name), name))?;
        let mut slots =
            self.pcct.names.variants(first).filter_map(|entry| self.pcct.pit.find(&self.pcct.names, entry, selectors));
        slots.find(|&pit| {
            let mut records = self.pcct.pit.out_records(pit);
            records.any(|record| record.face == face && Some(record.nonce) == interest.nonce)
        })
    }
}
