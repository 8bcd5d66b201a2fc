//! Which packets the worker gets when, and what they cost.
//!
//! Interests go in burst by burst, each with a name never seen before, until as many are pending as asked for; then the oldest
//! are answered, burst by burst. Interests that the Content Store answers ask for names that were answered before, drawn
//! from all that it still holds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use namehop_dpdk::Mbuf;
use namehop_forward::schedule::Schedule;
use namehop_forward::time::Timestamp;
use namehop_table::clock::cycles_per_second;

use super::EngineBenchError;
use super::flood::Flood;
use super::frames::{LinkHeaders, Template, Token, token_of};
use super::rig::{DOWNSTREAM_PEER, DOWNSTREAM_PORT, Rig, UPSTREAM_PEER, UPSTREAM_PORT};
use super::watch::Watch;
use crate::counters::{Counters, Tally};
use crate::median::median;
use crate::permutation::mix;
use crate::schedule::{ByPacket, EngineParameters, PacketKind};
use crate::workload::Workload;

/// Names that one load may use before the next one's begin.
const NAMES_PER_LOAD: u64 = 1 << 34;
/// After this long without Interests with CanBePrefix the Content Store keeps no index by prefix any more.
const SETTLING_NS: u64 = 61_000_000_000;
/// Set in the Nonces of floods only.
pub(super) const HIGH_NONCE: u32 = 1 << 31;
/// Turns that a burst may take.
const MAX_TURNS: usize = 4;
/// Of the packets that the Content Store can hold, those that are asked for again: as many may have been used since, and
/// the cache gives up what was not used for longest.
const ASKED_AGAIN: f64 = 0.5;
/// Counting takes this part of the time of measuring.
const COUNTING_PART: u32 = 2;
/// Bursts of cache hits for each burst of misses when only their cost is wanted.
const HITS_TO_MEASURE: f64 = 0.05;

/// Ticks per packet.
pub(super) type Costs = ByPacket<f64>;

/// Ticks per packet of a burst.
pub(super) fn per_packet((ticks, packets): (u64, usize)) -> f64 {
    ticks as f64 / packets.max(1) as f64
}

/// One worker's load.
pub(super) struct Load<'a, S: Schedule> {
    rig: Rig<S>,
    workload: &'a Workload,
    pub(super) parameters: &'a EngineParameters,
    interest: Template,
    data: Template,
    /// Time as the worker sees it: it passes only while it has its turns, as if packets came as fast as it handles them.
    now: Timestamp,
    ns_per_tick: f64,
    next_name: u64,
    last_name: u64,
    pending: VecDeque<(u64, Token)>,
    /// Names that were answered, oldest first.
    answered: VecDeque<u64>,
    frames: Vec<Mbuf>,
    draws: u64,
    /// Set while something is observed.
    pub(super) watch: Option<Watch>,
    /// A flood, while it lasts.
    pub(super) flood: Option<Flood>,
}

impl<'a, S: Schedule> Load<'a, S> {
    /// A load with names that no load of another number uses.
    pub(super) fn new(
        rig: Rig<S>,
        workload: &'a Workload,
        parameters: &'a EngineParameters,
        number: u64,
    ) -> Result<Self, EngineBenchError> {
        let first_name = number * NAMES_PER_LOAD % workload.name_capacity();
        let headers = LinkHeaders::of::<S>();
        let names = if parameters.names == 0 { NAMES_PER_LOAD } else { parameters.names };
        Ok(Load {
            rig,
            workload,
            parameters,
            interest: Template::interest(workload.name_bytes(), false, headers, [&DOWNSTREAM_PORT, &DOWNSTREAM_PEER]),
            data: Template::data(workload, parameters.payload_bytes, headers, [&UPSTREAM_PORT, &UPSTREAM_PEER]),
            now: Timestamp(1_000_000_000),
            ns_per_tick: 1e9 / cycles_per_second() as f64,
            next_name: first_name,
            last_name: first_name + names,
            pending: VecDeque::new(),
            answered: VecDeque::new(),
            frames: Vec::new(),
            draws: number,
            watch: None,
            flood: None,
        })
    }

