//! Incoming Interest pipeline. The order of the steps matters.

use namehop_hash::hash_with_nonce;
use namehop_wire::lp::NackReason;
use namehop_wire::{InterestLayout, InterestRewrite};

use crate::engine::Engine;
use crate::engine::context::{AtHand, Carrier, Context, InterestAtHand};
use crate::engine::core::{Core, names_digest};
use crate::engine::route::{Route, choose_delegation};
use crate::pcct::content::Query;
use crate::pcct::entry::Selectors;
use crate::pcct::keys::Key;
use crate::pcct::record::PendingHopLimit;
use crate::pcct::{Arrival, NoRoom, PitRef};
use crate::schedule::{Known, Schedule};
use crate::scope::{NameScope, Traveller};
use crate::strategy::Trigger;
use namehop_packet::{DropReason, FaceId, FaceInfo, FaceScope, Incoming, LinkType, Outgoing, PacketBuffer, Timestamp};

impl<S: Schedule> Engine<S> {
    /// Handles an Interest. An error is the reason why it was discarded.
    pub(crate) fn incoming_interest(
        &mut self,
        now: Timestamp,
        packet: Incoming,
        ahead: Known<'_>,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), DropReason> {
        let Engine { fib, core, hint_hashes, .. } = self;
        // Fields are not moved: they are large.
        let (mut buffer, fields) = (packet.buffer, &packet.fields);
        core.counters.in_interests += 1;
        let Some(ingress) = core.faces.get(packet.face) else { return Err(DropReason::UnknownFace) };
        let (mut layout, fib_guess) = (&ahead.summary.interest, ahead.summary.fib_guess);
        let name = layout.name.of_packet(buffer.bytes());
        core.admit_name(ingress.id, name)?;
        let hashes = ahead.into_hashes(&core.key, name)?;

        // A missing Nonce is added.
        let nonce = layout.nonce().unwrap_or_else(|| core.random() as u32);

        // HopLimit: an Interest with 0 should not have been sent.
        if layout.hop_limit() == Some(0) {
            return Err(DropReason::HopLimitZero);
        }

        // Scope: `/localhost` is for processes on this computer.
        let scope = NameScope::of(name.value());
        if ingress.scope == FaceScope::NonLocal && scope == NameScope::Localhost {
            return Err(DropReason::ScopeViolation);
        }

        // Dead Nonce List: an Interest that this router has forwarded and forgotten is looping.
        if core.dead_nonces.contains(hash_with_nonce(hashes.full(), nonce), now) {
            core.refuse(&ingress, buffer, fields, NackReason::DUPLICATE, out);
            return Err(DropReason::DeadNonce);
        }

        // Forwarding hint, Nonce and HopLimit: what goes on may be another packet than what came in.
        let hop_limit = core.pending_hop_limit(layout);
        let mut original = None;
        let changed_layout;
        if must_be_changed(layout, hop_limit)
            && let Some((changed, its_layout)) = core.changed(buffer.bytes(), layout, nonce, hop_limit)?
        {
            original = Some(std::mem::replace(&mut buffer, changed));
            changed_layout = its_layout;
            layout = &changed_layout;
        }
        let name = layout.name.of_packet(buffer.bytes());

        // Of several delegations one is chosen; Interests with different choices are kept apart.
        let hint = layout.forwarding_hint(buffer.bytes());
        let chosen = hint.and_then(|hint| choose_delegation(fib, &core.key, hint, hint_hashes));

        // PIT: is an Interest with this name, hint and selectors pending?
        let key = Key {
            name: name.value(),
            name_hash: hashes.full(),
            depth: hashes.depth(),
            names_digest: names_digest(name.value(), hashes),
            hint: chosen.as_ref().map_or(&[], |delegation| delegation.name.value()),
            hint_hash: chosen.as_ref().map_or(0, |delegation| delegation.hash),
        };
        let selectors = Selectors { can_be_prefix: layout.can_be_prefix, must_be_fresh: layout.must_be_fresh };
        let found = core.pcct.look_up(&key);
        let pending = found.exact().and_then(|entry| core.pcct.find_slot(entry, selectors));

        // Duplicate nonce: an Interest that is still pending here is looping.
        if let Some(pit) = pending {
            core.forget_removed_faces(pit);
            if core.is_looping(pit, nonce, &ingress) {
                core.refuse(&ingress, original.unwrap_or(buffer), fields, NackReason::DUPLICATE, out);
                return Err(DropReason::DuplicateNonce);
            }
        }

        // Content Store: only for the first downstream; when others wait already, there is nothing to find.
        let is_aggregated = pending.is_some_and(|pit| core.pcct.in_count(pit) > 0);
        core.counters.aggregated_interests += u64::from(is_aggregated);
        if !is_aggregated && core.pcct.content.serve {
            let query = Query { key: &key, hashes, selectors };
            if let Some(found) = core.pcct.find_data(&query, found.exact(), now) {
                return core.answer_from_cache(now, found, pending, &ingress, fields, out);
            }
            core.counters.cs_misses += 1;
        }

        // PIT entry: an Interest that cannot be rebuilt from name and selectors is kept whole.
        let pit = match pending {
            Some(pit) => pit,
            None => {
                let keep_whole = layout.has_parameters || layout.has_forwarding_hint();
                let kept = keep_whole.then_some(buffer.bytes());
                match core.open_slot(now, ingress.id, (&key, selectors), found, kept) {
                    Ok(pit) => pit,
                    Err(reason) => {
                        core.refuse(&ingress, original.unwrap_or(buffer), fields, NackReason::CONGESTION, out);
                        return Err(reason);
                    }
                }
            }
        };

        // In-record: insert or renew. The PIT entry ends with its last in-record.
        let hint = chosen.map(|delegation| delegation.name);
        let route = Route::find(fib, &core.key, (name, hashes, fib_guess), hint, hint_hashes);
        let lifetime_ms = Core::kept_lifetime(layout.lifetime_ms);
        let arrival = Arrival {
            face: ingress.id,
            nonce,
            expiry: now.plus_ms(core.pending_ms(lifetime_ms)),
            lifetime_ms,
            hop_limit,
            congestion_mark: fields.congestion_mark,
            token: &fields.pit_token,
            non_discovery: fields.non_discovery,
            measured: route.strategy.wants_data(),
        };
        let mut renewed = core.pcct.renew(pit, &arrival);
        if renewed.is_err() && core.make_room_for_records(now, ingress.id, Some(pit)) {
            renewed = core.pcct.renew(pit, &arrival);
        }
        match renewed {
            // Kept by its strategy for late Data, and now asked for again.
            Ok(was_satisfied) => core.counters.satisfied_interests += u64::from(was_satisfied),
            Err(NoRoom) => {
                if pending.is_none() {
                    core.pcct.close_slot(pit);
                }
                core.refuse(&ingress, original.unwrap_or(buffer), fields, NackReason::CONGESTION, out);
                return Err(DropReason::TooManyDownstreams);
            }
        }

        // NextHopFaceId: a privileged application chooses the face itself. Otherwise the strategy does.
        let mut interest = InterestAtHand {
            nonce_at: layout.nonce_at,
            hop_limit_at: layout.hop_limit_at,
            nonce,
            traveller: Traveller { scope, from: ingress.id, from_scope: ingress.scope, hop_limit: hop_limit.onward() },
            congestion_mark: fields.congestion_mark,
            carrier: Some(Carrier::Held(buffer)),
            original,
        };
        let at_hand = AtHand::Interest(&mut interest);
        let mut context = Context { core, out, route, now, pit, ingress: ingress.id, nack_mark: 0, at_hand };
        let mut result = Ok(());
        match fields.next_hop_face_id {
            Some(number) => result = context.send_to_chosen(number, fields.non_discovery),
            None => context.dispatch(Trigger::AfterReceiveInterest),
        }
        context.settle();
        result
    }
}

