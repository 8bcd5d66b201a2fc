//! Notifies strategies of new next hops, in bounded parts.
//!
//! A new next hop concerns all pending Interests under its prefix. A walk over the PIT finds them in parts; the rest
//! waits in a short queue. If too many new next hops wait, the oldest is discarded: Interests that were pending before
//! it came use it only if they are sent again.

use std::collections::VecDeque;

use namehop_packet::{Outgoing, Timestamp};
use namehop_wire::{Name, NameRef};

use super::Engine;
use super::pit_walk::{GAP_COST, LOOK_COST, Met, PitWalk, STRATEGY_COST, WORK};
use crate::fib::NextHop;
use crate::pcct::{Pcct, PitRef};
use crate::strategy::Trigger;

/// Maximum number of waiting new next hops; a further one discards the oldest.
const MAX_WAITING: usize = 64;
/// A new next hop that some pending Interests may not have been notified of.
struct Job {
    prefix: Name,
    depth: usize,
    nexthop: NextHop,
    walk: PitWalk,
    /// Serial number of the last slot opened before the change; later slots were forwarded by the new FIB from the
    /// start.
    last_serial: u32,
}

impl Job {
    /// Returns whether the slot is unsatisfied, under the prefix, and opened before the change. Reads one or two cache
    /// lines of most slots.
    fn concerns(&self, pcct: &Pcct, pit: PitRef) -> bool {
        let entry = pcct.entry(pit.entry);
        let by_name = entry.delegation_bytes == 0;
        if by_name && usize::from(entry.depth) < self.depth {
            return false;
        }
        let routed_by = if by_name { pcct.name(pit.entry) } else { pcct.delegation(pit.entry) };
        if !routed_by.starts_with(self.prefix.as_ref().value()) {
            return false;
        }
        let slot = pcct.slot(pit);
        let is_later = slot.serial.wrapping_sub(self.last_serial).cast_signed() > 0;
        !slot.is_satisfied() && !is_later
    }
}

/// New next hops with an unfinished walk, oldest first.
pub(crate) struct NewNextHops {
    waiting: VecDeque<Job>,
    /// Work that may be done before the next call of `advance`.
    work_left: usize,
}

impl NewNextHops {
    pub(crate) fn new() -> Self {
        NewNextHops { waiting: VecDeque::new(), work_left: WORK }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl Engine {
    /// Notifies strategies that a FIB entry got a new next hop, so that they may send pending Interests there. Must be
    /// called after the FIB has changed.
    ///
    /// At most 4096 PIT slots are examined over all calls since the last [`advance`](Self::advance). Later calls of
    /// `advance`, which [`next_deadline`](Self::next_deadline) schedules, do the rest. If more than 64 new next hops
    /// wait, the oldest is discarded.
    pub fn new_nexthop(&mut self, now: Timestamp, prefix: NameRef<'_>, nexthop: NextHop, out: &mut Vec<Outgoing>) {
        let pcct = &self.core.pcct;
        if pcct.pit_len() == 0 {
            return;
        }
        let job = Job {
            prefix: prefix.to_owned(),
            depth: prefix.len(),
            nexthop,
            walk: PitWalk::new(pcct),
            last_serial: pcct.last_serial(),
        };
        let waiting = &mut self.core.new_nexthops.waiting;
        if waiting.len() >= MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(job);
        self.work_on_new_nexthops(now, out);
        self.fib.quiescent();
    }

    /// Does the next part of the work.
    pub(super) fn continue_new_nexthops(&mut self, now: Timestamp, out: &mut Vec<Outgoing>) {
        self.core.new_nexthops.work_left = WORK;
        if self.core.pcct.pit_len() == 0 {
            self.core.new_nexthops.waiting.clear();
        }
        self.work_on_new_nexthops(now, out);
    }

    fn work_on_new_nexthops(&mut self, now: Timestamp, out: &mut Vec<Outgoing>) {
        while self.core.new_nexthops.work_left > 0
            && let Some(mut job) = self.core.new_nexthops.waiting.pop_front()
        {
            if !self.work_on(now, &mut job, out) {
                self.core.new_nexthops.waiting.push_front(job);
            }
        }
    }

    /// Continues with one new next hop. Returns whether it is finished; if not, the work budget is used up.
    fn work_on(&mut self, now: Timestamp, job: &mut Job, out: &mut Vec<Outgoing>) -> bool {
        while self.core.new_nexthops.work_left > 0 {
            let pcct = &self.core.pcct;
            let cost = match job.walk.next(pcct, |pcct, ahead| pcct.prefetch_name(ahead)) {
                Met::End => return true,
                Met::Gap => GAP_COST,
                Met::Slot(pit) if job.concerns(pcct, pit) => {
                    self.tell_strategy(now, pit, job, out);
                    STRATEGY_COST
                }
                Met::Slot(_) => LOOK_COST,
            };
            let work_left = &mut self.core.new_nexthops.work_left;
            *work_left = work_left.saturating_sub(cost);
        }
        false
    }

    fn tell_strategy(&mut self, now: Timestamp, pit: PitRef, job: &Job, out: &mut Vec<Outgoing>) {
        self.core.forget_removed_faces(pit);
        let mut context = self.pending_context(now, pit, out);
        // A longer prefix with its own next hops hides the changed one, and the next hop may have been removed since.
        let is_routed_by = context.route.prefix_len == job.depth;
        if is_routed_by && context.route.nexthops.contains(&job.nexthop.face) {
            context.dispatch_alone(Trigger::AfterNewNextHop(job.nexthop));
        }
    }
}
