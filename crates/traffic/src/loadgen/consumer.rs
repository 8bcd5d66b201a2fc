//! The consuming side: keeps a fixed number of Interests in flight and measures their round trips.

use std::io;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::Load;
use super::link::Link;
use super::packets::{InterestTemplate, Kind, scan};

/// How often lost Interests are looked for.
const LOSS_CHECK: Duration = Duration::from_millis(50);
/// Longest round-trip time that is told from longer ones: an hour.
const MAX_RTT_NS: u64 = 3_600_000_000_000;
/// Decimal digits of a round-trip time that are kept.
const RTT_DIGITS: u8 = 3;
/// Slots per Interest in flight: late answers are still told from new ones.
const SLOTS_PER_INTEREST: usize = 16;
const MIN_SLOTS: usize = 1 << 12;

/// What a consumer counted while it was measuring.
#[derive(Clone, Debug)]
pub struct ConsumerCounts {
    /// Interests sent.
    pub interests: u64,
    /// Interests answered by Data.
    pub exchanges: u64,
    /// Interests without an answer.
    pub timeouts: u64,
    /// Interests answered by a Nack.
    pub nacks: u64,
    /// Data that answered nothing: duplicates and late ones.
    pub unexpected: u64,
    /// Frames that it did not understand, measuring or not.
    pub malformed: u64,
    /// Round-trip times in nanoseconds, to a thousandth of each.
    pub rtt_ns: Histogram<u64>,
}

impl ConsumerCounts {
    fn new(rtt_ns: Histogram<u64>) -> Self {
        Self { interests: 0, exchanges: 0, timeouts: 0, nacks: 0, unexpected: 0, malformed: 0, rtt_ns }
    }
}

#[derive(Clone, Copy, Default)]
struct Slot {
    sequence: u64,
    /// Nanoseconds since the start of the run; `None` when nothing is pending here.
    sent_ns: Option<u64>,
}

/// One consumer, on one connection.
pub struct Consumer<L> {
    link: L,
    template: InterestTemplate,
    in_flight: usize,
    /// Sequence numbers lie in `first..first + names`; 0 = they never repeat.
    names: u64,
    first: u64,
    lifetime_ns: u64,
    slots: Vec<Slot>,
    issued: u64,
    nonce: u32,
    pending: usize,
    started: Instant,
    next_loss_check_ns: u64,
    counts: ConsumerCounts,
    /// Scratch: Interests to send, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Scratch: what came in.
    answers: Vec<(Kind, u64)>,
}

impl<L: Link> Consumer<L> {
    /// A consumer that has sent nothing yet.
    ///
    /// # Errors
    /// When there is no memory for its figures.
    pub fn new(link: L, load: &Load) -> io::Result<Self> {
        let slots = (load.in_flight * SLOTS_PER_INTEREST).max(MIN_SLOTS).next_power_of_two();
        // A random start gives every run new names; cycling names are the same in every run.
        let first = if load.names == 0 { rand::random::<u64>() >> 1 } else { 0 };
        let rtt_ns = Histogram::new_with_bounds(1, MAX_RTT_NS, RTT_DIGITS).map_err(io::Error::other)?;
        Ok(Self {
            link,
            template: InterestTemplate::new(&load.prefix, load.lifetime.as_millis() as u64),
            in_flight: load.in_flight,
            names: load.names,
            first,
            lifetime_ns: load.lifetime.as_nanos() as u64,
            slots: vec![Slot::default(); slots],
            issued: 0,
            nonce: rand::random(),
            pending: 0,
            started: Instant::now(),
            next_loss_check_ns: 0,
            counts: ConsumerCounts::new(rtt_ns),
            bytes: Vec::new(),
            ends: Vec::new(),
            answers: Vec::new(),
        })
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn slot(&mut self, sequence: u64) -> &mut Slot {
        let index = sequence as usize & (self.slots.len() - 1);
        &mut self.slots[index]
    }

    /// Its connection.
    pub fn link(&self) -> &L {
        &self.link
    }

    /// What was counted since this was asked last.
    pub fn take_counts(&mut self) -> ConsumerCounts {
        // One with the same bounds and nothing in it.
        let rtt_ns = Histogram::new_from(&self.counts.rtt_ns);
        std::mem::replace(&mut self.counts, ConsumerCounts::new(rtt_ns))
    }

    /// Sends new Interests up to the limit, and takes in what has come. Counts while `is_measuring`, which may change while
    /// this waits for packets.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn step(&mut self, is_measuring: impl Fn() -> bool) -> io::Result<()> {
        let now_ns = self.now_ns();
        let count = is_measuring();
        let mut lost = 0;
        if now_ns >= self.next_loss_check_ns {
            self.next_loss_check_ns = now_ns + LOSS_CHECK.as_nanos() as u64;
            lost = self.forget_lost(now_ns);
        }
        self.issue(now_ns);
        if !self.ends.is_empty() {
            self.link.send(&self.bytes, &self.ends)?;
        }
        if count {
            self.counts.interests += self.ends.len() as u64;
            self.counts.timeouts += lost;
        }

        let Self { template, answers, counts, .. } = self;
        self.link.receive(&mut |frame| match scan(frame) {
            Some(scanned) => {
                answers.extend(template.sequence(scanned.name).map(|sequence| (scanned.kind, sequence)));
            }
            None => counts.malformed += 1,
        })?;
        let received_ns = self.now_ns();
        let count = is_measuring();
        let mut answers = std::mem::take(&mut self.answers);
        for (kind, sequence) in answers.drain(..) {
            let slot = self.slot(sequence);
            let sent_ns = if slot.sequence == sequence { slot.sent_ns.take() } else { None };
            self.pending -= usize::from(sent_ns.is_some());
            match (kind, sent_ns) {
                _ if !count => {}
                (Kind::Data, Some(sent_ns)) => {
                    self.counts.exchanges += 1;
                    self.counts.rtt_ns.saturating_record(received_ns.saturating_sub(sent_ns));
                }
                (Kind::Nack, Some(_)) => self.counts.nacks += 1,
                _ => self.counts.unexpected += 1,
            }
        }
        self.answers = answers;
        Ok(())
    }

    /// Makes new Interests up to the limit.
    fn issue(&mut self, now_ns: u64) {
        self.bytes.clear();
        self.ends.clear();
        // Ends: there are more slots, and at least as many names, as Interests in flight.
        while self.pending < self.in_flight {
            let offset = if self.names == 0 { self.issued } else { self.issued % self.names };
            let sequence = self.first.wrapping_add(offset);
            self.issued += 1;
            let slot = self.slot(sequence);
            if slot.sent_ns.is_some() {
                continue;
            }
            *slot = Slot { sequence, sent_ns: Some(now_ns) };
            self.pending += 1;
            // Any odd step visits all nonces before one repeats.
            self.nonce = self.nonce.wrapping_add(0x9E37_79B1);
            self.template.append(&mut self.bytes, sequence, self.nonce);
            self.ends.push(self.bytes.len());
        }
    }

    fn forget_lost(&mut self, now_ns: u64) -> u64 {
        let lifetime_ns = self.lifetime_ns;
        let mut lost = 0;
        for slot in &mut self.slots {
            if slot.sent_ns.is_some_and(|sent_ns| now_ns.saturating_sub(sent_ns) > lifetime_ns) {
                slot.sent_ns = None;
                lost += 1;
            }
        }
        self.pending -= lost;
        lost as u64
    }
}
