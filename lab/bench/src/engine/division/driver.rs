//! One thread of a case: a worker, and the peers that send to all workers and get what this one sends.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use namehop_daemon::worker::Worker;
use namehop_engine::schedule::Burst;
use namehop_face::ring::Frame;
use namehop_packet::{FaceId, Timestamp};
use namehop_table::clock::{cycles, cycles_per_second};
use namehop_wire::lp::{LpHeader, PitToken, UsualFrame, encode_packet};
use namehop_wire::peek::name_value;
use namehop_wire::security::NullSigner;
use namehop_wire::{DataBuilder, InterestBuilder, NameRef};

use super::turns::{Turns, settling_of};
use super::{Load, NAMES_PER_WORKER, Shared};
use crate::permutation::mix;

/// Bursts that come to a worker in a round. With one it would have to do with smaller ones whenever it hands packets over, and a worker
/// that has all the traffic it can take has more waiting.
const BURSTS_IN_ROUND: usize = 8;

/// What a worker did in one turn of its case.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnCost {
    pub(super) packets: u64,
    /// How long the worker had something to do, in nanoseconds.
    pub(super) busy_ns: f64,
}

/// What one thread has measured.
#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    /// Turns that count.
    pub(super) turns: Vec<TurnCost>,
    /// Packets that came from another processor in these turns: those that were handed over, or brought.
    pub(super) moved: u64,
    /// In these turns.
    pub(super) lost: u64,
}

/// An Interest that a worker has sent: by whom, its name and token, and where it went.
pub(super) struct Pending {
    worker: usize,
    name: Vec<u8>,
    pit_token: PitToken,
    face: FaceId,
}

/// See the module's description.
pub(super) struct Driver<'a> {
    worker: Worker<Burst>,
    number: usize,
    shared: &'a Shared<'a>,
    /// What is to come in.
    load: Load,
    /// The worker's clock: how long it has had something to do.
    now: Timestamp,
    cycles_per_second: u64,
    next_name: u64,
    draws: u64,
    /// Interests that this thread has made.
    asked: u64,
    /// Times that packets have come in.
    rounds: u64,
    /// Packets that another thread has made and that have come in here.
    brought: u64,
    pending: VecDeque<Pending>,
    sent: Vec<Frame>,
    content: Vec<u8>,
}

impl<'a> Driver<'a> {
    pub(super) fn new(worker: Worker<Burst>, number: usize, shared: &'a Shared<'a>) -> Self {
        let content = vec![0; shared.parameters.payload_bytes];
        let next_name = number as u64 * NAMES_PER_WORKER;
        let (pending, sent, now) = (VecDeque::new(), Vec::new(), Timestamp(0));
        let cycles_per_second = cycles_per_second();
        Driver {
            worker,
            number,
            shared,
            load: shared.loads[0].1,
            now,
            cycles_per_second,
            next_name,
            asked: 0,
            rounds: 0,
            brought: 0,
            draws: number as u64,
            pending,
            sent,
            content,
        }
    }

    fn draw(&mut self, end: usize) -> usize {
        self.draws += self.shared.rings.len() as u64;
        ((u128::from(mix(self.draws)) * end as u128) >> 64) as usize
    }

    /// Works whenever it is the turn of one of its loads. Gives what it has measured in each, by the number of its turns.
    pub(super) fn run(mut self, turns: &Turns) -> Vec<(usize, Measured)> {
        let loads = &self.shared.loads;
        let (mut measured, mut number) = (vec![Measured::default(); loads.len()], 0);
        let place_of = |turn| loads.iter().position(|&(load, _)| load == turn);
        while let Some((next, place)) = turns.next(place_of, number) {
            number = next;
            self.load = loads[place].1;
            self.now = self.now.max(Timestamp(self.shared.clock.load(Ordering::Relaxed)));
            let settled = Instant::now() + settling_of(self.shared.parameters.time);
            self.exchange_while(|| turns.is(number) && Instant::now() < settled);
            let (before, began, brought) = (self.worker.status(self.now), self.now, self.brought);
            self.exchange_while(|| turns.is(number));
            self.shared.clock.fetch_max(self.now.0, Ordering::Relaxed);
            self.shared.warm[self.number].store(self.is_warm(), Ordering::Relaxed);
            if turns.counts(number) {
                let measured = &mut measured[place];
                let after = self.worker.status(self.now);
                let (packets, busy_ns) = (after.packets - before.packets, self.now.since_ns(began) as f64);
                measured.turns.push(TurnCost { packets, busy_ns });
                measured.moved += after.handover.handed_in - before.handover.handed_in + self.brought - brought;
                measured.lost += after.handover.lost() - before.handover.lost();
            }
        }
        loads.iter().map(|&(load, _)| load).zip(measured).collect()
    }

    /// Packets come in and are worked on, round by round.
    fn exchange_while(&mut self, goes_on: impl Fn() -> bool) {
        while goes_on() {
            self.prepare();
            self.wait_for_others(&goes_on);
            self.work();
        }
    }

    /// Is everything as it will stay? Timers have run out, as many Interests are pending as are to be, and the cache is full, so that
    /// no memory is touched for the first time any more.
    fn is_warm(&self) -> bool {
        let parameters = self.shared.parameters;
        self.now.0 > parameters.warm_up.as_nanos() as u64
            && self.has_enough_pending()
            && self.asked
                > (parameters.in_flight + parameters.cs_capacity * 11 / 10) as u64 / self.shared.rings.len() as u64
    }

    fn has_enough_pending(&self) -> bool {
        self.pending.len() >= self.shared.parameters.in_flight / self.shared.rings.len()
    }

