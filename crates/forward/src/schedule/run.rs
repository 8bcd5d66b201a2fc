//! The order of hints and packets, one function for each schedule. Packets are handled in the order in which they came.

use namehop_hash::Lanes;

use super::summary::Scratch;
use super::{MAX_BURST, Schedule, ScheduleKind};
use crate::buffer::BufferPool;
use crate::engine::Engine;
use crate::packet::{Incoming, Outgoing};
use crate::time::Timestamp;

impl<P: BufferPool, S: Schedule> Engine<P, S> {
    /// Handles a burst of packets. The burst is emptied.
    pub(crate) fn run(
        &mut self,
        now: Timestamp,
        burst: &mut Vec<Incoming<P::Buffer>>,
        out: &mut Vec<Outgoing<P::Buffer>>,
    ) {
        let mut scratch = std::mem::take(&mut self.scratch);
        match S::KIND {
            ScheduleKind::Naive => self.run_naive(now, burst, &mut scratch, out),
            ScheduleKind::BucketPrefetch => self.run_bucket_prefetch(now, burst, &mut scratch, out),
            ScheduleKind::PreHash | ScheduleKind::Speculative | ScheduleKind::SpeculativeFirst => {
                self.run_ahead(now, burst, &mut scratch, out);
            }
            ScheduleKind::SpeculativePairs | ScheduleKind::SpeculativeFirstPairs => {
                self.run_pairs(now, burst, &mut scratch, out);
            }
            ScheduleKind::BurstScalar | ScheduleKind::Burst => {
                while !burst.is_empty() {
                    self.run_burst(now, burst, &mut scratch, out);
                }
            }
        }
        self.scratch = scratch;
    }

    fn run_naive(
        &mut self,
        now: Timestamp,
        burst: &mut Vec<Incoming<P::Buffer>>,
        scratch: &mut Scratch,
        out: &mut Vec<Outgoing<P::Buffer>>,
    ) {
        for packet in burst.drain(..) {
            scratch.summaries[0]
                .look_at(&packet, |bytes| self.may_read(packet.face, bytes, &self.core.long_names.total()));
            self.handle(now, packet, scratch.known(0), out);
        }
    }

    fn run_bucket_prefetch(
        &mut self,
        now: Timestamp,
        burst: &mut Vec<Incoming<P::Buffer>>,
        scratch: &mut Scratch,
        out: &mut Vec<Outgoing<P::Buffer>>,
    ) {
        for packet in burst.drain(..) {
            self.look_ahead(&packet, scratch, 0);
            self.handle(now, packet, scratch.known(0), out);
        }
    }

    /// The first stage of the schedules that take packets one by one: hashes the name, then asks for buckets.
    #[inline(always)]
    fn look_ahead(&self, packet: &Incoming<P::Buffer>, scratch: &mut Scratch, position: usize) {
        self.look_at(std::slice::from_ref(packet), scratch, position, Lanes::SCALAR);
        self.hint_buckets(packet, scratch.hints(position));
        if S::KIND.fetches_entries() {
            self.hint_named_entries(std::slice::from_ref(&scratch.summaries[position]));
        }
    }

    /// One packet ahead: [`PreHash`](super::PreHash), and [`Speculative`](super::Speculative), which also fetches entries.
    /// "After fetching hash buckets" of a packet its entries are fetched, and the hash computation of the next one hides the
    /// wait (ICN 2017, section 4.2). What the entries point to is asked for behind that, so that nothing is read that was
    /// asked for just before.
    fn run_ahead(
        &mut self,
        now: Timestamp,
        burst: &mut Vec<Incoming<P::Buffer>>,
        scratch: &mut Scratch,
        out: &mut Vec<Outgoing<P::Buffer>>,
    ) {
        let mut packets = burst.drain(..);
        let (mut current, mut next) = (0, 1);
        if let [packet, ..] = packets.as_slice() {
            self.look_ahead(packet, scratch, current);
        }
        while let Some(packet) = packets.next() {
            let mut forecast = self.core.pcct.forecast();
            if S::KIND.fetches_entries() {
                self.hint_entries(scratch.hints(current), &mut forecast);
                self.hint_guessed_entries(std::slice::from_ref(&scratch.summaries[current]));
            }
            if let [following, ..] = packets.as_slice() {
                self.look_ahead(following, scratch, next);
                if S::KIND.fetches_entries() {
                    self.hint_replaced(&scratch.summaries[next], &mut forecast);
                }
            }
            if S::KIND.fetches_entries() {
                self.hint_contents(&scratch.summaries[current]);
            }
            self.handle(now, packet, scratch.known(current), out);
            std::mem::swap(&mut current, &mut next);
        }
    }

