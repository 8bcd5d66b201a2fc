//! The Interest processing path up to the strategy: incoming Interest, Interest loop, Content Store hit, Content Store
//! miss.
//!
//! The names are from the NFD developer's guide (here "guide"), section 4.2. Sections of the NDN packet format
//! specification 0.3 ("spec") and of NDNLPv2 are cited beside each step. The order of the steps matters.

use std::cell::Cell;

use namehop_hash::PrefixHashes;
use namehop_packet::{
    DropReason, FaceId, FaceInfo, FaceScope, Incoming, LinkFields, LinkType, Outgoing, PacketBuffer, PacketKind,
    Timestamp,
};
use namehop_wire::lp::NackReason;
use namehop_wire::{InterestLayout, InterestRewrite};

use super::context::{AtHand, Carrier, Context, InterestAtHand};
use super::received_interest::Received;
use super::second_tier::FoundInTier;
use crate::burst::Prepared;
use crate::engine::Engine;
use crate::pcct::content::Query;
use crate::pcct::keys::Found;
use crate::pcct::{Arrival, NoRoom, PitRef};
use crate::scope::{InterestLimits, NameScope};
use crate::state::ForwardingState;
use crate::state::interest_form::{kept_lifetime, rewritten};
use crate::state::route::{Fib, Route, choose_delegation};
use crate::strategy::Trigger;
use crate::strategy::upstreams::answer_no_route;
use crate::trace::{TraceStep, TraceSubject};

/// The lookup result for an Interest in the PIT-CS composite table.
#[derive(Clone, Copy)]
struct LookedUp {
    found: Found,
    /// The PIT entry for its name, delegation and selectors.
    pending: Option<PitRef>,
}

