//! Interest finalize pipeline (NFD developer's guide, here "guide", section 4.2.6), and the timers of PIT entries that
//! lead to it.

use std::cell::Cell;

use namehop_packet::{FaceId, Outgoing, Timestamp};

use super::context::{AtHand, Context};
use crate::engine::Engine;
use crate::pcct::PitRef;
use crate::state::pit_timers::TimerPurpose;
use crate::state::route::Route;
use crate::strategy::Trigger;

impl Engine {
    /// Handles all timers that are due. With a `prefetch_distance`, the PIT entry of the timer that is so far ahead is
    /// prefetched.
    pub(crate) fn fire_timers(&mut self, now: Timestamp, prefetch_distance: Option<usize>, out: &mut Vec<Outgoing>) {
        let due = self.state.timers.collect_due(&self.state.pcct.pit, now);
        for index in 0..due {
            let (timers, pcct) = (&self.state.timers, &self.state.pcct);
            if let Some(distance) = prefetch_distance
                && let Some((pit, _)) = timers.due(&pcct.pit, index + distance)
            {
                pcct.prefetch_pending(pit);
            }
            match timers.due(&pcct.pit, index) {
                Some((pit, TimerPurpose::End)) => self.fire_end_timer(now, pit, out),
                Some((pit, TimerPurpose::Strategy)) => self.fire_strategy_timer(now, pit, out),
                // The timer of a PIT entry that has ended has no effect.
                None => {}
            }
        }
    }

    fn fire_strategy_timer(&mut self, now: Timestamp, pit: PitRef, out: &mut Vec<Outgoing>) {
        let slot = self.state.pcct.pit.slot_mut(pit);
        slot.set_strategy_timer(false);
        if !slot.is_satisfied() && slot.expiry > now {
            self.pending_context(now, pit, out).dispatch_alone(Trigger::Timer);
        }
    }

    fn fire_end_timer(&mut self, now: Timestamp, pit: PitRef, out: &mut Vec<Outgoing>) {
        let slot = self.state.pcct.pit.slot_mut(pit);
        if slot.timer_at <= now {
            slot.timer_at = Timestamp::NEVER;
        }
        if slot.expiry <= now && slot.is_satisfied() {
            self.state.end_slot(now, pit);
        } else if slot.expiry <= now {
            self.pending_context(now, pit, out).settle();
        } else if self.state.is_starved(now, pit) {
            self.retry(now, pit, out);
        } else {
            // The last upstream to expire, if a downstream waits longer.
            let pending = self.state.pcct.pit.out_records(pit).filter(|record| record.is_pending(now));
            let ends = pending.map(|record| record.expiry()).max();
            let deadline = self.state.pcct.pit.slot(pit).expiry;
            self.state.timers.arm_for(&mut self.state.pcct.pit, pit, ends.map_or(deadline, |ends| ends.min(deadline)));
        }
    }

    /// Returns the context of a PIT entry without a packet at hand.
    pub(crate) fn pending_context<'a>(
        &'a mut self,
        now: Timestamp,
        pit: PitRef,
        out: &'a mut Vec<Outgoing>,
    ) -> Context<'a> {
        let Engine { fib, state, hashes, delegation_hashes, .. } = self;
        let route = Route::of_pending(fib, &state.key, &state.pcct, pit, hashes, delegation_hashes);
        let (ingress, at_hand, has_barred) = (FaceId::INVALID, AtHand::Nothing, Cell::new(false));
        Context { state, out, route, now, pit, ingress, nack_mark: 0, at_hand, has_barred }
    }
}

impl Context<'_> {
    /// Ends the PIT entry if it has expired; otherwise arms its timer. Must be called once, last.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if self.state.pcct.pit.slot(self.pit).expiry > self.now {
            self.state.timers.arm(&mut self.state.pcct.pit, self.pit);
        } else {
            self.end();
        }
    }

    /// Interest finalize pipeline (guide, section 4.2.6): calls the strategy if the Interest is unsatisfied, and ends
    /// the PIT entry.
    #[cold]
    fn end(&mut self) {
        let mut is_traced = false;
        if !self.state.pcct.pit.slot(self.pit).is_satisfied() {
            is_traced = self.state.emitter.is_tracing() && self.trace_unanswered();
            self.ingress = FaceId::INVALID;
            self.at_hand = AtHand::Nothing;
            self.dispatch(Trigger::BeforeExpirePendingInterest);
        }
        self.state.end_slot(self.now, self.pit);
        if is_traced {
            self.state.emitter.end_trace();
        }
    }

    #[cold]
    fn trace_unanswered(&mut self) -> bool {
        let pcct = &self.state.pcct;
        let upstreams = pcct.pit.out_records(self.pit).filter(|record| record.nacked().is_none()).count();
        self.state.emitter.trace_unanswered(self.now, pcct.names.name(self.pit.entry), upstreams)
    }
}
