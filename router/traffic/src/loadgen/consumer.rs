//! The consumer of the load generator: sends Interests at its pace and accounts for each of them.
//!
//! Interests sent = answered by Data + answered by Nacks + timed out + unanswered at the end. Other packets are counted
//! separately. A pending name is not requested again.

mod order;

use std::io;
use std::time::{Duration, Instant};

use crate::workload::zipf::Draws;
use namehop_wire::lp::NackReason;

use self::order::SendingOrder;
use super::LoadError;
use super::counts::ConsumerCounts;
use super::link::{Link, PATIENCE};
use super::pacing::{Pacer, Pacing};
use super::packets::{Kind, scan};
use super::requests::{Pattern, Requests};

/// Slots per Interest in flight: enough to tell late answers from new ones.
const SLOTS_PER_INTEREST: usize = 16;
const MIN_SLOTS: usize = 1 << 12;
/// Maximum number of slots of all patterns of a consumer: 256 MiB.
const MAX_SLOTS: usize = 1 << 24;
/// Maximum number of Interests sent at once.
const BURST: usize = 4096;
/// Number of names held back, because they are pending, after which a burst ends.
const MOST_HELD_BACK: u32 = 64;

/// Workload and timing of a consumer.
#[derive(Clone, Debug)]
pub struct ConsumerPlan {
    /// Patterns of its Interests.
    pub patterns: Vec<Pattern>,
    /// Pacing of its Interests.
    pub pacing: Pacing,
    /// Number of Interests after which it stops; `None` for no limit.
    pub count: Option<u64>,
    /// Seed of the random choices: patterns, names and, with a Poisson process, times.
    pub seed: u64,
}

impl ConsumerPlan {
    /// Checks that the plan is valid.
    ///
    /// # Errors
    /// Returns [`LoadError::Configuration`] with the reason.
    pub fn check(&self) -> Result<(), LoadError> {
        self.pacing.check()?;
        Requests::all(&self.patterns, &mut Draws::new(self.seed)).map(drop)
    }
}

/// The last Interest with a name that maps to this slot.
#[derive(Clone, Copy, Default)]
struct Slot {
    sequence: u64,
    /// Sending time in nanoseconds since the start, times 4, plus the [`SlotState`].
    stamp: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotState {
    Unused,
    Pending,
    Answered,
    TimedOut,
}

impl Slot {
    fn new(sequence: u64, sent_ns: u64, state: SlotState) -> Slot {
        Slot { sequence, stamp: sent_ns << 2 | state as u64 }
    }

    fn state(self) -> SlotState {
        match self.stamp & 3 {
            0 => SlotState::Unused,
            1 => SlotState::Pending,
            2 => SlotState::Answered,
            _ => SlotState::TimedOut,
        }
    }

    fn sent_ns(self) -> u64 {
        self.stamp >> 2
    }