impl Context<'_> {
    /// Sends the Interest to the face that an application has chosen.
    #[cold]
    fn send_to_chosen(&mut self, number: u64, non_discovery: bool) -> Result<(), DropReason> {
        let chosen = u32::try_from(number).ok().map(FaceId).filter(|&face| self.core.faces.exists(face));
        self.forward_interest(chosen.ok_or(DropReason::NoSuchNextHop)?, false, non_discovery);
        Ok(())
    }
}

impl Core {
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

    /// HopLimit of an arriving Interest. One may be added for Interests that come without.
    fn pending_hop_limit(&self, layout: &InterestLayout) -> PendingHopLimit {
        match (layout.hop_limit(), self.default_hop_limit) {
            (Some(received), _) => PendingHopLimit::Received(received),
            (None, 0) => PendingHopLimit::Absent,
            (None, added) => PendingHopLimit::Added(added),
        }
    }

    /// What goes on instead of an Interest that [must be changed](must_be_changed); `None` if it goes on as it is after all.
    #[cold]
    fn changed(
        &self,
        packet: &[u8],
        layout: &InterestLayout,
        nonce: u32,
        hop_limit: PendingHopLimit,
    ) -> Result<Option<(PacketBuffer, InterestLayout)>, DropReason> {
        // In the region that it names, a forwarding hint has done its work.
        let hint = layout.forwarding_hint(packet);
        let hint_reached = hint.is_some_and(|hint| hint.iter().any(|name| self.is_producer_region(name)));
        let change = InterestRewrite {
            nonce: layout.nonce().is_none().then_some(nonce),
            hop_limit: hop_limit.onward().filter(|_| layout.hop_limit().is_none()),
            remove_forwarding_hint: hint_reached,
            ..InterestRewrite::default()
        };
        if change == InterestRewrite::default() {
            return Ok(None);
        }
        let rewritten = self.rewritten(packet, &change)?;
        let layout = InterestLayout::decode(rewritten.bytes()).map_err(|_| DropReason::Malformed)?;
        Ok(Some((rewritten, layout)))
    }
}

/// Does an Interest lack Nonce or HopLimit, or might its forwarding hint have done its work?
#[inline]
fn must_be_changed(layout: &InterestLayout, hop_limit: PendingHopLimit) -> bool {
    layout.nonce().is_none() || matches!(hop_limit, PendingHopLimit::Added(_)) || layout.has_forwarding_hint()
}
