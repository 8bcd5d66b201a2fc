//! The timers of PIT entries: one that ends the entry, and one that its strategy may set.

use namehop_packet::Timestamp;
use namehop_table::TableError;

use crate::pcct::{Pit, PitRef};
use crate::timer::{Timer, TimerWheel, deadline_mark};

/// Kind of a timer that ends a PIT entry.
const END_TIMER: u8 = 0;
/// Kind of a strategy's timer.
const STRATEGY_TIMER: u8 = 1;

/// The timers of all PIT entries of one engine.
pub(crate) struct PitTimers {
    wheel: TimerWheel,
    /// Reused, to avoid allocations.
    due: Vec<Timer>,
}

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimerPurpose {
    /// The PIT entry, or the last out-record of it, ends.
    End,
    /// The strategy asked to be called.
    Strategy,
}

/// Returns the PIT entry that a timer was set for, if it has not ended.
#[inline]
fn slot_of(slots: &Pit, timer: &Timer) -> Option<PitRef> {
    slots.find_by_serial(timer.entry, timer.generation)
}

/// Returns whether a timer is still in force: its PIT entry has not ended, and no other timer has replaced it.
#[inline(always)]
fn is_current(slots: &Pit, timer: &Timer) -> bool {
    slot_of(slots, timer).is_some()
        && (timer.kind() == STRATEGY_TIMER || timer.is_for_mark(slots.deadline_mark(timer.entry)))
}

impl PitTimers {
    /// Creates the timers of a PIT of `pit_capacity` entries, of which at most `new_timers` are set during 2.1 s.
    ///
    /// # Errors
    /// If the address space cannot be reserved.
    pub(super) fn new(pit_capacity: usize, new_timers: usize) -> Result<Self, TableError> {
        Ok(PitTimers { wheel: TimerWheel::new(Timestamp::default(), pit_capacity, new_timers)?, due: Vec::new() })
    }

    /// Makes sure that a timer is set for the end of a PIT entry. A timer that is due earlier stays, and is set again
    /// when it fires. So most renewals of a PIT entry cost nothing.
    pub(crate) fn arm(&mut self, slots: &mut Pit, pit: PitRef) {
        let deadline = slots.slot(pit).expiry;
        self.arm_for(slots, pit, deadline);
    }

    /// Sets the timer for an earlier time: the end of the out-record, if a downstream waits longer.
    #[cold]
    pub(crate) fn watch_upstreams(&mut self, slots: &mut Pit, pit: PitRef, end: Timestamp) {
        self.arm_for(slots, pit, end);
    }

    /// Sets the timer for `deadline`, unless it is due earlier.
    #[inline]
    pub(crate) fn arm_for(&mut self, slots: &mut Pit, pit: PitRef, deadline: Timestamp) {
        let slot = slots.slot_mut(pit);
        if slot.timer_at > deadline {
            slot.timer_at = deadline;
            let (position, serial) = (slot.queue_position, slot.serial);
            if self.wheel.schedule(deadline, position, serial, END_TIMER) {
                slots.note_timer(position, deadline_mark(deadline));
            } else {
                // Without a timer, the entry stays until it is renewed, answered or evicted.
                slots.slot_mut(pit).timer_at = Timestamp::NEVER;
            }
        }
    }

    /// Sets a timer that calls the strategy, unless one is already set.
    pub(crate) fn arm_for_strategy(&mut self, slots: &mut Pit, pit: PitRef, deadline: Timestamp) {
        let slot = slots.slot(pit);
        if !slot.has_strategy_timer() {
            let is_set = self.wheel.schedule(deadline, slot.queue_position, slot.serial, STRATEGY_TIMER);
            slots.slot_mut(pit).set_strategy_timer(is_set);
        }
    }

    /// Collects the timers that are due, for [`due`](Self::due). Returns their number.
    pub(crate) fn collect_due(&mut self, slots: &Pit, now: Timestamp) -> usize {
        self.due.clear();
        while let Some(timer) = self.wheel.pop_due(now, |timer| is_current(slots, timer)) {
            self.due.push(timer);
        }
        self.due.len()
    }

    /// Returns the PIT entry and the purpose of one of the timers [collected](Self::collect_due) last; `None` if there
    /// is no timer with this index, or if the timer of that PIT entry has no effect, because the entry has ended.
    #[inline]
    pub(crate) fn due(&self, slots: &Pit, index: usize) -> Option<(PitRef, TimerPurpose)> {
        let timer = self.due.get(index)?;
        let purpose = if timer.kind() == STRATEGY_TIMER { TimerPurpose::Strategy } else { TimerPurpose::End };
        slot_of(slots, timer).map(|pit| (pit, purpose))
    }

    /// Returns when to call the engine next for its timers; `None` if there are none.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.wheel.next_deadline()
    }

    /// Returns the number of timers, including stale ones.
    pub(crate) fn len(&self) -> usize {
        self.wheel.len()
    }
}
