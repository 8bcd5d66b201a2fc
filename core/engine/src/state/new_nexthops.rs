//! The search for pending Interests that a new next hop concerns: all under its prefix.
//!
//! A walk over the PIT finds them in parts; the rest waits in a short queue. If too many new next hops wait, the oldest
//! is discarded: Interests that were pending before it came use it only if they are sent again.

use std::collections::VecDeque;

use namehop_wire::{Name, NameRef};

use super::pit_walk::{GAP_COST, LOOK_COST, Met, PitWalk, STRATEGY_COST, WORK};
use crate::fib::NextHop;
use crate::pcct::{Pcct, PitRef};

/// Maximum number of waiting new next hops; a further one discards the oldest.
const MAX_WAITING: usize = 64;

/// A new next hop that some pending Interests may not have been notified of.
struct NewNextHop {
    prefix: Name,
    depth: usize,
    nexthop: NextHop,
    walk: PitWalk,
    /// Serial number of the last slot opened before the change; later slots were forwarded by the new FIB from the
    /// start.
    last_serial: u32,
}

impl NewNextHop {
    /// Returns whether the slot is unsatisfied, under the prefix, and opened before the change. Reads one or two cache
    /// lines of most slots.
    fn concerns(&self, pcct: &Pcct, pit: PitRef) -> bool {
        let entry = pcct.names.entry(pit.entry);
        let by_name = entry.delegation_bytes == 0;
        if by_name && usize::from(entry.depth) < self.depth {
            return false;
        }
        let routed_by = if by_name { pcct.names.name(pit.entry) } else { pcct.names.delegation(pit.entry) };
        if !routed_by.starts_with(self.prefix.as_ref().value()) {
            return false;
        }
        let slot = pcct.pit.slot(pit);
        let is_later = slot.serial.wrapping_sub(self.last_serial).cast_signed() > 0;
        !slot.is_satisfied() && !is_later
    }
}

/// A PIT slot that a new next hop may concern.
pub(crate) struct Concerned {
    pub(crate) pit: PitRef,
    pub(crate) nexthop: NextHop,
    /// Number of components of the prefix that got the next hop.
    pub(crate) depth: usize,
}

/// New next hops with an unfinished walk, oldest first.
pub(crate) struct NewNextHops {
    waiting: VecDeque<NewNextHop>,
    /// Work that may be done before the next call of `advance`.
    work_left: usize,
}

impl NewNextHops {
    pub(super) fn new() -> Self {
        NewNextHops { waiting: VecDeque::new(), work_left: WORK }
    }

    /// Returns whether no new next hop waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a new next hop of a prefix. The FIB must have changed already.
    pub(crate) fn add(&mut self, pcct: &Pcct, prefix: NameRef<'_>, nexthop: NextHop) {
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(NewNextHop {
            prefix: prefix.to_owned(),
            depth: prefix.len(),
            nexthop,
            walk: PitWalk::new(&pcct.pit),
            last_serial: pcct.pit.last_serial(),
        });
    }

    /// Allows as much work as may be done between two calls of `advance`.
    pub(crate) fn allow_work(&mut self, pcct: &Pcct) {
        self.work_left = WORK;
        if pcct.pit.len() == 0 {
            self.waiting.clear();
        }
    }

    /// Continues the walks until a PIT slot is found. Returns `None` if the work is done, or as much as is allowed.
    pub(crate) fn next(&mut self, pcct: &Pcct) -> Option<Concerned> {
        while self.work_left > 0
            && let Some(new) = self.waiting.front_mut()
        {
            let mut found = None;
            let cost = match new.walk.next(&pcct.pit, |ahead| pcct.names.prefetch_name(ahead.entry)) {
                Met::End => {
                    self.waiting.pop_front();
                    continue;
                }
                Met::Gap => GAP_COST,
                Met::Slot(pit) if new.concerns(pcct, pit) => {
                    found = Some(Concerned { pit, nexthop: new.nexthop, depth: new.depth });
                    STRATEGY_COST
                }
                Met::Slot(_) => LOOK_COST,
            };
            self.work_left = self.work_left.saturating_sub(cost);
            if found.is_some() {
                return found;
            }
        }
        None
    }
}
