//! Order of the packets that the worker receives, and cost of its poll iterations.
//!
//! Interests with new names are sent until the requested number is pending; from then on there are as many Data as
//! Interests. Interests that the Content Store shall answer have names answered before, drawn from those still cached.
//! A burst is prepared some time before it is performed, so that its packets have left the core's private caches.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use namehop_orders::ScheduleKind;
use namehop_packet::{PacketBuffer, Timestamp};
use namehop_table::clock::cycles_per_second;

use super::EngineBenchError;
use super::costs::Samples;
use super::flood::Flood;
use super::frames::{LinkHeaders, Template, nonce_of, token_of};
use super::names::Names;
use super::peers::{LINKS, Peers};
use super::prefixes::Prefixes;
use super::rig::Rig;
use super::stock::{self, Stock};
use super::turn::{INTERESTS, Turn};
use super::watch::Watch;
use crate::counters::{Counters, Tally};
use crate::schedule::{ByPacket, EngineParameters, PacketKind, Traffic};
use crate::workload::Workload;

/// Time without CanBePrefix Interests after which the Content Store drops its index by prefix.
const SETTLING_NS: u64 = 61_000_000_000;
/// Bit set only in Nonces of floods.
pub(super) const HIGH_NONCE: u32 = 1 << 31;
/// Maximum time that passes on the worker's clock per packet. It ensures that a million pending Interests, answered in
/// any order, are answered in time even if the system interrupts the worker.
const MAX_NS_PER_PACKET: u64 = 800;
/// Bursts of the warm-up between two progress reports.
const TELL_STEPS: u64 = 4096;
/// Maximum number of poll iterations per burst.
const MAX_TURNS: usize = 4;
/// Divisor of the measuring time that gives the counting time.
const COUNTING_PART: u32 = 2;
/// Bursts of cache hits per burst of misses if only the cost of hits is wanted.
const HITS_TO_MEASURE: f64 = 0.05;
/// In mixed traffic, mixed bursts per pair of bursts of one kind.
const MIXED_BURSTS: usize = 8;

/// Cost of a burst.
pub(super) struct Step {
    pub(super) kind: Option<PacketKind>,
    pub(super) ticks: u64,
    pub(super) interests: usize,
    pub(super) data: usize,
}

impl Step {
    pub(super) fn per_packet(&self) -> f64 {
        self.ticks as f64 / (self.interests + self.data).max(1) as f64
    }
}

/// The load of one worker.
pub(super) struct Load<'a> {
    rig: Rig,
    pub(super) stock: Stock,
    pub(super) workload: &'a Workload,
    pub(super) peers: Peers,
    pub(super) parameters: &'a EngineParameters,
    pub(super) names: Names,
    pub(super) interest: Template,
    pub(super) data: Template,
    /// The worker's clock. It advances only during poll iterations, as if packets arrived as fast as the worker handles
    /// them, and not while the system does other work.
    now: Timestamp,
    ns_per_tick: f64,
    prepared: VecDeque<Turn>,
    /// Number of frames in the prepared turns.
    waiting: usize,
    /// Number of frames that must be prepared before a turn is performed.
    waiting_limit: usize,
    /// Prepared Interests minus prepared Data.
    pub(super) prepared_balance: isize,
    sent: [Vec<PacketBuffer>; LINKS],
    /// The active observer, if any.
    pub(super) watch: Option<Watch>,
    /// The active flood, if any.
    pub(super) flood: Option<Flood>,
}

impl<'a> Load<'a> {
    /// Creates a load with names that no load with another `number` uses.
    pub(super) fn new(
        rig: Rig,
        prefixes: &'a Prefixes,
        parameters: &'a EngineParameters,
        number: u64,
    ) -> Result<Self, EngineBenchError> {
        let workload = &prefixes.workload;
        let headers = LinkHeaders::of(rig.order());
        let data_headers = if parameters.data_has_token { headers } else { LinkHeaders::Absent };
        let interest = Template::interest(workload.name_bytes(), false, headers);
        let data = Template::data(workload, parameters.payload_bytes, data_headers);
        let waiting_limit = stock::waiting(parameters, data.bytes());
        Ok(Load {
            stock: Stock::new(rig.pool.clone(), parameters, [interest.bytes(), data.bytes()]),
            rig,
            workload,
            peers: prefixes.peers,
            parameters,
            names: Names::new(parameters, number, workload.name_capacity(), waiting_limit),
            waiting_limit,
            interest,
            data,
            now: Timestamp(1_000_000_000),
            ns_per_tick: 1e9 / cycles_per_second() as f64,
            prepared: VecDeque::new(),
            waiting: 0,
            prepared_balance: 0,
            sent: Default::default(),
            watch: None,
            flood: None,
        })
    }

