//! The router's schedule. Packets are handled in the order of arrival.

use std::vec::Drain;

use namehop_packet::{DropReason, Incoming, Outgoing, Timestamp};
use namehop_wire::tlv::types;

use super::part_of;
use crate::burst::{BurstState, Group, Prepared};
use crate::engine::Engine;
use crate::parse::{Parsed, ParsedKind};

impl Engine {
    /// Handles due timers and then a burst of packets, in order. Empties the burst and appends the packets to send to
    /// `out`. `now` must not decrease between calls.
    pub fn process(&mut self, now: Timestamp, burst: &mut Vec<Incoming>, out: &mut Vec<Outgoing>) {
        self.begin_burst(now, burst.len(), true, out);
        self.run(now, burst, out);
        self.end_burst();
    }

    /// Handles Data that belongs to another engine. Data that no Interest here waits for is discarded without being
    /// counted. Must be called after [`process`](Self::process) in the same poll iteration.
    pub fn process_offered(&mut self, now: Timestamp, burst: &mut Vec<Incoming>, out: &mut Vec<Outgoing>) {
        burst.retain(|packet| self.awaits(packet));
        self.run(now, burst, out);
        self.flush_tier();
        self.fib.quiescent();
    }

    /// Decodes and handles a burst of packets. The burst is emptied.
    fn run(&mut self, now: Timestamp, burst: &mut Vec<Incoming>, out: &mut Vec<Outgoing>) {
        let mut state = std::mem::replace(&mut self.burst_state, BurstState::empty());
        let lanes = self.lanes;
        while !burst.is_empty() {
            let count = part_of(burst.len());
            state.parse(&burst[..count], Some(&self.name_limits()), |_| ());
            self.in_stages(
                burst.drain(..count),
                &mut state,
                |engine, packets, state, group| state.look_ahead(engine, packets, group, lanes),
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
        let group = self.lookahead;
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
            let (next, second) = (Group::of(with_contents..contents_end), Group::of(with_entries..entries_end));
            state.prefetch_deeper(self, second, next, &mut forecast);
            (with_contents, with_entries) = (contents_end, entries_end);
            for packet in packets.by_ref().take(handled_end - handled) {
                handle(self, packet, state.prepared(handled, handled));
                handled += 1;
            }
        }
    }

    /// Passes a decoded packet to its pipeline, and counts it if it is dropped. `prepared` must be the state of this
    /// packet.
    // Without the attribute, the compiler outlines this function and inlines less of its callees, because pipelines
    // record trace steps. That costs 90 more instructions for an Interest and 70 for Data, counted by `make cost-test`.
    #[inline(always)]
    pub fn handle(&mut self, now: Timestamp, packet: Incoming, prepared: Prepared<'_>, out: &mut Vec<Outgoing>) {
        let face = packet.face;
        let reparsed;
        let prepared = match prepared.parsed.kind {
            ParsedKind::Unread => {
                reparsed = self.parse_again(&packet);
                prepared.reparsed(&reparsed)
            }
            _ => prepared,
        };
        let handled = match prepared.parsed.kind {
            ParsedKind::Interest => self.incoming_interest::<false>(now, packet, prepared, None, out),
            ParsedKind::Data => self.incoming_data(now, packet, prepared, out),
            ParsedKind::Nack(reason) => self.incoming_nack(now, packet, reason, out),
            ParsedKind::Unread | ParsedKind::Malformed => Err(self.malformed(&packet)),
        };
        if let Err(reason) = handled {
            self.state.emitter.count_drop(face, reason);
        }
    }

    /// Decodes an Interest that was skipped for the length of its name, unless it must be refused for that: the
    /// allowance for long names may be larger than predicted.
    #[cold]
    fn parse_again(&self, packet: &Incoming) -> Parsed {
        let mut parsed = Parsed::default();
        let bytes = packet.buffer.bytes();
        parsed.parse(packet, || {
            self.state.limits.check_unread(packet.face, bytes, &self.state.limits.allowance()).is_ok()
        });
        parsed
    }

    /// Counts a packet that was not decoded. Returns the drop reason.
    #[cold]
    fn malformed(&mut self, packet: &Incoming) -> DropReason {
        // A packet without a name is not traced, and its drop is not a step of the previous packet's trace.
        self.state.emitter.end_trace_if_on();
        let counters = &mut self.state.emitter.counters;
        let bytes = packet.buffer.bytes();
        let mut refused = Ok(());
        match (bytes.first().copied().map(u32::from), packet.fields.nack) {
            (Some(types::INTEREST), nack) => {
                counters.in_interests += 1;
                // The reason is the same whether the Interest was decoded or not.
                if nack.is_none() {
                    refused = self.state.limits.check_unread(packet.face, bytes, &self.state.limits.allowance());
                }
            }
            (Some(types::DATA), None) => counters.in_data += 1,
            _ => return DropReason::Malformed,
        }
        if !self.state.faces.exists(packet.face) {
            return DropReason::UnknownFace;
        }
        refused.err().unwrap_or(DropReason::Malformed)
    }
}
