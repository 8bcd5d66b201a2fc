//! Notifies strategies of new next hops, in bounded parts: a new next hop concerns all pending Interests under its
//! prefix.

use namehop_packet::{Outgoing, Timestamp};
use namehop_wire::NameRef;

use crate::engine::Engine;
use crate::fib::NextHop;
use crate::state::new_nexthops::Concerned;
use crate::strategy::Trigger;

impl Engine {
    /// Notifies strategies that a FIB entry got a new next hop, so that they may send pending Interests there. Must be
    /// called after the FIB has changed.
    ///
    /// At most 4096 PIT slots are examined over all calls since the last [`advance`](Self::advance). Later calls of
    /// `advance`, which [`next_deadline`](Self::next_deadline) schedules, do the rest. If more than 64 new next hops
    /// wait, the oldest is discarded.
    pub fn new_nexthop(&mut self, now: Timestamp, prefix: NameRef<'_>, nexthop: NextHop, out: &mut Vec<Outgoing>) {
        if self.state.pcct.pit.len() == 0 {
            return;
        }
        self.state.new_nexthops.add(&self.state.pcct, prefix, nexthop);
        self.notify_strategies(now, out);
        self.fib.quiescent();
    }

    /// Does the next part of the work.
    pub(crate) fn continue_new_nexthops(&mut self, now: Timestamp, out: &mut Vec<Outgoing>) {
        self.state.new_nexthops.allow_work(&self.state.pcct);
        self.notify_strategies(now, out);
    }

    fn notify_strategies(&mut self, now: Timestamp, out: &mut Vec<Outgoing>) {
        while let Some(concerned) = self.state.new_nexthops.next(&self.state.pcct) {
            self.notify_strategy(now, &concerned, out);
        }
    }

    fn notify_strategy(&mut self, now: Timestamp, concerned: &Concerned, out: &mut Vec<Outgoing>) {
        let Concerned { pit, nexthop, depth } = *concerned;
        self.state.forget_removed_faces(pit);
        let mut context = self.pending_context(now, pit, out);
        // A longer prefix with its own next hops hides the changed one, and the next hop may have been removed since.
        let is_routed_by = context.route.prefix_len == depth;
        if is_routed_by && context.route.nexthops.contains(&nexthop.face) {
            context.dispatch_alone(Trigger::AfterNewNextHop(nexthop));
        }
    }
}
