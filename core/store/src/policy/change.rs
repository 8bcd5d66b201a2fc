//! A change from one policy to another at run time.
//!
//! The newer policy makes the decisions from the start. It takes over the packets of the older one a few at a time,
//! so that the change never takes a long pause. If the store is full, packets that are still with the older policy
//! are evicted first: they are the older ones.

use super::Policy;
use crate::CachePolicy;
use crate::eviction::{Ahead, Arrival};

/// A pair of policies; each packet is known to one of them.
pub(crate) struct Change {
    /// `None` only while the change begins or ends.
    pub(crate) older: Option<Policy>,
    pub(crate) newer: Policy,
}

impl Change {
    /// Transfers up to `portion` packets; returns `true` when none is left.
    pub(crate) fn go_on(&mut self, portion: usize, arrival: impl Fn(u32) -> Arrival) -> bool {
        let Some(older) = &mut self.older else { return true };
        for _ in 0..portion {
            let Some(next) = older.victim() else { return true };
            older.removed(next);
            self.newer.admitted(next, &arrival(next));
        }
        older.is_empty()
    }

    /// Returns the policy that has the next victim.
    fn has_victim(&mut self) -> &mut Policy {
        match &mut self.older {
            Some(older) if !older.is_empty() => older,
            _ => &mut self.newer,
        }
    }

    /// Reports an event of a packet to both policies; the one that does not know the packet ignores it.
    fn notify(&mut self, mut notify: impl FnMut(&mut Policy)) {
        if let Some(older) = &mut self.older {
            notify(older);
        }
        notify(&mut self.newer);
    }
}

impl CachePolicy for Change {
    fn counts(&self) -> bool {
        self.newer.counts()
    }

    fn expects(&self) -> bool {
        self.newer.expects()
    }

    fn admits_most(&self) -> bool {
        self.newer.admits_most()
    }

    fn compares_each(&self) -> bool {
        self.newer.compares_each()
    }

    fn requested(&mut self, name_hash: u64) {
        self.newer.requested(name_hash);
    }

    /// While the older policy has packets to evict, the newer one need not evict any.
    fn admits(&mut self, arrival: &Arrival, is_full: bool) -> bool {
        let is_full = is_full && self.older.as_ref().is_none_or(|older| older.is_empty());
        self.newer.admits(arrival, is_full)
    }

    fn admitted(&mut self, id: u32, arrival: &Arrival) {
        self.newer.admitted(id, arrival);
    }

    fn hit(&mut self, id: u32) {
        self.notify(|policy| policy.hit(id));
    }

    fn refreshed(&mut self, id: u32, arrival: &Arrival) {
        self.notify(|policy| policy.refreshed(id, arrival));
    }

    fn evicted(&mut self, id: u32) {
        self.notify(|policy| policy.evicted(id));
    }

    fn removed(&mut self, id: u32) {
        self.notify(|policy| policy.removed(id));
    }

    fn victim(&mut self) -> Option<u32> {
        self.has_victim().victim()
    }

    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        match &self.older {
            Some(older) if !older.is_empty() => older.upcoming(ahead),
            _ => self.newer.upcoming(ahead),
        }
    }

    fn prefetch(&self, id: u32) {
        self.newer.prefetch(id);
    }

    fn prefetch_hit(&self, id: u32) {
        self.newer.prefetch_hit(id);
    }

    fn prefetch_request(&self, name_hash: u64) {
        self.newer.prefetch_request(name_hash);
    }

    fn prefetch_name(&self, name_hash: u64) {
        self.newer.prefetch_name(name_hash);
    }

    fn prefetch_victim(&self, id: u32, name_hash: u64) {
        self.newer.prefetch_victim(id, name_hash);
    }

    fn len(&self) -> usize {
        self.older.as_ref().map_or(0, CachePolicy::len) + self.newer.len()
    }
}