    /// Until as many Interests are pending and as many Data cached as asked for.
    pub(super) fn warm_up(&mut self) -> Result<(), EngineBenchError> {
        // The first exchange starts what runs for a minute after the start of a router; then that minute is over.
        self.ask()?;
        self.answer()?;
        self.now.0 += SETTLING_NS;
        let mut in_cache = 0;
        loop {
            self.ask()?;
            if self.pending.len() < self.parameters.in_flight {
                continue;
            }
            if in_cache >= self.parameters.cs_capacity {
                break;
            }
            in_cache += self.answer()?.1;
        }
        self.answer()?;
        Ok(())
    }

    /// What packets cost. Each kind is exchanged in bursts of its own.
    pub(super) fn measure(&mut self, time: Duration) -> Result<Costs, EngineBenchError> {
        let mut samples = ByPacket::<Vec<f64>>::default();
        self.exchange(time, &mut |kind, burst| samples.get_mut(kind).push(per_packet(burst)))?;
        Ok(samples.map(|samples| median(&mut samples.clone())))
    }

    /// The same once more with the counters on, which would disturb the time-stamp counter's figures.
    pub(super) fn count(&mut self, counters: Counters) -> Result<ByPacket<Tally>, EngineBenchError> {
        self.watch = Some(Watch::Counters(Box::new(counters), Box::default()));
        self.exchange(self.parameters.time / COUNTING_PART, &mut |_, _| ())?;
        Ok(match self.watch.take() {
            Some(Watch::Counters(_, tallies)) => *tallies,
            _ => ByPacket::default(),
        })
    }

    /// Bursts of all kinds for a while. `on_burst` is told ticks and packets.
    fn exchange(
        &mut self,
        time: Duration,
        on_burst: &mut dyn FnMut(PacketKind, (u64, usize)),
    ) -> Result<(), EngineBenchError> {
        // There is one burst of hits at least.
        let (mut hits_due, started) = (1.0, Instant::now());
        while started.elapsed() < time {
            self.exchange_once(&mut hits_due, on_burst)?;
        }
        Ok(())
    }

    /// A burst of each kind; of cache hits as many as are due.
    pub(super) fn exchange_once(
        &mut self,
        hits_due: &mut f64,
        on_burst: &mut dyn FnMut(PacketKind, (u64, usize)),
    ) -> Result<(), EngineBenchError> {
        on_burst(PacketKind::InterestMiss, self.ask()?);
        on_burst(PacketKind::Data, self.answer()?);
        *hits_due += match self.parameters.hit_ratio.min(0.99) {
            ratio if ratio > 0.0 => ratio / (1.0 - ratio),
            _ => HITS_TO_MEASURE,
        };
        while *hits_due >= 1.0 && self.parameters.cs_capacity > 0 {
            on_burst(PacketKind::InterestHit, self.ask_again()?);
            *hits_due -= 1.0;
        }
        Ok(())
    }

    /// Ends the load.
    pub(super) fn finish(self) -> Result<(), EngineBenchError> {
        match self.rig.buffers_in_use() {
            0 => Ok(()),
            left => Err(EngineBenchError::Rig(format!("{left} packet buffers were not returned"))),
        }
    }

    /// An Interest for a name. `draw` makes its token and, but for the highest bit, its Nonce.
    fn interest(&mut self, name: u64, draw: u64) -> Option<Mbuf> {
        let write = |out: &mut [u8]| {
            self.workload.write_name(name, out);
        };
        self.interest.fill(write, draw, Some(mix(draw) as u32 & !HIGH_NONCE), &self.rig.pool)
    }

    /// Packets of a burst that are left to ordinary traffic.
    fn ordinary(&self) -> usize {
        self.parameters.burst - self.flood.as_ref().map_or(0, Flood::packets_of_burst)
    }

