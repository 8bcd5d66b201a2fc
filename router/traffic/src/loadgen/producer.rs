//! The producer of the load generator: answers Interests by prefix, each with one of several replies.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use crate::workload::zipf::Draws;
use namehop_wire::Name;
use namehop_wire::lp::NackReason;

use super::LoadError;
use super::link::{Link, PATIENCE};
use super::packets::{DataTemplate, Kind, append_nack, nack_field, scan, without_digest};

/// Maximum total size of delayed replies in bytes.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// Properties of a reply Data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataShape {
    /// Components after the Interest's name. Such Data matches only Interests with CanBePrefix.
    pub suffix: Name,
    /// FreshnessPeriod in milliseconds; 0 for none.
    pub freshness_ms: u64,
    /// Bytes of Content.
    pub payload_bytes: usize,
}

/// Kind of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    /// Data.
    Data(DataShape),
    /// A Nack.
    Nack(NackReason),
    /// Nothing.
    Silence,
}

/// One reply of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Relative frequency of this reply; at least 1.
    pub weight: u32,
    /// Kind of the reply.
    pub kind: ReplyKind,
    /// Delay of the reply.
    pub delay: Duration,
}

/// A prefix of Interests and their replies. The first pattern with a matching prefix is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyPattern {
    /// Prefix of the Interests' names.
    pub prefix: Name,
    /// Possible replies; at least one.
    pub replies: Vec<Reply>,
}

impl ReplyPattern {
    /// Checks that the pattern is valid.
    ///
    /// # Errors
    /// Returns [`LoadError::Configuration`] with the reason.
    pub fn check(&self) -> Result<(), LoadError> {
        Answering::new(self).map(drop)
    }
}

/// Counters of a producer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerCounts {
    /// Interests received.
    pub interests: u64,
    /// Data sent.
    pub data: u64,
    /// Nacks sent.
    pub nacks: u64,
    /// Interests answered with [`ReplyKind::Silence`].
    pub silent: u64,
    /// Interests without a matching pattern.
    pub unmatched: u64,
    /// Interests with a Data reply too large for a packet.
    pub too_large: u64,
    /// Replies dropped because too many bytes were already delayed.
    pub delay_full: u64,
    /// Replies still delayed at the end.
    pub delayed_at_end: u64,
    /// Frames that could not be parsed.
    pub malformed: u64,
    /// Bytes of the packets sent.
    pub bytes: u64,
}

struct Answering {
    /// VALUE of the prefix.
    prefix: Vec<u8>,
    replies: Vec<ReadyReply>,
    total_weight: u64,
}

struct ReadyReply {
    up_to_weight: u64,
    kind: ReadyKind,
    delay_ns: u64,
    /// Delayed packets with their due times, in nanoseconds since the start. All have the same delay, so they are in
    /// order.
    waiting: VecDeque<(u64, Vec<u8>)>,
}

enum ReadyKind {
    Data(DataTemplate),
    Nack(Vec<u8>),
    Silence,
}

/// One producer on one connection.
pub struct Producer<L> {
    link: L,
    patterns: Vec<Answering>,
    draws: Draws,
    began: Instant,
    waiting_bytes: usize,
    has_delays: bool,
    counts: ProducerCounts,
    /// Scratch: packets to send, and their end offsets.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl<L: Link> Producer<L> {
    /// Creates a producer that has answered nothing. `seed` seeds the random choice of replies.
    ///
    /// # Errors
    /// Fails if a pattern is invalid or a payload does not fit into a packet.
    pub fn new(link: L, patterns: &[ReplyPattern], seed: u64) -> Result<Self, LoadError> {
        let patterns = patterns.iter().map(Answering::new).collect::<Result<Vec<_>, _>>()?;
        let has_delays = patterns.iter().flat_map(|pattern| &pattern.replies).any(|reply| reply.delay_ns > 0);
        Ok(Self {
            link,
            patterns,
            draws: Draws::new(seed),
            began: Instant::now(),
            waiting_bytes: 0,
            has_delays,
            counts: ProducerCounts::default(),
            bytes: Vec::new(),
            ends: Vec::new(),
        })
    }

    /// Returns the producer's connection.
    pub fn link(&self) -> &L {
        &self.link
    }

    /// Returns the counters so far.
    pub fn counts(&self) -> ProducerCounts {
        let delayed_at_end = self.replies().map(|reply| reply.waiting.len() as u64).sum();
        ProducerCounts { delayed_at_end, ..self.counts }
    }

    fn replies(&self) -> impl Iterator<Item = &ReadyReply> {
        self.patterns.iter().flat_map(|pattern| &pattern.replies)
    }

