//! Retries of pending Interests that no upstream can answer any more.
//!
//! There are two causes. A face goes down or is removed: the Interests sent to it are lost, as if it had returned a
//! Nack. Or an aggregated Interest outlives the Interest that was sent upstream: the upstreams have forgotten it. If no
//! other upstream is expected to answer, the strategy is called as for a new Interest; without a next hop the
//! downstreams get a Nack.
//!
//! Neither can loop. A face that goes down causes at most one retry of each Interest that was sent to it. A retry has
//! the lifetime of the last downstream, so that another retry needs another Interest from downstream.

use namehop_packet::{Outgoing, Timestamp};
use namehop_wire::lp::NackReason;

use super::context::AtHand;
use crate::engine::Engine;
use crate::pcct::PitRef;
use crate::pcct::record::UpstreamRecord;
use crate::state::ForwardingState;
use crate::state::interest_form::kept_lifetime;
use crate::state::pit_walk::{GAP_COST, LOOK_COST, Met, STRATEGY_COST, WORK};
use crate::strategy::Trigger;

/// Minimum remaining lifetime, in milliseconds, of an aggregated Interest that is retried: the first suppression
/// interval. Interests that arrive together would otherwise be sent twice, and the answer would hardly be in time.
const LEAST_LIFETIME_MS: u64 = 10;

impl ForwardingState {
    fn is_lost(&self, record: &UpstreamRecord, now: Timestamp) -> bool {
        record.is_pending(now) && !self.faces.is_up(record.face)
    }

    /// Returns whether this PIT slot waits for a face that is down or removed.
    fn has_lost_upstream(&self, now: Timestamp, pit: PitRef) -> bool {
        !self.pcct.pit.slot(pit).is_satisfied()
            && self.pcct.pit.out_records(pit).any(|record| self.is_lost(record, now))
    }

    /// Returns whether an in-record of this PIT slot is still pending while all out-records have expired.
    pub(super) fn is_starved(&self, now: Timestamp, pit: PitRef) -> bool {
        let slot = self.pcct.pit.slot(pit);
        let is_in_time = !slot.is_satisfied() && slot.expiry >= now.plus_ms(LEAST_LIFETIME_MS);
        is_in_time
            && self.pcct.pit.out_records(pit).any(|record| record.nacked().is_none())
            && !self.pcct.pit.out_records(pit).any(|record| record.is_pending(now))
    }
}

impl Engine {
    /// Does the next part of the search for Interests with a lost upstream.
    pub(crate) fn retry_lost(&mut self, now: Timestamp, out: &mut Vec<Outgoing>) {
        let mut work_left = WORK;
        while work_left > 0
            && let Some(met) = self.state.lost_upstreams.next(&self.state.pcct)
        {
            let cost = match met {
                Met::End | Met::Gap => GAP_COST,
                Met::Slot(pit) if self.state.has_lost_upstream(now, pit) => {
                    self.mark_lost(now, pit, out);
                    STRATEGY_COST
                }
                Met::Slot(_) => LOOK_COST,
            };
            work_left = work_left.saturating_sub(cost);
        }
    }

    /// Marks lost upstreams as if they had returned a Nack NoRoute.
    fn mark_lost(&mut self, now: Timestamp, pit: PitRef, out: &mut Vec<Outgoing>) {
        let state = &mut self.state;
        for index in 0..usize::from(state.pcct.pit.slot(pit).out_count) {
            let record = *state.pcct.pit.out_record_mut(pit, index);
            if state.is_lost(&record, now) {
                state.pcct.pit.out_record_mut(pit, index).set_nacked(Some(NackReason::NO_ROUTE));
            }
        }
        if !state.pcct.pit.out_records(pit).any(|record| record.is_pending(now)) {
            self.retry(now, pit, out);
        }
    }

    /// Calls the strategy for a pending Interest as if it had just arrived, with the lifetime of the last downstream.
    pub(super) fn retry(&mut self, now: Timestamp, pit: PitRef, out: &mut Vec<Outgoing>) {
        let state = &mut self.state;
        state.forget_removed_faces(pit);
        state.pcct.pit.remove_in_records(pit, |record| record.expiry <= now);
        let last = state.pcct.pit.in_records(pit).map(|record| record.expiry).max();
        let Some(last) = last else { return state.timers.arm(&mut state.pcct.pit, pit) };
        state.pcct.pit.slot_mut(pit).lifetime_ms = kept_lifetime(Some(last.since_ns(now).div_ceil(1_000_000)));
        let mut context = self.pending_context(now, pit, out);
        context.at_hand = AtHand::Retry;
        context.dispatch_alone(Trigger::AfterReceiveInterest);
    }
}
