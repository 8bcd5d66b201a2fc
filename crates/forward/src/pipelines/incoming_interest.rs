//! Incoming Interest pipeline. The order of the steps matters.

use namehop_hash::hash_with_nonce;
use namehop_wire::lp::NackReason;
use namehop_wire::{Interest, InterestRewrite, NameRef};

use crate::buffer::{BufferPool, PacketBuffer};
use crate::counters::DropReason;
use crate::engine::Engine;
use crate::engine::context::{AtHand, Carrier, Context, InterestAtHand};
use crate::engine::core::{Core, names_digest};
use crate::engine::route::{Route, choose_delegation};
use crate::face::{FaceId, FaceInfo, FaceScope, LinkType};
use crate::packet::{Incoming, Outgoing};
use crate::pcct::content::Query;
use crate::pcct::entry::{PendingHopLimit, Selectors};
use crate::pcct::keys::Key;
use crate::pcct::{Arrival, PitRef};

use crate::schedule::{Known, Schedule};
use crate::scope::is_localhost;
use crate::strategy::Trigger;
use crate::time::Timestamp;

impl<P: BufferPool, S: Schedule> Engine<P, S> {
    /// Handles an Interest. An error is the reason why it was discarded.
    pub(crate) fn incoming_interest(
        &mut self,
        now: Timestamp,
        packet: Incoming<P::Buffer>,
        mut ahead: Known<'_>,
        out: &mut Vec<Outgoing<P::Buffer>>,
    ) -> Result<(), DropReason> {
        let Engine { fib, core, hint_hashes, .. } = self;
        let Incoming { face, buffer, fields } = packet;
        core.counters.in_interests += 1;
        let ingress = core.faces.get(face).ok_or(DropReason::UnknownFace)?;
        let interest = Interest::decode(buffer.bytes()).map_err(|_| DropReason::Malformed)?;
        core.admit_name(interest.name)?;
        let hashes = ahead.hashes(&core.key, interest.name)?;

        // A missing Nonce is added.
        let nonce = interest.nonce.unwrap_or_else(|| core.random() as u32);
        let nonce_hash = hash_with_nonce(hashes.full(), nonce);

        // HopLimit: an Interest with 0 should not have been sent.
        if interest.hop_limit == Some(0) {
            return Err(DropReason::HopLimitZero);
        }

        // Scope: `/localhost` is for processes on this computer.
        if ingress.scope == FaceScope::NonLocal && is_localhost(interest.name.value()) {
            return Err(DropReason::ScopeViolation);
        }

        // Dead Nonce List: an Interest that this router has forwarded and forgotten is looping.
        if core.dead_nonces.contains(nonce_hash, now) {
            core.refuse(&ingress, buffer, &fields, NackReason::DUPLICATE, out);
            return Err(DropReason::DeadNonce);
        }

        // Forwarding hint: in the region it names it has done its work.
        let hint_reached = interest
            .forwarding_hint
            .is_some_and(|hint| hint.iter().any(|delegation| core.is_producer_region(delegation)));
        // HopLimit may be added for Interests that come without.
        let hop_limit = match (interest.hop_limit, core.default_hop_limit) {
            (Some(received), _) => PendingHopLimit::Received(received),
            (None, 0) => PendingHopLimit::Absent,
            (None, added) => PendingHopLimit::Added(added),
        };
        let change = InterestRewrite {
            nonce: interest.nonce.is_none().then_some(nonce),
            hop_limit: hop_limit.onward().filter(|_| interest.hop_limit.is_none()),
            remove_forwarding_hint: hint_reached,
            ..InterestRewrite::default()
        };
        let rewritten =
            if change == InterestRewrite::default() { None } else { Some(core.rewritten(buffer.bytes(), &change)?) };
        let interest = match &rewritten {
            Some(rewritten) => Interest::decode(rewritten.bytes()).map_err(|_| DropReason::Malformed)?,
            None => interest,
        };

        // Of several delegations one is chosen; Interests with different choices are kept apart.
        let chosen = interest.forwarding_hint.and_then(|hint| choose_delegation(fib, &core.key, hint, hint_hashes));
        let (hint, hint_hash) = chosen.unwrap_or((NameRef::root(), 0));

        // PIT: is an Interest with this name, hint and selectors pending?
        let name = interest.name.value();
        let names_digest = names_digest(name, hashes);
        let selectors = Selectors { can_be_prefix: interest.can_be_prefix, must_be_fresh: interest.must_be_fresh };
        let entry = core.pcct.find(hashes.full(), name, hint.value());
        let pending = entry.and_then(|entry| core.pcct.find_slot(entry, selectors));

        // Duplicate nonce: an Interest that is still pending here is looping.
        if let Some(pit) = pending {
            core.forget_removed_faces(pit);
            if core.is_looping(pit, nonce, &ingress) {
                core.refuse(&ingress, buffer, &fields, NackReason::DUPLICATE, out);
                return Err(DropReason::DuplicateNonce);
            }
        }

        // Content Store: only for the first downstream; when others wait already, there is nothing to find.
        let is_aggregated = pending.is_some_and(|pit| core.pcct.in_count(pit) > 0);
        core.counters.aggregated_interests += u64::from(is_aggregated);
        if !is_aggregated && core.pcct.content.serve {
            let query = Query { name, hashes, names_digest, selectors, hint: hint.value(), hint_hash };
            if let Some(found) = core.pcct.find_data(&query, entry, now) {
                return core.answer_from_cache(now, found, pending, &ingress, &fields, out);
            }
            core.counters.cs_misses += 1;
        }

        // PIT entry: an Interest that cannot be rebuilt from name and selectors is kept whole.
        let pit = match pending {
            Some(pit) => pit,
            None => {
                let depth = hashes.depth();
                let hint = hint.value();
                let key = Key { name, name_hash: hashes.full(), depth, names_digest, hint, hint_hash };
                let keep_whole = interest.application_parameters.is_some() || interest.forwarding_hint.is_some();
                let kept = keep_whole.then_some(interest.wire());
                match core.open_slot(now, &key, selectors, entry, kept) {
                    Ok(pit) => pit,
                    Err(reason) => {
                        core.refuse(&ingress, buffer, &fields, NackReason::CONGESTION, out);
                        return Err(reason);
                    }
                }
            }
        };

        // In-record: insert or renew. The PIT entry ends with its last in-record.
        let lifetime_ms = Core::<P>::kept_lifetime(&interest);
        let arrival = Arrival {
            face: ingress.id,
            nonce,
            expiry: now.plus_ms(core.pending_ms(lifetime_ms)),
            hop_limit,
            congestion_mark: fields.congestion_mark,
            token: &fields.pit_token,
        };
        if core.pcct.renew_in_record(pit, &arrival).is_err() {
            if pending.is_none() {
                core.pcct.close_slot(pit);
            }
            core.refuse(&ingress, buffer, &fields, NackReason::CONGESTION, out);
            return Err(DropReason::TooManyDownstreams);
        }
        core.renew_slot(pit, lifetime_ms, fields.non_discovery);

        // NextHopFaceId: a privileged application chooses the face itself. Otherwise the strategy does.
        let route = Route::find(fib, &core.key, interest.name, hashes, hint, hint_hashes);
        core.pcct.slot_mut(pit).set_measured(route.strategy.wants_data());
        let (nonce_at, hop_limit_at) = (interest.offsets.nonce.unwrap_or(u16::MAX), interest.offsets.hop_limit);
        let (onward, original) = match rewritten {
            Some(rewritten) => (rewritten, Some(buffer)),
            None => (buffer, None),
        };
        let at_hand = InterestAtHand {
            nonce_at,
            hop_limit_at,
            nonce,
            hop_limit: hop_limit.onward(),
            congestion_mark: fields.congestion_mark,
            carrier: Some(Carrier::Held(onward)),
            original,
        };
        let at_hand = AtHand::Interest(at_hand);
        let mut context = Context { core, out, route, now, pit, ingress: ingress.id, nack_mark: 0, at_hand };
        let mut result = Ok(());
        match fields.next_hop_face_id {
            Some(number) => {
                let chosen = u32::try_from(number).ok().map(FaceId).filter(|&face| context.core.faces.exists(face));
                match chosen {
                    Some(face) => {
                        context.forward_interest(face, false, fields.non_discovery);
                    }
                    None => result = Err(DropReason::NoSuchNextHop),
                }
            }
            None => context.dispatch(Trigger::AfterReceiveInterest),
        }
        context.settle();
        result
    }
}

