//! Interest finalize pipeline (NFD developer's guide, section 4.2.6), and the timers of PIT entries that lead to it.

use std::cell::Cell;

use namehop_hash::hash_with_nonce;
use namehop_packet::{FaceId, Outgoing, Timestamp};

use crate::engine::Engine;
use crate::engine::context::{AtHand, Context};
use crate::engine::core::Core;
use crate::engine::retry::is_pending;
use crate::engine::route::Route;
use crate::pcct::{Pcct, PitRef};
use crate::strategy::Trigger;
use crate::timer::{Timer, deadline_mark};

/// Kind of a strategy's timer; the timer that ends a PIT entry has kind 0.
const STRATEGY_TIMER: u8 = 1;

/// Returns the PIT entry that a timer was set for, if it has not ended.
#[inline]
fn slot_of(pcct: &Pcct, timer: &Timer) -> Option<PitRef> {
    pcct.find_slot_by_serial(timer.entry, timer.generation)
}

/// Returns whether a timer is still in force: its PIT entry has not ended, and no other timer has replaced it.
#[inline(always)]
fn is_current(pcct: &Pcct, timer: &Timer) -> bool {
    slot_of(pcct, timer).is_some()
        && (timer.kind() == STRATEGY_TIMER || timer.is_for_mark(pcct.deadline_mark(timer.entry)))
}

impl Core {
    /// Makes sure that a timer is set for the end of a PIT entry. A timer that is due earlier stays, and is set again
    /// when it fires. So most renewals of a PIT entry cost nothing.
    pub(crate) fn arm_timer(&mut self, pit: PitRef) {
        let deadline = self.pcct.slot(pit).expiry;
        self.arm_timer_for(pit, deadline);
    }

    /// Sets the timer for an earlier time: the end of the out-record, if a downstream waits longer.
    #[cold]
    pub(crate) fn watch_upstreams(&mut self, pit: PitRef, end: Timestamp) {
        self.arm_timer_for(pit, end);
    }

    #[inline]
    fn arm_timer_for(&mut self, pit: PitRef, deadline: Timestamp) {
        let slot = self.pcct.slot_mut(pit);
        if slot.timer_at > deadline {
            slot.timer_at = deadline;
            let (position, serial) = (slot.queue_position, slot.serial);
            if self.timers.schedule(deadline, position, serial, 0) {
                self.pcct.note_timer(position, deadline_mark(deadline));
            } else {
                // Without a timer, the entry stays until it is renewed, answered or evicted.
                self.pcct.slot_mut(pit).timer_at = Timestamp::NEVER;
            }
        }
    }

    /// Sets a timer that calls the strategy, unless one is already set.
    pub(crate) fn schedule_strategy_timer(&mut self, pit: PitRef, deadline: Timestamp) {
        let slot = self.pcct.slot(pit);
        if !slot.has_strategy_timer() {
            let is_set = self.timers.schedule(deadline, slot.queue_position, slot.serial, STRATEGY_TIMER);
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
        // Nonces of Interests that may still be looping go to the Dead Nonce List, unless cached Data will stop them.
        if slot.keeps_nonces() {
            self.insert_dead_nonces(now, pit);
        }
        self.pcct.close_slot(pit);
    }

    /// Adds all nonces that were sent upstream to the Dead Nonce List.
    pub(crate) fn insert_dead_nonces(&mut self, now: Timestamp, pit: PitRef) {
        let name_hash = self.pcct.entry(pit.entry).name_hash;
        for record in self.pcct.out_records(pit) {
            self.dead_nonces.insert(hash_with_nonce(name_hash, record.nonce), now);
        }
    }
}

impl Engine {
    /// Handles all timers that are due. `prefetches` says whether their PIT entries are prefetched.
    pub(crate) fn fire_timers(&mut self, now: Timestamp, prefetches: bool, out: &mut Vec<Outgoing>) {
        let mut due = std::mem::take(&mut self.core.due);
        let Core { timers, pcct, .. } = &mut self.core;
        while let Some(timer) = timers.pop_due(now, |timer| is_current(pcct, timer)) {
            due.push(timer);
        }
        for index in 0..due.len() {
            if prefetches
                && let Some(ahead) = due.get(index + self.core.lookahead)
                && let Some(pit) = slot_of(&self.core.pcct, ahead)
            {
                self.core.pcct.prefetch_pending(pit);
            }
            // The timer of a PIT entry that has ended has no effect.
            if let Some(pit) = slot_of(&self.core.pcct, &due[index]) {
                self.fire_timer(now, pit, due[index].kind() == STRATEGY_TIMER, out);
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
                self.pending_context(now, pit, out).dispatch_alone(Trigger::Timer);
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
        } else if self.core.is_starved(now, pit) {
            self.retry(now, pit, out);
        } else {
            // The last upstream to expire, if a downstream waits longer.
            let pending = self.core.pcct.out_records(pit).filter(|record| is_pending(record, now));
            let ends = pending.map(|record| record.expiry()).max();
            let deadline = self.core.pcct.slot(pit).expiry;
            self.core.arm_timer_for(pit, ends.map_or(deadline, |ends| ends.min(deadline)));
        }
    }

    /// Returns the context of a PIT entry without a packet at hand.
    pub(crate) fn pending_context<'a>(
        &'a mut self,
        now: Timestamp,
        pit: PitRef,
        out: &'a mut Vec<Outgoing>,
    ) -> Context<'a> {
        let Engine { fib, core, hashes, delegation_hashes, .. } = self;
        let route = Route::of_pending(fib, &core.key, &core.pcct, pit, hashes, delegation_hashes);
        let (ingress, at_hand, has_barred) = (FaceId::INVALID, AtHand::Nothing, Cell::new(false));
        Context { core, out, route, now, pit, ingress, nack_mark: 0, at_hand, has_barred }
    }
}