impl Engine {
    /// Incoming Interest pipeline (guide, section 4.2.1). The error is the reason why the Interest was dropped.
    ///
    /// With `HAS_WAITED`, the Interest has passed here before and has waited for a read from the second tier, which may
    /// have found Data.
    pub(crate) fn incoming_interest<const HAS_WAITED: bool>(
        &mut self,
        now: Timestamp,
        packet: Incoming,
        prepared: Prepared<'_>,
        found_in_tier: Option<&FoundInTier<'_>>,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        let Engine { fib, state, delegation_hashes, .. } = self;
        state.emitter.counters.in_interests += u64::from(!HAS_WAITED);
        let (layout, fib_guess) = (&prepared.parsed.interest, prepared.fib_guess);
        let name = layout.name.of_packet(packet.buffer.bytes());
        state.emitter.trace_if_on(now, TraceSubject::Interest, packet.face, name, || TraceStep::Interest {
            can_be_prefix: layout.can_be_prefix,
            must_be_fresh: layout.must_be_fresh,
            nonce: layout.nonce(),
            hop_limit: layout.hop_limit(),
            lifetime_ms: layout.lifetime_ms,
        });
        let Some(ingress) = state.faces.get(packet.face) else { return Err(DropReason::UnknownFace) };

        // This router's limits on the length of names and on the rate of long names.
        if !HAS_WAITED {
            state.limits.admit_name(ingress.id, name)?;
        }
        let hashes = prepared.into_hashes(&state.key, name)?;

        // Spec, "HopLimit": an Interest with 0 should not have been sent.
        if layout.hop_limit() == Some(0) {
            return Err(DropReason::HopLimitZero);
        }

        // Guide, section 4.2.1: `/localhost` is for processes on this host.
        let scope = NameScope::of(name.value());
        if ingress.scope == FaceScope::NonLocal && scope == NameScope::Localhost {
            return Err(DropReason::ScopeViolation);
        }

        // The link fields are borrowed, because moving them is expensive.
        let (buffer, fields) = (packet.buffer, &packet.fields);

        // Spec, "Nonce": a forwarder adds a missing one.
        let nonce = layout.nonce().unwrap_or_else(|| state.random() as u32);
        let hop_limit = state.rules.hop_limit_of(layout);
        let mut interest = Received {
            ingress,
            fields,
            buffer,
            original: None,
            layout,
            hashes,
            fib_guess,
            scope,
            nonce,
            hop_limit,
            delegation: None,
        };

        // Guide, section 3.5, "Dead Nonce List": an Interest is looping if this router has forwarded it and its PIT
        // entry has ended.
        if state.dead_nonces.contains(hashes.full(), nonce, now) {
            return state.interest_loop(interest, DropReason::DeadNonce, out);
        }

        // Spec, "Nonce", "HopLimit", "ForwardingHint": the forwarded packet may differ from the received one, and one
        // of several delegations is chosen. Interests with different choices are kept apart.
        let changed_layout;
        if interest.must_be_changed()
            && let Some((changed, its_layout)) = state.changed(&interest)?
        {
            interest.original = Some(std::mem::replace(&mut interest.buffer, changed));
            changed_layout = its_layout;
            interest.layout = &changed_layout;
        }
        if interest.layout.has_forwarding_hint() {
            interest.delegation =
                choose_delegation(fib, &state.key, interest.layout, &interest.buffer, delegation_hashes);
            state.trace_delegation(&interest);
        }

        // Guide, section 3.4, "PIT": look up a pending Interest with this name, delegation and selectors.
        let query = Query { key: &interest.key(), hashes, selectors: interest.selectors() };
        let found = state.pcct.look_up(query.key);
        let pending = found.exact().and_then(|entry| state.pcct.find_slot(entry, query.selectors));
        let looked_up = LookedUp { found, pending };
        state.emitter.note(|| match pending {
            Some(pit) => TraceStep::Pending { downstreams: state.pcct.in_count(pit) },
            None => TraceStep::NotPending,
        });

        // Spec, "Nonce": an Interest that is still pending here is looping.
        if let Some(pit) = pending {
            state.forget_removed_faces(pit);
            if state.is_duplicate(pit, nonce, &ingress) {
                return state.interest_loop(interest, DropReason::DuplicateNonce, out);
            }
        }

        // Guide, section 3.3, "Content Store": only for the first downstream; if others wait already, the store has no
        // match. A policy that counts requests identifies Data by its own name. If the Interest may have another name,
        // the request is recorded once the Data is known.
        if !HAS_WAITED && query.asks_by_name() {
            state.pcct.note_request(hashes.full());
        }
        let is_aggregated = pending.is_some_and(|pit| state.pcct.in_count(pit) > 0);
        state.emitter.counters.aggregated_interests += u64::from(is_aggregated);
        if !is_aggregated && state.pcct.content.serve {
            if let Some(cached) = state.pcct.find_data(&query, found.exact(), now) {
                state.emitter.note(|| TraceStep::CacheHit);
                if !query.asks_by_name() {
                    state.pcct.note_request(state.pcct.entry(cached).name_hash);
                }
                return state.content_store_hit(now, cached, pending, &ingress, fields, out);
            }
            // The second tier may be a disk; only this Interest waits for it.
            if HAS_WAITED
                && let Some(found_in_tier) = found_in_tier
                && interest.delegation.is_none()
            {
                let wanted = (found_in_tier, interest.name().value(), interest.layout.must_be_fresh);
                if let Some(answered) = state.answer_from_tier(now, wanted, pending, (&ingress, fields), out) {
                    return answered;
                }
            }
            if !HAS_WAITED
                && state.tier_reads.is_some()
                && interest.delegation.is_none()
                && let Some(read) =
                    state.start_tier_read(now, (packet.face, hashes.full(), interest.layout.must_be_fresh))
            {
                let buffer = interest.original.unwrap_or(interest.buffer);
                return state.wait_for_tier(read, Incoming { face: packet.face, buffer, fields: packet.fields });
            }
            state.emitter.note(|| TraceStep::CacheMiss);
            state.emitter.counters.cs_misses += 1;
        }
        state.content_store_miss(now, fib, interest, looked_up, delegation_hashes, out)
    }
}

impl ForwardingState {
    /// Interest loop pipeline (guide, section 4.2.2): sends a Nack to the downstream. Returns `reason` as the error.
    #[cold]
    fn interest_loop(
        &mut self,
        interest: Received<'_>,
        reason: DropReason,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        self.refuse(interest, NackReason::DUPLICATE, out);
        Err(reason)
    }