    /// A burst of Interests for new names; ticks and packets.
    pub(super) fn ask(&mut self) -> Result<(u64, usize), EngineBenchError> {
        let count = self.ordinary();
        let first = self.next_name;
        for name in first..first + count as u64 {
            let frame = self.interest(name, name);
            self.frames.extend(frame);
        }
        self.next_name += count as u64;
        if self.next_name >= self.last_name {
            self.next_name = self.last_name - self.parameters.names.max(count as u64);
        }
        if let Some(flood) = &mut self.flood {
            flood.join(&mut self.frames, &self.rig.pool);
        }
        self.rig.downstream.transmit(&mut self.frames);
        let ticks = self.forward(PacketKind::InterestMiss, count)?;
        for (name, frame) in (first..).zip(&self.frames) {
            // With a token the answer finds its entry, as the protocol has it; on the stripped path, by name.
            let token = token_of(frame);
            if token.is_some() == S::IS_STRIPPED {
                return Err(EngineBenchError::Rig("an Interest has the link header of another path".to_owned()));
            }
            self.pending.push_back((name, token.unwrap_or(0)));
        }
        self.frames.clear();
        Ok((ticks, count))
    }

    /// Data for the oldest pending Interests; ticks and packets.
    pub(super) fn answer(&mut self) -> Result<(u64, usize), EngineBenchError> {
        let count = self.ordinary().min(self.pending.len());
        for _ in 0..count {
            let Some((name, token)) = self.pending.pop_front() else { break };
            let write = |out: &mut [u8]| {
                self.workload.write_name(name, out);
            };
            self.frames.extend(self.data.fill(write, token, None, &self.rig.pool));
            self.answered.push_back(name);
        }
        while self.answered.len() > (self.parameters.cs_capacity as f64 * ASKED_AGAIN) as usize {
            self.answered.pop_front();
        }
        self.rig.upstream.transmit(&mut self.frames);
        if let Some(flood) = &mut self.flood {
            flood.join(&mut self.frames, &self.rig.pool);
            self.rig.downstream.transmit(&mut self.frames);
        }
        let ticks = self.forward(PacketKind::Data, count)?;
        self.frames.clear();
        Ok((ticks, count))
    }

    /// A burst of the flood alone; ticks and packets.
    pub(super) fn flood_alone(&mut self) -> Result<(u64, usize), EngineBenchError> {
        let count = self.parameters.burst;
        let Some(flood) = &mut self.flood else { return Ok((0, 0)) };
        flood.fill(count, &mut self.frames, &self.rig.pool);
        self.rig.downstream.transmit(&mut self.frames);
        let ticks = self.forward(PacketKind::InterestMiss, 0)?;
        Ok((ticks, count))
    }

    /// A burst of Interests for names that were answered before; ticks and packets.
    fn ask_again(&mut self) -> Result<(u64, usize), EngineBenchError> {
        let count = self.parameters.burst.min(self.answered.len());
        for _ in 0..count {
            self.draws += 1;
            let draw = mix(self.draws);
            let place = ((u128::from(draw) * self.answered.len() as u128) >> 64) as usize;
            let name = self.answered[place];
            let frame = self.interest(name, draw);
            self.frames.extend(frame);
        }
        self.rig.downstream.transmit(&mut self.frames);
        let ticks = self.forward(PacketKind::InterestHit, count)?;
        self.frames.clear();
        Ok((ticks, count))
    }

    /// Turns of the worker until `expected` ordinary frames have come out at the far end, into `frames`; there is one at
    /// least.
    fn forward(&mut self, kind: PacketKind, expected: usize) -> Result<u64, EngineBenchError> {
        self.frames.clear();
        let (mut ticks, mut uncounted) = (0, expected);
        for _ in 0..MAX_TURNS {
            let (rig, now) = (&mut self.rig, self.now);
            let spent = match &mut self.watch {
                None => rig.turn(now),
                Some(watch) => watch
                    .turn(kind, std::mem::take(&mut uncounted), || rig.turn(now))
                    .map_err(EngineBenchError::Counters)?,
            };
            self.now.0 += (spent as f64 * self.ns_per_tick) as u64;
            ticks += spent;
            match kind {
                PacketKind::InterestMiss => rig.upstream.receive(&mut self.frames),
                PacketKind::InterestHit | PacketKind::Data => rig.downstream.receive(&mut self.frames),
            }
            if let Some(flood) = &mut self.flood {
                flood.take_out(kind, rig, &mut self.frames);
            }
            if self.frames.len() >= expected {
                return Ok(ticks);
            }
        }
        Err(EngineBenchError::Lost { got: self.frames.len(), expected })
    }
}