    fn set(&mut self, state: SlotState) {
        self.stamp = self.stamp & !3 | state as u64;
    }
}

struct Answer {
    pattern: usize,
    sequence: u64,
    kind: Kind,
    reason: NackReason,
    is_marked: bool,
    bytes: usize,
}

/// One consumer on one connection.
pub struct Consumer<L> {
    link: L,
    requests: Vec<Requests>,
    /// One table per pattern; its size is a power of two.
    slots: Vec<Vec<Slot>>,
    /// Pending Interests of each pattern, oldest first.
    order: Vec<SendingOrder>,
    pacer: Pacer,
    draws: Draws,
    /// Interests still to be sent.
    remaining: u64,
    nonce: u32,
    pending: usize,
    started: Instant,
    counts: ConsumerCounts,
    /// Scratch: Interests to send, and their end offsets.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Scratch: received answers.
    answers: Vec<Answer>,
}

impl<L: Link> Consumer<L> {
    /// Creates a consumer that has sent nothing.
    ///
    /// # Errors
    /// Fails if the plan is invalid.
    pub fn new(link: L, plan: &ConsumerPlan) -> Result<Self, LoadError> {
        plan.pacing.check()?;
        let mut draws = Draws::new(plan.seed);
        let requests = Requests::all(&plan.patterns, &mut draws)?;
        let most = MAX_SLOTS / requests.len().next_power_of_two();
        let slots = (plan.pacing.most_in_flight() * SLOTS_PER_INTEREST).max(MIN_SLOTS).next_power_of_two().min(most);
        let started = Instant::now();
        Ok(Self {
            link,
            slots: requests.iter().map(|_| vec![Slot::default(); slots]).collect(),
            order: requests.iter().map(|_| SendingOrder::default()).collect(),
            requests,
            pacer: Pacer::new(plan.pacing, started),
            nonce: draws.number() as u32,
            draws,
            remaining: plan.count.unwrap_or(u64::MAX),
            pending: 0,
            started,
            counts: ConsumerCounts::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
            answers: Vec::new(),
        })
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Returns the consumer's connection.
    pub fn link(&self) -> &L {
        &self.link
    }

    /// Returns the number of pending Interests.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Returns true if all planned Interests have been sent.
    pub fn has_sent_all(&self) -> bool {
        self.remaining == 0
    }

    /// Returns the current window, its largest size, and the number of reductions; `None` without congestion control.
    pub fn window(&self) -> Option<(usize, usize, u64)> {
        self.pacer.window()
    }

    /// Stops sending; pending Interests can still be answered.
    pub fn stop_sending(&mut self) {
        self.remaining = 0;
    }

    /// Counts all pending Interests as unanswered and ends them.
    pub fn give_up(&mut self) {
        self.counts.unanswered += self.pending as u64;
        for (order, slots) in self.order.iter_mut().zip(&mut self.slots) {
            while let Some(slot_index) = order.take_oldest(slots, |_| true) {
                slots[slot_index].set(SlotState::TimedOut);
            }
        }
        self.pending = 0;
    }

    /// Returns the counts since the last [`take_counts`](Self::take_counts).
    pub fn counts(&self) -> &ConsumerCounts {
        &self.counts
    }

    /// Returns the counts since the last call and resets them.
    pub fn take_counts(&mut self) -> ConsumerCounts {
        self.counts.take()
    }

    /// Sends due Interests and handles received packets. Events count while `is_measuring` returns true; its result may
    /// change while this waits for packets.
    ///
    /// # Errors
    /// Fails if the connection is broken.
    pub fn step(&mut self, is_measuring: impl Fn() -> bool) -> io::Result<()> {
        let now_ns = self.now_ns();
        let count = is_measuring();
        let lost = self.forget_lost(now_ns);
        let held_back = self.issue(now_ns);
        let not_sent = self.pacer.take_not_sent();
        if count {
            self.counts.interests += self.ends.len() as u64;
            self.counts.timeouts += lost;
            self.counts.held_back += held_back;
            self.counts.not_sent += not_sent;
        }
        if !self.ends.is_empty() {
            self.link.send(&self.bytes, &self.ends)?;
        }
        let patience = match self.ends.len() {
            // The link must transmit something before it takes more.
            _ if self.link.room() == 0 => PATIENCE,
            BURST.. => Duration::ZERO,
            _ if self.remaining == 0 => PATIENCE,
            _ => self.pacer.until_due(self.now_ns(), self.pending).map_or(PATIENCE, |due| due.min(PATIENCE)),
        };
        self.receive(patience, is_measuring)
    }

    fn receive(&mut self, patience: Duration, is_measuring: impl Fn() -> bool) -> io::Result<()> {
        let (mut malformed, mut unsolicited) = (0, 0);
        let Self { requests, answers, .. } = self;
        let received = self.link.receive(patience, &mut |frame| {
            let Some(scanned) = scan(frame) else {
                malformed += 1;
                return;
            };
            let own = requests.iter().enumerate().find_map(|(pattern, requests)| {
                requests.template.sequence(scanned.name).map(|sequence| (pattern, sequence))
            });
            if let Some((pattern, sequence)) = own {
                let (kind, reason, is_marked) = (scanned.kind, scanned.nack_reason, scanned.is_marked);
                answers.push(Answer { pattern, sequence, kind, reason, is_marked, bytes: frame.len() });
            } else if scanned.kind != Kind::Interest {
                unsolicited += 1;
            }
        });
        let received_ns = self.now_ns();
        let count = is_measuring();
        if count {
            self.counts.malformed += malformed;
            self.counts.unsolicited += unsolicited;
        }
        let mut answers = std::mem::take(&mut self.answers);
        for answer in answers.drain(..) {
            self.take_in(&answer, received_ns, count);
        }
        self.answers = answers;
        received
    }

    fn take_in(&mut self, answer: &Answer, now_ns: u64, count: bool) {
        if answer.kind == Kind::Interest {
            return;
        }
        let slots = &mut self.slots[answer.pattern];
        let slot_index = self.requests[answer.pattern].slot_index(answer.sequence, slots.len());
        let slot = &mut slots[slot_index];
        let state = if slot.sequence == answer.sequence { slot.state() } else { SlotState::Unused };
        if state != SlotState::Pending {
            if count {
                match state {
                    SlotState::Answered => self.counts.duplicates += 1,
                    SlotState::TimedOut => self.counts.late += 1,
                    _ => self.counts.unsolicited += 1,
                }
            }
            return;
        }
        slot.set(SlotState::Answered);
        let sent_ns = slot.sent_ns();
        self.pending -= 1;
        match answer.kind {
            Kind::Nack if answer.reason == NackReason::CONGESTION => self.pacer.on_congestion(now_ns, sent_ns),
            Kind::Nack => {}
            _ => self.pacer.on_data(now_ns, sent_ns, answer.is_marked),
        }
        if !count {
            return;
        }
        let counts = &mut self.counts;
        if answer.kind == Kind::Nack {
            counts.nacks += 1;
            match answer.reason {
                NackReason::CONGESTION => counts.nacks_congestion += 1,
                NackReason::DUPLICATE => counts.nacks_duplicate += 1,
                NackReason::NO_ROUTE => counts.nacks_no_route += 1,
                _ => {}
            }
        } else {
            counts.exchanges += 1;
            counts.marked += u64::from(answer.is_marked);
            counts.bytes += answer.bytes as u64;
            counts.rtt_ns.saturating_record(now_ns.saturating_sub(sent_ns));
        }
    }

    /// Builds due Interests up to the limit; returns the number of names held back.
    fn issue(&mut self, now_ns: u64) -> u64 {
        self.bytes.clear();
        self.ends.clear();
        if self.remaining == 0 {
            return 0;
        }
        // Interests that the link cannot take now remain due.
        let most = self.link.room().min(BURST).min(usize::try_from(self.remaining).unwrap_or(usize::MAX));
        let due = self.pacer.due(now_ns, self.pending, most, &mut self.draws);
        let (mut all_held_back, mut held_back) = (0, 0);
        // A clock skips an Interest that is held back; a window tries the next name.
        let is_clocked = self.pacer.is_clock();
        let mut made = 0;
        while made < due && held_back < MOST_HELD_BACK {
            let pattern = Requests::choose(&self.requests, &mut self.draws);
            let requests = &mut self.requests[pattern];
            let sequence = requests.next(&mut self.draws);
            let slots = &mut self.slots[pattern];
            let slot_index = requests.slot_index(sequence, slots.len());
            let slot = &mut slots[slot_index];
            if slot.state() == SlotState::Pending {
                all_held_back += 1;
                if is_clocked {
                    made += 1;
                } else {
                    held_back += 1;
                }
                continue;
            }
            held_back = 0;
            made += 1;
            *slot = Slot::new(sequence, now_ns, SlotState::Pending);
            self.order[pattern].push(slot_index, slots);
            self.pending += 1;
            // Any odd step visits all nonces before one repeats.
            self.nonce = self.nonce.wrapping_add(0x9E37_79B1);
            requests.template.append(&mut self.bytes, sequence, self.nonce);
            self.ends.push(self.bytes.len());
        }
        self.remaining = self.remaining.saturating_sub(self.ends.len() as u64);
        all_held_back
    }

    /// Times out lost Interests and returns their number. Interests of a pattern have the same lifetime, so the oldest
    /// times out first.
    fn forget_lost(&mut self, now_ns: u64) -> u64 {
        let mut lost = 0;
        for ((requests, slots), order) in self.requests.iter().zip(&mut self.slots).zip(&mut self.order) {
            let is_over = |slot: Slot| now_ns.saturating_sub(slot.sent_ns()) > requests.lifetime_ns;
            while let Some(slot_index) = order.take_oldest(slots, is_over) {
                let slot = &mut slots[slot_index];
                slot.set(SlotState::TimedOut);
                self.pacer.on_loss(now_ns, slot.sent_ns());
                lost += 1;
            }
        }
        self.pending -= lost;
        lost as u64
    }
}
