//! The Content Store miss pipeline, from the PIT entry to the strategy, and the Nacks that an Interest gets instead of
//! a PIT entry.
//!
//! The names are from the NFD developer's guide (here "guide"), section 4.2.

use std::cell::Cell;

use namehop_hash::PrefixHashes;
use namehop_packet::{DropReason, FaceId, LinkFields, LinkType, Outgoing, PacketKind, Timestamp};
use namehop_wire::lp::NackReason;

use super::context::{AtHand, Carrier, Context, InterestAtHand};
use super::received_interest::{LookedUp, Received};
use crate::pcct::key::Found;
use crate::pcct::{Arrival, NoRoom, PitRef};
use crate::scope::InterestLimits;
use crate::state::ForwardingState;
use crate::state::interest_form::kept_lifetime;
use crate::state::route::{Fib, Route};
use crate::strategy::Trigger;
use crate::strategy::upstreams::answer_no_route;
use crate::trace::TraceStep;

impl ForwardingState {
    /// Content Store miss pipeline (guide, section 4.2.4): inserts a PIT entry with an in-record, then calls the
    /// strategy.
    #[inline(always)]
    pub(super) fn content_store_miss(
        &mut self,
        now: Timestamp,
        fib: &Fib,
        interest: Received<'_>,
        LookedUp { found, pending }: LookedUp,
        delegation_hashes: &mut PrefixHashes,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        let pit = match pending {
            Some(pit) => pit,
            None => match self.insert_pit_entry(now, &interest, found) {
                Ok(pit) => pit,
                Err(reason) => return self.no_room(interest, reason, out),
            },
        };
        let route = self.look_up_route(fib, &interest, delegation_hashes);
        if let Err(NoRoom) = self.insert_in_record(now, pit, &interest, &route) {
            if pending.is_none() {
                self.pcct.pit.close(&mut self.pcct.names, pit);
            }
            return self.no_room(interest, DropReason::TooManyDownstreams, out);
        }
        self.forward(now, pit, route, interest, out)
    }

    /// Inserts the PIT entry of an Interest. An Interest that cannot be rebuilt from name and selectors is stored
    /// whole.
    #[inline(always)]
    fn insert_pit_entry(
        &mut self,
        now: Timestamp,
        interest: &Received<'_>,
        found: Found,
    ) -> Result<PitRef, DropReason> {
        let keep_whole = interest.layout.has_parameters || interest.layout.has_forwarding_hint();
        let kept = keep_whole.then_some(interest.buffer.bytes());
        self.open_slot(now, interest.ingress.id, (&interest.key(), interest.selectors()), found, kept)
    }

