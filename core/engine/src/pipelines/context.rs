//! [`StrategyContext`], implemented over the tables of an engine.
//!
//! A context serves one PIT slot during one trigger. It holds the packet that caused the trigger: for an arriving
//! Interest the buffer itself, so that the first upstream gets it without a copy; for arriving Data the buffer and its
//! announcement.

use std::cell::Cell;

use namehop_packet::{FaceId, FaceInfo, FaceScope, Outgoing, PacketBuffer, Stamp, Timestamp};
use namehop_wire::NameRef;
use namehop_wire::lp::NackReason;

use crate::pcct::PitRef;
use crate::pcct::record::{InRecord, UpstreamRecord};
use crate::scope::{InterestLimits, NameScope};
use crate::state::ForwardingState;
use crate::state::emitter::DataSource;
use crate::state::events::EngineEvent;
use crate::state::route::Route;
use crate::strategy::upstreams::{answer_no_route, cheapest_eligible};
use crate::strategy::{self, Measurements, OutRecord, OutScratch, PitScratch, StrategyContext, Trigger};
use crate::trace::TraceStep;

/// Where the bytes of the arriving Interest are.
#[derive(Debug)]
pub(crate) enum Carrier {
    /// In its own buffer, as received.
    Held(PacketBuffer),
    /// In the outgoing packet with this index, with that packet's Nonce and HopLimit.
    Sent(usize),
}

/// An Interest that has just arrived.
#[derive(Debug)]
pub(crate) struct InterestAtHand {
    /// `None` if the Interest was consumed without being sent.
    pub(crate) carrier: Option<Carrier>,
    /// The packet as received, if the one in `carrier` is a modified copy.
    pub(crate) original: Option<PacketBuffer>,
    /// Offset in the packet; 0 if the field is absent.
    pub(crate) nonce_at: u16,
    pub(crate) hop_limit_at: u16,
    pub(crate) nonce: u32,
    pub(crate) limits: InterestLimits,
    pub(crate) congestion_mark: u64,
    /// The time of reception, if it is measured and was not yet passed on to an outgoing packet.
    pub(crate) stamp: Stamp,
}

impl InterestAtHand {
    /// The Interest of an in-record, which has to be rebuilt to be sent.
    pub(crate) fn pending(record: &InRecord, limits: InterestLimits) -> Self {
        InterestAtHand {
            carrier: None,
            original: None,
            nonce_at: 0,
            hop_limit_at: 0,
            nonce: record.nonce,
            limits,
            congestion_mark: u64::from(record.congestion_mark),
            stamp: Stamp::NONE,
        }
    }

    /// Returns the packet as received, unless its buffer was already sent.
    pub(crate) fn take_original(&mut self) -> Option<PacketBuffer> {
        if self.original.is_some() {
            return self.original.take();
        }
        match self.carrier.take() {
            Some(Carrier::Held(buffer)) => Some(buffer),
            other => {
                self.carrier = other;
                None
            }
        }
    }
}

/// Data that has just arrived.
#[derive(Debug)]
pub(crate) struct DataAtHand {
    /// `None` after the Data was sent.
    pub(crate) buffer: Option<PacketBuffer>,
    pub(crate) source: DataSource,
    /// The prefix announcement that is attached to the Data.
    pub(crate) announcement: Option<PacketBuffer>,
    /// Whether the announcement is forwarded downstream.
    pub(crate) pass_announcement: bool,
}

/// The packet that triggered the strategy call.
pub(crate) enum AtHand<'a> {
    /// Neither an Interest nor Data: a timer, a new next hop, or a Nack.
    Nothing,
    /// Neither an Interest nor Data: a pending Interest is retried.
    Retry,
    /// An Interest.
    Interest(&'a mut InterestAtHand),
    /// Data.
    Data(&'a mut DataAtHand),
}

/// One PIT slot during one trigger.
pub(crate) struct Context<'a> {
    pub(crate) state: &'a mut ForwardingState,
    pub(crate) out: &'a mut Vec<Outgoing>,
    pub(crate) route: Route<'a>,
    pub(crate) now: Timestamp,
    pub(crate) pit: PitRef,
    /// Face of the packet at hand; [`FaceId::INVALID`] without a packet.
    pub(crate) ingress: FaceId,
    /// CongestionMark of an arriving Nack.
    pub(crate) nack_mark: u64,
    pub(crate) at_hand: AtHand<'a>,
    /// Whether a next hop was ineligible because its link is down, or because it returned a Nack for an Interest that
    /// is retried.
    pub(crate) has_barred: Cell<bool>,
}

