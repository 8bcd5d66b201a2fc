//! Requests of a workload through a worker with a Content Store; its policy determines the hits.
//!
//! Consumers on the first link request the names of the workload. Producers on the second link answer the Interests
//! that the worker forwards, in order. The number of pending Interests is kept at the parameters' value. Each poll
//! iteration of the worker receives a burst of frames: Data for the Interests pending in excess of that number, and
//! Interests. Only poll iterations are timed.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use namehop_engine::counters::EngineCounters;
use namehop_engine::second_tier::TierReport;
use namehop_face::address::MacAddress;
use namehop_orders::BlockTicks;
use namehop_packet::{DropReason, PacketBuffer, Timestamp};
use namehop_port::encapsulation::HEADER_BYTES;
use namehop_table::clock::cycles_per_second;
use namehop_wire::lp::LpPacket;
use namehop_wire::peek::name_value;

use super::EngineBenchError;
use super::frames::{LinkHeaders, Template, Token, nonce_of, token_of};
use super::peers::{LINKS, Peers, port_address};
use super::prefixes::Prefixes;
use super::rig::Rig;
use super::stock::{self, KINDS, Stock};
use crate::schedule::EngineParameters;
use crate::workload::Workload;

/// Kinds of received packets; the stock has buffers for each.
const INTERESTS: usize = 0;
const DATA: usize = 1;
/// Maximum time that passes on the worker's clock per packet. It ensures that pending Interests are answered in time
/// even if the system interrupts the worker.
const MAX_NS_PER_PACKET: u64 = 800;
/// Time without CanBePrefix Interests after which the Content Store drops its index by prefix.
const SETTLING_NS: u64 = 61_000_000_000;
/// Maximum time that a disk may delay Interests.
const PATIENCE: Duration = Duration::from_secs(10);
/// Requests of the warm-up between two progress reports.
const TELL_REQUESTS: u64 = 1 << 18;

/// An Interest forwarded by the worker.
struct Pending {
    /// TLV-VALUE of the name.
    name: Box<[u8]>,
    token: Token,
    /// Link and address of the producer that received it.
    producer: (usize, MacAddress),
}

/// Frames received in one poll iteration.
#[derive(Default)]
struct Burst {
    frames: [Vec<PacketBuffer>; LINKS],
    received: [usize; KINDS],
}

/// Cost and work of poll iterations since some moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    /// Time-stamp counter ticks.
    pub(super) ticks: u64,
    /// Number of Interests from consumers.
    pub(super) requests: u64,
    /// Bytes of frames sent by the worker.
    pub(super) sent_bytes: u64,
}

/// A worker, its consumers and its producers.
pub(super) struct Requests<'a> {
    rig: Rig,
    stock: Stock,
    workload: &'a Workload,
    /// Returns the number of the next name to request.
    next_name: Box<dyn FnMut() -> u64 + 'a>,
    peers: Peers,
    parameters: &'a EngineParameters,
    interest: Template,
    data: Template,
    now: Timestamp,
    ns_per_tick: f64,
    pending: VecDeque<Pending>,
    prepared: VecDeque<Burst>,
    /// Number of frames in the prepared bursts, and the number required before one is performed.
    waiting: usize,
    waiting_limit: usize,
    /// Number of Interests made; Nonces are successive odd numbers.
    made: u32,
    sent: [Vec<PacketBuffer>; LINKS],
    work: Work,
}

impl<'a> Requests<'a> {
    pub(super) fn new(
        rig: Rig,
        prefixes: &'a Prefixes,
        parameters: &'a EngineParameters,
        next_name: Box<dyn FnMut() -> u64 + 'a>,
    ) -> Self {
        let workload = &prefixes.workload;
        let headers = LinkHeaders::of(rig.order());
        let interest = Template::interest(workload.name_bytes(), false, headers);
        let data = Template::data(workload, parameters.payload_bytes, headers);
        Requests {
            stock: Stock::new(rig.pool.clone(), parameters, [interest.bytes(), data.bytes()]),
            rig,
            workload,
            next_name,
            peers: prefixes.peers,
            parameters,
            waiting_limit: stock::waiting(parameters, data.bytes()),
            interest,
            data,
            now: Timestamp(1_000_000_000),
            ns_per_tick: 1e9 / cycles_per_second() as f64,
            pending: VecDeque::new(),
            prepared: VecDeque::new(),
            waiting: 0,
            made: 0,
            sent: Default::default(),
            work: Work::default(),
        }
    }

