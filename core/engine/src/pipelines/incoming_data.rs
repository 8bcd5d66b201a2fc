//! The Data processing path up to the downstreams: incoming Data, Data unsolicited (NFD developer's guide, section
//! 4.3).

use arrayvec::ArrayVec;
use std::cell::Cell;

use namehop_hash::hash_name;
use namehop_packet::{
    DropReason, FaceId, FaceInfo, FaceScope, Incoming, LinkFields, Outgoing, PacketBuffer, Timestamp,
};
use namehop_wire::MAX_PACKET_SIZE;
use namehop_wire::data::implicit_digest;
use namehop_wire::tlv::types;

use super::content_store::Admission;
use super::context::{AtHand, Context, DataAtHand};
use crate::burst::Prepared;
use crate::engine::Engine;
use crate::pcct::PitRef;
use crate::pcct::content::DIGEST_BYTES;
use crate::scope::NameScope;
use crate::state::ForwardingState;
use crate::state::emitter::DataSource;
use crate::state::route::Route;
use crate::strategy::Trigger;
use crate::trace::{TraceStep, TraceSubject};

/// Maximum length of a name followed by an implicit digest: TYPE, LENGTH and the digest.
const FULL_NAME_BYTES: usize = MAX_PACKET_SIZE + 2 + DIGEST_BYTES;

impl Engine {
    /// Incoming Data pipeline (guide, section 4.3.1). The error is the reason why the Data was dropped.
    pub(crate) fn incoming_data(
        &mut self,
        now: Timestamp,
        packet: Incoming,
        prepared: Prepared<'_>,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        let Engine { fib, state, hashes: pending_hashes, delegation_hashes, .. } = self;
        state.emitter.counters.in_data += 1;
        let layout = &prepared.parsed.data;
        let name_ref = layout.name.of_packet(packet.buffer.bytes());
        let name = name_ref.value();
        state.emitter.trace_if_on(now, TraceSubject::Data, packet.face, name_ref, || TraceStep::Data {
            freshness_ms: layout.freshness_ms,
            no_cache: packet.fields.no_cache,
        });
        let Some(ingress) = state.faces.get(packet.face) else { return Err(DropReason::UnknownFace) };

        // Guide, section 4.3.1: `/localhost` is for processes on this host.
        let is_localhost = NameScope::of(name) == NameScope::Localhost;
        if ingress.scope == FaceScope::NonLocal && is_localhost {
            return Err(DropReason::ScopeViolation);
        }

        // NDNLPv2, "PIT token": if it leads to an entry with this name, the exact name need not be looked up, and in
        // the usual case nothing else either.
        let by_token = state.pcct.entry_by_token(&packet.fields.pit_token);
        let known = by_token.filter(|&entry| state.pcct.name(entry) == name);
        // The name of a known entry was admitted with its Interest.
        if known.is_none() {
            state.limits.admit_name(ingress.id, name_ref)?;
            if state.other_workers.is_misdirected(&packet) {
                state.emitter.counters.in_data -= 1;
                state.emitter.note(|| TraceStep::OtherWorker);
                state.other_workers.put_aside(packet);
                return Ok(());
            }
        }
        let hashes = match known {
            Some(_) if !state.pcct.asks_for_prefixes(now) => None,
            _ => Some(prepared.into_hashes(&state.key, name_ref)?),
        };

        // Packet format specification, "Interest matching": all Interests that this Data satisfies. The digest is
        // computed only if a pending Interest requests this name by digest.
        let mut matches = std::mem::take(&mut state.scratch.matches);
        matches.clear();
        let exact = state.pcct.find_satisfied(name, hashes, known, &mut matches);
        let mut digest = None;
        if hashes.is_some_and(|hashes| state.pcct.asks_for_digest(hashes)) {
            state.emitter.counters.digests += 1;
            digest = Some(state.match_full_name(packet.buffer.bytes(), name, &mut matches));
        }
        let freshness_ms = layout.freshness_ms;
        let digest = digest.as_ref();
        let admission =
            Admission { packet: packet.buffer.bytes(), name, freshness_ms, hashes, digest, is_from_tier: false };

        // Data from a non-local face satisfies only Interests that were sent to that face.
        let mut unsolicited = DropReason::UnsolicitedData;
        if state.rules.requires_out_record(&ingress) && !matches.is_empty() {
            unsolicited = DropReason::UnaskedData;
            state.keep_asked(&mut matches, ingress.id);
        }

        state.emitter.note(|| TraceStep::Satisfies { entries: matches.len(), by_token: known.is_some() });
        if matches.is_empty() {
            state.scratch.matches = matches;
            state.data_unsolicited(now, &ingress, (&admission, exact), packet.fields.no_cache);
            return Err(unsolicited);
        }

        // A request by prefix or digest is recorded for the policy now that the Data's name is known. A request by that
        // name was recorded with the Interest.
        if let Some(hashes) = hashes
            && !state.pcct.ask_by_name(&matches)
        {
            state.pcct.note_request(hashes.full());
        }

        // Content Store insert, unless the producer forbids it (NDNLPv2, "Local cache policy").
        if !packet.fields.no_cache {
            let partition = state.partition_of(&matches, by_token, ingress.id);
            state.admit(now, &admission, Some(partition), exact);
        }

        // Satisfy the PIT entries.
        let arrival = Satisfying { now, freshness_ms, ingress: ingress.id };
        let LinkFields { congestion_mark, stamp, .. } = packet.fields;
        let source = DataSource { face: ingress.id, congestion_mark, stamp, is_localhost };
        let route_of = |state: &ForwardingState, pit| {
            Route::of_pending(fib, &state.key, &state.pcct, pit, pending_hashes, delegation_hashes)
        };
        match matches[..] {
            // The usual case: no strategy has to be notified.
            [only] if state.has_default_data_strategy(only) => {
                state.satisfy_by_default(&arrival, only, &source, packet.buffer, out)
            }
            _ => {
                let announcement = packet.fields.announcement;
                let buffer = Some(packet.buffer);
                let mut data = DataAtHand { source, buffer, announcement, pass_announcement: false };
                state.satisfy(&arrival, &matches, route_of, &mut data, out);
            }
        }
        state.scratch.matches = matches;
        Ok(())
    }
}

