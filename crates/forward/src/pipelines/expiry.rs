//! The end of PIT entries, and the timers that bring it about.

use namehop_hash::hash_with_nonce;

use crate::buffer::BufferPool;
use crate::engine::Engine;
use crate::engine::context::{AtHand, Context};
use crate::engine::core::Core;
use crate::engine::route::Route;
use crate::face::FaceId;
use crate::packet::Outgoing;
use crate::pcct::PitRef;
use crate::pcct::entry::Selectors;
use crate::schedule::{Schedule, ScheduleKind};
use crate::strategy::Trigger;
use crate::time::Timestamp;

/// Bit of a timer's kind that tells a strategy's timer from the one that ends the PIT entry. The lower bits are the
/// selectors of the slot.
const STRATEGY_TIMER: u8 = 1 << 2;

impl<P: BufferPool> Core<P> {
    /// Sees to it that a timer is set for the end of a PIT entry. A timer that is due earlier is left alone: when it fires,
    /// it is set anew. So most renewals of a PIT entry cost nothing.
    pub(crate) fn arm_timer(&mut self, pit: PitRef) {
        let slot = self.pcct.slot_mut(pit);
        if slot.timer_at > slot.expiry {
            slot.timer_at = slot.expiry;
            let (deadline, serial, selectors) = (slot.expiry, slot.serial, slot.selectors());
            self.timers.schedule(deadline, pit.entry, serial, selectors.bits());
        }
    }

    /// Sets a timer that calls the strategy.
    pub(crate) fn schedule_strategy_timer(&mut self, pit: PitRef, deadline: Timestamp) {
        let slot = self.pcct.slot(pit);
        let (serial, kind) = (slot.serial, slot.selectors().bits() | STRATEGY_TIMER);
        self.timers.schedule(deadline, pit.entry, serial, kind);
    }

    /// Ends a PIT entry.
    pub(crate) fn end_slot(&mut self, now: Timestamp, pit: PitRef) {
        let slot = self.pcct.slot(pit);
        if slot.is_satisfied() {
            self.counters.satisfied_interests += 1;
        } else {
            self.counters.unsatisfied_interests += 1;
        }
        // Nonces that may still be on their way back are remembered, unless cached Data will stop them.
        if slot.keeps_nonces() {
            self.bury_nonces(now, pit);
        }
        self.pcct.close_slot(pit);
    }

    /// Puts all nonces that were sent upstream on the Dead Nonce List.
    pub(crate) fn bury_nonces(&mut self, now: Timestamp, pit: PitRef) {
        let name_hash = self.pcct.entry(pit.entry).name_hash;
        for record in self.pcct.out_records(pit) {
            self.dead_nonces.insert(hash_with_nonce(name_hash, record.nonce), now);
        }
    }
}

impl<P: BufferPool, S: Schedule> Engine<P, S> {
    /// Handles all timers that are due.
    pub(crate) fn fire_timers(&mut self, now: Timestamp, out: &mut Vec<Outgoing<P::Buffer>>) {
        let mut due = std::mem::take(&mut self.core.due);
        self.core.timers.poll(now, |entry, serial, kind| due.push((entry, serial, kind)));
        for index in 0..due.len() {
            if S::KIND != ScheduleKind::Naive
                && let Some(&(entry, serial, _)) = due.get(index + self.core.lookahead)
                && self.core.pcct.is_inline_serial(entry, serial)
            {
                self.core.pcct.prefetch_entry(entry);
            }
            let (entry, serial, kind) = due[index];
            // The timer of a PIT entry that has ended finds nothing.
            if let Some(pit) = self.core.pcct.find_slot_by_serial(entry, Selectors::from_bits(kind), serial) {
                self.fire_timer(now, pit, kind & STRATEGY_TIMER != 0, out);
            }
        }
        due.clear();
        self.core.due = due;
    }

    fn fire_timer(&mut self, now: Timestamp, pit: PitRef, for_strategy: bool, out: &mut Vec<Outgoing<P::Buffer>>) {
        let slot = self.core.pcct.slot_mut(pit);
        if for_strategy {
            if !slot.is_satisfied() && slot.expiry > now {
                let mut context = self.pending_context(now, pit, out);
                context.dispatch(Trigger::Timer);
                context.settle();
            }
            return;
        }
        if slot.timer_at <= now {
            slot.timer_at = Timestamp::NEVER;
        }
        if slot.expiry <= now && slot.is_satisfied() {
            self.core.end_slot(now, pit);
        } else if slot.expiry <= now {
            self.pending_context(now, pit, out).settle();
        } else {
            self.core.arm_timer(pit);
        }
    }

    /// The context of a PIT entry without a packet at hand.
    pub(crate) fn pending_context<'a>(
        &'a mut self,
        now: Timestamp,
        pit: PitRef,
        out: &'a mut Vec<Outgoing<P::Buffer>>,
    ) -> Context<'a, P> {
        let Engine { fib, core, hashes, hint_hashes, .. } = self;
        let route = Route::of_pending(fib, &core.key, &core.pcct, pit, hashes, hint_hashes);
        Context { core, out, route, now, pit, ingress: FaceId::INVALID, nack_mark: 0, at_hand: AtHand::Nothing }
    }
}
