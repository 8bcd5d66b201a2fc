//! One thread of a case: a worker, and the peers that send to all workers and receive from this one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use namehop_face::ring::Frame;
use namehop_packet::{FaceId, Timestamp};
use namehop_table::clock::{cycles, cycles_per_second};
use namehop_wire::lp::{LpHeader, PitToken, UsualFrame, encode_packet};
use namehop_wire::peek::name_value;
use namehop_wire::security::NullSigner;
use namehop_wire::{DataBuilder, InterestBuilder, NameRef};
use namehop_worker::Worker;

use super::turns::{Turns, settling_of};
use super::{Load, NAMES_PER_WORKER, Shared};
use crate::permutation::mix;

/// Bursts that arrive at a worker per round. With one burst, hand-overs would leave the worker smaller bursts, while a
/// saturated worker always has more packets queued.
const BURSTS_IN_ROUND: usize = 8;

/// Work of a worker in one turn of its case.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnCost {
    pub(super) packets: u64,
    /// Busy time of the worker, in nanoseconds.
    pub(super) busy_ns: f64,
}

/// Measurements of one thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    /// Measured turns, without warm-up.
    pub(super) turns: Vec<TurnCost>,
    /// Packets from another CPU in these turns: handed over, or brought.
    pub(super) moved: u64,
    /// Packets lost in these turns.
    pub(super) lost: u64,
}

/// An Interest sent by a worker: the worker, its name and token, and the face it was sent to.
pub(super) struct Pending {
    worker: usize,
    name: Vec<u8>,
    pit_token: PitToken,
    face: FaceId,
}

/// A worker and its peers; see the module documentation.
pub(super) struct Driver<'a> {
    worker: Worker,
    number: usize,
    shared: &'a Shared<'a>,
    /// The current load.
    load: Load,
    /// The worker's clock: its busy time.
    now: Timestamp,
    cycles_per_second: u64,
    next_name: u64,
    draws: u64,
    /// Number of Interests made by this thread.
    asked: u64,
    /// Number of rounds in which packets have arrived.
    rounds: u64,
    /// Number of packets made by another thread that have arrived here.
    brought: u64,
    pending: VecDeque<Pending>,
    sent: Vec<Frame>,
    content: Vec<u8>,
}

impl<'a> Driver<'a> {
    pub(super) fn new(worker: Worker, number: usize, shared: &'a Shared<'a>) -> Self {
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

    /// Runs the worker in the turns of its loads. Returns the measurements by the index of each load's turns.
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

    /// Runs rounds of arriving packets while `goes_on` is true.
    fn exchange_while(&mut self, goes_on: impl Fn() -> bool) {
        while goes_on() {
            self.prepare();
            self.wait_for_others(&goes_on);
            self.work();
        }
    }

    /// True if the state is stationary: timers have expired, the required number of Interests is pending, and the cache
    /// is full, so that no memory is accessed for the first time.
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

    /// Makes the packets of a round.
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

    /// Waits until packets have arrived as often at all other workers, or until `goes_on` is false. Saturated workers
    /// run at the same time, and receive hand-overs among their own packets.
    fn wait_for_others(&self, goes_on: impl Fn() -> bool) {
        let is_as_far = |other: &AtomicU64| other.load(Ordering::Acquire) >= self.rounds;
        while !self.shared.rounds.iter().all(is_as_far) && goes_on() {
            thread::yield_now();
        }
    }

    /// Runs poll iterations until all arrived packets are taken; the clock advances meanwhile. Packets handed over by
    /// others meanwhile are left for the next round, because a saturated worker never has only such packets.
    fn work(&mut self) {
        while !self.shared.rings[self.number].from_datagrams.is_empty() {
            let begin = cycles();
            self.worker.turn(self.now);
            let spent = cycles().wrapping_sub(begin);
            self.now = Timestamp(self.now.0 + spent * 1_000_000_000 / self.cycles_per_second);
        }
        self.take_sent();
    }

    /// Queues a frame for this thread's worker, or brings it to its owner. The frame is in the caches of this thread's
    /// core, as if it came from a network card.
    fn give(&self, owner: usize, face: FaceId, frame: &[u8]) {
        // If the ring is full or the pool empty, the frame is dropped, which limits the sender.
        let Some(buffer) = self.shared.pool.copy_of(frame) else { return };
        let frame = Frame::new(face, 0, buffer);
        let _ = if self.load.is_brought && owner != self.number {
            self.shared.brought[owner].push(frame)
        } else {
            self.shared.rings[self.number].from_datagrams.push(frame)
        };
    }

    /// Queues a frame made by another thread, without reading it.
    fn take_brought(&mut self) {
        if let Some(frame) = self.shared.brought[self.number].pop() {
            let _ = self.shared.rings[self.number].from_datagrams.push(frame);
            self.brought += 1;
        }
    }

    /// Decides randomly whether the next packet is misplaced.
    fn draw_misplaced(&mut self) -> bool {
        self.shared.rings.len() > 1 && (self.draw(1 << 20) as f64) < self.load.case.misplaced * f64::from(1 << 20)
    }

    /// Makes an Interest for the next name of this worker, or, if misplaced, of another one.
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

    /// Takes the frames sent by the worker, and records Interests to be answered later.
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

    /// Answers a random pending Interest; if misplaced, at another worker.
    fn answer(&mut self) {
        let place = self.draw(self.pending.len());
        let Some(pending) = self.pending.swap_remove_back(place) else { return };
        if (self.draw(1 << 20) as f64) < self.shared.parameters.unanswered * f64::from(1 << 20) {
            return;
        }
        let count = self.shared.rings.len();
        if self.draw_misplaced() {
            let other = (self.number + 1 + self.draw(count - 1)) % count;
            // The queue has room for all of a round.
            let _ = self.shared.elsewhere[other].push(pending);
        } else {
            self.give_data(&pending);
        }
    }

    /// Answers an Interest of another worker that is to be answered at this one. One at a time, so that misplaced
    /// packets arrive among the others, as from links.
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