    /// Changes the order on the same path.
    pub(super) fn change_order(&mut self, kind: ScheduleKind) {
        self.rig.change_order(kind);
    }

    /// Runs until the requested numbers of Interests are pending and of Data cached, and as many timers expire as are
    /// set. Calls `tell` repeatedly with the progress in thousandths.
    pub(super) fn warm_up(&mut self, tell: &dyn Fn(u64, u64)) -> Result<(), EngineBenchError> {
        tell(0, 1000);
        // The first exchange starts actions that run for a minute after the start of a router. The clock then skips
        // that minute.
        let waiting_limit = std::mem::take(&mut self.waiting_limit);
        self.step(PacketKind::InterestMiss)?;
        self.step(PacketKind::Data)?;
        self.waiting_limit = waiting_limit;
        self.now.0 += SETTLING_NS;
        let (begin, time_ns) = (self.now.0, self.parameters.warm_up.as_nanos() as u64);
        while self.in_flight() < self.parameters.in_flight {
            self.step(PacketKind::InterestMiss)?;
        }
        let (mut in_cache, mut steps) = (0, 0u64);
        while in_cache < self.parameters.cs_capacity || self.now.0 < begin + time_ns {
            if steps.is_multiple_of(TELL_STEPS) {
                let part = |done: u64, of: u64| (done * 1000).checked_div(of).unwrap_or(1000);
                let cache = part(in_cache as u64, self.parameters.cs_capacity as u64);
                tell(cache.min(part(self.now.0 - begin, time_ns)), 1000);
            }
            steps += 1;
            let step = match self.parameters.traffic {
                Traffic::Mixed => self.mixed_step()?,
                Traffic::Sorted => {
                    self.step(PacketKind::InterestMiss)?;
                    self.step(PacketKind::Data)?
                }
            };
            in_cache += step.data;
        }
        Ok(())
    }

    /// Measures the cost of packets for `time`, and adds it to `samples`.
    pub(super) fn measure(&mut self, time: Duration, samples: &mut Samples) -> Result<(), EngineBenchError> {
        self.exchange(time, &mut |step| samples.add(&step))
    }

    /// Runs the same load with hardware counters, which would distort the ticks.
    pub(super) fn count(&mut self, counters: Counters) -> Result<ByPacket<Tally>, EngineBenchError> {
        self.watch = Some(Watch::Counters(Box::new(counters), Box::default()));
        self.exchange(self.parameters.time / COUNTING_PART, &mut |_| ())?;
        Ok(match self.watch.take() {
            Some(Watch::Counters(_, tallies)) => *tallies,
            _ => ByPacket::default(),
        })
    }

    /// Runs bursts of all kinds for `time`. Calls `on_step` with the cost of each.
    fn exchange(&mut self, time: Duration, on_step: &mut dyn FnMut(Step)) -> Result<(), EngineBenchError> {
        // Ensures at least one burst of hits.
        let (mut hits_due, started) = (1.0, Instant::now());
        while started.elapsed() < time {
            self.exchange_once(&mut hits_due, on_step)?;
        }
        Ok(())
    }

    /// Runs mixed bursts, if there are any, then a burst of each kind, and the cache hits that are due.
    pub(super) fn exchange_once(
        &mut self,
        hits_due: &mut f64,
        on_step: &mut dyn FnMut(Step),
    ) -> Result<(), EngineBenchError> {
        if self.parameters.traffic == Traffic::Mixed {
            for _ in 0..MIXED_BURSTS {
                on_step(self.mixed_step()?);
            }
        }
        on_step(self.step(PacketKind::InterestMiss)?);
        on_step(self.step(PacketKind::Data)?);
        *hits_due += match self.parameters.hit_ratio.min(0.99) {
            ratio if ratio > 0.0 => ratio / (1.0 - ratio),
            _ => HITS_TO_MEASURE,
        };
        while *hits_due >= 1.0 && self.names.has_answered() {
            on_step(self.step(PacketKind::InterestHit)?);
            *hits_due -= 1.0;
        }
        Ok(())
    }

    /// Ends the load, and checks that all buffers were returned.
    pub(super) fn finish(mut self) -> Result<(), EngineBenchError> {
        self.prepared.clear();
        self.stock.clear();
        match self.rig.buffers_in_use() {
            0 => Ok(()),
            left => Err(EngineBenchError::Rig(format!("{left} packet buffers were not returned"))),
        }
    }

    /// Prepares a burst of one kind, and performs the oldest prepared one.
    pub(super) fn step(&mut self, kind: PacketKind) -> Result<Step, EngineBenchError> {
        let count = self.parameters.burst - self.flood.as_ref().map_or(0, Flood::packets_of_burst);
        let turn = match kind {
            PacketKind::InterestMiss => self.prepare(Some(kind), [count, 0, 0]),
            PacketKind::InterestHit => self.prepare(Some(kind), [0, count, 0]),
            PacketKind::Data => self.prepare(Some(kind), [0, 0, count]),
        };
        self.perform_after(turn)
    }