    /// Sends requests until `is_warm`, of their number and of the packets in the cache. Calls `tell` with their number.
    ///
    /// # Errors
    /// Fails if the worker loses packets.
    pub(super) fn warm_up(
        &mut self,
        is_warm: &dyn Fn(u64, usize) -> bool,
        tell: &dyn Fn(u64),
    ) -> Result<(), EngineBenchError> {
        // The first exchange starts actions that run for a minute after the start of a router. The clock then skips
        // that minute.
        while self.work.requests == 0 {
            self.turn()?;
        }
        self.answer_all()?;
        self.now.0 += SETTLING_NS;
        let mut told = 0;
        while !is_warm(self.work.requests, self.cached()) {
            self.turn()?;
            if self.work.requests >= told {
                tell(self.work.requests);
                told += TELL_REQUESTS;
            }
        }
        Ok(())
    }

    /// Sends requests for `time`, and returns the work done.
    ///
    /// # Errors
    /// Fails if the worker loses packets.
    pub(super) fn measure(&mut self, time: Duration) -> Result<Work, EngineBenchError> {
        let (before, started) = (self.work, Instant::now());
        while started.elapsed() < time {
            self.turn()?;
        }
        let Work { ticks, requests, sent_bytes } = self.work;
        Ok(Work {
            ticks: ticks - before.ticks,
            requests: requests - before.requests,
            sent_bytes: sent_bytes - before.sent_bytes,
        })
    }

    /// Counters of the worker's engine since its start.
    pub(super) fn counters(&self) -> &EngineCounters {
        self.rig.engine().counters()
    }

    /// Report of the second tier, if there is one.
    pub(super) fn disk_report(&self) -> Option<TierReport> {
        self.rig.engine().cs_info().second_tier
    }

    /// Ticks of the blocks since the start, if they are timed; otherwise none.
    pub(super) fn block_ticks(&self) -> BlockTicks {
        self.rig.order().block_ticks().copied().unwrap_or_default()
    }

    /// Number of packets in the Content Store.
    pub(super) fn cached(&self) -> usize {
        self.rig.engine().table_sizes().cs
    }

    /// Answers all pending Interests and ends the load, which returns all buffers.
    ///
    /// An Interest that the host delays by more than the suppression interval of the strategy is forwarded again for
    /// the next Interest of its name. It then gets two Data, of which the second is unsolicited.
    ///
    /// # Errors
    /// Fails if the worker has lost other packets.
    pub(super) fn finish(mut self) -> Result<(), EngineBenchError> {
        self.answer_all()?;
        self.answer_who_waited()?;
        let EngineCounters {
            in_interests,
            out_interests,
            satisfied_interests,
            aggregated_interests,
            cs_hits,
            drops,
            ..
        } = *self.counters();
        let forwarded_again = (out_interests + cs_hits + aggregated_interests).saturating_sub(in_interests);
        let is_expected = |&(reason, count): &(DropReason, u64)| {
            count == 0 || reason == DropReason::UnsolicitedData && count <= forwarded_again
        };
        let lost: Vec<String> = drops
            .iter()
            .filter(|drop| !is_expected(drop))
            .map(|(reason, count)| format!("; {count} packets were dropped: {reason}"))
            .collect();
        if satisfied_interests + aggregated_interests != in_interests || !lost.is_empty() {
            return Err(EngineBenchError::Rig(format!(
                "of {in_interests} Interests, {satisfied_interests} were satisfied and {aggregated_interests} \
                 aggregated{}",
                lost.concat()
            )));
        }
        self.stock.clear();
        Ok(())
    }

    /// Performs all prepared bursts, and answers all pending Interests.
    fn answer_all(&mut self) -> Result<(), EngineBenchError> {
        self.waiting = 0;
        while let Some(burst) = self.prepared.pop_front() {
            self.perform(burst)?;
        }
        while !self.pending.is_empty() {
            let mut burst = Burst::default();
            for _ in 0..self.parameters.burst.min(self.pending.len()) {
                self.prepare_data(&mut burst);
            }
            self.perform(burst)?;
        }
        Ok(())
    }