    /// Answers received Interests, and sends delayed replies that are due.
    ///
    /// # Errors
    /// Fails if the connection is broken.
    pub fn step(&mut self) -> io::Result<()> {
        let now_ns = if self.has_delays { self.began.elapsed().as_nanos() as u64 } else { 0 };
        let next_ns = self.replies().filter_map(|reply| reply.waiting.front()).map(|(due_ns, _)| *due_ns).min();
        let patience = next_ns.map_or(PATIENCE, |due| Duration::from_nanos(due.saturating_sub(now_ns)).min(PATIENCE));
        let Self { patterns, draws, waiting_bytes, counts, bytes, ends, .. } = self;
        bytes.clear();
        ends.clear();
        let received = self.link.receive(patience, &mut |frame| {
            let Some(scanned) = scan(frame) else {
                counts.malformed += 1;
                return;
            };
            // Other packets may arrive too, for instance answers to commands.
            if scanned.kind != Kind::Interest {
                return;
            }
            counts.interests += 1;
            let Some(pattern) = patterns.iter_mut().find(|pattern| scanned.name.starts_with(&pattern.prefix)) else {
                counts.unmatched += 1;
                return;
            };
            let reply = pattern.choose(draws);
            let start = bytes.len();
            match &reply.kind {
                ReadyKind::Data(template) => {
                    if !template.append(bytes, without_digest(scanned.name), scanned.pit_token) {
                        counts.too_large += 1;
                        return;
                    }
                }
                ReadyKind::Nack(field) => append_nack(bytes, field, scanned.packet, scanned.pit_token),
                ReadyKind::Silence => {
                    counts.silent += 1;
                    return;
                }
            }
            if reply.delay_ns == 0 {
                counts.count(&reply.kind, bytes.len() - start);
                ends.push(bytes.len());
                return;
            }
            // Time passes while the link waits for packets, so each delay starts at its packet.
            let due_ns = self.began.elapsed().as_nanos() as u64 + reply.delay_ns;
            let packet = bytes.split_off(start);
            if *waiting_bytes + packet.len() > MAX_WAITING_BYTES {
                counts.delay_full += 1;
                return;
            }
            *waiting_bytes += packet.len();
            reply.waiting.push_back((due_ns, packet));
        });
        if self.has_delays {
            self.take_due();
        }
        if !self.ends.is_empty() {
            self.link.send(&self.bytes, &self.ends)?;
        }
        // Interests received before the connection broke have been answered; the link counts those packets.
        received
    }

    fn take_due(&mut self) {
        let now_ns = self.began.elapsed().as_nanos() as u64;
        for reply in self.patterns.iter_mut().flat_map(|pattern| &mut pattern.replies) {
            while reply.waiting.front().is_some_and(|(due_ns, _)| *due_ns <= now_ns)
                && let Some((_, packet)) = reply.waiting.pop_front()
            {
                self.waiting_bytes -= packet.len();
                self.counts.count(&reply.kind, packet.len());
                self.bytes.extend_from_slice(&packet);
                self.ends.push(self.bytes.len());
            }
        }
    }
}

impl ProducerCounts {
    fn count(&mut self, kind: &ReadyKind, packet_bytes: usize) {
        match kind {
            ReadyKind::Data(_) => self.data += 1,
            ReadyKind::Nack(_) => self.nacks += 1,
            ReadyKind::Silence => {}
        }
        self.bytes += packet_bytes as u64;
    }
}

impl Answering {
    fn new(pattern: &ReplyPattern) -> Result<Answering, LoadError> {
        let fail = |text: &str| Err(LoadError::Configuration(format!("pattern {}: {text}", pattern.prefix)));
        if pattern.replies.is_empty() {
            return fail("it has no reply");
        }
        let mut total_weight = 0;
        let mut replies = Vec::new();
        for reply in &pattern.replies {
            if reply.weight == 0 {
                return fail("a reply has weight 0: weights must be at least 1");
            }
            if reply.delay > super::LONGEST {
                return fail("a reply has a delay of more than 30 days");
            }
            total_weight += u64::from(reply.weight);
            let kind = match &reply.kind {
                ReplyKind::Data(shape) => ReadyKind::Data(DataTemplate::new(&pattern.prefix, shape)?),
                ReplyKind::Nack(reason) => ReadyKind::Nack(nack_field(*reason)),
                ReplyKind::Silence => ReadyKind::Silence,
            };
            let delay_ns = reply.delay.as_nanos() as u64;
            replies.push(ReadyReply { up_to_weight: total_weight, kind, delay_ns, waiting: VecDeque::new() });
        }
        Ok(Answering { prefix: pattern.prefix.value().to_vec(), replies, total_weight })
    }

    fn choose(&mut self, draws: &mut Draws) -> &mut ReadyReply {
        let index = match self.replies.len() {
            1 => 0,
            _ => {
                let at = draws.number() % self.total_weight;
                self.replies.partition_point(|reply| reply.up_to_weight <= at)
            }
        };
        &mut self.replies[index]
    }
}