    /// As `step` with a mixed burst. Its number of Interests keeps the number of pending Interests constant.
    fn mixed_step(&mut self) -> Result<Step, EngineBenchError> {
        let burst = self.parameters.burst;
        let more = usize::from(self.in_flight() < self.parameters.in_flight);
        let interests = (burst / 2 + more).min(burst);
        let turn = self.prepare(None, [interests, 0, burst - interests]);
        self.perform_after(turn)
    }

    /// Number of Interests that are pending once all prepared turns have been performed.
    fn in_flight(&self) -> usize {
        self.names.pending().saturating_add_signed(self.prepared_balance)
    }

    /// Queues a turn, and performs the oldest one if enough are prepared.
    fn perform_after(&mut self, turn: Turn) -> Result<Step, EngineBenchError> {
        self.waiting += turn.frames.iter().map(Vec::len).sum::<usize>();
        self.prepared.push_back(turn);
        let due = if self.waiting > self.waiting_limit { self.prepared.pop_front() } else { None };
        let Some(turn) = due else {
            return Ok(Step { kind: None, ticks: 0, interests: 0, data: 0 });
        };
        self.waiting -= turn.frames.iter().map(Vec::len).sum::<usize>();
        self.perform(turn)
    }

    /// Runs poll iterations, at least one, until all expected packets have been sent.
    pub(super) fn perform(&mut self, mut turn: Turn) -> Result<Step, EngineBenchError> {
        let interests: usize = turn.asked.iter().map(VecDeque::len).sum();
        let mut step =
            Step { kind: turn.kind, ticks: 0, interests: turn.received[INTERESTS], data: turn.answered.len() };
        let most_ns = MAX_NS_PER_PACKET * turn.frames.iter().map(Vec::len).sum::<usize>() as u64;
        for (link, frames) in self.rig.links.iter_mut().zip(&mut turn.frames) {
            link.transmit(frames);
        }
        self.prepared_balance -= interests as isize - turn.answered.len() as isize;
        let expected = interests + turn.data_out;
        let (mut got, mut packets, mut received) = (0, step.interests + step.data, turn.received);
        for _ in 0..MAX_TURNS {
            let (rig, stock, now) = (&mut self.rig, &mut self.stock, self.now);
            let spent = match &mut self.watch {
                Some(watch) => watch
                    .turn(turn.kind, std::mem::take(&mut packets), || rig.turn(now, stock, received))
                    .map_err(EngineBenchError::Counters)?,
                None => rig.turn(now, stock, received),
            };
            received = Default::default();
            self.now.0 += ((spent as f64 * self.ns_per_tick) as u64).min(most_ns);
            step.ticks += spent;
            got += self.take_sent(&mut turn)?;
            if got >= expected {
                turn.answered.into_iter().for_each(|name| self.names.is_answered(name));
                return Ok(step);
            }
        }
        Err(EngineBenchError::Lost { got, expected })
    }

    /// Takes the frames that the worker sent; their Interests are now pending. Returns the number of packets of
    /// ordinary traffic.
    fn take_sent(&mut self, turn: &mut Turn) -> Result<usize, EngineBenchError> {
        for (link, frames) in self.rig.links.iter_mut().zip(&mut self.sent) {
            let mut before = usize::MAX;
            while frames.len() != before {
                before = frames.len();
                link.receive(frames);
            }
        }
        if let Some(flood) = &mut self.flood {
            flood.take_out(&mut self.sent);
        }
        let got = self.sent.iter().map(Vec::len).sum();
        for (frames, asked) in self.sent.iter_mut().zip(&mut turn.asked) {
            for frame in frames.drain(..) {
                // Data ends with its signature, which is zeros here.
                if nonce_of(&frame) != 0 {
                    let (name, nonce) = asked.pop_front().unwrap_or_default();
                    let token = token_of(&frame);
                    if nonce_of(&frame) != nonce || token.is_some() == self.rig.order().is_stripped() {
                        let got = format!("an Interest with Nonce {:x} and token {token:?}", nonce_of(&frame));
                        return Err(EngineBenchError::Rig(format!("{got} was forwarded instead of {nonce:x}")));
                    }
                    // With a token the answer finds its PIT entry directly, as in the protocol; on the stripped path it
                    // finds it by name.
                    let draw = f64::from(nonce) / f64::from(HIGH_NONCE);
                    if draw >= self.parameters.unanswered {
                        self.names.is_pending(name, token.unwrap_or(0));
                    }
                }
                self.stock.put(frame);
            }
        }
        Ok(got)
    }
}
