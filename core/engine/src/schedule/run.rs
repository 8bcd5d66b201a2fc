//! The order of prefetches and packets, one function for each schedule. Packets are handled in the order of arrival.

use std::vec::Drain;

use namehop_hash::Lanes;
use namehop_packet::{Incoming, Outgoing, Timestamp};

use super::burst::{BurstState, Guess};
use super::{MAX_BURST, Schedule, ScheduleKind};
use crate::engine::Engine;
use crate::flow::{BlockClock, FlowBlock};
use crate::parse::Kind;

impl<S: Schedule> Engine<S> {
    /// Decodes and handles a burst of packets. The burst is emptied.
    pub(crate) fn run(&mut self, now: Timestamp, burst: &mut Vec<Incoming>, out: &mut Vec<Outgoing>) {
        let mut state = std::mem::take(&mut self.burst_state);
        while !burst.is_empty() {
            // Parts have equal size: a few remaining packets would wait for memory without other work.
            let count = burst.len().div_ceil(burst.len().div_ceil(MAX_BURST));
            self.parse(&burst[..count], &mut state);
            self.execute(now, burst.drain(..count), &mut state, out);
        }
        self.burst_state = state;
    }

    /// Decodes up to [`MAX_BURST`] packets.
    fn parse(&mut self, packets: &[Incoming], state: &mut BurstState) {
        let Engine { core, clock, .. } = self;
        let long_names = core.long_names.total();
        clock.start();
        for (packet, parsed) in packets.iter().zip(&mut state.parsed) {
            parsed.parse(packet, |bytes| S::IS_STRIPPED || core.check_unread(packet.face, bytes, &long_names).is_ok());
            clock.lap(if parsed.kind == Kind::Data { FlowBlock::DataDecoding } else { FlowBlock::InterestDecoding });
        }
    }

    /// Passes decoded packets to the pipelines; the prefetch plane runs ahead as the schedule says.
    fn execute(
        &mut self,
        now: Timestamp,
        packets: Drain<'_, Incoming>,
        state: &mut BurstState,
        out: &mut Vec<Outgoing>,
    ) {
        match S::KIND {
            ScheduleKind::Naive => self.run_naive(now, packets, state, out),
            ScheduleKind::BucketPrefetch => self.run_bucket_prefetch(now, packets, state, out),
            ScheduleKind::PreHash | ScheduleKind::Speculative | ScheduleKind::SpeculativeFirst => {
                self.run_ahead(now, packets, state, out);
            }
            ScheduleKind::SpeculativePairs | ScheduleKind::SpeculativeFirstPairs => {
                self.run_pairs(now, packets, state, out);
            }
            ScheduleKind::BurstScalar | ScheduleKind::Burst => self.run_burst(now, packets, state, out),
        }
    }

    fn run_naive(
        &mut self,
        now: Timestamp,
        packets: Drain<'_, Incoming>,
        state: &mut BurstState,
        out: &mut Vec<Outgoing>,
    ) {
        // No name is hashed ahead here, so all packets use the same empty guess.
        state.guesses[0] = Guess::default();
        for (position, packet) in packets.enumerate() {
            self.handle(now, packet, state.prepared(position, 0), out);
        }
    }

    fn run_bucket_prefetch(
        &mut self,
        now: Timestamp,
        packets: Drain<'_, Incoming>,
        state: &mut BurstState,
        out: &mut Vec<Outgoing>,
    ) {
        for (position, packet) in packets.enumerate() {
            self.look_ahead(&packet, state, position, 0);
            self.handle(now, packet, state.prepared(position, 0), out);
        }
    }

    /// The first stage of the schedules that process packets one by one: hashes the name, then prefetches buckets.
    #[inline(always)]
    fn look_ahead(&self, packet: &Incoming, state: &mut BurstState, position: usize, place: usize) {
        self.hash_names(std::slice::from_ref(packet), state, (position, place), Lanes::SCALAR);
        self.prefetch_buckets(packet, state.at(position, place));
        self.prefetch_name_notes(&state.guesses[place..=place], &state.hashes[place..=place]);
        if S::KIND.fetches_entries() {
            self.prefetch_named_entries(&state.guesses[place..=place]);
        }
    }