    /// Content Store miss pipeline (guide, section 4.2.4): inserts a PIT entry with an in-record, then calls the
    /// strategy.
    #[inline(always)]
    fn content_store_miss(
        &mut self,
        now: Timestamp,
        fib: &Fib,
        interest: Received<'_>,
        LookedUp { found, pending }: LookedUp,
        delegation_hashes: &mut PrefixHashes,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        let (ingress, fields, layout) = (interest.ingress, interest.fields, interest.layout);

        // PIT entry: an Interest that cannot be rebuilt from name and selectors is stored whole.
        let pit = match pending {
            Some(pit) => pit,
            None => {
                let keep_whole = layout.has_parameters || layout.has_forwarding_hint();
                let kept = keep_whole.then_some(interest.buffer.bytes());
                match self.open_slot(now, ingress.id, (&interest.key(), interest.selectors()), found, kept) {
                    Ok(pit) => pit,
                    Err(reason) => return self.no_room(interest, reason, out),
                }
            }
        };

        // In-record: insert or renew. The PIT entry ends with its last in-record.
        let lookup = (interest.name(), interest.hashes, interest.fib_guess);
        let route = Route::find(fib, &self.key, lookup, interest.delegation_name(), delegation_hashes);
        self.emitter.note(|| {
            let from = interest.delegation_name().unwrap_or_else(|| interest.name());
            route.trace_step(from)
        });
        let lifetime_ms = kept_lifetime(layout.lifetime_ms);
        let arrival = Arrival {
            face: ingress.id,
            nonce: interest.nonce,
            expiry: now.plus_ms(self.limits.pending_ms(lifetime_ms)),
            lifetime_ms,
            hop_limit: interest.hop_limit,
            congestion_mark: fields.congestion_mark,
            token: &fields.pit_token,
            non_discovery: fields.non_discovery,
            measured: route.strategy.wants_data(),
        };
        let mut renewed = self.pcct.renew(pit, &arrival);
        if renewed.is_err() && self.make_room_for_records(now, ingress.id, Some(pit)) {
            renewed = self.pcct.renew(pit, &arrival);
        }
        match renewed {
            // The entry was kept by its strategy for late Data, and is now requested again.
            Ok(was_satisfied) => self.emitter.counters.satisfied_interests += u64::from(was_satisfied),
            Err(NoRoom) => {
                if pending.is_none() {
                    self.pcct.close_slot(pit);
                }
                return self.no_room(interest, DropReason::TooManyDownstreams, out);
            }
        }

        // NDNLPv2, "Consumer Controlled Forwarding": a privileged application chooses the next hop itself. Otherwise
        // the strategy does (guide, section 5.1, "after receive Interest trigger").
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

    /// Returns whether the PIT entry has this nonce. An Interest with it from the same point-to-point face is a
    /// retransmission and no loop, even though the router has forwarded this nonce (guide, section 3.4.1, "detect
    /// duplicate Nonce").
    fn is_duplicate(&self, pit: PitRef, nonce: u32, ingress: &FaceInfo) -> bool {
        let mut seen = false;
        for record in self.pcct.in_records(pit).filter(|record| record.nonce == nonce) {
            if record.face == ingress.id && ingress.link_type == LinkType::PointToPoint {
                return false;
            }
            seen = true;
        }
        seen || self.pcct.out_records(pit).any(|record| record.nonce == nonce)
    }

    #[cold]
    fn trace_delegation(&mut self, interest: &Received<'_>) {
        if let Some(name) = interest.delegation_name() {
            self.emitter.note(|| TraceStep::Delegation(name.to_owned()));
        }
    }

    /// Returns the packet that is forwarded in place of an Interest that [must be changed](Received::must_be_changed);
    /// `None` if it needs no change after all.
    #[cold]
    fn changed(&self, interest: &Received<'_>) -> Result<Option<(PacketBuffer, InterestLayout)>, DropReason> {
        let (packet, layout) = (interest.buffer.bytes(), interest.layout);
        // A forwarding hint that has reached its region is removed.
        let hint = layout.forwarding_hint(packet);
        let hint_reached = hint.is_some_and(|hint| hint.iter().any(|name| self.rules.is_producer_region(name)));
        let change = InterestRewrite {
            nonce: layout.nonce().is_none().then_some(interest.nonce),
            hop_limit: interest.hop_limit.onward().filter(|_| layout.hop_limit().is_none()),
            remove_forwarding_hint: hint_reached,
            ..InterestRewrite::default()
        };
        if change == InterestRewrite::default() {
            return Ok(None);
        }
        let rewritten = rewritten(self.emitter.pool(), packet, &change)?;
        let layout = InterestLayout::decode(rewritten.bytes()).map_err(|_| DropReason::Malformed)?;
        Ok(Some((rewritten, layout)))
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
