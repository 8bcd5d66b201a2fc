//! The consuming side: keeps a fixed number of Interests in flight and measures their round trips.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::LoadConfig;
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

/// What the consumer counted while measuring.
#[derive(Debug, Default)]
pub(super) struct ConsumerResult {
    pub(super) interests: u64,
    pub(super) exchanges: u64,
    pub(super) timeouts: u64,
    pub(super) nacks: u64,
    pub(super) unexpected: u64,
    pub(super) malformed: u64,
    pub(super) rtt_ns: Option<Histogram<u64>>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    sequence: u64,
    /// Nanoseconds since the start of the run; `None` when nothing is pending here.
    sent_ns: Option<u64>,
}

/// State of the consuming thread.
pub(super) struct Consumer {
    link: Link,
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
}

impl Consumer {
    pub(super) fn new(link: Link, template: InterestTemplate, config: &LoadConfig) -> Self {
        let slots = (config.in_flight * SLOTS_PER_INTEREST).max(MIN_SLOTS).next_power_of_two();
        // A random start gives every run new names; cycling names are the same in every run.
        let first = if config.names == 0 { rand::random::<u64>() >> 1 } else { 0 };
        Self {
            link,
            template,
            in_flight: config.in_flight,
            names: config.names,
            first,
            lifetime_ns: config.lifetime.as_nanos() as u64,
            slots: vec![Slot::default(); slots],
            issued: 0,
            nonce: rand::random(),
            pending: 0,
            started: Instant::now(),
        }
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn slot(&mut self, sequence: u64) -> &mut Slot {
        let index = sequence as usize & (self.slots.len() - 1);
        &mut self.slots[index]
    }

    /// Runs until `ended`, counting while `measuring`.
    pub(super) fn run(&mut self, ended: &AtomicBool, measuring: &AtomicBool) -> io::Result<ConsumerResult> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let mut result = ConsumerResult::default();
        let mut rtt_ns = Histogram::new_with_bounds(1, MAX_RTT_NS, RTT_DIGITS).map_err(io::Error::other)?;
        let mut answers: Vec<(Kind, u64)> = Vec::new();
        let mut next_loss_check_ns = 0;
        while !ended.load(Ordering::Relaxed) {
            let now_ns = self.now_ns();
            let count = measuring.load(Ordering::Acquire);
            let lost = if now_ns >= next_loss_check_ns {
                next_loss_check_ns = now_ns + LOSS_CHECK.as_nanos() as u64;
                self.forget_lost(now_ns)
            } else {
                0
            };
            self.issue(now_ns, &mut bytes, &mut ends);
            if !ends.is_empty() {
                self.link.send(&bytes, &ends)?;
            }
            if count {
                result.interests += ends.len() as u64;
                result.timeouts += lost;
            }
            bytes.clear();
            ends.clear();

            let template = &self.template;
            let mut malformed = 0;
            self.link.receive(|frame| match scan(frame) {
                Some(scanned) => {
                    answers.extend(template.sequence(scanned.name).map(|sequence| (scanned.kind, sequence)))
                }
                None => malformed += 1,
            })?;
            let received_ns = self.now_ns();
            let count = measuring.load(Ordering::Acquire);
            result.malformed += malformed;
            for (kind, sequence) in answers.drain(..) {
                let slot = self.slot(sequence);
                let sent_ns = if slot.sequence == sequence { slot.sent_ns.take() } else { None };
                self.pending -= usize::from(sent_ns.is_some());
                match (kind, sent_ns) {
                    _ if !count => {}
                    (Kind::Data, Some(sent_ns)) => {
                        result.exchanges += 1;
                        rtt_ns.saturating_record(received_ns.saturating_sub(sent_ns));
                    }
                    (Kind::Nack, Some(_)) => result.nacks += 1,
                    _ => result.unexpected += 1,
                }
            }
        }
        result.rtt_ns = Some(rtt_ns);
        Ok(result)
    }

    /// Queues new Interests up to the limit.
    fn issue(&mut self, now_ns: u64, bytes: &mut Vec<u8>, ends: &mut Vec<usize>) {
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
            self.template.append(bytes, sequence, self.nonce);
            ends.push(bytes.len());
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