impl<P: BufferPool> Core<P> {
    /// Does the PIT entry know this nonce? From the same point-to-point face it is a retransmission, which is no loop
    /// although the router has sent this nonce on itself.
    fn is_looping(&self, pit: PitRef, nonce: u32, ingress: &FaceInfo) -> bool {
        let mut seen = false;
        for record in self.pcct.in_records(pit).filter(|record| record.nonce == nonce) {
            if record.face == ingress.id && ingress.link_type == LinkType::PointToPoint {
                return false;
            }
            seen = true;
        }
        seen || self.pcct.out_records(pit).any(|record| record.nonce == nonce)
    }

    /// Makes a PIT slot pending for as long as its in-records are.
    fn renew_slot(&mut self, pit: PitRef, lifetime_ms: u32, non_discovery: bool) {
        let expiry = self.pcct.in_records(pit).map(|record| record.expiry).max();
        let slot = self.pcct.slot_mut(pit);
        if slot.is_satisfied() {
            // Kept by its strategy for late Data, and now asked for again.
            slot.set_pending();
            self.counters.satisfied_interests += 1;
        }
        let slot = self.pcct.slot_mut(pit);
        slot.expiry = expiry.unwrap_or(slot.expiry);
        slot.lifetime_ms = lifetime_ms;
        slot.set_non_discovery(non_discovery);
    }
}
