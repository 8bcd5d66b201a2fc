//! Interest finalize pipeline (NFD developer's guide, section 4.2.6), and the timers of PIT entries that lead to it.

use namehop_hash::hash_with_nonce;

use crate::engine::Engine;
use crate::engine::context::{AtHand, Context};
use crate::engine::core::Core;
use crate::engine::route::Route;
use crate::pcct::entry::Selectors;
use crate::pcct::{Pcct, PitRef};
use crate::schedule::Schedule;
use crate::strategy::Trigger;
use crate::timer::{Timer, deadline_mark};
use namehop_packet::{FaceId, Outgoing, Timestamp};

/// Bit of a timer's kind that tells a strategy's timer from the one that ends the PIT entry. The lower bits are the
/// selectors of the slot.
const STRATEGY_TIMER: u8 = 1 << 2;

/// The PIT entry that a timer was set for, if it has not ended.
fn slot_of(pcct: &Pcct, timer: &Timer) -> Option<PitRef> {
    pcct.find_slot_by_serial(timer.entry, Selectors::from_bits(timer.kind()), timer.generation)
}

/// Is a timer still in force? Not if its PIT entry has ended, nor if another timer has taken its place.
#[inline(always)]
fn is_current(pcct: &Pcct, timer: &Timer) -> bool {
    let watch = pcct.inline_watch(timer.entry);
    if watch.serial == timer.generation {
        timer.kind() & STRATEGY_TIMER != 0 || timer.is_for_mark(watch.deadline_mark)
    } else {
        pcct.has_outer_slots() && is_current_outside(pcct, timer)
    }
}

/// The same for PIT entries that may lie outside the table's entry.
#[cold]
#[inline(never)]
fn is_current_outside(pcct: &Pcct, timer: &Timer) -> bool {
    slot_of(pcct, timer).is_some_and(|pit| timer.kind() & STRATEGY_TIMER != 0 || timer.is_for(pcct.slot(pit).timer_at))
}

impl Core {
    /// Sees to it that a timer is set for the end of a PIT entry. A timer that is due earlier is left alone: when it fires,
    /// it is set anew. So most renewals of a PIT entry cost nothing.
    pub(crate) fn arm_timer(&mut self, pit: PitRef) {
        let slot = self.pcct.slot_mut(pit);
        if slot.timer_at > slot.expiry {
            slot.timer_at = slot.expiry;
            let (deadline, serial, selectors) = (slot.expiry, slot.serial, slot.selectors());
            if self.timers.schedule(deadline, pit.entry, serial, selectors.bits()) {
                self.pcct.note_timer(pit, deadline_mark(deadline));
            } else {
                // Nothing watches over it until it is renewed, answered or given up.
                self.pcct.slot_mut(pit).timer_at = Timestamp::NEVER;
            }
        }
    }

    /// Sets a timer that calls the strategy, unless one is set already.
    pub(crate) fn schedule_strategy_timer(&mut self, pit: PitRef, deadline: Timestamp) {
        let slot = self.pcct.slot(pit);
        if !slot.has_strategy_timer() {
            let (serial, kind) = (slot.serial, slot.selectors().bits() | STRATEGY_TIMER);
            let is_set = self.timers.schedule(deadline, pit.entry, serial, kind);
            self.pcct.slot_mut(pit).set_strategy_timer(is_set);
        }
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
            self.insert_dead_nonces(now, pit);
        }
        self.pcct.close_slot(pit);
    }

    /// Puts all nonces that were sent upstream on the Dead Nonce List.
    pub(crate) fn insert_dead_nonces(&mut self, now: Timestamp, pit: PitRef) {
        let name_hash = self.pcct.entry(pit.entry).name_hash;
        for record in self.pcct.out_records(pit) {
            self.dead_nonces.insert(hash_with_nonce(name_hash, record.nonce), now);
        }
    }
}

impl<S: Schedule> Engine<S> {
    /// Handles all timers that are due.
    pub(crate) fn fire_timers(&mut self, now: Timestamp, out: &mut Vec<Outgoing>) {
        let mut due = std::mem::take(&mut self.core.due);
        let Core { timers, pcct, .. } = &mut self.core;
        while let Some(timer) = timers.pop_due(now, |timer| is_current(pcct, timer)) {
            due.push(timer);
        }
        for index in 0..due.len() {
            if S::KIND.fetches_entries()
                && let Some(ahead) = due.get(index + self.core.lookahead)
                && self.core.pcct.is_inline_serial(ahead.entry, ahead.generation)
            {
                self.core.pcct.prefetch_entry(ahead.entry);
            }
            // The timer of a PIT entry that has ended finds nothing.
            if let Some(pit) = slot_of(&self.core.pcct, &due[index]) {
                self.fire_timer(now, pit, due[index].kind() & STRATEGY_TIMER != 0, out);
            }
        }
        due.clear();
        self.core.due = due;
    }

    fn fire_timer(&mut self, now: Timestamp, pit: PitRef, for_strategy: bool, out: &mut Vec<Outgoing>) {
        let slot = self.core.pcct.slot_mut(pit);
        if for_strategy {
            slot.set_strategy_timer(false);
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
        out: &'a mut Vec<Outgoing>,
    ) -> Context<'a> {
        let Engine { fib, core, hashes, delegation_hashes, .. } = self;
        let route = Route::of_pending(fib, &core.key, &core.pcct, pit, hashes, delegation_hashes);
        Context { core, out, route, now, pit, ingress: FaceId::INVALID, nack_mark: 0, at_hand: AtHand::Nothing }
    }
}