    /// Answers Interests that waited for a disk and are forwarded now.
    fn answer_who_waited(&mut self) -> Result<(), EngineBenchError> {
        let deadline = Instant::now() + PATIENCE;
        while self.disk_report().is_some_and(|disk| disk.waiting > 0) && Instant::now() < deadline {
            self.now.0 += 1_000_000;
            self.perform(Burst::default())?;
            self.answer_all()?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Prepares a burst, and performs the oldest prepared one if enough are prepared.
    fn turn(&mut self) -> Result<(), EngineBenchError> {
        let mut burst = Burst::default();
        let data = self.pending.len().saturating_sub(self.parameters.in_flight).min(self.parameters.burst);
        (0..data).for_each(|_| self.prepare_data(&mut burst));
        (data..self.parameters.burst).for_each(|_| self.prepare_interest(&mut burst));
        self.waiting += burst.received.iter().sum::<usize>();
        self.prepared.push_back(burst);
        if self.waiting <= self.waiting_limit {
            return Ok(());
        }
        let Some(burst) = self.prepared.pop_front() else { return Ok(()) };
        self.waiting -= burst.received.iter().sum::<usize>();
        self.perform(burst)
    }

    fn prepare_interest(&mut self, burst: &mut Burst) {
        let name = (self.next_name)();
        self.made = self.made.wrapping_add(1);
        let nonce = self.made << 1 | 1;
        let peer = self.peers.downstream(self.workload.prefix_of(name), u64::from(nonce));
        let write = |out: &mut [u8]| {
            self.workload.write_name(name, out);
        };
        let addresses = (port_address(peer.link), peer.address());
        let frame = self.stock.take(INTERESTS);
        let frame = frame.and_then(|frame| self.interest.fill(addresses, write, name, Some(nonce), frame));
        burst.frames[peer.link].extend(frame);
        burst.received[INTERESTS] += 1;
    }

    fn prepare_data(&mut self, burst: &mut Burst) {
        let Some(Pending { name, token, producer: (link, address) }) = self.pending.pop_front() else { return };
        let write = |out: &mut [u8]| out[..name.len()].copy_from_slice(&name);
        let frame = self.stock.take(DATA);
        let frame = frame.and_then(|frame| self.data.fill((port_address(link), address), write, token, None, frame));
        burst.frames[link].extend(frame);
        burst.received[DATA] += 1;
    }

    /// Runs one poll iteration of the worker with a burst, and takes the frames that it sent.
    fn perform(&mut self, mut burst: Burst) -> Result<(), EngineBenchError> {
        let packets = burst.received.iter().sum::<usize>();
        let given: usize = burst.frames.iter().map(Vec::len).sum();
        if given != packets {
            return Err(EngineBenchError::Lost { got: given, expected: packets });
        }
        for (link, frames) in self.rig.links.iter_mut().zip(&mut burst.frames) {
            link.transmit(frames);
        }
        let spent = self.rig.turn(self.now, &mut self.stock, burst.received);
        self.work.ticks += spent;
        self.work.requests += burst.received[INTERESTS] as u64;
        self.now.0 += ((spent as f64 * self.ns_per_tick) as u64).min(MAX_NS_PER_PACKET * packets as u64);
        for link in 0..LINKS {
            let mut frames = std::mem::take(&mut self.sent[link]);
            let mut before = usize::MAX;
            while frames.len() != before {
                before = frames.len();
                self.rig.links[link].receive(&mut frames);
            }
            for frame in frames.drain(..) {
                self.work.sent_bytes += frame.bytes().len() as u64;
                // Data ends with its signature, which is zeros here.
                if nonce_of(&frame) != 0 {
                    let pending = pending_of(&frame, link).ok_or_else(|| {
                        EngineBenchError::Rig("the worker sent a frame without an Interest".to_owned())
                    })?;
                    self.pending.push_back(pending);
                }
                self.stock.put(frame);
            }
            self.sent[link] = frames;
        }
        Ok(())
    }
}

/// Parses the Interest in a frame that the worker sent on a link.
fn pending_of(frame: &PacketBuffer, link: usize) -> Option<Pending> {
    let (header, packet) = frame.bytes().split_at_checked(HEADER_BYTES)?;
    let address = *header.first_chunk::<{ size_of::<MacAddress>() }>()?;
    let link_packet = LpPacket::decode(packet).ok()?;
    let name = name_value(link_packet.fragment?)?;
    Some(Pending { name: name.into(), token: token_of(frame).unwrap_or(0), producer: (link, address) })
}