    /// One packet ahead: [`PreHash`](super::PreHash), and [`Speculative`](super::Speculative), which also prefetches
    /// entries. "After fetching hash buckets" of a packet its entries are prefetched, and the hash computation of the
    /// next one hides the wait (ICN 2017, section 4.2). What the entries point to is prefetched after that, so that
    /// nothing is read right after its prefetch.
    fn run_ahead(
        &mut self,
        now: Timestamp,
        mut packets: Drain<'_, Incoming>,
        state: &mut BurstState,
        out: &mut Vec<Outgoing>,
    ) {
        let (mut position, mut current, mut next) = (0, 0, 1);
        if let [packet, ..] = packets.as_slice() {
            self.look_ahead(packet, state, position, current);
        }
        while let Some(packet) = packets.next() {
            let mut forecast = self.core.pcct.forecast();
            if S::KIND.fetches_entries() {
                self.prefetch_entries(state.at(position, current), &mut forecast);
                self.prefetch_guessed_entries(&state.parsed[position..=position], &state.guesses[current..=current]);
            }
            if let [following, ..] = packets.as_slice() {
                self.look_ahead(following, state, position + 1, next);
                if S::KIND.fetches_entries() {
                    self.prefetch_replaced(&state.parsed[position + 1], &state.guesses[next], &mut forecast);
                }
            }
            if S::KIND.fetches_entries() {
                self.prefetch_contents(&state.parsed[position], &state.guesses[current]);
                self.prefetch_decisions(&state.parsed[position..=position], &state.guesses[current..=current]);
            }
            self.handle(now, packet, state.prepared(position, current), out);
            position += 1;
            std::mem::swap(&mut current, &mut next);
        }
    }

    /// Two packets at a time: [`SpeculativePairs`](super::SpeculativePairs). Hashing the second name hides the wait for
    /// the buckets of the first.
    fn run_pairs(
        &mut self,
        now: Timestamp,
        mut packets: Drain<'_, Incoming>,
        state: &mut BurstState,
        out: &mut Vec<Outgoing>,
    ) {
        let mut position = 0;
        while !packets.as_slice().is_empty() {
            let pair = packets.as_slice().len().min(2);
            let mut forecast = self.core.pcct.forecast();
            for (place, packet) in packets.as_slice()[..pair].iter().enumerate() {
                self.look_ahead(packet, state, position + place, place);
                self.prefetch_replaced(&state.parsed[position + place], &state.guesses[place], &mut forecast);
            }
            let mut forecast = self.core.pcct.forecast();
            for place in 0..pair {
                self.prefetch_entries(state.at(position + place, place), &mut forecast);
                let parsed = &state.parsed[position + place..=position + place];
                self.prefetch_guessed_entries(parsed, &state.guesses[place..=place]);
            }
            for (place, packet) in packets.by_ref().take(pair).enumerate() {
                self.prefetch_contents(&state.parsed[position], &state.guesses[place]);
                self.prefetch_decisions(&state.parsed[position..=position], &state.guesses[place..=place]);
                self.handle(now, packet, state.prepared(position, place), out);
                position += 1;
            }
        }
    }

    /// Packets in groups, each of which advances one stage in every step. While one group is handled, three others are
    /// in flight: what the entries of the next group point to, the entries of the second, and the buckets of the just
    /// hashed names of the third. Hashing takes long enough to hide memory latency even in the first steps, when there
    /// is nothing to handle yet.
    fn run_burst(
        &mut self,
        now: Timestamp,
        mut packets: Drain<'_, Incoming>,
        state: &mut BurstState,
        out: &mut Vec<Outgoing>,
    ) {
        let count = packets.as_slice().len();
        let group = self.core.lookahead;
        let lanes = if S::KIND == ScheduleKind::BurstScalar { Lanes::SCALAR } else { self.core.lanes };
        let mut forecast = self.core.pcct.forecast();
        let (mut handled, mut with_contents, mut with_entries, mut with_buckets) = (0, 0, 0, 0);
        while handled < count {
            // Each stage advances to where the previous stage ended in the last step.
            let (handled_end, contents_end, entries_end) = (with_contents, with_entries, with_buckets);
            let buckets_end = count.min(with_buckets + group);
            if with_buckets < buckets_end {
                let ahead = &packets.as_slice()[with_buckets - handled..buckets_end - handled];
                self.hash_names(ahead, state, (with_buckets, with_buckets), lanes);
                for (packet, position) in ahead.iter().zip(with_buckets..) {
                    self.prefetch_buckets(packet, state.at(position, position));
                }
                let hashed = with_buckets..buckets_end;
                self.prefetch_name_notes(&state.guesses[hashed.clone()], &state.hashes[hashed.clone()]);
                self.prefetch_named_entries(&state.guesses[hashed]);
                with_buckets = buckets_end;
            }
            for position in with_entries..entries_end {
                self.prefetch_entries(state.at(position, position), &mut forecast);
            }
            let guessed = with_entries..entries_end;
            self.prefetch_guessed_entries(&state.parsed[guessed.clone()], &state.guesses[guessed]);
            with_entries = entries_end;
            for position in with_contents..contents_end {
                self.prefetch_contents(&state.parsed[position], &state.guesses[position]);
            }
            let decided = with_contents..contents_end;
            self.prefetch_decisions(&state.parsed[decided.clone()], &state.guesses[decided]);
            with_contents = contents_end;
            for packet in packets.by_ref().take(handled_end - handled) {
                self.handle(now, packet, state.prepared(handled, handled), out);
                handled += 1;
            }
        }
    }
}