impl<'a> Context<'a> {
    /// Calls the strategy. If the strategy sends nothing because all next hops are down, the downstreams get a Nack
    /// NoRoute.
    pub(crate) fn dispatch(&mut self, trigger: Trigger) {
        self.state.emitter.note(|| TraceStep::Asked(trigger));
        match self.route.nexthops {
            // Management Interests reach the router under any strategy, so that a strategy choice cannot lock the
            // operator out.
            [FaceId::INTERNAL] => strategy::dispatch_to_router(trigger, self),
            _ => strategy::dispatch(self.route.strategy, trigger, self),
        }
        if self.has_barred.get() {
            self.answer_if_all_are_barred();
        }
    }

    #[cold]
    fn answer_if_all_are_barred(&mut self) {
        let slot = self.state.pcct.pit.slot(self.pit);
        let is_handled = slot.is_satisfied() || slot.expiry <= self.now || slot.has_strategy_timer();
        let (pcct, now) = (&self.state.pcct, self.now);
        if !is_handled
            && !pcct.pit.out_records(self.pit).any(|record| record.is_pending(now))
            && cheapest_eligible(self).is_none()
        {
            answer_no_route(self);
        }
    }

    /// Calls the strategy for a pending Interest without an arriving packet, and settles the PIT entry. Steps taken
    /// here get a trace of their own.
    pub(crate) fn dispatch_alone(&mut self, trigger: Trigger) {
        let is_traced = self.state.emitter.is_tracing() && self.trace_pending();
        self.dispatch(trigger);
        self.settle();
        if is_traced {
            self.state.emitter.end_pending_trace();
        }
    }

    /// Without an arriving Interest: returns the pending one that may be sent to `face` and has the largest HopLimit.
    pub(crate) fn best_pending(&self, face: &FaceInfo) -> Option<InRecord> {
        self.state
            .pending_for(self.now, self.pit, face)
            .max_by_key(|record| record.hop_limit.onward().map_or(u32::from(u8::MAX) + 1, u32::from))
            .copied()
    }

    /// Without an arriving Interest: returns whether a pending one may be sent to `face`.
    #[cold]
    fn has_pending_for(&self, face: &FaceInfo) -> bool {
        self.best_pending(face).is_some()
    }

    /// Returns whether `face` returned a Nack, or went down, for an Interest that is retried.
    fn is_barred_by_nack(&self, face: FaceId) -> bool {
        let mut records = self.state.pcct.pit.out_records(self.pit);
        let is_barred = matches!(self.at_hand, AtHand::Retry)
            && records.any(|record| record.face == face && record.nacked().is_some());
        if is_barred {
            self.has_barred.set(true);
        }
        is_barred
    }

    #[cold]
    fn trace_pending(&mut self) -> bool {
        let pcct = &self.state.pcct;
        self.state.emitter.trace_pending(self.now, pcct.names.name(self.pit.entry), pcct.pit.in_count(self.pit))
    }

    fn out_index(&self, face: FaceId) -> Option<usize> {
        self.state.pcct.pit.find_out_record(self.pit, face)
    }
}

impl ForwardingState {
    /// Returns the limits on where the Interest of an in-record may be sent.
    pub(crate) fn pending_limits(&self, pit: PitRef, record: &InRecord) -> InterestLimits {
        let from_scope = self.faces.get(record.face).map_or(FaceScope::NonLocal, |face| face.scope);
        let scope = NameScope::of(self.pcct.names.name(pit.entry));
        InterestLimits { scope, from: record.face, from_scope, hop_limit: record.hop_limit.onward() }
    }

    /// Returns the unexpired in-records with an Interest that may be sent to `face`.
    pub(crate) fn pending_for<'a>(
        &'a self,
        now: Timestamp,
        pit: PitRef,
        face: &'a FaceInfo,
    ) -> impl Iterator<Item = &'a InRecord> {
        let may_go = move |record: &&InRecord| {
            record.expiry > now && self.faces.exists(record.face) && self.pending_limits(pit, record).may_go_to(face)
        };
        self.pcct.pit.in_records(pit).filter(may_go)
    }
}

fn seen_by_strategy(record: &UpstreamRecord) -> OutRecord {
    OutRecord {
        face: record.face,
        nonce: record.nonce,
        last_renewed: record.last_renewed,
        expiry: record.expiry(),
        nacked: record.nacked(),
    }
}

