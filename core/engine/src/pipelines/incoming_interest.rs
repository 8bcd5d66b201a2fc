//! The incoming Interest pipeline: up to an answer from the Content Store, or to the Content Store miss pipeline.
//!
//! The names are from the NFD developer's guide (here "guide"), section 4.2. Sections of the NDN packet format
//! specification 0.3 ("spec") and of NDNLPv2 are cited beside each step. The order of the steps matters.

use namehop_hash::PrefixHashes;
use namehop_packet::{DropReason, FaceInfo, FaceScope, Incoming, LinkType, Outgoing, PacketBuffer, Timestamp};
use namehop_wire::{InterestLayout, InterestRewrite};

use super::received_interest::{LookedUp, Received};
use super::second_tier::{FoundInTier, TierAnswer};
use crate::burst::Prepared;
use crate::engine::Engine;
use crate::pcct::PitRef;
use crate::pcct::content::Query;
use crate::pcct::key::Found;
use crate::scope::NameScope;
use crate::state::ForwardingState;
use crate::state::interest_form::rewritten;
use crate::state::route::{Fib, choose_delegation};
use crate::trace::{TraceStep, TraceSubject};

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
        state.emitter.trace_if_on(now, TraceSubject::Interest, packet.face, name, || traced(layout));
        let Some(ingress) = state.faces.get(packet.face) else { return Err(DropReason::UnknownFace) };
        // This router's limits on the length of names and on the rate of long names.
        if !HAS_WAITED {
            state.limits.admit_name(ingress.id, name)?;
        }
        let hashes = prepared.into_hashes(&state.key, name)?;
        let scope = NameScope::of(name.value());
        check_hop_limit_and_scope(&ingress, layout, scope)?;

        // The link fields are borrowed, because moving them is expensive.
        let (buffer, fields) = (packet.buffer, &packet.fields);
        // Spec, "Nonce": a forwarder adds a missing one.
        let nonce = layout.nonce().unwrap_or_else(|| state.random() as u32);
        let hop_limit = state.rules.hop_limit_of(layout);
        let (original, delegation) = (None, None);
        let mut interest = Received {
            ingress,
            fields,
            buffer,
            original,
            layout,
            hashes,
            fib_guess,
            scope,
            nonce,
            hop_limit,
            delegation,
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
            state.choose_delegation(&mut interest, fib, delegation_hashes);
        }

        // Spec, "Nonce": an Interest that is still pending here is looping.
        let query = Query { key: &interest.key(), hashes, selectors: interest.selectors() };
        let looked_up = state.look_up(&query);
        if let Some(pit) = looked_up.pending {
            state.forget_removed_faces(pit);
            if state.is_duplicate(pit, nonce, &ingress) {
                return state.interest_loop(interest, DropReason::DuplicateNonce, out);
            }
        }

        // Guide, section 3.3, "Content Store": only for the first downstream; if others wait already, the store has no
        // match.
        if !HAS_WAITED {
            state.note_request(&query);
        }
        if !state.is_aggregated(looked_up.pending) && state.pcct.content.serves() {
            if let Some(cached) = state.look_up_data(now, &query, looked_up.found) {
                return state.content_store_hit(now, cached, looked_up.pending, &ingress, fields, out);
            }
            match state.look_up_tier::<HAS_WAITED>(now, &interest, found_in_tier) {
                TierAnswer::None => state.count_miss(),
                TierAnswer::Data(data) => {
                    return state.answer_from_store(now, data, looked_up.pending, &ingress, fields, out);
                }
                TierAnswer::Waits(read) => {
                    let buffer = interest.original.unwrap_or(interest.buffer);
                    return state.wait_for_tier(read, Incoming { face: packet.face, buffer, fields: packet.fields });
                }
            }
        }
        state.content_store_miss(now, fib, interest, looked_up, delegation_hashes, out)
    }
}

/// Returns the first step of the trace of an Interest.
fn traced(layout: &InterestLayout) -> TraceStep {
    TraceStep::Interest {
        can_be_prefix: layout.can_be_prefix,
        must_be_fresh: layout.must_be_fresh,
        nonce: layout.nonce(),
        hop_limit: layout.hop_limit(),
        lifetime_ms: layout.lifetime_ms,
    }
}