    /// Some packets.
    fn prepare(&mut self) {
        for _ in 0..BURSTS_IN_ROUND * self.shared.parameters.burst / 2 {
            self.ask();
            if self.has_enough_pending() {
                self.answer();
            }
            self.answer_another();
            self.take_brought();
            self.take_brought();
        }
        self.rounds += 1;
        self.shared.rounds[self.number].store(self.rounds, Ordering::Release);
    }

    /// Until packets have come in as often at all others, or nothing goes on any more: workers that have all the traffic they can take work at the
    /// same time, and what they hand over comes to each other in between their own packets.
    fn wait_for_others(&self, goes_on: impl Fn() -> bool) {
        let is_as_far = |other: &AtomicU64| other.load(Ordering::Acquire) >= self.rounds;
        while !self.shared.rounds.iter().all(is_as_far) && goes_on() {
            thread::yield_now();
        }
    }

    /// Works until all that came in is taken. What others handed over meanwhile is left for the next round, in which more comes in: a worker
    /// that has all the traffic it can take never has nothing but such packets. The clock goes on meanwhile.
    fn work(&mut self) {
        while !self.shared.rings[self.number].from_datagrams.is_empty() {
            let begin = cycles();
            self.worker.turn(self.now);
            let spent = cycles().wrapping_sub(begin);
            self.now = Timestamp(self.now.0 + spent * 1_000_000_000 / self.cycles_per_second);
        }
        self.take_sent();
    }

    /// Gives a frame for `owner` to this thread's worker, or has it brought to the owner. It is in the caches of this thread's core, as if it
    /// had come from a card.
    fn give(&self, owner: usize, face: FaceId, frame: &[u8]) {
        // A full ring holds back whoever fills it; so does an empty pool.
        let Some(buffer) = self.shared.pool.copy_of(frame) else { return };
        let frame = Frame::new(face, 0, buffer);
        let _ = if self.load.is_brought && owner != self.number {
            self.shared.brought[owner].push(frame)
        } else {
            self.shared.rings[self.number].from_datagrams.push(frame)
        };
    }

    /// Lets a frame come in that another thread has made, without a look at it.
    fn take_brought(&mut self) {
        if let Some(frame) = self.shared.brought[self.number].pop() {
            let _ = self.shared.rings[self.number].from_datagrams.push(frame);
            self.brought += 1;
        }
    }

    /// Is the next packet to be made by the thread of a worker that it does not belong to?
    fn draw_misplaced(&mut self) -> bool {
        self.shared.rings.len() > 1 && (self.draw(1 << 20) as f64) < self.load.case.misplaced * f64::from(1 << 20)
    }

    /// Asks for the next name that belongs to this worker; or to another one, as often as that is to be.
    fn ask(&mut self) {
        let is_misplaced = self.draw_misplaced();
        let workload = &self.shared.prefixes.workload;
        let mut value = vec![0; workload.name_bytes()];
        let (name, owner) = loop {
            let name = self.next_name;
            self.next_name += 1;
            workload.write_name(name, &mut value);
            let owner = self.shared.dispatch.entry_of(&value).map_or(0, |(_, owner)| usize::from(owner));
            if is_misplaced == (owner != self.number) {
                break (name, owner);
            }
        };
        self.asked += 1;
        let Ok(name_ref) = NameRef::from_value(&value) else { return };
        let Ok(packet) = InterestBuilder::new(name_ref.to_owned()).nonce(mix(name) as u32 | 1).build() else { return };
        let peer = self.shared.prefixes.peers.downstream(workload.prefix_of(name), name);
        self.give(owner, self.shared.faces[peer.link][peer.number], &packet);
    }

    /// What the worker has sent: Interests are answered later.
    fn take_sent(&mut self) {
        let mut sent = std::mem::take(&mut self.sent);
        self.shared.rings[self.number].to_sockets.pop_burst(&mut sent, usize::MAX);
        for frame in sent.drain(..) {
            let bytes = frame.buffer.bytes();
            let Some(usual) = UsualFrame::decode(bytes).filter(|usual| !usual.is_data) else { continue };
            if let Some(name) = name_value(&bytes[usual.header_len..]) {
                let (worker, name, face) = (self.number, name.to_vec(), frame.face);
                self.pending.push_back(Pending { worker, name, pit_token: usual.pit_token, face });
            }
        }
        self.sent = sent;
    }

    /// Answers an Interest that the worker has sent; at another worker, as often as that is to be.
    fn answer(&mut self) {
        let place = self.draw(self.pending.len());
        let Some(pending) = self.pending.swap_remove_back(place) else { return };
        if (self.draw(1 << 20) as f64) < self.shared.parameters.unanswered * f64::from(1 << 20) {
            return;
        }
        let count = self.shared.rings.len();
        if self.draw_misplaced() {
            let other = (self.number + 1 + self.draw(count - 1)) % count;
            // There is room for all of a round.
            let _ = self.shared.elsewhere[other].push(pending);
        } else {
            self.give_data(&pending);
        }
    }

    /// Answers an Interest that another worker has sent and that is to be answered at this one: one at a time, so that what is
    /// misplaced comes in among the rest, as it does from links.
    fn answer_another(&mut self) {
        if let Some(pending) = self.shared.elsewhere[self.number].pop() {
            self.give_data(&pending);
        }
    }

    fn give_data(&self, Pending { worker, name, pit_token, face }: &Pending) {
        let Ok(name) = NameRef::from_value(name) else { return };
        let data = DataBuilder::new(name.to_owned()).content(self.content.clone()).sign(&NullSigner);
        let Ok(data) = data else { return };
        let frame = encode_packet(&LpHeader { pit_token: *pit_token, ..LpHeader::default() }, Some(&data));
        self.give(*worker, *face, &frame);
    }
}
