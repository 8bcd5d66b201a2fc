//! Outgoing Interest pipeline.

use namehop_packet::{DropReason, FaceId, FaceInfo, FaceScope, LinkFields, PacketBuffer, PacketKind, Stamp};

use super::context::{AtHand, Carrier, Context};
use crate::pcct::record::InRecord;
use crate::state::ForwardingState;
use crate::state::interest_form::{Variable, rebuilt};

impl Context<'_> {
    /// Outgoing Interest pipeline (NFD developer's guide, section 4.2.5): sends the pending Interest to `face`; a
    /// `probe` gets a new Nonce. Returns `false` if it was not sent.
    pub(crate) fn outgoing_interest(&mut self, face: FaceId, probe: bool, non_discovery: bool) -> bool {
        let Some(face) = self.state.faces.get(face) else { return false };
        let Some((variable, congestion_mark)) = self.interest_to_send(&face, probe) else { return false };

        // Packet format specification, "HopLimit": an Interest with 0 goes to local faces only.
        if variable.hop_limit == Some(0) && face.scope == FaceScope::NonLocal {
            self.state.emitter.count_drop(self.ingress, DropReason::HopLimitExhausted);
            return false;
        }

        // Insert or renew the out-record, if there is room for it and a buffer to send. The null face needs no packet.
        let Some((record, is_new)) = self.find_or_add_out_record(face.id) else { return false };
        let mut packet = None;
        if face.id != FaceId::NULL {
            packet = self.interest_packet(variable);
            if packet.is_none() {
                self.state.emitter.count_drop(self.ingress, DropReason::NoBuffer);
                if is_new {
                    self.state.pcct.pit.remove_out_records(self.pit, |record| record.face == face.id);
                }
                return false;
            }
        }
        self.renew_out_record(record, face.id, variable.nonce);

        let Some(buffer) = packet else { return true };
        self.send_with_token(face.id, buffer, congestion_mark, non_discovery);
        true
    }

    /// Returns the fields and the CongestionMark of the Interest to send to `face`: the one that has just arrived, or
    /// else a pending one. Returns `None` if there is none.
    #[inline(always)]
    fn interest_to_send(&mut self, face: &FaceInfo, probe: bool) -> Option<(Variable, u64)> {
        let (mut variable, congestion_mark) = match &self.at_hand {
            AtHand::Interest(interest) => {
                (Variable { nonce: interest.nonce, hop_limit: interest.limits.hop_limit }, interest.congestion_mark)
            }
            _ => {
                let record = self.best_pending(face)?;
                let variable = Variable { nonce: self.pending_nonce(&record), hop_limit: record.hop_limit.onward() };
                (variable, u64::from(record.congestion_mark))
            }
        };
        if probe {
            variable.nonce = self.state.random() as u32;
        }
        Some((variable, congestion_mark))
    }

    /// Returns the index of the face's out-record, which is added if necessary, and whether it is new. Returns `None`
    /// if there is no room for it.
    #[inline(always)]
    fn find_or_add_out_record(&mut self, face: FaceId) -> Option<(usize, bool)> {
        let mut added = self.state.pcct.pit.find_or_add_out_record(self.pit, face);
        if added.is_err() && self.state.make_room_for_records(self.now, self.ingress, Some(self.pit)) {
            added = self.state.pcct.pit.find_or_add_out_record(self.pit, face);
        }
        if added.is_err() {
            self.state.emitter.count_drop(self.ingress, DropReason::TooManyUpstreams);
        }
        added.ok()
    }

    /// Renews an out-record for an Interest that is sent now.
    #[inline(always)]
    fn renew_out_record(&mut self, record: usize, face: FaceId, nonce: u32) {
        let ForwardingState { pcct, limits, faces, timers, .. } = &mut *self.state;
        let lifetime_ms = limits.pending_ms(pcct.pit.slot(self.pit).lifetime_ms);
        let out_record = pcct.pit.out_record_mut(self.pit, record);
        out_record.nonce = nonce;
        out_record.last_renewed = self.now;
        out_record.lifetime_ms = u32::try_from(lifetime_ms).unwrap_or(u32::MAX);
        out_record.set_nacked(None);

        faces.note_sent_to(face);

        // An aggregated Interest may live longer than the one sent now: see `retry`.
        let ends = out_record.expiry();
        if ends < pcct.pit.slot(self.pit).expiry {
            timers.watch_upstreams(&mut pcct.pit, self.pit, ends);
        }

        // If all other upstreams returned a Nack, the entry now waits for this one.
        if matches!(self.at_hand, AtHand::Nothing) && pcct.pit.slot(self.pit).expiry <= self.now {
            let last = pcct.pit.in_records(self.pit).map(|record| record.expiry).max();
            pcct.pit.slot_mut(self.pit).expiry = last.unwrap_or(self.now);
        }
    }

    /// Sends the Interest with a PIT token that leads the answer back to this entry (NDNLPv2, "PIT token").
    #[inline(always)]
    fn send_with_token(&mut self, face: FaceId, buffer: PacketBuffer, congestion_mark: u64, non_discovery: bool) {
        let (pit_token, ingress) = (self.state.pcct.token(self.pit), self.ingress);
        // One time is measured for each received packet: that of the first upstream.
        let stamp = match &mut self.at_hand {
            AtHand::Interest(interest) => std::mem::take(&mut interest.stamp),
            _ => Stamp::NONE,
        };
        self.state.emitter.transmit(face, PacketKind::Interest, buffer, self.out, || LinkFields {
            pit_token,
            nack: None,
            congestion_mark,
            incoming_face_id: Some(ingress).filter(|&id| id != FaceId::INVALID),
            next_hop_face_id: None,
            no_cache: false,
            non_discovery,
            announcement: None,
            stamp,
        });
    }

    /// Returns the nonce for the Interest of an in-record. A retry needs a nonce that was not sent yet: if two
    /// upstreams meet further up, a second Interest with the same one would be taken for a loop.
    fn pending_nonce(&mut self, record: &InRecord) -> u32 {
        let is_sent = || self.state.pcct.pit.out_records(self.pit).any(|sent| sent.nonce == record.nonce);
        match matches!(self.at_hand, AtHand::Retry) && is_sent() {
            true => self.state.random() as u32,
            false => record.nonce,
        }
    }

    /// Returns the Interest in a buffer: the received one for the first upstream, then copies.
    fn interest_packet(&mut self, variable: Variable) -> Option<PacketBuffer> {
        let AtHand::Interest(interest) = &mut self.at_hand else {
            return rebuilt(self.state.emitter.pool(), &self.state.pcct, self.pit, variable);
        };
        let mut buffer = match interest.carrier.take() {
            Some(Carrier::Held(buffer)) => {
                interest.carrier = Some(Carrier::Sent(self.out.len()));
                buffer
            }
            Some(Carrier::Sent(index)) => {
                interest.carrier = Some(Carrier::Sent(index));
                self.state.emitter.copy_of(self.out.get(index)?.buffer.bytes())?
            }
            None => return rebuilt(self.state.emitter.pool(), &self.state.pcct, self.pit, variable),
        };
        variable.write(buffer.bytes_mut(), interest.nonce_at, interest.hop_limit_at);
        Some(buffer)
    }
}