/// Refuses Interests that should not have been sent here.
#[inline(always)]
fn check_hop_limit_and_scope(ingress: &FaceInfo, layout: &InterestLayout, scope: NameScope) -> Result<(), DropReason> {
    // Spec, "HopLimit": an Interest with 0 should not have been sent.
    if layout.hop_limit() == Some(0) {
        return Err(DropReason::HopLimitZero);
    }
    // Guide, section 4.2.1: `/localhost` is for processes on this host.
    if ingress.scope == FaceScope::NonLocal && scope == NameScope::Localhost {
        return Err(DropReason::ScopeViolation);
    }
    Ok(())
}

/// The steps of the incoming Interest pipeline.
impl ForwardingState {
    /// Chooses a delegation of the Interest's forwarding hint (spec, "ForwardingHint").
    #[cold]
    fn choose_delegation(&mut self, interest: &mut Received<'_>, fib: &Fib, delegation_hashes: &mut PrefixHashes) {
        interest.delegation = choose_delegation(fib, &self.key, interest.layout, &interest.buffer, delegation_hashes);
        if let Some(name) = interest.delegation_name() {
            self.emitter.note(|| TraceStep::Delegation(name.to_owned()));
        }
    }

    /// Looks up the Interest's name and delegation, and the pending Interest with its selectors (guide, section 3.4,
    /// "PIT").
    #[inline(always)]
    fn look_up(&mut self, query: &Query<'_>) -> LookedUp {
        let found = self.pcct.names.look_up(query.key);
        let pending = found.exact().and_then(|entry| self.pcct.pit.find(&self.pcct.names, entry, query.selectors));
        let pcct = &self.pcct;
        self.emitter.note(|| match pending {
            Some(pit) => TraceStep::Pending { downstreams: pcct.pit.in_count(pit) },
            None => TraceStep::NotPending,
        });
        LookedUp { found, pending }
    }

    /// Returns whether the PIT entry has this nonce. An Interest with it from the same point-to-point face is a
    /// retransmission and no loop, even though the router has forwarded this nonce (guide, section 3.4.1, "detect
    /// duplicate Nonce").
    fn is_duplicate(&self, pit: PitRef, nonce: u32, ingress: &FaceInfo) -> bool {
        let mut seen = false;
        for record in self.pcct.pit.in_records(pit).filter(|record| record.nonce == nonce) {
            if record.face == ingress.id && ingress.link_type == LinkType::PointToPoint {
                return false;
            }
            seen = true;
        }
        seen || self.pcct.pit.out_records(pit).any(|record| record.nonce == nonce)
    }

    /// Records the request for the cache policy. A policy that counts requests identifies Data by its own name. If the
    /// Interest may have another name, the request is recorded once the Data is known.
    #[inline(always)]
    fn note_request(&mut self, query: &Query<'_>) {
        if query.is_by_name() {
            self.pcct.content.note_request(query.key.name_hash);
        }
    }

    /// Returns whether others wait for the Data already, and counts that.
    #[inline(always)]
    fn is_aggregated(&mut self, pending: Option<PitRef>) -> bool {
        let is_aggregated = pending.is_some_and(|pit| self.pcct.pit.in_count(pit) > 0);
        self.emitter.counters.aggregated_interests += u64::from(is_aggregated);
        is_aggregated
    }

    /// Returns the entry with cached Data that answers the Interest. `found` is the lookup result for its name.
    #[inline(always)]
    fn look_up_data(&mut self, now: Timestamp, query: &Query<'_>, found: Found) -> Option<u32> {
        let cached = self.pcct.content.find(&mut self.pcct.names, query, found.exact(), now)?;
        self.emitter.note(|| TraceStep::CacheHit);
        if !query.is_by_name() {
            self.pcct.content.note_request(self.pcct.names.entry(cached).name_hash);
        }
        Some(cached)
    }

    /// Counts an Interest that the Content Store cannot answer.
    #[inline(always)]
    fn count_miss(&mut self) {
        self.emitter.note(|| TraceStep::CacheMiss);
        self.emitter.counters.cs_misses += 1;
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
