//! Satisfying PIT entries with Data, the last step of the incoming Data pipeline (NFD developer's guide, section
//! 4.3.1): the strategies are notified, and the Data goes to the downstreams.

use std::cell::Cell;

use namehop_hash::PrefixHashes;
use namehop_packet::{FaceId, Incoming, LinkFields, Outgoing, PacketBuffer, Timestamp};

use super::context::{AtHand, Context, DataAtHand};
use super::outgoing_data::merge;
use crate::pcct::PitRef;
use crate::state::ForwardingState;
use crate::state::emitter::DataSource;
use crate::state::route::{Fib, Route};
use crate::strategy::Trigger;

/// The facts about Data that its PIT entries need.
pub(super) struct Satisfying {
    pub(super) now: Timestamp,
    pub(super) freshness_ms: u64,
    pub(super) ingress: FaceId,
    /// Whether its name is under `/localhost`.
    pub(super) is_localhost: bool,
}

/// Looks up the routes of pending Interests.
pub(super) struct PendingRoutes<'a> {
    pub(super) fib: &'a Fib,
    /// Scratch.
    pub(super) name_hashes: &'a mut PrefixHashes,
    pub(super) delegation_hashes: &'a mut PrefixHashes,
}

impl<'a> PendingRoutes<'a> {
    fn of(&mut self, state: &ForwardingState, pit: PitRef) -> Route<'a> {
        Route::of_pending(self.fib, &state.key, &state.pcct, pit, self.name_hashes, self.delegation_hashes)
    }
}

impl ForwardingState {
    /// Satisfies the PIT entries `matches` with the Data of `packet`.
    #[inline(always)]
    pub(super) fn satisfy(
        &mut self,
        satisfying: &Satisfying,
        matches: &[PitRef],
        mut routes: PendingRoutes<'_>,
        packet: Incoming,
        out: &mut Vec<Outgoing>,
    ) {
        let LinkFields { congestion_mark, stamp, .. } = packet.fields;
        let Satisfying { ingress: face, is_localhost, .. } = *satisfying;
        let source = DataSource { face, congestion_mark, stamp, is_localhost };
        match *matches {
            // The usual case: no strategy has to be notified.
            [only] if self.has_default_data_strategy(only) => {
                self.satisfy_by_default(satisfying, only, &source, packet.buffer, out);
            }
            _ => {
                let (announcement, buffer) = (packet.fields.announcement, Some(packet.buffer));
                let mut data = DataAtHand { source, buffer, announcement, pass_announcement: false };
                if let [only] = *matches {
                    let route = routes.of(self, only);
                    self.satisfy_one(satisfying, only, route, &mut data, out);
                } else {
                    self.satisfy_several(satisfying, matches, routes, &mut data, out);
                }
            }
        }
    }

    /// Returns whether the strategy of this PIT entry handles Data in the default way, so that it need not be looked
    /// up.
    fn has_default_data_strategy(&self, pit: PitRef) -> bool {
        let slot = self.pcct.pit.slot(pit);
        // A PIT entry from before the last change of strategies does not reflect its current strategy.
        !slot.is_measured() && self.strategies.covers(slot.serial)
    }

    /// One match, and no strategy to notify: sends the Data to the downstreams.
    fn satisfy_by_default(
        &mut self,
        satisfying: &Satisfying,
        pit: PitRef,
        source: &DataSource,
        buffer: PacketBuffer,
        out: &mut Vec<Outgoing>,
    ) {
        // Does what `mark_satisfied` and `end_slot` do, in one step.
        let keep_nonces = self.has_to_keep_nonces(satisfying, pit);
        self.answer_and_forget(satisfying.now, pit, source, buffer, out);
        self.emitter.counters.satisfied_interests += 1;
        if keep_nonces {
            self.dead_nonces.insert_all_sent(&self.pcct, pit, satisfying.now);
        }
        self.pcct.pit.close(&mut self.pcct.names, pit);
    }

    /// One match: the strategy forwards the Data.
    fn satisfy_one(
        &mut self,
        satisfying: &Satisfying,
        pit: PitRef,
        route: Route<'_>,
        data: &mut DataAtHand,
        out: &mut Vec<Outgoing>,
    ) {
        let Satisfying { now, ingress, .. } = *satisfying;
        // The PIT entry ends now, unless the strategy prolongs it to measure late answers.
        self.pcct.pit.slot_mut(pit).expiry = now;
        let at_hand = AtHand::Data(data);
        let mut context =
            Context { state: self, out, route, now, pit, ingress, nack_mark: 0, at_hand, has_barred: Cell::new(false) };
        context.dispatch(Trigger::AfterReceiveData);
        context.state.mark_satisfied(satisfying, pit);
        context.settle();
    }

    /// Several matches: the strategies only measure; the Data is sent once to every downstream face.
    fn satisfy_several(
        &mut self,
        satisfying: &Satisfying,
        matches: &[PitRef],
        mut routes: PendingRoutes<'_>,
        data: &mut DataAtHand,
        out: &mut Vec<Outgoing>,
    ) {
        let Satisfying { now, ingress, .. } = *satisfying;
        let mut downstreams = std::mem::take(&mut self.scratch.downstreams);
        downstreams.clear();
        let mut out_of_scope = 0;
        for &pit in matches {
            let (route, source) = (routes.of(self, pit), data.source);
            self.pcct.pit.slot_mut(pit).expiry = now;
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
            context.state.mark_satisfied(satisfying, pit);
            context.settle();
        }
        self.count_undelivered(&data.source, &downstreams, out_of_scope);
        if let Some(buffer) = data.buffer.take() {
            merge(&mut downstreams);
            let announcement = data.announcement.as_ref().filter(|_| data.pass_announcement);
            self.emitter.send_data(buffer, &data.source, &downstreams, announcement, out);
        }
        self.scratch.downstreams = downstreams;
    }

    /// Returns whether the nonces must be kept: an Interest may still be looping, and only fresh cached Data would stop
    /// one with MustBeFresh.
    fn has_to_keep_nonces(&self, satisfying: &Satisfying, pit: PitRef) -> bool {
        self.pcct.pit.slot(pit).selectors().must_be_fresh && self.dead_nonces.outlast(satisfying.freshness_ms)
    }

    /// Marks a PIT entry as satisfied and removes its downstreams. If its strategy prolongs it, the next Interest finds
    /// it without downstreams and looks in the Content Store. The out-record of the upstream that sent the Data is
    /// removed too.
    fn mark_satisfied(&mut self, satisfying: &Satisfying, pit: PitRef) {
        let keep_nonces = self.has_to_keep_nonces(satisfying, pit);
        self.pcct.pit.slot_mut(pit).set_satisfied(keep_nonces);
        self.pcct.pit.remove_in_records(pit, |_| true);
        let answered = self.pcct.pit.out_records(pit).find(|record| record.face == satisfying.ingress);
        if let Some(nonce) = answered.map(|record| record.nonce).filter(|_| keep_nonces) {
            self.dead_nonces.insert(self.pcct.names.entry(pit.entry).name_hash, nonce, satisfying.now);
        }
        self.pcct.pit.remove_out_records(pit, |record| record.face == satisfying.ingress);
    }
}
