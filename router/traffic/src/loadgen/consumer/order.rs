//! Sending order of a pattern's pending Interests, to find lost ones without scanning the table.

use std::collections::VecDeque;

use super::{Slot, SlotState};

/// Number of entries from which answered Interests are removed.
const MIN_ENTRIES: usize = 1 << 16;

/// Slot of an Interest, and its stamp while it is pending.
#[derive(Clone, Copy)]
struct Sent {
    slot_index: u32,
    stamp: u64,
}

impl Sent {
    fn is_pending(&self, slots: &[Slot]) -> bool {
        slots[self.slot_index as usize].stamp == self.stamp
    }
}

/// Sent Interests from the oldest to the newest. The entry of an answered Interest stays until it reaches the front or
/// the queue is compacted.
#[derive(Default)]
pub(super) struct SendingOrder {
    entries: VecDeque<Sent>,
    /// Number of entries from which the queue is compacted.
    full_at: usize,
}

impl SendingOrder {
    /// Appends the Interest in slot `slot_index`, which must be pending.
    pub(super) fn push(&mut self, slot_index: usize, slots: &[Slot]) {
        debug_assert!(slots[slot_index].state() == SlotState::Pending);
        if self.entries.len() >= self.full_at.max(MIN_ENTRIES) {
            // A lost Interest at the front retains all entries behind it. At least half of the entries are new since
            // the last compaction.
            self.entries.retain(|sent| sent.is_pending(slots));
            self.full_at = 2 * self.entries.len();
        }
        self.entries.push_back(Sent { slot_index: slot_index as u32, stamp: slots[slot_index].stamp });
    }

    /// Removes the oldest pending Interest and returns its slot, if `is_due` returns true for it.
    pub(super) fn take_oldest(&mut self, slots: &[Slot], is_due: impl Fn(Slot) -> bool) -> Option<usize> {
        while let Some(sent) = self.entries.front() {
            let slot_index = sent.slot_index as usize;
            let is_pending = sent.is_pending(slots);
            if is_pending && !is_due(slots[slot_index]) {
                return None;
            }
            self.entries.pop_front();
            if is_pending {
                return Some(slot_index);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(order: &mut SendingOrder, slots: &mut [Slot], slot_index: usize, sent_ns: u64) {
        slots[slot_index] = Slot::new(slot_index as u64, sent_ns, SlotState::Pending);
        order.push(slot_index, slots);
    }

    #[test]
    fn the_oldest_that_is_pending_is_found() {
        let mut order = SendingOrder::default();
        let mut slots = vec![Slot::default(); 8];
        for (slot_index, sent_ns) in [(3, 10), (1, 20), (5, 30)] {
            send(&mut order, &mut slots, slot_index, sent_ns);
        }
        assert_eq!(order.take_oldest(&slots, |slot| slot.sent_ns() < 10), None);
        slots[3].set(SlotState::Answered);
        assert_eq!(order.take_oldest(&slots, |slot| slot.sent_ns() < 20), None);
        // The slot is reused: the old Interest is not found in it.
        slots[1].set(SlotState::Answered);
        send(&mut order, &mut slots, 1, 40);
        assert_eq!(order.take_oldest(&slots, |slot| slot.sent_ns() < 35), Some(5));
        assert_eq!(order.take_oldest(&slots, |slot| slot.sent_ns() < 35), None);
        assert_eq!(order.take_oldest(&slots, |_| true), Some(1));
        assert_eq!(order.take_oldest(&slots, |_| true), None);
    }

    #[test]
    fn one_that_is_lost_does_not_keep_all_others() {
        let mut order = SendingOrder::default();
        let mut slots = vec![Slot::default(); 4096];
        send(&mut order, &mut slots, 0, 1);
        let mut most = 0;
        for sent_ns in 2..1_000_000 {
            let slot_index = 1 + sent_ns as usize % 4095;
            send(&mut order, &mut slots, slot_index, sent_ns);
            slots[slot_index].set(SlotState::Answered);
            most = most.max(order.entries.len());
        }
        assert!(most <= MIN_ENTRIES, "{most}");
        assert_eq!(order.take_oldest(&slots, |_| true), Some(0));
    }
}
