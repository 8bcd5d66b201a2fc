//! The router's schedule. Packets are handled in the order of arrival.

use std::vec::Drain;

use namehop_packet::{Incoming, Outgoing, Timestamp};

use super::burst::{BurstState, Group, Prepared};
use super::{FibTags, part_of};
use crate::engine::Engine;

impl Engine {
    /// Decodes and handles a burst of packets. The burst is emptied.
    pub(crate) fn run(&mut self, now: Timestamp, burst: &mut Vec<Incoming>, out: &mut Vec<Outgoing>) {
        let mut state = std::mem::replace(&mut self.burst_state, BurstState::empty());
        let lanes = self.core.lanes;
        while !burst.is_empty() {
            let count = part_of(burst.len());
            state.parse(&burst[..count], Some(&self.name_limits()), |_| ());
            self.in_stages(
                burst.drain(..count),
                &mut state,
                |engine, packets, state, group| {
                    state.hash_names(engine, packets, group, lanes, Some(engine.name_limits()));
                    state.prefetch_buckets(engine, packets, group, true);
                },
                |engine, packet, prepared| engine.handle(now, packet, prepared, out),
            );
        }
        self.burst_state = state;
    }

    /// Takes decoded packets through the stages in groups, each of which advances one stage in every step. While one
    /// group is handled, three others are in flight: what the entries of the next group point to, the entries of the
    /// second, and the buckets of the just hashed names of the third. Hashing takes long enough to hide memory latency
    /// even in the first steps, when there is nothing to handle yet.
    ///
    /// `look_ahead` hashes the names of a group and prefetches their buckets; `handle` handles a packet.
    #[inline(always)]
    pub fn in_stages(
        &mut self,
        mut packets: Drain<'_, Incoming>,
        state: &mut BurstState,
        look_ahead: impl Fn(&Engine, &[Incoming], &mut BurstState, Group),
        mut handle: impl FnMut(&mut Engine, Incoming, Prepared<'_>),
    ) {
        let count = packets.as_slice().len();
        let group = self.core.lookahead;
        let mut forecast = self.forecast();
        let (mut handled, mut with_contents, mut with_entries, mut with_buckets) = (0, 0, 0, 0);
        while handled < count {
            // Each stage advances to where the previous stage ended in the last step.
            let (handled_end, contents_end, entries_end) = (with_contents, with_entries, with_buckets);
            let buckets_end = count.min(with_buckets + group);
            if with_buckets < buckets_end {
                let ahead = &packets.as_slice()[with_buckets - handled..buckets_end - handled];
                let hashed = Group::of(with_buckets..buckets_end);
                look_ahead(self, ahead, state, hashed);
                state.prefetch_named_entries(self, ahead, hashed);
                with_buckets = buckets_end;
            }
            state.prefetch_entries(self, Group::of(with_entries..entries_end), FibTags::First, &mut forecast);
            with_entries = entries_end;
            state.prefetch_contents(self, Group::of(with_contents..contents_end));
            with_contents = contents_end;
            for packet in packets.by_ref().take(handled_end - handled) {
                handle(self, packet, state.prepared(handled, handled));
                handled += 1;
            }
        }
    }
}