/// The facts about Data that its PIT entries need.
struct Satisfying {
    now: Timestamp,
    freshness_ms: u64,
    ingress: FaceId,
}

impl ForwardingState {
    /// Data unsolicited pipeline (guide, section 4.3.2): such Data is never forwarded, and is cached only if the policy
    /// admits it and the producer does not forbid it. `exact` is any entry with its name.
    #[cold]
    fn data_unsolicited(
        &mut self,
        now: Timestamp,
        ingress: &FaceInfo,
        (admission, exact): (&Admission<'_>, Option<u32>),
        no_cache: bool,
    ) {
        if self.rules.admits_unsolicited(ingress) && !no_cache {
            self.admit(now, admission, None, exact);
        }
    }

    /// Collects the PIT slots that request this very Data by its name and implicit digest. Returns the digest.
    // A separate function, because the full name takes much room on the stack.
    #[cold]
    #[inline(never)]
    fn match_full_name(&self, packet: &[u8], name: &[u8], matches: &mut Vec<PitRef>) -> [u8; DIGEST_BYTES] {
        let digest = implicit_digest(packet);
        let component_header = [types::IMPLICIT_SHA256_DIGEST_COMPONENT as u8, DIGEST_BYTES as u8];
        let full: ArrayVec<u8, FULL_NAME_BYTES> =
            name.iter().chain(&component_header).chain(&digest).copied().collect();
        self.pcct.collect_slots(hash_name(&self.key, &full), &full, matches);
        digest
    }

    /// Removes the PIT slots that were not sent to this face.
    #[inline(always)]
    fn keep_asked(&self, matches: &mut Vec<PitRef>, face: FaceId) {
        match matches[..] {
            [only] if self.pcct.was_sent_to(only, face) => {}
            _ => self.remove_not_asked(matches, face),
        }
    }

    #[cold]
    #[inline(never)]
    fn remove_not_asked(&self, matches: &mut Vec<PitRef>, face: FaceId) {
        matches.retain(|&pit| self.pcct.was_sent_to(pit, face));
    }

    /// Returns the entry that determines the hint under which the Data is cached: the entry of its token, or else one
    /// that was sent to this face. So no peer can place Data where other consumers look for answers through another
    /// hint.
    #[inline(always)]
    fn partition_of(&self, matches: &[PitRef], by_token: Option<u32>, ingress: FaceId) -> u32 {
        match matches {
            // The usual case.
            [only] => only.entry,
            _ => self.partition_of_several(matches, by_token, ingress),
        }
    }

    #[cold]
    #[inline(never)]
    fn partition_of_several(&self, matches: &[PitRef], by_token: Option<u32>, ingress: FaceId) -> u32 {
        let asked = |pit: &&PitRef| self.pcct.was_sent_to(**pit, ingress);
        let by_token = matches.iter().find(|pit| Some(pit.entry) == by_token);
        by_token.or_else(|| matches.iter().find(asked)).unwrap_or(&matches[0]).entry
    }

    /// Returns whether the strategy of this PIT entry handles Data in the default way, so that it need not be looked
    /// up.
    fn has_default_data_strategy(&self, pit: PitRef) -> bool {
        let slot = self.pcct.slot(pit);
        // A PIT entry from before the last change of strategies does not reflect its current strategy.
        !slot.is_measured() && self.strategies.covers(slot.serial)
    }

    /// One match, and no strategy to notify: sends the Data to the downstreams.
    fn satisfy_by_default(
        &mut self,
        arrival: &Satisfying,
        pit: PitRef,
        source: &DataSource,
        buffer: PacketBuffer,
        out: &mut Vec<Outgoing>,
    ) {
        self.answer_and_forget(arrival.now, pit, source, buffer, out);
        // Does what `mark_satisfied` and `end_slot` do, in one step.
        self.emitter.counters.satisfied_interests += 1;
        if self.has_to_keep_nonces(arrival, pit) {
            self.dead_nonces.insert_all_sent(&self.pcct, pit, arrival.now);
        }
        self.pcct.close_slot(pit);
    }

    /// Notifies the strategies of all matches.
    fn satisfy<'a>(
        &mut self,
        arrival: &Satisfying,
        matches: &[PitRef],
        mut route_of: impl FnMut(&ForwardingState, PitRef) -> Route<'a>,
        data: &mut DataAtHand,
        out: &mut Vec<Outgoing>,
    ) {
        if let [only] = *matches {
            let route = route_of(self, only);
            self.satisfy_one(arrival, only, route, data, out);
        } else {
            self.satisfy_several(arrival, matches, route_of, data, out);
        }
    }