impl StrategyContext for Context<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn ingress(&self) -> FaceId {
        self.ingress
    }

    fn face(&self, id: FaceId) -> Option<FaceInfo> {
        self.state.faces.get(id)
    }

    fn random(&mut self) -> u64 {
        self.state.random()
    }

    fn nexthop_count(&self) -> usize {
        self.route.nexthops.len()
    }

    fn nexthop(&self, index: usize) -> FaceId {
        self.route.nexthops[index]
    }

    #[inline(always)]
    fn is_eligible(&self, nexthop: FaceId) -> bool {
        let Some(face) = self.state.faces.get(nexthop) else { return false };
        let may_go = match &self.at_hand {
            AtHand::Interest(interest) => interest.limits.may_go_to(&face),
            _ => self.has_pending_for(&face) && !self.is_barred_by_nack(nexthop),
        };
        if may_go && !face.is_up {
            self.has_barred.set(true);
        }
        may_go && face.is_up
    }

    fn face_count(&self) -> usize {
        self.state.faces.list().len()
    }

    fn face_at(&self, index: usize) -> FaceInfo {
        self.state.faces.list()[index]
    }

    fn in_records(&self) -> impl Iterator<Item = strategy::InRecord> {
        let records = self.state.pcct.pit.in_records(self.pit);
        records.map(|record| strategy::InRecord { face: record.face, expiry: record.expiry })
    }

    fn out_records(&self) -> impl Iterator<Item = OutRecord> {
        self.state.pcct.pit.out_records(self.pit).map(seen_by_strategy)
    }

    fn out_scratch(&mut self, face: FaceId) -> Option<&mut OutScratch> {
        let index = self.out_index(face)?;
        Some(&mut self.state.pcct.pit.out_record_mut(self.pit, index).scratch)
    }

    fn pit_scratch(&mut self) -> &mut PitScratch {
        &mut self.state.pcct.pit.slot_mut(self.pit).scratch
    }

    fn measurements(&mut self) -> Option<&mut Measurements> {
        Some(self.state.measurements.entry(self.route.prefix_hash, self.now))
    }

    fn is_non_discovery(&self) -> bool {
        self.state.pcct.pit.slot(self.pit).is_non_discovery()
    }

    fn send_interest(&mut self, face: FaceId) -> bool {
        self.outgoing_interest(face, false, false)
    }

    fn send_interest_discovery(&mut self, face: FaceId, non_discovery: bool) -> bool {
        self.outgoing_interest(face, false, non_discovery)
    }

    fn send_probe(&mut self, face: FaceId) -> bool {
        self.outgoing_interest(face, true, false)
    }

    fn send_nack(&mut self, downstream: FaceId, reason: NackReason) {
        self.outgoing_nacks(reason, |face| face == downstream);
    }

    fn send_nacks(&mut self, reason: NackReason) {
        self.outgoing_nacks(reason, |_| true);
    }

    fn reject_pending_interest(&mut self) {
        self.state.pcct.pit.slot_mut(self.pit).expiry = self.now;
    }

    fn set_expiry_ms(&mut self, milliseconds: u64) {
        self.state.pcct.pit.slot_mut(self.pit).expiry = self.now.plus_ms(milliseconds);
    }

    fn schedule_timer_us(&mut self, delay_us: u64) {
        let deadline = Timestamp(self.now.0.saturating_add(delay_us.saturating_mul(1_000)));
        self.state.timers.arm_for_strategy(&mut self.state.pcct.pit, self.pit, deadline);
    }

    fn send_data_to_all(&mut self) {
        let AtHand::Data(data) = &mut self.at_hand else { return };
        let Some(buffer) = data.buffer.take() else { return };
        let announcement = data.announcement.as_ref().filter(|_| data.pass_announcement);
        self.state.outgoing_data(self.now, self.pit, &data.source, buffer, announcement, self.out);
    }

    fn learn_announced_route(&mut self) -> bool {
        let AtHand::Data(data) = &mut self.at_hand else { return false };
        let Some(announcement) = &data.announcement else { return false };
        data.pass_announcement = true;
        let announcement = announcement.bytes().to_vec();
        self.state.emitter.report(EngineEvent::RouteLearned { face: self.ingress, announcement })
    }

    fn request_announcement(&mut self) {
        let AtHand::Data(data) = &mut self.at_hand else { return };
        let Some(buffer) = data.buffer.take() else { return };
        let mut downstreams = std::mem::take(&mut self.state.scratch.downstreams);
        downstreams.clear();
        let out_of_scope = self.state.take_downstreams(self.now, self.pit, &data.source, &mut downstreams);
        self.state.count_undelivered(&data.source, &downstreams, out_of_scope);
        let name =
            namehop_wire::DataHeader::decode(buffer.bytes()).map(|header| header.name.to_owned()).unwrap_or_default();
        let ForwardingState { learning, emitter, .. } = &mut *self.state;
        let waits = learning.await_announcement(emitter, self.now, name, data.source, buffer, &downstreams);
        if let Err(buffer) = waits {
            self.state.emitter.send_data(buffer, &data.source, &downstreams, None, self.out);
        }
        self.state.scratch.downstreams = downstreams;
    }

    fn forget_learned_route(&mut self, face: FaceId) {
        let entry = self.pit.entry;
        let by_hint = !self.state.pcct.names.delegation(entry).is_empty();
        let matched = if by_hint { self.state.pcct.names.delegation(entry) } else { self.state.pcct.names.name(entry) };
        let matched = NameRef::from_value(matched).unwrap_or_default();
        let prefix = matched.prefix(self.route.prefix_len).to_owned();
        self.state.emitter.report(EngineEvent::RouteForgotten { prefix, face });
    }
}