    /// Two packets at a time: [`SpeculativePairs`](super::SpeculativePairs). Hashing the second one's name hides the wait for the
    /// first one's buckets.
    fn run_pairs(
        &mut self,
        now: Timestamp,
        burst: &mut Vec<Incoming<P::Buffer>>,
        scratch: &mut Scratch,
        out: &mut Vec<Outgoing<P::Buffer>>,
    ) {
        let mut packets = burst.drain(..);
        while !packets.as_slice().is_empty() {
            let pair = packets.as_slice().len().min(2);
            let mut forecast = self.core.pcct.forecast();
            for (position, packet) in packets.as_slice()[..pair].iter().enumerate() {
                self.look_ahead(packet, scratch, position);
                self.hint_replaced(&scratch.summaries[position], &mut forecast);
            }
            let mut forecast = self.core.pcct.forecast();
            for position in 0..pair {
                self.hint_entries(scratch.hints(position), &mut forecast);
                self.hint_guessed_entries(std::slice::from_ref(&scratch.summaries[position]));
            }
            for (position, packet) in packets.by_ref().take(pair).enumerate() {
                self.hint_contents(&scratch.summaries[position]);
                self.handle(now, packet, scratch.known(position), out);
            }
        }
    }

    /// Up to [`MAX_BURST`] packets in groups, each of which is taken one stage further in every step: while one group is
    /// handled, what the next one's entries point to is on its way, and so are the entries of the one behind it and the
    /// buckets of the third, whose names have just been hashed. Hashing takes long enough to hide what is waited for even
    /// in the first steps, when there is nothing to handle yet.
    fn run_burst(
        &mut self,
        now: Timestamp,
        burst: &mut Vec<Incoming<P::Buffer>>,
        scratch: &mut Scratch,
        out: &mut Vec<Outgoing<P::Buffer>>,
    ) {
        let count = burst.len().min(MAX_BURST);
        let group = self.core.lookahead;
        let lanes = if S::KIND == ScheduleKind::BurstScalar { Lanes::SCALAR } else { self.core.lanes };
        let mut packets = burst.drain(..count);
        let mut forecast = self.core.pcct.forecast();
        let (mut handled, mut with_contents, mut with_entries, mut with_buckets) = (0, 0, 0, 0);
        while handled < count {
            // Each stage goes as far as the one before it went in the last step.
            let (handled_end, contents_end, entries_end) = (with_contents, with_entries, with_buckets);
            let buckets_end = count.min(with_buckets + group);
            if with_buckets < buckets_end {
                let looked_at = &packets.as_slice()[with_buckets - handled..buckets_end - handled];
                self.look_at(looked_at, scratch, with_buckets, lanes);
                for (packet, position) in looked_at.iter().zip(with_buckets..) {
                    self.hint_buckets(packet, scratch.hints(position));
                }
                self.hint_named_entries(&scratch.summaries[with_buckets..buckets_end]);
                with_buckets = buckets_end;
            }
            for position in with_entries..entries_end {
                self.hint_entries(scratch.hints(position), &mut forecast);
            }
            self.hint_guessed_entries(&scratch.summaries[with_entries..entries_end]);
            with_entries = entries_end;
            for summary in &scratch.summaries[with_contents..contents_end] {
                self.hint_contents(summary);
            }
            with_contents = contents_end;
            for packet in packets.by_ref().take(handled_end - handled) {
                self.handle(now, packet, scratch.known(handled), out);
                handled += 1;
            }
        }
    }
}