    /// Looks up next hops and strategy of an Interest.
    #[inline(always)]
    fn look_up_route<'f>(
        &mut self,
        fib: &'f Fib,
        interest: &Received<'_>,
        delegation_hashes: &mut PrefixHashes,
    ) -> Route<'f> {
        let lookup = (interest.name(), interest.hashes, interest.fib_guess);
        let route = Route::find(fib, &self.key, lookup, interest.delegation_name(), delegation_hashes);
        self.emitter.note(|| {
            let from = interest.delegation_name().unwrap_or_else(|| interest.name());
            route.trace_step(from)
        });
        route
    }

    /// Inserts or renews the in-record of an Interest. The PIT entry ends with its last in-record.
    #[inline(always)]
    fn insert_in_record(
        &mut self,
        now: Timestamp,
        pit: PitRef,
        interest: &Received<'_>,
        route: &Route<'_>,
    ) -> Result<(), NoRoom> {
        let (face, fields) = (interest.ingress.id, interest.fields);
        let lifetime_ms = kept_lifetime(interest.layout.lifetime_ms);
        let arrival = Arrival {
            face,
            nonce: interest.nonce,
            expiry: now.plus_ms(self.limits.pending_ms(lifetime_ms)),
            lifetime_ms,
            hop_limit: interest.hop_limit,
            congestion_mark: fields.congestion_mark,
            token: &fields.pit_token,
            non_discovery: fields.non_discovery,
            measured: route.strategy.wants_data(),
        };
        let mut renewed = self.pcct.pit.renew(pit, &arrival);
        if renewed.is_err() && self.make_room_for_records(now, face, Some(pit)) {
            renewed = self.pcct.pit.renew(pit, &arrival);
        }
        // The entry may have been kept by its strategy for late Data, and is now requested again.
        let was_satisfied = renewed?;
        self.emitter.counters.satisfied_interests += u64::from(was_satisfied);
        Ok(())
    }

    /// Lets the next hop be chosen: by a privileged application itself (NDNLPv2, "Consumer Controlled Forwarding"), or
    /// else by the strategy (guide, section 5.1, "after receive Interest trigger").
    #[inline(always)]
    fn forward(
        &mut self,
        now: Timestamp,
        pit: PitRef,
        route: Route<'_>,
        interest: Received<'_>,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        let Received { ingress, fields, layout, .. } = interest;
        let mut at_hand = InterestAtHand {
            nonce_at: layout.nonce_at,
            hop_limit_at: layout.hop_limit_at,
            nonce: interest.nonce,
            limits: InterestLimits {
                scope: interest.scope,
                from: ingress.id,
                from_scope: ingress.scope,
                hop_limit: interest.hop_limit.onward(),
            },
            congestion_mark: fields.congestion_mark,
            stamp: fields.stamp,
            carrier: Some(Carrier::Held(interest.buffer)),
            original: interest.original,
        };
        let at_hand = AtHand::Interest(&mut at_hand);
        let mut context = Context {
            state: self,
            out,
            route,
            now,
            pit,
            ingress: ingress.id,
            nack_mark: 0,
            at_hand,
            has_barred: Cell::new(false),
        };
        let mut result = Ok(());
        match fields.next_hop_face_id {
            Some(number) => result = context.send_to_chosen(number, fields.non_discovery),
            None => context.dispatch(Trigger::AfterReceiveInterest),
        }
        context.settle();
        result
    }

    /// Interest loop pipeline (guide, section 4.2.2): sends a Nack to the downstream. Returns `reason` as the error.
    #[cold]
    pub(super) fn interest_loop(
        &mut self,
        interest: Received<'_>,
        reason: DropReason,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        self.refuse(interest, NackReason::DUPLICATE, out);
        Err(reason)
    }

    /// Sends a Nack because there is no room for the Interest. Returns `reason` as the error.
    #[cold]
    fn no_room(
        &mut self,
        interest: Received<'_>,
        reason: DropReason,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        self.refuse(interest, NackReason::CONGESTION, out);
        Err(reason)
    }

    /// Answers an Interest that gets no PIT entry with a Nack, if it arrived on a point-to-point face (NDNLPv2,
    /// "Network Nack"): on other links the answer of one router would count for all.
    fn refuse(&mut self, interest: Received<'_>, reason: NackReason, out: &mut Vec<Outgoing>) {
        let Received { ingress, fields, buffer, original, .. } = interest;
        if ingress.link_type != LinkType::PointToPoint {
            return;
        }
        self.emitter.transmit(ingress.id, PacketKind::Nack, original.unwrap_or(buffer), out, || LinkFields {
            pit_token: fields.pit_token,
            nack: Some(reason),
            congestion_mark: fields.congestion_mark,
            ..LinkFields::default()
        });
    }
}

impl Context<'_> {
    /// Sends the Interest to the face that an application has chosen. There is no alternative, so if that face is down
    /// there is no route.
    #[cold]
    fn send_to_chosen(&mut self, number: u64, non_discovery: bool) -> Result<(), DropReason> {
        self.state.emitter.note(|| TraceStep::Chosen { face: number });
        let chosen = u32::try_from(number).ok().and_then(|number| self.state.faces.get(FaceId(number)));
        let chosen = chosen.ok_or(DropReason::NoSuchNextHop)?;
        match chosen.is_up {
            true => drop(self.outgoing_interest(chosen.id, false, non_discovery)),
            false => answer_no_route(self),
        }
        Ok(())
    }
}