    /// One match: the strategy forwards the Data.
    fn satisfy_one(
        &mut self,
        arrival: &Satisfying,
        pit: PitRef,
        route: Route<'_>,
        data: &mut DataAtHand,
        out: &mut Vec<Outgoing>,
    ) {
        let Satisfying { now, ingress, .. } = *arrival;
        // The PIT entry ends now, unless the strategy prolongs it to measure late answers.
        self.pcct.slot_mut(pit).expiry = now;
        let at_hand = AtHand::Data(data);
        let mut context =
            Context { state: self, out, route, now, pit, ingress, nack_mark: 0, at_hand, has_barred: Cell::new(false) };
        context.dispatch(Trigger::AfterReceiveData);
        context.state.mark_satisfied(arrival, pit);
        context.settle();
    }

    /// Several matches: the strategies only measure; the Data is sent once to every downstream face.
    fn satisfy_several<'a>(
        &mut self,
        arrival: &Satisfying,
        matches: &[PitRef],
        mut route_of: impl FnMut(&ForwardingState, PitRef) -> Route<'a>,
        data: &mut DataAtHand,
        out: &mut Vec<Outgoing>,
    ) {
        let Satisfying { now, ingress, .. } = *arrival;
        let mut downstreams = std::mem::take(&mut self.scratch.downstreams);
        downstreams.clear();
        let mut out_of_scope = 0;
        for &pit in matches {
            let (route, source) = (route_of(self, pit), data.source);
            self.pcct.slot_mut(pit).expiry = now;
            let at_hand = AtHand::Data(data);
            let mut context = Context {
                state: self,
                out,
                route,
                now,
                pit,
                ingress,
                nack_mark: 0,
                at_hand,
                has_barred: Cell::new(false),
            };
            context.dispatch(Trigger::BeforeSatisfyInterest);
            out_of_scope += context.state.take_downstreams(now, pit, &source, &mut downstreams);
            context.state.mark_satisfied(arrival, pit);
            context.settle();
        }
        self.count_undelivered(&data.source, &downstreams, out_of_scope);
        if let Some(buffer) = data.buffer.take() {
            super::outgoing_data::merge(&mut downstreams);
            let announcement = data.announcement.as_ref().filter(|_| data.pass_announcement);
            self.emitter.send_data(buffer, &data.source, &downstreams, announcement, out);
        }
        self.scratch.downstreams = downstreams;
    }

    /// Returns whether the nonces must be kept: an Interest may still be looping, and only fresh cached Data would stop
    /// one with MustBeFresh.
    fn has_to_keep_nonces(&self, arrival: &Satisfying, pit: PitRef) -> bool {
        self.pcct.slot(pit).selectors().must_be_fresh && self.dead_nonces.outlast(arrival.freshness_ms)
    }

    /// Marks a PIT entry as satisfied and removes its downstreams. If its strategy prolongs it, the next Interest finds
    /// it without downstreams and looks in the Content Store. The out-record of the upstream that sent the Data is
    /// removed too.
    fn mark_satisfied(&mut self, arrival: &Satisfying, pit: PitRef) {
        let keep_nonces = self.has_to_keep_nonces(arrival, pit);
        self.pcct.slot_mut(pit).set_satisfied(keep_nonces);
        self.pcct.remove_in_records(pit, |_| true);
        let answered = self.pcct.out_records(pit).find(|record| record.face == arrival.ingress);
        if let Some(nonce) = answered.map(|record| record.nonce).filter(|_| keep_nonces) {
            self.dead_nonces.insert(self.pcct.entry(pit.entry).name_hash, nonce, arrival.now);
        }
        self.pcct.remove_out_records(pit, |record| record.face == arrival.ingress);
    }
}
