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

use super::Engine;
use super::context::AtHand;
use super::core::Core;
use super::pit_walk::{GAP_COST, LOOK_COST, Met, PitWalk, STRATEGY_COST, WORK};
use crate::pcct::PitRef;
use crate::pcct::record::UpstreamRecord;
use crate::strategy::Trigger;

/// Minimum remaining lifetime, in milliseconds, of an aggregated Interest that is retried: the first suppression
/// interval. Interests that arrive together would otherwise be sent twice, and the answer would hardly be in time.
const LEAST_LIFETIME_MS: u64 = 10;

/// The search for Interests that were sent to faces that are down or removed.
pub(crate) struct LostUpstreams {
    walk: Option<PitWalk>,
    /// Whether another face went down since the walk began.
    is_again: bool,
}

impl LostUpstreams {
    pub(crate) fn new() -> Self {
        LostUpstreams { walk: None, is_again: false }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.walk.is_none()
    }
}

impl Core {
    /// Starts the search for Interests sent to a face that went down or was removed. The next calls of `advance`
    /// continue it.
    pub(super) fn upstream_lost(&mut self) {
        if self.pcct.pit_len() == 0 {
            return;
        }
        // A walk in progress finishes first, even if more faces go down.
        self.lost_upstreams.is_again = !self.lost_upstreams.is_idle();
        self.lost_upstreams.walk.get_or_insert_with(|| PitWalk::new(&self.pcct));
    }

    fn is_lost(&self, record: &UpstreamRecord, now: Timestamp) -> bool {
        is_pending(record, now) && !self.faces.is_up(record.face)
    }

    /// Returns whether this PIT slot waits for a face that is down or removed.
    fn has_lost_upstream(&self, now: Timestamp, pit: PitRef) -> bool {
        !self.pcct.slot(pit).is_satisfied() && self.pcct.out_records(pit).any(|record| self.is_lost(record, now))
    }

    /// Returns whether an in-record of this PIT slot is still pending while all out-records have expired.
    pub(crate) fn is_starved(&self, now: Timestamp, pit: PitRef) -> bool {
        let slot = self.pcct.slot(pit);
        let is_in_time = !slot.is_satisfied() && slot.expiry >= now.plus_ms(LEAST_LIFETIME_MS);
        is_in_time
            && self.pcct.out_records(pit).any(|record| record.nacked().is_none())
            && !self.pcct.out_records(pit).any(|record| is_pending(record, now))
    }
}

/// Returns whether this upstream is expected to answer.
pub(crate) fn is_pending(record: &UpstreamRecord, now: Timestamp) -> bool {
    record.nacked().is_none() && record.expiry() > now
}

impl Engine {
    /// Does the next part of the search for Interests with a lost upstream.
    pub(super) fn retry_lost(&mut self, now: Timestamp, out: &mut Vec<Outgoing>) {
        let mut work_left = WORK;
        while work_left > 0
            && let Some(walk) = &mut self.core.lost_upstreams.walk
        {
            let cost = match walk.next(&self.core.pcct, |pcct, ahead| pcct.prefetch_pending(ahead)) {
                Met::End => {
                    let is_again = std::mem::take(&mut self.core.lost_upstreams.is_again);
                    self.core.lost_upstreams.walk = is_again.then(|| PitWalk::new(&self.core.pcct));
                    GAP_COST
                }
                Met::Gap => GAP_COST,
                Met::Slot(pit) if self.core.has_lost_upstream(now, pit) => {
                    self.give_up_lost(now, pit, out);
                    STRATEGY_COST
                }
                Met::Slot(_) => LOOK_COST,
            };
            work_left = work_left.saturating_sub(cost);
        }
    }

    /// Marks lost upstreams as if they had returned a Nack NoRoute.
    fn give_up_lost(&mut self, now: Timestamp, pit: PitRef, out: &mut Vec<Outgoing>) {
        let core = &mut self.core;
        for index in 0..usize::from(core.pcct.slot(pit).out_count) {
            let record = *core.pcct.out_record_mut(pit, index);
            if core.is_lost(&record, now) {
                core.pcct.out_record_mut(pit, index).set_nacked(Some(NackReason::NO_ROUTE));
            }
        }
        if !core.pcct.out_records(pit).any(|record| is_pending(record, now)) {
            self.retry(now, pit, out);
        }
    }

    /// Calls the strategy for a pending Interest as if it had just arrived, with the lifetime of the last downstream.
    pub(crate) fn retry(&mut self, now: Timestamp, pit: PitRef, out: &mut Vec<Outgoing>) {
        let core = &mut self.core;
        core.forget_removed_faces(pit);
        core.pcct.remove_in_records(pit, |record| record.expiry <= now);
        let last = core.pcct.in_records(pit).map(|record| record.expiry).max();
        let Some(last) = last else { return core.arm_timer(pit) };
        core.pcct.slot_mut(pit).lifetime_ms = Core::kept_lifetime(Some(last.since_ns(now).div_ceil(1_000_000)));
        let mut context = self.pending_context(now, pit, out);
        context.at_hand = AtHand::Retry;
        context.dispatch_alone(Trigger::AfterReceiveInterest);
    }
}
